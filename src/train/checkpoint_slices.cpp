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
         int64_t end, std::vector<Block>& blocks) {
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
    Block block;
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

std::vector<Block> blocks_of(const Shape& shape, const ElementRange& range) {
  std::vector<Block> blocks;
  if (shape.dims() == 0) {
    if (range.count > 0) blocks.resize(1);
    return blocks;
  }
  std::vector<int64_t> at(static_cast<size_t>(shape.dims()));
  cut(shape, 0, at, 0, range.first, range.first + range.count, blocks);
  return blocks;
}

std::vector<Block> held_blocks_of(const account::Parameter& parameter, const ElementRange& range) {
  const int64_t rows = parameter.shape[0];
  const int64_t real = (rows - parameter.padding) * (parameter.elements() / rows);
  const int64_t end = std::min(range.first + range.count, real);
  if (range.first >= end) return {};
  std::vector<Block> blocks = blocks_of(parameter.shape, {range.first, end - range.first});
  if (parameter.cut < 0) return blocks;
  for (Block& block : blocks) block.offset[static_cast<size_t>(parameter.cut)] += parameter.begin;
  return blocks;
}

std::vector<Block> slices_of(const parallel::ModelState& state, size_t parameter,
                             int64_t data_parallel_rank) {
  const account::Parameter& owned = state.table().parameters[parameter];
  if (!owned.counted) return {};
  // Shards are neighbours, and the owners of one are as far apart as there are shards.
  const account::Sharding& sharding = state.sharding();
  const int64_t num_ranks = sharding.shards * sharding.replicas;
  const int64_t shards = state.is_split(owned) ? sharding.shards : 1;
  const int64_t turn = static_cast<int64_t>(parameter) % (num_ranks / shards);
  if (data_parallel_rank / shards != turn) return {};
  return held_blocks_of(owned, state.owned_range(owned));
}

std::string key_of(const std::string& parameter, const Shape& whole, parallel::StateKind kind,
                   const Block& block) {
  std::string key = kind == parallel::StateKind::weights
                        ? parameter
                        : fmt::format("{}.{}", name_of(kind), parameter);
  if (block.shape == whole) return key;
  for (size_t i = 0; i < block.offset.size(); ++i) {
    key += fmt::format("{}{}:{}", i == 0 ? "[" : ", ", block.offset[i],
                       block.offset[i] + block.shape[static_cast<int>(i)]);
  }
  return key + "]";
}

}  // namespace tessera::train
