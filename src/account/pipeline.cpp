#include "account/pipeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tessera::account {

using spec::Action;
using spec::ActionKind;
using spec::Schedule;

namespace {

using Key = std::pair<int64_t, int64_t>;  // the stage that a stream is for, and its micro-batch

const std::vector<Action>& actions_of(const Schedule& schedule, int64_t rank) {
  return schedule.ranks[static_cast<size_t>(rank)];
}
int64_t rank_of(const Schedule& schedule, int64_t stage) {
  return schedule.rank_of_stage[static_cast<size_t>(stage)];
}

/// Schedule's, of the actions of one direction; -1: none.
int64_t stage_behind(const Schedule& schedule, const Action& action, bool forward) {
  return (action.kind == ActionKind::forward) == forward ? schedule.stage_behind(action) : -1;
}
int64_t stage_needed(const Schedule& schedule, const Action& action, bool forward) {
  return (action.kind == ActionKind::forward) == forward ? schedule.stage_needed(action) : -1;
}

/// Counts the buffers of one direction as a rank goes through its actions.
class Exchange {
 public:
  Exchange(const Schedule& schedule, int64_t rank, int64_t micro_batches, bool forward) {
    for (int64_t peer = 0; peer < schedule.num_ranks(); ++peer) {
      if (peer == rank) continue;
      for (const Action& action : actions_of(schedule, peer)) {
        const int64_t stage = stage_behind(schedule, action, forward);
        if (stage < 0 || rank_of(schedule, stage) != rank) continue;
        if (action.micro_batch >= micro_batches) continue;
        sender_[{stage, action.micro_batch}] = peer;
        arrivals_[peer].push_back({stage, action.micro_batch});
      }
      if (!arrivals_[peer].empty()) claim();  // the first is received ahead
    }
  }
  /// A stream for a stage of this rank stays here.
  void put(const Key& key) {
    aside_.insert(key);
    claim();
  }
  void take(const Key& key) {
    if (aside_.erase(key) > 0) {
      --used_;
      return;
    }
    std::vector<Key>& arrivals = arrivals_[sender_.at(key)];
    for (; arrivals.front() != key; arrivals.erase(arrivals.begin())) {
      aside_.insert(arrivals.front());
      claim();  // for the one behind it
    }
    arrivals.erase(arrivals.begin());
    --used_;
    if (!arrivals.empty()) claim();
  }
  int64_t most() const { return most_; }

 private:
  void claim() {
    ++used_;
    most_ = std::max(most_, used_);
  }
  std::map<Key, int64_t> sender_;
  std::map<int64_t, std::vector<Key>> arrivals_;
  std::set<Key> aside_;
  int64_t used_ = 0, most_ = 0;
};

/// Buffers of one direction.
struct DirectionBuffers {
  int64_t receiving = 0;
  int64_t sending = 0;
};
DirectionBuffers buffers_of(const Schedule& schedule, int64_t rank, int64_t micro_batches,
                            bool forward, bool training) {
  Exchange exchange(schedule, rank, micro_batches, forward);
  DirectionBuffers buffers;
  // Activations of training are sent, or read by the next stage of this rank, where they lie.
  const bool in_place = forward && training;
  for (const Action& action : actions_of(schedule, rank)) {
    if (action.micro_batch >= micro_batches) continue;
    const int64_t needed = stage_needed(schedule, action, forward);
    const bool here = needed >= 0 && rank_of(schedule, needed) == rank;
    if (needed >= 0 && !(here && in_place)) exchange.take({action.stage, action.micro_batch});
    const int64_t stage = stage_behind(schedule, action, forward);
    if (stage < 0 || in_place) continue;
    if (rank_of(schedule, stage) == rank) {
      exchange.put({stage, action.micro_batch});
    } else {
      ++buffers.sending;
    }
  }
  buffers.receiving = exchange.most();
  return buffers;
}

}  // namespace

int64_t pipeline_activation_bytes(const Schedule& schedule, int64_t rank, bool training,
                                  const ActivationsOf& activations_of) {
  int64_t live = 0, peak = 0;
  for (const Action& action : actions_of(schedule, rank)) {
    const ChunkActivations* bytes = activations_of(action.stage, action.micro_batch);
    if (bytes == nullptr) continue;
    switch (action.kind) {
      case ActionKind::forward:
        peak = std::max(peak, live + (training ? bytes->forward : bytes->evaluation));
        if (training) live += bytes->kept;
        break;
      case ActionKind::backward:
        peak = std::max(peak, live + bytes->backward);
        live -= bytes->kept;
        break;
      case ActionKind::backward_input:
        peak = std::max(peak, live + bytes->input_half);
        live += bytes->kept_halves;
        break;
      case ActionKind::backward_weight:
        live -= bytes->kept_halves;
        peak = std::max(peak, live + bytes->weight_half);
        live -= bytes->kept;
        break;
    }
  }
  return peak;
}

StreamBuffers stream_buffers(const Schedule& schedule, int64_t rank, int64_t micro_batches,
                             bool evaluates) {
  if (schedule.num_stages() == 1) return {};
  constexpr int64_t kOutputs = 2;  // of evaluation: one is written while the other is on its way
  DirectionBuffers activations = buffers_of(schedule, rank, micro_batches, true, true);
  if (evaluates) {
    const int64_t passes = schedule.num_micro_batches;
    const Schedule forward_only = spec::forward_only(schedule, passes);
    const DirectionBuffers forward = buffers_of(forward_only, rank, passes, true, false);
    activations.receiving = std::max(activations.receiving, forward.receiving);
    activations.sending = std::min(forward.sending, kOutputs);
  }
  const DirectionBuffers gradients = buffers_of(schedule, rank, micro_batches, false, true);
  return {activations.receiving + activations.sending,
          gradients.receiving + std::min(gradients.sending, spec::buffers_to_send(schedule))};
}

int64_t stream_elements_sent(const Schedule& schedule, int64_t rank,
                             const std::function<int64_t(int64_t)>& elements_of) {
  int64_t elements = 0;
  for (const Action& action : actions_of(schedule, rank)) {
    const int64_t stage = schedule.stage_behind(action);
    if (stage < 0 || rank_of(schedule, stage) == rank) continue;
    elements += elements_of(action.micro_batch);
  }
  return elements;
}

}  // namespace tessera::account
