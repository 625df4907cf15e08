#pragma once

// What a search found, as a person reads it and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/advice.h"
#include "plan/search.h"

namespace tessera::cli {

std::string search_text(const plan::SearchSpace& space, const plan::SearchResult& result,
                        double seconds);
nlohmann::ordered_json search_json(const plan::SearchSpace& space, const plan::SearchResult& result,
                                   double seconds);

/// The questions with their answers, and how far they lead from the search's best.
std::string advice_text(const plan::SearchSpace& space, const plan::SearchResult& result,
                        const plan::Advice& advice);
nlohmann::ordered_json advice_json(const plan::SearchSpace& space, const plan::Advice& advice);

}  // namespace tessera::cli
