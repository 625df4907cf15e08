#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/view.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"
#include "parallel/model_state.h"

namespace tessera::train {

/// Reads parts of the tensors of one checkpoint, whatever files and blocks they lie in. Files are
/// mapped when something of them is wanted, so a rank touches what it reads alone.
class CheckpointReader {
 public:
  /// Reads the manifest. Throws RunError.
  explicit CheckpointReader(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const formats::Manifest& manifest() const { return manifest_; }

  /// Compares every file's size with the manifest, and the checksums of one file in `ranks`, so
  /// that so many ranks check all of them. Throws RunError that names the file that differs and
  /// what lies in it.
  void verify(int64_t rank = 0, int64_t ranks = 1) const;

  /// nullptr when the checkpoint keeps no such state of the parameter.
  const formats::ManifestTensor* find(const std::string& name, parallel::StateKind kind) const;

  /// Fills `out`, of as many elements, with a run of the part of `parameter` that is held here,
  /// padding with zeros, converting the dtype where it must. `tensor` is of the parameter's whole
  /// shape. Throws RunError that names file and tensor.
  void read(const formats::ManifestTensor& tensor, const account::Parameter& parameter,
            const parallel::ElementRange& range, core::View out);

 private:
  const std::byte* open(const formats::ManifestSlice& slice, core::DType dtype);
  void copy(core::View out, const std::byte* from, core::DType dtype);

  std::filesystem::path folder_;
  formats::Manifest manifest_;
  std::map<std::string, std::unique_ptr<formats::SafetensorsFile>> files_;
  std::vector<std::byte> piece_;  ///< between two dtypes
};

}  // namespace tessera::train
