#include "cli/mesh_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

spec::RunConfig of_mesh(int64_t tp, int64_t pp, int64_t dp) {
  spec::RunConfig config;
  config.model.num_hidden_layers = 4;
  config.model.tie_word_embeddings = true;
  config.parallelism.tensor_parallel_degree = tp;
  config.parallelism.pipeline_parallel_degree = pp;
  config.parallelism.data_parallel_degree = dp;
  config.parallelism.layers_per_stage = {3, 1};
  config.training.global_batch_size = 8;
  return spec::resolved(config, tp * pp * dp);
}

TEST(MeshTable, ShowsRanksStagesAndTheGroupsOfEveryAxis) {
  EXPECT_EQ(mesh_table(of_mesh(2, 2, 2)),
            "mesh of 8 ranks: pp 2 × dp 2 × tp 2\n"
            "    pp   dp  ranks by tp\n"
            "     0    0  0 1   stage 0: embedding, blocks 0–2\n"
            "     0    1  2 3\n"
            "     1    0  4 5   stage 1: block 3, head\n"
            "     1    1  6 7\n"
            "groups:\n"
            "  tp        0 1 | 2 3 | 4 5 | 6 7\n"
            "  dp        0 2 | 1 3 | 4 6 | 5 7\n"
            "  pp        0 4 | 1 5 | 2 6 | 3 7\n"
            "  embedding 0 4 | 1 5 | 2 6 | 3 7\n");
}

TEST(MeshTable, HasNoEmbeddingGroupWhereOneRankHasBothEnds) {
  spec::RunConfig config = of_mesh(1, 2, 1);
  config.parallelism.pipeline_schedule = "zb-v";
  config.parallelism.virtual_stages = 2;
  config.parallelism.layers_per_stage = {1, 1, 1, 1};
  const std::string table = mesh_table(config);
  EXPECT_THAT(table, HasSubstr("0   stage 0: embedding, block 0; stage 3: block 3, head\n"));
  EXPECT_THAT(table, Not(HasSubstr("embedding ")));
  config.parallelism.pipeline_schedule = "interleaved";
  EXPECT_THAT(mesh_table(config), HasSubstr("  embedding 0 1\n"));
}

TEST(MeshTable, ShowsTheFirstOfManyGroups) {
  EXPECT_THAT(mesh_table(of_mesh(2, 2, 16)), HasSubstr("14 15 | …\n"));
}

TEST(HasMesh, IsForRanksThatHoldPartsOfAModel) {
  EXPECT_FALSE(has_mesh(of_mesh(1, 1, 4)));
  EXPECT_TRUE(has_mesh(of_mesh(2, 1, 1)));
}

}  // namespace
}  // namespace tessera::cli
