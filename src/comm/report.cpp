#include "comm/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "comm/liveness.h"

namespace tessera::comm {

namespace {

Operation operation_of(const Act& act) {
  Words words{};
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = act.operation[i].load(std::memory_order_relaxed);
  }
  return unpack(words);
}

// What the rank waits for in another group than this, "" when in none.
std::string wait_elsewhere(const Board& board, int rank) {
  std::string text;
  for (const auto& character : board.world_seat(rank).wait) {
    if (character.load() == '\0') break;
    text += character.load();
  }
  return text;
}

// "in all-reduce #122 of step 3", "in all-reduce #122 and send #7 to rank 2", "after barrier #4",
// "before its first operation", "after barrier #4, waiting in all-gather #3 (…) in group tp (ranks
// 2, 3) for rank 2".
std::string last_act(const Board& board, int rank) {
  const Seat& seat = board.seat(rank);
  std::string doing;
  const Act* last = nullptr;
  for (const Act* act : {&seat.collective, &seat.message}) {
    const OperationKind kind = operation_of(*act).kind;
    if (kind == OperationKind::none || kind == OperationKind::start) continue;
    if (last == nullptr || act->moment.load(std::memory_order_relaxed) >
                               last->moment.load(std::memory_order_relaxed)) {
      last = act;
    }
    if (act->under_way.load(std::memory_order_relaxed) == 0) continue;
    doing += (doing.empty() ? "in " : " and ") + board.name_of(operation_of(*act));
  }
  std::string act = "before its first operation";
  if (last != nullptr) act = doing.empty() ? "after " + board.name_of(operation_of(*last)) : doing;
  const int64_t step = board.step(rank).load(std::memory_order_relaxed);
  if (step >= 0) act += fmt::format(" of step {}", step);
  if (board.world_seat(rank).away.load() > 0) act += ", waiting across hosts";
  const std::string wait = wait_elsewhere(board, rank);
  return doing.empty() && !wait.empty() ? act + ", waiting in " + wait : act;
}

bool has_stopped(const Board& board, int rank) {
  const int64_t pid = board.seat(rank).pid;
  return pid != 0 && is_stopped(static_cast<pid_t>(pid));
}

std::string name_silent(const Board& board, int rank) {
  const Seat& seat = board.seat(rank);
  if (seat.state.load() == Seat::State::absent) {
    return fmt::format("rank {} (has not arrived)", board.world_rank(rank));
  }
  const bool stopped = has_stopped(board, rank);
  return fmt::format("rank {} ({}{})", board.world_rank(rank),
                     stopped ? fmt::format("pid {} is stopped; ", seat.pid) : "",
                     last_act(board, rank));
}

}  // namespace

std::string Report::death(int dead) const {
  return fmt::format("rank {} died (pid {} is gone) {}{}", board.world_rank(dead),
                     board.seat(dead).pid, last_act(board, dead), waiting(dead));
}

std::string Report::departure(int gone) const {
  return fmt::format("rank {} left {}{}", board.world_rank(gone), last_act(board, gone),
                     waiting(gone));
}

std::vector<int> Report::missing() const {
  std::vector<int> ranks;
  for (int other = 0; other < board.size(); ++other) {
    const bool awaited = collective ? !reached(board.seat(other).progress, target) : other == peer;
    if (other != rank && awaited) ranks.push_back(other);
  }
  return ranks;
}

bool Report::all_away() const {
  const std::vector<int> ranks = missing();
  return std::all_of(ranks.begin(), ranks.end(), [&](int other) {
    return board.world_seat(other).away.load() > 0 && !has_stopped(board, other);
  });
}

std::string Report::silence(std::chrono::milliseconds timeout) const {
  std::vector<std::string> silent, absent;
  for (const int other : missing()) {
    silent.push_back(name_silent(board, other));
    if (board.seat(other).state.load() == Seat::State::absent) absent.push_back(silent.back());
  }
  if (!absent.empty()) silent = absent;  // the rest, rank 0 at the door above all, wait for these
  return fmt::format("nothing for {} s from {}{}", std::chrono::duration<double>(timeout).count(),
                     fmt::join(silent, ", "), waiting());
}

std::string Report::waiting(int dead) const {
  if (!collective) return fmt::format("; rank {} is waiting", board.world_rank(rank));
  std::vector<int> ranks;
  for (int other = 0; other < board.size(); ++other) {
    const bool waits = other == rank || reached(board.seat(other).progress, target);
    if (waits && other != dead) ranks.push_back(board.world_rank(other));
  }
  return fmt::format("; {} {} {} waiting", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks, ", "), ranks.size() == 1 ? "is" : "are");
}

}  // namespace tessera::comm
