#include "cli/plan_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace tessera::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

PlanRequest read(const std::string& flags, LayoutFlags layout = LayoutFlags::complete) {
  CLI::App app;
  PlanArgs args;
  args.add_to(*app.add_subcommand("plan"));
  app.parse("plan " + flags);
  return args.read(layout);
}

std::string refusal(const std::string& flags) {
  try {
    read(flags);
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(PlanArgs, ReadEveryPartOfACase) {
  const PlanRequest request = read(
      "--model llama-2-7b --cluster a100-80g --gpus 256 --tp 8 --pp 4 --dp 8 --zero 1 --seq-len "
      "2048 --global-batch 1024 --micro-batch 2 --tokens 2e12 --recompute full --precision fp16 "
      "--gradient-dtype bf16 --optimizer adam8bit --stack megatron-lm --sp 1 --gpus-per-node 4");
  const plan::Layout& layout = request.run.layout;
  EXPECT_EQ(layout.tp, 8);
  EXPECT_EQ(layout.pp, 4);
  EXPECT_EQ(layout.dp, 8);
  EXPECT_EQ(layout.zero, 1);
  EXPECT_EQ(layout.micro_batch, 2);
  EXPECT_TRUE(layout.sequence_parallel);
  EXPECT_EQ(layout.recompute, spec::Recompute::full);
  const plan::Recipe& recipe = request.run.recipe;
  EXPECT_EQ(recipe.seq_len, 2048);
  EXPECT_EQ(recipe.global_batch, 1024);
  EXPECT_EQ(recipe.format, plan::Format::fp16);
  EXPECT_EQ(recipe.gradient_bytes, 2);
  EXPECT_EQ(recipe.optimizer, plan::Optimizer::adam8bit);
  EXPECT_EQ(request.run.stack.name, "megatron-lm");
  EXPECT_EQ(request.run.cluster.name, "a100-80g");
  EXPECT_EQ(request.run.cluster.devices_per_node, 4);
  EXPECT_EQ(request.gpus, 256);
  EXPECT_EQ(request.tokens, 2e12);
  EXPECT_TRUE(request.says("zero"));
  EXPECT_FALSE(request.says("cp"));
}

TEST(PlanArgs, TakeALayoutInOneWordAndUnderscores) {
  const PlanRequest request = read(
      "--model llama-2-7b --layout tp=2,pp=2,v=4,zero=2,micro_batch=3,recompute=selective,sp=1 "
      "--global_batch 24 --gpus 16");
  const plan::Layout& layout = request.run.layout;
  EXPECT_EQ(layout.dp, 4);
  EXPECT_EQ(layout.v, 4);
  EXPECT_EQ(layout.schedule, spec::ScheduleKind::interleaved);
  EXPECT_EQ(layout.zero, 2);
  EXPECT_EQ(layout.recompute, spec::Recompute::selective);
  EXPECT_TRUE(layout.sequence_parallel);
  EXPECT_TRUE(request.says("virtual-stages"));
}

TEST(PlanArgs, ReplicasAreWhatTheOthersLeave) {
  EXPECT_EQ(read("--model llama-2-7b --gpus 64 --tp 8").run.layout.dp, 8);
  EXPECT_EQ(read("--model llama-2-7b --gpus 64 --tp 8 --dp -1").run.layout.dp, 8);
  EXPECT_EQ(read("--model llama-2-7b --tp 8 --dp 4").gpus, 32);
}

TEST(PlanArgs, TwoOfTheBatchSizesGiveTheThird) {
  EXPECT_EQ(read("--params 7e9 --gpus 64 --micro-batch 16").run.recipe.global_batch, 1024);
  EXPECT_EQ(read("--params 7e9 --gpus 8 --global-batch 64 --accumulate 4").run.layout.micro_batch,
            2);
  EXPECT_THAT(refusal("--params 7e9 --gpus 8 --global-batch 64 --accumulate 4 --micro-batch 1"),
              HasSubstr("makes 32 sequences"));
}

TEST(PlanArgs, TakeTheBatchThatTheLearningRateWasChosenFor) {
  EXPECT_EQ(read("--params 7e9 --gpus 8").tuned_batch, 0);
  EXPECT_EQ(read("--params 7e9 --gpus 8 --tuned-batch 8").tuned_batch, 8);
  EXPECT_EQ(read("--params 7e9 --gpus 8 --tuned_batch 16", LayoutFlags::open).tuned_batch, 16);
  EXPECT_THAT(refusal("--params 7e9 --tuned-batch abc"),
              AllOf(HasSubstr("--tuned-batch"), HasSubstr("whole number from 1")));
  EXPECT_THAT(refusal("--params 7e9 --tuned-batch 0"), HasSubstr("try: 1"));
}

TEST(PlanArgs, RefuseRatesThatNoLinkHas) {
  for (const char* flag : {"--intra-bandwidth", "--inter-bandwidth"}) {
    for (const char* rate : {"1e-300", "999", "1e31"}) {
      EXPECT_THAT(refusal(std::string("--params 7e9 ") + flag + ' ' + rate),
                  AllOf(HasSubstr(flag), HasSubstr("is not from 1000 to 1e+30")));
    }
  }
  EXPECT_EQ(read("--params 7e9 --inter-bandwidth 1e3").run.cluster.inter.bytes_per_s, 1e3);
  EXPECT_THAT(refusal("--params 7e9 --tokens 1e300"), HasSubstr("is not from 1 to 1e+30"));
}

TEST(PlanArgs, RefuseAnEmptyText) {
  CLI::App app;
  PlanArgs args;
  args.add_to(*app.add_subcommand("plan"));
  for (const char* flag : {"--layout", "--gpus", "--tuned-batch"}) {
    try {
      app.parse(std::vector<std::string>{"", flag, "plan"});  // from the last to the first
      ADD_FAILURE() << flag;
    } catch (const CLI::ValidationError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(flag), HasSubstr("is empty; leave")));
    }
  }
}

