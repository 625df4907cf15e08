#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/safetensors.h"

namespace tessera::formats {

/// The safetensors of a Hugging Face folder: model.safetensors, or the shards that
/// model.safetensors.index.json names.
struct HfShards {
  struct Tensor {
    const SafetensorsFile* file = nullptr;
    const SafetensorsEntry* entry = nullptr;
  };
  std::vector<SafetensorsFile> files;
  std::map<std::string, Tensor> tensors;  ///< by name in the files
  std::vector<std::string> missing;       ///< files and tensors of the index that are not there
  std::vector<std::string> listed;        ///< names of all tensors that the index has
  std::vector<std::string> notes;
};

/// Opens them all, and lists what is amiss between index and shards in `missing`. Throws
/// ConfigError where the folder has no weights in this format, or an index that cannot be read.
HfShards open_hf_shards(const std::string& folder);

}  // namespace tessera::formats
