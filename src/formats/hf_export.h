#pragma once

#include <functional>
#include <string>
#include <vector>

#include "account/parameter_table.h"
#include "core/view.h"

namespace tessera::formats {

/// Fills a view (fp32 or bf16, of the parameter's shape) with a parameter's values: the one way in
/// which weights reach an export.
using ReadParameter = std::function<void(const account::Parameter&, core::View)>;

struct HfWeightsOptions {
  core::DType dtype = core::DType::f32;              ///< fp32 or bf16
  int64_t max_shard_bytes = int64_t{5'000'000'000};  ///< of a file, unless one tensor is larger
};

/// Writes the weights of a resolved config under Hugging Face's names into `folder`, which is
/// there: model.safetensors, or shards with their index where one file would exceed the limit.
/// Holds one tensor at a time. Returns the names of the files. Throws RunError (a full disk).
std::vector<std::string> write_hf_weights(const std::string& folder, const spec::ModelConfig& model,
                                          const ReadParameter& read,
                                          const HfWeightsOptions& options);

}  // namespace tessera::formats
