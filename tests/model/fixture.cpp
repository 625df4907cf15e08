#include "model/fixture.h"

#include <cstring>

#include "formats/safetensors.h"

namespace tessera::model::testing {

namespace {

template <class T>
std::vector<double> read_as(const formats::SafetensorsFile& file,
                            const formats::SafetensorsEntry& entry) {
  std::vector<T> raw(static_cast<size_t>(entry.shape.elements()));
  CHECK(entry.dtype == core::dtype_of<T>);
  std::memcpy(raw.data(), file.data(entry), static_cast<size_t>(entry.bytes));
  return {raw.begin(), raw.end()};
}

std::map<std::string, FixtureTensor> read_fixture(const std::string& path) {
  const formats::SafetensorsFile file(path);
  std::map<std::string, FixtureTensor> tensors;
  for (const formats::SafetensorsEntry& entry : file.entries()) {
    tensors[entry.name] = {entry.shape, entry.dtype == core::DType::f32
                                            ? read_as<float>(file, entry)
                                            : read_as<int32_t>(file, entry)};
  }
  return tensors;
}

}  // namespace

const std::map<std::string, FixtureTensor>& gpt2_fixture() {
  static const auto tensors =
      read_fixture(TESSERA_TESTS_DIR "/fixtures/gpt2_tiny/gpt2_tiny.safetensors");
  return tensors;
}

}  // namespace tessera::model::testing
