#include "cli/plan_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "account/flops.h"
#include "account/rank_plan.h"
#include "cli/measured_machine.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "formats/machine_file.h"
#include "kernels/device.h"
#include "parallel/mesh_groups.h"
#include "plan/engine_step.h"
#include "spec/layout.h"
#include "train/environment.h"
#include "train/predict_here.h"
#include "train/process_memory.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Everything that is printed.
struct Report {
  spec::RunConfig config;
  account::Company company;
  train::Prediction prediction;
  plan::EngineStep step;
  std::string note;
  int64_t machine_bytes = 0;

  static int64_t total(const account::CategoryBytes& rank) {
    return std::accumulate(rank.begin(), rank.end(), int64_t{0});
  }
  /// The rank that holds most.
  size_t worst_rank() const {
    const auto& ranks = prediction.memory_bytes;
    const auto less = [](const auto& a, const auto& b) { return total(a) < total(b); };
    return static_cast<size_t>(std::max_element(ranks.begin(), ranks.end(), less) - ranks.begin());
  }
  int64_t all_bytes() const {
    int64_t sum = 0;
    for (const auto& rank : prediction.memory_bytes) sum += total(rank);
    return sum;
  }
  bool fits() const { return all_bytes() <= machine_bytes; }
  int64_t tokens() const { return config.training.global_batch_size * config.data.seq_len; }
  double tokens_per_s() const { return static_cast<double>(tokens()) / step.step_s; }
};

Json memory_json(const account::CategoryBytes& rank) {
  Json json;
  for (int i = 0; i < core::kNumCategories; ++i) {
    json[core::name_of(static_cast<core::Category>(i))] = rank[static_cast<size_t>(i)];
  }
  return json;
}

/// Of the rank that holds most: the categories and their sums.
Json worst_memory_json(const Report& report) {
  const account::CategoryBytes& rank = report.prediction.memory_bytes[report.worst_rank()];
  const auto of = [&](core::Category category) { return rank[static_cast<size_t>(category)]; };
  Json json = memory_json(rank);
  json["state"] =
      of(core::Category::weights) + of(core::Category::gradients) + of(core::Category::optimizer);
  json["total"] = Report::total(rank);
  return json;
}

Json time_json(const plan::EngineStep& step) {
  return {{"compute_s", step.compute_s},
          {"tp_exposed_s", step.tp_exposed_s},
          {"dp_exposed_s", step.dp_exposed_s},
          {"pp_bubble_s", step.pp_bubble_s},
          {"optimizer_s", step.optimizer_s},
          {"overhead_s", step.overhead_s},
          {"step_s", step.step_s}};
}

Json to_json(const Report& report) {
  const train::Prediction& prediction = report.prediction;
  const account::ParameterTable table =
      account::parameter_table(report.config.model, report.config.lora);
  Json memory = Json::array(), traffic, by_rank;
  for (const auto& rank : prediction.memory_bytes) memory.push_back(memory_json(rank));
  for (const parallel::Axis axis : parallel::kAxes) {
    std::vector<int64_t> bytes;
    for (const auto& rank : prediction.bytes_per_step) {
      bytes.push_back(rank[static_cast<size_t>(axis)]);
    }
    traffic[parallel::name_of(axis)] = *std::max_element(bytes.begin(), bytes.end());
    by_rank[parallel::name_of(axis)] = bytes;
  }
  return {{"world",
           {{"ranks", report.company.ranks},
            {"threads_per_rank", report.company.threads},
            {"layout", spec::to_string(spec::layout_of(report.config))},
            {"device", kernels::describe_device()}}},
          {"parameters",
           {{"total", table.num_elements()},
            {"matmul", account::matmul_parameters(report.config.model)}}},
          {"memory_bytes_per_gpu", worst_memory_json(report)},
          {"memory_bytes", memory},
          {"machine_memory_bytes", report.machine_bytes},
          {"fits", report.fits()},
          {"traffic_bytes_per_gpu_per_step", traffic},
          {"traffic_bytes_per_step_by_rank", by_rank},
          {"pipeline",
           {{"micro_batches", spec::passes_per_step(report.config)},
            {"bubble_fraction", report.step.bubble_fraction}}},
          {"time", time_json(report.step)},
          {"flops_total", prediction.flops_per_step},
          {"tokens_per_s", report.tokens_per_s()},
          {"note", report.note}};
}

