#include "formats/hf_export.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "formats/foreign_weights.h"
#include "formats/hf_names.h"
#include "formats/safetensors.h"

namespace tessera::formats {
namespace {

using account::Parameter;
using core::DType;

/// A tensor of the files, and the parameters that it is made of.
struct FileTensor {
  HfPlace place;
  std::vector<const Parameter*> parts;
  std::vector<int64_t> firsts;  ///< of each part, among the tensor's outputs
  int64_t bytes = 0;
};

std::vector<FileTensor> tensors_of(const spec::ModelConfig& model,
                                   const account::ParameterTable& table, DType dtype) {
  std::vector<FileTensor> tensors;
  std::map<std::string, size_t> index;
  for (const Parameter& parameter : table.parameters) {
    const HfPlace place = hf_place(model, parameter);
    const auto found = index.emplace(place.tensor, tensors.size());
    if (found.second) {
      tensors.push_back({place, {}, {}, place.shape.elements() * core::size_of(dtype)});
    }
    FileTensor& tensor = tensors[found.first->second];
    tensor.parts.push_back(&parameter);
    tensor.firsts.push_back(place.first);
  }
  return tensors;
}

/// Makes tensors one after the other in memory that they share.
class Assembler {
 public:
  Assembler(const ReadParameter& read, DType dtype) : read_(read), dtype_(dtype) {}

  const void* make(const FileTensor& tensor) {
    values_.resize(static_cast<size_t>(tensor.bytes));
    if (!tensor.place.transposed) {
      read_parts(tensor, values_.data());
      return values_.data();
    }
    const core::Shape& shape = tensor.place.shape;  // [in, out]
    outputs_.resize(values_.size());
    read_parts(tensor, outputs_.data());
    const WeightType type = dtype_ == DType::f32 ? WeightType::f32 : WeightType::bf16;
    read_block({reinterpret_cast<const char*>(outputs_.data()), type, 1, shape[0]},
               {values_.data(), dtype_, shape});
    return values_.data();
  }

 private:
  /// One below the other, each [out, in].
  void read_parts(const FileTensor& tensor, std::byte* to) const {
    for (size_t i = 0; i < tensor.parts.size(); ++i) {
      const core::Shape& shape = tensor.parts[i]->shape;
      const int64_t width = shape.dims() == 1 ? 1 : shape.last();
      read_(*tensor.parts[i],
            {to + tensor.firsts[i] * width * core::size_of(dtype_), dtype_, shape});
    }
  }

  const ReadParameter& read_;
  DType dtype_;
  std::vector<std::byte> values_;
  std::vector<std::byte> outputs_;  ///< a tensor before it is transposed
};

/// The tensors in order, as many to a shard as fit.
std::vector<std::vector<const FileTensor*>> shards_of(const std::vector<FileTensor>& tensors,
                                                      int64_t max_bytes) {
  std::vector<std::vector<const FileTensor*>> shards(1);
  int64_t bytes = 0;
  for (const FileTensor& tensor : tensors) {
    if (!shards.back().empty() && bytes + tensor.bytes > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += tensor.bytes;
  }
  return shards;
}

}  // namespace

std::vector<std::string> write_hf_weights(const std::string& folder, const spec::ModelConfig& model,
                                          const ReadParameter& read,
                                          const HfWeightsOptions& options) {
  CHECK(options.dtype == DType::f32 || options.dtype == DType::bf16);
  const std::filesystem::path root(folder);
  const account::ParameterTable table = account::parameter_table(model);
  const std::vector<FileTensor> tensors = tensors_of(model, table, options.dtype);
  const auto shards = shards_of(tensors, options.max_shard_bytes);
  Assembler assembler(read, options.dtype);
  std::vector<std::string> files;
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    files.push_back(shards.size() == 1
                        ? "model.safetensors"
                        : fmt::format("model-{:05d}-of-{:05d}.safetensors", i + 1, shards.size()));
    std::vector<LazyTensor> lazy;
    for (const FileTensor* tensor : shards[i]) {
      lazy.push_back({tensor->place.tensor, options.dtype, tensor->place.shape,
                      [&assembler, tensor] { return assembler.make(*tensor); }});
      map[tensor->place.tensor] = files.back();
      total += tensor->bytes;
    }
    write_lazy_safetensors((root / files.back()).string(), lazy);
  }
  if (shards.size() == 1) return files;
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  files.emplace_back("model.safetensors.index.json");
  core::write_atomically((root / files.back()).string(), index.dump(2) + "\n");
  return files;
}

}  // namespace tessera::formats
