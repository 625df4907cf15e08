#include "formats/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "formats/safetensors.h"
#include "formats/strict_json.h"

namespace tessera::formats {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "tessera-checkpoint";

ordered_json json_of(const ManifestTensor& tensor) {
  ordered_json slices = ordered_json::array();
  for (const ManifestSlice& slice : tensor.slices) {
    slices.push_back({{"file", slice.file},
                      {"key", slice.key},
                      {"offset", slice.offset},
                      {"shape", slice.shape.sizes()}});
  }
  return {{"dtype", safetensors_dtype(tensor.dtype)},
          {"shape", tensor.shape.sizes()},
          {"slices", slices}};
}

/// A value of the JSON and the way to it, for messages.
class Node {
 public:
  Node(const json& value, std::string path, std::string place)
      : value_(value), path_(std::move(path)), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw core::RunError(fmt::format("{}: not a usable checkpoint manifest: {}{}{}", path_, place_,
                                     place_.empty() ? "" : " ", why));
  }
  /// Refuses keys other than these, and demands all of them.
  void expect_keys(std::initializer_list<const char*> keys) const {
    if (!value_.is_object()) refuse("is not an object");
    for (const char* key : keys) {
      if (!value_.contains(key)) refuse(fmt::format("has no \"{}\"", key));
    }
    for (const auto& item : value_.items()) {
      bool known = false;
      for (const char* key : keys) known = known || item.key() == key;
      if (!known) refuse(fmt::format("has an unknown key \"{}\"", item.key()));
    }
  }
  Node operator[](const std::string& key) const {
    return {value_.at(key), path_, place_.empty() ? key : place_ + "." + key};
  }
  std::vector<Node> elements() const {
    if (!value_.is_array()) refuse("is not a list");
    std::vector<Node> nodes;
    for (size_t i = 0; i < value_.size(); ++i) {
      nodes.emplace_back(value_[i], path_, fmt::format("{}[{}]", place_, i));
    }
    return nodes;
  }
  std::vector<std::pair<std::string, Node>> members() const {
    if (!value_.is_object()) refuse("is not an object");
    std::vector<std::pair<std::string, Node>> nodes;
    for (const auto& item : value_.items()) nodes.emplace_back(item.key(), (*this)[item.key()]);
    return nodes;
  }
  std::string text() const {
    if (!value_.is_string()) refuse("is not a text");
    return value_.get<std::string>();
  }
  int64_t count() const {
    if (!value_.is_number_unsigned() || value_.get<uint64_t>() > uint64_t{INT64_MAX}) {
      refuse("is not a whole number from 0 on");
    }
    return value_.get<int64_t>();
  }
  uint64_t unsigned_number() const {
    if (!value_.is_number_unsigned()) refuse("is not a whole number from 0 on");
    return value_.get<uint64_t>();
  }

 private:
  const json& value_;
  std::string path_;
  std::string place_;
};

std::vector<int64_t> counts_of(const Node& list) {
  std::vector<int64_t> counts;
  for (const Node& element : list.elements()) counts.push_back(element.count());
  if (counts.size() > core::Shape::kMaxDims) list.refuse("has more than 4 dimensions");
  return counts;
}

core::Shape shape_of(const Node& list) {
  const std::vector<int64_t> sizes = counts_of(list);
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(elements, size, &elements)) list.refuse("overflows");
  }
  return core::Shape::of(sizes);
}

core::DType dtype_of(const Node& node) {
  const std::string name = node.text();
  for (const core::DType dtype : {core::DType::f64, core::DType::f32, core::DType::bf16}) {
    if (name == safetensors_dtype(dtype)) return dtype;
  }
  node.refuse(fmt::format("is \"{}\", not F64, F32 or BF16", name));
}

/// The name of a file of the folder itself, so that a manifest cannot reach outside it.
std::string file_name_of(const std::string& name, const Node& node) {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    node.refuse(fmt::format("is not the name of a file of this folder: \"{}\"", name));
  }
  return name;
}

bool overlap(const ManifestSlice& a, const ManifestSlice& b) {
  for (size_t dim = 0; dim < a.offset.size(); ++dim) {
    const auto d = static_cast<int>(dim);
    if (a.offset[dim] >= b.offset[dim] + b.shape[d]) return false;
    if (b.offset[dim] >= a.offset[dim] + a.shape[d]) return false;
  }
  return true;
}

