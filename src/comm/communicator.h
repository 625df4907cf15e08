#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/view.h"
#include "kernels/reduce.h"

namespace tessera::comm {

using core::ConstView;
using core::View;
using kernels::ReduceOp;

/// Bytes this rank has copied towards its peers, by collective: counted where they are copied. What
/// is written once for all counts once for each peer, as each of them copies it. A rank's own share
/// never counts.
struct Traffic {
  int64_t all_reduce = 0;
  int64_t reduce_scatter = 0;
  int64_t all_gather = 0;
  int64_t broadcast = 0;
  int64_t point_to_point = 0;
  int64_t total() const {
    return all_reduce + reduce_scatter + all_gather + broadcast + point_to_point;
  }
};

/// A group of ranks that agree. All of them call the same operations in the same order; what comes
/// out is the same to the bit on every rank and in every run, whatever the timing: sums are taken
/// in rank order. A group of one does nothing and never fails. One thread uses it at a time.
///
/// All arguments are checked first: what breaks this contract on one rank alone is an
/// InternalError. Every wait ends: with the result, or with a CommError that names the operation,
/// its sequence number, the step, and the ranks that are missing with what each did last; within 5
/// s when a peer has died, after the timeout when it is silent. Ranks that disagree on operation,
/// size or dtype are told so, both sides named. The first rank to fail tells the others, and all
/// end with its message. After a CommError the communicator is unusable.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// inout on every rank = op over all ranks' inout. Reduce-scatter then all-gather, by chunks:
  /// rank r owns chunk r of elements/size (the first elements % size chunks one longer), and sends
  /// S − chunk_r + (N − 1) · chunk_r bytes: 2(N − 1)/N · S when it divides.
  virtual void all_reduce(View inout, ReduceOp op) = 0;
  /// out [n] = op over ranks of their in [size · n], chunk `rank`; out may be that chunk of in.
  /// Sends (N − 1)/N · S, S = in's bytes.
  virtual void reduce_scatter(View out, ConstView in, ReduceOp op) = 0;
  /// out [size · n] = every rank's in [n], in rank order; in may be its own place in out. Sends
  /// (N − 1) · in's bytes.
  virtual void all_gather(View out, ConstView in) = 0;
  /// Root's values on every rank; the root sends (N − 1) · S.
  virtual void broadcast(View inout, int root) = 0;
  /// One message to another rank, whose recv of the same dtype and elements it meets: messages
  /// between two ranks keep their order. Sends S. Returns when `in` may be reused: a short message
  /// is buffered, a long one waits for the receiver, so two ranks must not both send first.
  virtual void send(ConstView in, int peer) = 0;
  /// Blocks until the message has come.
  virtual void recv(View out, int peer) = 0;
  virtual void barrier() = 0;

  virtual const Traffic& traffic() const = 0;
  /// Bytes of staging memory this rank's communicator holds, its share of what ranks share.
  virtual int64_t memory_bytes() const = 0;
  /// For messages: the training step that is under way.
  virtual void set_step(int64_t step) = 0;
  /// Tells the other ranks to stop at once, on the way out after an error: each throws the
  /// operation it is in and "rank R stopped: why", unless the group has failed before. Never
  /// blocks. A rank whose communicator is destroyed while others wait for it stops them as well.
  virtual void abort(const std::string& why) = 0;
  /// "shm", "thread" or "self", for people.
  virtual const char* backend() const = 0;
};

struct CommOptions {
  std::chrono::milliseconds timeout{60000};
  int64_t staging_bytes = int64_t{32} << 20;  ///< shared memory for all ranks together, at most
  /// Cores that all ranks of this host share, as where a container has a quota of time: with fewer
  /// cores than ranks, waits do not spin. 0: the cores that one of them may run on by its affinity,
  /// which is the limit also of a larger number.
  int usable_cores = 0;
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
