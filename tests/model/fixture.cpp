#include "model/fixture.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tessera::model::testing {

namespace {

/// Elements of type T at `data`, which is aligned to nothing.
template <class T>
std::vector<double> read_as(const char* data, int64_t count) {
  std::vector<T> raw(static_cast<size_t>(count));
  std::memcpy(raw.data(), data, raw.size() * sizeof(T));
  return {raw.begin(), raw.end()};
}

/// A safetensors file: 8 bytes of header length, the header in JSON, then the tensors.
std::map<std::string, FixtureTensor> read_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  CHECK(bytes.size() > 8, "no fixture at " + path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  std::map<std::string, FixtureTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::vector<int64_t> sizes = entry.at("shape");
    FixtureTensor tensor;
    switch (sizes.size()) {
      case 0:
        tensor.shape = {1};
        break;
      case 1:
        tensor.shape = {sizes[0]};
        break;
      case 2:
        tensor.shape = {sizes[0], sizes[1]};
        break;
      default:
        tensor.shape = {sizes[0], sizes[1], sizes[2]};
        break;
    }
    const char* data =
        bytes.data() + 8 + header_bytes + entry.at("data_offsets").at(0).get<size_t>();
    tensor.values = entry.at("dtype") == "F32" ? read_as<float>(data, tensor.shape.elements())
                                               : read_as<int32_t>(data, tensor.shape.elements());
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace

const std::map<std::string, FixtureTensor>& gpt2_fixture() {
  static const auto tensors =
      read_safetensors(TESSERA_TESTS_DIR "/fixtures/gpt2_tiny/gpt2_tiny.safetensors");
  return tensors;
}

}  // namespace tessera::model::testing
