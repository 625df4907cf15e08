#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "core/file.h"
#include "formats/safetensors.h"

namespace tessera::formats {
namespace {

/// A file that is written once from front to back, hashed on its way.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!file_) fail("create");
  }

  void write(const void* data, int64_t bytes) {
    // Hashing right before writing keeps the piece in the cache.
    constexpr int64_t kPiece = int64_t{1} << 20;
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const int64_t piece = std::min(bytes, kPiece);
      hash_.update(from, piece);
      core::write_all(file_, std::as_bytes(std::span(from, static_cast<size_t>(piece))), path_);
      from += piece;
      bytes -= piece;
      digest_.bytes += piece;
    }
  }

  /// Everything is on the disk when this returns.
  FileDigest close() {
    if (::fsync(file_.get()) != 0) fail("flush to the disk");
    if (::close(file_.release()) != 0) fail("close");
    digest_.xxh3 = hash_.hex();
    return digest_;
  }

 private:
  [[noreturn]] void fail(const char* doing) const {
    throw core::RunError(core::file_failure(doing, path_, errno));
  }

  std::string path_;
  core::Descriptor file_;
  Xxh3 hash_;
  FileDigest digest_;
};

int64_t bytes_of(const LazyTensor& tensor) {
  return tensor.shape.elements() * core::size_of(tensor.dtype);
}

std::string header_of(const std::vector<const LazyTensor*>& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  header["__metadata__"]["format"] = "pt";
  int64_t offset = 0;
  for (const LazyTensor* tensor : tensors) {
    const int64_t end = offset + bytes_of(*tensor);
    header[tensor->name] = {{"dtype", safetensors_dtype(tensor->dtype)},
                            {"shape", tensor->shape.sizes()},
                            {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

const char* safetensors_dtype(core::DType dtype) {
  switch (dtype) {
    case core::DType::f64:
      return "F64";
    case core::DType::f32:
      return "F32";
    case core::DType::bf16:
      return "BF16";
    case core::DType::i64:
      return "I64";
    case core::DType::i32:
      return "I32";
    case core::DType::u16:
      return "U16";
    case core::DType::u8:
      return "U8";
  }
  return "?";
}

FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const Metadata& metadata) {
  std::vector<LazyTensor> lazy;
  for (const NamedTensor& tensor : tensors) {
    const void* data = tensor.data.data;
    lazy.push_back({tensor.name, tensor.data.dtype, tensor.data.shape, [data] { return data; }});
  }
  return write_lazy_safetensors(path, lazy, metadata);
}

FileDigest write_lazy_safetensors(const std::string& path, const std::vector<LazyTensor>& tensors,
                                  const Metadata& metadata) {
  std::vector<const LazyTensor*> ordered;
  std::set<std::string> names;
  for (const LazyTensor& tensor : tensors) {
    CHECK(names.insert(tensor.name).second, "two tensors named " + tensor.name);
    CHECK(tensor.name != "__metadata__", "a tensor with the name of the metadata");
    ordered.push_back(&tensor);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const LazyTensor* a, const LazyTensor* b) {
    return core::size_of(a->dtype) > core::size_of(b->dtype);
  });
  const std::string header = header_of(ordered, metadata);
  unsigned char length[8];
  for (size_t i = 0; i < sizeof length; ++i) {
    length[i] = static_cast<unsigned char>(uint64_t{header.size()} >> (8 * i));
  }
  OutputFile file(path);
  file.write(length, sizeof length);
  file.write(header.data(), static_cast<int64_t>(header.size()));
  for (const LazyTensor* tensor : ordered) file.write(tensor->make(), bytes_of(*tensor));
  return file.close();
}

}  // namespace tessera::formats
