#pragma once

// What a search found, as a person reads it and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/search.h"

namespace tessera::cli {

std::string search_text(const plan::SearchSpace& space, const plan::SearchResult& result,
                        double seconds);
nlohmann::ordered_json search_json(const plan::SearchSpace& space, const plan::SearchResult& result,
                                   double seconds);

}  // namespace tessera::cli
