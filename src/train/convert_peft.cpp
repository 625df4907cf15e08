#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/file.h"
#include "formats/hf_config.h"
#include "formats/peft.h"
#include "formats/safetensors.h"
#include "kernels/elementwise.h"
#include "train/checkpoint.h"
#include "train/convert.h"
#include "train/new_folder.h"

namespace tessera::train {

namespace fs = std::filesystem;

namespace {

using core::DType;
using core::View;

/// Makes the tensors one after the other in memory that they share.
class Assembler {
 public:
  Assembler(const CheckpointWeights& weights, DType dtype) : weights_(weights), dtype_(dtype) {}

  const void* make(const formats::PeftTensor& tensor) {
    const int64_t element = core::size_of(dtype_);
    values_.assign(static_cast<size_t>(tensor.shape.elements() * element), std::byte{});
    for (const formats::PeftTensor::Part& part : tensor.parts) {
      const core::Shape& shape = part.parameter->shape;
      part_.resize(static_cast<size_t>(shape.elements() * element));
      weights_.read(*part.parameter, View{part_.data(), dtype_, shape});
      for (int64_t row = 0; row < shape[0]; ++row) {
        const int64_t to = (part.row + row) * tensor.shape[1] + part.column;
        std::memcpy(values_.data() + to * element, part_.data() + row * shape[1] * element,
                    static_cast<size_t>(shape[1] * element));
      }
    }
    return values_.data();
  }

 private:
  const CheckpointWeights& weights_;
  DType dtype_;
  std::vector<std::byte> values_;
  std::vector<std::byte> part_;
};

/// The Hugging Face folder that the adapters were trained on; "" where it was none.
std::string base_of(const spec::RunConfig& config) {
  const std::string& load = config.training.load;
  return !load.empty() && formats::is_hf_folder(load) ? fs::absolute(load).string() : "";
}

}  // namespace

Converted convert_to_peft(const WeightsPath& weights, const Conversion& conversion) {
  check_output(weights, conversion);
  const spec::RunConfig config =
      weights.kind == WeightsKind::checkpoint ? config_of(weights) : spec::RunConfig{};
  if (config.lora.rank == 0) {
    throw core::ConfigError(
        fmt::format("{} has no adapters: it was not trained with lora.rank. --to hf writes the "
                    "whole model",
                    weights.path.string()));
  }
  const spec::ModelConfig model = spec::resolved(config.model);
  const account::ParameterTable table = account::parameter_table(model, config.lora);
  const CheckpointWeights files(weights.path, table);
  Converted result;
  result.dtype = conversion.dtype.value_or(DType::f32);
  result.parameters = table.num_trainable_elements();
  const std::string base = base_of(config);
  if (base.empty()) {
    result.notes.push_back(fmt::format(
        "base_model_name_or_path is left empty: training.load = \"{}\" is no Hugging Face "
        "folder, seen from here",
        config.training.load));
  }

  NewFolder folder(conversion.output, conversion.overwrite, "adapter_config.json");
  result.output = folder.target();
  core::write_atomically((folder.path() / "adapter_config.json").string(),
                         formats::peft_config_json(model, config.lora, base));
  const std::vector<formats::PeftTensor> tensors = formats::peft_tensors(model, table);
  Assembler assembler(files, result.dtype);
  std::vector<formats::LazyTensor> lazy;
  for (const formats::PeftTensor& tensor : tensors) {
    lazy.push_back({tensor.name, result.dtype, tensor.shape,
                    [&assembler, &tensor] { return assembler.make(tensor); }});
  }
  formats::write_lazy_safetensors((folder.path() / "adapter_model.safetensors").string(), lazy);
  result.files = {"adapter_config.json", "adapter_model.safetensors"};
  folder.commit();
  return result;
}

}  // namespace tessera::train
