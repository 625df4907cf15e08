#pragma once

#include <cstdint>
#include <vector>

#include "spec/run_config.h"

namespace tessera::train {

/// Throws ConfigError when tensor-parallel ranks are on different hosts and the config does not say
/// that they may be. `host_of`: by rank; empty: all on one host. `tensor_bytes_per_step`: what a
/// rank sends its tensor-parallel peers in a step. `config` is resolved.
void check_mesh_on_hosts(const spec::RunConfig& config, const std::vector<int>& host_of,
                         int64_t tensor_bytes_per_step);

}  // namespace tessera::train
