#pragma once

// One cell of a search: bounds of its variants, and variants weighed one by one. Layouts have much
// in common: layers' times, a rank's states, its activations, the simulated pipeline; a cell keeps
// what it has computed. Part of search.h.

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "plan/search_space.h"
#include "plan/step.h"

namespace tessera::plan {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The fastest layouts so far, over all and for every value of every knob.
class Incumbents {
 public:
  struct Entry {
    double step_s = kNever;
    uint64_t order = 0;  ///< in the space: among equals the first wins
    Layout layout;
  };
  struct Value {
    Entry fastest;
    double least_bytes = kNever;  ///< of what does not fit
  };

  explicit Incumbents(size_t top) : top_(top) {}

  void add(const Entry& entry);
  void add_too_large(const Layout& layout, double bytes);
  /// A layout that takes longer changes nothing.
  double limit(const Layout& layout) const;
  double last_of_top() const { return best_.size() < top_ ? kNever : best_.back().step_s; }
  double fastest_with(Knob knob, int64_t value) const;

  /// At most `top`; of layouts that are alike but for sharding, recomputation and sequence
  /// parallelism and equally fast the first alone.
  const std::vector<Entry>& best() const { return best_; }
  bool has_equal(const Entry& entry) const;
  const std::map<int64_t, Value>& values(Knob knob) const {
    return values_[static_cast<size_t>(knob)];
  }

 private:
  size_t top_;
  std::vector<Entry> best_;
  std::array<std::map<int64_t, Value>, kNumKnobs> values_;
};

class CellSearch {
 public:
  CellSearch(const SearchSpace& space, Cell cell);

  /// Computes the bounds; before everything else.
  void prepare();
  const Cell& cell() const { return cell_; }
  /// Seconds: no sharding of the variant takes less.
  double bound(size_t variant) const { return bounds_[variant]; }
  /// Nothing of the variant fits, as is known already.
  bool too_large(size_t variant) const;
  /// Whether some layout of the cell can have room for these states.
  bool has_room(size_t sharding) const { return floors_[sharding] <= capacity_; }

  enum class Fate : uint8_t { timed, bound, memory };
  struct Weighed {
    Fate fate = Fate::memory;
    double step_s = 0;  ///< of `bound` at least so much
    double bytes = 0;   ///< on the rank with most
  };
  /// Every sharding of the variant, [shardings]: those that fit and whose bound is below the limit
  /// are simulated.
  std::vector<Weighed> weigh(size_t variant, const Incumbents& incumbents);

 private:
  /// What of a pipelining a bound needs: by rank its layers, and those before it.
  struct Share {
    double dense = 0, sparse = 0, embeds = 0, heads = 0;
  };
  struct Shares {
    std::vector<Share> of_rank, before;
  };

  Shares shares_of(size_t pipelining);
  double shortest_pipeline(size_t variant, const LayerTimes& layers) const;
  const LayerTimes& layers_of(size_t variant) const;
  const std::vector<Memory>& states_of(size_t pipelining, size_t sharding);
  void find_floors();
  const Case& at(size_t variant, size_t sharding);

  const SearchSpace& space_;
  Cell cell_;
  Case run_;
  double capacity_;
  std::vector<double> bounds_;
  std::vector<double> floors_;               // [shardings], bytes of states no rank can be below
  std::vector<LayerTimes> layers_;           // [flavors · micro-batches]
  std::vector<Shares> shares_;               // [pipelinings]
  std::vector<size_t> too_large_from_;       // [families], index of a micro-batch
  std::vector<std::vector<Memory>> states_;  // [pipelinings · shardings], by rank
};

}  // namespace tessera::plan
