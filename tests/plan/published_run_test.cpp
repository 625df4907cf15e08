#include "plan/published_run.h"

#include <gmock/gmock.h>

#include <tuple>

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

TEST(PublishedRuns, RefuseMeasurementsOfNothing) {
  const PublishedRuns runs = parse_published_runs(
      kHeader + row("x-1", "H100-80GB", "1,64,bf16,none,0,70,") +
      row("x-2", "H100-80GB", "1,64,bf16,none,2,0,") + row("x-3", "H100-80GB", ",64,bf16,,,,"));
  EXPECT_THAT(runs.errors, ElementsAre(HasSubstr("record 2: step_time_s = '0' must be above 0"),
                                       HasSubstr("record 3: mem_gib_per_gpu = '0' must be above")));
}

TEST(PublishedRuns, RefuseNumbersBeyondAnythingThatIsCounted) {
  const auto errors = [](const std::string& batch) {
    return parse_published_runs(kHeader +
                                row("x-1", "H100-80GB", "1," + batch + ",bf16,none,2,70,"))
        .errors;
  };
  EXPECT_THAT(errors("1e15"), IsEmpty());
  EXPECT_THAT(errors("1e30"), ElementsAre(HasSubstr("global_batch = '1e30' is too large")));
  EXPECT_THAT(errors("inf"), ElementsAre(HasSubstr("too large")));
  EXPECT_THAT(errors("nan"), ElementsAre(HasSubstr("is not a number")));
}

TEST(PublishedRuns, MayBeginWithAByteOrderMark) {
  const PublishedRuns runs = parse_published_runs(std::string("\xEF\xBB\xBF") + kHeader +
                                                  row("x-1", "H100-80GB", "1,64,bf16,none,2,70,"));
  EXPECT_THAT(runs.errors, IsEmpty());
  ASSERT_EQ(runs.runs.size(), 1U);
  EXPECT_EQ(runs.runs[0].id, "x-1");
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

/// A row with some of its fields changed.
template <class Change>
ModelledRun changed(const Change& change) {
  PublishedRuns runs =
      parse_published_runs(kHeader + row("x-1", "H100-80GB", "1,64,bf16,full,2.5,,"));
  change(runs.runs.at(0));
  return modelled(runs.runs.at(0));
}

TEST(PublishedRuns, WithWordsThatAreNotKnownAreLeftOut) {
  EXPECT_THAT(changed([](PublishedRun& run) { run.schedule = "weird"; }).skipped,
              HasSubstr("schedule 'weird' is none of 1f1b, interleaved"));
  EXPECT_THAT(changed([](PublishedRun& run) { run.recompute = "weird"; }).skipped,
              HasSubstr("recompute 'weird' is none of none, full or selective"));
}

TEST(PublishedRuns, TakeTheScheduleThatTheyName) {
  for (const auto& [name, kind, chunks] : {std::tuple{"gpipe", spec::ScheduleKind::gpipe, 1},
                                           {"zb-h1", spec::ScheduleKind::zb_h1, 1},
                                           {"zb-v", spec::ScheduleKind::zb_v, 2},
                                           {"dualpipe", spec::ScheduleKind::zb_v, 2}}) {
    const ModelledRun model = changed([&](PublishedRun& run) { run.schedule = name; });
    ASSERT_TRUE(model.run.has_value()) << name << ": " << model.skipped;
    EXPECT_EQ(model.run->layout.schedule, kind) << name;
    EXPECT_EQ(model.run->layout.v, chunks) << name;
  }
}

TEST(PublishedRuns, WithCountsThatCannotBeAreLeftOut) {
  EXPECT_THAT(changed([](PublishedRun& run) {
                run.num_experts = 8;
                run.top_k = 99;
              }).skipped,
              HasSubstr("top_k is 99, of 8 experts"));
  EXPECT_THAT(changed([](PublishedRun& run) {
                run.num_experts = 8;
                run.dense_layers = 33;
              }).skipped,
              HasSubstr("dense_layers is 33, of 32 layers"));
  EXPECT_THAT(changed([](PublishedRun& run) { run.heads = 0; }).skipped, HasSubstr("heads is 0"));
  EXPECT_THAT(changed([](PublishedRun& run) { run.num_gpus = run.dp = 0; }).skipped,
              HasSubstr("num_gpus is 0, not from 1 to"));
  EXPECT_THAT(changed([](PublishedRun& run) { run.layers = 1e15; }).skipped,
              HasSubstr("layers is 1e+15"));
  EXPECT_THAT(changed([](PublishedRun& run) { run.hidden = run.ffn = 1e9; }).skipped,
              HasSubstr("parameters, more than 1e+16"));
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
