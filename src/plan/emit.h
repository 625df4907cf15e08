#pragma once

// A layout in the words of those who run it: this engine's layout.toml, and flags or files for
// people who train elsewhere. What the other side cannot say or do is written down as a comment
// there, never left out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/estimate.h"

namespace tessera::plan {

/// The systems that a layout can be written for.
///   tessera     a TOML file that goes after a run's own: [training], [parallelism],
///               [activation_checkpoint]; `tessera train` takes it as it is where not_run_yet()
///               finds nothing but the device, else what is not there yet is commented out
///   megatron    a bash array of Megatron-LM's flags (megatron/training/arguments.py, 2026)
///   deepspeed   a ds_config.json; remarks are under its key "_comment", which DeepSpeed ignores
///   torchtitan  TOML of v0.2 (torchtitan/config/job_config.py)
enum class System : uint8_t { tessera, megatron, deepspeed, torchtitan };
/// Of megatron, deepspeed, torchtitan; others: none.
std::optional<System> find_system(std::string_view name);

/// The text, with a newline at its end.
std::string emit(const Case& run, System system);

}  // namespace tessera::plan
