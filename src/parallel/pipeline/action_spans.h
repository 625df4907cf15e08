#pragma once

#include <cstdint>

#include "spec/schedule.h"
#include "trace/recorder.h"

namespace tessera::parallel {

/// An action as a trace shows it: "F s0 c0 m3". `chunk`: of its rank.
trace::Span span_of(const spec::Action& action, int64_t chunk, int64_t begin_ns, int64_t end_ns);

/// Numbers of the streams that go from stage to stage, for the arrows of a trace. No two streams of
/// a run have one in common; the rank that sends a stream and the one that reads it come to the
/// same without a word, as they go through the same schedules.
class StreamNumbers {
 public:
  /// Of one of so many pipelines, numbered from 0, that the run has side by side.
  StreamNumbers(int64_t num_pipelines, int64_t pipeline)
      : num_pipelines_(num_pipelines), pipeline_(pipeline) {}

  /// The next actions are of that schedule, once through.
  void begin(const spec::Schedule& schedule);
  /// Of the stream that an action makes, and that it reads; -1: none.
  int64_t sent_by(const spec::Action& action) const;
  int64_t read_by(const spec::Action& action) const;

 private:
  /// Of the stream that leaves `stage`.
  int64_t number(bool forward, int64_t stage, int64_t micro_batch) const;

  int64_t num_pipelines_, pipeline_;
  int64_t num_stages_ = 0, num_micro_batches_ = 0;
  int64_t first_ = 0, next_ = 0;  // numbers of the schedule under way, and of the one after
};

}  // namespace tessera::parallel
