#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/call.h"
#include "comm/engine.h"
#include "trace/recorder.h"

// How calls come to run beside the computation: a queue, and a thread that works it off in order.
// Since all ranks of a group make the same calls in the same order, working them off one after the
// other cannot deadlock, and what comes out does not depend on timing.
//
// Who has to wait for a call anyway carries it out himself when it is next in the queue: the thread
// is then not woken, and a call that nothing overlaps costs what it would without a queue.

namespace tessera::comm {

/// A call in a queue, and what became of it. Guarded by the queue's mutex.
struct Work {
  Call call;
  int64_t sequence = 0;  ///< of the call in its queue, from 1
  bool done = false;
  std::exception_ptr error;
};

/// Calls of one communicator, in order. The thread that owns the communicator uses it; a thread of
/// its own begins with the first call that nobody waits for at once.
class Queue {
 public:
  /// `engine` must outlive this; null in a group of one, where start() is never called.
  explicit Queue(Engine* engine) : engine_(engine) {}
  /// Abandons what has not begun, and waits for the call under way.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Carries the call out after those before it, and returns when it is done. Throws what it threw.
  void run(Call call);
  /// Leaves the call to the thread.
  std::shared_ptr<Work> start(Call call);
  /// Blocks until it is done; throws what it threw.
  void wait(const std::shared_ptr<Work>& work);
  bool done(const Work& work) const;

  Traffic traffic() const;
  /// Seconds that callers have spent in wait().
  double waited_seconds() const;
  /// Seconds that calls have taken, waited for or not.
  double busy_seconds() const;
  /// Spans of every call from now on go there, on that lane, and on the compute lane spans "wait"
  /// of callers that waited for one; null: nowhere.
  void record(trace::Recorder* recorder, trace::Lane lane);

 private:
  std::shared_ptr<Work> enqueue(Call call);
  void work_off();
  /// Leaves a span about a call. The lock is held.
  void record_span(const Work& work, const char* name, trace::Lane lane, int64_t begin_ns,
                   int64_t end_ns) const;
  /// Carries out the first call of the queue. `lock` is given up meanwhile.
  void execute_first(std::unique_lock<std::mutex>& lock, bool may_spin);

  Engine* engine_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Work>> calls_;  // the first may be under way
  bool busy_ = false;                        // somebody carries out the first
  bool stopping_ = false;
  Traffic traffic_;
  int64_t waited_ns_ = 0;
  int64_t busy_ns_ = 0;
  int64_t sequence_ = 0;
  trace::Recorder* recorder_ = nullptr;
  trace::Lane lane_ = trace::Lane::dp;
  std::thread thread_;
};

/// A call that may still be under way. Empty: there is nothing to wait for. Must not outlive its
/// communicator.
class Handle {
 public:
  Handle() = default;
  Handle(Queue& queue, std::shared_ptr<Work> work) : queue_(&queue), work_(std::move(work)) {}
  /// Blocks until the call is done on this rank; afterwards the handle is empty. Throws CommError.
  void wait() {
    if (work_ == nullptr) return;
    const std::shared_ptr<Work> work = std::move(work_);
    work_ = nullptr;
    queue_->wait(work);
  }
  /// Whether wait() would return (or throw) at once.
  bool done() const { return work_ == nullptr || queue_->done(*work_); }

 private:
  Queue* queue_ = nullptr;
  std::shared_ptr<Work> work_;
};

}  // namespace tessera::comm
