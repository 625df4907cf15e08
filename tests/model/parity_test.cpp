// Against PyTorch: transformers' GPT-2 with the same weights and tokens (the fixture gpt2_tiny).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/fixture.h"
#include "model/tiny_model.h"
#include "optim/optimizer.h"

namespace tessera::model::testing {
namespace {

// The recipe of make_gpt2_fixture.py.
constexpr double kLr = 3e-3;
constexpr double kMaxNorm = 1.0;

spec::ModelConfig fixture_config() {
  spec::ModelConfig config;
  config.hidden_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.vocab_size = 67;
  config.max_position_embeddings = 24;
  return spec::resolved(config);
}

const FixtureTensor& fixture(const std::string& name) {
  return gpt2_fixture().at(name);
}

/// A key's bias moves every score of a query alike, which softmax does not see: its true gradient
/// is zero, so it is compared absolutely.
bool has_no_gradient(const std::string& name) {
  return name.ends_with("k_proj.bias");
}

std::vector<int32_t> integers(const std::string& name, int64_t first, int64_t count) {
  const std::vector<double>& values = fixture(name).values;
  return {values.begin() + first, values.begin() + first + count};
}

/// The fixture's batch of a step, without document mask.
Tokens fixture_tokens(int64_t step) {
  const core::Shape shape = fixture("inputs").shape;
  const int64_t count = shape[1] * shape[2];
  Tokens tokens(shape[1], shape[2], 1, 0);
  tokens.inputs = integers("inputs", step * count, count);
  tokens.labels = integers("labels", step * count, count);
  tokens.doc_start.clear();
  return tokens;
}

Tokens masked_tokens() {
  Tokens tokens = fixture_tokens(0);
  tokens.doc_start = integers("doc_start", 0, tokens.batch * tokens.seq_len);
  return tokens;
}

void load_weights(TinyModel& model) {
  for (const account::Parameter& entry : model.table.parameters) {
    const FixtureTensor& tensor = fixture("weights." + entry.name);
    ASSERT_EQ(tensor.shape, entry.shape) << entry.name;
    from_doubles(model.parameter(entry.name).value, tensor.values);
  }
}

PassOptions mean_over(const Tokens& tokens) {
  PassOptions options;
  options.grad_scale = 1.0f / static_cast<float>(tokens.valid());
  return options;
}

/// The largest difference of all logits [B, T, V] from the fixture's, over its largest logit.
double logits_error(TinyModel& model, const Tokens& tokens, const std::string& name) {
  const std::vector<double>& expected = fixture(name).values;
  const int64_t vocab_size = model.config.vocab_size;
  double worst = 0;
  double largest = 0;
  for (int64_t t = 0; t < tokens.seq_len; ++t) {
    const std::vector<int32_t> positions(static_cast<size_t>(tokens.batch),
                                         static_cast<int32_t>(t));
    const std::vector<float> logits = model.logits(tokens, positions);
    for (int64_t i = 0; i < tokens.batch * vocab_size; ++i) {
      const int64_t row = i / vocab_size * tokens.seq_len + t;
      const double value = expected[static_cast<size_t>(row * vocab_size + i % vocab_size)];
      worst = std::max(worst, std::abs(logits[static_cast<size_t>(i)] - value));
      largest = std::max(largest, std::abs(value));
    }
  }
  return worst / largest;
}

void expect_loss_and_gradients(TinyModel& model, const Tokens& tokens, const std::string& prefix,
                               double tolerance) {
  const LossResult result = model.train(tokens, mean_over(tokens));
  const double loss = result.loss_sum / static_cast<double>(result.valid_tokens);
  const double expected = fixture(prefix + "loss").values[0];
  EXPECT_NEAR(loss, expected, tolerance * expected);
  for (const account::Parameter& entry : model.table.parameters) {
    const std::vector<double> gradient = to_doubles(model.parameter(entry.name).grad);
    const std::vector<double>& theirs = fixture(prefix + "gradients." + entry.name).values;
    if (has_no_gradient(entry.name)) {
      for (const double element : gradient) EXPECT_NEAR(element, 0, 1e-6) << entry.name;
    } else {
      EXPECT_LT(relative_l2(gradient, theirs), tolerance) << entry.name;
    }
  }
}

class ParityIn : public ::testing::TestWithParam<core::DType> {};
INSTANTIATE_TEST_SUITE_P(Exact, ParityIn, ::testing::Values(core::DType::f32, core::DType::f64),
                         [](const auto& dtype) { return std::string(core::name_of(dtype.param)); });

TEST_P(ParityIn, OfLogits) {
  TinyModel model(fixture_config(), GetParam());
  load_weights(model);
  EXPECT_LT(logits_error(model, fixture_tokens(0), "logits"), 1e-5);
}

TEST_P(ParityIn, OfTheLossAndEveryGradient) {
  TinyModel model(fixture_config(), GetParam());
  load_weights(model);
  expect_loss_and_gradients(model, fixture_tokens(0), "", 1e-5);
}

TEST_P(ParityIn, UnderADocumentMask) {
  TinyModel model(fixture_config(), GetParam());
  load_weights(model);
  EXPECT_LT(logits_error(model, masked_tokens(), "masked.logits"), 1e-5);
  expect_loss_and_gradients(model, masked_tokens(), "masked.", 1e-5);
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

  /// The loss and the norm before clipping of one step.
  std::pair<double, double> step(int64_t index) {
    const Tokens tokens = fixture_tokens(index);
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

TEST(Parity, OfTenStepsOfAdamw) {
  TinyModel model(fixture_config(), core::DType::f32);
  load_weights(model);
  Training training(model);
  for (int64_t i = 0; i < 10; ++i) {
    const auto [loss, norm] = training.step(i);
    const double their_loss = fixture("losses").values[static_cast<size_t>(i)];
    const double their_norm = fixture("norms").values[static_cast<size_t>(i)];
    EXPECT_NEAR(loss, their_loss, 1e-5 * their_loss) << "step " << i;
    EXPECT_NEAR(norm, their_norm, 1e-4 * their_norm) << "step " << i;
    EXPECT_GT(norm, kMaxNorm) << "clipping should act";
  }
  for (const account::Parameter& entry : model.table.parameters) {
    if (has_no_gradient(entry.name)) continue;  // noise, which the moments blow up to full steps
    const std::vector<double> value = to_doubles(model.parameter(entry.name).value);
    EXPECT_LT(relative_l2(value, fixture("trained." + entry.name).values), 1e-4) << entry.name;
    EXPECT_GT(relative_l2(value, fixture("weights." + entry.name).values), 1e-3)
        << entry.name << " did not move";
  }
}

TEST(Parity, OfBf16IsWithinItsRounding) {
  TinyModel model(fixture_config(), core::DType::bf16);
  load_weights(model);
  EXPECT_LT(logits_error(model, fixture_tokens(0), "logits"), 0.03);
  const Tokens tokens = fixture_tokens(0);
  const LossResult result = model.train(tokens, mean_over(tokens));
  const double expected = fixture("loss").values[0];
  EXPECT_NEAR(result.loss_sum / static_cast<double>(result.valid_tokens), expected,
              0.01 * expected);
  for (const account::Parameter& entry : model.table.parameters) {
    if (has_no_gradient(entry.name)) continue;
    const std::vector<double> gradient = to_doubles(model.parameter(entry.name).grad);
    EXPECT_LT(relative_l2(gradient, fixture("gradients." + entry.name).values), 0.05) << entry.name;
  }
}

}  // namespace
}  // namespace tessera::model::testing
