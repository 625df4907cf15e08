#include "plan/goodput.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera::plan {
namespace {

/// 50,000 hours a GPU: a failure each 3 h on 16,384, each 2 days on 1,024.
std::vector<FailureModel> models() {
  return {{50'000, 1'024, 60, 300},
          {50'000, 16'384, 10, 300},
          {50'000, 16'384, 600, 900},
          {50'000, 65'536, 900, 1200}};
}

TEST(Goodput, FailureRatesOfPartsAddUp) {
  const FailureModel failures{50'000, 16'384, 60, 300};
  EXPECT_NEAR(failures.mtbf_s(), 10986.3, 0.1);
}

TEST(Goodput, IsWhatASimulationOfTheModelComesTo) {
  for (const FailureModel& failures : models()) {
    for (const double factor : {0.3, 1.0, 3.0}) {
      const double interval = factor * daly_interval_s(failures);
      const SimulatedRun run = simulate_failures(failures, interval, {7, 40'000});
      // Five standard errors: one in two million by chance, and the seed is fixed.
      EXPECT_NEAR(run.goodput, goodput(failures, interval), 5 * run.standard_error)
          << failures.num_parts << " parts, save " << failures.save_s << " s, every " << interval;
      EXPECT_LT(run.standard_error, 0.02 * run.goodput);
    }
  }
}

TEST(Goodput, SimulatedTimeIsTheSumOfItsKinds) {
  const SimulatedRun run = simulate_failures(models()[2], 3000, {1, 1000});
  EXPECT_GT(run.failures, 100);
  EXPECT_NEAR(run.time_s, run.work_s + run.saving_s + run.lost_s + run.restarting_s,
              1e-9 * run.time_s);
  EXPECT_DOUBLE_EQ(run.work_s, 3000.0 * 1000);
}

TEST(Goodput, WithoutFailuresLosesTheSavesAlone) {
  const FailureModel failures{1e12, 1, 50, 300};
  EXPECT_NEAR(goodput(failures, 950), 0.95, 1e-9);
  EXPECT_NEAR(simulate_failures(failures, 950, {1, 100}).goodput, 0.95, 1e-12);
}

// The same numbers in every run: everything random comes from the seed.
TEST(Goodput, SimulationsOfOneSeedAreTheSame) {
  const SimulatedRun once = simulate_failures(models()[1], 500, {3, 5000});
  EXPECT_EQ(once.time_s, simulate_failures(models()[1], 500, {3, 5000}).time_s);
  EXPECT_NE(once.time_s, simulate_failures(models()[1], 500, {4, 5000}).time_s);
}

TEST(Interval, YoungsIsTheSquareRootOfTwoSavesTimesTheMtbf) {
  const FailureModel failures{1, 1, 50, 0};  // 3,600 s
  EXPECT_DOUBLE_EQ(young_interval_s(failures), 600);
}

TEST(Interval, DalysIsBestToAThousandthWhereSavesAreShort) {
  for (const FailureModel& failures : models()) {
    const double best = best_interval_s(failures), daly = daly_interval_s(failures);
    const double part = failures.save_s / failures.mtbf_s();
    EXPECT_NEAR(daly, best, (part < 0.1 ? 1e-3 : 2e-2) * best);
    EXPECT_LE(goodput(failures, daly), goodput(failures, best));
    EXPECT_LE(goodput(failures, young_interval_s(failures)), goodput(failures, daly));
  }
}

TEST(Interval, BestIsBetterThanItsNeighbours) {
  for (const FailureModel& failures : models()) {
    const double best = best_interval_s(failures);
    EXPECT_GT(goodput(failures, best), goodput(failures, 0.99 * best));
    EXPECT_GT(goodput(failures, best), goodput(failures, 1.01 * best));
  }
}

TEST(Interval, OfSavesLongerThanTwoMtbfsIsTheMtbf) {
  const FailureModel failures{1, 1, 8000, 0};
  EXPECT_DOUBLE_EQ(daly_interval_s(failures), 3600);
}

// No formula of ours takes part: intervals half a factor of two apart, of which the simulation
// likes one best; Daly's lies between that one's neighbours.
TEST(Interval, DalysIsBracketedByTheBestOfASimulation) {
  for (const FailureModel& failures : models()) {
    const double daly = daly_interval_s(failures);
    std::vector<double> intervals, results;
    for (double interval = daly / 5.1; interval < 6 * daly; interval *= 1.6) {
      intervals.push_back(interval);
      // As much work in each, so that each meets as many failures.
      const auto count = static_cast<int64_t>(4e4 * daly / interval);
      results.push_back(simulate_failures(failures, interval, {11, count}).goodput);
    }
    const size_t best =
        static_cast<size_t>(std::max_element(results.begin(), results.end()) - results.begin());
    ASSERT_GT(best, 0u);
    ASSERT_LT(best + 1, intervals.size());
    EXPECT_LT(intervals[best - 1], daly);
    EXPECT_GT(intervals[best + 1], daly);
  }
}

}  // namespace
}  // namespace tessera::plan
