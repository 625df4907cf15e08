#include "plan/goodput.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"

namespace tessera::plan {

double young_interval_s(const FailureModel& failures) {
  return std::sqrt(2 * failures.save_s * failures.mtbf_s());
}

double daly_interval_s(const FailureModel& failures) {
  const double mtbf = failures.mtbf_s();
  const double part = failures.save_s / (2 * mtbf);
  if (part >= 1) return mtbf;
  return young_interval_s(failures) * (1 + std::sqrt(part) / 3 + part / 9) - failures.save_s;
}

double goodput(const FailureModel& failures, double interval_s) {
  const double mtbf = failures.mtbf_s();
  const double tries = std::expm1((interval_s + failures.save_s) / mtbf);
  return interval_s / (mtbf * std::exp(failures.restart_s / mtbf) * tries);
}

double best_interval_s(const FailureModel& failures) {
  // With x = T / M and c = C / M, the derivative of T / (e^(x + c) - 1) is zero where
  // 1 - x = e^-(x + c). The left side falls from 1 to 0 on (0, 1); bisect.
  const double mtbf = failures.mtbf_s();
  const double save = failures.save_s / mtbf;
  double low = 0, high = 1;
  while (high - low > 1e-7 * high) {
    const double middle = (low + high) / 2;
    (1 - middle > std::exp(-middle - save) ? low : high) = middle;
  }
  return (low + high) / 2 * mtbf;
}

namespace {

/// Times from one failure to the next.
class Failures {
 public:
  Failures(uint64_t seed, double mtbf_s)
      : key_(core::stream_key(seed, core::Stream::sampling)), mtbf_s_(mtbf_s) {}

  double next() {
    const auto draw = core::philox(key_, drawn_++, 0);
    const uint64_t bits = (uint64_t{draw[0]} << 21) ^ (draw[1] >> 11);
    return -mtbf_s_ * std::log((static_cast<double>(bits) + 1) * 0x1p-53);  // uniform in (0, 1]
  }

 private:
  uint64_t key_;
  double mtbf_s_;
  uint64_t drawn_ = 0;
};

/// Mean and spread of how long an interval takes, one by one (Welford).
struct Spread {
  int64_t count = 0;
  double mean = 0, squares = 0;

  void add(double value) {
    const double off = value - mean;
    mean += off / static_cast<double>(++count);
    squares += off * (value - mean);
  }
  /// Of the mean, as part of it.
  double relative_error() const {
    if (count < 2) return 1;
    const auto n = static_cast<double>(count);
    return std::sqrt(squares / (n - 1) / n) / mean;
  }
};

}  // namespace

SimulatedRun simulate_failures(const FailureModel& failures, double interval_s,
                               const SimulationOptions& options) {
  Failures times(options.seed, failures.mtbf_s());
  SimulatedRun run;
  Spread spread;
  const double attempt = interval_s + failures.save_s;
  double until_failure = times.next();
  for (int64_t done = 0; done < options.intervals && run.failures < options.most_failures;) {
    double taken = 0;
    while (until_failure < attempt && run.failures < options.most_failures) {
      taken += until_failure;
      run.lost_s += until_failure;
      ++run.failures;
      until_failure = times.next();
      for (; until_failure < failures.restart_s && run.failures < options.most_failures;
           ++run.failures) {
        taken += until_failure;
        run.restarting_s += until_failure;
        until_failure = times.next();
      }
      until_failure -= failures.restart_s;
      taken += failures.restart_s;
      run.restarting_s += failures.restart_s;
    }
    if (until_failure >= attempt) {
      until_failure -= attempt;
      taken += attempt;
      run.work_s += interval_s;
      run.saving_s += failures.save_s;
      spread.add(taken);
      ++done;
    }
    run.time_s += taken;
  }
  run.goodput = run.time_s > 0 ? run.work_s / run.time_s : 0;
  run.standard_error = run.goodput * spread.relative_error();
  return run;
}

}  // namespace tessera::plan
