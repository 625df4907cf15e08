#include "parallel/pipeline/action_spans.h"

#include <string>

namespace tessera::parallel {

using spec::Action;
using spec::ActionKind;

trace::Span span_of(const Action& action, int64_t chunk, int64_t begin_ns, int64_t end_ns) {
  trace::Span span;
  span.name = spec::letter_of(action.kind) + (" s" + std::to_string(action.stage)) + " c" +
              std::to_string(chunk) + " m" + std::to_string(action.micro_batch);
  span.begin_ns = begin_ns;
  span.end_ns = end_ns;
  span.details.stage = action.stage;
  span.details.chunk = chunk;
  span.details.micro_batch = action.micro_batch;
  return span;
}

void StreamNumbers::begin(const spec::Schedule& schedule) {
  num_stages_ = schedule.num_stages();
  num_micro_batches_ = schedule.num_micro_batches;
  first_ = next_;
  next_ += 2 * num_stages_ * num_micro_batches_ * num_pipelines_;
}

int64_t StreamNumbers::number(bool forward, int64_t stage, int64_t micro_batch) const {
  const int64_t row = (forward ? 0 : num_stages_) + stage;
  return first_ + (row * num_micro_batches_ + micro_batch) * num_pipelines_ + pipeline_;
}

int64_t StreamNumbers::sent_by(const Action& action) const {
  if (action.kind == ActionKind::backward_weight) return -1;
  const bool forward = action.kind == ActionKind::forward;
  if (action.stage == (forward ? num_stages_ - 1 : 0)) return -1;
  return number(forward, action.stage, action.micro_batch);
}

int64_t StreamNumbers::read_by(const Action& action) const {
  if (action.kind == ActionKind::backward_weight) return -1;
  const bool forward = action.kind == ActionKind::forward;
  if (action.stage == (forward ? 0 : num_stages_ - 1)) return -1;
  return number(forward, action.stage + (forward ? -1 : 1), action.micro_batch);
}

}  // namespace tessera::parallel
