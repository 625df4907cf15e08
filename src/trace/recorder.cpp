#include "trace/recorder.h"

#include <utility>

namespace tessera::trace {

void Recorder::set_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

void Recorder::add(Span span) {
  const std::lock_guard lock(mutex_);
  if (span.details.step < 0) span.details.step = step_;
  spans_.push_back(std::move(span));
}

std::vector<Span> Recorder::take() {
  std::vector<Span> taken;
  const std::lock_guard lock(mutex_);
  taken.swap(spans_);
  return taken;
}

Timed::Timed(Recorder* recorder, std::string name, Lane lane, Details details)
    : recorder_(recorder) {
  if (recorder_ == nullptr) return;
  span_.name = std::move(name);
  span_.lane = lane;
  span_.details = std::move(details);
  span_.begin_ns = now_ns();
}

Timed::~Timed() {
  if (recorder_ == nullptr) return;
  span_.end_ns = now_ns();
  recorder_->add(std::move(span_));
}

}  // namespace tessera::trace
