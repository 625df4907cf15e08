// A safetensors file: header and data.

#include "formats/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "driver.h"

using namespace tessera;
using fuzz::expect;
using fuzz::refused;

namespace {

std::string with_length(const std::string& header, const std::string& data) {
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes += static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return bytes + header + data;
}

/// The header's length made right again, so that more than the length is tried. Every other input.
std::string repaired(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size < 9 || data[size - 1] % 2 != 0) return bytes;
  const size_t end = bytes.rfind('}');
  if (end == std::string::npos || end < 8) return bytes;
  return with_length(bytes.substr(8, end - 7), bytes.substr(end + 1));
}

/// A file in memory, which is opened by its path under /proc: nothing waits for a disk.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("fuzz", MFD_CLOEXEC)) { expect(file_ >= 0, "a file is made"); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }
  void fill(const std::string& bytes) const {
    const bool emptied = ftruncate(file_, 0) == 0;
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), 0);
    expect(emptied && written == static_cast<ssize_t>(bytes.size()), "a file is written");
  }

 private:
  int file_;
};

/// What was accepted accounts for every byte of the data once, and survives being written.
void check(const formats::SafetensorsFile& file, size_t size, const std::string& copy) {
  int64_t end = 0;
  std::vector<formats::NamedTensor> tensors;
  for (const formats::SafetensorsEntry& entry : file.entries()) {
    expect(entry.offset == end, "a tensor begins where the one before it ends");
    expect(entry.bytes == entry.shape.elements() * core::size_of(entry.dtype),
           "a tensor's bytes are those of its shape");
    expect(file.find(entry.name) == &entry, "a tensor is found by its name");
    end += entry.bytes;
    tensors.push_back({entry.name, {file.data(entry), entry.dtype, entry.shape}});
  }
  expect(end + 10 <= static_cast<int64_t>(size), "tensors lie in the file, behind its header");
  formats::write_safetensors(copy, tensors, file.metadata());
  const formats::SafetensorsFile again(copy);
  expect(again.entries().size() == tensors.size(), "no tensor is lost in writing");
  for (const formats::NamedTensor& tensor : tensors) {
    const formats::SafetensorsEntry* entry = again.find(tensor.name);
    expect(entry != nullptr && entry->shape == tensor.data.shape, "a tensor is written as it was");
    const auto bytes = static_cast<size_t>(entry->bytes);
    expect(bytes == 0 || std::memcmp(again.data(*entry), tensor.data.data, bytes) == 0,
           "a tensor's bytes are written as they were");
  }
}

}  // namespace

std::vector<std::string> tessera::fuzz::seeds() {
  return {with_length(R"({"__metadata__":{"format":"pt"},)"
                      R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})",
                      "12345678abcdef"),
          with_length(R"({"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                      R"("n":{"dtype":"U8","shape":[0,4],"data_offsets":[8,8]},)"
                      R"("u":{"dtype":"U16","shape":[1,1,1],"data_offsets":[8,10]}})",
                      "12345678ab"),
          with_length("{}", ""), std::string("\x40\x9d\xdf\x07\0\0\0\0{}", 10)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  static const MemoryFile copy;
  const std::string bytes = repaired(data, size);
  file.fill(bytes);
  std::optional<formats::SafetensorsFile> read;
  if (!refused([&] { read.emplace(file.path()); })) check(*read, bytes.size(), copy.path());
  return 0;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {R"("dtype":"F32")",
          R"("dtype":"BOOL")",
          R"("shape":[])",
          R"("shape":[0])",
          R"("data_offsets":[0,0])",
          R"("__metadata__":{})",
          R"({"a":)",
          R"(},)",
          R"(18446744073709551615)",
          R"(-1)",
          R"(1.0)",
          R"(null)",
          R"([[[[)",
          std::string(8, '\0'),
          "\x02\0\0\0\0\0\0\0{}",
          " "};
}
