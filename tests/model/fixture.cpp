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

}  // namespace

Fixture read_fixture(const std::string& path, const std::string& prefix) {
  const formats::SafetensorsFile file(TESSERA_TESTS_DIR "/fixtures/" + path);
  Fixture tensors;
  for (const formats::SafetensorsEntry& entry : file.entries()) {
    tensors[prefix + entry.name] = {entry.shape, entry.dtype == core::DType::f32
                                                     ? read_as<float>(file, entry)
                                                     : read_as<int32_t>(file, entry)};
  }
  return tensors;
}

}  // namespace tessera::model::testing
