#include "account/memory.h"

#include <gtest/gtest.h>

#include "account/activations.h"

namespace tessera::account {
namespace {

spec::ModelConfig small() {
  spec::ModelConfig config;
  config.hidden_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.vocab_size = 64;
  config.max_position_embeddings = 16;
  return config;
}

StateBytes state_of(const char* preset, spec::Precision precision, spec::GradientDtype gradient) {
  spec::TrainingConfig training;
  training.precision = precision;
  training.gradient_dtype = gradient;
  return state_bytes(parameter_table(spec::find_model_preset(preset)->config), training);
}

TEST(StateBytes, AreSixteenAParameterInBf16WithBf16Gradients) {
  const StateBytes bytes = state_of("gpt2-124m", spec::Precision::bf16, spec::GradientDtype::bf16);
  EXPECT_EQ(bytes.weights, 248'879'616);
  EXPECT_EQ(bytes.gradients, 248'879'616);
  EXPECT_EQ(bytes.optimizer, 1'493'277'696);
  EXPECT_EQ(bytes.total(), 16 * int64_t{124'439'808});
}

TEST(StateBytes, AreEighteenAParameterInBf16WithFp32Gradients) {
  EXPECT_EQ(state_of("gpt2-1558m", spec::Precision::bf16, spec::GradientDtype::fp32).total(),
            18 * int64_t{1'557'611'200});
}

TEST(StateBytes, OfFp32TrainingHaveNoMasterOfTheirOwn) {
  const StateBytes bytes = state_of("gpt2-124m", spec::Precision::fp32, spec::GradientDtype::fp32);
  EXPECT_EQ(bytes.weights, 4 * int64_t{124'439'808});
  EXPECT_EQ(bytes.optimizer, 8 * int64_t{124'439'808});
  EXPECT_EQ(bytes.total(), 16 * int64_t{124'439'808});
}

TEST(StateBytes, PadEveryUnitToItsShards) {
  ParameterTable table;
  for (const int64_t elements : {10, 11, 12}) {
    Unit unit;
    unit.elements = elements;
    table.units.push_back(unit);
  }
  spec::TrainingConfig training;
  training.precision = spec::Precision::fp32;
  EXPECT_EQ(state_bytes(table, training).weights, 4 * 33);
  EXPECT_EQ(state_bytes(table, training, {1, 4, 1}).weights, 4 * (12 + 12 + 12));
  EXPECT_EQ(state_bytes(table, training, {3, 4, 1}).weights, 4 * (3 + 3 + 3));
}

TEST(StateBytes, FallWithTheStageAsTheZeroPaperSays) {
  // Every unit of this model divides by 2, 3, 4 and 8.
  const int64_t P = 124'439'808;
  const ParameterTable table = parameter_table(spec::find_model_preset("gpt2-124m")->config);
  spec::TrainingConfig training;
  for (const int64_t n : {2, 3, 4, 8}) {
    training.gradient_dtype = spec::GradientDtype::bf16;
    EXPECT_EQ(state_bytes(table, training, {1, n, 1}).total(), 4 * P + 12 * P / n);
    EXPECT_EQ(state_bytes(table, training, {2, n, 1}).total(), 2 * P + 14 * P / n);
    EXPECT_EQ(state_bytes(table, training, {3, n, 1}).total(), 16 * P / n);
    training.gradient_dtype = spec::GradientDtype::fp32;
    EXPECT_EQ(state_bytes(table, training, {1, n, 1}).total(), 6 * P + 12 * P / n);
    EXPECT_EQ(state_bytes(table, training, {2, n, 1}).total(), 2 * P + 16 * P / n);
    EXPECT_EQ(state_bytes(table, training, {3, n, 1}).total(), 18 * P / n);
  }
}

TEST(TrainingActivationBytes, OfATinyModelAreTheSumOfItsTensors) {
  // B 2, T 8, so N = 16 rows; C 32, I 128, H 2, D 16, V 64; fp32. A [N, C] tensor has 2,048 bytes,
  // QKV 6,144, the MLP's 8,192, statistics 64 a norm's vector and 128 for the softmax.
  ActivationSizes sizes;
  sizes.batch = 2;
  sizes.seq_len = 8;
  sizes.attention_scratch_bytes = 1000;  // 1,024 on the arena
  const int64_t saved = 4 * 2048 + 4 * 64 + 6144 + 128 + 2 * 8192;
  const int64_t gradients = 3 * 2048 + 8192 + 6144 + 2048 + 1024;
  EXPECT_EQ(training_activation_bytes(small(), sizes), 5 * 2048 + 2 * saved + gradients);
}

TEST(TrainingActivationBytes, WithRecomputeHoldOneBlockAtATime) {
  ActivationSizes sizes;
  sizes.batch = 2;
  sizes.seq_len = 8;
  const int64_t keeps = training_activation_bytes(small(), sizes);
  sizes.recompute = spec::Recompute::full;
  const int64_t saved = 4 * 2048 + 4 * 64 + 6144 + 128 + 2 * 8192;
  EXPECT_EQ(keeps - training_activation_bytes(small(), sizes), saved);
}

TEST(TrainingActivationBytes, WithSelectiveRecomputeHoldTheInsidesOfOneBlock) {
  ActivationSizes sizes;
  sizes.batch = 2;
  sizes.seq_len = 8;
  const int64_t keeps = training_activation_bytes(small(), sizes);
  sizes.recompute = spec::Recompute::selective;
  // The context, the softmax's statistics and the activated MLP.
  EXPECT_EQ(keeps - training_activation_bytes(small(), sizes), 2048 + 128 + 8192);
}

TEST(TrainingActivationBytes, OfATinyLlamaAreTheSumOfItsTensors) {
  // As above with a gate: [N, 2I] of 16,384 bytes; half the norms' statistics; sines and cosines
  // of 8 positions, 256 bytes each. Heads before their norms are Q's 2,048 and K's 2,048, with 128
  // bytes of statistics each.
  spec::ModelConfig config = small();
  config.architecture = spec::Architecture::llama;
  config.intermediate_size = 128;
  ActivationSizes sizes;
  sizes.batch = 2;
  sizes.seq_len = 8;
  const int64_t saved = 4 * 2048 + 2 * 64 + 6144 + 128 + 16384 + 8192;
  const int64_t gradients = 3 * 2048 + 16384 + 6144 + 2048;
  const int64_t plain = 2 * 256 + 5 * 2048 + 2 * saved + gradients;
  EXPECT_EQ(training_activation_bytes(config, sizes), plain);
  config.qk_norm = true;
  EXPECT_EQ(training_activation_bytes(config, sizes), plain + 2 * (4096 + 256) + 4096);
}

TEST(TrainingActivationBytes, HoldTwoMoreGradientsWhereThereIsDropout) {
  ActivationSizes sizes;
  sizes.batch = 2;
  sizes.seq_len = 8;
  spec::ModelConfig config = small();
  const int64_t without = training_activation_bytes(config, sizes);
  config.dropout = 0.1;
  EXPECT_EQ(training_activation_bytes(config, sizes) - without, 2 * 2048);
}

TEST(TrainingActivationBytes, NeverHoldMoreThanAChunkOfLogits) {
  // All logits of 4 × 1,024 tokens would be 412 MB in bf16; a chunk has at most 64 MiB, and with
  // one thin layer that chunk is the peak.
  spec::ModelConfig config = small();
  config.vocab_size = 50257;
  config.num_hidden_layers = 1;
  ActivationSizes sizes;
  sizes.batch = 4;
  sizes.seq_len = 1024;
  sizes.dtype = core::DType::bf16;
  const int64_t bytes = training_activation_bytes(config, sizes);
  EXPECT_GT(bytes, int64_t{50} << 20);
  EXPECT_LT(bytes, int64_t{72} << 20);
}

TEST(EvaluationActivationBytes, AreLessThanTrainings) {
  for (const int64_t vocab_size : {64, 50257}) {
    spec::ModelConfig config = small();
    config.vocab_size = vocab_size;
    ActivationSizes sizes;
    sizes.batch = 3;
    sizes.seq_len = 16;
    const int64_t evaluation = evaluation_activation_bytes(config, sizes);
    EXPECT_LT(evaluation, training_activation_bytes(config, sizes));
    sizes.recompute = spec::Recompute::full;
    EXPECT_EQ(evaluation_activation_bytes(config, sizes), evaluation);
  }
}

}  // namespace
}  // namespace tessera::account
