#pragma once

// The places that launchers of whole jobs give: Open MPI's mpirun and Slurm's srun.

#include <optional>
#include <string>

#include "train/environment.h"
#include "train/variables.h"

namespace tessera::train {

/// The rank that mpirun or srun started, or nothing where neither has. Throws ConfigError for a set
/// of variables that is incomplete or contradicts itself.
std::optional<RankEnvironment> read_job(const Variables& variables);

/// Throws ConfigError where an MPICH or one of its kin has started several copies.
void refuse_mpich(const Variables& variables);

/// Fit for a file's name: anything but letters, digits and "-.:" becomes '_'.
std::string as_name(std::string text);

/// Entry `index` of Slurm's list of counts: "4(x2),3" is 4, 4, 3. Nothing where it has none.
std::optional<int> tasks_of_node(const std::string& list, int index);

}  // namespace tessera::train
