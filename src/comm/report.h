#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/board.h"

// What a rank says when it cannot go on: who is missing, and what each did last.

namespace tessera::comm {

/// The wait that came to nothing, seen by one rank.
struct Report {
  const Board& board;
  int rank;         ///< who waits
  bool collective;  ///< for all ranks to reach `target`; otherwise for `peer` alone
  int peer;
  uint32_t target;

  /// "rank 2 died (pid 4711 is gone) in all-reduce #122 of step 3; ranks 0, 1, 3 are waiting"
  std::string death(int dead) const;
  /// "rank 2 left after all-reduce #122 of step 3; …"
  std::string departure(int gone) const;
  /// "nothing for 60 s from rank 2 (after all-reduce #122), rank 3 (pid 4712 is stopped; in …); …"
  std::string silence(std::chrono::milliseconds timeout) const;

  /// Whether those that are missing wait across hosts themselves: they will say for whom.
  bool all_away() const;

 private:
  std::vector<int> missing() const;
  /// Who waits; not `dead`, which may have come as far as the others.
  std::string waiting(int dead = -1) const;
};

}  // namespace tessera::comm
