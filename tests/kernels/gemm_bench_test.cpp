#include "kernels/gemm_bench.h"

#include <gtest/gtest.h>

#include "kernels/device.h"

namespace tessera::kernels {
namespace {

using core::DType;

GemmModel tiny() {
  GemmModel model;
  model.tokens = 10;
  model.num_layers = 3;
  model.hidden_size = 8;
  model.qkv_size = 16;
  model.attention_size = 8;
  model.intermediate_size = 32;
  model.vocab_size = 21;
  model.logits_rows = 4;
  model.logits_stride = 24;
  return model;
}

double flops_of(const GemmModel& model) {
  double flops = 0;
  for (const GemmShape& shape : training_products(model)) {
    flops += static_cast<double>(shape.count) * shape.flops();
  }
  return flops;
}

TEST(TrainingProducts, CountSixFlopsForEveryWeightAndToken) {
  GemmModel model = tiny();
  const double weights = 3 * (8 * 16 + 8 * 8 + 2 * 8 * 32) + 21 * 8;
  EXPECT_EQ(flops_of(model), 6 * weights * 10);
  model.up_size = 64;  // with a gate
  EXPECT_EQ(flops_of(model), 6 * (weights + 3 * 8 * 32) * 10);
}

TEST(MeasureGemm, TimesEveryProductAndRestoresTheThreads) {
  const int threads = num_threads();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto shapes = training_products(tiny());
    const auto results = measure_gemm(shapes, dtype, {1, 3});
    ASSERT_EQ(results.size(), shapes.size());
    for (const GemmResult& result : results) {
      EXPECT_GT(result.best_seconds, 0);
      EXPECT_GE(result.median_seconds, result.best_seconds);
    }
  }
  EXPECT_EQ(num_threads(), threads);
}

TEST(WeightedGflops, CountsAProductAsOftenAsAStepDoesIt) {
  GemmShape often{"often", 1000, 1000, 500};  // 1 GFLOP
  often.count = 3;
  const GemmShape once{"once", 1000, 1000, 1000};  // 2 GFLOP
  // 3 GFLOP in 3 s and 2 GFLOP in 1 s.
  EXPECT_DOUBLE_EQ(weighted_gflops({{often, 0.5, 1.0}, {once, 0.5, 1.0}}), 5.0 / 4);
}

}  // namespace
}  // namespace tessera::kernels
