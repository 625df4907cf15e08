#include "account/model_part.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "spec/mesh.h"

namespace tessera::account {
namespace {

spec::RunConfig small(spec::Architecture architecture) {
  spec::RunConfig config;
  config.model = spec::family_defaults(architecture);
  config.model.hidden_size = 16;
  config.model.num_hidden_layers = 8;
  config.model.num_attention_heads = 8;
  config.model.num_key_value_heads = architecture == spec::Architecture::llama ? 2 : 8;
  config.model.head_dim = 4;
  config.model.intermediate_size = 24;
  config.model.vocab_size = 37;
  config.model.max_position_embeddings = 9;
  config.training.global_batch_size = 8;
  config.training.micro_batch_size = 1;
  config.parallelism.data_parallel_degree = 1;
  return config;
}

spec::RunConfig llama() {
  return small(spec::Architecture::llama);
}

ParameterTable whole_table(const spec::RunConfig& config) {
  return parameter_table(config.model, config.lora);
}

ParameterTable table_of(const spec::RunConfig& config, int64_t rank) {
  return parameter_table(config.model, config.lora, part_of(config, rank));
}

spec::RunConfig with_tp(spec::RunConfig config, int64_t tp) {
  config.parallelism.tensor_parallel_degree = tp;
  return config;
}

spec::RunConfig with_pp(spec::RunConfig config, int64_t pp, int64_t chunks = 1,
                        const std::string& schedule = "1f1b") {
  config.parallelism.pipeline_parallel_degree = pp;
  config.parallelism.virtual_stages = chunks;
  config.parallelism.pipeline_schedule = schedule;
  return config;
}

const Parameter& find(const ParameterTable& table, const std::string& name) {
  const Parameter* parameter = table.find(name);
  EXPECT_NE(parameter, nullptr) << name;
  return *parameter;
}

std::string layout_of(const spec::RunConfig& config) {
  const spec::ParallelismConfig& parallelism = config.parallelism;
  return std::to_string(parallelism.tensor_parallel_degree) + " tp, " +
         std::to_string(parallelism.pipeline_parallel_degree) + " pp, " +
         std::to_string(parallelism.virtual_stages) + " chunks";
}

/// Many meshes, of models with grouped heads, biases, tied heads, adapters and an odd vocabulary.
std::vector<spec::RunConfig> layouts() {
  std::vector<spec::RunConfig> models = {small(spec::Architecture::gpt2), llama()};
  models.push_back(llama());
  models.back().model.tie_word_embeddings = true;
  models.back().model.qk_norm = true;
  models.back().model.attention_bias = spec::AttentionBias::qkv;
  models.back().lora.rank = 3;
  models.back().lora.targets = {"all-linear"};
  std::vector<spec::RunConfig> layouts;
  for (const spec::RunConfig& model : models) {
    for (const int64_t tp : {1, 2, 4, 8}) {
      layouts.push_back(with_tp(model, tp));
      layouts.push_back(with_pp(with_tp(model, tp), 2));
      layouts.push_back(with_pp(with_tp(model, tp), 4));
      layouts.push_back(with_pp(with_tp(model, tp), 2, 2, "interleaved"));
      layouts.push_back(with_pp(with_tp(model, tp), 4, 2, "zb-v"));
      layouts.back().parallelism.sequence_parallel = tp > 1;
    }
  }
  return layouts;
}

TEST(ModelPart, OfOneRankIsTheWholeModel) {
  for (const spec::RunConfig& config : {small(spec::Architecture::gpt2), llama()}) {
    const ParameterTable whole = whole_table(config);
    const ParameterTable table = table_of(config, 0);
    ASSERT_EQ(table.parameters.size(), whole.parameters.size());
    for (size_t i = 0; i < whole.parameters.size(); ++i) {
      EXPECT_EQ(table.parameters[i].name, whole.parameters[i].name);
      EXPECT_EQ(table.parameters[i].shape, whole.parameters[i].shape);
      EXPECT_EQ(table.parameters[i].offset, whole.parameters[i].offset);
      EXPECT_EQ(table.parameters[i].copies, 1);
      EXPECT_TRUE(table.parameters[i].counted);
    }
    EXPECT_EQ(table.num_elements(), whole.num_elements());
  }
}

TEST(ModelPart, CountsEveryElementOfTheModelOnceOverAllRanks) {
  for (const spec::RunConfig& config : layouts()) {
    std::map<std::string, std::vector<int>> times;
    for (const Parameter& parameter : whole_table(config).parameters) {
      times[parameter.name].resize(static_cast<size_t>(parameter.elements()));
    }
    for (int64_t rank = 0; rank < spec::mesh_of(config.parallelism).size(); ++rank) {
      for (const Parameter& parameter : table_of(config, rank).parameters) {
        if (!parameter.counted) continue;
        std::vector<int>& of = times[parameter.name];
        int64_t next = 0;
        for_each_run(parameter, 0, parameter.elements(),
                     [&](int64_t in_whole, int64_t in_part, int64_t count) {
                       EXPECT_EQ(in_part, next) << parameter.name;
                       next = in_part + count;
                       ASSERT_LE(in_whole + count, static_cast<int64_t>(of.size()));
                       for (int64_t i = 0; i < count; ++i) ++of[static_cast<size_t>(in_whole + i)];
                     });
      }
    }
    for (const auto& [name, counts] : times) {
      const std::vector<int> once(counts.size(), 1);
      EXPECT_EQ(counts, once) << name << " over " << layout_of(config);
    }
  }
}

TEST(ModelPart, RunsOfARangeAreThoseOfAllThatLieInIt) {
  const spec::RunConfig config = with_tp(llama(), 4);
  for (const Parameter& parameter : table_of(config, 3).parameters) {
    std::map<int64_t, int64_t> whole_of;  // element by element
    for_each_run(parameter, 0, parameter.elements(),
                 [&](int64_t in_whole, int64_t in_part, int64_t count) {
                   for (int64_t i = 0; i < count; ++i) whole_of[in_part + i] = in_whole + i;
                 });
    const int64_t first = parameter.elements() / 3, count = parameter.elements() / 2;
    std::map<int64_t, int64_t> of_range;
    for_each_run(parameter, first, count, [&](int64_t in_whole, int64_t in_part, int64_t run) {
      for (int64_t i = 0; i < run; ++i) of_range[in_part + i] = in_whole + i;
    });
    whole_of.erase(whole_of.begin(), whole_of.lower_bound(first));
    whole_of.erase(whole_of.lower_bound(first + count), whole_of.end());
    EXPECT_EQ(of_range, whole_of) << parameter.name;
  }
}

TEST(ModelPart, LaysItsParametersOfAUnitEndToEnd) {
  for (const spec::RunConfig& config : layouts()) {
    const ParameterTable whole = whole_table(config);
    for (int64_t rank = 0; rank < spec::mesh_of(config.parallelism).size(); ++rank) {
      const ParameterTable table = table_of(config, rank);
      int next = 0;
      for (size_t u = 0; u < table.units.size(); ++u) {
        const Unit& unit = table.units[u];
        EXPECT_EQ(unit.first, next);
        int64_t offset = 0;
        for (int i = unit.first; i < unit.first + unit.count; ++i) {
          const Parameter& parameter = table.parameters[static_cast<size_t>(i)];
          EXPECT_EQ(parameter.unit, static_cast<int>(u)) << parameter.name;
          EXPECT_EQ(parameter.offset, offset) << parameter.name;
          EXPECT_EQ(parameter.trainable, offset >= unit.trainable_begin) << parameter.name;
          offset += parameter.elements();
        }
        EXPECT_EQ(unit.elements, offset) << unit.name;
        next += unit.count;
      }
      EXPECT_EQ(next, static_cast<int>(table.parameters.size()));
    }
  }
}

TEST(ModelPart, IsAsLargeOnEveryTensorParallelRank) {
  for (const int64_t tp : {2, 4, 8}) {
    const spec::RunConfig config = with_tp(llama(), tp);
    for (int64_t rank = 1; rank < tp; ++rank) {
      EXPECT_EQ(table_of(config, rank).num_elements(), table_of(config, 0).num_elements());
    }
  }
}

TEST(ModelPart, KeepsTheKeysOfRandomValuesAndTheirScale) {
  spec::RunConfig config = with_pp(with_tp(llama(), 2), 4);
  config.lora.rank = 2;
  const ParameterTable whole = whole_table(config);
  for (int64_t rank = 0; rank < 8; ++rank) {
    for (const Parameter& parameter : table_of(config, rank).parameters) {
      const Parameter& of = find(whole, parameter.name);
      EXPECT_EQ(parameter.init_key, of.init_key) << parameter.name;
      EXPECT_EQ(parameter.init_std, of.init_std) << parameter.name;
      EXPECT_EQ(parameter.whole, of.shape) << parameter.name;
    }
  }
}

TEST(ModelPart, PadsTheVocabularyOfTheLastRanks) {
  const spec::RunConfig config = with_tp(llama(), 8);  // 37 rows: 5 a rank, 2 on the last
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    for (int64_t rank = 0; rank < 8; ++rank) {
      const ParameterTable table = table_of(config, rank);
      const Parameter& parameter = find(table, name);
      EXPECT_EQ(parameter.shape, (core::Shape{5, 16}));
      EXPECT_EQ(parameter.begin, 5 * rank);
      EXPECT_EQ(parameter.padding, rank == 7 ? 3 : 0);
    }
  }
  spec::RunConfig tiny = config;
  tiny.model.vocab_size = 5;  // a row a rank: three have nothing but padding
  const ParameterTable last = table_of(tiny, 7);
  const Parameter& parameter = find(last, "lm_head.weight");
  EXPECT_EQ(parameter.padding, 1);
  for_each_run(parameter, 0, parameter.elements(),
               [](int64_t, int64_t, int64_t) { ADD_FAILURE() << "padding is no run"; });
}

TEST(ModelPart, RepeatsKeysAndValuesWhereTheirHeadsAreFewerThanTheRanks) {
  const spec::RunConfig config = with_tp(llama(), 8);  // two heads of width 4
  for (int64_t rank = 0; rank < 8; ++rank) {
    const ParameterTable table = table_of(config, rank);
    const Parameter& key = find(table, "model.layers.3.self_attn.k_proj.weight");
    EXPECT_EQ(key.shape, (core::Shape{4, 16}));
    EXPECT_EQ(key.begin, rank < 4 ? 0 : 4);
    EXPECT_EQ(key.copies, 4);
    EXPECT_TRUE(key.partial_gradient);
    EXPECT_EQ(key.counted, rank % 4 == 0);
    const Parameter& query = find(table, "model.layers.3.self_attn.q_proj.weight");
    EXPECT_EQ(query.copies, 1);
    EXPECT_FALSE(query.partial_gradient);
  }
  const ParameterTable two = table_of(with_tp(llama(), 2), 1);
  const Parameter& key = find(two, "model.layers.3.self_attn.k_proj.weight");
  EXPECT_EQ(key.copies, 1);
  EXPECT_FALSE(key.partial_gradient);
}

TEST(ModelPart, CutsRowProductsByColumns) {
  const ParameterTable table = table_of(with_tp(llama(), 4), 2);
  const Parameter& down = find(table, "model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(down.shape, (core::Shape{16, 6}));
  EXPECT_EQ(down.begin, 12);
  std::vector<int64_t> begins;
  for_each_run(down, 0, 18, [&](int64_t in_whole, int64_t, int64_t count) {
    begins.push_back(in_whole);
    EXPECT_EQ(count, 6);
  });
  EXPECT_EQ(begins, (std::vector<int64_t>{12, 12 + 24, 12 + 48}));
}

/// The parameters of layer 0 and the head whose copies' gradients are summands.
std::vector<Role> partial_roles(const spec::RunConfig& config) {
  std::vector<Role> roles;
  for (const Parameter& parameter : table_of(config, 0).parameters) {
    const bool other_layer = parameter.name.find("layers.") != std::string::npos &&
                             parameter.name.find("layers.0.") == std::string::npos;
    if (parameter.partial_gradient && !other_layer) roles.push_back(parameter.role);
  }
  return roles;
}

TEST(ModelPart, SumsTheGradientsOfWhatSeesAPartOfTheRows) {
  spec::RunConfig config = with_tp(llama(), 2);
  config.model.qk_norm = true;
  EXPECT_EQ(partial_roles(config), (std::vector<Role>{Role::q_norm_weight, Role::k_norm_weight}));
  config.parallelism.sequence_parallel = true;
  EXPECT_EQ(partial_roles(config),
            (std::vector<Role>{Role::input_norm_weight, Role::q_norm_weight, Role::k_norm_weight,
                               Role::post_attention_norm_weight, Role::final_norm_weight}));
  config = with_tp(small(spec::Architecture::gpt2), 2);
  config.lora.rank = 2;
  config.lora.targets = {"q_proj", "o_proj"};
  EXPECT_EQ(partial_roles(config), std::vector<Role>{});
  config.parallelism.sequence_parallel = true;
  EXPECT_EQ(partial_roles(config),
            (std::vector<Role>{Role::input_norm_weight, Role::input_norm_bias,
                               Role::post_attention_norm_weight, Role::post_attention_norm_bias,
                               Role::q_lora_a, Role::o_lora_b, Role::final_norm_weight,
                               Role::final_norm_bias}));
}

std::vector<std::string> units_of(const ParameterTable& table) {
  std::vector<std::string> names;
  for (const Unit& unit : table.units) {
    names.push_back(std::to_string(unit.chunk) + " " + unit.name);
    if (unit.tied_copy) names.back() += " (copy)";
  }
  return names;
}

TEST(ModelPart, HasTheUnitsOfItsStagesChunkByChunk) {
  const spec::RunConfig loop = with_pp(llama(), 2, 2, "interleaved");
  EXPECT_EQ(units_of(table_of(loop, 0)),
            (std::vector<std::string>{"0 embed", "0 layers.0", "0 layers.1", "1 layers.4",
                                      "1 layers.5"}));
  EXPECT_EQ(
      units_of(table_of(loop, 1)),
      (std::vector<std::string>{"0 layers.2", "0 layers.3", "1 layers.6", "1 layers.7", "1 head"}));
  const ParameterTable back = table_of(with_pp(llama(), 2, 2, "zb-v"), 0);
  EXPECT_EQ(units_of(back), (std::vector<std::string>{"0 embed", "0 layers.0", "0 layers.1",
                                                      "1 layers.6", "1 layers.7", "1 head"}));
  EXPECT_EQ(back.units[3].layer, 6);
  EXPECT_EQ(back.units[3].kind, UnitKind::block);
}

TEST(ModelPart, HasACopyOfATiedEmbeddingWhereTheHeadIsAlone) {
  spec::RunConfig tied = llama();
  tied.model.tie_word_embeddings = true;
  EXPECT_EQ(units_of(table_of(with_pp(tied, 4), 3)),
            (std::vector<std::string>{"0 layers.6", "0 layers.7", "0 head", "0 embed (copy)"}));
  for (const int64_t rank : {0, 1}) {  // rank 0 embeds and has the head, rank 1 neither
    for (const Unit& unit : table_of(with_pp(tied, 2, 2, "zb-v"), rank).units) {
      EXPECT_FALSE(unit.tied_copy);
    }
  }
  const spec::RunConfig gpt2 = with_pp(with_tp(small(spec::Architecture::gpt2), 2), 2);
  const ParameterTable first = table_of(gpt2, 1);
  const ParameterTable last = table_of(gpt2, 3);
  const Unit& copy = last.units.back();
  EXPECT_EQ(copy.elements, first.units.front().elements);  // positions too: ZeRO cuts both alike
  EXPECT_EQ(copy.kind, UnitKind::embedding);
  for (int i = copy.first; i < copy.first + copy.count; ++i) {
    EXPECT_FALSE(last.parameters[static_cast<size_t>(i)].counted);
  }
}

TEST(ModelPart, RefusesADegreeThatDoesNotDivideTheModel) {
  EXPECT_THROW(table_of(with_tp(llama(), 3), 0), core::InternalError);
}

}  // namespace
}  // namespace tessera::account
