#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/config_args.h"
#include "cli/verbs.h"
#include "kernels/device.h"
#include "train/environment.h"
#include "train/run_data.h"
#include "train/step_bench.h"

// Both benchmarks take a config like `train` does, without data; where nothing is said they measure
// gpt2-124m on 4 sequences of 256 tokens.

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ConfigArgs config;
  int64_t steps = 5;
  int repetitions = 7;
  bool json = false;
};

spec::RunConfig read_config(const Options& options) {
  spec::RunConfig config = options.config.read_with_defaults({{"model.preset", "gpt2-124m"},
                                                              {"data.path", "(made up)"},
                                                              {"data.seq_len", "256"},
                                                              {"data.validation_fraction", "0"},
                                                              {"training.global_batch_size", "4"}},
                                                             1);
  if (config.model.vocab_size == 0) {
    config = train::with_vocabulary(config, *data::load_tokenizer(config.data.tokenizer));
  }
  return spec::resolved(config, 1);
}

Json to_json(const kernels::GemmResult& result) {
  const kernels::GemmShape& shape = result.shape;
  return {{"name", shape.name},
          {"m", shape.m},
          {"n", shape.n},
          {"k", shape.k},
          {"count", shape.count},
          {"median_gflops", result.median_gflops()},
          {"best_gflops", result.best_gflops()}};
}

int bench_gemm(const Options& options) {
  const spec::RunConfig config = read_config(options);
  kernels::set_num_threads(train::threads_of_one_process("bench"));
  kernels::GemmBenchOptions bench;
  bench.threads = kernels::num_threads();
  bench.repetitions = options.repetitions;
  Json json = {{"device", kernels::describe_device()}, {"threads", bench.threads}};
  if (!options.json) fmt::print("{}\n", kernels::describe_device());
  for (const core::DType dtype : {core::DType::bf16, core::DType::f32}) {
    const auto results = kernels::measure_gemm(train::products_of(config), dtype, bench);
    Json rows = Json::array();
    if (!options.json) {
      fmt::print("\n{:<32} {:>6} {:>6} {:>6} {:>5} {:>9} {:>9}\n", core::name_of(dtype), "m", "n",
                 "k", "times", "median", "best");
    }
    for (const kernels::GemmResult& result : results) {
      rows.push_back(to_json(result));
      if (options.json) continue;
      const kernels::GemmShape& shape = result.shape;
      fmt::print("{:<32} {:>6} {:>6} {:>6} {:>5} {:>9.1f} {:>9.1f}\n", shape.name, shape.m, shape.n,
                 shape.k, shape.count, result.median_gflops(), result.best_gflops());
    }
    const double total = kernels::weighted_gflops(results);
    json[core::name_of(dtype)] = {{"products", rows}, {"weighted_gflops", total}};
    if (!options.json) {
      fmt::print("{:<32} {:>36.1f}   GFLOP/s, weighted by FLOPs\n", "all of a micro-batch", total);
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2));
  return kDone;
}

int bench_step(const Options& options) {
  const spec::RunConfig config = read_config(options);
  kernels::set_num_threads(train::threads_of_one_process("bench"));
  const train::StepBench bench = train::bench_step(config, options.steps);
  if (options.json) {
    const Json json = {{"device", kernels::describe_device()},
                       {"step_seconds", bench.step_seconds},
                       {"median_step_seconds", bench.median_step_seconds},
                       {"tokens_per_s", bench.tokens_per_s},
                       {"step_gflops", bench.flops_per_s * 1e-9},
                       {"product_gflops", bench.product_flops_per_s * 1e-9},
                       {"share_of_products", bench.share_of_products}};
    fmt::print("{}\n", json.dump(2));
    return kDone;
  }
  fmt::print("{}\n", kernels::describe_device());
  fmt::print("step       {:.3f} s (median of {}), {:.0f} tokens/s\n", bench.median_step_seconds,
             bench.step_seconds.size(), bench.tokens_per_s);
  fmt::print("model      {:.1f} GFLOP/s (6 N and attention in full; recomputation not counted)\n",
             bench.flops_per_s * 1e-9);
  fmt::print("products   {:.1f} GFLOP/s (bench gemm, before and after; the better)\n",
             bench.product_flops_per_s * 1e-9);
  fmt::print("share      {:.1f} %\n", 100 * bench.share_of_products);
  return kDone;
}

}  // namespace

void add_bench_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("bench", "Measure this machine");
  verb->require_subcommand(1);
  auto options = std::make_shared<Options>();

  CLI::App* gemm = verb->add_subcommand("gemm", "The matrix products of a training step");
  auto gemm_options = std::make_shared<Options>();
  gemm_options->config.add_to(*gemm, "Without a config: gpt2-124m, 4 sequences of 256 tokens.");
  gemm->add_option("--repetitions", gemm_options->repetitions, "Of each product")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  gemm->add_flag("--json", gemm_options->json, "Print one JSON object");
  gemm->callback([gemm_options, &status] { status = bench_gemm(*gemm_options); });

  CLI::App* step = verb->add_subcommand("step", "A training step beside what its products reach");
  options->config.add_to(*step, "Without a config: gpt2-124m, 4 sequences of 256 tokens.");
  step->add_option("--steps", options->steps, "To time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  step->add_flag("--json", options->json, "Print one JSON object");
  step->callback([options, &status] { status = bench_step(*options); });

  add_bench_comm_action(*verb, status);
  add_bench_kernels_action(*verb, status);
}

}  // namespace tessera::cli
