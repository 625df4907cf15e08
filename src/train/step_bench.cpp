#include "train/step_bench.h"

#include <algorithm>

#include "account/flops.h"
#include "account/head_chunks.h"
#include "kernels/device.h"
#include "train/batch_loader.h"
#include "train/clock.h"
#include "train/noise_dataset.h"
#include "train/summary.h"
#include "train/train_step.h"

namespace tessera::train {

namespace {

double product_rate(const spec::RunConfig& config) {
  kernels::GemmBenchOptions options;
  options.threads = kernels::num_threads();
  return kernels::weighted_gflops(kernels::measure_gemm(
             products_of(config), spec::dtype_of(config.training.precision), options)) *
         1e9;
}

}  // namespace

std::vector<kernels::GemmShape> products_of(const spec::RunConfig& config) {
  const spec::ModelConfig& model = config.model;
  kernels::GemmModel sizes;
  sizes.tokens = config.training.micro_batch_size * config.data.seq_len;
  sizes.num_layers = model.num_hidden_layers;
  sizes.hidden_size = model.hidden_size;
  sizes.qkv_size = (model.num_attention_heads + 2 * model.num_key_value_heads) * model.head_dim;
  sizes.attention_size = model.num_attention_heads * model.head_dim;
  sizes.intermediate_size = model.intermediate_size;
  const bool gated = model.architecture == spec::Architecture::llama;
  sizes.up_size = (gated ? 2 : 1) * model.intermediate_size;
  sizes.vocab_size = model.vocab_size;
  const core::DType dtype = spec::dtype_of(config.training.precision);
  sizes.logits_stride = account::head_row_stride(model.vocab_size);
  sizes.logits_rows = account::head_chunk_rows(1, sizes.tokens, model.vocab_size, dtype);
  return kernels::training_products(sizes);
}

StepBench bench_step(const spec::RunConfig& config, int64_t steps) {
  StepBench bench;
  bench.product_flops_per_s = product_rate(config);

  core::MemoryLedger ledger;
  parallel::MeshGroups alone;
  parallel::Replica replica(config, alone, ledger, expected_arena_bytes(config, 0));
  TrainStep train_step(config, replica);
  const NoiseDataset dataset(config.data.seq_len, config.model.vocab_size);
  const BatchLoader loader(dataset, config.training, 1, 0, SampleOrigin{});
  for (int64_t step = 1; step <= steps + 1; ++step) {
    const Stopwatch clock;
    const StepResult result = train_step.compute_gradients(loader, step);
    train_step.update(result);
    if (step > 1) bench.step_seconds.push_back(clock.seconds());
  }
  bench.product_flops_per_s = std::max(bench.product_flops_per_s, product_rate(config));

  std::vector<double> sorted = bench.step_seconds;
  std::sort(sorted.begin(), sorted.end());
  bench.median_step_seconds = sorted[sorted.size() / 2];
  const double tokens =
      static_cast<double>(config.training.global_batch_size * config.data.seq_len);
  bench.tokens_per_s = tokens / bench.median_step_seconds;
  bench.flops_per_s =
      account::train_flops_per_token(config.model, config.data.seq_len) * bench.tokens_per_s;
  bench.share_of_products = bench.flops_per_s / bench.product_flops_per_s;
  return bench;
}

}  // namespace tessera::train
