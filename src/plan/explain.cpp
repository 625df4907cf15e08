#include "plan/explain.h"

#include <cmath>

#include "plan/reasons.h"
#include "plan/text.h"

namespace tessera::plan {

std::string term(double number) {
  constexpr double kExact = 1e15;
  if (std::abs(number) < kExact && number == std::floor(number)) {
    return std::to_string(static_cast<int64_t>(number));
  }
  return number_text(number, 6);
}

std::string ring_text(const std::string& bytes, int64_t ranks) {
  return expression("(", ranks, " - 1) / ", ranks, " * ", bytes);
}

std::vector<Reason> explain(const Case& run, const Constants& constants, const Estimate& estimate) {
  Reasons reasons;
  explain_parameters(run, reasons);
  explain_memory(run, estimate, reasons);
  explain_traffic(run, estimate, reasons);
  explain_pipeline(run.layout, run.recipe, reasons);
  explain_time(run, constants, estimate, reasons);
  return reasons.take();
}

std::vector<Reason> explain(const Training& training) {
  Reasons reasons;
  const double days = training.tokens / training.tokens_per_s / 86400;
  const double hours = days * 24 * static_cast<double>(training.devices);
  reasons.add("flops_total", "tokens * FLOPs of a token",
              expression(training.tokens, " * ", training.flops_per_token),
              training.tokens * training.flops_per_token);
  reasons.add("train_days", "tokens / tokens a second / seconds of a day",
              expression(training.tokens, " / ", training.tokens_per_s, " / 86400"), days);
  reasons.add("gpu_hours", "days * 24 * devices", expression(days, " * 24 * ", training.devices),
              hours);
  reasons.add("cost_usd", "device hours * price of one",
              expression(hours, " * ", training.usd_per_device_hour),
              hours * training.usd_per_device_hour);
  return reasons.take();
}

}  // namespace tessera::plan
