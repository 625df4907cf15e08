#include "spec/run_config.h"

#include <gtest/gtest.h>

#include "spec/layout.h"

namespace tessera::spec {
namespace {

TEST(BatchShare, CoversTheGlobalBatchInOrderForEveryNumberOfRanks) {
  for (const int64_t global : {1, 2, 7, 8, 13, 64}) {
    for (int64_t ranks = 1; ranks <= global; ++ranks) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const BatchShare share = batch_share(global, ranks, rank);
        EXPECT_EQ(share.first, next) << global << " over " << ranks;
        next += share.count;
      }
      EXPECT_EQ(next, global);
    }
  }
}

TEST(BatchShare, DiffersByAtMostOneSample) {
  for (int64_t ranks = 1; ranks <= 9; ++ranks) {
    const int64_t largest = batch_share(23, ranks, 0).count;
    const int64_t smallest = batch_share(23, ranks, ranks - 1).count;
    EXPECT_LE(largest - smallest, 1);
  }
}

TEST(MicroBatchSizeFor, MakesThatManyMicroBatches) {
  EXPECT_EQ(micro_batch_size_for(8, 2, 1), 4);
  EXPECT_EQ(micro_batch_size_for(8, 2, 2), 2);
  EXPECT_EQ(micro_batch_size_for(8, 1, 4), 2);
  EXPECT_EQ(micro_batch_size_for(7, 2, 2), 2);
}

TEST(WithLayout, AccumulatesAtMostAsOftenAsSaid) {
  RunConfig config;
  config.training.global_batch_size = 10;
  Layout layout;
  layout.dp = 2;
  EXPECT_EQ(with_layout(config, layout).training.micro_batch_size, 5);
  layout.accumulate = 4;  // of a share of 5: 2 + 2 + 1
  EXPECT_EQ(with_layout(config, layout).training.micro_batch_size, 2);
  layout.accumulate = 9;
  EXPECT_EQ(with_layout(config, layout).training.micro_batch_size, 1);
}

TEST(WithLayout, NeverHoldsMoreThanTheShare) {
  RunConfig config;
  config.training.global_batch_size = 10;
  Layout layout;
  layout.dp = 2;
  layout.micro_batch = 3;
  EXPECT_EQ(with_layout(config, layout).training.micro_batch_size, 3);
  layout.micro_batch = 8;
  EXPECT_EQ(with_layout(config, layout).training.micro_batch_size, 5);
}

TEST(WithLayout, KeepsTheShardingThatItDoesNotName) {
  RunConfig config;
  config.training.global_batch_size = 12;
  config.parallelism.zero_stage = 3;
  config.parallelism.shard_degree = 2;
  config.parallelism.prefetch = 2;
  Layout layout;
  layout.dp = 4;
  EXPECT_EQ(to_string(completed(layout, config)), "dp=4,zero=3,shard=2");
  EXPECT_EQ(with_layout(config, layout).parallelism.shard_degree, 2);
  EXPECT_EQ(with_layout(config, layout).parallelism.prefetch, 2);
  layout.dp = 3;  // which two do not divide
  EXPECT_EQ(to_string(completed(layout, config)), "dp=3,zero=3");
  EXPECT_EQ(with_layout(config, layout).parallelism.shard_degree, -1);
  layout.zero = 1;
  EXPECT_EQ(to_string(completed(layout, config)), "dp=3,zero=1");
  EXPECT_TRUE(validate(with_layout(config, layout), 3).size() <= 1);  // of no data.path alone
  layout.zero = 0;
  EXPECT_EQ(with_layout(config, layout).parallelism.zero_stage, 0);
  layout.zero = -1;
  layout.dp = 1;  // the reference, which shares nothing
  EXPECT_EQ(to_string(completed(layout, config)), "dp=1");
}

