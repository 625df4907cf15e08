#include "parallel/model_state.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tessera::parallel {
namespace {

using core::ConstView;
using core::DType;

spec::ModelConfig small_model() {
  spec::ModelConfig config;
  config.hidden_size = 10;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.vocab_size = 13;
  config.max_position_embeddings = 7;
  return spec::resolved(config);
}

/// The states of all ranks of one shard group.
struct Group {
  Group(int64_t stage, int64_t shards, spec::Precision precision, int64_t lora_rank = 0) {
    spec::LoraConfig lora;
    lora.rank = lora_rank;
    table = account::parameter_table(small_model(), lora);
    spec::TrainingConfig training;
    training.precision = precision;
    for (int64_t rank = 0; rank < shards; ++rank) {
      ranks.push_back(std::make_unique<ModelState>(table, training, /*for_training=*/true, ledger,
                                                   StatePlace{{stage, shards, 1}, rank}));
    }
  }
  core::MemoryLedger ledger;
  account::ParameterTable table;
  std::vector<std::unique_ptr<ModelState>> ranks;
};

std::vector<float> floats_of(ConstView view) {
  const auto* values = view.as<float>();
  return {values, values + view.elements()};
}

TEST(ModelState, IsOwnedByOneRankOfAShardGroupElementByElement) {
  for (const int64_t shards : {2, 3, 5, 7}) {
    for (const int64_t stage : {1, 2, 3}) {
      const Group group(stage, shards, spec::Precision::bf16);
      for (const account::Parameter& parameter : group.table.parameters) {
        int64_t next = 0;
        for (const auto& rank : group.ranks) {
          const ElementRange range = rank->owned_range(parameter);
          if (range.count == 0) continue;
          EXPECT_EQ(range.first, next) << parameter.name;
          next += range.count;
          EXPECT_EQ(rank->owned(StateKind::m, parameter).elements(), range.count);
          EXPECT_EQ(rank->owned(StateKind::gradients, parameter).elements(), range.count);
        }
        EXPECT_EQ(next, parameter.elements()) << parameter.name;
      }
    }
  }
}

TEST(ModelState, StartsFromTheSameModelHoweverItIsCut) {
  Group whole(0, 1, spec::Precision::fp32);
  whole.ranks[0]->initialise(5);
  for (const int64_t shards : {2, 3, 7}) {
    Group group(3, shards, spec::Precision::fp32);
    for (auto& rank : group.ranks) rank->initialise(5);
    for (size_t i = 0; i < whole.table.parameters.size(); ++i) {
      std::vector<float> values;
      for (const auto& rank : group.ranks) {
        const auto part = rank->owned(StateKind::master, group.table.parameters[i]);
        if (part.elements() == 0) continue;
        const std::vector<float> floats = floats_of(part);
        values.insert(values.end(), floats.begin(), floats.end());
      }
      EXPECT_EQ(values,
                floats_of(whole.ranks[0]->owned(StateKind::master, whole.table.parameters[i])));
    }
  }
}

TEST(ModelState, TakesItsPartOfAllValues) {
  Group group(2, 3, spec::Precision::bf16);
  const account::Parameter& parameter = *group.table.find("model.layers.1.mlp.up_proj.weight");
  std::vector<float> values(static_cast<size_t>(parameter.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (auto& rank : group.ranks) {
    rank->set(StateKind::master, parameter, {values.data(), DType::f32, parameter.shape});
    const ElementRange range = rank->owned_range(parameter);
    if (range.count == 0) continue;
    const auto owned = rank->owned(StateKind::master, parameter);
    EXPECT_EQ(owned.as<float>()[0], static_cast<float>(range.first));
    EXPECT_EQ(owned.as<float>()[range.count - 1],
              static_cast<float>(range.first + range.count - 1));
  }
}

TEST(ModelState, KeepsWhatIsFrozenOnEveryRankUntilStage3) {
  for (const int64_t stage : {1, 2, 3}) {
    const Group group(stage, 2, spec::Precision::bf16, /*lora_rank=*/3);
    const account::Parameter& frozen = *group.table.find("model.layers.0.self_attn.q_proj.weight");
    const auto lora = *group.table.find("model.layers.0.self_attn.q_proj.lora_A.weight");
    for (const auto& rank : group.ranks) {
      EXPECT_EQ(rank->is_split(frozen), stage == 3);
      EXPECT_TRUE(rank->is_split(lora));
      EXPECT_FALSE(rank->has(StateKind::m, frozen));
      if (stage == 3) continue;
      EXPECT_EQ(rank->owned_range(frozen).count, frozen.elements());
    }
  }
}

TEST(ModelState, BindsForLayersWhatIsWhole) {
  for (const int64_t stage : {0, 1, 2, 3}) {
    const Group group(stage, stage == 0 ? 1 : 2, spec::Precision::bf16);
    const model::UnitBuffers& buffers = group.ranks[0]->parameters().buffers(1);
    EXPECT_EQ(static_cast<bool>(buffers.trained), stage < 3);
    EXPECT_EQ(static_cast<bool>(buffers.gradients), stage < 2);
  }
}

}  // namespace
}  // namespace tessera::parallel
