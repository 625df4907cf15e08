#include "parallel/mesh_groups.h"

#include <gtest/gtest.h>

#include <mutex>

#include "account/model_part.h"
#include "parallel/mesh_ranks.h"

namespace tessera::parallel {
namespace {

using core::DType;
using core::View;
using testing::all_well;
using testing::run_mesh;

spec::RunConfig layout(int64_t pp, int64_t dp, int64_t tp, int64_t kv_heads = 8) {
  spec::RunConfig config;
  config.model = spec::family_defaults(spec::Architecture::llama);
  config.model.hidden_size = 32;
  config.model.num_hidden_layers = 4;
  config.model.num_attention_heads = 8;
  config.model.num_key_value_heads = kv_heads;
  config.model.vocab_size = 33;
  config.model.intermediate_size = 48;
  config.model.tie_word_embeddings = true;
  config.training.global_batch_size = 8 * dp;
  config.training.micro_batch_size = 1;
  config.parallelism.pipeline_parallel_degree = pp;
  config.parallelism.data_parallel_degree = dp;
  config.parallelism.tensor_parallel_degree = tp;
  return config;
}

/// The numbers in the world of a group's ranks, in the group's order.
std::vector<int64_t> ranks_of(comm::Communicator& group, int64_t rank) {
  std::vector<int64_t> ranks(static_cast<size_t>(group.size()));
  group.all_gather(View{ranks.data(), DType::i64, {group.size()}},
                   core::ConstView{&rank, DType::i64, {1}});
  return ranks;
}

using Find = std::function<comm::Communicator&(MeshGroups&)>;

/// Of every rank of a mesh the ranks of one of its groups.
std::vector<std::vector<int64_t>> members(const spec::RunConfig& config, const Find& find) {
  std::vector<std::vector<int64_t>> members(
      static_cast<size_t>(spec::mesh_of(config.parallelism).size()));
  EXPECT_EQ(run_mesh(config,
                     [&](MeshGroups& groups) {
                       const int64_t rank = groups.world().rank();
                       members[static_cast<size_t>(rank)] = ranks_of(find(groups), rank);
                     }),
            all_well(config));
  return members;
}

using Members = std::vector<std::vector<int64_t>>;

TEST(MeshGroups, AreTheLinesOfTheMesh) {
  const spec::RunConfig config = layout(2, 2, 2);
  EXPECT_EQ(members(config, [](MeshGroups& g) -> comm::Communicator& { return g.tp(); }),
            (Members{{0, 1}, {0, 1}, {2, 3}, {2, 3}, {4, 5}, {4, 5}, {6, 7}, {6, 7}}));
  EXPECT_EQ(
      members(config, [](MeshGroups& g) -> comm::Communicator& { return g.data_parallel().all(); }),
      (Members{{0, 2}, {1, 3}, {0, 2}, {1, 3}, {4, 6}, {5, 7}, {4, 6}, {5, 7}}));
  const Members pipelines{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_EQ(members(config, [](MeshGroups& g) -> comm::Communicator& { return g.pp_forward(); }),
            pipelines);
  EXPECT_EQ(members(config, [](MeshGroups& g) -> comm::Communicator& { return g.pp_backward(); }),
            pipelines);
}

TEST(MeshGroups, PairTheEndsOfAPipelineWhereTheHeadIsTied) {
  const auto embedding = [](MeshGroups& g) -> comm::Communicator& { return g.embedding(); };
  spec::RunConfig config = layout(4, 1, 2);
  EXPECT_EQ(members(config, embedding),
            (Members{{0, 6}, {1, 7}, {2}, {3}, {4}, {5}, {0, 6}, {1, 7}}));
  const Members alone{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
  config.model.tie_word_embeddings = false;
  EXPECT_EQ(members(config, embedding), alone);
  config.model.tie_word_embeddings = true;
  config.parallelism.pipeline_schedule = "zb-v";  // the first rank has the last stage
  config.parallelism.virtual_stages = 2;
  config.parallelism.layers_per_stage = {1, 1, 1, 1, 0, 0, 0, 0};
  EXPECT_EQ(members(config, embedding), alone);
}

TEST(MeshGroups, SumOverThoseThatHoldTheSameValues) {
  const auto copies = [](const char* name) {
    return [name](MeshGroups& groups) -> comm::Communicator& {
      const spec::RunConfig config = layout(1, 1, 8, 2);
      const account::ParameterTable table = account::parameter_table(
          config.model, {}, account::part_of(config, groups.world().rank()));
      return groups.copies(*table.find(name));
    };
  };
  const spec::RunConfig config = layout(1, 1, 8, 2);  // two key-value heads over eight ranks
  const std::vector<int64_t> low{0, 1, 2, 3}, high{4, 5, 6, 7}, all{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(members(config, copies("model.layers.1.self_attn.k_proj.weight")),
            (Members{low, low, low, low, high, high, high, high}));
  EXPECT_EQ(members(config, copies("model.norm.weight")), Members(8, all));
  EXPECT_EQ(members(config, copies("model.layers.1.self_attn.q_proj.weight")),
            (Members{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
}

TEST(MeshGroups, OfDataParallelismAloneAreTheWorldAndItsShards) {
  spec::RunConfig config = layout(1, 4, 1);
  for (const int64_t shards : {1, 2, 4}) {
    config.parallelism.zero_stage = shards > 1 ? 2 : 0;
    config.parallelism.shard_degree = shards;
    EXPECT_EQ(run_mesh(config,
                       [&](MeshGroups& groups) {
                         DataParallel& dp = groups.data_parallel();
                         CHECK(&dp.all() == &groups.world());
                         CHECK(groups.memory_bytes() == dp.memory_bytes());
                         for (const Axis axis : {Axis::tp, Axis::pp}) {
                           CHECK(groups.memory_bytes(axis) == 0);
                         }
                         CHECK(groups.tp().size() == 1 && groups.pp_forward().size() == 1);
                       }),
              all_well(config));
  }
}

TEST(MeshGroups, CountWhatIsSentByAxis) {
  const spec::RunConfig config = layout(2, 2, 2);
  EXPECT_EQ(run_mesh(config,
                     [](MeshGroups& groups) {
                       std::vector<double> values(6, 1.0);
                       const auto sum = [&](comm::Communicator& group, int64_t elements) {
                         group.all_reduce(View{values.data(), DType::f64, {elements}},
                                          comm::ReduceOp::sum);
                       };
                       sum(groups.tp(), 2);
                       sum(groups.pp_forward(), 4);
                       sum(groups.data_parallel().all(), 6);
                       // A ring of two sends everything once.
                       CHECK(groups.traffic(Axis::tp).all_reduce == 2 * 8);
                       CHECK(groups.traffic(Axis::pp).all_reduce == 4 * 8);
                       CHECK(groups.traffic(Axis::dp).all_reduce == 6 * 8);
                       sum(groups.world(), 4);
                       CHECK(groups.traffic(Axis::dp).all_reduce > 6 * 8);
                       CHECK(groups.traffic(Axis::tp).all_reduce == 2 * 8);
                       for (const Axis axis : kAxes) {
                         CHECK(groups.memory_bytes(axis) > 0);
                         CHECK(groups.busy_seconds(axis) > 0);
                       }
                     }),
            all_well(config));
}

TEST(MeshGroups, DrawEveryAxisOnItsLane) {
  const spec::RunConfig config = layout(2, 1, 2);
  EXPECT_EQ(run_mesh(config,
                     [](MeshGroups& groups) {
                       trace::Recorder recorder;
                       groups.record(&recorder);
                       groups.tp().barrier();
                       groups.pp_backward().barrier();
                       groups.world().barrier();
                       groups.record(nullptr);
                       groups.world().barrier();
                       std::array<int, trace::kNumLanes> spans{};
                       for (const trace::Span& span : recorder.take()) {
                         ++spans[static_cast<size_t>(span.lane)];
                       }
                       for (const Axis axis : kAxes) {
                         CHECK(spans[static_cast<size_t>(lane_of(axis))] == 1);
                       }
                     }),
            all_well(config));
}

TEST(MeshGroups, AreNamedInMessages) {
  const spec::RunConfig config = layout(2, 1, 2);
  const std::vector<std::string> errors = run_mesh(config, [](MeshGroups& groups) {
    std::vector<double> values(2);
    const bool odd = groups.world().rank() == 3;
    groups.tp().all_reduce(View{values.data(), DType::f64, {odd ? 1 : 2}}, comm::ReduceOp::sum);
  });
  EXPECT_NE(errors[3].find("group tp (ranks 2, 3)"), std::string::npos) << errors[3];
}

TEST(MeshGroups, OfOneRankCostNothing) {
  MeshGroups groups;
  EXPECT_EQ(groups.world().size(), 1);
  EXPECT_EQ(groups.tp().size(), 1);
  EXPECT_EQ(groups.pp_backward().size(), 1);
  EXPECT_EQ(groups.embedding().size(), 1);
  EXPECT_EQ(groups.memory_bytes(), 0);
}

TEST(MeshGroups, RefuseAWorldOfAnotherSize) {
  const auto comms = comm::make_thread_communicators(1, {});
  EXPECT_THROW(MeshGroups(*comms[0], layout(2, 1, 1)), core::InternalError);
}

}  // namespace
}  // namespace tessera::parallel
