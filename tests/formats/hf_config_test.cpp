#include "formats/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tessera::formats {
namespace {

using nlohmann::json;
using spec::AttentionBias;
using spec::ModelConfig;
using spec::RopeType;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

json gpt2() {
  return {{"model_type", "gpt2"}, {"n_embd", 32},      {"n_layer", 2},
          {"n_head", 4},          {"n_positions", 24}, {"vocab_size", 67},
          {"resid_pdrop", 0},     {"embd_pdrop", 0},   {"attn_pdrop", 0}};
}

json llama(const std::string& type = "llama") {
  json config = {{"model_type", type},
                 {"hidden_size", 64},
                 {"intermediate_size", 96},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"max_position_embeddings", 128},
                 {"vocab_size", 100},
                 {"head_dim", nullptr},
                 {"sliding_window", nullptr}};
  return config;
}

json with(json config, const json& changes) {
  config.update(changes);
  return config;
}

HfConfig read(const json& config) {
  return parse_hf_config(config.dump(), "m/config.json");
}

std::string refusal_of_text(const std::string& text) {
  try {
    parse_hf_config(text, "m/config.json");
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("m/config.json"));
    return error.what();
  }
  return "accepted";
}
std::string refusal(const json& config) {
  return refusal_of_text(config.dump());
}

TEST(HfConfigReading, KnowsGpt2sOwnNames) {
  const ModelConfig model = read(gpt2()).model;
  EXPECT_EQ(model.architecture, spec::Architecture::gpt2);
  EXPECT_EQ(model.hidden_size, 32);
  EXPECT_EQ(model.num_hidden_layers, 2);
  EXPECT_EQ(model.num_attention_heads, 4);
  EXPECT_EQ(model.max_position_embeddings, 24);
  EXPECT_EQ(model.vocab_size, 67);
  EXPECT_EQ(model.head_dim, 8);
  EXPECT_EQ(model.norm_eps, 1e-5);
  EXPECT_THAT(read(gpt2()).notes, IsEmpty());
}

TEST(HfConfigReading, TakesGpt2sMlpWidthFromNInnerUnlessThatIsNull) {
  EXPECT_EQ(read(with(gpt2(), {{"n_inner", nullptr}})).model.intermediate_size, 128);
  EXPECT_EQ(read(with(gpt2(), {{"n_inner", 100}})).model.intermediate_size, 100);
}

TEST(HfConfigReading, TiesTheHeadByTheTypesDefault) {
  EXPECT_TRUE(read(gpt2()).model.tie_word_embeddings);
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"}) {
    EXPECT_FALSE(read(llama(type)).model.tie_word_embeddings) << type;
  }
  EXPECT_TRUE(read(with(llama(), {{"tie_word_embeddings", true}})).model.tie_word_embeddings);
}

TEST(HfConfigReading, AcceptsTheTanhFormsOfGeluAndListsThemOtherwise) {
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh"}) {
    EXPECT_NO_THROW(read(with(gpt2(), {{"activation_function", name}}))) << name;
  }
  EXPECT_THAT(refusal(with(gpt2(), {{"activation_function", "gelu"}})),
              AllOf(HasSubstr("erf"), HasSubstr("gelu_new, gelu_pytorch_tanh")));
  EXPECT_THAT(refusal(with(gpt2(), {{"activation_function", "swish9"}})),
              AllOf(HasSubstr("swish9"), HasSubstr("gelu_new")));
  EXPECT_THAT(refusal(with(llama(), {{"hidden_act", "gelu"}})), HasSubstr("silu"));
}

TEST(HfConfigReading, SaysThatDropoutIsAChoiceOfTraining) {
  const HfConfig config = read(with(gpt2(), {{"resid_pdrop", 0.1}}));
  EXPECT_EQ(config.model.dropout, 0);
  EXPECT_THAT(config.notes, Contains(HasSubstr("model.dropout")));
  EXPECT_THAT(read(with(llama(), {{"attention_dropout", 0.1}})).notes,
              Contains(HasSubstr("model.dropout")));
}

TEST(HfConfigReading, RefusesAttentionThatIsScaledInAnotherWay) {
  EXPECT_THAT(refusal(with(gpt2(), {{"scale_attn_weights", false},
                                    {"scale_attn_by_inverse_layer_idx", true}})),
              AllOf(HasSubstr("scale_attn_weights"), HasSubstr("scale_attn_by_inverse_layer_idx")));
  EXPECT_NO_THROW(read(with(gpt2(), {{"reorder_and_upcast_attn", true}})));
}

