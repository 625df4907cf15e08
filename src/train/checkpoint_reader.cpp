#include "train/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.h"
#include "kernels/elementwise.h"
#include "train/checkpoint_slices.h"
#include "train/run_folder.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConstView;
using core::RunError;
using core::Shape;
using core::View;
using parallel::ElementRange;

namespace {

formats::Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / "manifest.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw RunError(
        fmt::format("{} is not a complete checkpoint: it has no manifest.json", folder.string()));
  }
  return formats::manifest_from_json(read_file(path), path.string());
}

bool lies_in(const formats::ManifestStates& states, const std::string& file) {
  for (const auto& state : states) {
    const auto& slices = state.second.slices;
    if (std::any_of(slices.begin(), slices.end(),
                    [&](const formats::ManifestSlice& slice) { return slice.file == file; })) {
      return true;
    }
  }
  return false;
}

/// "; model.norm.weight and 3 other parameters lie in it, or parts of them".
std::string contents_of(const formats::Manifest& manifest, const std::string& file) {
  std::string first;
  int64_t others = 0;
  for (const auto& [name, states] : manifest.tensors) {
    if (!lies_in(states, file)) continue;
    if (first.empty()) {
      first = name;
    } else {
      ++others;
    }
  }
  if (first.empty()) return "";
  if (others == 0) return fmt::format("; {} lies in it, or part of it", first);
  return fmt::format("; {} and {} other parameters lie in it, or parts of them", first, others);
}

/// Calls f(first element in `wanted`, first in the slice, count) for every stretch of elements that
/// the two have in common and that are neighbours in both.
template <class F>
void visit_common(const Block& wanted, const formats::ManifestSlice& slice, const F& f) {
  const int dims = wanted.shape.dims();
  std::array<int64_t, Shape::kMaxDims> in_wanted{}, in_slice{}, size{};
  int64_t elements = 1;
  for (int dim = 0; dim < dims; ++dim) {
    const auto d = static_cast<size_t>(dim);
    const int64_t begin = std::max(wanted.offset[d], slice.offset[d]);
    const int64_t end =
        std::min(wanted.offset[d] + wanted.shape[dim], slice.offset[d] + slice.shape[dim]);
    if (begin >= end) return;
    in_wanted[d] = begin - wanted.offset[d];
    in_slice[d] = begin - slice.offset[d];
    size[d] = end - begin;
    elements *= size[d];
  }
  // Trailing dimensions that both span whole, and one more, are one stretch.
  int outer = dims;
  int64_t stretch = 1;
  while (outer > 0) {
    --outer;
    const auto d = static_cast<size_t>(outer);
    stretch *= size[d];
    if (size[d] != wanted.shape[outer] || size[d] != slice.shape[outer]) break;
  }
  for (int64_t i = 0; i < elements / stretch; ++i) {
    int64_t to = 0, from = 0;
    int64_t to_stride = 1, from_stride = 1;
    int64_t index = i;  // of the stretch among those of this dimension and the ones before it
    for (int dim = dims - 1; dim >= 0; --dim) {
      const auto d = static_cast<size_t>(dim);
      const int64_t step = dim < outer ? index % size[d] : 0;
      if (dim < outer) index /= size[d];
      to += (in_wanted[d] + step) * to_stride;
      from += (in_slice[d] + step) * from_stride;
      to_stride *= wanted.shape[dim];
      from_stride *= slice.shape[dim];
    }
    f(to, from, stretch);
  }
}

}  // namespace

CheckpointReader::CheckpointReader(fs::path folder)
    : folder_(std::move(folder)), manifest_(read_manifest(folder_)) {}

void CheckpointReader::verify(int64_t rank, int64_t ranks) const {
  int64_t number = 0;
  for (const auto& [name, expected] : manifest_.files) {
    const fs::path path = folder_ / name;
    std::error_code error;
    const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
    if (error) {
      throw RunError(
          fmt::format("{}: {}{}", path.string(), error.message(), contents_of(manifest_, name)));
    }
    if (bytes != expected.bytes) {
      throw RunError(fmt::format("{} is damaged: {} bytes where the manifest has {}{}",
                                 path.string(), bytes, expected.bytes,
                                 contents_of(manifest_, name)));
    }
    if (number++ % ranks != rank || formats::digest_of_file(path.string()) == expected) continue;
    throw RunError(fmt::format("{} is damaged: its checksum is not the manifest's{}", path.string(),
                               contents_of(manifest_, name)));
  }
}

const formats::ManifestTensor* CheckpointReader::find(const std::string& name,
                                                      parallel::StateKind kind) const {
  const auto states = manifest_.tensors.find(name);
  if (states == manifest_.tensors.end()) return nullptr;
  const auto tensor = states->second.find(name_of(kind));
  return tensor == states->second.end() ? nullptr : &tensor->second;
}

void CheckpointReader::read(const formats::ManifestTensor& tensor,
                            const account::Parameter& parameter, const ElementRange& range,
                            View out) {
  CHECK(out.elements() == range.count, "a view of another length than the run");
  CHECK(tensor.shape == parameter.whole, "a tensor of another shape than the parameter");
  if (parameter.padding > 0) kernels::zero(out);
  const int64_t element_bytes = core::size_of(tensor.dtype);
  const std::vector<Block> blocks = held_blocks_of(parameter, range);
  for (const formats::ManifestSlice& slice : tensor.slices) {
    const std::byte* data = nullptr;
    for (const Block& block : blocks) {
      visit_common(block, slice, [&](int64_t to, int64_t from, int64_t count) {
        if (data == nullptr) data = open(slice, tensor.dtype);
        copy(out.slice(block.first - range.first + to, {count}), data + from * element_bytes,
             tensor.dtype);
      });
    }
  }
}

const std::byte* CheckpointReader::open(const formats::ManifestSlice& slice, core::DType dtype) {
  auto& file = files_[slice.file];
  const std::string path = (folder_ / slice.file).string();
  if (!file) file = std::make_unique<formats::SafetensorsFile>(path);
  const formats::SafetensorsEntry* entry = file->find(slice.key);
  if (entry == nullptr || entry->dtype != dtype || !(entry->shape == slice.shape)) {
    throw RunError(fmt::format("{}: {} is not what the manifest says", path, slice.key));
  }
  return static_cast<const std::byte*>(file->data(*entry));
}

void CheckpointReader::copy(View out, const std::byte* from, core::DType dtype) {
  if (dtype == out.dtype) {
    std::memcpy(out.data, from, static_cast<size_t>(out.bytes()));
    return;
  }
  // By pieces that stay in the cache, and where elements are aligned.
  constexpr int64_t kPiece = 16384;
  const int64_t element_bytes = core::size_of(dtype);
  piece_.resize(static_cast<size_t>(kPiece * element_bytes));
  for (int64_t begin = 0; begin < out.elements(); begin += kPiece) {
    const int64_t count = std::min(kPiece, out.elements() - begin);
    std::memcpy(piece_.data(), from + begin * element_bytes,
                static_cast<size_t>(count * element_bytes));
    kernels::cast(out.slice(begin, {count}), ConstView{piece_.data(), dtype, {count}});
  }
}

}  // namespace tessera::train
