#include "model/lora.h"

#include <gtest/gtest.h>

#include "core/memory.h"
#include "kernels/matmul.h"
#include "model/parameters.h"

namespace tessera::model {
namespace {

using account::Role;
using core::Category;
using core::DType;
using core::Tensor;

/// A block's parameters with adapters, in fp64, and their gradients.
class Adapted {
 public:
  Adapted() {
    spec::ModelConfig config = spec::family_defaults(spec::Architecture::llama);
    config.hidden_size = 12;
    config.num_hidden_layers = 1;
    config.num_attention_heads = 2;
    config.num_key_value_heads = 1;
    config.vocab_size = 7;
    config.attention_bias = spec::AttentionBias::qkv;
    spec::LoraConfig lora;
    lora.rank = 3;
    lora.targets = {"q_proj", "v_proj", "down_proj"};
    table_ = account::parameter_table(spec::resolved(config), lora);
    parameters_ = std::make_unique<Parameters>(table_);
    const account::Unit& unit = table_.units[1];
    weights_ = Tensor(ledger_, Category::weights, DType::f64, {unit.elements});
    gradients_ = Tensor(ledger_, Category::gradients, DType::f64, {unit.trainable_elements()});
    fill(weights_.view(), 1);
    fill(gradients_.view(), 0);
    parameters_->bind_weights(
        1, weights_.view().slice(0, {unit.frozen_elements()}),
        weights_.view().slice(unit.frozen_elements(), {unit.trainable_elements()}));
    parameters_->bind_gradients(1, gradients_.view());
  }

  /// Different, reproducible values; all 0 for seed 0.
  static void fill(View view, int seed) {
    for (int64_t i = 0; i < view.elements(); ++i) {
      view.as<double>()[i] = seed == 0 ? 0 : static_cast<double>((i * 37 + seed * 11) % 19 - 9) / 9;
    }
  }

  account::ParameterTable table_;
  core::MemoryLedger ledger_;
  std::unique_ptr<Parameters> parameters_;
  Tensor weights_, gradients_;
  core::Arena arena_{ledger_, Category::activations, 1 << 20};
  DenseFactory dense_;
  LoraFactory factory_{dense_, 0.5};
};

double dot(View a, const std::vector<double>& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += a.as<double>()[i] * b[static_cast<size_t>(i)];
  return sum;
}

TEST(LoraFactory, LeavesAProductWithoutAdaptersAsItIs) {
  Adapted model;
  const auto o = model.factory_.linear(*model.parameters_, {1, Role::o_weight, Role::o_bias});
  EXPECT_EQ(dynamic_cast<LoraLinear*>(o.get()), nullptr);
}

TEST(LoraLinear, AddsTheScaledLowRankProductsToTheirPartsOfAFusedProduct) {
  Adapted model;
  const LinearSpec spec{1, Role::q_weight, Role::q_bias, 3, Split::outputs};
  const auto adapted = model.factory_.linear(*model.parameters_, spec);
  const auto plain = model.dense_.linear(*model.parameters_, spec);
  constexpr int64_t N = 5;
  const int64_t out = plain->out_width();
  Pass pass{model.arena_, {}};
  const View x = model.arena_.allocate(DType::f64, {N, 12});
  const View y = model.arena_.allocate(DType::f64, {N, out});
  const View base = model.arena_.allocate(DType::f64, {N, out});
  Adapted::fill(x, 3);
  adapted->forward(pass, y, x);
  plain->forward(pass, base, x);

  const auto expect_part = [&](Role weight, int64_t first, int64_t width) {
    const account::AdapterRoles roles = account::adapter_of(weight).value();
    const View a = model.parameters_->get(1, roles.a).value;
    const View b = model.parameters_->get(1, roles.b).value;
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t j = 0; j < width; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t i = 0; i < 12; ++i) {
            sum +=
                x.as<double>()[n * 12 + i] * a.as<double>()[r * 12 + i] * b.as<double>()[j * 3 + r];
          }
        }
        const int64_t at = n * out + first + j;
        EXPECT_NEAR(y.as<double>()[at] - base.as<double>()[at], 0.5 * sum, 1e-12);
      }
    }
  };
  expect_part(Role::q_weight, 0, 12);
  expect_part(Role::v_weight, 18, 6);
  for (int64_t n = 0; n < N; ++n) {  // keys have no adapter
    for (int64_t j = 12; j < 18; ++j) {
      EXPECT_EQ(y.as<double>()[n * out + j], base.as<double>()[n * out + j]);
    }
  }
}

TEST(LoraLinear, HasTheGradientsOfItsForward) {
  Adapted model;
  const LinearSpec spec{1, Role::q_weight, Role::q_bias, 3, Split::outputs};
  const auto layer = model.factory_.linear(*model.parameters_, spec);
  constexpr int64_t N = 4;
  Pass pass{model.arena_, {}};
  const View x = model.arena_.allocate(DType::f64, {N, 12});
  const View y = model.arena_.allocate(DType::f64, {N, layer->out_width()});
  const View dx = model.arena_.allocate(DType::f64, {N, 12});
  const View dy = model.arena_.allocate(DType::f64, y.shape);
  Adapted::fill(x, 5);
  Adapted::fill(dy, 7);
  layer->backward_input(pass, dx, dy);
  layer->backward_weight(pass, dy, x);

  const std::vector<double> weight_of_y(dy.as<double>(), dy.as<double>() + dy.elements());
  const auto slope = [&](double& value) {
    constexpr double kStep = 1e-6;
    const double before = value;
    value = before + kStep;
    layer->forward(pass, y, x);
    const double up = dot(y, weight_of_y);
    value = before - kStep;
    layer->forward(pass, y, x);
    const double down = dot(y, weight_of_y);
    value = before;
    return (up - down) / (2 * kStep);
  };
  for (int64_t i = 0; i < x.elements(); i += 5) {
    EXPECT_NEAR(dx.as<double>()[i], slope(x.as<double>()[i]), 1e-7);
  }
  for (const Role role : {Role::q_lora_a, Role::q_lora_b, Role::v_lora_a, Role::v_lora_b}) {
    const BoundParameter parameter = model.parameters_->get(1, role);
    for (int64_t i = 0; i < parameter.value.elements(); i += 4) {
      EXPECT_NEAR(parameter.grad.as<double>()[i], slope(parameter.value.as<double>()[i]), 1e-7);
    }
  }
}

TEST(LoraLinear, HasNoGradientForTheBase) {
  Adapted model;
  for (const Role role :
       {Role::q_weight, Role::q_bias, Role::down_weight, Role::input_norm_weight}) {
    EXPECT_TRUE(model.parameters_->get(1, role).value);
    EXPECT_FALSE(model.parameters_->get(1, role).grad);
  }
}

}  // namespace
}  // namespace tessera::model
