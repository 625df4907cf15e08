#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "spec/run_config.h"

namespace tessera::spec {
namespace {

using testing::HasSubstr;

RunConfig good() {
  RunConfig config;
  config.data.path = {"text.txt"};
  return config;
}

/// The one violation of a config, or a failure.
Violation only(const RunConfig& config, int64_t world_size = 0) {
  const std::vector<Violation> violations = validate(config, world_size);
  EXPECT_EQ(violations.size(), 1u);
  return violations.empty() ? Violation{} : violations.front();
}

TEST(Validate, FindsNothingWrongWithTheDefaultsAndAPath) {
  EXPECT_TRUE(validate(good(), 0).empty());
  EXPECT_TRUE(validate(good(), 4).empty());
}

TEST(Validate, FindsNothingWrongWithAnyPreset) {
  for (const ModelPreset& preset : model_presets()) {
    RunConfig config = good();
    config.model = preset.config;
    EXPECT_TRUE(validate(config, 2).empty()) << preset.name;
  }
}

RunConfig good_llama() {
  RunConfig config = good();
  config.model = find_model_preset("llama-1m")->config;
  return config;
}

TEST(Validate, RefusesAnOddHeadDimOnlyForRotaryPositions) {
  RunConfig config = good_llama();
  config.model.head_dim = 33;
  EXPECT_EQ(only(config).key, "model.head_dim");
  EXPECT_EQ(only(config).suggest, "34");
  config = good();
  config.model.head_dim = 33;
  EXPECT_TRUE(validate(config, 0).empty());
}

TEST(Validate, RefusesKeysOfRotaryPositionsThatNothingReads) {
  RunConfig config = good();
  config.model.rope_theta = 500000;
  EXPECT_EQ(only(config).key, "model.rope_theta");
  config = good();
  config.model.qk_norm = true;
  EXPECT_EQ(only(config).key, "model.qk_norm");
  config = good();
  config.model.rope_scaling.rope_type = RopeType::linear;
  EXPECT_EQ(only(config).key, "model.rope_scaling.rope_type");
  config = good();
  config.model.rope_scaling.factor = 8;
  EXPECT_EQ(only(config).key, "model.rope_scaling.factor");
  config = good_llama();
  config.model.rope_scaling.factor = 8;
  EXPECT_EQ(only(config).key, "model.rope_scaling.factor");
  config.model.rope_scaling.rope_type = RopeType::linear;
  config.model.rope_scaling.beta_fast = 64;
  EXPECT_EQ(only(config).key, "model.rope_scaling.beta_fast");
}

TEST(Validate, RefusesAdaptersBesideWhatIsNoProduct) {
  RunConfig config = good();
  config.lora.rank = 8;
  EXPECT_TRUE(validate(config, 0).empty());
  config.lora.targets = {"q_proj", "gate_proj"};
  EXPECT_EQ(only(config).key, "lora.targets");
  EXPECT_THAT(only(config).why, HasSubstr("gate_proj"));
  config.model = good_llama().model;
  EXPECT_TRUE(validate(config, 0).empty());
  config.lora.targets = {"qproj"};
  EXPECT_EQ(only(config).suggest, "q_proj");
  config.lora.targets = {};
  EXPECT_EQ(only(config).key, "lora.targets");
  config.lora.targets = {"q_proj"};
  config.lora.rank = 100'000;
  EXPECT_EQ(only(config).key, "lora.rank");
}

TEST(Validate, RefusesKeysOfAdaptersThatAreNotThere) {
  RunConfig config = good();
  config.lora.alpha = 16;
  EXPECT_EQ(only(config).key, "lora.alpha");
  config = good();
  config.lora.targets = {"o_proj"};
  EXPECT_EQ(only(config).key, "lora.targets");
}

TEST(Validate, RefusesALlama3RampOfNoWidth) {
  RunConfig config = good_llama();
  config.model.rope_scaling.rope_type = RopeType::llama3;
  config.model.rope_scaling.low_freq_factor = 4;
  EXPECT_EQ(only(config).key, "model.rope_scaling.high_freq_factor");
}

TEST(Validate, RefusesYarnOverPairsThatAllTurnAlike) {
  RunConfig config = good_llama();
  config.model.rope_scaling.rope_type = RopeType::yarn;
  config.model.rope_theta = 1;
  EXPECT_EQ(only(config).key, "model.rope_theta");
}

TEST(Validate, LetsDynamicScalingAloneReachBeyondTheModelsPositions) {
  RunConfig config = good_llama();
  config.data.seq_len = 2048;
  EXPECT_EQ(only(config).key, "data.seq_len");
  config.model.rope_scaling.rope_type = RopeType::linear;
  config.model.rope_scaling.factor = 2;
  EXPECT_EQ(only(config).key, "data.seq_len");
  config.model.rope_scaling.rope_type = RopeType::dynamic;
  EXPECT_TRUE(validate(config, 0).empty());
}

TEST(Validate, RefusesSizesWhoseProductNoMachineHolds) {
  RunConfig config = good();
  config.model.max_position_embeddings = (1 << 24) - 1;
  config.data.seq_len = (1 << 24) - 1;
  config.training.micro_batch_size = 1 << 30;
  EXPECT_EQ(only(config).key, "training.micro_batch_size");
  config = good();
  config.model.hidden_size = 1 << 20;
  config.model.num_attention_heads = 1 << 10;
  config.model.num_hidden_layers = 10'000;
  EXPECT_EQ(only(config).key, "model.hidden_size");
  config = good();
  config.training.steps = 1'000'000'000'000;
  config.training.global_batch_size = 1 << 20;
  config.training.micro_batch_size = 1;
  EXPECT_EQ(only(config).key, "training.steps");
}

TEST(Validate, KeepsSingleSizesToWhatTheirPlacesHold) {
  RunConfig config = good();
  config.model.num_attention_heads = 1 << 16;
  config.model.head_dim = 1;
  EXPECT_EQ(only(config).key, "model.num_attention_heads");
  config = good();
  config.model.max_position_embeddings = 1 << 24;
  EXPECT_EQ(only(config).key, "model.max_position_embeddings");
  config = good();
  config.comm.timeout_seconds = 1e7;
  EXPECT_EQ(only(config).key, "comm.timeout_seconds");
  config = good();
  config.validation.steps = int64_t{1} << 40;
  EXPECT_EQ(only(config).key, "validation.steps");
}

TEST(Validate, ListsFiveMistakesAtOnce) {
  RunConfig config = good();
  config.model.num_attention_heads = 7;
  config.training.steps = 0;
  config.data.seq_len = 4096;
  config.optimizer.beta2 = 1;
  config.lr_scheduler.warmup_steps = -3;
  std::vector<std::string> keys;
  for (const Violation& violation : validate(config, 1)) keys.push_back(violation.key);
  EXPECT_THAT(keys, testing::UnorderedElementsAre("model.num_attention_heads", "training.steps",
                                                  "data.seq_len", "optimizer.beta2",
                                                  "lr_scheduler.warmup_steps"));
}

TEST(Validate, OffersTheHeadCountsOnBothSides) {
  RunConfig config = good();
  config.model.hidden_size = 768;
  config.model.num_attention_heads = 10;
  const Violation violation = only(config);
  EXPECT_EQ(violation.key, "model.num_attention_heads");
  EXPECT_EQ(violation.value, "10");
  EXPECT_EQ(violation.suggest, "8 or 12");
}

TEST(Validate, LetsHeadsNotDivideTheWidthWhenTheHeadsWidthIsGiven) {
  RunConfig config = good();
  config.model.hidden_size = 1792;
  config.model.num_attention_heads = 24;
  EXPECT_EQ(validate(config, 1).size(), 1u);
  config.model.head_dim = 128;
  EXPECT_TRUE(validate(config, 1).empty());
}

TEST(Validate, WantsKeyValueHeadsToDivideTheHeads) {
  RunConfig config = good();
  config.model.hidden_size = 768;
  config.model.num_attention_heads = 12;
  config.model.num_key_value_heads = 5;
  EXPECT_EQ(only(config).suggest, "4 or 6");
}

TEST(Validate, RefusesSequencesBeyondTheModelsPositions) {
  RunConfig config = good();
  config.data.seq_len = 1025;
  const Violation violation = only(config);
  EXPECT_EQ(violation.key, "data.seq_len");
  EXPECT_THAT(violation.why, HasSubstr("1024"));
  EXPECT_THAT(violation.suggest, HasSubstr("1024"));
}

TEST(Validate, RefusesMoreRanksThanSamples) {
  RunConfig config = good();
  config.training.global_batch_size = 4;
  EXPECT_TRUE(validate(config, 4).empty());
  const Violation violation = only(config, 8);
  EXPECT_EQ(violation.key, "training.global_batch_size");
  EXPECT_EQ(violation.suggest, "8 or more, or at most 4 ranks");
}

TEST(Validate, TakesAGlobalBatchThatDoesNotDivide) {
  RunConfig config = good();
  config.training.global_batch_size = 13;
  config.training.micro_batch_size = 3;
  for (int64_t world = 1; world <= 13; ++world) EXPECT_TRUE(validate(config, world).empty());
}

TEST(Validate, RefusesADegreeThatIsNotTheWorld) {
  RunConfig config = good();
  config.parallelism.data_parallel_degree = 3;
  EXPECT_TRUE(validate(config, 3).empty());
  EXPECT_TRUE(validate(config, 0).empty());
  EXPECT_EQ(only(config, 2).suggest, "2 or -1");
}

TEST(Validate, RefusesAMicroBatchThatNoRankCouldFill) {
  RunConfig config = good();
  config.training.global_batch_size = 4;
  config.training.micro_batch_size = 5;
  EXPECT_EQ(only(config).key, "training.micro_batch_size");
}

TEST(Validate, SaysWhenThereIsNoData) {
  const Violation violation = only(RunConfig{});
  EXPECT_EQ(violation.key, "data.path");
  EXPECT_THAT(violation.why, HasSubstr("missing"));
}

TEST(Validate, RefusesNumbersThatAreNone) {
  RunConfig config = good();
  config.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(only(config).key, "optimizer.lr");
  config.optimizer.lr = std::numeric_limits<double>::infinity();
  EXPECT_EQ(only(config).key, "optimizer.lr");
}

TEST(Validate, HoldsEndsOfIntervalsOpenOrClosedAsDocumented) {
  RunConfig config = good();
  config.model.dropout = 0;
  config.lr_scheduler.min_lr_factor = 1;
  config.optimizer.beta1 = 0;
  EXPECT_TRUE(validate(config, 1).empty());
  config.model.dropout = 1;
  EXPECT_EQ(only(config).key, "model.dropout");
  config.model.dropout = 0;
  config.optimizer.eps = 0;
  EXPECT_EQ(only(config).key, "optimizer.eps");
}

TEST(Validate, TakesMinusOneWhereItHasAMeaningAndNowhereElse) {
  RunConfig config = good();
  config.training.global_batch_size = -1;
  EXPECT_TRUE(validate(config, 1).empty());
  config.training.global_batch_size = -2;
  EXPECT_EQ(only(config).key, "training.global_batch_size");
  config.training.global_batch_size = 0;
  EXPECT_EQ(only(config).suggest, "1");
  config.training.global_batch_size = -1;
  config.training.steps = -1;
  EXPECT_EQ(only(config).suggest, "1");
}

TEST(Validate, WarmsUpNoLongerThanTheRunLasts) {
  RunConfig config = good();
  config.lr_scheduler.warmup_steps = 100;
  EXPECT_TRUE(validate(config, 1).empty());
  config.lr_scheduler.warmup_steps = 101;
  EXPECT_EQ(only(config).suggest, "100 or less");
}

TEST(Validate, NamesKeysThatTheRunWouldNotUse) {
  RunConfig config = good();
  config.lr_scheduler.decay = Decay::constant;
  EXPECT_TRUE(validate(config, 1).empty());
  config.lr_scheduler.min_lr_factor = 0.5;
  EXPECT_EQ(only(config).key, "lr_scheduler.min_lr_factor");
  config = good();
  config.data.validation_fraction = 0;
  config.validation.freq = 10;
  EXPECT_EQ(only(config).key, "validation.freq");
}

TEST(Validate, KeepsSizesSmallEnoughToMultiply) {
  RunConfig config = good();
  config.model.hidden_size = std::numeric_limits<int64_t>::max();
  const Violation violation = only(config);
  EXPECT_EQ(violation.key, "model.hidden_size");
  EXPECT_EQ(violation.suggest, "1048576");
}

}  // namespace
}  // namespace tessera::spec
