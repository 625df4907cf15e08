#pragma once

// How far predictions are from published runs: row by row, and by groups with what a planner is
// judged by.

#include <functional>

#include "plan/published_run.h"

namespace tessera::plan {

struct ValidatedRow {
  const PublishedRun* published = nullptr;
  std::optional<Case> run;
  std::string skipped;  ///< the reason; empty: it was modelled
  std::vector<std::string> assumed;
  double step_s = 0;      ///< predicted
  double memory_gib = 0;  ///< of the worst rank
  double baseline_s = 0;  ///< predicted with one constant for the device (baseline.h); 0: none
  bool fits = true;
  bool fitted = false;  ///< among the rows that the constants were fitted on

  bool has_time() const { return run.has_value() && published->step_time_s.has_value(); }
  bool has_memory() const { return run.has_value() && published->mem_gib_per_gpu.has_value(); }
  /// (predicted − published) / published.
  double time_error() const { return step_s / *published->step_time_s - 1; }
  double baseline_error() const { return baseline_s / *published->step_time_s - 1; }
  double memory_error() const { return memory_gib / *published->mem_gib_per_gpu - 1; }
};

/// Errors of a set of rows, as fractions.
struct ErrorSummary {
  int64_t count = 0;
  double mean_abs_error = 0;
  double worst_abs_error = 0;
  std::string worst_id;
};

/// How well a sweep of layouts is ranked: rows of the same model, devices and batch.
struct Ranking {
  int64_t count = 0;       ///< layouts; one measured several times counts with its mean
  double kendall_tau = 0;  ///< over pairs that differ by 3 % or more
  double regret = 0;       ///< of the layout that is predicted to be best, over the best
};

struct ValidationGroup {
  std::string name;
  ErrorSummary time, memory, baseline;
  std::optional<Ranking> ranking;   ///< of a sweep, all rows
  std::optional<Ranking> held_out;  ///< of those of its rows that nothing was fitted on
};

struct Validation {
  std::vector<ValidatedRow> rows;
  std::vector<ValidationGroup> groups;
  int64_t out_of_memory_rows = 0;
  int64_t wrongly_fitting = 0;  ///< of those, rows that the prediction calls fitting
  /// Rows that ran, as their published step time shows, and whose recomputation is published: what
  /// they hold is not a matter of what was assumed.
  int64_t ran_rows = 0;
  int64_t wrongly_too_large = 0;  ///< of those, rows that the prediction calls too large
};

/// `runs` must outlive the result.
Validation validate(const std::vector<PublishedRun>& runs, const Constants& constants);

/// Whether a row may be used for fitting: a seeded 40 % of all, decided by its id alone, so that
/// other files of rows are split the same way.
bool is_fitted(const std::string& id);

enum class Judged : uint8_t { time, memory, baseline };
ErrorSummary summarise(const std::vector<const ValidatedRow*>& rows, Judged what);

}  // namespace tessera::plan
