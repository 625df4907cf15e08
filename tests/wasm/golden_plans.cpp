#include <cinttypes>
#include <cstdio>
#include <vector>

#include "golden.h"
#include "plan/estimate.h"
#include "plan/goodput.h"
#include "plan/training_run.h"

namespace tessera::golden {

namespace {

/// Digits that both machines' mathematics libraries agree on.
constexpr const char* kPrecise = " %.10g";

void print_numbers(const char* what, const std::vector<double>& numbers) {
  std::printf("%s:", what);
  for (const double number : numbers) std::printf(kPrecise, number);
  std::printf("\n");
}

struct Planned {
  const char* model;
  const char* cluster;
  int64_t global_batch;
  plan::Layout layout;
};

std::vector<Planned> planned() {
  std::vector<Planned> list;
  plan::Layout layout;
  layout.dp = 8;
  layout.zero = 3;
  list.push_back({"llama-2-7b", "a100-80g", 64, layout});
  layout = {};
  layout.tp = 8;
  layout.pp = 4;
  layout.dp = 4;
  layout.zero = 1;
  layout.sequence_parallel = true;
  layout.recompute = spec::Recompute::selective;
  list.push_back({"llama-3-70b", "h100-80g", 256, layout});
  layout.pp = 16;
  layout.dp = 128;
  layout.v = 2;
  layout.schedule = spec::ScheduleKind::interleaved;
  list.push_back({"llama-3-405b", "h100-80g", 4096, layout});
  layout = {};
  layout.dp = 32;
  layout.ep = 8;
  layout.zero = 1;
  for (const plan::PlannedPreset& preset : plan::planned_presets()) {
    list.push_back({preset.name.data(), "h100-80g", 256, layout});
  }
  return list;
}

void print_estimate(const Planned& of) {
  plan::Case run;
  run.model = *plan::find_model(of.model);
  run.cluster = *plan::find_cluster(of.cluster);
  run.layout = of.layout;
  run.recipe.global_batch = of.global_batch;
  const plan::ParameterCounts counts = plan::count_parameters(run.model);
  std::printf("plan %s, %s on %s: %" PRId64 " parameters, %" PRId64 " active\n", of.model,
              plan::to_string(of.layout).c_str(), of.cluster, counts.total, counts.active);
  for (const spec::Violation& found : plan::mistakes(run.model, run.recipe, run.layout)) {
    std::printf(" %s: %s (%s)\n", found.key.c_str(), found.why.c_str(), found.suggest.c_str());
  }
  plan::EstimateOptions options;
  options.explain = true;
  const plan::Estimate result = plan::estimate(run, plan::default_constants(), options);
  const plan::Memory& memory = result.memory[result.worst_rank];
  print_numbers(" memory", {memory.weights, memory.gradients, memory.optimizer, memory.activations,
                            memory.gathered, memory.communication, memory.total()});
  const plan::Traffic& sent = result.traffic;
  print_numbers(" traffic", {sent.dp, sent.tp, sent.pp, sent.cp, sent.ep});
  const plan::StepTime& time = result.time;
  print_numbers(" time", {time.compute_s, time.tp_exposed_s, time.dp_exposed_s, time.pp_bubble_s,
                          time.optimizer_s, time.overhead_s, time.step_s});
  print_numbers(" rates", {result.bubble_fraction, result.mfu, result.hfu, result.tokens_per_s});
  for (const plan::Reason& reason : result.why) {
    std::printf(" %s = %s: %s\n", reason.quantity.c_str(), reason.formula.c_str(),
                reason.values.c_str());
  }
}

}  // namespace

void print_runs() {
  for (const double save_s : {10.0, 600.0}) {
    const plan::FailureModel failures{50'000, 16'384, save_s, 300};
    const double daly = plan::daly_interval_s(failures);
    print_numbers("interval", {plan::young_interval_s(failures), daly,
                               plan::best_interval_s(failures), plan::goodput(failures, daly)});
    const plan::SimulatedRun run = plan::simulate_failures(failures, daly, {5, 2000});
    std::printf("failures %" PRId64, run.failures);
    print_numbers("", {run.goodput, run.standard_error, run.lost_s, run.restarting_s});
  }
  for (const plan::ScalingLaw* law : {&plan::kHoffmann, &plan::kBesiroglu}) {
    const plan::ComputeOptimal best = plan::compute_optimal(*law, 5.76e23);
    print_numbers("law", {law->loss(70e9, 1.4e12), *law->tokens_for(7e9, 2.1), best.parameters,
                          best.tokens, best.loss});
  }
  const plan::RunCost cost = plan::run_cost({15.6e12, 16e6, 11.5, 0.9, 16'384, 2.5});
  print_numbers("run", {cost.steps, cost.wall_s, cost.gpu_hours, cost.usd});
}

void print_estimates() {
  for (const Planned& of : planned()) print_estimate(of);
}

}  // namespace tessera::golden
