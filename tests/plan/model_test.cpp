#include "plan/model.h"

#include <gtest/gtest.h>

#include "account/flops.h"
#include "account/parameter_table.h"

namespace tessera::plan {
namespace {

TEST(PlanModel, CountsThePresetsOfTheEngineAsItsParameterTableDoes) {
  for (const spec::ModelPreset& preset : spec::model_presets()) {
    if (preset.config.vocab_size == 0) continue;
    const Model model = *find_model(preset.name);
    const ParameterCounts counts = count_parameters(model);
    EXPECT_EQ(counts.total, account::parameter_table(model.dense).num_elements()) << preset.name;
    EXPECT_EQ(counts.matmul, account::matmul_parameters(model.dense)) << preset.name;
    EXPECT_EQ(counts.active, counts.total) << preset.name;
    EXPECT_DOUBLE_EQ(train_flops_per_token(model, 2048),
                     account::train_flops_per_token(model.dense, 2048))
        << preset.name;
  }
}

TEST(PlanModel, CountsMixturesOfExpertsAsTheirAuthorsDo) {
  struct Published {
    const char* name;
    double total, active;  // billions
  };
  // Model cards and reports: Mixtral, Qwen3, DeepSeek-V3.
  for (const Published& published :
       {Published{"mixtral-8x7b", 46.7, 12.9}, Published{"mixtral-8x22b", 140.6, 39.1},
        Published{"qwen3-30b-a3b", 30.5, 3.3}, Published{"qwen3-235b-a22b", 235, 22},
        Published{"deepseek-v3", 671, 37}}) {
    const ParameterCounts counts = count_parameters(*find_model(published.name));
    EXPECT_NEAR(static_cast<double>(counts.total) / 1e9, published.total, 0.005 * published.total);
    EXPECT_NEAR(static_cast<double>(counts.active) / 1e9, published.active,
                0.02 * published.active);
  }
}

TEST(PlanModel, ReachesAsFarAsTheAuthorsConfigsSay) {
  struct Published {
    const char* name;
    int64_t positions;
    double rope_theta;
  };
  for (const Published& published :
       {Published{"mixtral-8x7b", 32768, 1e6}, Published{"mixtral-8x22b", 65536, 1e6},
        Published{"qwen3-30b-a3b", 40960, 1e6}, Published{"qwen3-235b-a22b", 40960, 1e6},
        Published{"deepseek-v3", 163840, 1e4}, Published{"kimi-k2", 131072, 5e4},
        Published{"gpt-oss-120b", 131072, 1.5e5}}) {
    const spec::ModelConfig config = find_model(published.name)->dense;
    EXPECT_EQ(config.max_position_embeddings, published.positions) << published.name;
    EXPECT_EQ(config.rope_theta, published.rope_theta) << published.name;
  }
}

TEST(PlanModel, SaysWhatTheEngineDoesNotRunYet) {
  EXPECT_TRUE(find_model("llama-3-8b")->not_run_yet().empty());
  EXPECT_EQ(find_model("deepseek-v3")->not_run_yet().size(), 2U);
  EXPECT_FALSE(find_model("llama-9").has_value());
}

}  // namespace
}  // namespace tessera::plan
