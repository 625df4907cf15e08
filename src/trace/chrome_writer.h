#pragma once

// Spans as a file that chrome://tracing, Perfetto and their like open: the "JSON Object Format" of
// the Trace Event Format. A process of the picture is a rank, a thread of it a lane. What was
// predicted for a rank is a process beside it.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "trace/origin.h"
#include "trace/recorder.h"

namespace tessera::trace {

/// Added to a rank: the pid of what was predicted for it.
constexpr int64_t kPredictedPid = 10000;

/// One rank's trace. A viewer wants spans of a row to lie apart or in each other. Those of the
/// computing thread do; collectives of two groups on one axis may overlap, and the later one moves
/// to a row below, "dp 2", whose tid is 10 more; so does a predicted span that begins before the
/// step predicted earlier ends. The trace is written while the run goes on. After
/// each write() the file is whole JSON, so that a run which is killed leaves a picture of all it
/// had written, and no more is held in memory than what is being written.
class ChromeWriter {
 public:
  /// Makes `folder`/rank-R.json, and the folder where it is missing. A file of that name, of an
  /// earlier start of the run, is kept as rank-R.start-K.json, K counting those from 1; those of
  /// ranks that there are no more, by rank 0. Times in
  /// the file count from `origin`, which all ranks share. Throws RunError.
  ChromeWriter(const std::string& folder, int rank, int world_size, const Origin& origin);

  /// Appends. Throws RunError when the disk is full or fails.
  void write(std::vector<Span> spans);

  const std::string& path() const { return path_; }

 private:
  void add_event(const Span& span);
  /// The tid of a span: its lane's, or another below it where that one is still taken.
  int row_of(const Span& span);
  /// An end of an arrow.
  void add_flow(const Span& span, int tid, bool begins);
  void add_metadata(int64_t pid, std::string_view what, int tid, std::string_view key,
                    std::string_view value);
  void add_process(int64_t pid, const std::string& name);
  void begin_event(int64_t pid, int tid);
  int64_t pid_of(const Span& span) const { return rank_ + (span.predicted ? kPredictedPid : 0); }
  void flush();

  std::string path_;
  core::Descriptor file_;
  int rank_;
  int64_t origin_ns_;           // now_ns() of this host at time 0
  int64_t end_ = 0;             // of the events in the file
  bool empty_ = true;           // no event yet
  std::string buffer_;          // what goes to end_ next
  bool has_predicted_ = false;  // the file has named the process
  // By lane, those of predictions behind: the ends of the latest spans of its rows, of as many rows
  // as the file has named.
  std::array<std::vector<int64_t>, size_t{2} * kNumLanes> row_ends_;
};

}  // namespace tessera::trace
