// tessera simulate: a planned step as a trace, what failures cost a long run of such steps, and how
// long it takes for a number of tokens or a loss.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/plan_args.h"
#include "cli/plan_report.h"
#include "cli/simulated_trace.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "plan/goodput.h"
#include "plan/text.h"
#include "plan/training_run.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;

struct SimulateOptions {
  PlanArgs plan;
  std::string trace;
  double mtbf_hours = 0;  ///< 0: no failures
  std::string mtbf_of = "gpu";
  double save_s = 60;
  double restart_s = 300;
  double interval_s = 0;  ///< 0: Daly's
  uint64_t seed = 1;
  double loss = 0;  ///< 0: none is asked for
  std::string law = "hoffmann";
  bool json = false;
};

/// What failures cost, by the formula and by simulation.
struct FailureReport {
  plan::FailureModel model;
  double interval_s = 0;  ///< that the two goodputs are of
  double goodput = 0;
  plan::SimulatedRun simulated;

  /// Whether there were enough failures for their mean to say something.
  bool tells() const { return simulated.failures >= 30; }
  /// Five standard errors: by chance once in two million.
  bool agrees() const {
    return !tells() || std::abs(simulated.goodput - goodput) <= 5 * simulated.standard_error + 1e-9;
  }
};

struct TrainingReport {
  double tokens = 0;
  double loss = 0;  ///< that the law expects of them
  plan::RunCost cost;
};

struct Report {
  PlanRequest request;
  plan::Estimate estimate;
  std::vector<std::string> trace;  ///< files
  std::optional<FailureReport> failures;
  std::optional<TrainingReport> training;
};

FailureReport failures_of(const SimulateOptions& options, const PlanRequest& request) {
  const int64_t per_node = request.run.cluster.devices_per_node;
  FailureReport report;
  report.model.part_mtbf_hours = options.mtbf_hours;
  report.model.save_s = options.save_s;
  report.model.restart_s = options.restart_s;
  if (options.mtbf_of == "gpu") report.model.num_parts = request.gpus;
  if (options.mtbf_of == "node") report.model.num_parts = (request.gpus + per_node - 1) / per_node;
  report.interval_s =
      options.interval_s > 0 ? options.interval_s : plan::daly_interval_s(report.model);
  report.goodput = plan::goodput(report.model, report.interval_s);
  // As long as some twenty thousand failures take.
  constexpr double kFailures = 2e4;
  plan::SimulationOptions simulation;
  simulation.seed = options.seed;
  simulation.most_failures = 2'000'000;
  simulation.intervals = static_cast<int64_t>(std::clamp(
      kFailures * report.model.mtbf_s() / (report.interval_s + options.save_s), 1e3, 2e6));
  report.simulated = plan::simulate_failures(report.model, report.interval_s, simulation);
  return report;
}

const plan::ScalingLaw& law_of(const SimulateOptions& options) {
  const plan::ScalingLaw* law = plan::find_scaling_law(options.law);
  if (law != nullptr) return *law;
  throw core::ConfigError("--law " + options.law +
                          " is not known; there are hoffmann and besiroglu");
}

/// --tokens, or those that the law asks for.
double tokens_of(const SimulateOptions& options, const PlanRequest& request, double parameters) {
  if (options.loss == 0) return request.tokens;
  if (request.tokens > 0) {
    throw core::ConfigError("--loss and --tokens both say how long to train: leave one out");
  }
  const plan::ScalingLaw& law = law_of(options);
  const auto tokens = law.tokens_for(parameters, options.loss);
  if (tokens) return *tokens;
  throw core::ConfigError(fmt::format(
      "--loss {:g} is out of reach: by the law ({}) a model of {} parameters comes down to {:.4f} "
      "with any number of tokens; ask for more than that, or for a larger model",
      options.loss, law.source, plan::number_text(parameters), law.floor_of(parameters)));
}

std::optional<TrainingReport> training_of(const SimulateOptions& options, const Report& report) {
  const plan::Case& run = report.request.run;
  const auto parameters = static_cast<double>(plan::count_parameters(run.model).total);
  TrainingReport training;
  training.tokens = tokens_of(options, report.request, parameters);
  if (training.tokens == 0) return std::nullopt;
  training.loss = law_of(options).loss(parameters, training.tokens);
  plan::RunInput input;
  input.tokens = training.tokens;
  input.tokens_per_step = static_cast<double>(run.recipe.global_batch * run.recipe.seq_len);
  input.step_s = report.estimate.time.step_s;
  input.goodput = report.failures ? report.failures->goodput : 1;
  input.num_gpus = report.request.gpus;
  input.usd_per_gpu_hour = run.cluster.usd_per_device_hour;
  if (!(input.goodput > 0)) {
    throw core::ConfigError(
        "with these failures the run never gets on: its goodput is 0. Save faster (--save-s), or "
        "more often (--interval-s)");
  }
  training.cost = plan::run_cost(input);
  return training;
}

