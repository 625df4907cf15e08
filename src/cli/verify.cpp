#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "account/parameter_table.h"
#include "cli/config_args.h"
#include "cli/own_program.h"
#include "cli/temporary_folder.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "kernels/device.h"
#include "train/environment.h"
#include "train/mpirun.h"
#include "train/run_data.h"
#include "train/run_folder.h"
#include "train/supervisor.h"
#include "train/thread_ranks.h"
#include "train/verify.h"
#include "train/world.h"

// A layout of backend "shm" or "mpi" is run as users run it: by the launcher or by mpirun, as
// processes that execute this program with the hidden verb verify-rank and leave their record in a
// file. "thread" and the reference run in this process.

namespace tessera::cli {

namespace {

using spec::Backend;
using spec::Layout;
using train::LayoutVerdict;
using train::VerifyRecord;

struct Options {
  ConfigArgs config;
  std::string layouts = "dp=2; dp=2,accumulate=2";
  int64_t steps = 20;
  bool json = false;
};

/// One layout's run: its record, or why there is none.
struct Attempt {
  VerifyRecord record;
  std::string failure;
};

/// The user asked to stop while ranks ran.
struct Interrupted {
  int exit_status;
};

bool runs_as_processes(const Layout& layout) {
  return (layout.backend == Backend::shm || layout.backend == Backend::mpi) && layout.dp > 1;
}

Attempt run_as_processes(const spec::RunConfig& config, const Layout& layout, int64_t steps) {
  const TemporaryFolder folder;
  const auto config_path = folder.path() / "config.toml";
  const auto record_path = folder.path() / "record.safetensors";
  train::write_file_atomically(config_path, formats::to_toml(config));
  const std::vector<std::string> command = {
      own_program(),         "verify-rank", config_path.string(), "--steps",
      std::to_string(steps), "--record",    record_path.string()};
  const int ranks = static_cast<int>(layout.dp);
  std::string said;
  const auto listen = [&](const std::string& line) { said += line + "\n"; };
  train::LaunchOptions launch_options;
  launch_options.ranks = {ranks, ranks};
  launch_options.command = command;
  const train::LaunchOutcome outcome = layout.backend == Backend::mpi
                                           ? train::launch_with_mpirun(ranks, command, listen)
                                           : train::launch(launch_options, listen);
  if (outcome.exit_status > 128) throw Interrupted{outcome.exit_status};
  if (outcome.exit_status != 0) return {{}, "its ranks failed: " + said};
  return {train::load_record(record_path), ""};
}

Attempt run_in_this_process(const spec::RunConfig& config, const data::Dataset& dataset,
                            int64_t ranks, int64_t steps) {
  Attempt attempt;
  const auto work = [&](comm::Communicator& comm) {
    VerifyRecord record = train::record_run(config, dataset, comm, steps);
    if (comm.rank() == 0) attempt.record = std::move(record);
  };
  const int num_threads = train::threads_of_one_process("verify");
  if (ranks == 1) {
    kernels::set_num_threads(num_threads);
    work(*comm::make_self_communicator());
  } else {
    train::run_thread_ranks({static_cast<int>(ranks), num_threads}, train::comm_options(config),
                            work);
  }
  return attempt;
}

Attempt run_layout(const spec::RunConfig& config, const data::Dataset& dataset,
                   const Layout& layout, int64_t steps) {
  try {
    if (runs_as_processes(layout)) return run_as_processes(config, layout, steps);
    return run_in_this_process(config, dataset, layout.dp, steps);
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
}

std::vector<std::string> parameter_names(const spec::RunConfig& config) {
  std::vector<std::string> names;
  for (const auto& parameter : account::parameter_table(config.model, config.lora).parameters) {
    names.push_back(parameter.name);
  }
  return names;
}

nlohmann::ordered_json to_json(const LayoutVerdict& v) {
  nlohmann::ordered_json json = {{"layout", v.layout},
                                 {"ok", v.ok},
                                 {"bitwise", v.bitwise},
                                 {"loss_max_relative", v.loss_max_relative},
                                 {"grad_norm_max_relative", v.grad_norm_max_relative},
                                 {"gradients_max_relative_l2", v.gradients_max_relative_l2},
                                 {"weights_max_relative_l2", v.weights_max_relative_l2},
                                 {"first_divergence", nullptr}};
  if (!v.ok) {
    json["first_divergence"] = {{"step", v.first_divergence_step},
                                {"tensor", v.first_divergence_tensor}};
    json["why"] = v.why;
  }
  return json;
}

void print_table(const std::vector<LayoutVerdict>& verdicts, const train::Tolerance& tolerance) {
  fmt::print("{:<36} {:>9} {:>9} {:>9} {:>9}\n", "layout", "losses", "norms", "gradients",
             "weights");
  fmt::print("{:<36} {:>9.0e} {:>9.0e} {:>9} {:>9.0e}\n", "tolerance", tolerance.loss,
             tolerance.norm, "", tolerance.weights);
  for (const LayoutVerdict& v : verdicts) {
    fmt::print("{:<36} {:>9.1e} {:>9.1e} {:>9.1e} {:>9.1e}  {}\n", v.layout, v.loss_max_relative,
               v.grad_norm_max_relative, v.gradients_max_relative_l2, v.weights_max_relative_l2,
               v.bitwise  ? "equal to the bit"
               : v.ok     ? "ok"
               : v.failed ? "FAILED: " + v.why
                          : "MISMATCH: " + v.why);
    if (!v.ok && v.first_divergence_step > 0) {
      fmt::print("{:<36} first seen at step {} in {}\n", "", v.first_divergence_step,
                 v.first_divergence_tensor);
    }
  }
}

/// The layouts as they are run: what they do not say of sharding is the config's.
std::vector<Layout> read_layouts(const Options& options, const spec::RunConfig& config) {
  const int64_t global_batch_size = config.training.global_batch_size;
  spec::LayoutList list = spec::parse_layouts(options.layouts);
  for (Layout& layout : list.layouts) {
    layout = spec::completed(layout, config);
    if (layout.prefetch >= 0 && layout.zero < 3) {
      list.violations.push_back({"prefetch", std::to_string(layout.prefetch),
                                 "is not used: only zero=3 gathers weights", "zero=3",
                                 "--layouts"});
    }
    if (layout.dp > global_batch_size) {
      list.violations.push_back({"dp", std::to_string(layout.dp),
                                 "more ranks than the samples of a global batch",
                                 "at most " + std::to_string(global_batch_size), "--layouts"});
    }
  }
  if (!list.violations.empty()) throw core::ConfigError(formats::describe(list.violations));
  return list.layouts;
}

/// Every layout's run. Processes first: they are forked while this process has one thread.
std::vector<Attempt> run_layouts(const spec::RunConfig& config, const data::Dataset& dataset,
                                 const std::vector<Layout>& layouts, int64_t steps) {
  std::vector<Attempt> attempts(layouts.size());
  for (const bool processes : {true, false}) {
    for (size_t i = 0; i < layouts.size(); ++i) {
      if (runs_as_processes(layouts[i]) != processes) continue;
      attempts[i] = run_layout(spec::with_layout(config, layouts[i]), dataset, layouts[i], steps);
    }
  }
  return attempts;
}

void print_json(const std::vector<LayoutVerdict>& verdicts, const train::Tolerance& tolerance,
                int64_t steps) {
  nlohmann::ordered_json json = {
      {"reference", spec::to_string(Layout{})},
      {"steps", steps},
      {"tolerance",
       {{"loss", tolerance.loss}, {"grad_norm", tolerance.norm}, {"weights", tolerance.weights}}},
      {"layouts", nlohmann::ordered_json::array()}};
  for (const LayoutVerdict& verdict : verdicts) json["layouts"].push_back(to_json(verdict));
  fmt::print("{}\n", json.dump());
}

int run_verify(const Options& options) {
  spec::RunConfig config = options.config.read(0);
  config.parallelism.data_parallel_degree = 1;
  const train::RunData data = train::load_run_data(config);
  config = spec::resolved(train::with_vocabulary(config, *data.tokenizer), 1);
  const std::vector<Layout> layouts = read_layouts(options, config);
  const int64_t steps = std::min(options.steps, config.training.steps);
  const train::Tolerance tolerance = train::default_tolerance(config, steps);
  const std::vector<std::string> names = parameter_names(config);

  std::vector<Attempt> attempts;
  try {
    attempts = run_layouts(config, *data.training, layouts, steps);
  } catch (const Interrupted& interrupted) {
    return interrupted.exit_status;
  }
  const VerifyRecord reference =
      run_in_this_process(spec::with_layout(config, Layout{}), *data.training, 1, steps).record;

  std::vector<LayoutVerdict> verdicts;
  for (size_t i = 0; i < layouts.size(); ++i) {
    LayoutVerdict verdict;
    verdict.why = attempts[i].failure;
    verdict.failed = !verdict.why.empty();
    if (!verdict.failed) {
      verdict = train::compare(reference, attempts[i].record, names, tolerance);
    }
    verdict.layout = spec::to_string(layouts[i]);
    verdicts.push_back(std::move(verdict));
  }
  const bool all_ok =
      std::all_of(verdicts.begin(), verdicts.end(), [](const LayoutVerdict& v) { return v.ok; });
  if (options.json) {
    print_json(verdicts, tolerance, steps);
  } else {
    print_table(verdicts, tolerance);
    fmt::print("{}\n", all_ok
                           ? "every layout trains the model that one rank trains"
                           : "some layout was not shown to train the model that one rank trains");
  }
  const bool failed =
      std::any_of(verdicts.begin(), verdicts.end(), [](const auto& v) { return v.failed; });
  return all_ok ? kDone : failed ? kRunFailed : kMismatch;
}

struct RankOptions {
  std::string config;
  std::string record;
  int64_t steps = 0;
};

/// One process of a "shm" or "mpi" layout.
int run_verify_rank(const RankOptions& options) {
  spec::RunConfig config = formats::parse_config(train::read_file(options.config), options.config);
  formats::read_schedule_file(config);
  train::World world(train::rank_environment(), config);
  kernels::set_num_threads(world.environment().num_threads);
  comm::Communicator& comm = world.comm();
  try {
    const train::RunData data = train::load_run_data(config);
    const VerifyRecord record = train::record_run(config, *data.training, comm, options.steps);
    if (comm.rank() == 0) train::save_record(options.record, record);
  } catch (const std::exception& error) {
    comm.abort(error.what());
    throw;
  }
  world.leave();
  return kDone;
}

}  // namespace

void add_verify_verb(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "verify", "Train a few steps in each layout and on one rank, and compare what comes out");
  options->config.add_to(
      *verb,
      "Layouts: key=value joined by commas, layouts by semicolons. Keys: dp, "
      "accumulate, micro_batch, recompute, zero, shard, bucket_bytes, prefetch, backend (thread, "
      "shm, mpi); sharding that a layout does not name is the config's. Exit status 4 when a "
      "layout "
      "differs.");
  verb->add_option("--layouts", options->layouts, "What to compare with one rank")
      ->capture_default_str();
  verb->add_option("--steps", options->steps, "Steps to train (at most training.steps)")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback([options, &status] { status = run_verify(*options); });

  auto rank_options = std::make_shared<RankOptions>();
  CLI::App* rank = app.add_subcommand("verify-rank", "")->group("");
  rank->add_option("config", rank_options->config)->required();
  rank->add_option("--steps", rank_options->steps)->required();
  rank->add_option("--record", rank_options->record)->required();
  rank->callback([rank_options, &status] { status = run_verify_rank(*rank_options); });
}

}  // namespace tessera::cli
