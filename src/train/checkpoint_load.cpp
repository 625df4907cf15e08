#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "core/error.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"
#include "kernels/elementwise.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConstView;
using core::RunError;
using core::View;
using parallel::StateKind;

namespace {

formats::Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / "manifest.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw RunError(
        fmt::format("{} is not a complete checkpoint: it has no manifest.json", folder.string()));
  }
  return formats::manifest_from_json(read_file(path), path.string());
}

void verify_files(const fs::path& folder, const formats::Manifest& manifest) {
  for (const auto& [name, expected] : manifest.files) {
    const fs::path path = folder / name;
    std::error_code error;
    const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
    if (error) throw RunError(fmt::format("{}: {}", path.string(), error.message()));
    if (bytes != expected.bytes) {
      throw RunError(fmt::format("{} is damaged: {} bytes where the manifest has {}", path.string(),
                                 bytes, expected.bytes));
    }
    if (!(formats::digest_of_file(path.string()) == expected)) {
      throw RunError(
          fmt::format("{} is damaged: its checksum is not the manifest's", path.string()));
    }
  }
}

CheckpointHeader header_of(const formats::Manifest& manifest) {
  return {manifest.step, manifest.sampler_seed, manifest.samples, manifest.config, manifest.layout};
}

/// Copies a block of a row-major tensor, dimension by dimension; the last is contiguous in both.
void copy_block(std::byte* tensor, const core::Shape& shape, const std::byte* block,
                const formats::ManifestSlice& slice, int64_t element_bytes, int dim) {
  // At most kMaxDims, said once more for compilers that unroll the recursion.
  const int dims = std::min(shape.dims(), core::Shape::kMaxDims);
  int64_t tensor_stride = element_bytes;
  int64_t block_stride = element_bytes;
  for (int i = dim + 1; i < dims; ++i) {
    tensor_stride *= shape[i];
    block_stride *= slice.shape[i];
  }
  tensor += (dims == 0 ? 0 : slice.offset[static_cast<size_t>(dim)]) * tensor_stride;
  if (dim + 1 >= dims) {
    const int64_t count = dims == 0 ? 1 : slice.shape[dim];
    std::memcpy(tensor, block, static_cast<size_t>(count * element_bytes));
    return;
  }
  for (int64_t i = 0; i < slice.shape[dim]; ++i) {
    copy_block(tensor + i * tensor_stride, shape, block + i * block_stride, slice, element_bytes,
               dim + 1);
  }
}

/// Reads tensors of one checkpoint, whatever files their slices lie in.
class Reader {
 public:
  Reader(fs::path folder, const formats::Manifest& manifest)
      : folder_(std::move(folder)), manifest_(manifest) {}

  /// nullptr when the checkpoint keeps no such state of the parameter.
  const formats::ManifestTensor* find(const std::string& name, StateKind kind) const {
    const auto states = manifest_.tensors.find(name);
    if (states == manifest_.tensors.end()) return nullptr;
    const auto tensor = states->second.find(name_of(kind));
    return tensor == states->second.end() ? nullptr : &tensor->second;
  }

  /// Fills `out`, of the tensor's shape, converting the dtype where it must.
  void read(const formats::ManifestTensor& tensor, View out) {
    CHECK(tensor.shape == out.shape, "find_obstacles has compared the shapes");
    if (tensor.dtype == out.dtype) {
      read_slices(tensor, static_cast<std::byte*>(out.data));
      return;
    }
    std::vector<std::byte> values(
        static_cast<size_t>(tensor.shape.elements() * core::size_of(tensor.dtype)));
    read_slices(tensor, values.data());
    kernels::cast(out, ConstView{values.data(), tensor.dtype, out.shape});
  }

 private:
  void read_slices(const formats::ManifestTensor& tensor, std::byte* out) {
    for (const formats::ManifestSlice& slice : tensor.slices) {
      const formats::SafetensorsFile& file = open(slice.file);
      const formats::SafetensorsEntry* entry = file.find(slice.key);
      if (entry == nullptr || entry->dtype != tensor.dtype || !(entry->shape == slice.shape)) {
        throw RunError(fmt::format("{}: {} is not what the manifest says",
                                   (folder_ / slice.file).string(), slice.key));
      }
      copy_block(out, tensor.shape, static_cast<const std::byte*>(file.data(*entry)), slice,
                 core::size_of(tensor.dtype), 0);
    }
  }

  const formats::SafetensorsFile& open(const std::string& name) {
    auto& file = files_[name];
    if (!file) file = std::make_unique<formats::SafetensorsFile>((folder_ / name).string());
    return *file;
  }

  fs::path folder_;
  const formats::Manifest& manifest_;
  std::map<std::string, std::unique_ptr<formats::SafetensorsFile>> files_;
};

