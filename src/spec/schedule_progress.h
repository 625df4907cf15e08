#pragma once

// How ranks wait for each other's messages; behind actions_done(), buffers_to_send() and
// mistakes().

#include <array>
#include <map>
#include <vector>

#include "spec/schedule.h"

namespace tessera::spec {

/// A rank that cannot go on with `action` before another has done what `needs`.
struct WaitingAction {
  int64_t rank = 0;
  Action action;
  int64_t peer = 0;
  Action needs;
};

/// A schedule carried out as far as it goes. It may have any mistake: actions of no stage and
/// messages that nobody sends keep no rank waiting.
class Progress {
 public:
  /// `schedule` must outlive this. See actions_done().
  Progress(const Schedule& schedule, const SendBuffers& buffers);

  std::vector<int64_t> done() const;
  bool complete() const;
  /// Ranks that wait for each other, each for the next and the last for the first. Only where
  /// buffers are any number; empty: complete.
  std::vector<WaitingAction> circle() const;

 private:
  static constexpr int kNone = -1, kForward = 0, kBackward = 1;
  /// What the action that makes a stream does with it.
  struct Send {
    int64_t from = -1;   // the rank of the action; -1: there is none
    int64_t to = -1;     // -1: the stream stays on the rank, or goes nowhere
    int64_t number = 0;  // among the messages between the two
    bool done = false;
  };
  struct Rank {
    size_t done = 0;
    std::array<std::map<int64_t, int64_t>, 2> num_messages;  // to each rank
    std::array<std::map<int64_t, int64_t>, 2> num_taken;     // from each rank
    std::array<std::vector<Send*>, 2> messages;              // in the order in which they leave
    std::array<int64_t, 2> sent{};
  };
  static int direction_of(const Action& action);
  bool exists(int64_t stage, int64_t micro_batch) const;
  size_t slot(int64_t stage, int64_t micro_batch) const {
    return static_cast<size_t>(stage * schedule_.num_micro_batches + micro_batch);
  }
  Send* send_for(int direction, int64_t stage, int64_t micro_batch);
  /// What the action waits for; null: nothing.
  Send* source_of(const Action& action);
  void note_send(int64_t rank, const Action& action);
  bool received(int direction, const Send& send);
  /// Whether the rank did something.
  bool advance(int64_t rank);

  const Schedule& schedule_;
  std::array<int64_t, 2> buffers_{};
  std::array<std::vector<Send>, 2> sends_;  // [stage, micro-batch]
  std::vector<Rank> ranks_;
};

}  // namespace tessera::spec
