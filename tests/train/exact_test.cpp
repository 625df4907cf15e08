#include "train/exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tessera::train {
namespace {

using ::testing::ElementsAre;

std::map<std::string, Demonstration> by_name(const ExactReport& report) {
  std::map<std::string, Demonstration> found;
  for (const Demonstration& shown : report.demonstrations) found[shown.name] = shown;
  return found;
}

TEST(Exact, WorkedExampleIsWhatOneFindsByHand) {
  const WorkedExample worked = demonstrate_exactness(1).worked;
  EXPECT_THAT(worked.whole, ElementsAre(1, 2, 4, 7));
  EXPECT_THAT(worked.by_columns, ElementsAre(ElementsAre(1, 2), ElementsAre(4, 7)));
  EXPECT_THAT(worked.joined, ElementsAre(1, 2, 4, 7));
  EXPECT_THAT(worked.by_rows, ElementsAre(ElementsAre(1, 0, 2, 1), ElementsAre(0, 2, 2, 6)));
  EXPECT_THAT(worked.summed, ElementsAre(1, 2, 4, 7));
}

TEST(Exact, EveryDemonstrationIsAsExpectedWhateverTheOperands) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    for (const Demonstration& shown : demonstrate_exactness(seed).demonstrations) {
      EXPECT_TRUE(shown.as_expected()) << shown.name << " with seed " << seed << ": off by "
                                       << shown.error << ", bound " << shown.bound;
    }
  }
}

// What double precision gives, to the order of magnitude: a bound alone could be far too wide.
TEST(Exact, DifferencesHaveTheOrderOfMagnitudeOfRounding) {
  auto found = by_name(demonstrate_exactness(1));
  EXPECT_LE(found["equal_shards"].error, 4.5e-16);  // two units in the last place of 1
  EXPECT_LE(found["uneven_shards_weighted"].error, 1e-15);
  EXPECT_EQ(found["column_split"].error, 0.0);
  EXPECT_GT(found["row_split"].error, 0.0);
  EXPECT_LE(found["row_split"].error, 5e-14);
  EXPECT_LE(found["mlp_columns_then_rows"].error, 2e-14);
  EXPECT_LE(found["mlp_rows_then_columns_exchanged"].error, 2e-14);
  EXPECT_GT(found["uneven_shards_plain"].error, 1e-2);
  EXPECT_LT(found["uneven_shards_plain"].error, 0.5);
}

// An all-reduce of S bytes sends 2 (N - 1) S over all ranks, an all-gather to S bytes (N - 1) S.
TEST(Exact, ColumnsThenRowsSendOneAllReduceAndNothingInBetween) {
  auto found = by_name(demonstrate_exactness(1));
  const int64_t others = kExactRanks - 1, element = 8;
  EXPECT_EQ(found["mlp_columns_then_rows"].bytes, 2 * others * 16 * 64 * element);
  EXPECT_EQ(found["mlp_rows_then_columns"].bytes, others * 16 * 64 * element);
  EXPECT_EQ(found["mlp_rows_then_columns_exchanged"].bytes,
            (2 * others * 16 * 256 + others * 16 * 64) * element);
}

TEST(Exact, TwoRunsGiveTheSameNumbers) {
  const ExactReport once = demonstrate_exactness(3), twice = demonstrate_exactness(3);
  ASSERT_EQ(once.demonstrations.size(), twice.demonstrations.size());
  for (size_t i = 0; i < once.demonstrations.size(); ++i) {
    EXPECT_EQ(once.demonstrations[i].error, twice.demonstrations[i].error);
  }
}

TEST(Exact, WhatIsNoNumberIsNeverAsExpected) {
  Demonstration shown;
  shown.bound = 1;
  shown.error = std::nan("");
  EXPECT_FALSE(shown.as_expected());
  shown.expected = Expected::wrong;
  EXPECT_FALSE(shown.as_expected());
}

TEST(Exact, OneUnexpectedDemonstrationSpoilsTheReport) {
  ExactReport report = demonstrate_exactness(1);
  EXPECT_TRUE(report.as_expected());
  report.demonstrations.back().error = 1;
  EXPECT_FALSE(report.as_expected());
  report = demonstrate_exactness(1);
  report.worked.summed[2] = 5;
  EXPECT_FALSE(report.as_expected());
}

}  // namespace
}  // namespace tessera::train
