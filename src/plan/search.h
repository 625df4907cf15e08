#pragma once

// The layouts of a cluster for a model and a recipe, searched for the fastest that fit. The space
// is the product of the knobs below over all ways to cut the devices; it is cut down in order of
// cost: what is illegal, what cannot be faster than what is known (a lower bound of its pipeline),
// what does not fit, and only then is a step simulated. Bounds are true bounds, so the best are the
// same as if every layout had been simulated; and work is done in rounds whose extent does not
// depend on who does it, so they are the same bits with any number of threads.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

/// What a search turns. Every one is a number of a Layout.
enum class Knob : uint8_t {
  tp,
  sequence_parallel,  ///< 0 or 1
  cp,
  pp,
  schedule,  ///< a spec::ScheduleKind
  v,
  dp,
  ep,
  zero,
  shard,
  micro_batch,
  recompute  ///< a spec::Recompute
};
constexpr size_t kNumKnobs = 12;
/// "tp", "micro_batch": as in the grammar of layouts.
std::string_view name_of(Knob knob);
int64_t value_of(const Layout& layout, Knob knob);
/// "8", "interleaved", "all" of a shard group over all replicas.
std::string value_text(Knob knob, int64_t value);

/// What is searched.
struct SearchSpace {
  Model model;
  Recipe recipe;
  Cluster cluster;
  Stack stack;
  Constants constants;
  int64_t devices = 8;
  /// Of each knob the values to try; empty: the search's own. Those are: degrees that divide the
  /// devices, tp of at most 64 or a node, at least 512 tokens of a sequence on a device, of
  /// interleaving 2, 3, 4, 6 and 8 stages a rank and, up to 16, what divides the layers, shard
  /// groups of one node, of 8 and of 64 times as much, and all.
  std::array<std::vector<int64_t>, kNumKnobs> only;
  size_t top = 10;

  const std::vector<int64_t>& values(Knob knob) const { return only[static_cast<size_t>(knob)]; }
  Case at(const Layout& layout) const { return {model, recipe, cluster, layout, stack}; }
};

enum class Rejection : uint8_t {
  illegal,  ///< mistakes() finds something; counted once for each way to cut the devices
  memory,   ///< does not fit
  bound,    ///< could not be faster than what is returned: its step was not simulated
  slower,   ///< simulated, and slower
  equal     ///< as fast, to the bit, as one that is returned and differs only in its sharding,
            ///< recomputation or sequence parallelism, of which that one has less
};
std::string_view name_of(Rejection reason);

/// Layouts that are not returned, for one reason.
struct Rejected {
  Rejection reason = Rejection::illegal;
  std::string what;  ///< of illegal ones the key, "tp"
  int64_t count = 0;
  Layout example;       ///< the one that came nearest: fewest bytes, least time
  std::string because;  ///< of the example, with numbers
};

/// One part of the step in which two layouts differ.
struct TermDifference {
  std::string term;    ///< "pp_bubble_s", "compute_s" (without what is exposed), …
  double seconds = 0;  ///< this one's less the other's: negative where this one is faster
};
/// Largest first; they add up to the difference of the steps. Terms that differ by less than
/// 0.1 % of the step are left out.
std::vector<TermDifference> differences(const StepTime& one, const StepTime& other);

struct Found {
  Layout layout;
  Estimate estimate;
  /// The best: against the second. Others: against the best.
  std::vector<TermDifference> against;
};

/// What the other knobs can make of one value of a knob.
struct KnobValue {
  int64_t value = 0;
  double best_s = 0;   ///< fastest step with it, all else free; 0: none fits
  Layout best;         ///< that one
  double held_s = 0;   ///< the best layout with only this changed, dp taking up the devices;
                       ///< 0: not legal or does not fit
  std::string reason;  ///< why best_s or held_s is 0
};
struct Sensitivity {
  Knob knob = Knob::tp;
  std::vector<KnobValue> values;  ///< ascending; of knobs with one value alone there is none
};

struct SearchResult {
  int64_t candidates = 0;   ///< legal layouts in the space; returned or rejected, each once
  int64_t timed = 0;        ///< of them, those whose step was simulated
  std::vector<Found> best;  ///< fastest first, ties in the order of the space
  std::vector<Rejected> rejected;
  std::vector<Sensitivity> sensitivity;
};

/// Calls work(i) for every i < count, in any order and on any threads.
using ForEach = std::function<void(size_t count, const std::function<void(size_t)>& work)>;
void in_order(size_t count, const std::function<void(size_t)>& work);

/// The best layouts. No layout fits: `best` is empty, and `rejected` says what the least is that is
/// needed.
SearchResult search(const SearchSpace& space, const ForEach& for_each = in_order);

}  // namespace tessera::plan
