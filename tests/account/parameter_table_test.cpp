#include "account/parameter_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tessera::account {
namespace {

spec::ModelConfig preset(const char* name) {
  return spec::find_model_preset(name)->config;
}

spec::ModelConfig small() {
  spec::ModelConfig config;
  config.hidden_size = 48;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.vocab_size = 101;
  config.max_position_embeddings = 40;
  return config;
}

TEST(ParameterTable, CountsThePublishedGpt2Sizes) {
  EXPECT_EQ(parameter_table(preset("gpt2-124m")).num_elements(), 124'439'808);
  EXPECT_EQ(parameter_table(preset("gpt2-355m")).num_elements(), 354'823'168);
  EXPECT_EQ(parameter_table(preset("gpt2-774m")).num_elements(), 774'030'080);
  EXPECT_EQ(parameter_table(preset("gpt2-1558m")).num_elements(), 1'557'611'200);
}

TEST(ParameterTable, CountsThePublishedSizesOfTheLlamaFamily) {
  EXPECT_EQ(parameter_table(preset("llama-125m")).num_elements(), 124'668'672);
  EXPECT_EQ(parameter_table(preset("llama-2-7b")).num_elements(), 6'738'415'616);
  EXPECT_EQ(parameter_table(preset("llama-2-13b")).num_elements(), 13'015'864'320);
  EXPECT_EQ(parameter_table(preset("llama-2-70b")).num_elements(), 68'976'648'192);
  EXPECT_EQ(parameter_table(preset("llama-3-8b")).num_elements(), 8'030'261'248);
  EXPECT_EQ(parameter_table(preset("llama-3-70b")).num_elements(), 70'553'706'496);
  EXPECT_EQ(parameter_table(preset("llama-3-405b")).num_elements(), 405'853'388'800);
  EXPECT_EQ(parameter_table(preset("qwen3-0.6b")).num_elements(), 596'049'920);
  EXPECT_EQ(parameter_table(preset("qwen3-8b")).num_elements(), 8'190'735'360);
}

TEST(ParameterTable, OfThePlannersShapesIsWhatTheirNamesSay) {
  EXPECT_NEAR(static_cast<double>(parameter_table(preset("gpt3-175b")).num_elements()), 175e9, 1e9);
  EXPECT_NEAR(static_cast<double>(parameter_table(preset("gpt-1t")).num_elements()), 1.008e12, 2e9);
}

spec::ModelConfig small_llama() {
  spec::ModelConfig config = spec::family_defaults(spec::Architecture::llama);
  config.hidden_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 20;
  config.intermediate_size = 64;
  config.vocab_size = 101;
  return config;
}

TEST(ParameterTable, HasBiasesAndQkNormsOnlyWhereTheConfigSays) {
  spec::ModelConfig config = small_llama();
  // Two norms and seven products a block; the embedding, the last norm and the head.
  EXPECT_EQ(parameter_table(config).parameters.size(), 2 * 9 + 3u);
  config.attention_bias = spec::AttentionBias::qkv;
  EXPECT_EQ(parameter_table(config).parameters.size(), 2 * 12 + 3u);
  EXPECT_EQ(parameter_table(config).find(1, Role::o_bias), nullptr);
  config.attention_bias = spec::AttentionBias::all;
  config.mlp_bias = true;
  EXPECT_EQ(parameter_table(config).parameters.size(), 2 * 16 + 3u);
  config.qk_norm = true;
  EXPECT_EQ(parameter_table(config).parameters.size(), 2 * 18 + 3u);
  EXPECT_EQ(parameter_table(config).find(1, Role::q_norm_weight)->shape, core::Shape{20});
}

TEST(ParameterTable, PutsGateAndUpSideBySide) {
  const ParameterTable table = parameter_table(small_llama());
  const Parameter* gate = table.find(1, Role::gate_weight);
  EXPECT_EQ(table.find(1, Role::up_weight)->offset, gate->offset + gate->elements());
}

TEST(ParameterTable, OfAdaptersTrainsNothingElse) {
  spec::LoraConfig lora;
  lora.rank = 4;
  lora.targets = {"v_proj", "gate_proj"};
  const ParameterTable table = parameter_table(small_llama(), lora);
  // A [4, in] and B [out, 4] of v (48 → 40) and gate (48 → 64), in two blocks.
  EXPECT_EQ(table.num_trainable_elements(), 2 * 4 * ((48 + 40) + (48 + 64)));
  for (const Parameter& parameter : table.parameters) {
    const bool adapter = parameter.name.find(".lora_") != std::string::npos;
    EXPECT_EQ(parameter.trainable, adapter) << parameter.name;
    const Unit& unit = table.units[static_cast<size_t>(parameter.unit)];
    EXPECT_EQ(parameter.offset >= unit.trainable_begin, adapter) << parameter.name;
  }
  EXPECT_EQ(table.find("model.layers.1.self_attn.v_proj.lora_B.weight")->shape,
            (core::Shape{40, 4}));
  EXPECT_NE(table.find("model.layers.0.mlp.gate_proj.lora_A.weight"), nullptr);
}

TEST(ParameterTable, DrawsTheBaseAlikeWithAdaptersAndWithout) {
  spec::LoraConfig lora;
  lora.rank = 4;
  const ParameterTable adapted = parameter_table(small_llama(), lora);
  for (const Parameter& parameter : parameter_table(small_llama()).parameters) {
    EXPECT_EQ(adapted.find(parameter.name)->init_key, parameter.init_key) << parameter.name;
  }
}

TEST(ParameterTable, TakesAllLinearForEveryProductOfTheFamily) {
  spec::LoraConfig lora;
  lora.rank = 2;
  lora.targets = {"all-linear"};
  const size_t llama = parameter_table(small_llama(), lora).parameters.size();
  EXPECT_EQ(llama, parameter_table(small_llama()).parameters.size() + 2 * 2 * 7u);
  const size_t gpt2 = parameter_table(small(), lora).parameters.size();
  EXPECT_EQ(gpt2, parameter_table(small()).parameters.size() + 3 * 2 * 6u);
}

TEST(ParameterTable, WidensAttentionByAnExplicitHeadDim) {
  const ParameterTable table = parameter_table(small_llama());
  EXPECT_EQ(table.find(1, Role::q_weight)->shape, (core::Shape{80, 48}));
  EXPECT_EQ(table.find(1, Role::k_weight)->shape, (core::Shape{40, 48}));
  EXPECT_EQ(table.find(1, Role::o_weight)->shape, (core::Shape{48, 80}));
}

TEST(ParameterTable, OfTheSmallPresetsIsWhatTheirNamesSay) {
  spec::ModelConfig toy = preset("gpt2-1m");
  toy.vocab_size = 256;
  EXPECT_NEAR(static_cast<double>(parameter_table(toy).num_elements()), 1e6, 0.1e6);
  spec::ModelConfig ten = preset("gpt2-10m");
  ten.vocab_size = 4096;
  EXPECT_NEAR(static_cast<double>(parameter_table(ten).num_elements()), 10e6, 0.5e6);
  toy = preset("llama-1m");
  toy.vocab_size = 256;
  EXPECT_NEAR(static_cast<double>(parameter_table(toy).num_elements()), 1e6, 0.1e6);
  ten = preset("llama-10m");
  ten.vocab_size = 4096;
  EXPECT_NEAR(static_cast<double>(parameter_table(ten).num_elements()), 10e6, 0.5e6);
}

TEST(ParameterTable, LaysParametersOfAUnitEndToEnd) {
  const ParameterTable table = parameter_table(small());
  int next = 0;
  for (size_t u = 0; u < table.units.size(); ++u) {
    const Unit& unit = table.units[u];
    EXPECT_EQ(unit.first, next);
    int64_t offset = 0;
    for (int i = unit.first; i < unit.first + unit.count; ++i) {
      const Parameter& parameter = table.parameters[static_cast<size_t>(i)];
      EXPECT_EQ(parameter.unit, static_cast<int>(u)) << parameter.name;
      EXPECT_EQ(parameter.offset, offset) << parameter.name;
      offset += parameter.elements();
    }
    EXPECT_EQ(unit.elements, offset) << unit.name;
    next += unit.count;
  }
  EXPECT_EQ(next, static_cast<int>(table.parameters.size()));
}

TEST(ParameterTable, OrdersUnitsFromTheEmbeddingToTheHead) {
  const ParameterTable table = parameter_table(small());
  std::vector<std::string> names;
  for (const Unit& unit : table.units) names.push_back(unit.name);
  EXPECT_EQ(names, (std::vector<std::string>{"embed", "layers.0", "layers.1", "layers.2", "head"}));
}

TEST(ParameterTable, PutsQKAndVSideBySideWithTheirBiasesAfterThem) {
  const ParameterTable table = parameter_table(small());
  const Role run[] = {Role::q_weight, Role::k_weight, Role::v_weight,
                      Role::q_bias,   Role::k_bias,   Role::v_bias};
  int64_t expected = table.find(1, Role::q_weight)->offset;
  for (const Role role : run) {
    const Parameter* parameter = table.find(1, role);
    EXPECT_EQ(parameter->offset, expected) << parameter->name;
    expected += parameter->elements();
  }
}

TEST(ParameterTable, GivesGroupedKeyValueHeadsNarrowerProducts) {
  spec::ModelConfig config = small();
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  const ParameterTable table = parameter_table(config);
  EXPECT_EQ(table.find(2, Role::q_weight)->shape, (core::Shape{64, 48}));
  EXPECT_EQ(table.find(2, Role::k_weight)->shape, (core::Shape{32, 48}));
  EXPECT_EQ(table.find(2, Role::o_weight)->shape, (core::Shape{48, 64}));
}

TEST(ParameterTable, HasAHeadOfItsOwnOnlyWhenUntied) {
  spec::ModelConfig config = small();
  const ParameterTable tied = parameter_table(config);
  EXPECT_EQ(tied.find("lm_head.weight"), nullptr);
  config.tie_word_embeddings = false;
  const ParameterTable untied = parameter_table(config);
  ASSERT_NE(untied.find("lm_head.weight"), nullptr);
  EXPECT_EQ(untied.find("lm_head.weight")->shape, (core::Shape{101, 48}));
  EXPECT_EQ(untied.num_elements() - tied.num_elements(), 101 * 48);
}

TEST(ParameterTable, DecaysMatricesAndNothingElse) {
  for (const Parameter& parameter : parameter_table(small()).parameters) {
    EXPECT_EQ(parameter.decay, parameter.shape.dims() == 2) << parameter.name;
  }
}

TEST(ParameterTable, InitialisesAsGpt2Does) {
  const ParameterTable table = parameter_table(small());
  const double residual = 0.02 / std::sqrt(6.0);
  EXPECT_DOUBLE_EQ(table.find("model.layers.1.self_attn.q_proj.weight")->init_std, 0.02);
  EXPECT_DOUBLE_EQ(table.find("model.layers.1.self_attn.o_proj.weight")->init_std, residual);
  EXPECT_DOUBLE_EQ(table.find("model.layers.1.mlp.down_proj.weight")->init_std, residual);
  EXPECT_DOUBLE_EQ(table.find("model.embed_positions.weight")->init_std, 0.02);
  EXPECT_EQ(table.find("model.norm.weight")->init, Init::ones);
  EXPECT_EQ(table.find("model.layers.2.mlp.up_proj.bias")->init, Init::zeros);
}

TEST(ParameterTable, NamesEveryParameterOnce) {
  std::set<std::string> names;
  const ParameterTable table = parameter_table(small());
  for (const Parameter& parameter : table.parameters) names.insert(parameter.name);
  EXPECT_EQ(names.size(), table.parameters.size());
  EXPECT_EQ(names.size(), 2u + 3u * 16u + 2u);
}

TEST(ParameterTable, FindsNothingOutsideItself) {
  const ParameterTable table = parameter_table(small());
  EXPECT_EQ(table.find(-1, Role::q_weight), nullptr);
  EXPECT_EQ(table.find(5, Role::q_weight), nullptr);
  EXPECT_EQ(table.find(0, Role::q_weight), nullptr);
  EXPECT_EQ(table.find("model.layers.3.mlp.up_proj.bias"), nullptr);
}

}  // namespace
}  // namespace tessera::account
