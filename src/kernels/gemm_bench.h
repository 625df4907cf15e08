#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

// What matrix products reach on this machine, in the shapes that a model is made of: the yardstick
// that a training step is held against (`tessera bench gemm`).

namespace tessera::kernels {

/// One product of a training step, as matmul is asked for it.
struct GemmShape {
  std::string name;  ///< "mlp up, weight gradient"
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;            ///< a weight gradient: added to fp32
  int64_t lda = 0, ldb = 0, ldc = 0;  ///< 0: contiguous
  int64_t count = 1;                  ///< times a step does it

  /// Of one product.
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// The sizes that decide a transformer's products.
struct GemmModel {
  int64_t tokens = 0;  ///< of a micro-batch
  int64_t num_layers = 0;
  int64_t hidden_size = 0;     ///< C
  int64_t qkv_size = 0;        ///< (H + 2G) · D
  int64_t attention_size = 0;  ///< H · D
  int64_t intermediate_size = 0;
  int64_t up_size = 0;        ///< outputs of the MLP's first product; 0: intermediate_size
  int64_t vocab_size = 0;     ///< V
  int64_t logits_rows = 0;    ///< tokens whose logits exist at a time; at most `tokens`
  int64_t logits_stride = 0;  ///< elements from a row of logits to the next; 0 for V
};

/// Forward, input gradient and weight gradient of every linear layer and of the head, with how
/// often a micro-batch does each. Weights are [out, in].
std::vector<GemmShape> training_products(const GemmModel& model);

struct GemmResult {
  GemmShape shape;
  double best_seconds = 0;
  double median_seconds = 0;
  double best_gflops() const { return shape.flops() / best_seconds * 1e-9; }
  double median_gflops() const { return shape.flops() / median_seconds * 1e-9; }
};

struct GemmBenchOptions {
  int threads = 1;
  int repetitions = 7;  ///< after one that is not counted; at least 1
};

/// Times every shape with operands of `dtype` (fp32 or bf16), after holding a sample of its
/// elements against fp64 sums. Blocks for about repetitions · Σ flops / speed. Throws RunError when
/// a product is wrong.
std::vector<GemmResult> measure_gemm(const std::vector<GemmShape>& shapes, core::DType dtype,
                                     const GemmBenchOptions& options);

/// GFLOP/s over all of them, each counted as often as a step does it: Σ flops / Σ median seconds.
double weighted_gflops(const std::vector<GemmResult>& results);

}  // namespace tessera::kernels
