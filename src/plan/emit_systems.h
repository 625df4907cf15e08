#pragma once

// The parts of emit.h, one for each system.

#include <string>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

std::string emit_megatron(const Case& run);
std::string emit_deepspeed(const Case& run);
std::string emit_torchtitan(const Case& run);

/// Two lines that say what the text is for.
std::vector<std::string> heading(const Case& run);
/// "[2, 3, 2]"
std::string numbers(const std::vector<int64_t>& values);
/// Micro-batches of a replica in a step.
int64_t accumulation(const Case& run);

}  // namespace tessera::plan
