#include "model/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "model/tiny_model.h"

namespace tessera::model::testing {
namespace {

using ::testing::ElementsAreArray;

Tokens tiny_tokens() {
  return {3, 9, tiny_config().vocab_size, 5};
}

/// Writes down the calls: "f" before forward, "a" after it, "b" before backward, "w" before the
/// weight gradient, "g" gradient ready.
class RecordingHooks final : public UnitHooks {
 public:
  void before_forward(int unit) override { add("f", unit); }
  void after_forward(int unit) override { add("a", unit); }
  void before_backward(int unit) override { add("b", unit); }
  void before_weight_gradient(int unit) override { add("w", unit); }
  void gradient_ready(int unit) override { add("g", unit); }
  std::vector<std::string> calls;

 private:
  void add(const char* what, int unit) { calls.push_back(what + std::to_string(unit)); }
};

TEST(Transformer, CallsHooksAroundEachUnitInTurn) {
  RecordingHooks hooks;
  TinyModel model(tiny_config(), core::DType::f32, spec::Recompute::none, &hooks);
  model.train(tiny_tokens());
  EXPECT_THAT(hooks.calls, ElementsAreArray({"f0", "a0", "f1", "a1", "f2", "a2", "f3", "f0", "b3",
                                             "b0", "g3", "b2", "g2", "b1", "g1", "w0", "g0"}));
}

TEST(Transformer, OpensABlockOnceForItsBackwardWhenItIsRecomputed) {
  RecordingHooks hooks;
  spec::ModelConfig config = tiny_config();
  config.tie_word_embeddings = false;
  TinyModel model(config, core::DType::f32, spec::Recompute::full, &hooks);
  model.train(tiny_tokens());
  EXPECT_THAT(hooks.calls, ElementsAreArray({"f0", "a0", "f1", "a1", "f2", "a2", "f3", "b3", "g3",
                                             "b2", "g2", "b1", "g1", "w0", "g0"}));
}

TEST(Transformer, SkipsAPassWithTheHooksOfARealOne) {
  for (const bool tied : {true, false}) {
    for (const spec::Recompute recompute : {spec::Recompute::none, spec::Recompute::full}) {
      for (const bool training : {true, false}) {
        RecordingHooks hooks;
        spec::ModelConfig config = tiny_config();
        config.tie_word_embeddings = tied;
        TinyModel model(config, core::DType::f32, recompute, &hooks);
        PassOptions options;
        options.training = training;
        if (training) {
          model.train(tiny_tokens());
        } else {
          model.forward(tiny_tokens(), options);
        }
        const std::vector<std::string> real = std::exchange(hooks.calls, {});
        model.transformer().skip_forward(training);
        if (training) model.transformer().skip_backward();
        EXPECT_EQ(hooks.calls, real);
      }
    }
  }
}

TEST(Transformer, ClosesEveryUnitAfterAForwardWithoutTraining) {
  RecordingHooks hooks;
  TinyModel model(tiny_config(), core::DType::f32, spec::Recompute::none, &hooks);
  PassOptions options;
  options.training = false;
  model.forward(tiny_tokens(), options);
  EXPECT_THAT(hooks.calls,
              ElementsAreArray({"f0", "a0", "f1", "a1", "f2", "a2", "f3", "f0", "a3", "a0"}));
}

/// Adds up what is final when a hook says so.
class GradientAtReady final : public UnitHooks {
 public:
  void gradient_ready(int unit) override {
    for (const account::Parameter& entry : model->table.parameters) {
      if (entry.unit == unit) seen[entry.name] = to_doubles(model->parameter(entry.name).grad);
    }
  }
  TinyModel* model = nullptr;
  std::map<std::string, std::vector<double>> seen;
};

TEST(Transformer, AddsNothingToAGradientThatItCalledReady) {
  GradientAtReady hooks;
  TinyModel model(tiny_config(), core::DType::f32, spec::Recompute::none, &hooks);
  hooks.model = &model;
  model.train(tiny_tokens());
  ASSERT_EQ(hooks.seen.size(), model.table.parameters.size());
  for (const auto& [name, gradient] : hooks.seen) {
    EXPECT_EQ(gradient, to_doubles(model.parameter(name).grad)) << name;
  }
}

TEST(Transformer, LeavesTheArenaAsItFoundIt) {
  for (const auto recompute :
       {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
    TinyModel model(tiny_llama(), core::DType::f32, recompute);
    const View below = model.arena.allocate(core::DType::u8, {100});
    const int64_t used = model.arena.used();
    model.train(tiny_tokens());
    EXPECT_EQ(model.arena.used(), used);
    PassOptions options;
    options.training = false;
    model.forward(tiny_tokens(), options);
    model.logits(tiny_tokens(), {0, 1, 2});
    EXPECT_EQ(model.arena.used(), used);
    EXPECT_TRUE(below);
  }
}

TEST(Transformer, GivesTheLossWithoutTrainingThatItGivesInTraining) {
  TinyModel model(tiny_config(), core::DType::f32);
  PassOptions options;
  options.training = false;
  const LossResult evaluated = model.forward(tiny_tokens(), options);
  EXPECT_THAT(model.gradients(), ::testing::Each(0.0));
  const LossResult trained = model.train(tiny_tokens());
  EXPECT_EQ(evaluated.loss_sum, trained.loss_sum);
  EXPECT_EQ(evaluated.valid_tokens, trained.valid_tokens);
  EXPECT_EQ(trained.valid_tokens, tiny_tokens().valid());
}

TEST(Transformer, GivesLogitsWhoseCrossEntropyIsTheLoss) {
  for (const NamedConfig& each : tiny_configs()) {
    for (const core::DType dtype : {core::DType::f64, core::DType::f32}) {
      TinyModel model(each.config, dtype);
      const Tokens tokens = tiny_tokens();
      double loss = 0;
      for (int32_t t = 0; t < tokens.seq_len; ++t) {
        const std::vector<float> logits = model.logits(tokens, std::vector<int32_t>(3, t));
        for (int64_t b = 0; b < tokens.batch; ++b) {
          const int32_t label = tokens.labels[static_cast<size_t>(b * tokens.seq_len + t)];
          if (label < 0) continue;
          const float* row = logits.data() + b * model.config.vocab_size;
          double sum = 0;
          for (int64_t v = 0; v < model.config.vocab_size; ++v) sum += std::exp(double{row[v]});
          loss += std::log(sum) - row[label];
        }
      }
      PassOptions options;
      options.training = false;
      const double expected = model.forward(tokens, options).loss_sum;
      EXPECT_NEAR(loss, expected, 1e-5 * expected) << each.about << core::name_of(dtype);
    }
  }
}

TEST(Transformer, NeedsNoWeightsAgainForSelectiveRecompute) {
  RecordingHooks hooks;
  TinyModel model(tiny_llama(), core::DType::f32, spec::Recompute::selective, &hooks);
  model.train(tiny_tokens());
  EXPECT_THAT(hooks.calls, ElementsAreArray({"f0", "a0", "f1", "a1", "f2", "a2", "f3", "b3", "g3",
                                             "b2", "g2", "b1", "g1", "w0", "g0"}));
}

TEST(Transformer, SeesNothingOfOtherDocuments) {
  for (const NamedConfig& each : tiny_configs()) {
    TinyModel model(each.config, core::DType::f32);
    Tokens tokens = tiny_tokens();
    tokens.doc_start.assign(tokens.inputs.size(), 0);
    for (size_t i = 4; i < 9; ++i) tokens.doc_start[i] = 4;
    const std::vector<float> before = model.logits(tokens, {8, 8, 8});
    tokens.inputs[3] = (tokens.inputs[3] + 1) % 19;
    EXPECT_EQ(model.logits(tokens, {8, 8, 8}), before);
    tokens.inputs[4] = (tokens.inputs[4] + 1) % 19;
    EXPECT_NE(model.logits(tokens, {8, 8, 8}), before);
  }
}

TEST(Transformer, RefusesASecondForwardBeforeTheBackward) {
  TinyModel model(tiny_config(), core::DType::f32);
  model.forward(tiny_tokens());
  EXPECT_THROW(model.forward(tiny_tokens()), core::InternalError);
}

TEST(Transformer, TellsPositionsApartByRotationToo) {
  TinyModel model(tiny_llama(), core::DType::f32);
  Tokens tokens = tiny_tokens();
  tokens.doc_start.clear();
  const std::vector<float> before = model.logits(tokens, {8, 8, 8});
  for (int64_t b = 0; b < 3; ++b) {
    std::swap(tokens.inputs[static_cast<size_t>(b * 9 + 1)],
              tokens.inputs[static_cast<size_t>(b * 9 + 4)]);
  }
  EXPECT_NE(model.logits(tokens, {8, 8, 8}), before);
}

TEST(Transformer, IsInBf16CloseToFp32) {
  TinyModel narrow(tiny_config(), core::DType::bf16);
  TinyModel wide(tiny_config(), core::DType::f32);
  const LossResult rounded = narrow.train(tiny_tokens());
  const LossResult exact = wide.train(tiny_tokens());
  EXPECT_NEAR(rounded.loss_sum, exact.loss_sum, 0.01 * exact.loss_sum);
  const double error = relative_l2(narrow.gradients(), wide.gradients());
  EXPECT_LT(error, 0.05);
  EXPECT_GT(error, 1e-4) << "bf16 should round";
}

}  // namespace
}  // namespace tessera::model::testing
