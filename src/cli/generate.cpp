#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/last_word.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "kernels/device.h"
#include "spec/layout.h"
#include "train/agreement.h"
#include "train/environment.h"
#include "train/generate.h"
#include "train/world.h"

namespace tessera::cli {

namespace {

struct Options {
  std::string path;
  std::string prompt;
  std::string tokenizer;
  std::string layout;
  train::SamplingOptions sampling;
  bool json = false;
};

/// The text, on rank 0's stdout.
void print_text(const Options& options, train::Generator& generator, bool first_rank) {
  if (options.json) {
    const std::string text = generator.generate(options.prompt, options.sampling, {});
    const nlohmann::ordered_json json = {{"prompt", options.prompt}, {"text", text}};
    if (!first_rank) return;
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  if (first_rank) fmt::print("{}", options.prompt);
  generator.generate(options.prompt, options.sampling, [](const std::string& piece) {
    fmt::print("{}", piece);
    std::fflush(stdout);
  });
  if (first_rank) fmt::print("\n");
}

/// The layout that the user names; of one rank where none is.
spec::Layout layout_of(const Options& options) {
  if (options.layout.empty()) return {};
  spec::LayoutList list = spec::parse_layouts(options.layout);
  for (spec::Violation& violation : list.violations) violation.where = "--layout";
  if (!list.violations.empty()) throw core::ConfigError(formats::describe(list.violations));
  spec::Layout cut;
  cut.tp = list.layouts[0].tp;
  cut.pp = list.layouts[0].pp;
  const bool more = spec::to_string(cut) != spec::to_string(list.layouts[0]);
  if (list.layouts.size() > 1 || more) {
    throw core::ConfigError(
        fmt::format("--layout \"{}\": a model that generates is cut by tp and pp alone, as in "
                    "\"tp=2,pp=2\"",
                    options.layout));
  }
  return cut;
}

/// As one of the ranks that a launcher started.
int run_rank(const Options& options, const train::RankEnvironment& environment,
             const spec::Layout& layout) {
  train::World world(environment, spec::RunConfig{});
  kernels::set_num_threads(world.environment().num_threads);
  comm::Communicator& comm = world.comm();
  try {
    train::Generator generator(options.path, options.tokenizer, comm, layout.tp, layout.pp);
    print_text(options, generator, comm.rank() == 0);
  } catch (const train::Agreed&) {
    try {
      world.leave();  // all ranks end like this one
    } catch (const core::CommError&) {
      // What they agreed on is what there is to tell.
    }
    throw;
  } catch (const core::CommError&) {
    throw;
  } catch (const std::exception& error) {
    comm.abort(error.what());
    throw;
  }
  world.leave();
  return kDone;
}

int run_generate(const Options& options, const train::RankEnvironment& environment) {
  const spec::Layout layout = layout_of(options);
  if (environment.world_size > 1) return run_rank(options, environment, layout);
  kernels::set_num_threads(train::threads_of_one_process("generate"));
  if (layout.ranks() > 1) {
    throw core::ConfigError(
        fmt::format("--layout \"{}\" is for {} ranks: tessera launch --nproc-per-node {} -- "
                    "generate …",
                    options.layout, layout.ranks(), layout.ranks()));
  }
  train::Generator generator(options.path, options.tokenizer);
  print_text(options, generator, /*first_rank=*/true);
  return kDone;
}

constexpr double kHottest = 1e6;  // draws are as good as uniform long before

/// CLI::Range lets nan pass, and shows the largest double with all its digits.
CLI::Validator number_between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
        return fits ? std::string()
                    : fmt::format("{} is no number from {} to {}", text, least, most);
      },
      fmt::format("from {} to {}", least, most));
}

}  // namespace

void add_generate_verb(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("generate", "Sample text from a trained model");
  verb->add_option("path", options->path,
                   "A run, a checkpoint, a Hugging Face folder or a model file of llm.c")
      ->required();
  verb->add_option("--prompt", options->prompt, "The text to continue");
  verb->add_option("--tokenizer", options->tokenizer,
                   "A tokenizer's folder or file [the model's own]");
  verb->add_option("--layout", options->layout,
                   "How ranks that a launcher starts share the model: \"tp=2,pp=2\"");
  train::SamplingOptions& sampling = options->sampling;
  verb->add_option("--max-new-tokens,--max_new_tokens", sampling.max_new_tokens,
                   "Tokens to add at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--temperature", sampling.temperature, "0: always the likeliest token")
      ->check(number_between(0, kHottest))
      ->capture_default_str();
  verb->add_option("--top-k,--top_k", sampling.top_k, "Draw from the k likeliest; 0: from all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--top-p,--top_p", sampling.top_p,
                   "Draw from the fewest tokens of this probability; 1: from all")
      ->check(number_between(0, 1))
      ->capture_default_str();
  verb->add_option("--seed", sampling.seed, "The same seed draws the same text")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('-') ? "a seed is 0 or more, not " + text : std::string();
          },
          ""))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object: prompt, text");
  verb->callback([options, &status] {
    const train::RankEnvironment environment = train::rank_environment();
    try {
      status = run_generate(*options, environment);
    } catch (const std::exception& error) {
      // One of the ranks tells what is wrong with all.
      const bool all = dynamic_cast<const core::ConfigError*>(&error) != nullptr ||
                       dynamic_cast<const train::Agreed*>(&error) != nullptr;
      if (!all || environment.rank == 0) throw;
      status = exit_status_of(error);
    }
    leave_rank_0_the_last_word(environment, status);
  });
}

}  // namespace tessera::cli
