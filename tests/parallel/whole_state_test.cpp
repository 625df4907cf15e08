#include "parallel/whole_state.h"

#include <gtest/gtest.h>

#include <mutex>

#include "account/model_part.h"
#include "parallel/mesh_ranks.h"

namespace tessera::parallel {
namespace {

using core::ConstView;
using testing::all_well;
using testing::run_mesh;

spec::RunConfig small_config() {
  spec::RunConfig config;
  config.model = spec::family_defaults(spec::Architecture::llama);
  config.model.hidden_size = 16;
  config.model.num_hidden_layers = 8;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.head_dim = 6;
  config.model.intermediate_size = 20;
  config.model.vocab_size = 19;
  config.model.qk_norm = true;
  config.training.precision = spec::Precision::fp32;
  config.parallelism.data_parallel_degree = 1;
  return config;
}

struct Axes {
  int64_t pp = 1, dp = 1, tp = 1, virtual_stages = 1, zero = 0;
  const char* schedule = "1f1b";
};

spec::RunConfig in_mesh(spec::RunConfig config, const Axes& axes) {
  config.training.global_batch_size = 8 * axes.dp;
  config.training.micro_batch_size = 1;
  config.parallelism.pipeline_parallel_degree = axes.pp;
  config.parallelism.data_parallel_degree = axes.dp;
  config.parallelism.tensor_parallel_degree = axes.tp;
  config.parallelism.virtual_stages = axes.virtual_stages;
  config.parallelism.pipeline_schedule = axes.schedule;
  config.parallelism.zero_stage = axes.zero;
  return config;
}

std::string text_of(const Axes& axes) {
  return "pp " + std::to_string(axes.pp) + " dp " + std::to_string(axes.dp) + " tp " +
         std::to_string(axes.tp) + " v " + std::to_string(axes.virtual_stages) + " zero " +
         std::to_string(axes.zero) + " " + axes.schedule;
}

const std::vector<Axes> kMeshes = {
    {2, 1, 2},    {4, 1, 2},       {2, 1, 1, 2, 0, "interleaved"}, {2, 2, 2, 2, 3, "zb-v"},
    {1, 2, 4, 1}, {4, 2, 1, 1, 1}, {4, 1, 2, 2, 0, "zb-v"}};

/// Names and values of a model as rank 0 visits them.
using Visited = std::vector<std::pair<std::string, std::vector<float>>>;

Visited visit(const spec::RunConfig& config) {
  Visited visited;
  EXPECT_EQ(run_mesh(config,
                     [&](MeshGroups& groups) {
                       const int rank = groups.world().rank();
                       const account::ParameterTable table = account::parameter_table(
                           config.model, config.lora, account::part_of(config, rank));
                       core::MemoryLedger ledger;
                       DataParallel& dp = groups.data_parallel();
                       ModelState state(table, config.training, /*for_training=*/true, ledger,
                                        {dp.sharding(), dp.shard_rank()});
                       state.initialise(5);
                       visit_whole(state, groups, StateKind::master,
                                   [&](const account::Parameter& parameter, ConstView values) {
                                     CHECK(rank == 0 && parameter.cut == -1);
                                     const auto* floats = values.as<float>();
                                     visited.push_back(
                                         {parameter.name, {floats, floats + values.elements()}});
                                   });
                     }),
            all_well(config));
  return visited;
}

TEST(VisitWhole, FindsInEveryMeshTheModelOfOneRankInItsOrder) {
  for (const bool tied : {false, true}) {
    for (const int64_t lora_rank : {0, 3}) {
      spec::RunConfig config = small_config();
      config.model.tie_word_embeddings = tied;
      config.lora.rank = lora_rank;
      const Visited alone = visit(config);
      ASSERT_EQ(alone.size(),
                account::parameter_table(config.model, config.lora).parameters.size());
      for (const Axes& axes : kMeshes) {
        EXPECT_EQ(visit(in_mesh(config, axes)), alone) << text_of(axes);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::parallel
