// What the arena held at its peak against what `account` predicts from the configuration.

#include "account/activations.h"

#include <gtest/gtest.h>

#include "kernels/attention.h"
#include "kernels/device.h"
#include "model/tiny_model.h"

namespace tessera::model::testing {
namespace {

account::ActivationSizes sizes_of(const spec::ModelConfig& config, const Tokens& tokens,
                                  core::DType dtype, spec::Recompute recompute) {
  kernels::AttentionShape shape;
  shape.batch = tokens.batch;
  shape.seq_len = tokens.seq_len;
  shape.num_heads = config.num_attention_heads;
  shape.num_kv_heads = config.num_key_value_heads;
  shape.head_dim = config.head_dim;
  account::ActivationSizes sizes;
  sizes.batch = tokens.batch;
  sizes.seq_len = tokens.seq_len;
  sizes.dtype = dtype;
  sizes.recompute = recompute;
  sizes.attention_scratch_bytes = kernels::attention_scratch_bytes(shape, kernels::num_threads());
  return sizes;
}

/// Small models whose peak lies in the blocks' backward, those whose logits are the peak, and those
/// whose MLP is.
std::vector<NamedConfig> configs() {
  std::vector<NamedConfig> all;
  for (const NamedConfig& each : tiny_configs()) {
    NamedConfig dropping = each, wordy = each, wide = each;
    dropping.config.dropout = 0.1;
    wordy.config.vocab_size = 1001;
    wide.config.intermediate_size = 15001;  // more than attention's scratch
    all.insert(all.end(), {each, dropping, wordy, wide});
  }
  return all;
}

TEST(ActivationMemory, PeaksInTrainingWhereItWasPredicted) {
  for (const NamedConfig& each : configs()) {
    const spec::ModelConfig& config = each.config;
    for (const core::DType dtype : {core::DType::f64, core::DType::f32, core::DType::bf16}) {
      for (const auto recompute :
           {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
        const Tokens tokens(3, 9, config.vocab_size, 5);
        TinyModel model(config, dtype, recompute);
        model.train(tokens);
        EXPECT_EQ(
            model.ledger.peak(core::Category::activations),
            account::training_activation_bytes(config, sizes_of(config, tokens, dtype, recompute)))
            << each.about << ", " << core::name_of(dtype) << ", V " << config.vocab_size
            << ", dropout " << config.dropout << ", recompute " << static_cast<int>(recompute);
      }
    }
  }
}

TEST(ActivationMemory, PeaksInEvaluationWhereItWasPredicted) {
  for (const NamedConfig& each : configs()) {
    const spec::ModelConfig& config = each.config;
    const Tokens tokens(3, 9, config.vocab_size, 5);
    TinyModel model(config, core::DType::f32);
    PassOptions options;
    options.training = false;
    model.forward(tokens, options);
    const auto sizes = sizes_of(config, tokens, core::DType::f32, spec::Recompute::none);
    EXPECT_EQ(model.ledger.peak(core::Category::activations),
              account::evaluation_activation_bytes(config, sizes))
        << each.about;
  }
}

}  // namespace
}  // namespace tessera::model::testing
