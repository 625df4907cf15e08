#include "train/checkpoint_slices.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::train {

using core::Shape;
using parallel::ElementRange;

namespace {

/// Cuts elements [first, end) of the part of a tensor where the first `dim` coordinates are those
/// of `at`.
void cut(const Shape& shape, int dim, std::vector<int64_t>& at, int64_t before, int64_t first,
         int64_t end, std::vector<FlatBlock>& blocks) {
  int64_t inner = 1;  // elements of one step in this dimension
  for (int i = dim + 1; i < shape.dims(); ++i) inner *= shape[i];
  while (first < end) {
    const int64_t row = first / inner;
    at[static_cast<size_t>(dim)] = row;
    if (first % inner != 0 || end - first < inner) {
      const int64_t stop = std::min(end, (row + 1) * inner);
      cut(shape, dim + 1, at, before + row * inner, first - row * inner, stop - row * inner,
          blocks);
      first = stop;
      continue;
    }
    const int64_t rows = (end - first) / inner;
    FlatBlock block;
    block.first = before + first;
    block.offset = at;
    std::vector<int64_t> sizes(at.size(), 1);
    sizes[static_cast<size_t>(dim)] = rows;
    for (size_t i = static_cast<size_t>(dim) + 1; i < at.size(); ++i) {
      block.offset[i] = 0;
      sizes[i] = shape[static_cast<int>(i)];
    }
    block.shape = Shape::of(sizes);
    blocks.push_back(std::move(block));
    first += rows * inner;
  }
}

}  // namespace

std::vector<FlatBlock> blocks_of(const Shape& shape, const ElementRange& range) {
  std::vector<FlatBlock> blocks;
  if (shape.dims() == 0) {
    if (range.count > 0) blocks.resize(1);
    return blocks;
  }
  std::vector<int64_t> at(static_cast<size_t>(shape.dims()));
  cut(shape, 0, at, 0, range.first, range.first + range.count, blocks);
  return blocks;
}

std::vector<OwnedBlock> slices_of(const parallel::ModelState& state, size_t parameter,
                                  int64_t num_ranks) {
  const account::Parameter& owned = state.table().parameters[parameter];
  // Shards are neighbours, and the owners of one are as far apart as there are shards.
  const int64_t shards = state.is_split(owned) ? state.sharding().shards : 1;
  const int64_t turn = static_cast<int64_t>(parameter) % (num_ranks / shards);
  std::vector<OwnedBlock> slices;
  for (int64_t shard = 0; shard < shards; ++shard) {
    for (FlatBlock& block : blocks_of(owned.shape, state.owned_range(owned, shard))) {
      slices.push_back({turn * shards + shard, std::move(block)});
    }
  }
  return slices;
}

std::string key_of(const account::Parameter& parameter, parallel::StateKind kind,
                   const FlatBlock& block) {
  std::string key = kind == parallel::StateKind::weights
                        ? parameter.name
                        : fmt::format("{}.{}", name_of(kind), parameter.name);
  if (block.shape == parameter.shape) return key;
  for (size_t i = 0; i < block.offset.size(); ++i) {
    key += fmt::format("{}{}:{}", i == 0 ? "[" : ", ", block.offset[i],
                       block.offset[i] + block.shape[static_cast<int>(i)]);
  }
  return key + "]";
}

}  // namespace tessera::train
