#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tessera::cli {

namespace {

std::string in_mib(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

void add_row(std::string& out, const std::string& what, int64_t predicted, int64_t measured) {
  const char* verdict = predicted == measured ? "equal" : "differs";
  out += fmt::format("  {:<22} {:>12} {:>12}   {}\n", what, in_mib(predicted), in_mib(measured),
                     verdict);
}

void add_rank(std::string& out, const train::Summary& summary, size_t rank) {
  const train::CategoryBytes& predicted = summary.predicted.memory_bytes[rank];
  const train::CategoryBytes& measured = summary.memory_measured[rank];
  int64_t predicted_total = 0;
  int64_t measured_total = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    predicted_total += predicted[i];
    measured_total += measured[i];
    if (predicted[i] == 0 && measured[i] == 0) continue;
    add_row(out, core::name_of(static_cast<core::Category>(i)), predicted[i], measured[i]);
  }
  add_row(out, "all categories", predicted_total, measured_total);
  out += fmt::format("  {:<22} {:>12} {:>12}   ({:+.1f} % of the ledger)\n",
                     "process, by the system", "", in_mib(summary.process_memory_bytes[rank]),
                     100.0 * (static_cast<double>(summary.process_memory_bytes[rank]) /
                                  static_cast<double>(measured_total) -
                              1));
  const train::AxisBytes sent = summary.bytes_measured()[rank];
  for (const parallel::Axis axis : parallel::kAxes) {
    const auto i = static_cast<size_t>(axis);
    const int64_t expected = summary.predicted.bytes_per_step[rank][i];
    if (axis != parallel::Axis::dp && expected == 0 && sent[i] == 0) continue;
    const bool only = summary.mesh.size() == summary.mesh.dp;
    add_row(out, only ? "sent in a step" : fmt::format("sent in a step, {}", name_of(axis)),
            expected, sent[i]);
  }
}

bool same_as_before(const train::Summary& summary, size_t rank) {
  return rank > 0 &&
         summary.predicted.memory_bytes[rank] == summary.predicted.memory_bytes[rank - 1] &&
         summary.memory_measured[rank] == summary.memory_measured[rank - 1] &&
         summary.predicted.bytes_per_step[rank] == summary.predicted.bytes_per_step[rank - 1] &&
         summary.bytes_measured()[rank] == summary.bytes_measured()[rank - 1];
}

/// How long communication held up the step, how much of it did not, and what it was.
std::string communication_line(const train::Summary& s, parallel::Axis axis) {
  const auto i = static_cast<size_t>(axis);
  std::string collectives;
  for (const comm::TrafficEntry& entry : comm::kTrafficEntries) {
    const int64_t bytes = s.traffic_measured[0][i].*entry.bytes;
    if (bytes == 0) continue;
    std::string name = entry.name;
    std::replace(name.begin(), name.end(), '_', '-');
    collectives += fmt::format("{}{} {} MiB", collectives.empty() ? "" : ", ", name, in_mib(bytes));
  }
  return fmt::format(
      "communication    {}{:.1f} % of the time waited for it; computation hid {:.0f} % of it; a "
      "step sends {}\n",
      s.mesh.size() == s.mesh.dp ? "" : fmt::format("{}: ", name_of(axis)),
      100 * s.exposed_communication_fraction[i], 100 * s.hidden_communication_fraction[i],
      collectives);
}

std::string bubble_line(const train::Summary& s) {
  return fmt::format(
      "bubble           {:.1f} % of the ranks' time in the pipeline; {:.1f} % by the times that "
      "its actions took, {:.1f} % as predicted\n",
      100 * s.bubble_measured, 100 * s.bubble_simulated, 100 * s.predicted.bubble_fraction);
}

}  // namespace

std::string final_report(const train::Summary& s) {
  std::string out;
  if (s.stopped_early) {
    out += fmt::format("stopped after step {}; continue with --resume\n", s.steps);
  }
  out += fmt::format("training loss    {:.4f} -> {:.4f} nats a token\n", s.loss_first, s.loss_last);
  if (s.has_validation) {
    out +=
        fmt::format("validation loss  {:.4f}, against {:.4f} for the unigram entropy of the text\n",
                    s.validation_loss, s.unigram_entropy);
  }
  out += fmt::format(
      "speed            {:.0f} tokens/s, {:.3f} TFLOP/s a rank ({:.0f} % of its products' rate)\n",
      s.tokens_per_s, s.tflops_per_rank, 100 * s.mfu);
  for (const parallel::Axis axis : parallel::kAxes) {
    if (s.traffic_measured[0][static_cast<size_t>(axis)].total() == 0) continue;
    out += communication_line(s, axis);
  }
  if (s.mesh.pp > 1) out += bubble_line(s);
  out += fmt::format("weights          {}\n", s.weights_hash);
  out += fmt::format("run folder       {}\n\n", s.run_dir);
  out += fmt::format("  {:<22} {:>12} {:>12}\n", "MiB", "predicted", "measured");
  for (size_t rank = 0; rank < s.memory_measured.size(); ++rank) {
    if (same_as_before(s, rank)) {
      out += fmt::format("rank {}: the same as rank {}; process {} MiB\n", rank, rank - 1,
                         in_mib(s.process_memory_bytes[rank]));
      continue;
    }
    out += fmt::format("rank {}\n", rank);
    add_rank(out, s, rank);
  }
  return out;
}

}  // namespace tessera::cli
