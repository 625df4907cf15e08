#include "comm/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "comm/liveness.h"

namespace tessera::comm {

namespace {

// "in all-reduce #122 of step 3", "after barrier #4", "before its first operation".
std::string last_act(const Board& board, int rank) {
  const Seat& seat = board.seat(rank);
  Words words{};
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = seat.current[i].load(std::memory_order_relaxed);
  }
  const Operation operation = unpack(words);
  const bool idle = seat.idle.load(std::memory_order_relaxed) != 0;
  const bool began =
      operation.kind != OperationKind::none && operation.kind != OperationKind::start;
  const std::string act =
      began ? (idle ? "after " : "in ") + name_of(operation) : "before its first operation";
  const int64_t step = seat.step.load(std::memory_order_relaxed);
  return act + (step >= 0 ? fmt::format(" of step {}", step) : "");
}

std::string name_silent(const Board& board, int rank) {
  const Seat& seat = board.seat(rank);
  if (seat.state.load() == Seat::State::absent) {
    return fmt::format("rank {} (has not arrived)", rank);
  }
  const bool stopped = seat.pid != 0 && is_stopped(static_cast<pid_t>(seat.pid));
  return fmt::format("rank {} ({}{})", rank,
                     stopped ? fmt::format("pid {} is stopped; ", seat.pid) : "",
                     last_act(board, rank));
}

}  // namespace

std::string Report::death(int dead) const {
  return fmt::format("rank {} died (pid {} is gone) {}{}", dead, board.seat(dead).pid,
                     last_act(board, dead), waiting());
}

std::string Report::departure(int gone) const {
  return fmt::format("rank {} left {}{}", gone, last_act(board, gone), waiting());
}

std::string Report::silence(std::chrono::milliseconds timeout) const {
  std::vector<std::string> missing, absent;
  for (int other = 0; other < board.size(); ++other) {
    const Seat& seat = board.seat(other);
    const bool awaited = collective ? !reached(seat.progress, target) : other == peer;
    if (other == rank || !awaited) continue;
    missing.push_back(name_silent(board, other));
    if (seat.state.load() == Seat::State::absent) absent.push_back(missing.back());
  }
  if (!absent.empty()) missing = absent;  // the rest, rank 0 at the door above all, wait for these
  return fmt::format("nothing for {} s from {}{}", std::chrono::duration<double>(timeout).count(),
                     fmt::join(missing, ", "), waiting());
}

std::string Report::waiting() const {
  if (!collective) return fmt::format("; rank {} is waiting", rank);
  std::vector<int> ranks;
  for (int other = 0; other < board.size(); ++other) {
    if (other == rank || reached(board.seat(other).progress, target)) ranks.push_back(other);
  }
  return fmt::format("; {} {} {} waiting", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks, ", "), ranks.size() == 1 ? "is" : "are");
}

}  // namespace tessera::comm
