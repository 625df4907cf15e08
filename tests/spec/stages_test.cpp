#include "spec/stages.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::spec {
namespace {

using Counts = std::vector<int64_t>;

RunConfig pipeline(const char* preset, int64_t num_ranks, int64_t virtual_stages = 1) {
  RunConfig config;
  config.model = resolved(find_model_preset(preset)->config);
  config.data.seq_len = 1024;
  config.parallelism.pipeline_parallel_degree = num_ranks;
  config.parallelism.virtual_stages = virtual_stages;
  return config;
}

Counts counts_of(const RunConfig& config) {
  Counts counts;
  int64_t first = 0;
  for (const StageLayers& stage : stage_layers(config)) {
    EXPECT_EQ(stage.first_layer, first);
    first += stage.num_layers;
    counts.push_back(stage.num_layers);
  }
  EXPECT_EQ(first, config.model.num_hidden_layers);
  return counts;
}

TEST(StageLayers, OfGpt2LeaveTheLastStageLess) {
  // A block is 17.3 MFLOPs a token forward, the head 77.2: 4.46 blocks.
  EXPECT_EQ(counts_of(pipeline("gpt2-124m", 1)), (Counts{12}));
  EXPECT_EQ(counts_of(pipeline("gpt2-124m", 2)), (Counts{8, 4}));        // 8 and 8.46
  EXPECT_EQ(counts_of(pipeline("gpt2-124m", 4)), (Counts{4, 4, 4, 0}));  // at most 4.46
  EXPECT_EQ(counts_of(pipeline("gpt2-124m", 2, 2)), (Counts{4, 4, 4, 0}));
}

TEST(StageLayers, AreEvenWhereTheHeadIsTheMostWhateverTheyAre) {
  RunConfig config = pipeline("gpt2-124m", 4);
  config.model.vocab_size = 1'000'000;
  config.model.num_hidden_layers = 11;
  EXPECT_EQ(counts_of(config), (Counts{4, 4, 3, 0}));
}

TEST(StageLayers, CountWhatIsRecomputed) {
  // With full recompute a block is 4 forwards and the head still 3: 3.35 blocks.
  RunConfig config = pipeline("gpt2-124m", 2);
  config.activation_checkpoint.mode = Recompute::full;
  config.model.num_hidden_layers = 13;
  EXPECT_EQ(counts_of(config), (Counts{8, 5}));  // 8 and 8.35
  config.activation_checkpoint.mode = Recompute::none;
  EXPECT_EQ(counts_of(config), (Counts{9, 4}));  // 9; 8 and 9.46 would be more
}

TEST(StageLayers, NeverLeaveAStageButTheLastWithoutABlock) {
  for (int64_t stages = 2; stages <= 9; ++stages) {
    for (int64_t layers = stages - 1; layers <= 24; ++layers) {
      RunConfig config = pipeline("gpt2-124m", stages);
      config.model.num_hidden_layers = layers;
      const Counts counts = counts_of(config);
      EXPECT_GE(*std::min_element(counts.begin(), counts.end() - 1), 1) << layers;
      EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end(), std::greater<>())) << layers;
    }
  }
}

TEST(StageLayers, AreNoMoreExpensiveThanAnyOtherCut) {
  // Against all cuts of up to 9 blocks into 3 stages, the head worth 4.46 of them.
  for (int64_t layers = 2; layers <= 9; ++layers) {
    RunConfig config = pipeline("gpt2-124m", 3);
    config.model.num_hidden_layers = layers;
    const auto most = [](int64_t a, int64_t b, int64_t c) {
      return std::max(static_cast<double>(std::max(a, b)), static_cast<double>(c) + 4.46);
    };
    double least = 1e9;
    for (int64_t a = 1; a < layers; ++a) {
      for (int64_t b = 1; a + b <= layers; ++b) least = std::min(least, most(a, b, layers - a - b));
    }
    const Counts counts = counts_of(config);
    EXPECT_DOUBLE_EQ(most(counts[0], counts[1], counts[2]), least) << layers;
  }
}

TEST(StageLayers, AreThoseThatAreGiven) {
  RunConfig config = pipeline("gpt2-124m", 3);
  config.parallelism.layers_per_stage = {2, 9, 1};
  EXPECT_EQ(counts_of(config), (Counts{2, 9, 1}));
}

}  // namespace
}  // namespace tessera::spec
