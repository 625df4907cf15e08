#include "plan/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Case run_of(const char* model) {
  Case run;
  run.model = *find_model(model);
  run.cluster = *find_cluster("h100-80g");
  run.stack = find_stack("generic");
  run.recipe.global_batch = 16;
  run.recipe.seq_len = 4096;
  return run;
}

/// The text of the warning of that kind; empty: there is none.
std::string warned(const Case& run, WarningKind kind, const TrainingPlan& training = {}) {
  for (const Warning& warning : warnings(run, estimate(run, default_constants()), training)) {
    if (warning.kind == kind) return warning.text;
  }
  return {};
}

TEST(Warnings, NameTensorParallelismThatLeavesItsNode) {
  Case run = run_of("llama-3-70b");
  run.layout.tp = 8;
  run.layout.pp = 2;
  EXPECT_EQ(warned(run, WarningKind::tensor_across_nodes), "");
  run.layout.tp = 16;
  run.layout.pp = 1;
  EXPECT_THAT(warned(run, WarningKind::tensor_across_nodes),
              AllOf(HasSubstr("tp 16 spans 2 nodes of 8"), HasSubstr("50 GB/s instead of 450 GB/s"),
                    HasSubstr("keep tp at 8 or less")));
}

TEST(Warnings, NameTooFewMicroBatchesWithTheirBubble) {
  Case run = run_of("llama-2-7b");
  run.layout.pp = 4;
  run.recipe.global_batch = 4;
  // Four stages: 3/7 of the step with 4 micro-batches, 3/19 with 16.
  EXPECT_THAT(warned(run, WarningKind::few_micro_batches),
              AllOf(HasSubstr("idle 42.9 %"), HasSubstr("16 would idle 15.8 %")));
  run.recipe.global_batch = 16;
  EXPECT_EQ(warned(run, WarningKind::few_micro_batches), "");
}

TEST(Warnings, CountSixteenBytesWhereTwelveWouldFit) {
  Case run = run_of("llama-2-7b");  // 80.9 GB of optimizer, 107.8 of state
  run.recipe.gradient_bytes = 2;
  EXPECT_THAT(warned(run, WarningKind::optimizer_alone),
              AllOf(HasSubstr("12 bytes a parameter"), HasSubstr("16 bytes a parameter"),
                    HasSubstr("108 GB of state")));
  run.layout.dp = 8;
  run.layout.zero = 1;
  EXPECT_EQ(warned(run, WarningKind::optimizer_alone), "");
}

TEST(Warnings, NameShardsThatAreNotEven) {
  Case run = run_of("llama-2-7b");
  run.layout.dp = 8;
  run.layout.zero = 3;
  run.recipe.global_batch = 60;
  EXPECT_THAT(warned(run, WarningKind::uneven_shards),
              AllOf(HasSubstr("8 on some and 7 on others"), HasSubstr("56 or 64")));
  run.recipe.global_batch = 64;
  EXPECT_EQ(warned(run, WarningKind::uneven_shards), "");
}

TEST(Warnings, RememberTheLearningRateOfABatchThatGrew) {
  Case run = run_of("llama-2-7b");
  run.layout.dp = 64;
  run.layout.zero = 1;
  run.recipe.global_batch = 1024;
  EXPECT_THAT(warned(run, WarningKind::batch_grew, {0, 0, 16}),
              AllOf(HasSubstr("64 times the 16"), HasSubstr("8 times (Malladi")));
  EXPECT_EQ(warned(run, WarningKind::batch_grew, {0, 0, 1024}), "");
  EXPECT_EQ(warned(run, WarningKind::batch_grew), "");
}

TEST(Warnings, NameABatchBeyondTheCriticalOne) {
  Case run = run_of("llama-2-7b");
  run.layout.dp = 64;
  run.layout.zero = 1;
  run.recipe.global_batch = 1024;  // 4.2 M tokens, as Llama 2 was trained with
  EXPECT_EQ(warned(run, WarningKind::beyond_critical_batch, {0, 2e12, 0}), "");
  run.recipe.global_batch = 8192;
  EXPECT_THAT(warned(run, WarningKind::beyond_critical_batch, {0, 2e12, 0}),
              HasSubstr("3.36e+07 tokens is beyond the critical batch"));
}

TEST(Warnings, TakeTheCriticalBatchFromItsPowerLaws) {
  // Kaplan et al. 2020: a model of 1.5e9 parameters has a loss of about 2.3 nats with data without
  // end, and B = 2e8 / L^(1/0.21).
  const CriticalBatch small = critical_batch(1.5e9, 0);
  EXPECT_NEAR(small.loss, 2.3, 0.05);
  EXPECT_NEAR(small.tokens, 3.8e6, 0.4e6);
  const CriticalBatch large = critical_batch(70e9, 2e12);
  EXPECT_LT(large.loss, small.loss);
  EXPECT_GT(large.tokens, small.tokens);
}

TEST(Warnings, GiveLogitsALineOfTheirOwn) {
  Case run = run_of("llama-3-8b");
  run.recipe.seq_len = 16384;
  run.recipe.fine_tune = FineTune::qlora;
  EXPECT_THAT(warned(run, WarningKind::large_logits),
              AllOf(HasSubstr("16384 tokens"), HasSubstr("128256 rows"), HasSubstr("7.83 GiB")));
  run.recipe.seq_len = 512;
  EXPECT_EQ(warned(run, WarningKind::large_logits), "");
}

