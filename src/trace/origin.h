#pragma once

// Ranks of a run must agree on what time 0 is, or their traces cannot be laid beside each other.

#include <cstdint>

namespace tessera::trace {

/// An instant by both clocks of a host. Plain bytes, so that it can be broadcast.
struct Origin {
  int64_t steady_ns = 0;  ///< now_ns()
  int64_t unix_ns = 0;    ///< since 1970, by the clock that hosts set to each other
  uint64_t host = 0;      ///< stands for the host since it was started
};

/// Now, here.
Origin origin_now();

/// What now_ns() was on this host at that instant: exact on its own host, elsewhere by the clocks
/// that hosts set to each other.
int64_t on_this_host(const Origin& origin);

}  // namespace tessera::trace