/// Blocks inside the tensor, no two of which overlap, as many elements as it: it is covered.
void check_cover(const ManifestTensor& tensor, const Node& node) {
  int64_t covered = 0;
  for (size_t i = 0; i < tensor.slices.size(); ++i) {
    const ManifestSlice& slice = tensor.slices[i];
    const auto dims = static_cast<size_t>(tensor.shape.dims());
    if (slice.offset.size() != dims || slice.shape.dims() != tensor.shape.dims()) {
      node.refuse(fmt::format("has slice {} of another number of dimensions", i));
    }
    for (size_t dim = 0; dim < dims; ++dim) {
      const auto d = static_cast<int>(dim);
      if (slice.shape[d] > tensor.shape[d] ||
          slice.offset[dim] > tensor.shape[d] - slice.shape[d]) {
        node.refuse(fmt::format("has slice {} that reaches beyond it", i));
      }
    }
    for (size_t j = 0; j < i && slice.shape.elements() > 0; ++j) {
      if (tensor.slices[j].shape.elements() > 0 && overlap(slice, tensor.slices[j])) {
        node.refuse(fmt::format("has slices {} and {} that overlap", j, i));
      }
    }
    covered += slice.shape.elements();
  }
  if (covered != tensor.shape.elements()) {
    node.refuse(fmt::format("has slices of {} elements in all, not its {}", covered,
                            tensor.shape.elements()));
  }
}

ManifestTensor tensor_of(const Node& node, const std::map<std::string, FileDigest>& files) {
  node.expect_keys({"dtype", "shape", "slices"});
  ManifestTensor tensor;
  tensor.dtype = dtype_of(node["dtype"]);
  tensor.shape = shape_of(node["shape"]);
  for (const Node& part : node["slices"].elements()) {
    part.expect_keys({"file", "key", "offset", "shape"});
    ManifestSlice slice;
    slice.file = part["file"].text();
    slice.key = part["key"].text();
    slice.offset = counts_of(part["offset"]);
    slice.shape = shape_of(part["shape"]);
    if (files.count(slice.file) == 0) {
      part.refuse(fmt::format("lies in \"{}\", which is not among files", slice.file));
    }
    tensor.slices.push_back(std::move(slice));
  }
  check_cover(tensor, node);
  return tensor;
}

ManifestStates states_of(const Node& node, const std::map<std::string, FileDigest>& files) {
  ManifestStates states;
  for (const auto& member : node.members()) {
    const std::string& kind = member.first;
    if (kind != "weights" && kind != "master" && kind != "m" && kind != "v") {
      node.refuse(fmt::format("has \"{}\", not weights, master, m or v", kind));
    }
    states[kind] = tensor_of(member.second, files);
  }
  if (states.count("weights") == 0) node.refuse("has no \"weights\"");
  return states;
}

std::map<std::string, FileDigest> files_of(const Node& node) {
  std::map<std::string, FileDigest> files;
  for (const auto& member : node.members()) {
    const Node& fields = member.second;
    fields.expect_keys({"bytes", "xxh3"});
    FileDigest& digest = files[file_name_of(member.first, node)];
    digest.bytes = fields["bytes"].count();
    digest.xxh3 = fields["xxh3"].text();
  }
  return files;
}

json parse(const std::string& text, const std::string& path) {
  try {
    return parse_json_object(text, path + ": not a usable checkpoint manifest");
  } catch (const core::ConfigError& error) {
    throw core::RunError(error.what());
  }
}

void check_format(const Node& root, const json& value) {
  if (!value.contains("format") || value["format"] != kFormat) {
    root.refuse(fmt::format("its format is not \"{}\"", kFormat));
  }
  const int64_t version = value.contains("version") ? root["version"].count() : 0;
  if (version != Manifest::kVersion) {
    root.refuse(fmt::format("it has version {}; this program reads version {}", version,
                            Manifest::kVersion));
  }
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  ordered_json tensors = ordered_json::object();
  for (const auto& tensor : manifest.tensors) {
    for (const auto& state : tensor.second) {
      tensors[tensor.first][state.first] = json_of(state.second);
    }
  }
  ordered_json files = ordered_json::object();
  for (const auto& file : manifest.files) {
    files[file.first] = {{"bytes", file.second.bytes}, {"xxh3", file.second.xxh3}};
  }
  const ordered_json root = {
      {"format", kFormat},
      {"version", Manifest::kVersion},
      {"step", manifest.step},
      {"config", manifest.config},
      {"layout", manifest.layout},
      {"sampler", {{"seed", manifest.sampler_seed}, {"samples", manifest.samples}}},
      {"tensors", tensors},
      {"files", files}};
  return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Manifest manifest_from_json(const std::string& text, const std::string& path) {
  const json value = parse(text, path);
  const Node root(value, path, "");
  check_format(root, value);
  root.expect_keys(
      {"format", "version", "step", "config", "layout", "sampler", "tensors", "files"});
  root["sampler"].expect_keys({"seed", "samples"});
  Manifest manifest;
  manifest.step = root["step"].count();
  manifest.config = root["config"].text();
  manifest.layout = root["layout"].text();
  manifest.sampler_seed = root["sampler"]["seed"].unsigned_number();
  manifest.samples = root["sampler"]["samples"].count();
  manifest.files = files_of(root["files"]);
  for (const auto& member : root["tensors"].members()) {
    manifest.tensors[member.first] = states_of(member.second, manifest.files);
  }
  return manifest;
}

}  // namespace tessera::formats
