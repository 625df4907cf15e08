#pragma once

#include <string>
#include <vector>

#include "account/parameter_table.h"
#include "core/view.h"
#include "spec/run_config.h"

// Adapters in the files of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors.
// PEFT's adapters stand beside the modules of transformers' models. Where those fuse products that
// we keep apart (GPT-2's c_attn), our adapters become one whose rank is the sum of theirs: A the
// As on top of each other, B their Bs in blocks.

namespace tessera::formats {

/// A tensor of adapter_model.safetensors, made of parameters of ours: part i lies at (row, column)
/// of `shape`; the rest is zeros.
struct PeftTensor {
  struct Part {
    const account::Parameter* parameter = nullptr;
    int64_t row = 0;
    int64_t column = 0;
  };
  std::string name;
  core::Shape shape;  ///< of two dimensions
  std::vector<Part> parts;
};

/// All of them, for the table of a resolved config with adapters, which must outlive them.
std::vector<PeftTensor> peft_tensors(const spec::ModelConfig& model,
                                     const account::ParameterTable& table);

/// adapter_config.json. `base`: path or name of the model that the adapters stand beside; may be
/// empty.
std::string peft_config_json(const spec::ModelConfig& model, const spec::LoraConfig& lora,
                             const std::string& base);

}  // namespace tessera::formats
