#include "plan/search.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan/search_cell.h"
#include "plan/sensitivity.h"
#include "plan/text.h"

namespace tessera::plan {

void in_order(size_t count, const std::function<void(size_t)>& work) {
  for (size_t i = 0; i < count; ++i) work(i);
}

namespace {

/// Best-first, in rounds. Of every list of variants, that of all and that of each value of each
/// knob, those with the lowest bounds are weighed until no bound left is below the list's fastest.
class Search {
 public:
  Search(const SearchSpace& space, const ForEach& for_each)
      : space_(space), for_each_(for_each), incumbents_(std::max<size_t>(space.top, 1)) {}

  SearchResult run() {
    for (Cell& cell : make_cells(space_, result_.rejected)) {
      cells_.emplace_back(space_, std::move(cell));
    }
    for_each_(cells_.size(), [&](size_t i) { cells_[i].prepare(); });
    list_variants();
    for (size_t each = kFirstPicks; !pick(each).empty(); each *= 2) {
      weigh_picked();
    }
    count_rest();
    take_best();
    add_rejected();
    add_held_values(space_, result_, for_each_);
    return std::move(result_);
  }

 private:
  static constexpr size_t kFirstPicks = 4;   // of a knob's value in the first round
  static constexpr size_t kPicksOfAll = 16;  // times as many of all

  struct Variant {
    double bound = 0;
    uint32_t cell = 0, index = 0;
    bool weighed = false;
  };
  /// Variants that share a value of a knob, lowest bound first.
  struct List {
    std::vector<uint32_t> variants;
    size_t next = 0;
  };

  void list_variants() {
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
      result_.candidates += cells_[cell].cell().num_layouts();
      for (size_t i = 0; i < cells_[cell].cell().num_variants(); ++i) {
        variants_.push_back(
            {cells_[cell].bound(i), static_cast<uint32_t>(cell), static_cast<uint32_t>(i), false});
      }
    }
    std::sort(variants_.begin(), variants_.end(), [](const Variant& one, const Variant& other) {
      return std::tie(one.bound, one.cell, one.index) <
             std::tie(other.bound, other.cell, other.index);
    });
    for (uint32_t position = 0; position < variants_.size(); ++position) {
      const Variant& variant = variants_[position];
      const CellSearch& search = cells_[variant.cell];
      bool room = false;
      for (size_t sharding = 0; sharding < search.cell().shardings.size(); ++sharding) {
        if (!search.has_room(sharding)) continue;
        const Layout layout = search.cell().layout(variant.index, sharding);
        for (const Knob knob : {Knob::zero, Knob::shard}) enlist(knob, layout, position);
        if (room) continue;
        for (size_t knob = 0; knob < kNumKnobs; ++knob) {
          enlist(static_cast<Knob>(knob), layout, position);
        }
        all_.variants.push_back(position);
        room = true;
      }
    }
  }

  void enlist(Knob knob, const Layout& layout, uint32_t position) {
    std::vector<uint32_t>& list =
        lists_[static_cast<size_t>(knob)][value_of(layout, knob)].variants;
    if (list.empty() || list.back() != position) list.push_back(position);
  }

  void pick_from(List& list, double limit, size_t most) {
    size_t taken = 0;
    for (; list.next < list.variants.size() && taken < most; ++list.next) {
      Variant& variant = variants_[list.variants[list.next]];
      if (variant.bound > limit) return;
      if (variant.weighed || cells_[variant.cell].too_large(variant.index)) continue;
      variant.weighed = true;
      picked_[variant.cell].push_back(variant.index);
      ++taken;
    }
  }

  /// By cell the variants that are to be weighed next.
  const std::map<uint32_t, std::vector<uint32_t>>& pick(size_t each) {
    picked_.clear();
    pick_from(all_, incumbents_.last_of_top(), kPicksOfAll * each);
    for (size_t knob = 0; knob < kNumKnobs; ++knob) {
      for (auto& [value, list] : lists_[knob]) {
        pick_from(list, incumbents_.fastest_with(static_cast<Knob>(knob), value), each);
      }
    }
    return picked_;
  }

  /// All of a cell by one worker; what they find is put together in the order of the space.
  void weigh_picked() {
    const std::vector<std::pair<uint32_t, std::vector<uint32_t>>> work(picked_.begin(),
                                                                       picked_.end());
    std::vector<std::vector<std::vector<CellSearch::Weighed>>> weighed(work.size());
    for_each_(work.size(), [&](size_t i) {
      for (const uint32_t variant : work[i].second) {
        weighed[i].push_back(cells_[work[i].first].weigh(variant, incumbents_));
      }
    });
    for (size_t i = 0; i < work.size(); ++i) {
      for (size_t j = 0; j < work[i].second.size(); ++j) {
        for (size_t sharding = 0; sharding < weighed[i][j].size(); ++sharding) {
          note(work[i].first, work[i].second[j], sharding, weighed[i][j][sharding]);
        }
      }
    }
  }

  void note(uint32_t cell, uint32_t variant, size_t sharding, const CellSearch::Weighed& weighed) {
    const Layout layout = cells_[cell].cell().layout(variant, sharding);
    switch (weighed.fate) {
      case CellSearch::Fate::timed:
        timed_.push_back({weighed.step_s, order_of(cell, variant, sharding), layout});
        incumbents_.add(timed_.back());
        break;
      case CellSearch::Fate::memory:
        ++too_large_;
        if (weighed.bytes < least_bytes_) {
          least_bytes_ = weighed.bytes;
          smallest_ = layout;
        }
        incumbents_.add_too_large(layout, weighed.bytes);
        break;
      case CellSearch::Fate::bound:
        note_bound(layout, weighed.step_s);
        break;
    }
  }

