#pragma once

// Who am I, who are my peers? Whoever starts the ranks of a run answers in environment variables.
// Two launchers are understood: torchrun, and `tessera launch`, which sets torchrun's variables.

#include <functional>
#include <optional>
#include <string>

namespace tessera::train {

/// std::getenv's shape: the value of a variable, or nullptr where it is not set. An empty value
/// counts as not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// One rank's place in its world. The defaults are the world of one.
struct RankEnvironment {
  int rank = 0;  ///< 0 … world_size − 1; may change from one restart to the next
  int world_size = 1;
  int local_rank = 0;        ///< among the ranks of this host
  int local_world_size = 1;  ///< equals world_size: this version runs on one host
  /// A name that all ranks of this start of this run share, and no other run: letters, digits and
  /// "-._:" only. A restart has another one, so that it never meets leftovers of what died. Empty
  /// for a single process that nobody launched.
  std::string rendezvous;
  std::string source = "single process";  ///< or "torchrun", or "tessera launch": for the log
  int restart_count = 0;
  /// True when this run was started before and died: what its run folder holds is to be resumed.
  bool restarted = false;
  int num_threads = 1;  ///< compute threads for this rank, at least 1
};

/// The rank that the variables say this process is; the first complete source wins:
///
///   torchrun       RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE, MASTER_PORT in a world of several;
///                  MASTER_ADDR, TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT where set.
///                  The local two may be missing in a world of one.
///   tessera launch the same and TESSERA_LAUNCH_ID, which takes the place of address and port
///   neither        a single process
///
/// `restarted`: a restart count above 0, or TESSERA_RESTART=1.
/// `num_threads`: OMP_NUM_THREADS where it is set (its first number), else `cores` shared by the
/// ranks of this host. torchrun itself sets OMP_NUM_THREADS=1 for several ranks where the user has
/// not, which cannot be told from a user's wish: set it by hand under torchrun.
///
/// Throws ConfigError, which names the variable, its value and what would work: a set that is
/// incomplete or contradicts itself, a world of several hosts, and what check_no_foreign_world
/// says.
RankEnvironment read_rank_environment(const EnvironmentLookup& lookup, int cores);

/// The same of this process: its environment and usable_cores().
RankEnvironment rank_environment();

/// The number of threads that the user asks for by OMP_NUM_THREADS, its first where it is a list;
/// nothing where it is not set. Throws ConfigError where it is no number from 1 to 4096.
std::optional<int> requested_threads(const EnvironmentLookup& lookup);

/// Throws ConfigError where mpirun or srun has started several copies of this program: without a
/// transport that joins them, each would train on its own and write to the same run folder. Open
/// MPI (OMPI_COMM_WORLD_SIZE), Slurm (SLURM_NTASKS, only inside a step: an sbatch script has it too
/// and is one process), MPICH and its kin (PMI_SIZE).
void check_no_foreign_world(const EnvironmentLookup& lookup);

}  // namespace tessera::train
