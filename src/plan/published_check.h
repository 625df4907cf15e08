#pragma once

// What makes a published row one that no case can be made of, whatever else it says.

#include <string>

#include "plan/published_run.h"

namespace tessera::plan {

/// A word that is not known, a count beyond what any machine or model has, a shape whose parameters
/// 64 bits do not count: the first that is found, with its column. "": none. Empty cells are fine.
std::string impossible_in(const PublishedRun& row);

}  // namespace tessera::plan
