#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "parallel/mesh_groups.h"
#include "trace/chrome_writer.h"
#include "trace/recorder.h"
#include "train/predicted_lane.h"

namespace tessera::train {

/// The trace of one rank of a run: what its communicators and whoever else is given the recorder
/// tell goes to the rank's file, step by step.
class RunTrace {
 public:
  /// All ranks together: they agree on time 0. Throws what they agree on where a file cannot be
  /// made.
  RunTrace(const std::filesystem::path& folder, parallel::MeshGroups& groups);
  /// Writes what is left, as far as that works, and listens no more.
  ~RunTrace();
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  trace::Recorder* recorder() { return &recorder_; }
  /// Spans from now on are of that step; those of before go to the file. Throws RunError.
  void begin_step(int64_t step);
  /// What was predicted for the step that came to this, where there is a pipeline.
  void add_prediction(const StepResult& result);

 private:
  parallel::MeshGroups& groups_;
  trace::Recorder recorder_;
  std::unique_ptr<trace::ChromeWriter> file_;
  std::optional<PredictedLane> predicted_;
};

}  // namespace tessera::train
