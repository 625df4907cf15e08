#include "account/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera::account {
namespace {

using testing::ElementsAre;

/// embed, two blocks and head, of 100, 30, 30 and 5 trained elements.
ParameterTable four_units(bool tied = true) {
  ParameterTable table;
  for (const int64_t elements : {100, 30, 30, 5}) {
    Unit unit;
    unit.elements = elements;
    table.units.push_back(unit);
  }
  table.units.front().kind = UnitKind::embedding;
  table.units.back().kind = UnitKind::head;
  if (!tied) {
    Parameter head;
    head.role = Role::head_weight;
    table.units.back().count = 1;
    table.parameters.push_back(head);
  }
  return table;
}

std::vector<int> uses(const ParameterTable& table, const std::vector<ChunkPass>& passes,
                      bool training) {
  std::vector<int> units;
  for (const UnitUse& use : unit_plan(table, passes, training).uses) units.push_back(use.unit);
  return units;
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
  const ParameterTable table = four_units(/*tied=*/false);
  EXPECT_THAT(uses(table, whole_passes(1), true), ElementsAre(0, 1, 2, 3, 2, 1));
  EXPECT_THAT(uses(table, {{spec::ActionKind::forward, 0}}, false), ElementsAre(0, 1, 2, 3));
}

TEST(UnitUses, NeedATiedEmbeddingAgainForTheHead) {
  const ParameterTable table = four_units(/*tied=*/true);
  EXPECT_THAT(uses(table, whole_passes(1), true), ElementsAre(0, 1, 2, 3, 0, 2, 1));
  EXPECT_THAT(uses(table, {{spec::ActionKind::forward, 0}}, false), ElementsAre(0, 1, 2, 3, 0));
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