Report simulate(const SimulateOptions& options) {
  Report report;
  report.request = options.plan.read();
  if (report.request.parameters > 0) {
    throw core::ConfigError("--params has no shape to simulate: name a model (--model)");
  }
  const plan::Case& run = report.request.run;
  const plan::Constants& constants = report.request.constants;
  report.estimate = plan::estimate(run, constants);
  if (options.mtbf_hours > 0) report.failures = failures_of(options, report.request);
  report.training = training_of(options, report);
  if (!options.trace.empty()) {
    report.trace = write_simulated_trace(options.trace, report.request.gpus,
                                         simulated_step(run, constants, report.estimate));
  }
  return report;
}

void print_failures(const FailureReport& failures) {
  const plan::FailureModel& model = failures.model;
  const plan::SimulatedRun& run = failures.simulated;
  fmt::print("\nfailures: one in {} ({} parts, {:g} h each); saving {:g} s, restarting {:g} s\n",
             plan::time_text(model.mtbf_s()), model.num_parts, model.part_mtbf_hours, model.save_s,
             model.restart_s);
  fmt::print("  best interval   {:.0f} s by Young, {:.0f} s by Daly, {:.0f} s exactly\n",
             plan::young_interval_s(model), plan::daly_interval_s(model),
             plan::best_interval_s(model));
  fmt::print(
      "  every {:.0f} s     goodput {:.2f} %; simulated {:.2f} % ± {:.2f} over {} failures: {}\n",
      failures.interval_s, 100 * failures.goodput, 100 * run.goodput, 100 * run.standard_error,
      run.failures,
      !failures.tells()   ? "too few to tell"
      : failures.agrees() ? "agrees"
                          : "DISAGREES");
  fmt::print("  of the time     {:.2f} % saving, {:.2f} % lost work, {:.2f} % restarting\n",
             100 * run.saving_s / run.time_s, 100 * run.lost_s / run.time_s,
             100 * run.restarting_s / run.time_s);
}

void print_training(const TrainingReport& training, const SimulateOptions& options,
                    const plan::Cluster& cluster) {
  fmt::print("\ntraining on {} tokens: {:.0f} steps, {}, with failures {}\n",
             plan::number_text(training.tokens), training.cost.steps,
             plan::time_text(training.cost.work_s), plan::time_text(training.cost.wall_s));
  fmt::print("  {} GPU hours", plan::number_text(training.cost.gpu_hours));
  if (cluster.usd_per_device_hour > 0) {
    fmt::print(", {} USD at {:g} an hour", plan::number_text(training.cost.usd),
               cluster.usd_per_device_hour);
  }
  fmt::print("\n  loss {:.3f} by the law of {}\n", training.loss, law_of(options).source);
}

void print_report(const Report& report, const SimulateOptions& options) {
  const plan::StepTime& time = report.estimate.time;
  const plan::Case& run = report.request.run;
  fmt::print("{}", plan_title(report.request));
  fmt::print(
      "step {}: compute {}, bubble {}, gradients {}, optimizer {}, besides {}; {} tokens/s\n",
      plan::time_text(time.step_s), plan::time_text(time.compute_s),
      plan::time_text(time.pp_bubble_s), plan::time_text(time.dp_exposed_s),
      plan::time_text(time.optimizer_s), plan::time_text(time.overhead_s),
      plan::number_text(report.estimate.tokens_per_s));
  if (!report.estimate.fits) {
    const plan::Memory& memory = report.estimate.memory[report.estimate.worst_rank];
    fmt::print("it does not fit: a GPU would hold {} and has {}\n",
               plan::bytes_text(memory.total()),
               plan::bytes_text(static_cast<double>(run.cluster.device.memory_bytes)));
  }
  if (!report.trace.empty()) {
    fmt::print("trace: {}{}; of all ranks of a stage the first, as the others do the same\n",
               report.trace.front(),
               report.trace.size() > 1 ? " to " + report.trace.back() : std::string());
  }
  if (report.failures) print_failures(*report.failures);
  if (report.training) print_training(*report.training, options, run.cluster);
}

