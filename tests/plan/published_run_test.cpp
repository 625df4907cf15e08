#include "plan/published_run.h"

#include <gmock/gmock.h>

#include "plan/parts.h"

namespace tessera::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kHeader =
    "id,stack,model,layers,hidden,heads,ffn,vocab,seq_len,gpu,num_gpus,nodes,tp,pp,dp,zero_stage,"
    "micro_batch,global_batch,precision,recompute,step_time_s,mem_gib_per_gpu,notes\n";

std::string row(const std::string& id, const std::string& gpu, const std::string& rest) {
  return id + ",nemo,a,32,4096,32,11008,32000,4096," + gpu + ",16,2,2,2,4,1," + rest + "\n";
}

TEST(PublishedRuns, AreReadByTheNamesOfTheirColumns) {
  const PublishedRuns runs = parse_published_runs(
      kHeader + row("x-1", "H100-80GB", "1,64,bf16,none,2.5,70.5,\"a, b\"\"c\nd\"") +
      row("x-2", "H100-80GB", "1,64,bf16,none,,OOM,"));
  EXPECT_THAT(runs.errors, IsEmpty());
  ASSERT_EQ(runs.runs.size(), 2U);
  EXPECT_EQ(runs.runs[0].group(), "x");
  EXPECT_EQ(runs.runs[0].step_time_s, 2.5);
  EXPECT_EQ(runs.runs[0].mem_gib_per_gpu, 70.5);
  EXPECT_FALSE(runs.runs[1].step_time_s.has_value());
  EXPECT_TRUE(runs.runs[1].out_of_memory());
}

TEST(PublishedRuns, WithMistakesNameRecordAndColumn) {
  const PublishedRuns runs =
      parse_published_runs(kHeader + row("x-1", "H100-80GB", "1,64,bf16,none,fast,70,") + "x-2,\n" +
                           row("x-3", "H100-80GB", "-1,64,bf16,none,2,70,"));
  EXPECT_THAT(runs.errors, ElementsAre(HasSubstr("record 2: step_time_s = 'fast'"),
                                       HasSubstr("record 3: 2 cells"),
                                       HasSubstr("record 4: micro_batch = '-1'")));
  EXPECT_THAT(parse_published_runs("").errors, ElementsAre(HasSubstr("empty")));
  EXPECT_THAT(parse_published_runs("a,b\n").errors, ElementsAre(HasSubstr("no column named id")));
}

ModelledRun modelled_row(const std::string& gpu, const std::string& rest) {
  const PublishedRuns runs = parse_published_runs(kHeader + row("x-1", gpu, rest));
  return modelled(runs.runs.at(0));
}

TEST(PublishedRuns, BecomeCases) {
  const ModelledRun model = modelled_row("H100-80GB", "1,64,bf16,full,2.5,,");
  ASSERT_TRUE(model.run.has_value()) << model.skipped;
  EXPECT_THAT(model.assumed, ElementsAre("stages a rank: 8"));
  EXPECT_EQ(model.run->layout.recompute, spec::Recompute::full);
  EXPECT_EQ(model.run->cluster.device.name, "H100-80GB");
  EXPECT_TRUE(model.run->layout.sequence_parallel);
  EXPECT_EQ(model.run->model.dense.architecture, spec::Architecture::llama);
}

TEST(PublishedRuns, ThatCannotBeModelledSayWhy) {
  EXPECT_THAT(modelled_row("Abacus", "1,64,bf16,full,2.5,,").skipped, HasSubstr("'Abacus'"));
  EXPECT_THAT(modelled_row("H100-80GB", "1,64,int4,full,2.5,,").skipped, HasSubstr("'int4'"));
  EXPECT_THAT(modelled_row("H100-80GB", "1,,bf16,full,2.5,,").skipped, HasSubstr("global batch"));
  EXPECT_THAT(modelled_row("H100-80GB", "3,64,bf16,full,2.5,,").skipped,
              HasSubstr("does not divide"));
}

TEST(PublishedRuns, LeaveOutALayerForTheEmbeddingAndOneForTheHead) {
  PublishedRuns runs =
      parse_published_runs(kHeader + row("x-1", "H100-80GB", "1,64,bf16,full,2.5,,"));
  PublishedRun& run = runs.runs.at(0);
  run.layers = 30;
  run.pp = 4;
  run.dp = 2;
  run.vpp = 1;
  const ModelledRun model = modelled(run);
  ASSERT_TRUE(model.run.has_value()) << model.skipped;
  EXPECT_THAT(blocks_of_stages(model.run->model, model.run->layout), ElementsAre(7, 8, 8, 7));
}

}  // namespace
}  // namespace tessera::plan
