#pragma once

// Fits the constants of the time model on published runs.

#include <functional>

#include "plan/validate.h"

namespace tessera::plan {

struct CalibrationOptions {
  int64_t rounds = 20;    ///< over all constants; later ones take smaller steps
  bool all_rows = false;  ///< fit on every row, not on the 40 % alone
  /// Called after every round with the mean absolute error so far; may be empty.
  std::function<void(int64_t round, double objective)> progress;
};

struct Calibration {
  Constants constants;
  std::vector<std::string> used;   ///< ids of the rows that were fitted on
  std::vector<std::string> moved;  ///< names of the constants that those rows decide
  double objective_before = 0;     ///< see calibrate()
  double objective_after = 0;
};

/// Moves one constant after another, as long as that lowers the objective: a pattern search
/// (Hooke and Jeeves 1961), deterministic. The objective is the mean over the fitted rows
/// (is_fitted) of the absolute logarithm of predicted over published step time, three times as
/// steep past 0.15; rows of one node count half and those of a source with n of them 1/√n each. A
/// little is added for the distance of the constants from where they began, which leaves alone what
/// no row decides.
Calibration calibrate(const std::vector<PublishedRun>& runs, const Constants& start,
                      const CalibrationOptions& options = {});

}  // namespace tessera::plan
