#include "account/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera::account {
namespace {

using testing::ElementsAre;

/// embed, two blocks and head, of 100, 30, 30 and 5 trained elements.
ParameterTable four_units() {
  ParameterTable table;
  for (const int64_t elements : {100, 30, 30, 5}) {
    Unit unit;
    unit.elements = elements;
    table.units.push_back(unit);
  }
  return table;
}

std::vector<std::string> as_text(const std::vector<Bucket>& buckets) {
  std::vector<std::string> text;
  for (const Bucket& bucket : buckets) {
    text.push_back(std::to_string(bucket.first) + "+" + std::to_string(bucket.count));
  }
  return text;
}

TEST(Sharding, IsNoneInStage0AndInAGroupOfOne) {
  spec::ParallelismConfig parallelism;
  parallelism.data_parallel_degree = 6;
  EXPECT_EQ(sharding_of(parallelism).shards, 1);
  EXPECT_EQ(sharding_of(parallelism).replicas, 6);
  parallelism.zero_stage = 3;
  EXPECT_EQ(sharding_of(parallelism).shards, 6);
  parallelism.shard_degree = 2;
  EXPECT_EQ(sharding_of(parallelism).shards, 2);
  EXPECT_EQ(sharding_of(parallelism).replicas, 3);
  parallelism.shard_degree = 1;
  EXPECT_EQ(sharding_of(parallelism).stage, 0);
}

TEST(GradientBuckets, BeginWithTheLastUnitsAndCloseOnceTheyAreFull) {
  const ParameterTable table = four_units();
  EXPECT_THAT(as_text(gradient_buckets(table, 4, 0)), ElementsAre("3+1", "2+1", "1+1", "0+1"));
  EXPECT_THAT(as_text(gradient_buckets(table, 4, 4 * 35)), ElementsAre("2+2", "0+2"));
  EXPECT_THAT(as_text(gradient_buckets(table, 4, 4 * 36)), ElementsAre("1+3", "0+1"));
  EXPECT_THAT(as_text(gradient_buckets(table, 4, 1 << 20)), ElementsAre("0+4"));
}

TEST(UnitUses, GoThereAndBackWithTheHeadOnce) {
  const ParameterTable table = four_units();
  EXPECT_THAT(unit_uses(table, false, true), ElementsAre(0, 1, 2, 3, 2, 1));
  EXPECT_THAT(unit_uses(table, false, false), ElementsAre(0, 1, 2, 3));
}

TEST(UnitUses, NeedATiedEmbeddingAgainForTheHead) {
  const ParameterTable table = four_units();
  EXPECT_THAT(unit_uses(table, true, true), ElementsAre(0, 1, 2, 3, 0, 2, 1));
  EXPECT_THAT(unit_uses(table, true, false), ElementsAre(0, 1, 2, 3, 0));
}

TEST(WholeBlocks, AreNeverMoreThanThereAre) {
  EXPECT_EQ(gathered_blocks(12, 0), 1);
  EXPECT_EQ(gathered_blocks(12, 1), 2);
  EXPECT_EQ(gathered_blocks(2, 9), 2);
  EXPECT_EQ(gradient_blocks(12, true), 2);
  EXPECT_EQ(gradient_blocks(12, false), 1);
  EXPECT_EQ(gradient_blocks(1, true), 1);
}

}  // namespace
}  // namespace tessera::account
