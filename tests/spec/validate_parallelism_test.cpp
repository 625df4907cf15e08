#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/run_config.h"
#include "spec/schedule.h"

namespace tessera::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Twelve blocks of twelve heads, batches of 32 samples in micro-batches of one.
RunConfig good() {
  RunConfig config;
  config.data.path = {"text.txt"};
  config.model = find_model_preset("gpt2-124m")->config;
  config.training.global_batch_size = 32;
  config.training.micro_batch_size = 1;
  return config;
}
RunConfig with_degrees(int64_t tp, int64_t pp) {
  RunConfig config = good();
  config.parallelism.tensor_parallel_degree = tp;
  config.parallelism.pipeline_parallel_degree = pp;
  return config;
}

/// The one violation of a config, or a failure.
Violation only(const RunConfig& config, int64_t world_size = 0) {
  const std::vector<Violation> violations = validate(config, world_size);
  EXPECT_EQ(violations.size(), 1u);
  for (size_t i = 1; i < violations.size(); ++i) {
    ADD_FAILURE() << violations[i].key << " " << violations[i].why;
  }
  return violations.empty() ? Violation{} : violations.front();
}

std::vector<std::string> keys(const RunConfig& config, int64_t world_size = 0) {
  std::vector<std::string> keys;
  for (const Violation& violation : validate(config, world_size)) keys.push_back(violation.key);
  return keys;
}

TEST(ValidateMesh, TakesDegreesWhoseProductIsTheWorld) {
  RunConfig config = with_degrees(2, 3);
  EXPECT_TRUE(validate(config, 6).empty());
  EXPECT_TRUE(validate(config, 24).empty());  // four replicas
  EXPECT_TRUE(validate(config, 0).empty());
  config.parallelism.data_parallel_degree = 4;
  EXPECT_TRUE(validate(config, 24).empty());
  EXPECT_EQ(resolved(with_degrees(2, 3), 24).parallelism.data_parallel_degree, 4);
}

TEST(ValidateMesh, RefusesAReplicaThatDoesNotDivideTheWorld) {
  const Violation tensor = only(with_degrees(4, 1), 6);
  EXPECT_EQ(tensor.key, "parallelism.tensor_parallel_degree");
  EXPECT_THAT(tensor.why, HasSubstr("tp × pp = 4 × 1"));
  EXPECT_EQ(tensor.suggest, "3, 6 or a number of ranks that is a multiple of 4");
  const Violation pipeline = only(with_degrees(2, 4), 12);
  EXPECT_EQ(pipeline.key, "parallelism.pipeline_parallel_degree");
  EXPECT_EQ(pipeline.suggest, "3, 6 or a number of ranks that is a multiple of 8");
}

TEST(ValidateMesh, RefusesReplicasThatMakeAnotherProduct) {
  RunConfig config = with_degrees(2, 2);
  config.parallelism.data_parallel_degree = 3;
  const Violation violation = only(config, 8);
  EXPECT_EQ(violation.key, "parallelism.data_parallel_degree");
  EXPECT_THAT(violation.why, HasSubstr("a mesh of 12 ranks; there are 8"));
  EXPECT_EQ(violation.suggest, "2 or -1");
}

TEST(ValidateMesh, HoldsBatchAndShardsAgainstTheReplicas) {
  RunConfig config = with_degrees(2, 2);
  config.training.global_batch_size = 2;
  EXPECT_TRUE(validate(config, 8).empty());  // eight ranks, but two replicas
  EXPECT_EQ(only(config, 16).key, "training.global_batch_size");
  config = with_degrees(2, 2);
  config.parallelism.zero_stage = 1;
  config.parallelism.shard_degree = 2;
  EXPECT_TRUE(validate(config, 8).empty());
  config.parallelism.shard_degree = 4;
  EXPECT_EQ(only(config, 8).suggest, "-1 or 2");
}

TEST(ValidateTensorParallelism, RefusesDegreesThatDivideNoHeads) {
  const Violation violation = only(with_degrees(5, 1));
  EXPECT_EQ(violation.key, "parallelism.tensor_parallel_degree");
  EXPECT_THAT(violation.why, HasSubstr("num_attention_heads 12 or intermediate_size 3072"));
  EXPECT_EQ(violation.suggest, "4 or 6");
  EXPECT_EQ(only(with_degrees(24, 1)).suggest, "12");
}

