#pragma once

// Weights in the files of other programs, one parameter of ours at a time: whatever the file's
// order, orientation and element type, a parameter is read straight to where it belongs.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "account/parameter_table.h"
#include "core/view.h"

namespace tessera::formats {

/// Element types of weights in files.
enum class WeightType : uint8_t { f64, f32, f16, bf16 };
constexpr int64_t size_of(WeightType type) {
  return type == WeightType::f64 ? 8 : type == WeightType::f32 ? 4 : 2;
}

/// A parameter in a mapped file, not necessarily aligned: element (row, column) lies at
/// row · row_stride + column · column_stride elements behind `data`. A vector is one row.
struct WeightBlock {
  const char* data = nullptr;
  WeightType type = WeightType::f32;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

/// Copies the block into all of `out` (fp32 or bf16; its last dimension are the columns),
/// converting the elements.
void read_block(const WeightBlock& block, core::View out);

struct ForeignWeights {
  spec::ModelConfig model;         ///< what the files say the model is; resolved
  core::DType dtype{};             ///< the smallest that holds the weights: bf16 or fp32
  std::vector<std::string> notes;  ///< what a person should know about the files

  /// Fills `out` (fp32 or bf16, of the parameter's elements). The parameter is one of the table
  /// that the files were opened for, or a part of one; padding becomes zero.
  void read(const account::Parameter& parameter, core::View out) const {
    read_from(parameter, 0, out);
  }
  /// Fills `out`, of any shape, with the parameter's elements from number `first` on.
  void read_from(const account::Parameter& parameter, int64_t first, core::View out) const;

  // What the openers below fill.
  std::map<std::string, WeightBlock> blocks;  ///< by canonical name
  std::shared_ptr<const void> files;          ///< what `blocks` point into
};

/// Opens a Hugging Face folder for the model `as`, which is the one of its config.json unless the
/// user changed it. Nothing but headers and the tied head is read. Throws ConfigError that lists
/// everything which stands in the way: missing or damaged shards, tensors that are missing,
/// unknown, of another shape or of a type that is not read.
ForeignWeights open_hf_weights(const std::string& folder, const spec::ModelConfig* as = nullptr);

/// Opens a GPT-2 model file of llm.c, version 3 (fp32) or 5 (bf16), whose size must be the header's
/// to the byte. Throws ConfigError, RunError.
ForeignWeights open_llmc_weights(const std::string& path);
/// Whether the file begins as one.
bool is_llmc_model(const std::string& path);

}  // namespace tessera::formats
