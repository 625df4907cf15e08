#include "comm/queue.h"

#include <algorithm>
#include <utility>

#include "core/fault.h"

namespace tessera::comm {

Queue::~Queue() {
  stop();
  if (thread_.joinable()) thread_.join();
}

bool Queue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  return !busy_;
}

std::shared_ptr<Work> Queue::enqueue(Call call) {
  auto work = std::make_shared<Work>();
  work->call = std::move(call);
  work->sequence = ++sequence_;
  calls_.push_back(work);
  pending_.fetch_add(1, std::memory_order_relaxed);
  return work;
}

void Queue::run(const Call& call) {
  if (pending_.load(std::memory_order_acquire) == 0) return execute_alone(call);
  std::shared_ptr<Work> work;
  {
    const std::lock_guard lock(mutex_);
    work = enqueue(call);
  }
  wait(work);
}

std::shared_ptr<Work> Queue::start(Call call) {
  std::shared_ptr<Work> work;
  {
    const std::lock_guard lock(mutex_);
    // The thread first: should there be none, nothing is left behind that borrows arguments.
    const bool somebody_will = TESSERA_FAULT("comm_early_result");  // some time
    if (!thread_.joinable() && !somebody_will) thread_ = std::thread([this] { work_off(); });
    work = enqueue(std::move(call));
  }
  changed_.notify_all();
  return work;
}

void Queue::wait(const std::shared_ptr<Work>& work) {
  const int64_t begin = trace::now_ns();
  std::unique_lock lock(mutex_);
  const bool waits = !work->done;
  if (TESSERA_FAULT("comm_early_result") && waits) return;
  work_until_done(*work, lock);
  const int64_t end = trace::now_ns();
  waited_ns_ += end - begin;
  if (waits) record_span(work->call, work->sequence, "wait", trace::Lane::compute, begin, end);
  if (work->error) std::rethrow_exception(work->error);
}

void Queue::work_until_done(const Work& work, std::unique_lock<std::mutex>& lock) {
  while (!work.done) {
    if (!busy_ && !calls_.empty()) {
      execute_first(lock, /*may_spin=*/true);
    } else {
      changed_.wait(lock);
    }
  }
}

void Queue::settle(const std::shared_ptr<Work>& work, bool give_up) noexcept {
  std::unique_lock lock(mutex_);
  if (give_up && !work->done) {
    if (!busy_ || calls_.front() != work) {
      calls_.erase(std::find(calls_.begin(), calls_.end(), work));
      pending_.fetch_sub(1, std::memory_order_release);
      work->done = true;
    }
    engine_->interrupt();  // what comes after it in the queue can come to no good either
  }
  work_until_done(*work, lock);
}

bool Queue::done(const Work& work) const {
  const std::lock_guard lock(mutex_);
  return work.done;
}

Traffic Queue::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

double Queue::busy_seconds() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(busy_ns_) * 1e-9;
}

void Queue::pass() {
  std::unique_lock lock(mutex_);
  while (!calls_.empty()) {
    if (!busy_) {
      execute_first(lock, /*may_spin=*/true);
    } else {
      changed_.wait(lock);
    }
  }
  ++sequence_;
}

void Queue::record(trace::Recorder* recorder, trace::Lane lane) {
  const std::lock_guard lock(mutex_);
  recorder_ = recorder;
  lane_ = lane;
}

void Queue::work_off() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!busy_ && !calls_.empty()); });
    if (stopping_) return;
    execute_first(lock, /*may_spin=*/false);
  }
}

void Queue::execute_first(std::unique_lock<std::mutex>& lock, bool may_spin) {
  const std::shared_ptr<Work> work = calls_.front();
  busy_ = true;
  Traffic traffic = traffic_;
  lock.unlock();
  const int64_t begin = trace::now_ns();
  try {
    engine_->execute(work->call, traffic, may_spin);
  } catch (...) {
    work->error = std::current_exception();
  }
  const int64_t end = trace::now_ns();
  lock.lock();
  traffic_ = traffic;
  busy_ns_ += end - begin;
  record_span(work->call, work->sequence, name_of(work->call.kind), lane_, begin, end);
  calls_.pop_front();
  work->done = true;
  busy_ = false;
  pending_.fetch_sub(1, std::memory_order_release);
  changed_.notify_all();
}

void Queue::execute_alone(const Call& call) {
  const int64_t sequence = ++sequence_;
  const int64_t begin = trace::now_ns();
  const auto over = [&] {
    const int64_t end = trace::now_ns();
    waited_ns_ += end - begin;
    busy_ns_ += end - begin;
    if (recorder_ == nullptr) return;
    record_span(call, sequence, name_of(call.kind), lane_, begin, end);
    record_span(call, sequence, "wait", trace::Lane::compute, begin, end);
  };
  try {
    engine_->execute(call, traffic_, /*may_spin=*/true);
  } catch (...) {
    over();
    throw;
  }
  over();
}

void Queue::record_span(const Call& call, int64_t sequence, const char* name, trace::Lane lane,
                        int64_t begin_ns, int64_t end_ns) const {
  if (recorder_ == nullptr) return;
  trace::Details details;
  details.axis = trace::name_of(lane_);
  details.collective = name_of(call.kind);
  details.bytes = std::max(call.out ? call.out.bytes() : 0, call.in ? call.in.bytes() : 0);
  details.sequence = sequence;
  recorder_->add({name, lane, begin_ns, end_ns, std::move(details)});
}

}  // namespace tessera::comm