TEST(ValidateTensorParallelism, LetsRanksShareKeyValueHeadsWhereTheyDivide) {
  RunConfig config = with_degrees(6, 1);
  config.model.num_key_value_heads = 3;  // two ranks a head
  EXPECT_TRUE(validate(config, 0).empty());
  config.parallelism.tensor_parallel_degree = 2;
  const Violation violation = only(config);
  EXPECT_THAT(violation.why, HasSubstr("num_key_value_heads 3"));
  EXPECT_EQ(violation.suggest, "1 or 3");
}

TEST(ValidateTensorParallelism, RefusesPositionsThatDoNotDivide) {
  RunConfig config = with_degrees(4, 1);
  config.parallelism.sequence_parallel = true;
  EXPECT_TRUE(validate(config, 0).empty());
  config.data.seq_len = 66;
  EXPECT_EQ(only(config).key, "parallelism.sequence_parallel");
  EXPECT_EQ(only(config).suggest, "false, or a data.seq_len of 64 or 68");
}

TEST(ValidateTensorParallelism, RefusesKeysThatOneRankDoesNotUse) {
  RunConfig config = good();
  config.parallelism.sequence_parallel = true;
  config.parallelism.tensor_parallel_across_hosts = true;
  EXPECT_THAT(keys(config), ElementsAre("parallelism.sequence_parallel",
                                        "parallelism.tensor_parallel_across_hosts"));
}

TEST(ValidatePipeline, RefusesMoreStagesThanBlocks) {
  EXPECT_TRUE(validate(with_degrees(1, 12), 0).empty());
  const Violation violation = only(with_degrees(1, 13));
  EXPECT_EQ(violation.key, "parallelism.pipeline_parallel_degree");
  EXPECT_EQ(violation.suggest, "12 or less, or a larger model");
  RunConfig config = with_degrees(1, 4);
  config.parallelism.pipeline_schedule = "interleaved";
  config.parallelism.virtual_stages = 4;
  EXPECT_EQ(only(config).key, "parallelism.virtual_stages");
  EXPECT_EQ(only(config).suggest, "3 or less, or a larger model");
}

TEST(ValidatePipeline, RefusesStagesThatTheScheduleDoesNotTake) {
  const auto suggestion = [](const std::string& schedule, int64_t v) {
    RunConfig config = with_degrees(1, 2);
    config.parallelism.pipeline_schedule = schedule;
    config.parallelism.virtual_stages = v;
    const std::vector<Violation> violations = validate(config, 0);
    if (violations.empty()) return std::string("fine");
    EXPECT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].key, "parallelism.virtual_stages");
    return violations[0].suggest;
  };
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1"}) {
    EXPECT_EQ(suggestion(schedule, 1), "fine");
    EXPECT_EQ(suggestion(schedule, 2), "1, or pipeline_schedule = \"interleaved\"");
  }
  EXPECT_EQ(suggestion("interleaved", 1), "2 or more, or pipeline_schedule = \"1f1b\"");
  EXPECT_EQ(suggestion("interleaved", 3), "fine");
  EXPECT_EQ(suggestion("zb-v", 1), "2");
  EXPECT_EQ(suggestion("zb-v", 2), "fine");
  EXPECT_EQ(suggestion("zb-v", 3), "2");
}

TEST(ValidatePipeline, RefusesANameThatNoScheduleHas) {
  RunConfig config = with_degrees(1, 2);
  config.parallelism.pipeline_schedule = "interleave";
  EXPECT_EQ(only(config).suggest, "interleaved");
  config.parallelism.pipeline_parallel_degree = 1;
  EXPECT_EQ(only(config).suggest, "interleaved");
}

TEST(ValidatePipeline, SaysAllThatIsWrongWithLayersPerStage) {
  RunConfig config = with_degrees(1, 4);
  config.parallelism.layers_per_stage = {4, 4, 4, 0};
  EXPECT_TRUE(validate(config, 0).empty());
  config.parallelism.layers_per_stage = {4, 0, 5};
  const Violation violation = only(config);
  EXPECT_EQ(violation.key, "parallelism.layers_per_stage");
  EXPECT_EQ(violation.value, "4,0,5");
  EXPECT_THAT(violation.why, HasSubstr("has 3 numbers for 4 stages"));
  EXPECT_THAT(violation.why, HasSubstr("adds up to 9 blocks of 12"));
  EXPECT_THAT(violation.why, HasSubstr("leaves stage 1 without a block"));
  EXPECT_THAT(violation.suggest, HasSubstr(", or leave it out"));
}

