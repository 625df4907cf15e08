#pragma once

#include <cstdint>
#include <vector>

#include "model/pass.h"
#include "spec/model_config.h"

namespace tessera::model {

/// How fast each pair of a head turns, and what sin and cos are multiplied by.
struct RotaryFrequencies {
  std::vector<float> inv_freq;  ///< [D/2], radians a position
  float attention_factor = 1;
};

/// The frequencies of a resolved config for sequences of `seq_len` tokens (which only `dynamic`
/// looks at). In fp32, step by step as transformers computes them: a model was trained with these
/// roundings, which at position 1,000 are a ten-thousandth of a radian.
RotaryFrequencies rotary_frequencies(const spec::ModelConfig& config, int64_t seq_len);

/// The tables of a pass's sequences, allocated on its arena in `dtype` (statistics_dtype).
RotaryTables make_rotary_tables(Pass& pass, const spec::ModelConfig& config, core::DType dtype);

}  // namespace tessera::model
