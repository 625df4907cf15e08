#pragma once

// What happened on a rank: spans of time, each on a lane. One format for what was measured here and
// for what a plan predicts. Written by several threads of the rank, and taken away step by step.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::trace {

/// Rows of the picture, in its order; the numbers are Chrome's tid.
enum class Lane : uint8_t { compute, tp, dp, pp, cp, ep, host };
constexpr int kNumLanes = 7;
constexpr const char* name_of(Lane lane) {
  constexpr const char* names[] = {"compute", "tp", "dp", "pp", "cp", "ep", "host"};
  return names[static_cast<int>(lane)];
}

/// What a span was about. Numbers below 0 and empty texts are not told.
struct Details {
  int64_t step = -1;
  int64_t stage = -1;
  int64_t chunk = -1;
  int64_t micro_batch = -1;
  std::string unit;        ///< "layers.3"
  std::string axis;        ///< of the mesh: "dp"
  std::string collective;  ///< "all-gather"
  int64_t bytes = -1;      ///< of the collective's argument
  int64_t sequence = -1;   ///< of the collective in its group, from 1
};

struct Span {
  std::string name;  ///< "F s0 c0 m3", "optimizer", "all-gather"
  Lane lane = Lane::compute;
  int64_t begin_ns = 0;  ///< now_ns()
  int64_t end_ns = 0;
  Details details;
  /// Arrows lead from the end of the span that has a number as flow_out to the beginning of the one
  /// that has it as flow_in, on whichever rank; below 0: none.
  int64_t flow_out = -1;
  int64_t flow_in = -1;
  bool predicted = false;  ///< stands beside what happened, in a picture of its own
};

/// Nanoseconds of the monotonic clock, which all processes of a host share.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// One rank's spans. add() may be called by several threads at once. The step under way is filled
/// into spans that do not say theirs.
class Recorder {
 public:
  void set_step(int64_t step);
  void add(Span span);
  /// What was added since the last call, in the order in which it was added; kept no longer.
  std::vector<Span> take();

 private:
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
  int64_t step_ = -1;
};

/// A span from its construction to its end. Does nothing without a recorder.
class Timed {
 public:
  Timed(Recorder* recorder, std::string name, Lane lane, Details details = {});
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Recorder* recorder_;
  Span span_;
};

}  // namespace tessera::trace
