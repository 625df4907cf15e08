#pragma once

#include <cstdint>

namespace tessera::comm {

/// Bytes this rank has copied towards its peers, by collective: counted where they are copied. What
/// is written once for all counts once for each peer, as each of them copies it. A rank's own share
/// never counts.
struct Traffic {
  int64_t all_reduce = 0;
  int64_t reduce_scatter = 0;
  int64_t all_gather = 0;
  int64_t broadcast = 0;
  int64_t point_to_point = 0;
  int64_t total() const {
    return all_reduce + reduce_scatter + all_gather + broadcast + point_to_point;
  }
  Traffic& operator+=(const Traffic& other) {
    all_reduce += other.all_reduce;
    reduce_scatter += other.reduce_scatter;
    all_gather += other.all_gather;
    broadcast += other.broadcast;
    point_to_point += other.point_to_point;
    return *this;
  }
};

}  // namespace tessera::comm
