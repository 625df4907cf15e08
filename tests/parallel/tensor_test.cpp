// A model that is cut over the ranks of a tensor-parallel group is the model of one rank: in fp64,
// where what is left of a sum taken in another order is 1e-12 and a mistake is not.

#include <gtest/gtest.h>

#include <cmath>

#include "parallel/tensor_model.h"

namespace tessera::parallel::testing {
namespace {

using model::testing::relative_l2;
using spec::Recompute;

constexpr double kExact = 1e-12;

/// A GPT-2 and Llamas whose sizes divide by `ranks` ranks.
std::vector<Setting> settings(int ranks) {
  const int64_t heads = ranks == 3 ? 6 : 8;
  std::vector<Setting> all;
  for (const auto& named : model::testing::tiny_configs()) {
    spec::ModelConfig config = named.config;
    config.num_attention_heads = heads;
    config.max_position_embeddings = 26;
    if (config.architecture == spec::Architecture::gpt2) {
      config.hidden_size = 24;
      config.head_dim = 24 / heads;
      config.intermediate_size = 96;
      config.num_key_value_heads = heads;
    } else {
      config.intermediate_size = 24;
      config.num_key_value_heads = ranks == 3 ? 3 : 2;  // of 4 and 8 ranks several have the same
    }
    all.push_back({named.about, config, {}});
  }
  all[0].config.tie_word_embeddings = false;
  all.push_back(all[0]);
  all.back().about = "gpt2, tied";
  all.back().config.tie_word_embeddings = true;
  return all;
}

Setting setting_of(int ranks, const std::string& about) {
  for (const Setting& setting : settings(ranks)) {
    if (setting.about == about) return setting;
  }
  CHECK(false, about);
}

Tokens tokens_of(const Setting& setting, int64_t batch = 2) {
  return {batch, 24, setting.config.vocab_size, 5, 11};
}

void expect_equal(const Setting& setting, const Cut& cut, const Outcome& got, const Outcome& one,
                  double tolerance) {
  SCOPED_TRACE(::testing::Message()
               << setting.about << ", V " << setting.config.vocab_size << ", tp " << cut.ranks
               << (cut.sequence_parallel ? ", sp" : "") << ", dropout " << setting.config.dropout);
  EXPECT_EQ(got.mistakes, "");
  for (const model::LossResult& loss : got.losses) {
    EXPECT_EQ(loss.valid_tokens, one.losses[0].valid_tokens);
    EXPECT_EQ(loss.loss_sum, got.losses[0].loss_sum) << "ranks disagree";
    EXPECT_NEAR(loss.loss_sum, one.losses[0].loss_sum, tolerance * one.losses[0].loss_sum);
  }
  const account::ParameterTable table = account::parameter_table(setting.config, setting.lora);
  double largest = 0;  // a gradient's size: key biases have none, where theirs is all rounding
  for (const auto& gradient : one.gradients) {
    for (const double value : gradient) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < table.parameters.size(); ++i) {
    const double error = relative_l2(got.gradients[i], one.gradients[i]);
    double worst = 0;
    for (size_t j = 0; j < one.gradients[i].size(); ++j) {
      worst = std::max(worst, std::abs(got.gradients[i][j] - one.gradients[i][j]));
    }
    EXPECT_TRUE(error <= tolerance || worst <= tolerance * largest)
        << table.parameters[i].name << ": relative " << error << ", absolute " << worst;
  }
}

void expect_cuts_to_equal_one_rank(const Setting& setting, int ranks,
                                   const std::vector<bool>& sequence_parallel = {false, true}) {
  const Tokens tokens = tokens_of(setting);
  const Outcome one = train_on(setting, {}, tokens);
  for (const bool sp : sequence_parallel) {
    const Cut cut{ranks, sp};
    expect_equal(setting, cut, train_on(setting, cut, tokens), one, kExact);
  }
}

class Tensor : public ::testing::TestWithParam<int> {};

TEST_P(Tensor, RanksHaveTheLossAndTheGradientsOfOneInEveryFamily) {
  for (const Setting& setting : settings(GetParam())) {
    expect_cuts_to_equal_one_rank(setting, GetParam());
  }
}

TEST_P(Tensor, RanksDropOutWhatOneWould) {
  for (Setting setting : settings(GetParam())) {
    setting.config.dropout = 0.25;
    expect_cuts_to_equal_one_rank(setting, GetParam());
  }
}

TEST_P(Tensor, RanksShareVocabulariesThatDoNotDivideAndWhereSomeHaveNone) {
  for (const int64_t vocab_size : {5, 2, 257, 1001}) {
    for (const char* about : {"gpt2", "gpt2, tied"}) {
      Setting setting = setting_of(GetParam(), about);
      setting.config.vocab_size = vocab_size;
      expect_cuts_to_equal_one_rank(setting, GetParam());
    }
  }
}

TEST_P(Tensor, RanksAdaptEveryProductAsOneDoes) {
  for (Setting setting : settings(GetParam())) {
    setting.config.dropout = 0.25;
    setting.lora.rank = 3;
    setting.lora.targets = {"q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"};
    if (setting.config.architecture == spec::Architecture::llama) {
      setting.lora.targets.push_back("gate_proj");
    }
    expect_cuts_to_equal_one_rank(setting, GetParam());
  }
}

TEST_P(Tensor, RanksRecomputeToTheSameBits) {
  for (const bool sp : {false, true}) {
    Setting setting = setting_of(GetParam(), "llama like Qwen3");
    setting.config.dropout = 0.25;
    const Cut cut{GetParam(), sp};
    const Tokens tokens = tokens_of(setting);
    const Outcome kept = train_on(setting, cut, tokens);
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      setting.recompute = recompute;
      const Outcome again = train_on(setting, cut, tokens);
      EXPECT_EQ(again.losses[0].loss_sum, kept.losses[0].loss_sum);
      EXPECT_EQ(again.gradients, kept.gradients);
    }
  }
}

TEST_P(Tensor, RanksInvariantGradientsDoNotDependOnHowABatchIsCut) {
  for (const core::DType dtype : {core::DType::f32, core::DType::bf16}) {
    for (const bool sp : {false, true}) {
      Setting setting = setting_of(GetParam(), "gpt2, tied");
      setting.config.dropout = 0.25;
      setting.dtype = dtype;
      setting.invariant = true;
      const Cut cut{GetParam(), sp};
      const Tokens tokens = tokens_of(setting, 3);
      const Outcome together = train_on(setting, cut, tokens);
      const Outcome apart = train_on(setting, cut, tokens, /*apart=*/true);
      EXPECT_EQ(together.losses[0].loss_sum, apart.losses[0].loss_sum);
      EXPECT_EQ(together.gradients, apart.gradients);
      EXPECT_EQ(together.mistakes + apart.mistakes, "");
    }
  }
}

TEST_P(Tensor, RanksAgreeWithOneInTheFormatsOfTraining) {
  for (const auto& [dtype, tolerance] :
       {std::pair{core::DType::f32, 5e-6}, {core::DType::bf16, 4e-2}}) {
    Setting setting = setting_of(GetParam(), "llama");
    setting.dtype = dtype;
    const Tokens tokens = tokens_of(setting);
    const Outcome one = train_on(setting, {}, tokens);
    for (const bool sp : {false, true}) {
      const Cut cut{GetParam(), sp};
      expect_equal(setting, cut, train_on(setting, cut, tokens), one, tolerance);
    }
  }
}

TEST_P(Tensor, RanksEvaluateAndSampleAsOneDoes) {
  for (const bool sp : {false, true}) {
    Setting setting = setting_of(GetParam(), "gpt2, tied");
    setting.config.dropout = 0.25;
    setting.config.vocab_size = 37;
    const Tokens tokens = tokens_of(setting);
    const std::vector<int32_t> positions{23, 4};
    double loss = 0;
    std::vector<float> logits;
    on_ranks(1, [&](comm::Communicator& self) {
      PartModel model(setting, {}, self);
      loss = model.forward(tokens).loss_sum;
      logits = model.logits(tokens, positions);
    });
    on_ranks(GetParam(), [&](comm::Communicator& group) {
      PartModel model(setting, {GetParam(), sp}, group);
      EXPECT_NEAR(model.forward(tokens).loss_sum, loss, kExact * loss);
      const std::vector<float> got = model.logits(tokens, positions);
      for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(got[i], logits[i], 1e-6);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Tensor, ::testing::Values(2, 3, 4, 8));

}  // namespace
}  // namespace tessera::parallel::testing
