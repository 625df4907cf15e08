// tessera plan: what a layout takes on machines that are not here, before anything is run on them.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flag_reader.h"
#include "cli/plan_args.h"
#include "cli/plan_config.h"
#include "cli/plan_ideal_report.h"
#include "cli/plan_report.h"
#include "cli/plan_search.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "plan/explain.h"
#include "plan/not_run_yet.h"

namespace tessera::cli {
namespace {

struct Options {
  PlanArgs args;
  PlanSearchOptions search;
  ConfigArgs config;
  PlanConfigOptions here;
  bool ideal = false;
  std::string flops_per_gpu;
  bool explain = false;
  bool json = false;
};

PlanNotes notes_of(const PlanRequest& request) {
  PlanNotes notes;
  notes.not_run_yet = plan::not_run_yet(request.run);
  return notes;
}

plan::TrainingPlan training_of(const PlanRequest& request) {
  return {request.parameters, request.tokens, request.tuned_batch};
}

/// The reasons of a plan, and those of a training on its tokens where some were given.
void explain(const PlanRequest& request, std::vector<plan::Reason> why, double flops_per_token,
             double tokens_per_s, PlanNotes& notes) {
  notes.why = std::move(why);
  if (request.tokens <= 0) return;
  const std::vector<plan::Reason> training =
      plan::explain({request.tokens, flops_per_token, tokens_per_s, request.gpus,
                     request.run.cluster.usd_per_device_hour});
  notes.why.insert(notes.why.end(), training.begin(), training.end());
}

int estimate(const Options& options) {
  if (!options.flops_per_gpu.empty()) {
    throw core::ConfigError(
        "--flops-per-gpu is the textbook's only efficiency: it needs --ideal; without, the rate of "
        "every product follows from its shape");
  }
  const PlanRequest request = options.args.read();
  if (request.parameters > 0) {
    throw core::ConfigError(
        "--params tells no shape, and the time of a step follows from shapes: name a --model, or "
        "ask for the textbook's plan with --ideal");
  }
  plan::EstimateOptions how;
  how.explain = options.explain;
  const plan::Estimate estimate = plan::estimate(request.run, request.constants, how);
  PlanNotes notes = notes_of(request);
  notes.warnings = plan::warnings(request.run, estimate, training_of(request));
  if (options.explain) {
    const double tokens = static_cast<double>(request.run.recipe.global_batch) *
                          static_cast<double>(request.run.recipe.seq_len);
    explain(request, estimate.why, estimate.model_flops / tokens, estimate.tokens_per_s, notes);
    notes.not_modelled = estimate.not_modelled;
  }
  if (options.json) {
    fmt::print("{}\n", plan_json(request, estimate, notes).dump(2));
  } else {
    fmt::print("{}", plan_text(request, estimate, notes));
  }
  return estimate.fits ? kDone : kDoesNotFit;
}

int textbook(const Options& options) {
  PlanRequest request = options.args.read();
  // Gradients are of the weights' 16 bits there, in a copy that Adam's master weights do without.
  if (!request.says("gradient-dtype")) request.run.recipe.gradient_bytes = 2;
  plan::IdealCase given{request.run, request.parameters, 0};
  if (!options.flops_per_gpu.empty()) {
    given.flops_per_device = scaled_number(options.flops_per_gpu).value_or(0);
    if (given.flops_per_device < kLeastRate || given.flops_per_device > kMostOfAnything) {
      throw core::ConfigError("--flops-per-gpu " + options.flops_per_gpu + " is not a number " +
                              range_text(kLeastRate) + "; try: 150e12");
    }
  }
  const plan::Ideal ideal = plan::ideal(given);
  PlanNotes notes = notes_of(request);
  notes.warnings = plan::warnings(given, ideal, training_of(request));
  if (options.explain) {
    explain(request, plan::explain(given, ideal), 6 * ideal.active, ideal.tokens_per_s, notes);
    notes.not_modelled = plan::not_modelled(given);
  }
  if (options.json) {
    fmt::print("{}\n", ideal_json(request, ideal, notes).dump(2));
  } else {
    fmt::print("{}", ideal_text(request, ideal, notes));
  }
  return ideal.fits ? kDone : kDoesNotFit;
}

/// The flags of a cluster's plan say nothing of a config's, and the other way round.
int plan_run_here(Options& options) {
  const bool of_clusters = options.args.any_but({"links", "gpus"}) || options.search.any() ||
                           options.ideal || options.explain;
  if (of_clusters) {
    throw core::ConfigError(
        "a CONFIG.toml is planned for this machine, and its layout is the config's: leave out the "
        "flags of clusters and layouts; say --ranks N for the world, and --parallelism.… keys");
  }
  const std::string gpus = options.args.given("gpus");
  if (!gpus.empty()) {
    throw core::ConfigError("--gpus " + gpus + ": this machine's run has ranks; try: --ranks " +
                            gpus);
  }
  options.here.links = options.args.given("links");
  options.here.json = options.json;
  return plan_config(options.config, options.here);
}

int run(Options& options) {
  if (!options.config.sources().files.empty()) return plan_run_here(options);
  if (options.here.ranks > 0 || !options.here.kernels.empty()) {
    throw core::ConfigError(
        "--ranks and --kernels belong to the plan of a run on this machine: name its CONFIG.toml. "
        "Devices of a cluster are --gpus");
  }
  if (options.search.any()) {
    if (options.ideal || !options.flops_per_gpu.empty()) {
      throw core::ConfigError(
          "--ideal and --flops-per-gpu are of the textbook's plan of one layout: --search, "
          "--advise, --emit and --out go by the full model; leave out the one or the other");
    }
    return plan_search(options.args, options.search, {options.json, options.explain});
  }
  return options.ideal ? textbook(options) : estimate(options);
}

void add_run_here(CLI::App& verb, Options& options) {
  options.config.add_to(verb, "");
  const char* group = "A run on this machine (CONFIG.toml)";
  verb.add_option("--ranks", options.here.ranks,
                  "Of the world; else as few as the config's degrees need")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  verb.add_option("--kernels", options.here.kernels,
                  "A file of `bench kernels --out`; what it lacks is measured, and added to it")
      ->group(group);
}

}  // namespace

void add_plan_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "plan", "Predict a run's memory, traffic and time, here or on any cluster");
  const auto options = std::make_shared<Options>();
  options->args.add_to(*verb);
  options->search.add_to(*verb);
  verb->add_flag("--ideal", options->ideal,
                 "The textbook's plan: 6 N D FLOPs, even division, no loss but the bubble");
  verb->add_option("--flops-per-gpu,--flops_per_gpu", options->flops_per_gpu,
                   "With --ideal, what a device reaches (the peak in bf16)")
      ->type_name("FLOP/S");
  verb->add_flag("--explain", options->explain,
                 "Every number with its formula and its values, and what is not modelled");
  verb->add_flag("--json", options->json, "Print one JSON object");
  add_run_here(*verb, *options);
  verb->footer(
      "Usage: tessera plan --model MODEL --cluster CLUSTER --gpus N [FLAGS]\n"
      "       tessera plan CONFIG.toml… [--section.key value …] [--ranks N]\n"
      "The second is of a run of this engine on this machine, from what its parts are measured to "
      "take. Exit status 3 when the layout does not fit in memory; everything is printed still.");
  add_plan_validate_action(*verb);
  add_plan_calibrate_action(*verb, status);
  verb->callback([options, verb, &status] {
    if (verb->get_subcommands().empty()) status = run(*options);  // else an action of this verb
  });
}

}  // namespace tessera::cli
