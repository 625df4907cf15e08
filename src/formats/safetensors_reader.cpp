#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "formats/safetensors.h"
#include "formats/strict_json.h"

namespace tessera::formats {
namespace {

using nlohmann::json;

/// What the reference implementation stops at.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kLengthBytes = 8;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw core::RunError(fmt::format("{}: not a valid safetensors file: {}", path, why));
}

core::MappedFile open_file(const std::string& path) {
  try {
    return core::MappedFile(path);
  } catch (const core::FileError& failure) {
    if (failure.error != EISDIR && failure.error != ESPIPE) throw;
    refuse(path, "it is not a regular file");
  }
}

json parse_header(const std::string& path, std::string_view text) {
  constexpr int kMaxDepth = 3;  // header, tensor, shape
  if (text.empty() || text[0] != '{') refuse(path, "its header does not begin with {");
  return parse_json(text, kMaxDepth,
                    [&](const std::string& why) { refuse(path, "its header: " + why); });
}

struct ElementType {
  std::string_view name;
  core::DType dtype;
};
/// The format's types of whole bytes.
constexpr std::array kTypes = {
    ElementType{"F64", core::DType::f64},    ElementType{"F32", core::DType::f32},
    ElementType{"BF16", core::DType::bf16},  ElementType{"F16", core::DType::u16},
    ElementType{"I64", core::DType::i64},    ElementType{"I32", core::DType::i32},
    ElementType{"U16", core::DType::u16},    ElementType{"I16", core::DType::u16},
    ElementType{"U8", core::DType::u8},      ElementType{"I8", core::DType::u8},
    ElementType{"BOOL", core::DType::u8},    ElementType{"F8_E4M3", core::DType::u8},
    ElementType{"F8_E5M2", core::DType::u8}, ElementType{"F8_E8M0", core::DType::u8},
    ElementType{"U32", core::DType::i32},    ElementType{"U64", core::DType::i64}};

ElementType type_named(const std::string& path, const std::string& tensor, const json& name) {
  if (!name.is_string()) refuse(path, fmt::format("dtype of \"{}\" is no text", tensor));
  std::string known;
  for (const ElementType& type : kTypes) {
    if (name == type.name) return type;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", type.name);
  }
  refuse(path, fmt::format("\"{}\" has dtype {}; those known are {}", tensor,
                           name.get<std::string>(), known));
}

/// The whole numbers of a list, none negative or beyond 63 bits.
std::vector<int64_t> numbers_of(const std::string& path, const std::string& what,
                                const json& list) {
  if (!list.is_array()) refuse(path, what + " is not a list");
  std::vector<int64_t> numbers;
  for (const json& number : list) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > uint64_t{INT64_MAX}) {
      refuse(path, what + " has an entry that is no size: " + number.dump());
    }
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

SafetensorsEntry entry_of(const std::string& path, const std::string& name, const json& fields) {
  if (!fields.is_object()) refuse(path, fmt::format("\"{}\" is not described by an object", name));
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!fields.contains(key)) refuse(path, fmt::format("\"{}\" has no {}", name, key));
  }
  if (fields.size() != 3) refuse(path, fmt::format("\"{}\" has unknown fields", name));
  SafetensorsEntry entry;
  entry.name = name;
  const ElementType type = type_named(path, name, fields["dtype"]);
  entry.type = type.name;
  entry.dtype = type.dtype;
  const auto sizes = numbers_of(path, fmt::format("the shape of \"{}\"", name), fields["shape"]);
  const auto offsets =
      numbers_of(path, fmt::format("data_offsets of \"{}\"", name), fields["data_offsets"]);
  if (sizes.size() > core::Shape::kMaxDims) {
    refuse(path, fmt::format("\"{}\" has {} dimensions; at most {} are read", name, sizes.size(),
                             core::Shape::kMaxDims));
  }
  entry.shape = core::Shape::of(sizes);
  if (offsets.size() != 2 || offsets[1] < offsets[0]) {
    refuse(path, fmt::format("data_offsets of \"{}\" are no begin and end", name));
  }
  entry.offset = offsets[0];
  entry.bytes = offsets[1] - offsets[0];
  int64_t bytes = core::size_of(entry.dtype);
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      refuse(path, fmt::format("the shape of \"{}\" overflows", name));
    }
  }
  if (bytes != entry.bytes) {
    refuse(path,
           fmt::format("\"{}\" needs {} bytes by its shape and has {}", name, bytes, entry.bytes));
  }
  return entry;
}

Metadata metadata_of(const std::string& path, const json& fields) {
  if (!fields.is_object()) refuse(path, "__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_string()) refuse(path, "__metadata__ has a value that is no text: " + key);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), file_(open_file(path)) {
  const std::string_view bytes = file_.bytes();
  if (bytes.size() < kLengthBytes) {
    refuse(path, fmt::format("it is too short: {} bytes", bytes.size()));
  }
  if (core::is_lfs_pointer(bytes)) {
    refuse(path, "it is a Git LFS pointer, not the file itself: run git lfs pull in its folder");
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  if (header_bytes > kMaxHeaderBytes) {
    refuse(path, fmt::format("its header would have {} bytes; at most {} are read", header_bytes,
                             kMaxHeaderBytes));
  }
  if (header_bytes > bytes.size() - kLengthBytes) {
    refuse(path, fmt::format("it ends inside its header of {} bytes: it was cut at {}",
                             header_bytes, bytes.size()));
  }
  const json header = parse_header(path, bytes.substr(kLengthBytes, header_bytes));
  for (const auto& [name, fields] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = metadata_of(path, fields);
    } else {
      entries_.push_back(entry_of(path, name, fields));
    }
  }
  data_ = bytes.substr(kLengthBytes + header_bytes);
  check_layout(static_cast<int64_t>(data_.size()));
}

/// Every byte of the data belongs to just one tensor.
void SafetensorsFile::check_layout(int64_t data_bytes) {
  std::sort(entries_.begin(), entries_.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
            });
  int64_t end = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const SafetensorsEntry& entry = entries_[i];
    if (entry.offset < end) {
      refuse(path_,
             fmt::format("\"{}\" begins at {}, inside the tensor before it, which ends at {}",
                         entry.name, entry.offset, end));
    }
    if (entry.offset > end) {
      refuse(path_, fmt::format("bytes {} to {}, before \"{}\", belong to no tensor", end,
                                entry.offset, entry.name));
    }
    if (entry.bytes > data_bytes - entry.offset) {
      refuse(path_,
             fmt::format("\"{}\" ends beyond the file, which has {} bytes of data: it was cut",
                         entry.name, data_bytes));
    }
    end = entry.offset + entry.bytes;
    index_[entry.name] = i;
  }
  if (end != data_bytes) {
    refuse(path_, fmt::format("{} bytes follow the last tensor", data_bytes - end));
  }
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

const void* SafetensorsFile::data(const SafetensorsEntry& entry) const {
  return data_.data() + entry.offset;
}

}  // namespace tessera::formats