TEST(Warnings, CountWhatZero3Gathers) {
  Case run = run_of("llama-3-70b");
  run.layout.dp = 512;
  run.layout.zero = 3;
  run.recipe.global_batch = 2048;
  EXPECT_THAT(warned(run, WarningKind::gathered_weights),
              AllOf(HasSubstr("of gathered layers"), HasSubstr("each of 4 micro-batches")));
  run.layout.zero = 1;
  EXPECT_EQ(warned(run, WarningKind::gathered_weights), "");
}

TEST(Warnings, NameTheWorstRankOfUnevenStages) {
  Case run = run_of("llama-2-7b");
  run.layout.pp = 4;
  run.recipe.global_batch = 32;
  EXPECT_EQ(warned(run, WarningKind::uneven_stages), "");
  run.layout.layers_per_stage = {4, 4, 4, 20};
  EXPECT_THAT(
      warned(run, WarningKind::uneven_stages),
      AllOf(HasSubstr("pipeline rank 3, with 20 of 32 layers"), HasSubstr("more than the mean")));
}

TEST(Warnings, NameSequencesBeyondThePositions) {
  Case run = run_of("llama-2-7b");
  EXPECT_EQ(warned(run, WarningKind::long_sequences), "");
  run.recipe.seq_len = 8192;
  EXPECT_THAT(warned(run, WarningKind::long_sequences), HasSubstr("longer than the 4096"));
}

TEST(Warnings, NameTheFormatThatADeviceComputesInInstead) {
  Case run = run_of("llama-2-7b");
  run.layout.dp = 8;
  run.layout.zero = 3;
  run.recipe.format = Format::fp8;
  EXPECT_EQ(warned(run, WarningKind::missing_format), "");
  run.recipe.format = Format::fp4;
  EXPECT_THAT(warned(run, WarningKind::missing_format),
              AllOf(HasSubstr("H100-80GB has no products in fp4"),
                    HasSubstr("takes them in fp8, at 1978.9 TFLOP/s")));
  run.cluster = *find_cluster("a100-80g");
  EXPECT_THAT(warned(run, WarningKind::missing_format), HasSubstr("in bf16, at 312 TFLOP/s"));
  run.recipe.format = Format::fp8;
  EXPECT_THAT(warned(run, WarningKind::missing_format),
              AllOf(HasSubstr("no products in fp8"), HasSubstr("--precision bf16")));
  run.cluster = *find_cluster("b200");
  run.recipe.format = Format::fp4;
  EXPECT_EQ(warned(run, WarningKind::missing_format), "");
}

TEST(Warnings, SayThatVoltaTrainsInFp16WithLossScaling) {
  Case run = run_of("llama-2-7b");
  run.cluster = *find_cluster("v100-32g");
  run.layout.dp = 64;
  run.layout.zero = 3;
  run.recipe.global_batch = 64;
  EXPECT_THAT(warned(run, WarningKind::missing_format),
              AllOf(HasSubstr("V100-32GB has no products in bf16"),
                    HasSubstr("in fp16, at 125 TFLOP/s"), HasSubstr("loss scaling")));
  run.recipe.format = Format::fp8;
  EXPECT_THAT(warned(run, WarningKind::missing_format),
              AllOf(HasSubstr("no products in fp8"), HasSubstr("loss scaling")));
  run.recipe.format = Format::fp16;
  EXPECT_EQ(warned(run, WarningKind::missing_format), "");
}

TEST(Warnings, OfTheTextbookNameTheOneRateThatItHas) {
  IdealCase given;
  given.run = run_of("llama-2-7b");
  given.run.recipe.format = Format::fp4;
  const auto text = [&] {
    for (const Warning& warning : warnings(given, ideal(given), {})) {
      if (warning.kind == WarningKind::missing_format) return warning.text;
    }
    return std::string();
  };
  EXPECT_THAT(text(), HasSubstr("in bf16, at 989.4 TFLOP/s"));
  given.flops_per_device = 150e12;
  EXPECT_THAT(text(), HasSubstr("at 150 TFLOP/s"));
  given.run.recipe.format = Format::bf16;
  EXPECT_EQ(text(), "");
}

TEST(Warnings, OfTheTextbookNeedNoShape) {
  IdealCase given;
  given.run.cluster = *find_cluster("h100-80g");
  given.run.stack = find_stack("generic");
  given.run.recipe.gradient_bytes = 2;
  given.run.recipe.global_batch = 4;
  given.run.layout.pp = 4;
  given.run.layout.tp = 16;
  given.parameters = 400e9;
  std::vector<WarningKind> kinds;
  for (const Warning& warning : warnings(given, ideal(given), {})) kinds.push_back(warning.kind);
  EXPECT_THAT(kinds,
              testing::ElementsAre(WarningKind::optimizer_alone, WarningKind::tensor_across_nodes,
                                   WarningKind::few_micro_batches));
}

}  // namespace
}  // namespace tessera::plan
