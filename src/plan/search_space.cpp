#include "plan/search_space.h"

#include <algorithm>

namespace tessera::plan {

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    low.push_back(divisor);
    if (divisor != number / divisor) high.push_back(number / divisor);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

Layout Cell::layout(size_t variant, size_t sharding) const {
  Layout layout = degrees;
  const Pipelining& pipelining = pipelinings[pipelining_of(variant)];
  const Flavor& flavor = flavors[flavor_of(variant)];
  layout.schedule = pipelining.schedule;
  layout.v = pipelining.v;
  layout.sequence_parallel = flavor.sequence_parallel;
  layout.recompute = flavor.recompute;
  layout.micro_batch = micro_batches[variant % micro_batches.size()];
  layout.zero = shardings[sharding].zero;
  layout.shard = shardings[sharding].shard;
  return layout;
}

namespace {

constexpr int64_t kWidestTp = 64;       // or a node
constexpr int64_t kLeastTokens = 512;   // of a sequence on a device
constexpr int64_t kMostChunks = 16;     // of a rank, where they divide the layers
constexpr int64_t kNextShardGroup = 8;  // times as large as the one before
constexpr std::array<int64_t, 5> kUsualChunks = {2, 3, 4, 6, 8};

class Cells {
 public:
  Cells(const SearchSpace& space, std::vector<Rejected>& illegal)
      : space_(space), illegal_(illegal) {}

  std::vector<Cell> run() {
    for (const int64_t tp : degrees(Knob::tp)) {
      for (const int64_t cp : degrees(Knob::cp)) {
        for (const int64_t pp : degrees(Knob::pp)) {
          if (space_.devices % (tp * cp * pp) != 0) continue;
          const int64_t dp = space_.devices / (tp * cp * pp);
          if (!allowed(Knob::dp, dp)) continue;
          for (const int64_t ep : expert_degrees(dp * cp * tp)) add_cell(tp, cp, pp, dp, ep);
        }
      }
    }
    return std::move(cells_);
  }

 private:
  bool allowed(Knob knob, int64_t value) const {
    const std::vector<int64_t>& only = space_.values(knob);
    return only.empty() || std::find(only.begin(), only.end(), value) != only.end();
  }

  std::vector<int64_t> degrees(Knob knob) const {
    if (!space_.values(knob).empty()) return space_.values(knob);
    std::vector<int64_t> values = divisors(space_.devices);
    std::erase_if(values, [&](int64_t value) {
      switch (knob) {
        case Knob::tp:
          return value > std::max(kWidestTp, space_.cluster.devices_per_node);
        case Knob::cp:
          return value > 1 && space_.recipe.seq_len / value < kLeastTokens;
        case Knob::pp:
          return value > space_.model.dense.num_hidden_layers + 2;
        default:
          return false;
      }
    });
    return values;
  }

  std::vector<int64_t> expert_degrees(int64_t ranks) const {
    if (!space_.values(Knob::ep).empty()) return space_.values(Knob::ep);
    if (!space_.model.experts) return {1};
    std::vector<int64_t> values = divisors(space_.model.experts->count);
    std::erase_if(values, [&](int64_t value) { return ranks % value != 0; });
    return values;
  }

  bool is_legal(const Layout& layout) const {
    return mistakes(space_.model, space_.recipe, layout).empty();
  }

  /// Asks for everything that degrees decide; the rest is legal as it is enumerated.
  bool legal_degrees(const Layout& layout) {
    const std::vector<spec::Violation> found = mistakes(space_.model, space_.recipe, layout);
    if (found.empty()) return true;
    const spec::Violation& first = found.front();
    auto known = std::find_if(illegal_.begin(), illegal_.end(),
                              [&](const Rejected& one) { return one.what == first.key; });
    if (known == illegal_.end()) {
      std::string because = first.key + " = " + first.value + ' ' + first.why;
      if (!first.suggest.empty()) because += "; nearest: " + first.suggest;
      illegal_.push_back({Rejection::illegal, first.key, 0, layout, std::move(because)});
      known = illegal_.end() - 1;
    }
    ++known->count;
    return false;
  }

