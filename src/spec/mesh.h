#pragma once

// The ranks of a run as a mesh of four axes, the last the innermost: neighbours share products
// (tp), whose messages are the most and need the fastest links; then come context and data
// parallelism, and the stages of a pipeline (pp), which say least to each other, are farthest
// apart.

#include <cstdint>

#include "spec/run_config.h"

namespace tessera::spec {

/// A rank's place on each axis.
struct Coordinate {
  int64_t pp = 0, dp = 0, cp = 0, tp = 0;
};

/// Degrees of the axes.
struct Mesh {
  int64_t pp = 1, dp = 1, cp = 1, tp = 1;

  int64_t size() const { return pp * dp * cp * tp; }
  Coordinate at(int64_t rank) const {
    return {rank / (dp * cp * tp), rank / (cp * tp) % dp, rank / tp % cp, rank % tp};
  }
  int64_t rank_of(const Coordinate& at) const {
    return ((at.pp * dp + at.dp) * cp + at.cp) * tp + at.tp;
  }
};
/// `parallelism` is resolved.
Mesh mesh_of(const ParallelismConfig& parallelism);

}  // namespace tessera::spec
