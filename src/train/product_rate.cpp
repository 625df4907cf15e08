#include "train/product_rate.h"

#include <algorithm>

#include "core/memory.h"
#include "kernels/matmul.h"
#include "parallel/model_state.h"
#include "train/clock.h"

namespace tessera::train {

double measure_product_rate(const spec::RunConfig& config) {
  constexpr double kSeconds = 0.1;
  const core::DType dtype = spec::dtype_of(config.training.precision);
  const spec::ModelConfig& model = config.model;
  const int64_t m = std::min<int64_t>(config.training.micro_batch_size * config.data.seq_len, 4096);
  const int64_t n = model.intermediate_size;
  const int64_t k = model.hidden_size;

  core::MemoryLedger ledger;
  const auto operand = [&](int64_t rows, int64_t columns) {
    return core::Tensor(ledger, core::Category::activations, dtype, {rows, columns});
  };
  const core::Tensor a = operand(m, k);
  const core::Tensor b = operand(n, k);
  const core::Tensor c = operand(m, n);
  const auto multiply = [&] {
    kernels::MatmulOptions options;
    options.transpose_b = true;
    kernels::matmul(c.view(), a.view(), b.view(), options);
  };
  multiply();  // the first one prepares the product

  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  double best = 0;
  const Stopwatch total;
  do {
    const Stopwatch clock;
    multiply();
    best = std::max(best, flops / clock.seconds());
  } while (total.seconds() < kSeconds);
  return best;
}

}  // namespace tessera::train
