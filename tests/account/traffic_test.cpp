#include "account/traffic.h"

#include <gtest/gtest.h>

#include "account/flops.h"

namespace tessera::account {
namespace {

Message message(Collective collective, int64_t elements, int64_t element_bytes) {
  Message result;
  result.collective = collective;
  result.elements = elements;
  result.element_bytes = element_bytes;
  return result;
}

TEST(BytesSent, OfAnAllReduceThatDividesAreTwoTimesAllButOneShare) {
  // 2 (N − 1)/N · S: 8 ranks, 800 bytes.
  const Message all_reduce = message(Collective::all_reduce, 200, 4);
  for (int64_t rank = 0; rank < 8; ++rank) EXPECT_EQ(bytes_sent(all_reduce, 8, rank), 1400);
}

TEST(BytesSent, OfTheLlama7bGradientsOverEightReplicasAre23Point6GB) {
  const Message gradients = message(Collective::all_reduce, 6'738'149'376, 2);
  EXPECT_NEAR(static_cast<double>(bytes_sent(gradients, 8, 3)), 23.6e9, 0.05e9);
}

TEST(BytesSent, OfUnevenChunksAddUpToWhatAllRanksNeed) {
  // Over all ranks each element goes N − 1 times towards its owner and N − 1 times back.
  for (const int64_t elements : {0, 1, 2, 5, 7, 100, 101}) {
    for (const int64_t ranks : {2, 3, 5, 7}) {
      int64_t sum = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        sum += bytes_sent(message(Collective::all_reduce, elements, 1), ranks, rank);
      }
      EXPECT_EQ(sum, 2 * (ranks - 1) * elements) << elements << " over " << ranks;
    }
  }
}

TEST(BytesSent, OfAnElementFewerThanRanksDependOnWhoOwnsIt) {
  const Message one = message(Collective::all_reduce, 1, 8);
  EXPECT_EQ(bytes_sent(one, 4, 0), 24);  // gives its sum to three
  EXPECT_EQ(bytes_sent(one, 4, 3), 8);   // gives its part to rank 0
}

TEST(BytesSent, OfTheOtherCollectivesFollowTheirContracts) {
  EXPECT_EQ(bytes_sent(message(Collective::reduce_scatter, 12, 4), 4, 1), 36);
  EXPECT_EQ(bytes_sent(message(Collective::all_gather, 3, 4), 4, 1), 36);
  EXPECT_EQ(bytes_sent(message(Collective::broadcast, 3, 4), 4, 0), 36);
  EXPECT_EQ(bytes_sent(message(Collective::broadcast, 3, 4), 4, 2), 0);
}

TEST(BytesSent, ByAGroupOfOneAreNone) {
  EXPECT_EQ(bytes_sent(message(Collective::all_reduce, 100, 4), 1, 0), 0);
}

StepShape shape_of(int64_t stage, int64_t shards, int64_t replicas, int64_t gradient_bytes) {
  StepShape shape;
  shape.sharding = {stage, shards, replicas};
  shape.weight_bytes = 2;
  shape.gradient_bytes = gradient_bytes;
  shape.passes = whole_passes(1);
  return shape;
}

int64_t gpt2_bytes(const StepShape& shape) {
  const spec::ModelConfig config = spec::find_model_preset("gpt2-124m")->config;
  return step_traffic(parameter_table(config), shape, 0).total();
}

TEST(StepTraffic, OfDataParallelismIsTheGradientsBothWays) {
  // Two ranks send half of every gradient each way: S, 4 bytes a parameter.
  EXPECT_EQ(gpt2_bytes(shape_of(0, 1, 2, 4)), 4 * int64_t{124'439'808});
}

TEST(StepTraffic, OfZero1And2IsDataParallelismsWithBf16Gradients) {
  for (const int64_t ranks : {2, 3, 4, 8}) {
    const int64_t data_parallel = gpt2_bytes(shape_of(0, 1, ranks, 2));
    for (const int64_t stage : {1, 2}) {
      // All units of this model divide by 2, 3, 4 and 8 but for one, of 2 · 768 elements.
      EXPECT_EQ(gpt2_bytes(shape_of(stage, ranks, 1, 2)), data_parallel) << stage << " " << ranks;
    }
  }
}

TEST(StepTraffic, OfZero3IsOneAndAHalfTimesThatLessASecondGatherOfTheFinalNorm) {
  const int64_t data_parallel = gpt2_bytes(shape_of(0, 1, 4, 2));
  // (N − 1)/N of 2 bytes for each of its 1,536 elements.
  const int64_t once = 3 * 1536 * 2 / 4;
  EXPECT_EQ(gpt2_bytes(shape_of(3, 4, 1, 2)), data_parallel * 3 / 2 - once);
}

TEST(StepTraffic, OfAccumulationRepeatsTheScatterFromStage2On) {
  StepShape shape = shape_of(1, 2, 1, 4);
  const int64_t once = gpt2_bytes(shape);
  shape.passes = whole_passes(3);
  EXPECT_EQ(gpt2_bytes(shape), once);
  shape.sharding.stage = 2;
  // Two more scatters of half of 4 bytes a parameter.
  EXPECT_EQ(gpt2_bytes(shape), once + 2 * 2 * int64_t{124'439'808});
}

TEST(StepTraffic, OfHybridShardingSumsAShardOverItsReplicas) {
  const StepShape shape = shape_of(1, 2, 2, 2);
  const spec::ModelConfig config = spec::find_model_preset("gpt2-124m")->config;
  const StepTraffic traffic = step_traffic(parameter_table(config), shape, 3);
  EXPECT_EQ(traffic.reduce_scatter, 124'439'808);
  EXPECT_EQ(traffic.all_gather, 124'439'808);
  EXPECT_EQ(traffic.all_reduce, 124'439'808);  // of half the elements, twice half of 2 bytes
}

TEST(MatmulParameters, OfGpt2LeaveOutWhatIsNoProduct) {
  // 124,439,808 less 1,024 · 768 positions, 12 · 13 · 768 biases and norms of blocks and MLPs, and
  // the final norm: the tied embedding counts once, as the head's product.
  const spec::ModelConfig config = spec::find_model_preset("gpt2-124m")->config;
  int64_t vectors = 0;
  for (const Parameter& parameter : parameter_table(config).parameters) {
    if (parameter.shape.dims() == 1) vectors += parameter.elements();
  }
  EXPECT_EQ(matmul_parameters(config), 124'439'808 - 1024 * 768 - vectors);
}

TEST(TrainFlopsPerToken, AreSixAWeightAndTwelveForAttention) {
  const spec::ModelConfig config = spec::find_model_preset("gpt2-124m")->config;
  const double expected = 6.0 * 123'532'032 + 12.0 * 12 * 768 * 1024;
  EXPECT_DOUBLE_EQ(train_flops_per_token(config, 1024), expected);
  EXPECT_DOUBLE_EQ(forward_flops_per_token(config, 1024), expected / 3);
}

TEST(MatmulParameters, CountGroupedHeadsAndAWidthOfTheirOwn) {
  spec::ModelConfig config;
  config.hidden_size = 5120;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.intermediate_size = 1;
  config.vocab_size = 1;
  const int64_t attention = 4096 * 5120 + 2 * 1024 * 5120 + 5120 * 4096;
  EXPECT_EQ(matmul_parameters(config), attention + 2 * 5120 + 5120);
}

}  // namespace
}  // namespace tessera::account
