#include "model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/rope.h"

// Legend: D head_dim, P max_position_embeddings, T tokens of a sequence, theta the base.

namespace tessera::model {

namespace {

/// theta^(−2i / D).
std::vector<float> plain_frequencies(double theta, int64_t head_dim) {
  std::vector<float> inv_freq;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    const double power = std::pow(static_cast<double>(static_cast<float>(theta)), exponent);
    inv_freq.push_back(1.0f / static_cast<float>(power));
  }
  return inv_freq;
}

/// "NTK-aware" scaling: the base grows so that the slowest pair turns at T as it would at P, with
/// T / P stretched by `factor`.
double dynamic_theta(const spec::ModelConfig& config, int64_t seq_len) {
  const auto factor = static_cast<float>(config.rope_scaling.factor);
  const auto positions = static_cast<float>(config.max_position_embeddings);
  const float tokens = std::max(static_cast<float>(seq_len), positions);
  const auto dim = static_cast<double>(config.head_dim);
  const float stretch = factor * tokens / positions - (factor - 1);
  const float power = std::pow(stretch, static_cast<float>(dim / (dim - 2)));
  return static_cast<float>(config.rope_theta) * power;
}

/// Wavelengths beyond original / low_freq_factor are stretched, those below original /
/// high_freq_factor kept, and the others mixed by where they lie in between.
void scale_llama3(std::vector<float>& inv_freq, const spec::RopeScaling& scaling) {
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const auto longest = static_cast<float>(original / scaling.low_freq_factor);
  const auto shortest = static_cast<float>(original / scaling.high_freq_factor);
  const auto factor = static_cast<float>(scaling.factor);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto range = static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor);
  for (float& frequency : inv_freq) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
    if (wavelength < shortest) continue;
    if (wavelength > longest) {
      frequency /= factor;
      continue;
    }
    const float kept = (static_cast<float>(original) / wavelength - low) / range;
    frequency = (1 - kept) * (frequency / factor) + kept * frequency;
  }
}

/// The pair that makes `rotations` turns over the original length.
double pair_of_rotations(const spec::ModelConfig& config, double rotations) {
  const auto original = static_cast<double>(config.rope_scaling.original_max_position_embeddings);
  return static_cast<double>(config.head_dim) *
         std::log(original / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(config.rope_theta));
}

/// Pairs up to `low` keep their frequency, those from `high` on are divided by the factor, and a
/// ramp lies between.
void scale_yarn(std::vector<float>& inv_freq, const spec::ModelConfig& config) {
  const spec::RopeScaling& scaling = config.rope_scaling;
  const double low = std::max(0.0, std::floor(pair_of_rotations(config, scaling.beta_fast)));
  double high = std::min(static_cast<double>(config.head_dim - 1),
                         std::ceil(pair_of_rotations(config, scaling.beta_slow)));
  if (high == low) high += 0.001;
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float ramp =
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1 - std::clamp(ramp, 0.0f, 1.0f);
    const float stretched = 1.0f / (static_cast<float>(scaling.factor) * (1.0f / inv_freq[i]));
    inv_freq[i] = stretched * (1 - kept) + inv_freq[i] * kept;
  }
}

float yarn_attention_factor(const spec::RopeScaling& scaling) {
  if (scaling.attention_factor != 0) return static_cast<float>(scaling.attention_factor);
  return static_cast<float>(scaling.factor <= 1 ? 1.0 : 0.1 * std::log(scaling.factor) + 1);
}

}  // namespace

RotaryFrequencies rotary_frequencies(const spec::ModelConfig& config, int64_t seq_len) {
  const spec::RopeScaling& scaling = config.rope_scaling;
  RotaryFrequencies result;
  result.inv_freq = plain_frequencies(config.rope_theta, config.head_dim);
  switch (scaling.rope_type) {
    case spec::RopeType::none:
      break;
    case spec::RopeType::linear:
      for (float& frequency : result.inv_freq) frequency /= static_cast<float>(scaling.factor);
      break;
    case spec::RopeType::dynamic:
      result.inv_freq = plain_frequencies(dynamic_theta(config, seq_len), config.head_dim);
      break;
    case spec::RopeType::llama3:
      scale_llama3(result.inv_freq, scaling);
      break;
    case spec::RopeType::yarn:
      scale_yarn(result.inv_freq, config);
      result.attention_factor = yarn_attention_factor(scaling);
      break;
  }
  return result;
}

RotaryTables make_rotary_tables(Pass& pass, const spec::ModelConfig& config, core::DType dtype) {
  const int64_t seq_len = pass.batch.seq_len();
  const RotaryFrequencies frequencies = rotary_frequencies(config, seq_len);
  RotaryTables tables;
  tables.cos = pass.arena.allocate(dtype, {seq_len, config.head_dim / 2});
  tables.sin = pass.arena.allocate(dtype, {seq_len, config.head_dim / 2});
  kernels::rope_angles(tables.cos, tables.sin, frequencies.inv_freq.data(),
                       frequencies.attention_factor);
  return tables;
}

}  // namespace tessera::model
