#pragma once

#include <string>

#include "spec/run_config.h"

namespace tessera::cli {

/// Whether a run's ranks differ by more than their share of the batch.
bool has_mesh(const spec::RunConfig& config);

/// The ranks of a run as a mesh: a row for each place of pipeline and data parallelism with the
/// ranks that share its products, the blocks of each rank's stages, and the groups of each axis;
/// several lines. Of many rows or groups the first are shown. `config` is resolved.
std::string mesh_table(const spec::RunConfig& config);

}  // namespace tessera::cli