TEST(HfConfigReading, TakesAnExplicitHeadDimOverTheQuotient) {
  const json wide = {{"hidden_size", 5120}, {"num_attention_heads", 32}, {"head_dim", 128}};
  EXPECT_EQ(read(with(llama(), wide)).model.head_dim, 128);
  // A hidden_size that the heads do not divide is legal then, and only then.
  const json odd = {{"hidden_size", 1792}, {"num_attention_heads", 24}, {"head_dim", 128}};
  EXPECT_EQ(read(with(llama(), odd)).model.head_dim, 128);
  EXPECT_THAT(refusal(with(llama(), {{"hidden_size", 1792}, {"num_attention_heads", 24}})),
              HasSubstr("does not divide hidden_size = 1792"));
}

TEST(HfConfigReading, TakesTheQuotientWhereHeadDimIsNullOrLeftOut) {
  EXPECT_EQ(read(llama()).model.head_dim, 16);
  json absent = llama();
  absent.erase("head_dim");
  EXPECT_EQ(read(absent).model.head_dim, 16);
}

TEST(HfConfigReading, TakesWhatQwen3StartsFromWhereItsKeysAreLeftOut) {
  json config = llama("qwen3");
  config.erase("head_dim");
  config.erase("num_key_value_heads");
  config["num_attention_heads"] = 64;
  const ModelConfig model = read(config).model;
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_EQ(model.num_key_value_heads, 32);
}

TEST(HfConfigReading, SaysThatKvHeadsHaveToDivideHeads) {
  EXPECT_THAT(refusal(with(llama(), {{"num_key_value_heads", 3}})),
              AllOf(HasSubstr("num_key_value_heads = 3"), HasSubstr("4")));
}

TEST(HfConfigReading, KnowsTheBiasesAndNormsOfEachType) {
  EXPECT_EQ(read(llama()).model.attention_bias, AttentionBias::none);
  EXPECT_FALSE(read(llama()).model.mlp_bias);
  const json biased = {{"attention_bias", true}, {"mlp_bias", true}};
  EXPECT_EQ(read(with(llama(), biased)).model.attention_bias, AttentionBias::all);
  EXPECT_TRUE(read(with(llama(), biased)).model.mlp_bias);
  EXPECT_EQ(read(llama("qwen2")).model.attention_bias, AttentionBias::qkv);
  EXPECT_FALSE(read(llama("qwen2")).model.qk_norm);
  EXPECT_TRUE(read(llama("qwen3")).model.qk_norm);
  EXPECT_EQ(read(with(llama("qwen3"), {{"attention_bias", true}})).model.attention_bias,
            AttentionBias::all);
}

TEST(HfConfigReading, RefusesASlidingWindowThatSequencesCouldExceed) {
  EXPECT_NO_THROW(read(llama("mistral")));
  EXPECT_NO_THROW(read(with(llama("mistral"), {{"sliding_window", 128}})));
  EXPECT_THAT(refusal(with(llama("mistral"), {{"sliding_window", 64}})),
              HasSubstr("sliding_window = 64"));
  json absent = with(llama("mistral"), {{"max_position_embeddings", 8192}});
  absent.erase("sliding_window");
  EXPECT_THAT(refusal(absent), HasSubstr("4096"));  // what Mistral starts from
  EXPECT_NO_THROW(read(with(llama("qwen2"), {{"sliding_window", 64}})));
  EXPECT_THAT(refusal(with(llama("qwen2"), {{"sliding_window", 64}, {"use_sliding_window", true}})),
              HasSubstr("sliding_window"));
}

TEST(HfConfigReading, WantsLayersOfFullAttentionAlone) {
  EXPECT_NO_THROW(
      read(with(llama("qwen3"), {{"layer_types", {"full_attention", "full_attention"}}})));
  EXPECT_THAT(
      refusal(with(llama("qwen3"), {{"layer_types", {"full_attention", "sliding_attention"}}})),
      HasSubstr("layer_types"));
}

TEST(HfConfigReading, ListsEveryUnknownKeyAtOnce) {
  EXPECT_THAT(refusal(with(llama(), {{"attn_logit_softcapping", 30},
                                     {"embedding_multiplier", 12},
                                     {"quantization_config", {{"bits", 4}}}})),
              AllOf(HasSubstr("attn_logit_softcapping = 30"), HasSubstr("embedding_multiplier"),
                    HasSubstr("quantization_config")));
  EXPECT_NO_THROW(read(with(llama(), {{"some_new_switch", nullptr}})));
  EXPECT_NO_THROW(read(with(llama(), {{"transformers_version", "5.0"}, {"eos_token_id", 2}})));
}

TEST(HfConfigReading, ListsEveryMissingKeyAtOnce) {
  EXPECT_THAT(
      refusal(json{{"model_type", "llama"}}),
      AllOf(HasSubstr("hidden_size"), HasSubstr("num_hidden_layers"), HasSubstr("vocab_size")));
}