  static uint64_t order_of(size_t cell, size_t variant, size_t sharding) {
    return (static_cast<uint64_t>(cell) << 40) | (static_cast<uint64_t>(variant) << 8) | sharding;
  }

  void note_bound(const Layout& layout, double step_s) {
    ++too_slow_;
    if (step_s < lowest_bound_) {
      lowest_bound_ = step_s;
      nearest_ = layout;
    }
  }

  /// The variants that were never weighed.
  void count_rest() {
    for (const Variant& variant : variants_) {
      if (variant.weighed) continue;
      const CellSearch& search = cells_[variant.cell];
      const bool too_large = search.too_large(variant.index);
      for (size_t sharding = 0; sharding < search.cell().shardings.size(); ++sharding) {
        if (too_large || !search.has_room(sharding)) {
          ++too_large_;
        } else {
          note_bound(search.cell().layout(variant.index, sharding), variant.bound);
        }
      }
    }
    if (too_large_ > 0 && least_bytes_ == kNever) find_smallest();
  }

  /// Where states alone were too much everywhere: the nearest of those.
  void find_smallest() {
    for (const CellSearch& search : cells_) {
      const Cell& cell = search.cell();
      const size_t variant = (cell.flavors.size() - 1) * cell.micro_batches.size();
      for (size_t sharding = 0; sharding < cell.shardings.size(); ++sharding) {
        if (search.has_room(sharding)) continue;
        const Layout layout = cell.layout(variant, sharding);
        const std::vector<Memory> ranks = memory_of_ranks(space_.at(layout));
        const double bytes = ranks[worst_rank(ranks)].total();
        incumbents_.add_too_large(layout, bytes);
        if (bytes >= least_bytes_) continue;
        least_bytes_ = bytes;
        smallest_ = layout;
      }
    }
  }

  void take_best() {
    result_.timed = static_cast<int64_t>(timed_.size());
    const std::vector<Incumbents::Entry>& best = incumbents_.best();
    result_.best.resize(best.size());
    for_each_(best.size(), [&](size_t i) {
      result_.best[i].layout = best[i].layout;
      result_.best[i].estimate = estimate(space_.at(best[i].layout), space_.constants);
    });
    for (size_t i = 0; i < best.size() && best.size() > 1; ++i) {
      result_.best[i].against =
          differences(result_.best[i].estimate.time, result_.best[i == 0 ? 1 : 0].estimate.time);
    }
    for (size_t knob = 0; knob < kNumKnobs; ++knob) {
      Sensitivity sensitivity;
      sensitivity.knob = static_cast<Knob>(knob);
      for (const auto& [value, found] : incumbents_.values(sensitivity.knob)) {
        KnobValue line;
        line.value = value;
        if (found.fastest.step_s < kNever) {
          line.best_s = found.fastest.step_s;
          line.best = found.fastest.layout;
        } else {
          line.reason = "needs at least " + bytes_text(found.least_bytes);
        }
        sensitivity.values.push_back(std::move(line));
      }
      if (sensitivity.values.size() > 1) result_.sensitivity.push_back(std::move(sensitivity));
    }
  }

  void add_rejected() {
    if (too_large_ > 0) {
      const auto memory = static_cast<double>(space_.cluster.device.memory_bytes);
      result_.rejected.push_back(
          {Rejection::memory, "memory", too_large_, smallest_,
           "needs " + bytes_text(least_bytes_) + " of the " + bytes_text(memory) + " of a device"});
    }
    if (too_slow_ > 0) {
      result_.rejected.push_back({Rejection::bound, "bound", too_slow_, nearest_,
                                  "takes at least " + time_text(lowest_bound_)});
    }
    std::set<uint64_t> returned;
    for (const Incumbents::Entry& entry : incumbents_.best()) returned.insert(entry.order);
    int64_t slower = 0, equal = 0;
    const Incumbents::Entry *next = nullptr, *same = nullptr;
    for (const Incumbents::Entry& entry : timed_) {
      if (returned.count(entry.order) > 0) continue;
      const bool ties = incumbents_.has_equal(entry);
      ++(ties ? equal : slower);
      const Incumbents::Entry*& nearest = ties ? same : next;
      if (nearest == nullptr || entry.step_s < nearest->step_s) nearest = &entry;
    }
    if (next != nullptr) {
      result_.rejected.push_back(
          {Rejection::slower, "time", slower, next->layout, "takes " + time_text(next->step_s)});
    }
    if (same != nullptr) {
      result_.rejected.push_back({Rejection::equal, "time", equal, same->layout,
                                  "takes " + time_text(same->step_s) + " as well"});
    }
  }

  const SearchSpace& space_;
  const ForEach& for_each_;
  SearchResult result_;
  Incumbents incumbents_;
  std::vector<CellSearch> cells_;
  std::vector<Variant> variants_;
  List all_;
  std::array<std::map<int64_t, List>, kNumKnobs> lists_;
  std::map<uint32_t, std::vector<uint32_t>> picked_;
  std::vector<Incumbents::Entry> timed_;
  int64_t too_large_ = 0, too_slow_ = 0;
  double least_bytes_ = kNever, lowest_bound_ = kNever;
  Layout smallest_, nearest_;
};

}  // namespace

SearchResult search(const SearchSpace& space, const ForEach& for_each) {
  return Search(space, for_each).run();
}

}  // namespace tessera::plan
