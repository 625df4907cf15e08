#include "formats/peft.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tessera::formats {
namespace {

spec::ModelConfig model(spec::Architecture architecture) {
  spec::ModelConfig config = spec::family_defaults(architecture);
  config.hidden_size = 12;
  config.intermediate_size = 20;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.vocab_size = 7;
  return spec::resolved(config);
}

spec::LoraConfig lora(std::vector<std::string> targets) {
  spec::LoraConfig config;
  config.rank = 4;
  config.alpha = 6;
  config.targets = std::move(targets);
  return config;
}

TEST(Peft, NamesLlamasAdaptersByTheModulesTheyStandBeside) {
  const spec::ModelConfig llama = model(spec::Architecture::llama);
  const account::ParameterTable table =
      account::parameter_table(llama, lora({"q_proj", "down_proj"}));
  const std::vector<PeftTensor> tensors = peft_tensors(llama, table);
  ASSERT_EQ(tensors.size(), 8u);
  EXPECT_EQ(tensors[0].name, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(tensors[0].shape, (core::Shape{4, 12}));
  EXPECT_EQ(tensors[3].name, "base_model.model.model.layers.0.mlp.down_proj.lora_B.weight");
  EXPECT_EQ(tensors[3].shape, (core::Shape{12, 4}));
  EXPECT_EQ(tensors[3].parts.size(), 1u);
}

TEST(Peft, MakesOneAdapterOfWhatGpt2Fuses) {
  const spec::ModelConfig gpt2 = model(spec::Architecture::gpt2);
  const account::ParameterTable table =
      account::parameter_table(gpt2, lora({"q_proj", "v_proj", "up_proj"}));
  const std::vector<PeftTensor> tensors = peft_tensors(gpt2, table);
  ASSERT_EQ(tensors.size(), 8u);
  EXPECT_EQ(tensors[4].name, "base_model.model.transformer.h.1.attn.c_attn.lora_A.weight");
  EXPECT_EQ(tensors[4].shape, (core::Shape{8, 12}));
  EXPECT_EQ(tensors[5].shape, (core::Shape{36, 8}));
  EXPECT_EQ(tensors[4].parts[1].row, 4);   // v's A below q's
  EXPECT_EQ(tensors[5].parts[1].row, 24);  // v's outputs behind q's and k's
  EXPECT_EQ(tensors[5].parts[1].column, 4);
  EXPECT_EQ(tensors[5].parts[1].parameter->name, "model.layers.1.self_attn.v_proj.lora_B.weight");
}

TEST(Peft, TellsTheRankOfWhatWasFused) {
  const auto config = nlohmann::json::parse(peft_config_json(
      model(spec::Architecture::gpt2), lora({"q_proj", "v_proj", "up_proj"}), "base"));
  EXPECT_EQ(config["r"], 4);
  EXPECT_EQ(config["lora_alpha"], 6.0);
  EXPECT_EQ(config["rank_pattern"]["attn.c_attn"], 8);
  EXPECT_EQ(config["alpha_pattern"]["attn.c_attn"], 12.0);
  EXPECT_FALSE(config["rank_pattern"].contains("mlp.c_fc"));
  EXPECT_EQ(config["fan_in_fan_out"], true);
  EXPECT_EQ(config["base_model_name_or_path"], "base");
}

}  // namespace
}  // namespace tessera::formats