TEST(PlanArgs, SequenceParallelismMayStandAlone) {
  EXPECT_TRUE(read("--model llama-2-7b --tp 2 --sp").run.layout.sequence_parallel);
  EXPECT_TRUE(read("--model llama-2-7b --sp --tp 2").run.layout.sequence_parallel);
}

TEST(PlanArgs, ListEveryMistakeWithWhatWouldWork) {
  const std::string text = refusal(
      "--model llama-2-8b --cluster a100 --tp x --zero 4 --precision bf15 --stack megatronlm");
  EXPECT_THAT(
      text, AllOf(HasSubstr("has 6 mistakes"), HasSubstr("llama-2-7b"), HasSubstr("a100-40g"),
                  HasSubstr("from 0 to 3"), HasSubstr("try: bf16"), HasSubstr("try: megatron-lm")));
}

TEST(PlanArgs, RefuseALayoutThatDoesNotCutTheModel) {
  const std::string text = refusal("--model llama-2-7b --tp 3 --pp 64 --dp 1");
  EXPECT_THAT(text,
              AllOf(HasSubstr("32 attention heads"), HasSubstr("2 or 4"), HasSubstr("at most 32")));
}

TEST(PlanArgs, RefuseDevicesThatTheLayoutDoesNotFill) {
  EXPECT_THAT(refusal("--model llama-2-7b --tp 8 --gpus 20"), HasSubstr("16 or 24"));
  EXPECT_THAT(refusal("--model llama-2-7b --tp 8 --dp 2 --gpus 20"), HasSubstr("try: 16"));
}

TEST(PlanArgs, RefuseAFlagAndAKeyThatDisagree) {
  EXPECT_THAT(refusal("--model llama-2-7b --layout tp=4 --tp 2"), HasSubstr("said twice"));
  EXPECT_THAT(refusal("--model llama-2-7b --layout tq=4"), HasSubstr("try: tp"));
}

TEST(PlanArgs, AnOpenLayoutNeedsOnlyTheDevices) {
  const PlanRequest request = read("--model llama-3-405b --gpus 16384", LayoutFlags::open);
  EXPECT_EQ(request.gpus, 16384);
  EXPECT_FALSE(request.says("tp"));
  EXPECT_THROW(read("--model llama-3-405b", LayoutFlags::open), core::ConfigError);
}

TEST(PlanArgs, RefuseAFormatThatTheDeviceDoesNotHave) {
  EXPECT_THAT(refusal("--model llama-2-7b --cluster tpu-v5p --precision fp32"),
              HasSubstr("TPU-v5p has no rate of"));
}

TEST(PlanArgs, NumbersMayHaveAUnit) {
  EXPECT_EQ(read("--params 1.5B --tokens 300B").parameters, 1.5e9);
  EXPECT_EQ(read("--params 1T").parameters, 1e12);
  EXPECT_THAT(refusal("--params 7x"), HasSubstr("7e9 or 7B"));
}

}  // namespace
}  // namespace tessera::cli
