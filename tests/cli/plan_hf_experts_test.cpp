#include "cli/plan_hf_experts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/file.h"
#include "test_folder.h"

namespace tessera::cli {
namespace {

class HfExperts : public ::testing::Test {
 protected:
  std::optional<plan::Model> read(const std::string& config) {
    core::write_atomically((folder_.path() / "config.json").string(), config);
    return read_hf_experts(folder_.path().string(), violations_);
  }

  TestFolder folder_;
  std::vector<spec::Violation> violations_;
};

constexpr const char* kDeepSeekV3 = R"({
  "model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
  "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
  "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
  "n_shared_experts": 1, "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
  "tie_word_embeddings": false})";

TEST_F(HfExperts, OfDeepSeekAreThoseOfThePreset) {
  const auto model = read(kDeepSeekV3);
  ASSERT_TRUE(model.has_value());
  EXPECT_TRUE(violations_.empty());
  const plan::Model preset = *plan::find_model("deepseek-v3");
  EXPECT_EQ(model->experts->top_k, preset.experts->top_k);
  EXPECT_EQ(model->experts->dense_layers, preset.experts->dense_layers);
  EXPECT_EQ(model->latent, preset.latent);
  EXPECT_EQ(count_parameters(*model).total, count_parameters(preset).total);
}

TEST_F(HfExperts, OfMixtralHaveTheWidthOfTheMlp) {
  const auto model = read(R"({"model_type": "mixtral", "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2,
    "vocab_size": 32000, "sliding_window": 4096})");
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(count_parameters(*model).total,
            count_parameters(*plan::find_model("mixtral-8x7b")).total);
  EXPECT_EQ(model->window, 0);
}

TEST_F(HfExperts, AreNotSeenInADenseModel) {
  EXPECT_FALSE(read(R"({"model_type": "llama", "hidden_size": 64})").has_value());
  EXPECT_FALSE(read("[1, 2").has_value());
  EXPECT_TRUE(violations_.empty());
}

TEST_F(HfExperts, WithKeysThatAreMissingOrWrongNameEachOfThem) {
  const auto model = read(R"({"model_type": "mixtral", "num_local_experts": "many",
    "hidden_size": 4096, "num_attention_heads": 0, "num_hidden_layers": -1})");
  ASSERT_TRUE(model.has_value());
  std::vector<std::string> keys;
  for (const spec::Violation& violation : violations_) keys.push_back(violation.key);
  for (const char* key : {"num_local_experts", "num_experts_per_tok", "num_attention_heads",
                          "num_hidden_layers", "intermediate_size", "vocab_size"}) {
    EXPECT_NE(std::find(keys.begin(), keys.end(), key), keys.end()) << key;
  }
}

}  // namespace
}  // namespace tessera::cli
