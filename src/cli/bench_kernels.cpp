#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/config_args.h"
#include "cli/measured_machine.h"
#include "cli/verbs.h"
#include "formats/machine_file.h"
#include "train/environment.h"
#include "train/predict_here.h"

namespace tessera::cli {

namespace {

struct Options {
  ConfigArgs config;
  int ranks = 1;
  std::string out;
  double seconds = 0.3;
  bool json = false;
};

void print(const account::MachineTimes& machine) {
  fmt::print("{}\n\n{:<10} {:>5} {:>7} {:>11} {:>11} {:>11} {:>11}  shape\n", machine.device,
             "unit", "ranks", "threads", "forward_ms", "backward_ms", "its input", "its weights");
  for (const account::UnitTimes& unit : machine.units) {
    fmt::print("{:<10} {:>5} {:>7} {:>11.3f} {:>11.3f} {:>11.3f} {:>11.3f}  {}\n",
               account::name_of(unit.kind), unit.company.ranks, unit.company.threads,
               1e3 * unit.forward_s, 1e3 * unit.backward_s, 1e3 * unit.backward_input_s,
               1e3 * unit.backward_weight_s, unit.shape);
  }
  fmt::print("\n{:<16} {:>5} {:>7} {:>9} {:>9} {:>9} {:>9}  of a million elements, in ms\n",
             "state", "ranks", "threads", "clear", "norm", "AdamW", "copy");
  for (const account::StateTimes& state : machine.states) {
    fmt::print("{:<16} {:>5} {:>7} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}\n", state.shape,
               state.company.ranks, state.company.threads, 1e9 * state.zero_s, 1e9 * state.norm_s,
               1e9 * state.optimizer_s, 1e9 * state.copy_s);
  }
  if (machine.links.empty()) return;
  fmt::print("\n{:<16} {:>5} {:>11} {:>9}\n", "collective", "ranks", "latency_us", "GB/s");
  for (const account::LinkTimes& link : machine.links) {
    fmt::print("{:<16} {:>5} {:>11.2f} {:>9.3f}\n", link.collective, link.ranks,
               1e6 * link.latency_s, 1e-9 * link.bytes_per_s);
  }
}

/// The user's, or one to measure where there is none.
spec::RunConfig read_config(const Options& options) {
  if (!options.config.sources().files.empty()) return options.config.read(options.ranks);
  return options.config.read_with_defaults({{"model.preset", "gpt2-124m"},
                                            {"data.path", "(made up)"},
                                            {"data.seq_len", "256"},
                                            {"data.validation_fraction", "0"},
                                            {"training.global_batch_size", "4"}},
                                           options.ranks);
}

int bench_kernels(const Options& options) {
  train::threads_of_one_process("bench");
  const spec::RunConfig config = read_config(options);
  train::MachineBench bench;
  bench.ranks = options.ranks;
  bench.threads = train::threads_of_a_rank(options.ranks);
  bench.effort.seconds = options.seconds;
  const account::MachineTimes machine =
      machine_times(read_measured_run(config, options.ranks), bench, options.out);
  if (options.json) {
    fmt::print("{}", formats::to_json(machine));
  } else {
    print(machine);
  }
  return kDone;
}

}  // namespace

void add_bench_kernels_action(CLI::App& bench_verb, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = bench_verb.add_subcommand(
      "kernels", "The parts of a training step: what `tessera plan CONFIG.toml` predicts from");
  options->config.add_to(
      *verb,
      "Times a block, the embedding and the head of the config's layout, the optimizer and the "
      "collectives, each by itself, on as many ranks at once as the run will have. Without a "
      "config: gpt2-124m, 4 sequences of 256 tokens.");
  verb->add_option("--ranks", options->ranks, "Of the run, all on this machine and all at work")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--out", options->out,
                   "Write what was measured there, beside what the file already has");
  verb->add_option("--seconds", options->seconds, "For each part, at least")
      ->check(CLI::Range(0.001, 1e4))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object, as the file has it");
  verb->callback([options, &status] { status = bench_kernels(*options); });
}

}  // namespace tessera::cli
