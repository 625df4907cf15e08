// Split: ranks of one color get a board of their own.
//
// Idea: in the first turn everybody posts its color. The first rank of each color takes memory from
// the pool and seats everybody there, as it knows from their seats here who they are: so a rank
// that dies before it sits down is missed like any other. In the second turn it posts where that
// is. Steps: 2 turns.

#include "comm/split.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/fault.h"

namespace tessera::comm {

namespace {

// Its share of what the parent may take at most, but never less than works.
int64_t staging_of(const Member& parent, int64_t ranks) {
  constexpr int64_t kLeastOfARank = int64_t{64} << 10;
  return std::max(parent.options().staging_bytes / parent.size() * ranks, kLeastOfARank * ranks);
}

void seat_everybody(const Board& group, const Board& parent, const std::vector<int>& ranks) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Seat& from = parent.seat(ranks[i]);
    Seat& to = group.seat(static_cast<int>(i));
    to.pid = from.pid;
    to.start_time = from.start_time;
    to.cpus = from.cpus;
    to.state.store(Seat::State::joined);
  }
}

template <class T>
T posted(const Member& member, int from) {
  T value{};
  std::memcpy(&value, member.piece_for_all(from), sizeof(value));
  return value;
}

/// The ranks of this rank's color, once everybody has posted its own.
std::vector<int> ranks_of_color(const Member& parent, int color) {
  std::vector<int> ranks;
  // Every rank sits down with the group of its neighbour.
  const int shift = TESSERA_FAULT("comm_shifted_groups") ? 1 : 0;
  const auto color_of = [&](int rank) {
    const int from = (rank + shift) % parent.size();
    return from == parent.rank() ? color : posted<int>(parent, from);
  };
  for (int rank = 0; rank < parent.size(); ++rank) {
    if (color_of(rank) == color_of(parent.rank())) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

SplitGroup split(Member& parent, Pool& pool, int color, const std::string& name) {
  parent.enter({OperationKind::split}, nullptr);
  parent.post_uncounted(parent.rank(), &color, sizeof(color));
  parent.take_turn();
  const std::vector<int> ranks = ranks_of_color(parent, color);
  const auto size = static_cast<int>(ranks.size());
  Group named{name, {}};
  for (const int rank : ranks) named.ranks.push_back(parent.board().root_rank(rank));
  SplitGroup group;
  group.rank =
      static_cast<int>(std::find(ranks.begin(), ranks.end(), parent.rank()) - ranks.begin());
  group.staging_bytes = staging_of(parent, size);
  const BoardLayout layout = size > 1 ? BoardLayout::of(size, group.staging_bytes) : BoardLayout{};
  const auto sit_down = [&] {
    group.board = std::make_unique<Board>(pool.map(group.where, layout.total_bytes), layout,
                                          parent.board(), named);
  };
  try {
    if (size > 1 && group.rank == 0) {
      group.where = pool.add(layout.total_bytes, size);
      sit_down();
      seat_everybody(*group.board, parent.board(), ranks);
    }
    parent.post_uncounted(parent.rank(), &group.where, sizeof(group.where));
    parent.take_turn();
    if (size > 1 && group.rank > 0) {
      group.where = posted<int64_t>(parent, ranks[0]);
      sit_down();
    }
  } catch (const core::CommError& error) {
    parent.fail(error.what());
  }
  parent.finish();
  return group;
}

}  // namespace tessera::comm
