#include "comm/board.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace tessera::comm {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

TEST(BoardLayout, StaysWithinItsBytesForAnyNumberOfRanks) {
  for (const int64_t bytes : {kMegabyte, 4 * kMegabyte, 32 * kMegabyte}) {
    for (int size = 2; size <= (bytes == 32 * kMegabyte ? 128 : 16); ++size) {
      EXPECT_LE(BoardLayout::of(size, bytes).total_bytes, bytes) << size << " ranks";
    }
  }
}

TEST(BoardLayout, SaysHowManyBytesWouldDo) {
  try {
    BoardLayout::of(8, 20'000);
    FAIL() << "took too few bytes";
  } catch (const core::ConfigError& error) {
    const std::string message = error.what();
    const size_t at = message.find("at least ");
    ASSERT_NE(at, std::string::npos) << message;
    EXPECT_NO_THROW(BoardLayout::of(8, std::stoll(message.substr(at + 9))));
  }
}

// Every place of the board as an interval; none may touch another, nor the end.
TEST(Board, ItsPlacesDoNotOverlap) {
  for (const int size : {2, 3, 8}) {
    const BoardLayout layout = BoardLayout::of(size, kMegabyte);
    const auto region = Region::anonymous(layout.total_bytes);
    const Board board(region, layout);
    std::map<std::byte*, std::byte*> places;
    const auto add = [&](void* begin, int64_t bytes) {
      auto* first = static_cast<std::byte*>(begin);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 64, 0U);
      EXPECT_TRUE(places.emplace(first, first + bytes).second);
    };
    add(&board.notice(), sizeof(Notice));
    for (int from = 0; from < size; ++from) {
      add(&board.seat(from), sizeof(Seat));
      for (int to = 0; to < size; ++to) {
        add(&board.channel(from, to), sizeof(Channel));
        for (uint32_t turn = 0; turn < 2; ++turn)
          add(board.box(from, turn, to), layout.piece_bytes);
        for (uint32_t index = 0; to != from && index < BoardLayout::kCells; ++index) {
          add(&board.cell(from, to, index), int64_t{sizeof(Cell)} + layout.cell_bytes);
        }
      }
    }
    const std::byte* end = region->data();
    for (const auto& place : places) {
      EXPECT_GE(place.first, end);
      end = place.second;
    }
    EXPECT_LE(end, region->data() + layout.total_bytes);
  }
}

TEST(Board, BoxesAlternateWithTheTurn) {
  const BoardLayout layout = BoardLayout::of(3, kMegabyte);
  const Board board(Region::anonymous(layout.total_bytes), layout);
  EXPECT_EQ(board.box(1, 6, 2), board.box(1, 8, 2));
  EXPECT_NE(board.box(1, 6, 2), board.box(1, 7, 2));
}

TEST(Board, KeepsTheFirstFailure) {
  const BoardLayout layout = BoardLayout::of(2, kMegabyte);
  const Board board(Region::anonymous(layout.total_bytes), layout);
  EXPECT_TRUE(board.stop(Notice::Origin::failure, 1, "first"));
  EXPECT_FALSE(board.stop(Notice::Origin::caller, 0, "second"));
  EXPECT_EQ(board.notice_text("barrier #3"), "first");
}

TEST(Board, TellsWhoStoppedForAReasonOfItsCallers) {
  const BoardLayout layout = BoardLayout::of(2, kMegabyte);
  const Board board(Region::anonymous(layout.total_bytes), layout);
  board.stop(Notice::Origin::caller, 1, "the disk is full");
  EXPECT_EQ(board.notice_text("barrier #3"), "barrier #3: rank 1 stopped: the disk is full");
}

TEST(Board, CallsRanksByTheirNumbersInALargerWorld) {
  const BoardLayout layout = BoardLayout::of(3, kMegabyte);
  const auto called = std::make_shared<const Group>(Group{"on one host", {4, 6, 7}});
  const Board host(Region::anonymous(layout.total_bytes), layout, called);
  const BoardLayout two = BoardLayout::of(2, kMegabyte);
  const Board group(Region::anonymous(two.total_bytes), two, host, {"tp", {1, 2}});
  const Operation broadcast{
      OperationKind::broadcast, kernels::ReduceOp::sum, core::DType::f32, 1, 2, 3};
  EXPECT_EQ(host.describe(broadcast, -1),
            "broadcast #3 (fp32 from rank 6, 8 bytes) in group on one host (ranks 4, 6, 7)");
  EXPECT_EQ(group.describe(broadcast, -1),
            "broadcast #3 (fp32 from rank 7, 8 bytes) in group tp (ranks 6, 7)");
  EXPECT_EQ(&group.world_seat(0), &host.seat(1));
  group.stop(Notice::Origin::caller, 1, "enough");
  EXPECT_EQ(host.notice_text("barrier #3"), "barrier #3: rank 7 stopped: enough");
}

TEST(Board, SurvivesARankThatDiedWhileItFailed) {
  const BoardLayout layout = BoardLayout::of(2, kMegabyte);
  const Board board(Region::anonymous(layout.total_bytes), layout);
  board.notice().raised.store(true);
  board.stop(Notice::Origin::failure, 0, "never written");
  EXPECT_EQ(board.notice_text("barrier #3"), "barrier #3: a rank died while it was failing");
}

}  // namespace
}  // namespace tessera::comm
