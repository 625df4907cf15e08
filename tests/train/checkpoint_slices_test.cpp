#include "train/checkpoint_slices.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tessera::train {
namespace {

using core::Shape;
using parallel::ElementRange;

TEST(CheckpointSlices, CutARunOfAMatrixIntoTheRestOfARowWholeRowsAndTheBeginningOfARow) {
  const std::vector<FlatBlock> blocks = blocks_of({10, 7}, {5, 7 * 4});
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
        for (const FlatBlock& block : blocks_of(shape, {first, end - first})) {
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

/// A GPT-2 whose sizes divide by nothing.
account::ParameterTable odd_table(int64_t lora_rank = 0) {
  spec::ModelConfig model = spec::family_defaults(spec::Architecture::gpt2);
  model.hidden_size = 20;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 4;
  model.vocab_size = 67;
  model.max_position_embeddings = 9;
  spec::LoraConfig lora;
  lora.rank = lora_rank;
  return account::parameter_table(spec::resolved(model), lora);
}

TEST(CheckpointSlices, OfAllRanksHoldEveryElementOnceInEveryLayout) {
  for (const int64_t lora_rank : {0, 3}) {
    const account::ParameterTable table = odd_table(lora_rank);
    for (const account::Sharding& sharding :
         {account::Sharding{0, 1, 3}, account::Sharding{1, 5, 1}, account::Sharding{2, 2, 3},
          account::Sharding{3, 7, 1}, account::Sharding{3, 3, 2}}) {
      const int64_t ranks = sharding.shards * sharding.replicas;
      core::MemoryLedger ledger;
      const parallel::ModelState state(table, spec::TrainingConfig{}, /*for_training=*/true, ledger,
                                       {sharding, 0});
      std::set<int64_t> writers;
      for (size_t i = 0; i < table.parameters.size(); ++i) {
        const account::Parameter& parameter = table.parameters[i];
        std::set<std::string> keys;
        int64_t next = 0;
        for (const OwnedBlock& slice : slices_of(state, i, ranks)) {
          ASSERT_EQ(slice.block.first, next) << parameter.name;
          next += slice.block.shape.elements();
          ASSERT_LT(slice.rank, ranks);
          writers.insert(slice.rank);
          EXPECT_TRUE(keys.insert(key_of(parameter, parallel::StateKind::m, slice.block)).second);
          if (!state.is_split(parameter)) continue;
          // It is the writer's own.
          const ElementRange own = state.owned_range(parameter, slice.rank % sharding.shards);
          EXPECT_GE(slice.block.first, own.first);
          EXPECT_LE(next, own.first + own.count);
        }
        EXPECT_EQ(next, parameter.elements()) << parameter.name;
      }
      EXPECT_EQ(static_cast<int64_t>(writers.size()), ranks) << "a rank that writes nothing";
    }
  }
}

TEST(CheckpointSlices, AreNamedByWhatTheyHold) {
  const account::ParameterTable table = odd_table();
  const account::Parameter& embedding = *table.find(0, account::Role::token_embedding);
  const auto key = [&](parallel::StateKind kind, const ElementRange& range) {
    return key_of(embedding, kind, blocks_of(embedding.shape, range).at(0));
  };
  EXPECT_EQ(key(parallel::StateKind::weights, {0, 67 * 20}), "model.embed_tokens.weight");
  EXPECT_EQ(key(parallel::StateKind::m, {0, 67 * 20}), "m.model.embed_tokens.weight");
  EXPECT_EQ(key(parallel::StateKind::v, {65, 15}), "v.model.embed_tokens.weight[3:4, 5:20]");
}

}  // namespace
}  // namespace tessera::train
