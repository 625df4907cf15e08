#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/engine.h"
#include "comm/lanes.h"
#include "comm/options.h"
#include "comm/traffic.h"

namespace tessera::comm {

/// A group of ranks that agree. All of them call the same operations in the same order; what comes
/// out is the same to the bit on every rank and in every run, whatever the timing: sums are taken
/// in rank order. A group of one does nothing and never fails. One thread uses it at a time, except
/// for set_step() and abort(), which any thread may call.
///
/// An operation is called by its method, which returns when it is done on this rank, or started by
/// start(), which returns at once: it then runs beside the computation. Several may be under way;
/// their arguments are theirs until their handles have been waited for. Order:
///   - collectives run one after the other, as they were called;
///   - messages to one peer run one after the other, and so do the messages from one peer;
///   - between these lanes, and between groups, there is no order and no waiting: two ranks may
///     both start a long send to the other and then a recv, with collectives under way.
/// So what a message carries must not be what a collective under way writes, unless that one has
/// been waited for. Destroying a communicator abandons what has not been done.
///
/// All arguments are checked first: what breaks this contract on one rank alone is an
/// InternalError. Every wait ends: with the result, or with a CommError that names the operation,
/// its sequence number, the step, the group, and the ranks that are missing with what each did
/// last; within 5 s when a peer has died, after the timeout when it is silent. Ranks that disagree
/// on operation, size, dtype, root or counts are told so, both sides named. The first rank to fail
/// tells the others, and all end with its message: all groups of a world together, as they fail
/// together. After a CommError the communicator is unusable.
class Communicator {
 public:
  /// The group of one.
  Communicator() = default;
  /// A group that `engine` serves.
  explicit Communicator(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return engine_ ? engine_->rank() : 0; }
  int size() const { return engine_ ? engine_->size() : 1; }

  /// inout on every rank = op over all ranks' inout. Reduce-scatter then all-gather, by chunks:
  /// rank r owns chunk r of elements/size (the first elements % size chunks one longer), and sends
  /// S − chunk_r + (N − 1) · chunk_r bytes: 2(N − 1)/N · S when it divides.
  void all_reduce(View inout, ReduceOp op) { run(Call::all_reduce(inout, op)); }
  /// out [n] = op over ranks of their in [size · n], chunk `rank`; out may be that chunk of in.
  /// Sends (N − 1)/N · S, S = in's bytes.
  void reduce_scatter(View out, ConstView in, ReduceOp op) {
    run(Call::reduce_scatter(out, in, op));
  }
  /// out [size · n] = every rank's in [n], in rank order; in may be its own place in out. Sends
  /// (N − 1) · in's bytes.
  void all_gather(View out, ConstView in) { run(Call::all_gather(out, in)); }
  /// Root's values on every rank; the root sends (N − 1) · S.
  void broadcast(View inout, int root) { run(Call::broadcast(inout, root)); }
  /// Chunk r of in [size · n] goes to rank r; out [size · n] = in rank order, what came from each.
  /// in and out do not overlap. Sends (N − 1)/N · S, S = in's bytes.
  void all_to_all(View out, ConstView in) { run(Call::all_to_all(out, in)); }
  /// The same with parts of any length: in holds in_counts[r] elements for rank r, one part after
  /// the other, and out gets out_counts[r] from it, which must be what that rank sends. Sends the
  /// bytes that are for others.
  void all_to_all_v(View out, const std::vector<int64_t>& out_counts, ConstView in,
                    const std::vector<int64_t>& in_counts) {
    run(Call::all_to_all_v(out, out_counts, in, in_counts));
  }
  /// out [size · n] at the root = every rank's in [n], in rank order; in may be its own place in
  /// out. Elsewhere out is not looked at. Every other rank sends S, its in's bytes.
  void gather(View out, ConstView in, int root) { run(Call::gather(out, in, root)); }
  /// out [n] = chunk `rank` of the root's in [size · n]; out may be the root's own chunk. Elsewhere
  /// in is not looked at. The root sends (N − 1) · S, S = out's bytes.
  void scatter(View out, ConstView in, int root) { run(Call::scatter(out, in, root)); }
  /// One message to another rank, whose recv of the same dtype and elements it meets: messages
  /// between two ranks keep their order. Sends S. Returns when `in` may be reused: a short message
  /// is buffered, a long one waits for the receiver: two ranks must not both call it first, but
  /// may both start it.
  void send(ConstView in, int peer) { run(Call::send(in, peer)); }
  /// Blocks until the message has come.
  void recv(View out, int peer) { run(Call::recv(out, peer)); }
  void barrier() { run(Call::barrier()); }

  /// The ranks that give the same color become a group of their own, in rank order. Collective:
  /// every rank of this group calls it, after what it has called before; the collectives that it
  /// started are finished first. `name` says in messages what the group is for ("dp"); ranks keep
  /// the numbers of the world in messages. Needs memory of its own, all groups of a split together
  /// at most as much as this one; may outlive this communicator.
  std::unique_ptr<Communicator> split(int color, const std::string& name = {});

  /// Any of these beside the computation. All ranks of the group must have it waited for, or at
  /// least started, before one of them may hope for its end.
  [[nodiscard]] Handle start(Call call);

  /// Of the operations that are done.
  Traffic traffic() const { return lanes_.traffic(); }
  /// Seconds the callers have waited for operations: communication that nothing hid.
  double waited_seconds() const { return lanes_.waited_seconds(); }
  /// Seconds that operations have taken, waited for or not.
  double busy_seconds() const { return lanes_.busy_seconds(); }
  /// Of all bytes sent, those that left the host.
  int64_t bytes_across_hosts() const { return engine_ ? engine_->bytes_across_hosts() : 0; }
  /// Bytes of staging memory this rank's communicator holds, its share of what ranks share.
  int64_t memory_bytes() const { return engine_ ? engine_->memory_bytes() : 0; }
  /// For messages: the training step that is under way, in all groups that come from one world.
  void set_step(int64_t step) {
    if (engine_) engine_->set_step(step);
  }
  /// Every operation from now on leaves a span on that lane, and a caller that waits for one a span
  /// "wait" on the compute lane; null ends it.
  void record(trace::Recorder* recorder, trace::Lane lane) { lanes_.record(recorder, lane); }
  /// Tells the other ranks to stop at once, on the way out after an error: each throws the
  /// operation it is in and "rank R stopped: why", unless the group has failed before. Reaches all
  /// groups that come from one world, whichever of them it is called on (a group of one excepted).
  /// Never blocks. A rank whose communicator is destroyed while others wait for it stops them too.
  void abort(const std::string& why) {
    if (engine_) engine_->abort(why);
  }
  /// "shm", "thread", "mpi", "mpi+shm" or "self", for people.
  const char* backend() const { return engine_ ? engine_->backend() : "self"; }

 private:
  void run(const Call& call);

  std::unique_ptr<Engine> engine_;
  Lanes lanes_{engine_.get()};
};

/// The group of one.
std::unique_ptr<Communicator> make_self_communicator();

/// Ranks as threads of this process: call once, hand communicator i to thread i.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size,
                                                                     const CommOptions& options);

/// Ranks as processes of this host, which meet by `rendezvous`, a name that all ranks of a run and
/// no others use. Blocks until all have arrived; throws CommError naming those that have not.
std::unique_ptr<Communicator> make_shm_communicator(int rank, int size,
                                                    const std::string& rendezvous,
                                                    const CommOptions& options);

}  // namespace tessera::comm
