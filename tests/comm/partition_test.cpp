#include "comm/partition.h"

#include <gtest/gtest.h>

namespace tessera::comm {
namespace {

TEST(Partition, ChunksAreEvenAndTheFirstOnesLonger) {
  const int64_t expected[] = {3, 3, 2, 2};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(chunk_of(10, 4, i).count, expected[i]);
}

TEST(Partition, ChunksLieEndToEnd) {
  for (const int64_t elements : {0, 1, 6, 7, 8, 1000}) {
    int64_t end = 0;
    for (int i = 0; i < 7; ++i) {
      const Range chunk = chunk_of(elements, 7, i);
      EXPECT_EQ(chunk.begin, end);
      end += chunk.count;
    }
    EXPECT_EQ(end, elements);
  }
}

TEST(Partition, PiecesCoverARangeAndAreEmptyPastIt) {
  const Range range{100, 25};
  EXPECT_EQ(num_pieces(range.count, 10), 3);
  int64_t end = range.begin;
  for (int64_t i = 0; i < 3; ++i) {
    const Range piece = piece_of(range, 10, i);
    EXPECT_EQ(piece.begin, end);
    end += piece.count;
  }
  EXPECT_EQ(end, 125);
  EXPECT_EQ(piece_of(range, 10, 3).count, 0);
  EXPECT_EQ(piece_of(range, 10, 99).count, 0);
  EXPECT_EQ(num_pieces(0, 10), 0);
}

}  // namespace
}  // namespace tessera::comm
