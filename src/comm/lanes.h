#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/queue.h"

namespace tessera::comm {

/// The queues of one communicator: one for its collectives, and one for the messages to each peer
/// and for those from each. What is in one of them never waits for what is in another, so that
/// ranks which start sends to each other before they start to receive do not wait for ever. The
/// owner's thread uses it.
class Lanes {
 public:
  /// `engine` must outlive this; null in a group of one, where no call gets here.
  explicit Lanes(Engine* engine);
  /// Abandons what has not been done; calls that are under way and wait for a peer give up.
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Where a call belongs.
  Queue& of(const Call& call) { return is_message(call.kind) ? of_message(call) : collectives_; }
  Queue& collectives() { return collectives_; }

  /// Sums over all queues.
  Traffic traffic() const;
  double waited_seconds() const;
  double busy_seconds() const;
  void record(trace::Recorder* recorder, trace::Lane lane);

 private:
  Queue& of_message(const Call& call);

  Engine* engine_;
  Queue collectives_;
  std::vector<std::unique_ptr<Queue>> messages_;  // [2 · peers]: to, from; null until used
  trace::Recorder* recorder_ = nullptr;
  trace::Lane lane_ = trace::Lane::dp;
};

}  // namespace tessera::comm
