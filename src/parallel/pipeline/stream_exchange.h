#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "core/memory.h"
#include "spec/schedule.h"

namespace tessera::parallel {

using core::ConstView;
using core::View;

/// Streams [B, T', C] on their way from stage to stage of a pipeline in one direction: activations
/// to the next, or gradients to the one before. A stream is known by the stage that it is for and
/// its micro-batch.
///
/// Nothing is agreed on while it runs: who sends what to whom in which order follows from the
/// schedule. Messages of one peer arrive in the order in which it sends them; the next one is
/// always received ahead, while this rank computes, and what comes earlier than it is needed is put
/// aside. What is sent leaves beside the computation. Between stages of the same rank a stream
/// stays where it was written.
class StreamExchange {
 public:
  using Key = std::pair<int64_t, int64_t>;  ///< stage, micro-batch

  /// A message that is to come.
  struct Arrival {
    Key key;
    int64_t elements = 0;
  };

  /// `group`: the ranks of the pipeline, by number. `most_elements`: of one stream, in `dtype`.
  /// `buffers_to_send`: streams that may be on their way from here at once. Buffers are made when
  /// they are first needed, and stay. References must outlive this.
  StreamExchange(comm::Communicator& group, core::DType dtype, int64_t most_elements,
                 int64_t buffers_to_send, core::MemoryLedger& ledger);

  /// A step begins in which these come from each peer, in this order.
  void begin(std::map<int, std::deque<Arrival>> arrivals);

  /// Copies the stream into `out`, [its elements], when it is there, and receives the next ahead.
  /// Blocks; like the others, throws CommError.
  void take(const Key& key, View out);
  /// A buffer for a stream that this rank is to write: send() then sends it. `peer` is the rank of
  /// its stage, which may be this one. Blocks while the oldest of those on their way has not been
  /// received.
  View outgoing(const Key& key, int peer, const core::Shape& shape);
  void send(const Key& key, int peer);
  /// Sends a stream from memory of the caller's, which has to stay as it is until settle().
  void send(const Key& key, int peer, ConstView stream);
  void settle(const Key& key);
  /// Everything that was sent has been received.
  void finish();

 private:
  struct Incoming {
    int peer = 0;
    std::deque<Arrival> arrivals;  // not yet received
    bool posted = false;           // the first of them is on its way into `buffer`
    size_t buffer = 0;
    comm::Handle handle;
  };
  struct Outgoing {
    core::Tensor memory;
    Key key;
    core::Shape shape;
    comm::Handle handle;
  };
  /// Starts to receive the next.
  void post(Incoming& from);
  Incoming& sender_of(const Key& key);
  size_t free_buffer();
  View buffer_view(size_t buffer, int64_t elements) const;

  comm::Communicator& group_;
  core::DType dtype_;
  int64_t most_elements_;
  size_t buffers_to_send_;
  core::MemoryLedger& ledger_;
  std::vector<core::Tensor> buffers_;  // to receive into, and for streams that stay here
  std::vector<size_t> free_;
  std::map<Key, size_t> aside_;  // early ones, and this rank's own: their buffers
  std::map<int, Incoming> peers_;
  std::deque<Outgoing> ring_;  // oldest first
  size_t idle_ = 0;            // of these, the first so many were free when the step began
  std::map<Key, comm::Handle> lent_;
};

}  // namespace tessera::parallel
