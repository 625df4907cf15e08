#pragma once

// A plan as a person reads it and as JSON, whether estimated or by the textbook.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/plan_args.h"
#include "plan/warnings.h"

namespace tessera::cli {

/// Names the model, the devices and the layout in a line.
std::string plan_title(const PlanRequest& request);

/// What is not a figure: the keys of both kinds of plan.
struct PlanNotes {
  std::vector<plan::Warning> warnings;
  std::vector<std::string> not_run_yet;
  std::vector<plan::Reason> why;  ///< where asked for
  std::vector<std::string> not_modelled;
};

/// Tables of an estimate: parameters, memory of the worst rank, traffic, pipeline, time.
std::string plan_text(const PlanRequest& request, const plan::Estimate& estimate,
                      const PlanNotes& notes);
nlohmann::ordered_json plan_json(const PlanRequest& request, const plan::Estimate& estimate,
                                 const PlanNotes& notes);

/// Parts that the textbook's report has too.
nlohmann::ordered_json case_json(const PlanRequest& request);
nlohmann::ordered_json parameters_json(const plan::ParameterCounts& counts);
nlohmann::ordered_json traffic_json(const plan::Traffic& traffic);
/// The figures with which a plan of either kind ends.
struct PlanRates {
  double flops_per_step = 0;
  double flops_total = 0;  ///< for the tokens asked for
  double mfu = 0, hfu = 0;
  double tokens_per_s = 0;
};
/// These, what the training on the tokens asked for takes (null: none were), and the notes.
nlohmann::ordered_json ending_json(const PlanRequest& request, const PlanRates& rates,
                                   const PlanNotes& notes);

/// The parts of a step, every one, for other reports too.
nlohmann::ordered_json step_json(const plan::StepTime& time);
/// Warnings, what the engine does not run, the reasons, and what is not modelled.
std::string notes_text(const PlanNotes& notes);

/// Days, hours of all devices together and their price for the tokens asked for.
struct TrainingCost {
  double days = 0, gpu_hours = 0, usd = 0;
};
TrainingCost training_cost(const PlanRequest& request, double tokens_per_s);

/// As in the JSON of a plan: quantity, formula and values of each.
nlohmann::ordered_json reasons_json(const std::vector<plan::Reason>& why);

}  // namespace tessera::cli