TEST(LayoutOf, SaysHowARunIsSharded) {
  RunConfig config;
  config.parallelism.data_parallel_degree = 4;
  EXPECT_EQ(to_string(layout_of(config)), "dp=4");
  config.parallelism.zero_stage = 2;
  EXPECT_EQ(to_string(layout_of(config)), "dp=4,zero=2");
  config.parallelism.shard_degree = 2;
  EXPECT_EQ(to_string(layout_of(config)), "dp=4,zero=2,shard=2");
}

TEST(Refitted, TakesTheNextLargerShardGroupsThatDivideTheRanks) {
  ParallelismConfig parallelism;
  parallelism.zero_stage = 3;
  const auto shard = [&](int64_t degree, int64_t ranks) {
    parallelism.shard_degree = degree;
    return refitted(parallelism, ranks).shard_degree;
  };
  EXPECT_EQ(shard(2, 4), 2);
  EXPECT_EQ(shard(2, 3), -1);  // all three
  EXPECT_EQ(shard(4, 6), -1);
  EXPECT_EQ(shard(2, 9), 3);
  EXPECT_EQ(shard(4, 2), -1);
  EXPECT_EQ(shard(4, 1), -1);
  EXPECT_EQ(shard(-1, 5), -1);
  parallelism.zero_stage = 0;
  EXPECT_EQ(shard(2, 3), 2);  // the validator's
}

TEST(DtypeOf, IsTheConfiguredOne) {
  EXPECT_EQ(dtype_of(Precision::bf16), core::DType::bf16);
  EXPECT_EQ(dtype_of(Precision::fp32), core::DType::f32);
  EXPECT_EQ(dtype_of(GradientDtype::bf16), core::DType::bf16);
  EXPECT_EQ(dtype_of(GradientDtype::fp32), core::DType::f32);
}

TEST(Resolved, FillsTheGlobalBatchFromTheMicroBatch) {
  RunConfig config;
  config.training.micro_batch_size = 4;
  const RunConfig full = resolved(config, 3);
  EXPECT_EQ(full.training.global_batch_size, 12);
  EXPECT_EQ(full.training.micro_batch_size, 4);
  EXPECT_EQ(full.parallelism.data_parallel_degree, 3);
}

TEST(Resolved, FillsTheMicroBatchFromTheGlobalBatch) {
  RunConfig config;
  config.training.global_batch_size = 10;
  EXPECT_EQ(resolved(config, 4).training.micro_batch_size, 3);
}

TEST(Resolved, LeavesNoMicroBatchLargerThanTheLargestShare) {
  RunConfig config;
  config.training.global_batch_size = 8;
  config.training.micro_batch_size = 8;
  EXPECT_EQ(resolved(config, 4).training.micro_batch_size, 2);
}

TEST(Resolved, ChoosesBothBatchSizesWhenNeitherIsGiven) {
  const RunConfig full = resolved(RunConfig{}, 2);
  EXPECT_EQ(full.training.micro_batch_size, 8);
  EXPECT_EQ(full.training.global_batch_size, 16);
}

TEST(Resolved, FillsTheModelsDerivedSizesAndLeavesTheVocabulary) {
  const ModelConfig model = resolved(RunConfig{}, 1).model;
  EXPECT_EQ(model.intermediate_size, 1024);
  EXPECT_EQ(model.num_key_value_heads, 4);
  EXPECT_EQ(model.head_dim, 64);
  EXPECT_EQ(model.vocab_size, 0);
}

TEST(Resolved, KeepsWhatIsGiven) {
  ModelConfig model;
  model.intermediate_size = 100;
  model.num_key_value_heads = 2;
  model.head_dim = 24;
  EXPECT_EQ(resolved(model), model);
}

TEST(Resolved, OfAResolvedConfigIsTheSame) {
  const RunConfig once = resolved(RunConfig{}, 3);
  const RunConfig twice = resolved(once, 3);
  EXPECT_EQ(once.model, twice.model);
  EXPECT_EQ(once.training.micro_batch_size, twice.training.micro_batch_size);
  EXPECT_EQ(once.training.global_batch_size, twice.training.global_batch_size);
}

}  // namespace
}  // namespace tessera::spec
