#include "train/checkpoint_slices.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "account/model_part.h"
#include "spec/mesh.h"

namespace tessera::train {
namespace {

using core::Shape;
using parallel::ElementRange;

TEST(CheckpointSlices, CutARunOfAMatrixIntoTheRestOfARowWholeRowsAndTheBeginningOfARow) {
  const std::vector<Block> blocks = blocks_of({10, 7}, {5, 7 * 4});
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].offset, (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(blocks[0].shape, (Shape{1, 2}));
  EXPECT_EQ(blocks[1].offset, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(blocks[1].shape, (Shape{3, 7}));
  EXPECT_EQ(blocks[2].offset, (std::vector<int64_t>{4, 0}));
  EXPECT_EQ(blocks[2].shape, (Shape{1, 5}));
}

TEST(CheckpointSlices, AreNoMoreThanTheRunNeeds) {
  EXPECT_EQ(blocks_of({10, 7}, {0, 70}).size(), 1u);
  EXPECT_EQ(blocks_of({10, 7}, {14, 21}).size(), 1u);
  EXPECT_EQ(blocks_of({10, 7}, {15, 3}).size(), 1u);
  EXPECT_EQ(blocks_of({10, 7}, {15, 7}).size(), 2u);
  EXPECT_EQ(blocks_of({10}, {3, 4}).size(), 1u);
  EXPECT_EQ(blocks_of({}, {0, 1}).size(), 1u);
  EXPECT_EQ(blocks_of({10, 7}, {}).size(), 0u);
}

TEST(CheckpointSlices, HoldEveryElementOfEveryRunOnceAndInOrder) {
  const Shape shapes[] = {{24}, {4, 6}, {6, 4}, {2, 3, 4}, {3, 1, 8}, {2, 2, 3, 2}};
  for (const Shape& shape : shapes) {
    for (int64_t first = 0; first < 24; ++first) {
      for (int64_t end = first; end <= 24; ++end) {
        int64_t next = first;
        for (const Block& block : blocks_of(shape, {first, end - first})) {
          ASSERT_EQ(block.first, next);
          int64_t at = 0;
          for (int dim = 0; dim < shape.dims(); ++dim) {
            const int64_t offset = block.offset[static_cast<size_t>(dim)];
            ASSERT_LE(offset + block.shape[dim], shape[dim]);
            at = at * shape[dim] + offset;
          }
          ASSERT_EQ(at, block.first);
          // Neighbours: beyond the first dimension that is longer than 1, all are whole.
          bool whole = false;
          for (int dim = 0; dim < shape.dims(); ++dim) {
            ASSERT_TRUE(!whole || block.shape[dim] == shape[dim]);
            whole = whole || block.shape[dim] > 1;
          }
          next += block.shape.elements();
        }
        ASSERT_EQ(next, end);
      }
    }
  }
}

/// A model whose sizes divide by little, over data-parallel ranks in a stage of ZeRO.
spec::RunConfig odd_config(int64_t stage, int64_t shards, int64_t replicas) {
  spec::RunConfig config;
  config.model = spec::family_defaults(spec::Architecture::llama);
  config.model.hidden_size = 20;
  config.model.intermediate_size = 36;
  config.model.num_hidden_layers = 2;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.vocab_size = 67;
  config.model.tie_word_embeddings = true;
  config.training.global_batch_size = 8 * shards * replicas;
  config.training.micro_batch_size = 1;
  config.parallelism.zero_stage = stage;
  config.parallelism.shard_degree = shards;
  config.parallelism.data_parallel_degree = shards * replicas;
  return spec::resolved(config, shards * replicas);
}

spec::RunConfig in_mesh(spec::RunConfig config, int64_t tp, int64_t pp) {
  config.parallelism.tensor_parallel_degree = tp;
  config.parallelism.pipeline_parallel_degree = pp;
  return config;
}

/// Adds one to every element of a block of a tensor.
void count(const Block& block, const Shape& whole, std::vector<int>& times) {
  for (int64_t i = 0; i < block.shape.elements(); ++i) {
    int64_t at = 0, stride = 1, index = i;
    for (int dim = whole.dims() - 1; dim >= 0; --dim) {
      at += (block.offset[static_cast<size_t>(dim)] + index % block.shape[dim]) * stride;
      index /= block.shape[dim];
      stride *= whole[dim];
    }
    ++times.at(static_cast<size_t>(at));
  }
}

TEST(CheckpointSlices, OfAllRanksHoldEveryElementOnceInEveryLayout) {
  std::vector<spec::RunConfig> layouts = {odd_config(0, 1, 3), odd_config(1, 5, 1),
                                          odd_config(2, 2, 3), odd_config(3, 7, 1),
                                          odd_config(3, 3, 2)};
  layouts.push_back(in_mesh(odd_config(0, 1, 2), 4, 1));
  layouts.push_back(in_mesh(odd_config(3, 3, 1), 2, 2));
  layouts.push_back(in_mesh(odd_config(1, 2, 2), 4, 2));
  for (const int64_t lora_rank : {0, 3}) {
    for (spec::RunConfig config : layouts) {
      config.lora.rank = lora_rank;
      const spec::Mesh mesh = spec::mesh_of(config.parallelism);
      const account::Sharding sharding = account::sharding_of(config.parallelism);
      std::map<std::string, std::vector<int>> times;
      for (const auto& parameter : account::parameter_table(config.model, config.lora).parameters) {
        times[parameter.name].resize(static_cast<size_t>(parameter.elements()));
      }
      for (int64_t rank = 0; rank < mesh.size(); ++rank) {
        const int64_t dp = mesh.at(rank).dp;
        const account::ParameterTable table =
            account::parameter_table(config.model, config.lora, account::part_of(config, rank));
        core::MemoryLedger ledger;
        const parallel::ModelState state(table, config.training, /*for_training=*/true, ledger,
                                         {sharding, dp % sharding.shards});
        bool writes = false;
        std::set<std::string> keys;
        for (size_t i = 0; i < table.parameters.size(); ++i) {
          const account::Parameter& parameter = table.parameters[i];
          const ElementRange own = state.owned_range(parameter);
          for (const Block& slice : slices_of(state, i, dp)) {
            writes = true;
            EXPECT_GE(slice.first, own.first);
            EXPECT_LE(slice.first + slice.shape.elements(), own.first + own.count);
            count(slice, parameter.whole, times[parameter.name]);
            EXPECT_TRUE(
                keys.insert(key_of(parameter.name, parameter.whole, parallel::StateKind::m, slice))
                    .second);
          }
        }
        EXPECT_TRUE(writes) << "rank " << rank << " writes nothing";
      }
      for (const auto& [name, counts] : times) {
        EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << name;
      }
    }
  }
}

TEST(CheckpointSlices, AreNamedByWhatTheyHold) {
  const Shape shape{67, 20};
  const auto key = [&](parallel::StateKind kind, const ElementRange& range) {
    return key_of("model.embed_tokens.weight", shape, kind, blocks_of(shape, range).at(0));
  };
  EXPECT_EQ(key(parallel::StateKind::weights, {0, 67 * 20}), "model.embed_tokens.weight");
  EXPECT_EQ(key(parallel::StateKind::m, {0, 67 * 20}), "m.model.embed_tokens.weight");
  EXPECT_EQ(key(parallel::StateKind::v, {65, 15}), "v.model.embed_tokens.weight[3:4, 5:20]");
}

}  // namespace
}  // namespace tessera::train