TEST(HfConfigReading, NamesTheModelTypesItKnows) {
  EXPECT_THAT(refusal(json{{"model_type", "mamba"}}),
              AllOf(HasSubstr("mamba"), HasSubstr("gpt2, llama, mistral, qwen2, qwen3")));
  EXPECT_THAT(refusal(json::object()), HasSubstr("model_type"));
}

TEST(HfConfigReading, TellsValuesOfTheWrongTypeOrBeyondWhatIsPossible) {
  EXPECT_THAT(refusal(with(llama(), {{"hidden_size", 64.5}})), HasSubstr("whole number"));
  EXPECT_THAT(refusal(with(llama(), {{"hidden_size", "64"}})), HasSubstr("whole number"));
  EXPECT_THAT(refusal(with(llama(), {{"hidden_size", uint64_t{1} << 63}})),
              HasSubstr("whole number"));
  EXPECT_THAT(refusal(with(llama(), {{"num_hidden_layers", -1}})),
              HasSubstr("num_hidden_layers = -1"));
  EXPECT_THAT(refusal(with(gpt2(), {{"n_embd", 0}})), HasSubstr("n_embd = 0"));
  EXPECT_THAT(refusal(with(llama(), {{"vocab_size", 0}})), HasSubstr("vocab_size"));
  EXPECT_THAT(refusal(with(llama(), {{"rms_norm_eps", "small"}})), HasSubstr("number"));
}

TEST(HfConfigReading, RefusesAKeyThatStandsThereTwice) {
  EXPECT_THAT(refusal_of_text(R"({"model_type": "gpt2", "n_embd": 32, "n_embd": 64})"),
              AllOf(HasSubstr("n_embd"), HasSubstr("twice")));
}

TEST(HfConfigReading, TellsTheLineOfASyntaxError) {
  EXPECT_THAT(refusal_of_text("{\n  \"n_embd\": 32,\n  \"n_head\" 4\n}"), HasSubstr("line 3"));
  EXPECT_THAT(refusal_of_text("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of_text(std::string(100000, '[')), HasSubstr("nested too deeply"));
}

TEST(HfConfigReading, SaysWhatAWrongFolderLacks) {
  EXPECT_THROW(read_hf_config("/no/such/folder"), core::ConfigError);
  try {
    read_hf_config(testing::TempDir());
    FAIL();
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("config.json"));
  }
}

// Rotary positions: the same model in every spelling.

TEST(HfRope, ReadsTheBaseFromOldAndNewKeys) {
  EXPECT_EQ(read(llama()).model.rope_theta, 10000);
  EXPECT_EQ(read(with(llama(), {{"rope_theta", 500000.0}})).model.rope_theta, 500000);
  const json inner = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  const ModelConfig model = read(with(llama(), {{"rope_parameters", inner}})).model;
  EXPECT_EQ(model.rope_theta, 500000);
  EXPECT_EQ(model.rope_scaling.rope_type, RopeType::none);
}

TEST(HfRope, TakesTheInnerBaseWhereTheTwoDisagreeAndSaysSo) {
  const HfConfig config =
      read(with(llama(), {{"rope_theta", 10000},
                          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}}}));
  EXPECT_EQ(config.model.rope_theta, 5e5);
  EXPECT_THAT(config.notes, Contains(HasSubstr("the inner one counts")));
}

TEST(HfRope, ReadsTheOldSpellingOfTheType) {
  const ModelConfig model =
      read(with(llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 4}}}})).model;
  EXPECT_EQ(model.rope_scaling.rope_type, RopeType::linear);
  EXPECT_EQ(model.rope_scaling.factor, 4);
  EXPECT_EQ(read(with(llama(), {{"rope_scaling", nullptr}})).model.rope_scaling,
            spec::RopeScaling{});
}

TEST(HfRope, ReadsLlama3sScalingAndWantsAllOfIt) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 64}};
  const ModelConfig model = read(with(llama(), {{"rope_scaling", scaling}})).model;
  EXPECT_EQ(model.rope_scaling.rope_type, RopeType::llama3);
  EXPECT_EQ(model.rope_scaling.original_max_position_embeddings, 64);
  EXPECT_THAT(refusal(with(llama(), {{"rope_scaling", {{"rope_type", "llama3"}}}})),
              AllOf(HasSubstr("rope_scaling.factor"), HasSubstr("rope_scaling.low_freq_factor"),
                    HasSubstr("rope_scaling.high_freq_factor")));
}

json yarn(const json& more) {
  return with(llama(), {{"rope_scaling", with({{"rope_type", "yarn"}, {"factor", 4.0}}, more)}});
}