std::string shape_text(const core::Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.dims(); ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

/// The best values there are for a parameter's master: its master, or fp32 weights, or bf16 ones.
const formats::ManifestTensor* find_values(const Reader& reader, const std::string& name) {
  const formats::ManifestTensor* master = reader.find(name, StateKind::master);
  return master != nullptr ? master : reader.find(name, StateKind::weights);
}

/// Whether a parameter may be missing and keeps its initial values: an adapter that training is to
/// begin with.
bool starts_fresh(const account::Parameter& parameter, LoadWhat what) {
  return what == LoadWhat::base && parameter.is_adapter();
}

/// Everything that stands in the way of loading, so that it can be told at once.
std::vector<std::string> find_obstacles(const formats::Manifest& manifest, const Reader& reader,
                                        const account::ParameterTable& table, LoadWhat what) {
  std::vector<std::string> obstacles;
  std::map<std::string, bool> known;
  for (const account::Parameter& parameter : table.parameters) {
    known[parameter.name] = true;
    const formats::ManifestTensor* values = find_values(reader, parameter.name);
    const bool fresh = values == nullptr && starts_fresh(parameter, what);
    if (fresh) continue;
    if (values == nullptr) {
      obstacles.push_back(parameter.name + " is missing");
    } else if (!(values->shape == parameter.shape)) {
      obstacles.push_back(fmt::format("{} is {} in the checkpoint and {} in the model",
                                      parameter.name, shape_text(values->shape),
                                      shape_text(parameter.shape)));
    } else if (what == LoadWhat::everything && parameter.trainable) {
      for (StateKind kind : {StateKind::m, StateKind::v}) {
        const formats::ManifestTensor* moment = reader.find(parameter.name, kind);
        if (moment != nullptr && moment->shape == parameter.shape) continue;
        obstacles.push_back(fmt::format("the optimizer's {} of {} is missing or of another shape",
                                        name_of(kind), parameter.name));
      }
    }
  }
  for (const auto& entry : manifest.tensors) {
    if (known.count(entry.first) == 0) {
      obstacles.push_back(entry.first + " is in the checkpoint but not in the model");
    }
  }
  return obstacles;
}

void refuse(const fs::path& folder, const std::vector<std::string>& obstacles) {
  constexpr size_t kShown = 12;
  std::string text = fmt::format("{} does not fit the model of this config:", folder.string());
  for (size_t i = 0; i < obstacles.size() && i < kShown; ++i) text += "\n  " + obstacles[i];
  if (obstacles.size() > kShown) text += fmt::format("\n  and {} more", obstacles.size() - kShown);
  const bool adapters = std::any_of(obstacles.begin(), obstacles.end(), [](const auto& obstacle) {
    return obstacle.find(".lora_") != std::string::npos;
  });
  throw core::ConfigError(
      text + (adapters ? "\nUse the [lora] section that it was trained with (its config.toml), or "
                         "`tessera checkpoint convert --to hf`, which adds adapters to the weights"
                       : "\nUse the [model] section that it was trained with (its config.toml)"));
}

}  // namespace

CheckpointHeader read_checkpoint_header(const fs::path& folder) {
  return header_of(read_manifest(folder));
}

void verify_checkpoint(const fs::path& folder) {
  verify_files(folder, read_manifest(folder));
}

/// Open files of one checkpoint.
struct CheckpointWeights::Files {
  explicit Files(const fs::path& folder)
      : manifest(read_manifest(folder)), reader(folder, manifest) {}
  formats::Manifest manifest;
  Reader reader;
};

CheckpointWeights::CheckpointWeights(const fs::path& folder, const account::ParameterTable& table)
    : files_(std::make_shared<Files>(folder)) {
  verify_files(folder, files_->manifest);
  const std::vector<std::string> obstacles =
      find_obstacles(files_->manifest, files_->reader, table, LoadWhat::weights);
  if (!obstacles.empty()) refuse(folder, obstacles);
}

void CheckpointWeights::read(const account::Parameter& parameter, View out) const {
  files_->reader.read(*find_values(files_->reader, parameter.name), out);
}

CheckpointHeader load_checkpoint(const fs::path& folder, parallel::ModelState& state,
                                 LoadWhat what) {
  const formats::Manifest manifest = read_manifest(folder);
  verify_files(folder, manifest);
  Reader reader(folder, manifest);
  const std::vector<std::string> obstacles = find_obstacles(manifest, reader, state.table(), what);
  if (!obstacles.empty()) refuse(folder, obstacles);

  for (const account::Parameter& parameter : state.table().parameters) {
    const formats::ManifestTensor* values = find_values(reader, parameter.name);
    if (values == nullptr) continue;
    reader.read(*values, state.whole(StateKind::master, parameter));
    if (what != LoadWhat::everything || !parameter.trainable) continue;
    for (StateKind kind : {StateKind::m, StateKind::v}) {
      reader.read(*reader.find(parameter.name, kind), state.whole(kind, parameter));
    }
  }
  state.refresh_weights_from_master();
  return header_of(manifest);
}

}  // namespace tessera::train
