#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/config_args.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "train/checkpoint.h"
#include "train/run_data.h"
#include "train/run_folder.h"
#include "train/start_weights.h"

namespace tessera::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string path;
  bool json = false;
};

int list(const Options& options) {
  const fs::path checkpoints = train::RunFolder{options.path}.checkpoints();
  if (!fs::is_directory(checkpoints)) {
    throw core::ConfigError(options.path + " is not a run folder: it has no checkpoints/");
  }
  Json json = Json::array();
  for (const fs::path& folder : train::list_checkpoints(checkpoints)) {
    Json entry = {{"path", folder.string()}};
    try {
      const train::CheckpointHeader header = train::read_checkpoint_header(folder);
      entry["step"] = header.step;
      entry["samples"] = header.samples;
      entry["layout"] = header.layout;
      if (!options.json) {
        fmt::print("{}  step {}, {} samples, saved by {}\n", folder.string(), header.step,
                   header.samples, header.layout);
      }
    } catch (const core::RunError& error) {
      entry["error"] = error.what();
      if (!options.json) fmt::print("{}  incomplete: {}\n", folder.string(), error.what());
    }
    json.push_back(entry);
  }
  if (options.json) fmt::print("{}\n", Json{{"checkpoints", json}}.dump(2));
  return kDone;
}

/// What a model of another program is, as [model] has it.
int show_foreign(const train::WeightsPath& weights, bool json) {
  const train::OpenWeights open = train::open_weights(weights);
  const int64_t parameters = account::parameter_table(open.config.model).num_elements();
  const std::string dtype = std::string(spec::name_of(open.config.training.precision));
  if (json) {
    const Json config = Json::parse(formats::to_json(open.config));
    fmt::print("{}\n", Json{{"path", weights.path.string()},
                            {"parameters", parameters},
                            {"dtype", dtype},
                            {"model", config["model"]},
                            {"notes", open.notes}}
                           .dump(2));
    return kDone;
  }
  const std::string toml = formats::to_toml(open.config);
  fmt::print("{}\n{} parameters in {}\n", weights.path.string(), parameters, dtype);
  for (const std::string& note : open.notes) fmt::print("{}\n", note);
  fmt::print("\n{}", toml.substr(0, toml.find("\n[") + 1));
  return kDone;
}

int show(const Options& options) {
  const train::WeightsPath weights = train::find_weights(options.path);
  if (weights.kind != train::WeightsKind::checkpoint) return show_foreign(weights, options.json);
  const fs::path folder = weights.path;
  const train::CheckpointHeader header = train::read_checkpoint_header(folder);
  if (options.json) {
    fmt::print("{}\n", train::read_file(folder / "manifest.json"));
  } else {
    fmt::print("{}\nstep {}, {} samples, saved by {}\n\n{}", folder.string(), header.step,
               header.samples, header.layout, header.config);
  }
  return kDone;
}

/// Of a run folder every checkpoint, so that a damaged one cannot hide behind an older one.
int verify(const Options& options) {
  std::vector<fs::path> folders =
      train::list_checkpoints(train::RunFolder{options.path}.checkpoints());
  if (folders.empty()) folders.push_back(train::find_checkpoint(options.path));
  Json json = Json::array();
  bool all_ok = true;
  for (const fs::path& folder : folders) {
    std::string why;
    try {
      train::verify_checkpoint(folder);
    } catch (const core::RunError& error) {
      why = error.what();
    }
    all_ok = all_ok && why.empty();
    json.push_back({{"path", folder.string()}, {"ok", why.empty()}, {"why", why}});
    if (options.json) continue;
    fmt::print("{}: {}\n", folder.string(),
               why.empty() ? "every file has the size and checksum of the manifest" : why);
  }
  if (options.json) fmt::print("{}\n", Json{{"ok", all_ok}, {"checkpoints", json}}.dump(2));
  return all_ok ? kDone : kRunFailed;
}

struct InitOptions {
  ConfigArgs config;
  std::string output;
};

/// A seed checkpoint: the model that training.seed stands for, before any step, so that other
/// programs can start from the same weights.
int init(const InitOptions& options) {
  spec::RunConfig config = options.config.read(0);
  config.parallelism.data_parallel_degree = 1;
  if (config.model.vocab_size == 0) {
    config = train::with_vocabulary(config, *data::load_tokenizer(config.data.tokenizer));
  }
  config = spec::resolved(config, 1);
  fs::path output = fs::absolute(options.output).lexically_normal();
  if (!output.has_filename()) output = output.parent_path();  // "seed/" is "seed"
  if (fs::exists(output)) {
    throw core::ConfigError(options.output + " exists; choose another --output");
  }
  core::MemoryLedger ledger;
  const account::ParameterTable table = account::parameter_table(config.model, config.lora);
  parallel::ModelState state(table, config.training, /*for_training=*/true, ledger);
  state.initialise(config.training.seed);
  fs::create_directories(output.parent_path());
  parallel::MeshGroups alone;
  train::save_checkpoint(output, state, alone,
                         {0, config.training.seed, 0, formats::to_toml(config), "dp=1"});
  fmt::print("{}: {} parameters at step 0\n", options.output, table.num_elements());
  return kDone;
}

void add_action(CLI::App& verb, int& status, const std::string& name, const std::string& about,
                int (*action)(const Options&)) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = verb.add_subcommand(name, about);
  sub->add_option("path", options->path,
                  "A run or a checkpoint; of show a Hugging Face folder or llm.c's model file, too")
      ->required();
  sub->add_flag("--json", options->json, "Print JSON");
  sub->callback([options, action, &status] { status = action(*options); });
}

}  // namespace

void add_checkpoint_verb(CLI::App& app, int& status) {
  CLI::App* verb =
      app.add_subcommand("checkpoint", "Look at checkpoints, check, make and convert them");
  verb->require_subcommand(1);
  add_action(*verb, status, "list", "The checkpoints of a run", list);
  add_action(*verb, status, "show", "What a checkpoint holds, and the config it was trained with",
             show);
  add_action(*verb, status, "verify", "Every file's size and checksum against the manifest",
             verify);
  add_convert_action(*verb, status);
  auto options = std::make_shared<InitOptions>();
  CLI::App* sub = verb->add_subcommand("init", "Write the untrained model of a config, at step 0");
  options->config.add_to(*sub, "The same training.seed gives the same weights.");
  sub->add_option("--output", options->output, "The checkpoint folder to make")->required();
  sub->callback([options, &status] { status = init(*options); });
}

}  // namespace tessera::cli
