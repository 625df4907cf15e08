#include "train/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/run_folder.h"

namespace tessera::train {

using nlohmann::ordered_json;

std::string to_json(const StepRecord& r) {
  ordered_json json = {{"step", r.step},
                       {"time_us", r.time_us},
                       {"loss", r.loss},
                       {"grad_norm", r.grad_norm},
                       {"lr", r.lr},
                       {"tokens", r.tokens},
                       {"tokens_per_s", r.tokens_per_s},
                       {"tflops", r.tflops},
                       {"mfu", r.mfu},
                       {"step_s", r.step_s},
                       {"memory_bytes", r.memory_bytes},
                       {"exposed_communication_s", r.exposed_communication_s},
                       {"communication_s", r.communication_s}};
  if (r.validation_loss) json["validation_loss"] = *r.validation_loss;
  return json.dump();
}

namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// The memory in use, in percent of the machine's; 0: that is not known.
double memory_percent(const StepRecord& r) {
  if (r.memory_limit_bytes <= 0) return 0;
  return 100.0 * static_cast<double>(r.memory_bytes) / static_cast<double>(r.memory_limit_bytes);
}

/// 12345 as "12,345".
std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

}  // namespace

std::string to_line(const StepRecord& r) {
  std::string line = fmt::format(
      "step: {:2}  loss: {:8.5f}  grad_norm: {:7.4f}  memory: {:5.2f}GiB({:.2f}%)  tps: {}  "
      "tflops: {:.2f}  mfu: {:.2f}%",
      r.step, r.loss, r.grad_norm, static_cast<double>(r.memory_bytes) / kGib, memory_percent(r),
      with_commas(std::llround(r.tokens_per_s)), r.tflops, 100 * r.mfu);
  if (r.validation_loss) line += fmt::format("  validation_loss: {:8.5f}", *r.validation_loss);
  return line;
}

std::vector<formats::Scalar> to_scalars(const StepRecord& r) {
  std::vector<formats::Scalar> scalars = {
      {"loss_metrics/global_avg_loss", r.loss},
      {"grad_norm", r.grad_norm},
      {"lr", r.lr},
      {"throughput(tps)", r.tokens_per_s},
      {"tflops", r.tflops},
      {"mfu(%)", 100 * r.mfu},
      {"time_metrics/end_to_end(s)", r.step_s},
      {"time_metrics/exposed_communication(s)", r.exposed_communication_s},
      {"memory/max_active(GiB)", static_cast<double>(r.memory_bytes) / kGib},
      {"memory/max_active(%)", memory_percent(r)}};
  if (r.validation_loss) scalars.push_back({"validation_metrics/loss", *r.validation_loss});
  return scalars;
}

namespace {

/// The lines of steps up to `last_step`. A torn last line (the process was killed) is dropped.
std::string lines_until(const std::string& content, int64_t last_step) {
  std::string kept;
  size_t begin = 0;
  for (size_t end; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = content.substr(begin, end - begin);
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    if (json["step"].get<int64_t>() <= last_step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, int64_t last_step) : path_(path) {
  if (std::filesystem::exists(path)) {
    write_file_atomically(path, lines_until(read_file(path), last_step));
  }
  file_.open(path, std::ios::app);
  if (!file_) {
    throw core::RunError(fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  }
}

void MetricsFile::write(const StepRecord& record) {
  file_ << to_json(record) << '\n';
  file_.flush();
  if (!file_) {
    throw core::RunError(fmt::format("cannot write {}: {}; free some space and resume",
                                     path_.string(), std::strerror(errno)));
  }
}

}  // namespace tessera::train
