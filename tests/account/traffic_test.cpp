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

TEST(DataParallelBytes, AreTheGradientsAndTheSmallMessages) {
  spec::ModelConfig config = spec::find_model_preset("gpt2-124m")->config;
  const ParameterTable table = parameter_table(config);
  // Two ranks send half of every gradient each way: about S each.
  const int64_t gradients = data_parallel_bytes(table, 4, 2, 0, {});
  EXPECT_NEAR(static_cast<double>(gradients), 4.0 * 124'439'808, 8.0 * 14);
  const std::vector<Message> control = {message(Collective::all_reduce, 2, 8),
                                        message(Collective::all_gather, 1, 8)};
  EXPECT_EQ(data_parallel_bytes(table, 4, 2, 0, control) - gradients, 16 + 8);
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
