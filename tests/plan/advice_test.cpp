#include "plan/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::plan {
namespace {

struct Asked {
  SearchSpace space;
  SearchResult result;
  Advice advice;
};

Asked ask(const char* model, int64_t devices, int64_t global_batch,
          const char* cluster = "a100-80g") {
  Asked asked;
  SearchSpace& space = asked.space;
  space.model = *find_model(model);
  space.cluster = *find_cluster(cluster);
  space.stack = find_stack("generic");
  space.constants = default_constants();
  space.devices = devices;
  space.recipe.global_batch = global_batch;
  asked.result = search(space);
  asked.advice = advise(space, asked.result);
  return asked;
}

std::string keys(const Advice& advice) {
  std::string text;
  for (const AdviceStep& step : advice.steps) {
    text += step.key + (step.yes ? "+ " : "- ");
  }
  return text;
}

TEST(Advice, StopsAtDataParallelismForASmallModel) {
  const Advice advice = ask("gpt2-124m", 8, 64).advice;
  EXPECT_EQ(keys(advice), "batch+ one_gpu+ ");
  ASSERT_TRUE(advice.layout);
  EXPECT_EQ(advice.layout->dp, 8);
  EXPECT_EQ(advice.layout->zero, 0);
}

TEST(Advice, ShardsTheOptimizerWhereThatIsWhatIsMissing) {
  // 6.7e9 parameters at 18 bytes are 121 GB; with 12 of those bytes over 16 GPUs, 45 GB.
  const Advice advice = ask("llama-2-7b", 16, 64).advice;
  EXPECT_EQ(keys(advice), "batch+ one_gpu- zero_1+ ");
  EXPECT_EQ(advice.layout->zero, 1);
  EXPECT_GT(advice.steps[1].bytes, 120e9);
}

TEST(Advice, AsksForZero3BeforeItCutsLayers) {
  const Advice advice = ask("llama-2-70b", 64, 256).advice;
  const std::string asked = keys(advice);
  EXPECT_EQ(asked.rfind("batch+ one_gpu- zero_1- zero_2- zero_3", 0), 0u) << asked;
}

TEST(Advice, HoldsRecomputingEverythingAgainstShardingMore) {
  // In 40 GB, ZeRO-2 leaves 6.7e9 parameters no room for activations on 8 GPUs; ZeRO-3 does.
  const Advice advice = ask("llama-2-7b", 8, 256, "a100-40g").advice;
  ASSERT_EQ(keys(advice), "batch+ one_gpu- zero_1- zero_2+ zero_3+ ");
  const AdviceStep &two = advice.steps[3], &three = advice.steps[4];
  EXPECT_EQ(two.layout->recompute, spec::Recompute::full);
  EXPECT_NE(two.consequence.find("compute nothing twice"), std::string::npos);
  EXPECT_NE(three.consequence.find("Faster than ZeRO-2 with full recomputation"), std::string::npos)
      << three.consequence;
  EXPECT_LT(three.step_s, two.step_s);
  EXPECT_EQ(advice.layout->zero, 3);
  EXPECT_EQ(advice.layout->recompute, spec::Recompute::none);
}

TEST(Advice, AsksModelsOfExpertsToSpreadThem) {
  const Asked asked = ask("mixtral-8x7b", 64, 256);
  const auto& steps = asked.advice.steps;
  const auto spread = std::find_if(steps.begin(), steps.end(),
                                   [](const AdviceStep& step) { return step.key == "experts"; });
  ASSERT_NE(spread, steps.end()) << keys(asked.advice);
  ASSERT_TRUE(spread->layout);
  EXPECT_GT(spread->layout->ep, 1);
  ASSERT_TRUE(asked.advice.layout);
  for (const AdviceStep& step : steps) {
    if (step.step_s > 0) {
      EXPECT_LE(asked.advice.estimate.time.step_s, step.step_s) << step.key;
    }
  }
}

TEST(Advice, CutsProductsInANodeAndLayersAcrossForTheLargest) {
  const Advice advice = ask("llama-3-405b", 2048, 512).advice;
  EXPECT_EQ(advice.steps.back().key, "pipeline") << keys(advice);
  ASSERT_TRUE(advice.layout);
  EXPECT_EQ(advice.layout->tp, 8);
  EXPECT_GT(advice.layout->pp, 1);
}

TEST(Advice, SharesModelsWhereTheBatchHasTooFewSequences) {
  const Advice advice = ask("llama-2-7b", 64, 16).advice;
  EXPECT_FALSE(advice.steps.front().yes);
  ASSERT_TRUE(advice.layout);
  EXPECT_LE(advice.layout->dp, 16);
  EXPECT_GT(advice.layout->tp, 1);
}

TEST(Advice, LeadsToLegalLayoutsThatFitAndAreNoFasterThanTheBest) {
  for (const auto& [model, devices] :
       {std::pair{"llama-2-7b", 8}, {"llama-2-13b", 32}, {"llama-2-70b", 128}}) {
    const Asked asked = ask(model, devices, 128);
    ASSERT_TRUE(asked.advice.layout) << model;
    const Layout& layout = *asked.advice.layout;
    EXPECT_TRUE(mistakes(asked.space.model, asked.space.recipe, layout).empty());
    EXPECT_TRUE(asked.advice.estimate.fits);
    EXPECT_EQ(layout.devices(), devices);
    EXPECT_GE(asked.advice.behind, -1e-12) << to_string(layout);
    double sum = asked.result.best.front().estimate.time.step_s;
    for (const TermDifference& term : asked.advice.against) sum += term.seconds;
    EXPECT_NEAR(sum, asked.advice.estimate.time.step_s, 0.01 * sum);
  }
}

TEST(Advice, SaysSoWhereNothingFits) {
  const Advice advice = ask("llama-2-70b", 2, 16).advice;
  EXPECT_FALSE(advice.layout);
  EXPECT_FALSE(advice.steps.back().yes);
}

}  // namespace
}  // namespace tessera::plan
