#pragma once

// The space of a search as cells: a cell is one way to cut the devices, with what can be chosen
// inside it. Part of search.h.

#include <cstdint>
#include <vector>

#include "plan/search.h"

namespace tessera::plan {

struct Cell {
  struct Pipelining {
    spec::ScheduleKind schedule = spec::ScheduleKind::one_f_one_b;
    int64_t v = 1;
  };
  struct Flavor {
    bool sequence_parallel = false;
    spec::Recompute recompute = spec::Recompute::none;
  };
  struct Sharding {
    int64_t zero = 0;
    int64_t shard = 0;
  };
  Layout degrees;  ///< tp, cp, pp, dp, ep
  std::vector<Pipelining> pipelinings;
  std::vector<Flavor> flavors;
  std::vector<int64_t> micro_batches;  ///< ascending
  std::vector<Sharding> shardings;

  /// A variant is a layout but for its sharding. Those of one family differ in their micro-batch
  /// alone, and lie next to each other.
  size_t num_variants() const { return pipelinings.size() * flavors.size() * micro_batches.size(); }
  size_t family_of(size_t variant) const { return variant / micro_batches.size(); }
  size_t flavor_of(size_t variant) const { return family_of(variant) % flavors.size(); }
  size_t pipelining_of(size_t variant) const { return family_of(variant) / flavors.size(); }
  int64_t num_layouts() const { return static_cast<int64_t>(num_variants() * shardings.size()); }
  Layout layout(size_t variant, size_t sharding) const;
};

/// All cells with at least one layout, in the order of their degrees; and what is illegal.
std::vector<Cell> make_cells(const SearchSpace& space, std::vector<Rejected>& illegal);

/// Ascending.
std::vector<int64_t> divisors(int64_t number);

}  // namespace tessera::plan