std::string mib(int64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

void print_memory(const Report& report) {
  fmt::print("\nmemory, MiB of each rank at its peak\n{:>6}", "rank");
  for (int i = 0; i < core::kNumCategories; ++i) {
    fmt::print(" {:>13}", core::name_of(static_cast<core::Category>(i)));
  }
  fmt::print(" {:>10}\n", "total");
  for (size_t rank = 0; rank < report.prediction.memory_bytes.size(); ++rank) {
    const account::CategoryBytes& bytes = report.prediction.memory_bytes[rank];
    fmt::print("{:>6}", rank);
    for (const int64_t category : bytes) fmt::print(" {:>13}", mib(category));
    fmt::print(" {:>10}\n", mib(Report::total(bytes)));
  }
  fmt::print("{} MiB together; this machine has {} MiB: {}\n", mib(report.all_bytes()),
             mib(report.machine_bytes), report.fits() ? "fits" : "does NOT fit");
}

void print_traffic(const Report& report) {
  fmt::print("\nsent in a step, MiB of each rank\n{:>6} {:>13} {:>13} {:>13}\n", "rank", "dp", "tp",
             "pp");
  for (size_t rank = 0; rank < report.prediction.bytes_per_step.size(); ++rank) {
    fmt::print("{:>6}", rank);
    for (const int64_t bytes : report.prediction.bytes_per_step[rank]) {
      fmt::print(" {:>13}", mib(bytes));
    }
    fmt::print("\n");
  }
}

void print_time(const Report& report) {
  const plan::EngineStep& step = report.step;
  const auto line = [&](const char* what, double seconds) {
    fmt::print("  {:<26} {:>10.2f} ms {:>6.1f} %\n", what, seconds * 1e3,
               100 * seconds / step.step_s);
  };
  fmt::print("\none step\n");
  line("forward and backward", step.compute_s);
  line("waiting inside of layers", step.tp_exposed_s);
  line("gradients and weights", step.dp_exposed_s);
  line("waiting for other stages", step.pp_bubble_s);
  line("optimizer", step.optimizer_s);
  line("agreeing", step.overhead_s);
  line("all", step.step_s);
  fmt::print("{:.0f} tokens/s\n", report.tokens_per_s());
}

void print(const Report& report) {
  fmt::print("{} rank{} of {} thread{} on this machine: {}\n{}\n", report.company.ranks,
             report.company.ranks == 1 ? "" : "s", report.company.threads,
             report.company.threads == 1 ? "" : "s",
             spec::to_string(spec::layout_of(report.config)), kernels::describe_device());
  if (!report.note.empty()) fmt::print("{}\n", report.note);
  print_memory(report);
  print_traffic(report);
  print_time(report);
}

/// Those of a file instead of what was measured for groups of as many ranks.
void use_links(account::MachineTimes& machine, const std::vector<account::LinkTimes>& links) {
  for (const account::LinkTimes& link : links) {
    std::erase_if(machine.links, [&](const auto& other) { return other.ranks == link.ranks; });
  }
  machine.links.insert(machine.links.end(), links.begin(), links.end());
}

/// Ranks that the degrees of the config need at least.
int fewest_ranks(const spec::RunConfig& config) {
  const int64_t replicas = std::max<int64_t>(config.parallelism.data_parallel_degree, 1);
  return static_cast<int>(replicas * spec::ranks_of_replica(config.parallelism));
}

}  // namespace

int plan_config(const ConfigArgs& config, const PlanConfigOptions& options) {
  train::threads_of_one_process("plan");
  int ranks = options.ranks;
  const spec::RunConfig read = config.read([&](const spec::RunConfig& unchecked) {
    if (ranks == 0) ranks = fewest_ranks(unchecked);
    return static_cast<int64_t>(ranks);
  });
  train::MachineBench bench;
  bench.ranks = ranks;
  bench.threads = train::threads_of_a_rank(ranks);
  const MeasuredRun run = read_measured_run(read, ranks);
  Report report;
  report.config = run.config;
  report.company = {bench.ranks, bench.threads};
  report.note = run.note;
  report.machine_bytes = train::machine_memory_bytes();
  report.prediction = train::predict_here(run.config, bench.ranks, bench.threads);
  account::MachineTimes machine = machine_times(run, bench, options.kernels);
  if (!options.links.empty()) {
    use_links(machine, formats::parse_links(core::read_file(options.links), options.links));
  }
  report.step = plan::engine_step(run.config, machine, report.company);
  if (options.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    print(report);
  }
  return report.fits() ? kDone : kDoesNotFit;
}

}  // namespace tessera::cli