TEST(ValidatePipeline, SuggestsLayersThatAreLegal) {
  RunConfig config = with_degrees(1, 2);
  config.parallelism.layers_per_stage = {12};
  const std::string suggestion = only(config).suggest;
  const size_t comma = suggestion.find(',');
  ASSERT_NE(comma, std::string::npos);
  config.parallelism.layers_per_stage = {std::stoll(suggestion),
                                         std::stoll(suggestion.substr(comma + 1))};
  EXPECT_TRUE(validate(config, 0).empty()) << suggestion;
}

TEST(ValidatePipeline, RefusesFewerMicroBatchesThanInterleavedNeeds) {
  RunConfig config = with_degrees(1, 4);
  config.parallelism.pipeline_schedule = "interleaved";
  config.parallelism.virtual_stages = 2;
  config.training.micro_batch_size = 8;  // four of a share of 32
  EXPECT_TRUE(validate(config, 4).empty());
  EXPECT_EQ(only(config, 8).key, "training.micro_batch_size");  // two replicas: two of 16
  EXPECT_EQ(only(config, 8).suggest, "4, or a training.global_batch_size of 64");
  config.training.global_batch_size = 3;
  config.training.micro_batch_size = 1;
  EXPECT_EQ(only(config, 4).suggest, "a training.global_batch_size of 4");
  config.parallelism.pipeline_schedule = "1f1b";
  config.parallelism.virtual_stages = 1;
  EXPECT_TRUE(validate(config, 4).empty());
}

RunConfig with_file(const std::string& text) {
  RunConfig config = with_degrees(1, 2);
  config.training.global_batch_size = 2;
  config.parallelism.pipeline_schedule = "mine.csv";
  config.parallelism.schedule_csv = text;
  return config;
}

TEST(ValidatePipeline, TakesAScheduleFromAFile) {
  EXPECT_TRUE(validate(with_file("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"), 2).empty());
}

TEST(ValidatePipeline, SaysWhatIsWrongWithAScheduleFile) {
  EXPECT_EQ(only(with_file("0F0,0F1,0X0\n1F0\n"), 2).key, "parallelism.pipeline_schedule");
  const Violation missing = only(with_file("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n"), 2);
  EXPECT_THAT(missing.why, HasSubstr("cannot be carried out: "));
  const Violation ranks = only(with_file("0F0,0B0,0F1,0B1\n"), 2);
  EXPECT_THAT(ranks.why, HasSubstr("is of 1 ranks (rows), and the pipeline has 2"));
  EXPECT_EQ(ranks.suggest, "a pipeline_parallel_degree of 1");
}

TEST(ValidatePipeline, RefusesAScheduleFileOfOtherMicroBatchesOrStages) {
  RunConfig config = with_file("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  config.training.global_batch_size = 8;
  EXPECT_EQ(only(config, 2).key, "training.micro_batch_size");
  EXPECT_EQ(only(config, 2).suggest, "4, or a training.global_batch_size of 2");
  config.training.global_batch_size = 2;
  config.parallelism.virtual_stages = 2;
  EXPECT_EQ(only(config, 2).key, "parallelism.virtual_stages");
  EXPECT_EQ(only(config, 2).suggest, "1");
}

TEST(ValidatePipeline, RefusesKeysThatOneRankDoesNotUse) {
  RunConfig config = good();
  config.parallelism.pipeline_schedule = "gpipe";
  config.parallelism.virtual_stages = 2;
  config.parallelism.layers_per_stage = {12};
  EXPECT_THAT(keys(config),
              ElementsAre("parallelism.pipeline_schedule", "parallelism.virtual_stages",
                          "parallelism.layers_per_stage"));
}

TEST(ValidateMesh, ListsMistakesOfEveryAxisAtOnce) {
  RunConfig config = with_degrees(5, 16);
  config.parallelism.sequence_parallel = true;
  config.parallelism.pipeline_schedule = "zb-h1";
  config.parallelism.layers_per_stage = {1, 2};
  EXPECT_THAT(
      keys(config, 64),
      ElementsAre("parallelism.pipeline_parallel_degree", "parallelism.tensor_parallel_degree",
                  "parallelism.sequence_parallel", "parallelism.layers_per_stage"));
}

}  // namespace
}  // namespace tessera::spec
