#pragma once

#include <cstdint>
#include <string>

#include "train/metrics.h"

namespace tessera::cli {

/// What a person sees of a run under way: on a terminal a bar that redraws itself, elsewhere
/// torchtitan's line every log_freq steps. NO_COLOR is honoured.
class Progress {
 public:
  /// `first_step`: where the run starts (resumed runs do not start at 1).
  Progress(int64_t first_step, int64_t last_step, int64_t log_freq);
  void show(const train::StepRecord& record);
  /// A message between two redraws of the bar.
  void say(const std::string& text);
  /// Ends the bar's line.
  void finish();

 private:
  void draw(const train::StepRecord& record);

  int64_t first_step_;
  int64_t last_step_;
  int64_t log_freq_;
  bool terminal_;
  bool colour_;
  bool drawn_ = false;
  double seconds_ = 0;
};

}  // namespace tessera::cli
