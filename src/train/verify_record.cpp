#include <cstring>

#include "core/error.h"
#include "formats/safetensors.h"
#include "train/verify.h"

// A record is a safetensors file: losses, grad_norms, tensor_norms, differing_copy, and for
// parameter i of the table gradients.i and weights.i.

namespace tessera::train {

using core::DType;

namespace {

template <class T>
core::ConstView as_view(const std::vector<T>& values, DType dtype) {
  return {values.data(), dtype, {static_cast<int64_t>(values.size())}};
}

template <class Values>
void read_into(const formats::SafetensorsFile& file, const std::string& name, DType dtype,
               Values& values) {
  const formats::SafetensorsEntry* entry = file.find(name);
  CHECK(entry != nullptr && entry->dtype == dtype, "a record without " + name);
  values.resize(static_cast<size_t>(entry->shape.elements()));
  std::memcpy(values.data(), file.data(*entry), static_cast<size_t>(entry->bytes));
}

}  // namespace

void save_record(const std::filesystem::path& path, const VerifyRecord& record) {
  std::vector<formats::NamedTensor> tensors = {
      {"losses", as_view(record.losses, DType::f64)},
      {"grad_norms", as_view(record.grad_norms, DType::f64)},
      {"tensor_norms", as_view(record.tensor_norms, DType::f64)},
      {"differing_copy",
       {record.differing_copy.data(),
        DType::u8,
        {static_cast<int64_t>(record.differing_copy.size())}}}};
  for (size_t i = 0; i < record.weights.size(); ++i) {
    const std::string at = std::to_string(i);
    tensors.push_back({"gradients." + at, as_view(record.gradients[i], DType::f32)});
    tensors.push_back({"weights." + at, as_view(record.weights[i], DType::f32)});
  }
  formats::write_safetensors(path.string(), tensors);
}

VerifyRecord load_record(const std::filesystem::path& path) {
  const formats::SafetensorsFile file(path.string());
  VerifyRecord record;
  read_into(file, "losses", DType::f64, record.losses);
  read_into(file, "grad_norms", DType::f64, record.grad_norms);
  read_into(file, "tensor_norms", DType::f64, record.tensor_norms);
  read_into(file, "differing_copy", DType::u8, record.differing_copy);
  for (size_t i = 0; file.find("weights." + std::to_string(i)) != nullptr; ++i) {
    read_into(file, "gradients." + std::to_string(i), DType::f32, record.gradients.emplace_back());
    read_into(file, "weights." + std::to_string(i), DType::f32, record.weights.emplace_back());
  }
  return record;
}

}  // namespace tessera::train
