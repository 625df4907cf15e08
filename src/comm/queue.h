#pragma once

#include <atomic>
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
// Who has to wait for a call anyway carries it out himself when it is next: the thread is then not
// woken, and a call that nothing overlaps costs what it would without a queue, not even a lock.

namespace tessera::comm {

/// A call in a queue, and what became of it. Guarded by the queue's mutex.
struct Work {
  Call call;
  int64_t sequence = 0;  ///< of the call in its queue, from 1
  bool done = false;
  std::exception_ptr error;
};

/// Calls in order. The thread that owns the communicator uses it; a thread of its own begins with
/// the first call that nobody waits for at once.
class Queue {
 public:
  /// `engine` must outlive this; null in a group of one, where no call gets here.
  explicit Queue(Engine* engine) : engine_(engine) {}
  /// Abandons what has not begun, and waits for the call under way.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Carries the call out after those before it, and returns when it is done. Throws what it threw.
  void run(const Call& call);
  /// Leaves the call to the thread.
  std::shared_ptr<Work> start(Call call);
  /// Blocks until it is done; throws what it threw.
  void wait(const std::shared_ptr<Work>& work);
  bool done(const Work& work) const;
  /// Sees to it that the call touches its arguments no more: waits for it, or with `give_up` keeps
  /// it from beginning, or makes it give up (after which the engine is of no use). Never throws.
  void settle(const std::shared_ptr<Work>& work, bool give_up) noexcept;
  /// Waits until nothing is left, and counts a call that the caller then makes past the queue.
  void pass();
  /// The first half of the end: nothing begins any more. Whether nothing is under way either.
  bool stop();

  Traffic traffic() const;
  /// Seconds that callers have spent in run() and wait().
  double waited_seconds() const { return static_cast<double>(waited_ns_) * 1e-9; }
  /// Seconds that calls have taken, waited for or not.
  double busy_seconds() const;
  /// Spans of every call from now on go there, on that lane, and on the compute lane spans "wait"
  /// of callers that waited for one; null: nowhere.
  void record(trace::Recorder* recorder, trace::Lane lane);

 private:
  std::shared_ptr<Work> enqueue(Call call);
  void work_off();
  void work_until_done(const Work& work, std::unique_lock<std::mutex>& lock);
  /// Carries out the first call of the queue. `lock` is given up meanwhile.
  void execute_first(std::unique_lock<std::mutex>& lock, bool may_spin);
  /// Carries out a call while nothing else is queued.
  void execute_alone(const Call& call);
  /// Leaves a span about a call. The lock is held, or nothing else is queued.
  void record_span(const Call& call, int64_t sequence, const char* name, trace::Lane lane,
                   int64_t begin_ns, int64_t end_ns) const;

  Engine* engine_;
  // How many calls are queued or under way. Only the owner adds, so that at 0 everything below is
  // his alone, without the mutex.
  std::atomic<int> pending_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Work>> calls_;  // the first may be under way
  bool busy_ = false;                        // somebody carries out the first
  bool stopping_ = false;
  Traffic traffic_;
  int64_t busy_ns_ = 0;
  trace::Recorder* recorder_ = nullptr;
  trace::Lane lane_ = trace::Lane::dp;
  int64_t sequence_ = 0;  // the owner's, like the next
  int64_t waited_ns_ = 0;
  std::thread thread_;
};

/// A call that may still be under way. Empty: there is nothing to wait for. Must not outlive its
/// communicator. Destroyed before its wait, it waits without a word; while an exception is on its
/// way, it makes the call give up instead. So arguments that are declared before their handles are
/// never used after their end.
class Handle {
 public:
  Handle() = default;
  Handle(Queue& queue, std::shared_ptr<Work> work) : queue_(&queue), work_(std::move(work)) {}
  ~Handle() { settle(); }
  Handle(Handle&& other) noexcept : queue_(other.queue_), work_(std::move(other.work_)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this == &other) return *this;
    settle();
    queue_ = other.queue_;
    work_ = std::move(other.work_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// Blocks until the call is done on this rank; afterwards the handle is empty. Throws CommError.
  void wait() {
    if (work_ == nullptr) return;
    const std::shared_ptr<Work> work = std::move(work_);
    queue_->wait(work);
  }
  /// Whether wait() would return (or throw) at once.
  bool done() const { return work_ == nullptr || queue_->done(*work_); }

 private:
  void settle() noexcept {
    if (work_ != nullptr) queue_->settle(std::move(work_), std::uncaught_exceptions() > 0);
  }

  Queue* queue_ = nullptr;
  std::shared_ptr<Work> work_;
};

}  // namespace tessera::comm
