#pragma once

// The simplest planner there is, to stand beside the other: one constant for each device.

#include <map>

#include "plan/validate.h"

namespace tessera::plan {

/// Share of the peak that a device reaches, whatever it runs: hardware FLOPs over the time that the
/// step takes without its bubble, the geometric mean over the fitted rows of that device.
class Baseline {
 public:
  explicit Baseline(const std::vector<ValidatedRow>& rows);
  /// Seconds of a step; 0 where no fitted row has the device.
  double step_s(const Case& run) const;

 private:
  std::map<std::string, double> efficiency_;  // by device
};

}  // namespace tessera::plan
