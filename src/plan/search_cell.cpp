#include "plan/search_cell.h"

#include <algorithm>

#include "plan/parts.h"

namespace tessera::plan {

namespace {

bool before(const Incumbents::Entry& one, const Incumbents::Entry& other) {
  return one.step_s != other.step_s ? one.step_s < other.step_s : one.order < other.order;
}

bool alike(const Layout& one, const Layout& other) {
  for (const Knob knob : {Knob::tp, Knob::cp, Knob::pp, Knob::dp, Knob::ep, Knob::schedule, Knob::v,
                          Knob::micro_batch}) {
    if (value_of(one, knob) != value_of(other, knob)) return false;
  }
  return true;
}

auto find_equal(const std::vector<Incumbents::Entry>& entries, const Incumbents::Entry& entry) {
  return std::find_if(entries.begin(), entries.end(), [&](const Incumbents::Entry& one) {
    return one.step_s == entry.step_s && alike(one.layout, entry.layout);
  });
}

}  // namespace

bool Incumbents::has_equal(const Entry& entry) const {
  return find_equal(best_, entry) != best_.end();
}

void Incumbents::add(const Entry& entry) {
  for (size_t knob = 0; knob < kNumKnobs; ++knob) {
    Value& value = values_[knob][value_of(entry.layout, static_cast<Knob>(knob))];
    if (before(entry, value.fastest)) value.fastest = entry;
  }
  const auto equal = find_equal(best_, entry);
  if (equal != best_.end()) {
    if (equal->order < entry.order) return;
    best_.erase(equal);
  }
  best_.insert(std::upper_bound(best_.begin(), best_.end(), entry, before), entry);
  if (best_.size() > top_) best_.pop_back();
}

void Incumbents::add_too_large(const Layout& layout, double bytes) {
  for (size_t knob = 0; knob < kNumKnobs; ++knob) {
    double& least = values_[knob][value_of(layout, static_cast<Knob>(knob))].least_bytes;
    least = std::min(least, bytes);
  }
}

double Incumbents::fastest_with(Knob knob, int64_t value) const {
  const auto& known = values(knob);
  const auto found = known.find(value);
  return found == known.end() ? kNever : found->second.fastest.step_s;
}

double Incumbents::limit(const Layout& layout) const {
  double most = last_of_top();
  for (size_t knob = 0; knob < kNumKnobs; ++knob) {
    most = std::max(
        most, fastest_with(static_cast<Knob>(knob), value_of(layout, static_cast<Knob>(knob))));
  }
  return most;
}

CellSearch::CellSearch(const SearchSpace& space, Cell cell)
    : space_(space),
      cell_(std::move(cell)),
      run_(space.at(cell_.degrees)),
      capacity_(static_cast<double>(space.cluster.device.memory_bytes)) {}

const Case& CellSearch::at(size_t variant, size_t sharding) {
  run_.layout = cell_.layout(variant, sharding);
  return run_;
}

const LayerTimes& CellSearch::layers_of(size_t variant) const {
  return layers_[variant % (cell_.flavors.size() * cell_.micro_batches.size())];
}

void CellSearch::prepare() {
  const size_t alike = cell_.flavors.size() * cell_.micro_batches.size();
  for (size_t variant = 0; variant < alike; ++variant) {
    layers_.push_back(layer_times(at(variant, 0), space_.constants));
  }
  for (size_t i = 0; i < cell_.pipelinings.size(); ++i) shares_.push_back(shares_of(i));
  for (size_t variant = 0; variant < cell_.num_variants(); ++variant) {
    const double work = shortest_pipeline(variant, layers_of(variant));
    // Sums are made in another order than where they are simulated.
    constexpr double kRounding = 1 - 1e-9;
    bounds_.push_back((work + overhead_s(run_, space_.constants, work)) * kRounding);
  }
  states_.resize(cell_.pipelinings.size() * cell_.shardings.size());
  too_large_from_.assign(cell_.pipelinings.size() * cell_.flavors.size(),
                         cell_.micro_batches.size());
  find_floors();
}

/// States are the same over all ranks however the layers are dealt out, but that a tied embedding
/// may be on one rank or on two; so the ranks' mean is below the worst of any pipelining.
void CellSearch::find_floors() {
  for (size_t sharding = 0; sharding < cell_.shardings.size(); ++sharding) {
    double sum = 0;
    for (const Memory& rank : memory_of_ranks(at(0, sharding))) {
      // Of the states alone: other variants may keep fewer activations than this one.
      Memory states;
      states.weights = rank.weights;
      states.gradients = rank.gradients;
      states.optimizer = rank.optimizer;
      sum += states.state() + runtime_bytes(run_.stack, states);
    }
    const auto ranks = static_cast<double>(run_.layout.pp);
    const double twice = count_parameters(run_.model).head > 0 || run_.layout.pp == 1 ? 0 : sum / 2;
    floors_.push_back((sum - twice) / ranks * (1 - 1e-9));
  }
}

CellSearch::Shares CellSearch::shares_of(size_t pipelining) {
  const size_t variant = pipelining * cell_.flavors.size() * cell_.micro_batches.size();
  const std::vector<Stage> stages = stages_of(at(variant, 0));
  const auto ranks = static_cast<size_t>(run_.layout.pp);
  Shares shares{std::vector<Share>(ranks), std::vector<Share>(ranks)};
  for (size_t i = 0; i < stages.size(); ++i) {
    Share& share =
        shares.of_rank[static_cast<size_t>(rank_of(run_.layout, static_cast<int64_t>(i)))];
    share.dense += static_cast<double>(stages[i].dense_layers);
    share.sparse += static_cast<double>(stages[i].expert_layers);
    share.embeds += stages[i].embeds ? 1 : 0;
    share.heads += stages[i].has_head ? 1 : 0;
    // Of every placement rank r's first stage is stage r.
    if (i + 1 < ranks) {
      Share& next = shares.before[i + 1];
      next = shares.before[i];
      next.dense += static_cast<double>(stages[i].dense_layers);
      next.sparse += static_cast<double>(stages[i].expert_layers);
      next.embeds += stages[i].embeds ? 1 : 0;
    }
  }
  return shares;
}

/// No rank begins before its first micro-batch has come through the stages before, nor ends before
/// all its work is done; and where backwards are whole, its last one then goes back through those
/// stages.
double CellSearch::shortest_pipeline(size_t variant, const LayerTimes& layers) const {
  const size_t pipelining = cell_.pipelining_of(variant);
  const Layout layout = cell_.layout(variant, 0);
  const auto micro_batches = static_cast<double>(num_micro_batches(space_.recipe, layout));
  const bool whole =
      layout.schedule != spec::ScheduleKind::zb_h1 && layout.schedule != spec::ScheduleKind::zb_v;
  const auto seconds = [&](const Share& share, auto of) {
    return share.dense * of(layers.dense) + share.sparse * of(layers.sparse) +
           share.embeds * of(layers.embedding) + share.heads * of(layers.head);
  };
  const auto both = [](const LayerTime& time) { return time.forward + time.backward(); };
  const auto before = [&](const LayerTime& time) {
    return time.forward + (whole ? time.backward() : 0);
  };
  double longest = 0;
  const Shares& shares = shares_[pipelining];
  for (size_t rank = 0; rank < shares.of_rank.size(); ++rank) {
    longest = std::max(longest, seconds(shares.before[rank], before) +
                                    micro_batches * seconds(shares.of_rank[rank], both));
  }
  return longest;
}

bool CellSearch::too_large(size_t variant) const {
  return variant % cell_.micro_batches.size() >= too_large_from_[cell_.family_of(variant)];
}

/// States and gathered weights, by rank: the same for all flavors and micro-batches.
const std::vector<Memory>& CellSearch::states_of(size_t pipelining, size_t sharding) {
  std::vector<Memory>& states = states_[pipelining * cell_.shardings.size() + sharding];
  if (states.empty()) {
    const size_t variant = pipelining * cell_.flavors.size() * cell_.micro_batches.size();
    states = memory_of_ranks(at(variant, sharding));
  }
  return states;
}

std::vector<CellSearch::Weighed> CellSearch::weigh(size_t variant, const Incumbents& incumbents) {
  std::vector<Weighed> all(cell_.shardings.size());
  const size_t pipelining = cell_.pipelining_of(variant);
  // What does not depend on the sharding is taken from the first; the runtime's share does.
  std::vector<Memory> ranks = memory_of_ranks(at(variant, 0));
  bool any = false;
  for (size_t sharding = 0; sharding < all.size(); ++sharding) {
    const std::vector<Memory>& states = states_of(pipelining, sharding);
    double& most = all[sharding].bytes;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].weights = states[rank].weights;
      ranks[rank].gradients = states[rank].gradients;
      ranks[rank].optimizer = states[rank].optimizer;
      ranks[rank].gathered = states[rank].gathered;
      ranks[rank].runtime = runtime_bytes(run_.stack, ranks[rank]);
      most = std::max(most, ranks[rank].total());
    }
    if (most <= capacity_) all[sharding].fate = Fate::bound;
    any = any || most <= capacity_;
  }
  if (!any) {
    // A larger micro-batch keeps no less.
    size_t& from = too_large_from_[cell_.family_of(variant)];
    from = std::min(from, variant % cell_.micro_batches.size());
    return all;
  }
  std::optional<PipelineTime> pipeline;
  const PipelineTime shortest = {shortest_pipeline(variant, layers_of(variant)), 0};
  for (size_t sharding = 0; sharding < all.size(); ++sharding) {
    Weighed& weighed = all[sharding];
    if (weighed.fate == Fate::memory) continue;
    const Case& run = at(variant, sharding);
    const StepParts parts = step_parts(run, space_.constants, layers_of(variant));
    weighed.step_s = step_time(run, space_.constants, parts, shortest).step_s * (1 - 1e-9);
    if (weighed.step_s > incumbents.limit(run.layout)) continue;
    if (!pipeline) {
      pipeline = pipeline_time(run.layout, parts.stages, num_micro_batches(run.recipe, run.layout));
    }
    weighed.fate = Fate::timed;
    weighed.step_s = step_time(run, space_.constants, parts, *pipeline).step_s;
  }
  return all;
}

}  // namespace tessera::plan
