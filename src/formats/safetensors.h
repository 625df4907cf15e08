#pragma once

// safetensors (github.com/huggingface/safetensors, its README is the format): 8 bytes of
// little-endian header length, a JSON header of name → dtype, shape, data_offsets, then the data,
// without holes. Both directions are strict: what the reference refuses is refused here.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/view.h"
#include "formats/hash.h"

namespace tessera::formats {

/// F32, BF16, …: the format's name of a dtype.
const char* safetensors_dtype(core::DType dtype);

struct NamedTensor {
  std::string name;
  core::ConstView data;
};

/// A tensor whose elements are made when they are written.
struct LazyTensor {
  std::string name;
  core::DType dtype = core::DType::f32;
  core::Shape shape;
  std::function<const void*()> make;  ///< asked once; the elements live until the next is asked
};

using Metadata = std::map<std::string, std::string>;

/// Writes the tensors to a new file at `path`, flushes it to the disk and tells its size and hash.
/// The data lie by falling size of element, so that all are aligned, and otherwise in the order
/// given. "format" = "pt" is added to the metadata, as other readers expect. Throws RunError (a
/// full disk, a folder that is not there); an incomplete file may be left behind, and giving the
/// whole its final name only then is up to the caller. Names are unique.
FileDigest write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                             const Metadata& metadata = {});

/// The same, with the elements of one tensor at a time.
FileDigest write_lazy_safetensors(const std::string& path, const std::vector<LazyTensor>& tensors,
                                  const Metadata& metadata = {});

/// One tensor of a file.
struct SafetensorsEntry {
  std::string name;
  std::string type;  ///< the format's name: "F32", "F16", "BOOL"
  /// Where no such element is known here (F16, BOOL), another of its size.
  core::DType dtype = core::DType::f32;
  core::Shape shape;
  int64_t offset = 0;  ///< bytes from the start of the data
  int64_t bytes = 0;
};

/// A file mapped into memory, read only; it must not be changed meanwhile. Movable.
class SafetensorsFile {
 public:
  /// Opens and checks everything but the data themselves. Throws RunError with path, what is wrong
  /// and where.
  explicit SafetensorsFile(const std::string& path);

  /// By offset.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  /// nullptr when there is none of that name.
  const SafetensorsEntry* find(const std::string& name) const;
  const Metadata& metadata() const { return metadata_; }

  /// A tensor's bytes, not necessarily aligned. They live as long as this.
  const void* data(const SafetensorsEntry& entry) const;

 private:
  void check_layout(int64_t data_bytes);

  std::string path_;
  core::MappedFile file_;
  std::string_view data_;  ///< what follows the header
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t> index_;
  Metadata metadata_;
};

}  // namespace tessera::formats
