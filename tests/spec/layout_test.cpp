#include "spec/layout.h"

#include <gtest/gtest.h>

namespace tessera::spec {
namespace {

std::vector<std::string> read(const std::string& text) {
  const LayoutList list = parse_layouts(text);
  EXPECT_TRUE(list.violations.empty()) << list.violations.front().why;
  std::vector<std::string> layouts;
  for (const Layout& layout : list.layouts) layouts.push_back(to_string(layout));
  return layouts;
}

Violation only(const std::string& text) {
  const LayoutList list = parse_layouts(text);
  EXPECT_EQ(list.violations.size(), 1u) << text;
  return list.violations.empty() ? Violation{} : list.violations.front();
}

TEST(ParseLayouts, ReadsEveryAxisAndCountsTheRanks) {
  const LayoutList list = parse_layouts(" tp=2, pp=3,dp=4 ,sp=1,v=2,schedule=interleaved");
  ASSERT_EQ(list.layouts.size(), 1u);
  EXPECT_EQ(list.layouts[0].ranks(), 24);
  EXPECT_EQ(to_string(list.layouts[0]), "dp=4,tp=2,pp=3,sp=1,schedule=interleaved,v=2");
}

TEST(ParseLayouts, MakesALayoutOfEveryCombinationOfValues) {
  EXPECT_EQ(read("tp=1|2,zero=0 | 1"),
            (std::vector<std::string>{"dp=1,zero=0", "dp=1,zero=1", "dp=1,tp=2,zero=0",
                                      "dp=1,tp=2,zero=1"}));
  EXPECT_EQ(read("dp=2; pp=2,schedule=gpipe|zb-h1,backend=auto|shm").size(), 5u);
  EXPECT_EQ(read("recompute=none|full,dp=2").size(), 2u);
}

TEST(ParseLayouts, TellsAWrongValueOfAMatrixOnce) {
  EXPECT_EQ(only("tp=1|two,zero=0|1|2").value, "two");
  EXPECT_EQ(only("dp=1|2|3,zero=4").key, "zero");
  EXPECT_EQ(only("tp=1|,dp=2").value, "");
}

TEST(ParseLayouts, RefusesMatricesThatNobodyWaitsFor) {
  std::string many = "1";
  for (int i = 2; i <= 40; ++i) many += "|" + std::to_string(i);
  EXPECT_EQ(only("dp=" + many + ",tp=" + many).key, "tp");
}

TEST(ParseLayouts, SuggestsTheScheduleThatWasMeant) {
  EXPECT_EQ(only("pp=2,schedule=1fb1").suggest, "1f1b");
  EXPECT_EQ(only("pp=2,schedule=dualpipe").suggest,
            "gpipe, 1f1b, interleaved, zb-h1, zb-v or a file NAME.csv");
  EXPECT_EQ(read("pp=2,schedule=a/b.csv"),
            (std::vector<std::string>{"dp=1,pp=2,schedule=a/b.csv"}));
}

TEST(ParseLayouts, RefusesWhatALaterVersionBrings) {
  EXPECT_EQ(only("cp=2").why, "is not in this version yet");
  EXPECT_EQ(read("cp=1,ep=1").size(), 1u);
  EXPECT_EQ(only("sp=2").suggest, "0, 1");
  EXPECT_EQ(only("dp=9999999999").key, "dp");  // the product of the axes stays a number
}

RunConfig of_batch(int64_t samples) {
  RunConfig config;
  config.training.global_batch_size = samples;
  config.data.path = {"text"};
  return config;
}

TEST(WithLayout, SetsEveryAxis) {
  const RunConfig config =
      with_layout(of_batch(16), parse_layouts("tp=2,pp=2,dp=2,sp=1,schedule=zb-h1").layouts.at(0));
  EXPECT_EQ(config.parallelism.tensor_parallel_degree, 2);
  EXPECT_EQ(config.parallelism.pipeline_parallel_degree, 2);
  EXPECT_EQ(config.parallelism.data_parallel_degree, 2);
  EXPECT_TRUE(config.parallelism.sequence_parallel);
  EXPECT_EQ(config.parallelism.pipeline_schedule, "zb-h1");
  EXPECT_EQ(config.parallelism.virtual_stages, 1);
  EXPECT_EQ(passes_per_step(config), 4);  // 2 · pp
  EXPECT_EQ(to_string(layout_of(config)), "dp=2,tp=2,pp=2,sp=1,schedule=zb-h1");
}

TEST(WithLayout, GivesSchedulesOfSeveralStagesTwo) {
  for (const std::string schedule : {"interleaved", "zb-v"}) {
    Layout layout;
    layout.pp = 2;
    layout.schedule = schedule;
    EXPECT_EQ(with_layout(of_batch(16), layout).parallelism.virtual_stages, 2) << schedule;
    layout.v = 3;
    EXPECT_EQ(with_layout(of_batch(16), layout).parallelism.virtual_stages, 3) << schedule;
  }
}

TEST(WithLayout, KeepsThePipelineThatItDoesNotName) {
  RunConfig config = of_batch(16);
  ParallelismConfig& parallelism = config.parallelism;
  parallelism.sequence_parallel = true;
  parallelism.pipeline_schedule = "interleaved";
  parallelism.virtual_stages = 3;
  parallelism.layers_per_stage = {1, 1, 1, 1, 1, 1};
  Layout layout;
  layout.pp = 2;
  EXPECT_EQ(with_layout(config, layout).parallelism.layers_per_stage, parallelism.layers_per_stage);
  EXPECT_EQ(to_string(completed(layout, config)), "dp=1,pp=2,schedule=interleaved,v=3");
  layout.pp = 3;  // nine stages: the six numbers are not theirs
  EXPECT_TRUE(with_layout(config, layout).parallelism.layers_per_stage.empty());
  layout.schedule = "1f1b";
  EXPECT_EQ(to_string(completed(layout, config)), "dp=1,pp=3,schedule=1f1b");
  layout = Layout{};
  layout.tp = 2;
  EXPECT_EQ(to_string(completed(layout, config)), "dp=1,tp=2,sp=1");
}

TEST(WithLayout, IsOneRankByItself) {
  RunConfig config = of_batch(16);
  config.parallelism.tensor_parallel_degree = 2;
  config.parallelism.sequence_parallel = true;
  config.parallelism.tensor_parallel_across_hosts = true;
  config.parallelism.pipeline_parallel_degree = 2;
  config.parallelism.pipeline_schedule = "zb-v";
  config.parallelism.virtual_stages = 2;
  config.parallelism.layers_per_stage = {1, 1, 1, 1};
  const RunConfig alone = with_layout(config, Layout{});
  EXPECT_EQ(to_string(layout_of(alone)), "dp=1");
  EXPECT_TRUE(validate(alone, 1).empty());
}

TEST(WithLayout, ForgetsTheTextOfAnotherSchedule) {
  RunConfig config = of_batch(16);
  config.parallelism.pipeline_schedule = "mine.csv";
  config.parallelism.schedule_csv = "0F0,0B0";
  Layout layout;
  layout.pp = 2;
  EXPECT_EQ(with_layout(config, layout).parallelism.schedule_csv, "0F0,0B0");
  layout.schedule = "gpipe";
  EXPECT_EQ(with_layout(config, layout).parallelism.schedule_csv, "");
}

}  // namespace
}  // namespace tessera::spec
