#include "model/parity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tessera::model::testing {

namespace {

// The recipe of the scripts that made the fixtures.
constexpr double kLr = 3e-3;
constexpr double kMaxNorm = 1.0;

std::vector<int32_t> integers(const FixtureTensor& tensor, int64_t first, int64_t count) {
  return {tensor.values.begin() + first, tensor.values.begin() + first + count};
}

/// One range a parameter, with moments of its own.
class Training {
 public:
  explicit Training(TinyModel& model) : model_(model) {
    std::vector<optim::ParameterRange> ranges;
    for (const account::Parameter& entry : model.table.parameters) {
      const core::Shape flat{entry.elements()};
      const BoundParameter bound = model.parameter(entry.name);
      for (int i = 0; i < 2; ++i) {
        moments_.emplace_back(model.ledger, core::Category::optimizer, core::DType::f32, flat);
      }
      const View value = bound.value.reshaped(flat);
      ranges.push_back({value, value, moments_[moments_.size() - 2].view(), moments_.back().view(),
                        bound.grad.reshaped(flat), entry.decay});
    }
    ranges_ = ranges;
    optimizer_ = optim::make_adamw(std::move(ranges), {});
  }

  /// The loss and the norm before clipping of step `index` on `tokens`.
  std::pair<double, double> step(int64_t index, const Tokens& tokens) {
    model_.zero_gradients();
    const LossResult result = model_.train(tokens, mean_over(tokens));
    const double norm = std::sqrt(optim::sum_of_squares(ranges_));
    optimizer_->step(index + 1, kLr, optim::clip_coefficient(norm, kMaxNorm));
    return {result.loss_sum / static_cast<double>(result.valid_tokens), norm};
  }

 private:
  TinyModel& model_;
  std::vector<core::Tensor> moments_;
  std::vector<optim::ParameterRange> ranges_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace

bool has_no_gradient(const spec::ModelConfig& config, const std::string& name) {
  return config.architecture == spec::Architecture::gpt2 && name.ends_with("k_proj.bias");
}

Tokens fixture_tokens(const Fixture& fixture, int64_t step) {
  const core::Shape shape = fixture.at("inputs").shape;
  const int64_t count = shape[1] * shape[2];
  const int64_t first = step % shape[0] * count;
  Tokens tokens(shape[1], shape[2], 1, 0);
  tokens.inputs = integers(fixture.at("inputs"), first, count);
  tokens.labels = integers(fixture.at("labels"), first, count);
  tokens.doc_start.clear();
  return tokens;
}

Tokens masked_tokens(const Fixture& fixture) {
  Tokens tokens = fixture_tokens(fixture, 0);
  tokens.doc_start = integers(fixture.at("doc_start"), 0, tokens.batch * tokens.seq_len);
  return tokens;
}

void load_weights(TinyModel& model, const Fixture& fixture) {
  for (const account::Parameter& entry : model.table.parameters) {
    const FixtureTensor& tensor = fixture.at("weights." + entry.name);
    ASSERT_EQ(tensor.shape, entry.shape) << entry.name;
    from_doubles(model.parameter(entry.name).value, tensor.values);
  }
}

PassOptions mean_over(const Tokens& tokens) {
  PassOptions options;
  options.grad_scale = 1.0f / static_cast<float>(tokens.valid());
  return options;
}

double logits_error(TinyModel& model, const Tokens& tokens, const FixtureTensor& expected) {
  const int64_t vocab_size = model.config.vocab_size;
  double worst = 0;
  double largest = 0;
  for (int64_t t = 0; t < tokens.seq_len; ++t) {
    const std::vector<int32_t> positions(static_cast<size_t>(tokens.batch),
                                         static_cast<int32_t>(t));
    const std::vector<float> logits = model.logits(tokens, positions);
    for (int64_t i = 0; i < tokens.batch * vocab_size; ++i) {
      const int64_t row = i / vocab_size * tokens.seq_len + t;
      const double value = expected.values[static_cast<size_t>(row * vocab_size + i % vocab_size)];
      worst = std::max(worst, std::abs(logits[static_cast<size_t>(i)] - value));
      largest = std::max(largest, std::abs(value));
    }
  }
  return worst / largest;
}

void expect_loss_and_gradients(TinyModel& model, const Tokens& tokens, const Fixture& fixture,
                               const std::string& prefix, double tolerance) {
  const LossResult result = model.train(tokens, mean_over(tokens));
  const double loss = result.loss_sum / static_cast<double>(result.valid_tokens);
  const double expected = fixture.at(prefix + "loss").values[0];
  EXPECT_NEAR(loss, expected, tolerance * expected);
  for (const account::Parameter& entry : model.table.parameters) {
    const std::vector<double> gradient = to_doubles(model.parameter(entry.name).grad);
    const std::vector<double>& theirs = fixture.at(prefix + "gradients." + entry.name).values;
    if (has_no_gradient(model.config, entry.name)) {
      for (const double element : gradient) EXPECT_NEAR(element, 0, 1e-6) << entry.name;
    } else {
      EXPECT_LT(relative_l2(gradient, theirs), tolerance) << entry.name;
    }
  }
}

void expect_ten_steps_of_adamw(TinyModel& model, const Fixture& fixture,
                               const TrainingTolerance& tolerance) {
  Training training(model);
  for (int64_t i = 0; i < 10; ++i) {
    const auto reached = training.step(i, fixture_tokens(fixture, i));
    const double their_loss = fixture.at("losses").values[static_cast<size_t>(i)];
    const double their_norm = fixture.at("norms").values[static_cast<size_t>(i)];
    EXPECT_NEAR(reached.first, their_loss, tolerance.loss * their_loss) << "step " << i;
    EXPECT_NEAR(reached.second, their_norm, tolerance.norm * their_norm) << "step " << i;
    EXPECT_GT(reached.second, kMaxNorm) << "clipping should act";
  }
  for (const account::Parameter& entry : model.table.parameters) {
    // Where the gradient is noise, the moments blow it up to full steps.
    if (has_no_gradient(model.config, entry.name)) continue;
    const std::vector<double> value = to_doubles(model.parameter(entry.name).value);
    // A key's bias is seen through rotation alone: its gradient is small, and mostly cancellation.
    const double allowed = tolerance.weights * (entry.name.ends_with("k_proj.bias") ? 4 : 1);
    EXPECT_LT(relative_l2(value, fixture.at("trained." + entry.name).values), allowed)
        << entry.name;
    EXPECT_GT(relative_l2(value, fixture.at("weights." + entry.name).values), 1e-3)
        << entry.name << " did not move";
  }
}

}  // namespace tessera::model::testing