TEST(HfRope, ReadsYarnsTemperatureInBothForms) {
  EXPECT_EQ(read(yarn({{"attention_factor", 1.25}})).model.rope_scaling.attention_factor, 1.25);
  EXPECT_EQ(read(yarn({{"mscale", 0.7}})).model.rope_scaling.attention_factor, 0);  // the paper's
  const double both =
      read(yarn({{"mscale", 0.7}, {"mscale_all_dim", 1.3}})).model.rope_scaling.attention_factor;
  EXPECT_NEAR(both, (0.1 * 0.7 * std::log(4.0) + 1) / (0.1 * 1.3 * std::log(4.0) + 1), 1e-15);
  EXPECT_THAT(refusal(yarn({{"truncate", false}})), HasSubstr("truncate"));
}

TEST(HfRope, TakesYarnsFactorFromTheLengthsWhereItIsNull) {
  const json config = yarn({{"factor", nullptr}, {"original_max_position_embeddings", 32}});
  EXPECT_EQ(read(config).model.rope_scaling.factor, 4);
}

TEST(HfRope, NamesTheTypesItKnows) {
  EXPECT_THAT(refusal(with(llama(), {{"rope_scaling", {{"type", "longrope"}, {"factor", 2}}}})),
              AllOf(HasSubstr("longrope"), HasSubstr("default, linear, dynamic, llama3, yarn")));
}

TEST(HfRope, RefusesObjectsThatDisagree) {
  const json config =
      with(llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 4}}},
                     {"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}}}});
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("factor"), HasSubstr("4"), HasSubstr("2")));
}

TEST(HfRope, RefusesKeysWithoutAKnownMeaningAndNotesThoseOfOtherTypes) {
  EXPECT_THAT(refusal(with(llama(), {{"rope_parameters", {{"mrope_section", {1, 2}}}}})),
              HasSubstr("rope_parameters.mrope_section"));
  EXPECT_THAT(refusal(with(llama(), {{"partial_rotary_factor", 0.5}})),
              HasSubstr("partial_rotary_factor"));
  const json linear = {{"rope_type", "linear"}, {"factor", 2}, {"beta_fast", 32}};
  EXPECT_THAT(read(with(llama(), {{"rope_parameters", linear}})).notes,
              Contains(HasSubstr("beta_fast")));
}

// Writing.

TEST(HfConfigWriting, GivesBackWhatItReads) {
  std::vector<json> configs = {gpt2(), with(gpt2(), {{"n_inner", 100}}), llama(), llama("qwen2"),
                               llama("qwen3")};
  configs.push_back(with(llama(), {{"attention_bias", true}, {"mlp_bias", true}}));
  configs.push_back(with(llama(), {{"rope_theta", 5e5}, {"head_dim", 32}}));
  configs.push_back(
      with(llama(), {{"hidden_size", 60}, {"num_attention_heads", 8}, {"head_dim", 16}}));
  configs.push_back(yarn({{"attention_factor", 1.25}, {"beta_fast", 16}}));
  configs.push_back(with(llama(), {{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}}));
  configs.push_back(with(gpt2(), {{"tie_word_embeddings", false}}));
  for (const json& config : configs) {
    const HfConfig first = read(config);
    const std::string text = hf_config_json(first.model, {});
    EXPECT_EQ(parse_hf_config(text, "m/config.json").model, first.model) << text;
    EXPECT_THAT(parse_hf_config(text, "m/config.json").notes, IsEmpty()) << text;
  }
}

TEST(HfConfigWriting, WritesTheKeysOfBothGenerations) {
  HfExport how;
  how.dtype = core::DType::bf16;
  how.separator = 7;
  const json config =
      json::parse(hf_config_json(read(with(llama(), {{"rope_theta", 5e5}})).model, how));
  EXPECT_EQ(config["rope_theta"], 5e5);
  EXPECT_TRUE(config["rope_scaling"].is_null());
  EXPECT_EQ(config["rope_parameters"]["rope_theta"], 5e5);
  EXPECT_EQ(config["rope_parameters"]["rope_type"], "default");
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_EQ(config["dtype"], "bfloat16");
  EXPECT_EQ(config["eos_token_id"], 7);
  EXPECT_EQ(json::parse(hf_generation_config_json(how))["eos_token_id"], 7);
}

TEST(HfConfigWriting, SaysWhyNoModelTypeFits) {
  const auto reason = [](const ModelConfig& model) {
    try {
      return hf_config_json(model, {});
    } catch (const core::ConfigError& error) {
      return std::string(error.what());
    }
  };
  ModelConfig model = read(gpt2()).model;
  model.num_key_value_heads = 2;
  model.mlp_bias = false;
  model.head_dim = 16;
  EXPECT_THAT(reason(model),
              AllOf(HasSubstr("mlp_bias"), HasSubstr("grouped queries"), HasSubstr("head_dim")));
  model = read(llama("qwen3")).model;
  model.mlp_bias = true;
  EXPECT_THAT(reason(model), HasSubstr("mlp_bias"));
  EXPECT_THAT(reason(read(llama("qwen3")).model), Not(HasSubstr("cannot")));
}

}  // namespace
}  // namespace tessera::formats
