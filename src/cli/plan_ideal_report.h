#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/plan_report.h"
#include "plan/ideal.h"

namespace tessera::cli {

/// The textbook's plan as a person reads it, and as JSON with the keys of an estimate and its own.
std::string ideal_text(const PlanRequest& request, const plan::Ideal& ideal,
                       const PlanNotes& notes);
nlohmann::ordered_json ideal_json(const PlanRequest& request, const plan::Ideal& ideal,
                                  const PlanNotes& notes);

}  // namespace tessera::cli