Json failures_json(const FailureReport& failures, uint64_t seed) {
  const plan::FailureModel& model = failures.model;
  const plan::SimulatedRun& run = failures.simulated;
  return {{"parts", model.num_parts},
          {"part_mtbf_hours", model.part_mtbf_hours},
          {"mtbf_s", model.mtbf_s()},
          {"save_s", model.save_s},
          {"restart_s", model.restart_s},
          {"young_interval_s", plan::young_interval_s(model)},
          {"daly_interval_s", plan::daly_interval_s(model)},
          {"best_interval_s", plan::best_interval_s(model)},
          {"interval_s", failures.interval_s},
          {"goodput", failures.goodput},
          {"simulated",
           {{"seed", seed},
            {"failures", run.failures},
            {"goodput", run.goodput},
            {"standard_error", run.standard_error},
            {"work_s", run.work_s},
            {"saving_s", run.saving_s},
            {"lost_s", run.lost_s},
            {"restarting_s", run.restarting_s},
            {"time_s", run.time_s}}},
          {"agrees", failures.agrees()}};
}

Json json_of(const Report& report, const SimulateOptions& options) {
  const plan::StepTime& time = report.estimate.time;
  Json json = case_json(report.request);
  json["fits"] = report.estimate.fits;
  json["step_s"] = time.step_s;
  json["tokens_per_s"] = report.estimate.tokens_per_s;
  json["trace"] = report.trace;
  if (report.failures) json["failures"] = failures_json(*report.failures, options.seed);
  if (!report.training) return json;
  const TrainingReport& training = *report.training;
  json["training"] = {{"tokens", training.tokens},
                      {"scaling_law", law_of(options).source},
                      {"loss", training.loss},
                      {"steps", training.cost.steps},
                      {"work_days", training.cost.work_s / 86400},
                      {"train_days", training.cost.days()},
                      {"gpu_hours", training.cost.gpu_hours},
                      {"cost_usd", training.cost.usd}};
  return json;
}

void add_options(CLI::App& verb, SimulateOptions& options) {
  options.plan.add_to(verb);
  const char* group = "Simulated";
  verb.add_option("--trace", options.trace, "Folder for the step's Chrome traces, rank-R.json")
      ->type_name("FOLDER")
      ->group(group);
  const auto number = [&](const char* names, double& value, const char* about, double least) {
    verb.add_option(names, value, about)
        ->type_name("NUMBER")
        ->check(CLI::Range(least, 1e12))
        ->check([](const std::string& text) {  // a range lets what is not a number through
          return text.find_first_of("nN") == std::string::npos ? "" : text + " is not a number";
        })
        ->group(group);
  };
  number("--mtbf-hours,--mtbf_hours", options.mtbf_hours,
         "Mean time between failures of one part; without it nothing fails", 1e-6);
  verb.add_option("--mtbf-of,--mtbf_of", options.mtbf_of,
                  "The part: gpu, node, or run for all together (gpu)")
      ->check(CLI::IsMember({"gpu", "node", "run"}))
      ->group(group);
  number("--save-s,--save_s", options.save_s, "What a checkpoint stops the run for (60)", 1e-6);
  number("--restart-s,--restart_s", options.restart_s, "From a failure until it goes on (300)", 0);
  number("--interval-s,--interval_s", options.interval_s, "Work between checkpoints (Daly's best)",
         1e-6);
  verb.add_option("--seed", options.seed, "Of the failures that are simulated (1)")->group(group);
  number("--loss", options.loss, "Train until the scaling law says this loss", 1e-6);
  verb.add_option("--law", options.law, "Scaling law: hoffmann (2022) or besiroglu (2024)")
      ->check(CLI::IsMember({"hoffmann", "besiroglu"}))
      ->group(group);
  verb.add_flag("--json", options.json, "One JSON object")->group(group);
}

}  // namespace

void add_simulate_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "simulate", "a planned step as a trace; failures, goodput, days and cost of a long run");
  verb->footer(
      "Exit status 1 when the simulated failures do not bear out the formula, 3 when the layout "
      "does "
      "not fit in memory; everything is printed still. docs/simulation.md has the models.");
  const auto options = std::make_shared<SimulateOptions>();
  add_options(*verb, *options);
  verb->callback([options, &status] {
    const Report report = simulate(*options);
    if (options->json) {
      fmt::print("{}\n", json_of(report, *options).dump(2));
    } else {
      print_report(report, *options);
    }
    if (!report.estimate.fits) status = kDoesNotFit;
    if (report.failures && !report.failures->agrees()) status = kRunFailed;
  });
}

}  // namespace tessera::cli
