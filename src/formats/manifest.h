#pragma once

// manifest.json of a checkpoint: which parts of which tensors are in which files. Any layout can be
// read from it by any other.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "formats/hash.h"

namespace tessera::formats {

/// A block of a tensor, as a tensor of a safetensors file.
struct ManifestSlice {
  std::string file;             ///< a name in the checkpoint's folder, in Manifest::files too
  std::string key;              ///< the name inside the file
  std::vector<int64_t> offset;  ///< where the block begins in the tensor, one number a dimension
  core::Shape shape;            ///< the block's
};

struct ManifestTensor {
  core::DType dtype = core::DType::f32;
  core::Shape shape;  ///< global
  std::vector<ManifestSlice> slices;
};

/// What is kept of one parameter: "weights", "master", "m" or "v" → tensor.
using ManifestStates = std::map<std::string, ManifestTensor>;

struct Manifest {
  static constexpr int64_t kVersion = 1;

  int64_t step = 0;
  std::string config;  ///< the resolved config, TOML
  std::string layout;  ///< "dp=4"
  uint64_t sampler_seed = 0;
  int64_t samples = 0;
  std::map<std::string, ManifestStates> tensors;  ///< by canonical name
  std::map<std::string, FileDigest> files;        ///< by name in the folder
};

/// JSON text; the same manifest gives the same text.
std::string to_json(const Manifest& manifest);

/// Reads strictly: throws RunError, beginning with `path`, that says what is missing, unknown, of
/// the wrong type or inconsistent: slices that do not cover their tensor exactly once, or that lie
/// in a file that is not listed.
Manifest manifest_from_json(const std::string& text, const std::string& path);

}  // namespace tessera::formats
