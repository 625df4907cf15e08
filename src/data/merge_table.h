#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::data {

/// Where token `left` stands before token `right`, both may become `result`.
struct Merge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
  friend bool operator==(const Merge&, const Merge&) = default;
};

/// Pair of tokens → its merge and rank, by open addressing at a load of at most one half.
/// Immutable.
class MergeTable {
 public:
  struct Entry {
    uint64_t pair = kEmpty;
    int32_t rank = 0;  ///< the lower, the earlier it is merged
    int32_t result = 0;
  };

  /// `merges` by rank. Of a pair listed twice the last counts, as in Hugging Face's tokenizers.
  explicit MergeTable(const std::vector<Merge>& merges)
      : entries_(std::bit_ceil(2 * merges.size() + 2)),
        shift_(64 - std::countr_zero(entries_.size())) {
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const Merge& merge = merges[rank];
      const uint64_t pair = key(merge.left, merge.right);
      entries_[slot(pair)] = {pair, static_cast<int32_t>(rank), merge.result};
    }
  }

  /// The pair's merge; nullptr where it has none.
  const Entry* find(int32_t left, int32_t right) const {
    const Entry& entry = entries_[slot(key(left, right))];
    return entry.pair == kEmpty ? nullptr : &entry;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are not negative, so no pair's key

  static uint64_t key(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  }
  /// The pair's slot, or the free one where it would be.
  size_t slot(uint64_t pair) const {
    size_t at = (pair * 0x9E3779B97F4A7C15u) >> shift_;
    while (entries_[at].pair != kEmpty && entries_[at].pair != pair) {
      at = (at + 1) & (entries_.size() - 1);
    }
    return at;
  }

  std::vector<Entry> entries_;
  int shift_;
};

}  // namespace tessera::data
