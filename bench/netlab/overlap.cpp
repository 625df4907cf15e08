// How much of a run's sharded communication its computation hid, by the run's traces.
//
//   netlab_overlap RUN [--json]
//
// Of every step but the first, on every rank: the gathers of weights and the reductions of
// gradients (all-gather and reduce-scatter of more than 4 KiB), without the first gather and the
// last reduction of the step, which have no computation beside them. A collective's bytes count as
// hidden by the share of its time in which the computing thread did not wait for any collective.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trace/chrome_reader.h"

namespace {

using tessera::trace::ChromeEvent;
namespace fs = std::filesystem;

constexpr int64_t kSmall = 4096;  // bytes of what ranks merely agree on

struct Step {
  std::vector<ChromeEvent> gathers, reductions, waits, forwards, blocks;
};

struct Figures {
  double bytes = 0;
  double hidden_bytes = 0;
  std::vector<double> unit_seconds;    // forward of one block
  std::vector<double> gather_seconds;  // of one block
  std::vector<double> gather_bytes;
  double hidden() const { return bytes > 0 ? hidden_bytes / bytes : 0; }
};

double seconds(const ChromeEvent& event) {
  return static_cast<double>(event.end_ns - event.begin_ns) * 1e-9;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool lies_in(const ChromeEvent& inner, const std::vector<ChromeEvent>& outer) {
  return std::any_of(outer.begin(), outer.end(), [&](const ChromeEvent& event) {
    return event.begin_ns <= inner.begin_ns && inner.end_ns <= event.end_ns;
  });
}

/// The share of a span in which the computing thread waited.
double waited_share(const ChromeEvent& call, const std::vector<ChromeEvent>& waits) {
  int64_t waited = 0;
  for (const ChromeEvent& wait : waits) {
    const int64_t both =
        std::min(call.end_ns, wait.end_ns) - std::max(call.begin_ns, wait.begin_ns);
    waited += std::max<int64_t>(both, 0);
  }
  return static_cast<double>(waited) / static_cast<double>(call.end_ns - call.begin_ns);
}

/// One rank's trace by step. The first step warms up.
std::map<int64_t, Step> read_steps(const fs::path& path) {
  std::map<int64_t, Step> steps;
  for (const ChromeEvent& event : tessera::trace::read_chrome_trace(path.string()).events) {
    const auto& details = event.details;
    if (details.step < 2) continue;
    Step& step = steps[details.step];
    if (event.name.rfind("F ", 0) == 0) step.forwards.push_back(event);
    if (event.category == "compute" && details.unit.find("layers.") != std::string::npos) {
      step.blocks.push_back(event);
    }
    if (event.name == "wait") step.waits.push_back(event);
    if (details.bytes <= kSmall) continue;
    if (event.name == "all-gather") step.gathers.push_back(event);
    if (event.name == "reduce-scatter") step.reductions.push_back(event);
  }
  return steps;
}

void add_trace(const fs::path& path, Figures& figures) {
  for (auto& [number, step] : read_steps(path)) {
    for (const ChromeEvent& block : step.blocks) {
      if (!lies_in(block, step.forwards)) continue;
      figures.unit_seconds.push_back(seconds(block) * (1 - waited_share(block, step.waits)));
    }
    for (const ChromeEvent& gather : step.gathers) {
      figures.gather_bytes.push_back(static_cast<double>(gather.details.bytes));
      figures.gather_seconds.push_back(seconds(gather));
    }
    if (!step.gathers.empty()) step.gathers.erase(step.gathers.begin());
    if (!step.reductions.empty()) step.reductions.pop_back();
    for (const auto* calls : {&step.gathers, &step.reductions}) {
      for (const ChromeEvent& call : *calls) {
        const auto bytes = static_cast<double>(call.details.bytes);
        figures.bytes += bytes;
        figures.hidden_bytes += bytes * (1 - waited_share(call, step.waits));
      }
    }
  }
}

int run(const fs::path& folder, bool json) {
  Figures figures;
  int ranks = 0;
  for (; fs::exists(folder / "trace" / fmt::format("rank-{}.json", ranks)); ++ranks) {
    add_trace(folder / "trace" / fmt::format("rank-{}.json", ranks), figures);
  }
  if (ranks == 0) {
    fmt::print(stderr, "{} has no traces: train with --profiling.trace true\n", folder.string());
    return 2;
  }
  if (json) {
    fmt::print(
        "{{\"ranks\": {}, \"bytes\": {:.0f}, \"hidden_fraction\": {:.4f}, "
        "\"unit_forward_s\": {:.6f}, \"gather_s\": {:.6f}, \"gather_bytes\": {:.0f}}}\n",
        ranks, figures.bytes, figures.hidden(), median(figures.unit_seconds),
        median(figures.gather_seconds), median(figures.gather_bytes));
    return 0;
  }
  fmt::print(
      "{} ranks: {:.1f} % of {:.1f} MB that can be hidden were; forward of a block {:.2f} ms, "
      "a gather of {:.2f} MB {:.2f} ms (medians)\n",
      ranks, 100 * figures.hidden(), figures.bytes * 1e-6, median(figures.unit_seconds) * 1e3,
      median(figures.gather_bytes) * 1e-6, median(figures.gather_seconds) * 1e3);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 3 && std::strcmp(argv[2], "--json") == 0;
  if (argc != 2 && !json) {
    fmt::print(stderr, "usage: netlab_overlap RUN [--json]\n");
    return 2;
  }
  try {
    return run(argv[1], json);
  } catch (const std::exception& error) {
    fmt::print(stderr, "netlab_overlap: {}\n", error.what());
    return 1;
  }
}
