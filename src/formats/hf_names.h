#pragma once

// Which tensor of Hugging Face's files holds a parameter. Llama's names are the canonical ones; the
// GPT-2 of OpenAI's release has its own, products stored [in, out] (its "Conv1D"), and Q, K and V
// in one.

#include <string>
#include <string_view>

#include "account/parameter_table.h"

namespace tessera::formats {

struct HfPlace {
  std::string tensor;       ///< "transformer.h.3.attn.c_attn.weight"
  core::Shape shape;        ///< of that tensor
  int64_t first = 0;        ///< where the parameter's outputs begin among the tensor's
  bool transposed = false;  ///< the tensor is [in, out]
};

/// The place of a parameter of a resolved config's table.
HfPlace hf_place(const spec::ModelConfig& model, const account::Parameter& parameter);

/// What the names of a block's tensors begin with: "transformer.h.3.".
std::string hf_block(spec::Architecture architecture, int64_t layer);

/// A tensor's name as hf_place has it: files of a model without its head lack the first part
/// ("h.3.…", "layers.3.…").
std::string hf_full_name(spec::Architecture architecture, const std::string& name);

/// Whether the tensor is a constant that old versions saved along, such as the causal mask.
bool is_hf_buffer(std::string_view name);

}  // namespace tessera::formats
