// Carries a schedule out without computing, to see whether it comes to its end.

#include <algorithm>

#include "spec/schedule_progress.h"

namespace tessera::spec {

namespace {

constexpr int64_t kNever = -1;

}  // namespace

Progress::Progress(const Schedule& schedule, const SendBuffers& buffers)
    : schedule_(schedule), ranks_(schedule.ranks.size()) {
  buffers_[kForward] = buffers.activations;
  buffers_[kBackward] = buffers.gradients;
  const auto slots = static_cast<size_t>(schedule.num_stages() * schedule.num_micro_batches);
  for (std::vector<Send>& sends : sends_) sends.resize(slots);
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
    for (const Action& action : schedule.ranks[static_cast<size_t>(rank)]) note_send(rank, action);
  }
  bool moves = true;
  while (moves) {
    moves = false;
    for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
      while (advance(rank)) moves = true;
    }
  }
}

int Progress::direction_of(const Action& action) {
  if (action.kind == ActionKind::backward_weight) return kNone;
  return action.kind == ActionKind::forward ? kForward : kBackward;
}

bool Progress::exists(int64_t stage, int64_t micro_batch) const {
  return stage >= 0 && stage < schedule_.num_stages() && micro_batch >= 0 &&
         micro_batch < schedule_.num_micro_batches;
}

Progress::Send* Progress::send_for(int direction, int64_t stage, int64_t micro_batch) {
  if (direction == kNone || !exists(stage, micro_batch)) return nullptr;
  return &sends_[direction][slot(stage, micro_batch)];
}

void Progress::note_send(int64_t rank, const Action& action) {
  const int direction = direction_of(action);
  Send* send = send_for(direction, action.stage, action.micro_batch);
  if (send == nullptr || send->from != kNever) return;
  send->from = rank;
  const int64_t next = schedule_.stage_behind(action);
  if (next < 0) return;
  send->to = schedule_.rank_of_stage[static_cast<size_t>(next)];
  if (send->to == rank || send->to < 0 || send->to >= schedule_.num_ranks()) {
    send->to = kNever;
    return;
  }
  Rank& sender = ranks_[static_cast<size_t>(rank)];
  send->number = sender.num_messages[direction][send->to]++;
  sender.messages[direction].push_back(send);
}

Progress::Send* Progress::source_of(const Action& action) {
  Send* source = send_for(direction_of(action), schedule_.stage_needed(action), action.micro_batch);
  return source == nullptr || source->from == kNever ? nullptr : source;
}

bool Progress::received(int direction, const Send& send) {
  if (!send.done) return false;
  // The receiver has taken so many of this sender's; the next one is received ahead.
  return send.number <= ranks_[static_cast<size_t>(send.to)].num_taken[direction][send.from];
}

bool Progress::advance(int64_t rank) {
  Rank& state = ranks_[static_cast<size_t>(rank)];
  const std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank)];
  if (state.done == actions.size()) return false;
  const Action& action = actions[state.done];
  const int direction = direction_of(action);
  const Send* source = source_of(action);
  bool moved = false;
  if (source != nullptr && source->to == rank) {
    // Whoever waits for a message takes those that come before it, and puts them aside.
    int64_t& taken = state.num_taken[direction][source->from];
    const int64_t upto = source->number + (source->done ? 1 : 0);
    moved = taken < upto;
    taken = std::max(taken, upto);
  }
  if (source != nullptr && !source->done) return moved;
  Send* send = send_for(direction, action.stage, action.micro_batch);
  if (send != nullptr && send->to != kNever && !send->done && buffers_[direction] > 0) {
    const std::vector<Send*>& messages = state.messages[direction];
    const int64_t oldest = state.sent[direction] - buffers_[direction];
    if (oldest >= 0 && !received(direction, *messages[static_cast<size_t>(oldest)])) return moved;
  }
  if (send != nullptr && !send->done) {
    send->done = true;
    if (send->to != kNever) ++state.sent[direction];
  }
  ++state.done;
  return true;
}

std::vector<int64_t> Progress::done() const {
  std::vector<int64_t> done;
  for (const Rank& rank : ranks_) done.push_back(static_cast<int64_t>(rank.done));
  return done;
}

bool Progress::complete() const {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].done < schedule_.ranks[rank].size()) return false;
  }
  return true;
}

std::vector<WaitingAction> Progress::circle() const {
  const auto stuck = [&](int64_t rank) {
    const auto index = static_cast<size_t>(rank);
    return ranks_[index].done < schedule_.ranks[index].size();
  };
  int64_t rank = 0;
  while (rank < schedule_.num_ranks() && !stuck(rank)) ++rank;
  if (rank == schedule_.num_ranks()) return {};
  // Every stuck rank waits for an action of a rank that is stuck too, so a walk from one to the
  // next comes back to where it was.
  std::vector<WaitingAction> walk;
  while (true) {
    const auto begin = std::find_if(walk.begin(), walk.end(),
                                    [&](const WaitingAction& at) { return at.rank == rank; });
    if (begin != walk.end()) return {begin, walk.end()};
    const auto index = static_cast<size_t>(rank);
    const Action& action = schedule_.ranks[index][ranks_[index].done];
    const int64_t before = schedule_.stage_needed(action);
    const Send& source = sends_[direction_of(action)][slot(before, action.micro_batch)];
    Action needed{action.kind, before, action.micro_batch};
    for (const Action& other : schedule_.ranks[static_cast<size_t>(source.from)]) {
      const bool same = other.stage == before && other.micro_batch == action.micro_batch;
      if (same && direction_of(other) == direction_of(action)) needed = other;
    }
    walk.push_back({rank, action, source.from, needed});
    rank = source.from;
  }
}

std::vector<int64_t> actions_done(const Schedule& schedule, const SendBuffers& buffers) {
  return Progress(schedule, buffers).done();
}

int64_t buffers_to_send(const Schedule& schedule) {
  int64_t buffers = 2;
  const auto most = schedule.num_stages() * schedule.num_micro_batches;
  while (buffers < most && !Progress(schedule, {0, buffers}).complete()) ++buffers;
  return buffers;
}

}  // namespace tessera::spec
