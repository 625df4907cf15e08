// Against PyTorch: transformers' Llama and Qwen3 with the same weights and tokens (the fixtures of
// make_llama_fixtures.py).

#include <gtest/gtest.h>

#include "model/parity.h"
#include "model/rotary.h"

namespace tessera::model::testing {
namespace {

using spec::RopeType;

// Of the largest logit; fp64 is as far from transformers' fp32 as fp32 is.
constexpr double kLogits = 4e-6;

/// A fixture's name and the config of its script.
struct Model {
  std::string name;
  spec::ModelConfig config;
};

spec::ModelConfig llama(int64_t intermediate, int64_t heads, int64_t kv_heads, int64_t head_dim,
                        int64_t vocab_size, int64_t positions) {
  spec::ModelConfig config = spec::family_defaults(spec::Architecture::llama);
  config.hidden_size = 24;
  config.intermediate_size = intermediate;
  config.num_hidden_layers = 2;
  config.num_attention_heads = heads;
  config.num_key_value_heads = kv_heads;
  config.head_dim = head_dim;
  config.vocab_size = vocab_size;
  config.max_position_embeddings = positions;
  return config;
}

void scale_as_llama3(spec::ModelConfig& config) {
  config.rope_scaling.rope_type = RopeType::llama3;
  config.rope_scaling.factor = 4;
  config.rope_scaling.original_max_position_embeddings = 16;
}

spec::ModelConfig llama_tiny() {
  return llama(40, 4, 2, 8, 53, 24);
}

std::vector<Model> models() {
  spec::ModelConfig biased = llama(36, 3, 3, 10, 41, 64);
  biased.norm_eps = 1e-6;
  biased.tie_word_embeddings = true;
  biased.attention_bias = spec::AttentionBias::all;
  biased.mlp_bias = true;
  scale_as_llama3(biased);
  spec::ModelConfig qwen3 = llama(36, 4, 2, 12, 47, 32);
  qwen3.norm_eps = 1e-6;
  qwen3.tie_word_embeddings = true;
  qwen3.rope_theta = 1e6;
  qwen3.qk_norm = true;
  return {{"llama_tiny", llama_tiny()}, {"llama_biased", biased}, {"qwen3_tiny", qwen3}};
}

/// The model as its Hugging Face folder has it, and what transformers computed with it.
const Fixture& fixture(const std::string& name) {
  static std::map<std::string, Fixture> read;
  Fixture& tensors = read[name];
  if (tensors.empty()) {
    tensors = read_fixture("hf/" + name + "/model.safetensors", "weights.");
    tensors.merge(read_fixture("llama/" + name + ".safetensors"));
  }
  return tensors;
}

class LlamaParityIn : public ::testing::TestWithParam<core::DType> {};
INSTANTIATE_TEST_SUITE_P(Exact, LlamaParityIn,
                         ::testing::Values(core::DType::f32, core::DType::f64),
                         [](const auto& dtype) { return std::string(core::name_of(dtype.param)); });

TEST_P(LlamaParityIn, OfLogits) {
  for (const Model& each : models()) {
    const Fixture& expected = fixture(each.name);
    TinyModel model(each.config, GetParam());
    load_weights(model, expected);
    EXPECT_LT(logits_error(model, fixture_tokens(expected, 0), expected.at("logits")), kLogits)
        << each.name;
    EXPECT_LT(logits_error(model, masked_tokens(expected), expected.at("masked.logits")), kLogits)
        << each.name << ", attention kept inside documents";
  }
}

TEST_P(LlamaParityIn, OfTheLossAndEveryGradient) {
  for (const Model& each : models()) {
    SCOPED_TRACE(each.name);
    TinyModel model(each.config, GetParam());
    load_weights(model, fixture(each.name));
    expect_loss_and_gradients(model, fixture_tokens(fixture(each.name), 0), fixture(each.name), "",
                              1e-5);
  }
}

TEST_P(LlamaParityIn, OfLogitsUnderEveryRopeScaling) {
  spec::ModelConfig linear = llama_tiny(), dynamic = linear, llama3 = linear, yarn = linear;
  linear.rope_scaling.rope_type = RopeType::linear;
  linear.rope_scaling.factor = 2.5;
  dynamic.rope_scaling.rope_type = RopeType::dynamic;
  dynamic.rope_scaling.factor = 2;
  dynamic.max_position_embeddings = 10;
  scale_as_llama3(llama3);
  yarn.rope_scaling.rope_type = RopeType::yarn;
  yarn.rope_scaling.factor = 4;
  yarn.rope_scaling.beta_fast = 4;
  yarn.rope_scaling.beta_slow = 0.5;
  yarn.rope_scaling.original_max_position_embeddings = 16;
  const Fixture& expected = fixture("llama_tiny");
  for (const Model& each : {Model{"linear", linear}, Model{"dynamic", dynamic},
                            Model{"llama3", llama3}, Model{"yarn", yarn}}) {
    TinyModel model(each.config, GetParam());
    load_weights(model, expected);
    const Tokens tokens = fixture_tokens(expected, 0);
    EXPECT_LT(logits_error(model, tokens, expected.at(each.name + ".logits")), kLogits)
        << each.name;
    EXPECT_GT(logits_error(model, tokens, expected.at("logits")), 1e-3)
        << each.name << " should change something";
  }
}

TEST(LlamaParity, OfTenStepsOfAdamw) {
  for (const Model& each : models()) {
    SCOPED_TRACE(each.name);
    TinyModel model(each.config, core::DType::f32);
    load_weights(model, fixture(each.name));
    expect_ten_steps_of_adamw(model, fixture(each.name), {5e-7, 5e-6, 1e-5});
  }
}

TEST(LlamaParity, OfBf16IsWithinItsRounding) {
  for (const Model& each : models()) {
    const Fixture& expected = fixture(each.name);
    TinyModel model(each.config, core::DType::bf16);
    load_weights(model, expected);
    const Tokens tokens = fixture_tokens(expected, 0);
    EXPECT_LT(logits_error(model, tokens, expected.at("logits")), 0.03) << each.name;
    model.train(tokens, mean_over(tokens));
    for (const account::Parameter& entry : model.table.parameters) {
      const std::vector<double> gradient = to_doubles(model.parameter(entry.name).grad);
      EXPECT_LT(relative_l2(gradient, expected.at("gradients." + entry.name).values), 0.1)
          << each.name << " " << entry.name;
    }
  }
}

}  // namespace
}  // namespace tessera::model::testing
