#include "comm/cores.h"

#include <gtest/gtest.h>

namespace tessera::comm {
namespace {

Board board_of_two() {
  const BoardLayout layout = BoardLayout::of(2, int64_t{1} << 20);
  return {Region::anonymous(layout.total_bytes), layout};
}

TEST(CoresOfAll, CountsACoreOnceThatSeveralRanksMayUse) {
  const Board board = board_of_two();
  board.seat(0).cpus = {0b0111, 1};
  board.seat(1).cpus = {0b1110, 1};
  EXPECT_EQ(cores_of_all(board, 0), 5);
}

TEST(CoresOfAll, AreNoMoreThanTheUsableOnes) {
  const Board board = board_of_two();
  board.seat(0).cpus = {0xff};
  EXPECT_EQ(cores_of_all(board, 2), 2);
  EXPECT_EQ(cores_of_all(board, 64), 8);
}

TEST(AffinityCores, AreNotNone) {
  const Board board = board_of_two();
  board.seat(1).cpus = affinity_cores();
  EXPECT_GE(cores_of_all(board, 0), 1);
}

}  // namespace
}  // namespace tessera::comm
