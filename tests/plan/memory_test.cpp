#include <gtest/gtest.h>

#include "plan/activations.h"
#include "spec/schedule.h"

namespace tessera::plan {
namespace {

/// GPT-3 with dropout on Megatron of 2022, one layer of it looked at.
Case gpt3(int64_t tp, bool sequence_parallel, spec::Recompute recompute) {
  Case run;
  run.model = *find_model("gpt3-175b");
  run.cluster = *find_cluster("a100-80g");
  run.stack = find_stack("megatron-lm-2022");
  run.recipe.seq_len = 2048;
  run.recipe.global_batch = 64;
  run.recipe.dropout = 0.1;
  run.layout.tp = tp;
  run.layout.sequence_parallel = sequence_parallel;
  run.layout.recompute = recompute;
  return run;
}

double kept_by_a_layer(const Case& run) {
  Stage stage;
  stage.dense_layers = 1;
  return stage_activations(run, stage).kept;
}

// Table 2 of Korthikanti et al. 2022, with s 2048, h 12288, a 96, t 8.
TEST(PlanActivations, AreThoseOfThePaper) {
  constexpr double s = 2048, h = 12288, a = 96, t = 8, sh = s * h;
  using spec::Recompute;
  EXPECT_DOUBLE_EQ(kept_by_a_layer(gpt3(1, false, Recompute::none)), sh * (34 + 5 * a * s / h));
  EXPECT_DOUBLE_EQ(kept_by_a_layer(gpt3(8, false, Recompute::none)),
                   sh * (10 + 24 / t + 5 * a * s / (h * t)));
  EXPECT_DOUBLE_EQ(kept_by_a_layer(gpt3(8, true, Recompute::none)), sh / t * (34 + 5 * a * s / h));
  EXPECT_DOUBLE_EQ(kept_by_a_layer(gpt3(8, false, Recompute::selective)), sh * (10 + 24 / t));
  EXPECT_DOUBLE_EQ(kept_by_a_layer(gpt3(8, true, Recompute::selective)), 34 * sh / t);
  EXPECT_DOUBLE_EQ(kept_by_a_layer(gpt3(8, false, Recompute::full)), 2 * sh);
}

TEST(PlanMemory, CountsChunksInFlightAsTheScheduleHasThem) {
  using spec::ScheduleKind;
  struct Shape {
    ScheduleKind kind;
    int64_t pp, v, micro_batches;
  };
  for (const Shape& shape :
       {Shape{ScheduleKind::gpipe, 4, 1, 8}, Shape{ScheduleKind::one_f_one_b, 4, 1, 8},
        Shape{ScheduleKind::one_f_one_b, 8, 1, 3}, Shape{ScheduleKind::interleaved, 4, 3, 8},
        Shape{ScheduleKind::interleaved, 2, 4, 16}, Shape{ScheduleKind::zb_h1, 4, 1, 12},
        Shape{ScheduleKind::zb_v, 4, 2, 12}}) {
    Layout layout;
    layout.pp = shape.pp;
    layout.v = shape.v;
    layout.schedule = shape.kind;
    const spec::Schedule schedule =
        spec::make_schedule(shape.kind, shape.pp, shape.v, shape.micro_batches);
    for (int64_t rank = 0; rank < shape.pp; ++rank) {
      EXPECT_EQ(chunks_in_flight(layout, rank, shape.micro_batches),
                static_cast<double>(spec::peak_in_flight(schedule, rank)))
          << to_string(layout) << " rank " << rank;
    }
  }
}

// 7.5 B parameters on 64 devices (Rajbhandari et al. 2020, figure 1), without the vocabulary's
// padding and with 16-bit gradients: bytes of a parameter by stage.
TEST(PlanMemory, DividesStatesAsZeroDoes) {
  Case run;
  run.model = *find_model("llama-2-7b");
  run.cluster = *find_cluster("a100-80g");
  run.recipe.gradient_bytes = 2;
  run.recipe.global_batch = 64;
  run.layout.dp = 64;
  const double parameters = static_cast<double>(count_parameters(run.model).total);
  const double expected[] = {16, 4 + 12.0 / 64, 2 + 14.0 / 64, 16.0 / 64};
  for (int64_t zero = 0; zero <= 3; ++zero) {
    run.layout.zero = zero;
    const Memory memory = memory_of_ranks(run).at(0);
    EXPECT_NEAR(memory.state() / parameters, expected[zero], 0.001) << zero;
    EXPECT_EQ(memory.gathered > 0, zero == 3);
  }
}

// A user's case: a sequence of 16,384 tokens and a vocabulary of 128,256 need 7.828 GiB for fp32
// logits alone.
TEST(PlanMemory, HasLogitsOnALineOfTheirOwn) {
  Case run;
  run.model = *find_model("llama-3-8b");
  run.cluster = *find_cluster("a100-80g");
  run.recipe.seq_len = 16384;
  run.recipe.global_batch = 1;
  run.stack.logit_bytes = 4;
  EXPECT_NEAR(memory_of_ranks(run).at(0).logits / (1 << 30), 7.828, 0.001);
}

// Layers of [1, 2, 2, 3]: the last stage has most, and that is the one to name.
TEST(PlanMemory, NamesTheWorstRank) {
  Case run;
  run.model = *find_model("llama-3-8b");
  run.model.dense.num_hidden_layers = 8;
  run.cluster = *find_cluster("a100-80g");
  run.recipe.global_batch = 64;
  run.layout.pp = 4;
  run.layout.layers_per_stage = {1, 2, 2, 3};
  run.layout.recompute = spec::Recompute::full;
  EXPECT_EQ(worst_rank(memory_of_ranks(run)), 3U);
}

TEST(PlanMemory, OfQloraIsAQuarterOfTheWeights) {
  Case run;
  run.model = *find_model("llama-2-7b");
  run.cluster = *find_cluster("a100-80g");
  run.recipe.global_batch = 1;
  run.recipe.fine_tune = FineTune::lora;
  const Memory lora = memory_of_ranks(run).at(0);
  run.recipe.fine_tune = FineTune::qlora;
  const Memory qlora = memory_of_ranks(run).at(0);
  EXPECT_NEAR(
      (qlora.weights - lora.weights) / static_cast<double>(count_parameters(run.model).total),
      4.127 / 8 - 2, 0.001);
  EXPECT_EQ(qlora.optimizer, lora.optimizer);
  EXPECT_LT(lora.optimizer, 1e9);
}

}  // namespace
}  // namespace tessera::plan
