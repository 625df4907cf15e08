#include "plan/calibrate.h"

#include <algorithm>
#include <cmath>

namespace tessera::plan {

namespace {

struct FittedRow {
  Case run;
  double published_s = 0;
  double weight = 1;
};

class Fit {
 public:
  Fit(std::vector<FittedRow> rows, const Constants& start)
      : rows_(std::move(rows)), start_(start), constants_(start), fields_(fields(constants_)) {
    for (const FittedRow& row : rows_) weight_ += row.weight;
    for (const ConstantField& field : fields_) begin_.push_back(*field.value);
  }

  /// Rows whose prediction a constant does not touch need no new estimate, but which they are is
  /// not known: all of them are made again.
  double objective() const {
    constexpr double kFar = 0.15;
    double sum = 0;
    for (const FittedRow& row : rows_) {
      const double predicted = estimate(row.run, constants_).time.step_s;
      const double error = std::abs(std::log(predicted / row.published_s));
      // What is far off costs more than in proportion: the worst row matters too.
      sum += row.weight * (error + 2 * std::max(0.0, error - kFar));
    }
    return sum / weight_ + distance();
  }

  /// One pass over all constants with steps of that share of their range.
  double improve(double best, double share) {
    for (size_t i = 0; i < fields_.size(); ++i) {
      const ConstantField& field = fields_[i];
      for (const double direction : {1.0, -1.0}) {
        const double before = *field.value;
        *field.value = std::clamp(before + direction * share * (field.high - field.low), field.low,
                                  field.high);
        if (*field.value == before) continue;
        const double now = objective();
        if (now < best - 1e-7) {
          best = now;
          break;
        }
        *field.value = before;
      }
    }
    return best;
  }

  const Constants& constants() const { return constants_; }
  std::vector<std::string> moved() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (*fields_[i].value != begin_[i]) names.push_back(fields_[i].name);
    }
    return names;
  }

 private:
  double distance() const {
    constexpr double kPull = 0.002;
    double sum = 0;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const double away = (*fields_[i].value - begin_[i]) / (fields_[i].high - fields_[i].low);
      sum += away * away;
    }
    return kPull * sum;
  }

  std::vector<FittedRow> rows_;
  const Constants& start_;
  Constants constants_;
  std::vector<ConstantField> fields_;
  std::vector<double> begin_;
  double weight_ = 0;
};

}  // namespace

Calibration calibrate(const std::vector<PublishedRun>& runs, const Constants& start,
                      const CalibrationOptions& options) {
  Calibration result;
  std::vector<FittedRow> rows;
  std::vector<std::string> groups;
  for (const PublishedRun& run : runs) {
    if ((!options.all_rows && !is_fitted(run.id)) || !run.step_time_s) continue;
    ModelledRun model = modelled(run);
    if (!model.run) continue;
    result.used.push_back(run.id);
    rows.push_back({std::move(*model.run), *run.step_time_s, run.multi_node() ? 1.0 : 0.5});
    groups.push_back(run.group());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].weight /=
        std::sqrt(static_cast<double>(std::count(groups.begin(), groups.end(), groups[i])));
  }
  Fit fit(std::move(rows), start);
  result.objective_before = fit.objective();
  double best = result.objective_before;
  double share = 0.16;
  for (int64_t round = 0; round < options.rounds; ++round) {
    const double before = best;
    best = fit.improve(best, share);
    if (options.progress) options.progress(round, best);
    if (best > before - 2e-4) share /= 2;
    if (share < 0.002) break;
  }
  result.objective_after = best;
  result.constants = fit.constants();
  result.moved = fit.moved();
  return result;
}

}  // namespace tessera::plan
