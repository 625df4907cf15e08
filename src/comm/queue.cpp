#include "comm/queue.h"

#include <algorithm>
#include <utility>

namespace tessera::comm {

Queue::~Queue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Work> Queue::enqueue(Call call) {
  auto work = std::make_shared<Work>();
  work->call = std::move(call);
  work->sequence = ++sequence_;
  calls_.push_back(work);
  return work;
}

void Queue::run(Call call) {
  std::shared_ptr<Work> work;
  {
    const std::lock_guard lock(mutex_);
    work = enqueue(std::move(call));
  }
  wait(work);
}

std::shared_ptr<Work> Queue::start(Call call) {
  std::shared_ptr<Work> work;
  {
    const std::lock_guard lock(mutex_);
    work = enqueue(std::move(call));
    if (!thread_.joinable()) thread_ = std::thread([this] { work_off(); });
  }
  changed_.notify_all();
  return work;
}

void Queue::wait(const std::shared_ptr<Work>& work) {
  const int64_t begin = trace::now_ns();
  std::unique_lock lock(mutex_);
  const bool waits = !work->done;
  while (!work->done) {
    if (!busy_ && !calls_.empty()) {
      execute_first(lock, /*may_spin=*/true);
    } else {
      changed_.wait(lock);
    }
  }
  const int64_t end = trace::now_ns();
  waited_ns_ += end - begin;
  if (waits) record_span(*work, "wait", trace::Lane::compute, begin, end);
  if (work->error) std::rethrow_exception(work->error);
}

bool Queue::done(const Work& work) const {
  const std::lock_guard lock(mutex_);
  return work.done;
}

Traffic Queue::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

double Queue::waited_seconds() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(waited_ns_) * 1e-9;
}

double Queue::busy_seconds() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(busy_ns_) * 1e-9;
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

void Queue::record_span(const Work& work, const char* name, trace::Lane lane, int64_t begin_ns,
                        int64_t end_ns) const {
  if (recorder_ == nullptr) return;
  const View out = work.call.out;
  const ConstView in = work.call.in;
  trace::Details details;
  details.axis = trace::name_of(lane_);
  details.collective = name_of(work.call.kind);
  details.bytes = std::max(out ? out.bytes() : 0, in ? in.bytes() : 0);
  details.sequence = work.sequence;
  recorder_->add({name, lane, begin_ns, end_ns, std::move(details)});
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
  record_span(*work, name_of(work->call.kind), lane_, begin, end);
  calls_.pop_front();
  work->done = true;
  busy_ = false;
  changed_.notify_all();
}

}  // namespace tessera::comm
