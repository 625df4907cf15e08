#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

// How a tensor is cut: into one chunk a rank, and each chunk into pieces that fit the staging.

namespace tessera::comm {

/// A run of elements.
struct Range {
  int64_t begin = 0;
  int64_t count = 0;
};

/// Chunk `index` of `elements` cut into `parts`: the first elements % parts are one longer.
constexpr Range chunk_of(int64_t elements, int parts, int index) {
  const int64_t base = elements / parts;
  const int64_t longer = elements % parts;
  return {index * base + std::min<int64_t>(index, longer), base + (index < longer ? 1 : 0)};
}

/// Piece `index` of a range cut into pieces of `piece` elements; empty past its end.
constexpr Range piece_of(Range range, int64_t piece, int64_t index) {
  const int64_t begin = std::min(range.count, index * piece);
  return {range.begin + begin, std::min(piece, range.count - begin)};
}

/// How many pieces cover `elements`.
constexpr int64_t num_pieces(int64_t elements, int64_t piece) {
  return (elements + piece - 1) / piece;
}

/// Ranges of these lengths, one after the other.
inline std::vector<Range> ranges_of(const std::vector<int64_t>& counts) {
  std::vector<Range> ranges;
  int64_t begin = 0;
  for (const int64_t count : counts) {
    ranges.push_back({begin, count});
    begin += count;
  }
  return ranges;
}

}  // namespace tessera::comm
