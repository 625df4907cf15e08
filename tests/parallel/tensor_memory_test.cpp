// What a rank's arena held at its peak against what `account` predicts of cut layers.

#include <gtest/gtest.h>

#include "account/activations.h"
#include "kernels/attention.h"
#include "kernels/device.h"
#include "parallel/tensor_model.h"

namespace tessera::parallel::testing {
namespace {

using spec::Recompute;

account::ActivationSizes sizes_of(const Setting& setting, const Cut& cut, const Tokens& tokens) {
  kernels::AttentionShape shape;
  shape.batch = tokens.batch;
  shape.seq_len = tokens.seq_len;
  shape.num_heads = setting.config.num_attention_heads / cut.ranks;
  shape.num_kv_heads = std::max<int64_t>(setting.config.num_key_value_heads / cut.ranks, 1);
  shape.head_dim = setting.config.head_dim;
  account::ActivationSizes sizes;
  sizes.batch = tokens.batch;
  sizes.seq_len = tokens.seq_len;
  sizes.dtype = setting.dtype;
  sizes.recompute = setting.recompute;
  sizes.numerics = setting.invariant ? spec::Numerics::invariant : spec::Numerics::fast;
  sizes.lora = setting.lora;
  sizes.attention_scratch_bytes = kernels::attention_scratch_bytes(shape, kernels::num_threads());
  sizes.tp = cut.ranks;
  sizes.sequence_parallel = cut.sequence_parallel;
  return sizes;
}

void expect_predicted(Setting setting, const Cut& cut) {
  setting.one_arena = true;
  const Tokens tokens(2, 12, setting.config.vocab_size, 5);
  on_ranks(cut.ranks, [&](comm::Communicator& group) {
    const account::ActivationSizes sizes = sizes_of(setting, cut, tokens);
    PartModel trained(setting, cut, group);
    trained.train(tokens);
    PartModel evaluated(setting, cut, group);
    evaluated.forward(tokens);
    const auto peak = [](const PartModel& model) {
      return model.ledger.peak(core::Category::activations);
    };
    const auto about = ::testing::Message()
                       << setting.about << ", V " << setting.config.vocab_size << ", I "
                       << setting.config.intermediate_size << ", dropout " << setting.config.dropout
                       << ", tp " << cut.ranks << ", sp " << cut.sequence_parallel << ", recompute "
                       << static_cast<int>(setting.recompute) << ", lora " << setting.lora.rank;
    EXPECT_EQ(peak(trained), account::training_activation_bytes(setting.config, sizes)) << about;
    EXPECT_EQ(peak(evaluated), account::evaluation_activation_bytes(setting.config, sizes))
        << about;
  });
}

/// Small models, those whose logits are the peak, whose MLP is, and whose stream is.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const auto& named : model::testing::tiny_configs()) {
    spec::ModelConfig config = named.config;
    config.intermediate_size = 60;
    const Setting plain{named.about, config, {}, core::DType::f32};
    all.push_back(plain);
    const bool gpt2 = config.architecture == spec::Architecture::gpt2;
    if (!gpt2 && !config.qk_norm) continue;
    Setting wordy = plain, wide = plain, broad = plain;
    wordy.config.vocab_size = 10'001;
    wide.config.intermediate_size = 6'000;
    broad.config.hidden_size = 1'000;
    if (gpt2) broad.config.head_dim = 250;
    for (Setting* large : {&wordy, &wide, &broad}) {
      large->config.num_hidden_layers = 1;
      all.push_back(*large);
    }
  }
  return all;
}

TEST(TensorMemory, PeaksWhereItWasPredictedWhateverIsRecomputed) {
  for (Setting setting : settings()) {
    for (const bool sp : {false, true}) {
      for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        setting.recompute = recompute;
        setting.config.dropout = recompute == Recompute::none ? 0.1 : 0;
        expect_predicted(setting, {2, sp});
      }
    }
    expect_predicted(setting, {4, true});
  }
}

TEST(TensorMemory, PeaksWhereItWasPredictedWithAdaptersAndSequencesApart) {
  for (Setting setting : settings()) {
    for (const bool sp : {false, true}) {
      setting.lora = {};
      setting.invariant = true;
      expect_predicted(setting, {2, sp});
      setting.invariant = false;
      setting.lora.rank = 300;
      setting.lora.targets = {"q_proj", "v_proj", "o_proj", "up_proj", "down_proj"};
      expect_predicted(setting, {2, sp});
    }
  }
}

}  // namespace
}  // namespace tessera::parallel::testing