  void add_cell(int64_t tp, int64_t cp, int64_t pp, int64_t dp, int64_t ep) {
    Cell cell;
    cell.degrees.tp = tp;
    cell.degrees.cp = cp;
    cell.degrees.pp = pp;
    cell.degrees.dp = dp;
    cell.degrees.ep = ep;
    if (!legal_degrees(cell.degrees)) return;
    add_pipelinings(cell);
    add_flavors(cell);
    add_shardings(cell);
    for (const int64_t size : divisors(space_.recipe.global_batch / dp)) {
      if (allowed(Knob::micro_batch, size)) cell.micro_batches.push_back(size);
    }
    if (cell.num_layouts() > 0) cells_.push_back(std::move(cell));
  }

  void add_pipelinings(Cell& cell) const {
    const int64_t pp = cell.degrees.pp, layers = space_.model.dense.num_hidden_layers;
    for (const spec::ScheduleKind kind : spec::kNamedSchedules) {
      if (!allowed(Knob::schedule, static_cast<int64_t>(kind))) continue;
      std::vector<int64_t> chunks;
      if (kind != spec::ScheduleKind::interleaved) {
        chunks = {pp == 1 ? 1 : spec::usual_chunks(kind)};
      } else if (!space_.values(Knob::v).empty()) {
        chunks = space_.values(Knob::v);
        // One stage a rank is 1f1b.
        if (allowed(Knob::schedule, static_cast<int64_t>(spec::ScheduleKind::one_f_one_b))) {
          std::erase(chunks, 1);
        }
      } else {
        for (int64_t v = 2; v <= kMostChunks && pp > 1; ++v) {
          const bool usual =
              std::find(kUsualChunks.begin(), kUsualChunks.end(), v) != kUsualChunks.end();
          if (usual || layers % (pp * v) == 0) chunks.push_back(v);
        }
      }
      for (const int64_t v : chunks) {
        Layout layout = cell.degrees;
        layout.schedule = kind;
        layout.v = v;
        // On one rank all schedules are the same: the first stands for them.
        const bool again = pp == 1 && !cell.pipelinings.empty();
        if (!again && allowed(Knob::v, v) && is_legal(layout))
          cell.pipelinings.push_back({kind, v});
      }
    }
    if (pp == 1 && !cell.pipelinings.empty() && space_.values(Knob::schedule).empty()) {
      cell.pipelinings = {{spec::ScheduleKind::one_f_one_b, 1}};
    }
  }

  void add_flavors(Cell& cell) const {
    for (const bool parallel : {false, true}) {
      if (!allowed(Knob::sequence_parallel, parallel ? 1 : 0) && cell.degrees.tp > 1) continue;
      if (parallel && cell.degrees.tp == 1) continue;
      Layout layout = cell.degrees;
      layout.sequence_parallel = parallel;
      if (!is_legal(layout)) continue;
      for (const auto recompute :
           {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
        if (!allowed(Knob::recompute, static_cast<int64_t>(recompute))) continue;
        cell.flavors.push_back({parallel, recompute});
      }
    }
  }

  void add_shardings(Cell& cell) const {
    const int64_t replicas = cell.degrees.dp * cell.degrees.cp;
    std::vector<int64_t> groups = {0};
    if (!space_.values(Knob::shard).empty()) {
      groups = space_.values(Knob::shard);
    } else {
      const int64_t node = std::max<int64_t>(space_.cluster.devices_per_node / cell.degrees.tp, 1);
      int64_t size = node;
      for (int level = 0; level < 3; ++level, size *= kNextShardGroup) {
        if (size > 1 && size < replicas && replicas % size == 0) groups.push_back(size);
      }
    }
    for (int64_t zero = 0; zero <= 3; ++zero) {
      if (!allowed(Knob::zero, zero)) continue;
      // One replica has nothing to shard, unless it is asked for.
      if (zero > 0 && replicas == 1 && space_.values(Knob::zero).empty()) continue;
      for (const int64_t group : groups) {
        if (zero == 0 && group > 0) continue;
        if (group > 0 && replicas % group != 0) continue;
        if (group == replicas && groups.front() == 0) continue;  // the same as all
        cell.shardings.push_back({zero, group});
      }
    }
  }

  const SearchSpace& space_;
  std::vector<Rejected>& illegal_;
  std::vector<Cell> cells_;
};

}  // namespace

std::vector<Cell> make_cells(const SearchSpace& space, std::vector<Rejected>& illegal) {
  return Cells(space, illegal).run();
}

}  // namespace tessera::plan
