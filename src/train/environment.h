#pragma once

// Who am I, who are my peers? Whoever starts the ranks of a run answers in environment variables.

#include <functional>
#include <optional>
#include <string>

namespace tessera::train {

/// std::getenv's shape: the value of a variable, or nullptr where it is not set. An empty value
/// counts as not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Who started the ranks.
enum class Launcher { none, tessera, torchrun, open_mpi, slurm };
/// "torchrun", "Open MPI's mpirun": for the log.
const char* name_of(Launcher launcher);

/// One rank's place in its world. The defaults are the world of one.
struct RankEnvironment {
  int rank = 0;  ///< 0 … world_size − 1; may change from one restart to the next
  int world_size = 1;
  int local_rank = 0;        ///< among the ranks of this host
  int local_world_size = 1;  ///< less than world_size: there are several hosts
  /// A name that all ranks of this start of this run on this host share, and no other run: letters,
  /// digits and "-._:" only. A restart has another one, so that it never meets leftovers of what
  /// died. Empty for a single process that nobody launched.
  std::string rendezvous;
  Launcher launcher = Launcher::none;
  std::string source = "single process";  ///< or the launcher, for the log
  int restart_count = 0;
  /// True when this run was started before and died: what its run folder holds is to be resumed.
  bool restarted = false;
  /// Compute threads for this rank, at least 1. A guess under mpirun and srun, which may bind ranks
  /// to cores: World knows when they have met.
  int num_threads = 1;
  bool threads_requested = false;  ///< by OMP_NUM_THREADS
  /// 0, or how many neighbouring ranks count as one host, whatever host they are on: for trying out
  /// on one machine what several do.
  int ranks_per_host = 0;

  bool one_host() const { return local_world_size == world_size && ranks_per_host == 0; }
  /// Whether Open MPI can join these ranks.
  bool over_mpi() const { return launcher == Launcher::open_mpi || launcher == Launcher::slurm; }
};

/// The rank that the variables say this process is; the first source that is there wins, and must
/// be complete:
///
///   tessera launch TESSERA_LAUNCH_ID and torchrun's variables but for address and port
///   torchrun       RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE, MASTER_PORT in a world of several;
///                  MASTER_ADDR, TORCHELASTIC_RUN_ID and TORCHELASTIC_RESTART_COUNT where set.
///                  The local two may be missing in a world of one.
///   Open MPI       OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE, PMIX_NAMESPACE
///   Slurm's srun   only where a SLURM_STEP_… variable is set: an sbatch script has the others too,
///                  and is one process. SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS,
///                  SLURM_LOCALID, SLURM_STEP_TASKS_PER_NODE with SLURM_NODEID; SLURM_JOB_ID,
///                  SLURM_STEP_ID, SLURM_RESTART_COUNT
///   none of them   a single process
///
/// Several copies that an MPICH or one of its kin started (PMI_SIZE) are refused: Open MPI cannot
/// join them.
///
/// `restarted`: a restart count above 0, or TESSERA_RESTART=1.
/// `num_threads`: OMP_NUM_THREADS where it is set (its first number), else `cores` shared by the
/// ranks of this host. torchrun itself sets OMP_NUM_THREADS=1 for several ranks where the user has
/// not, which cannot be told from a user's wish: set it by hand under torchrun.
///
/// Throws ConfigError, which names the variable, its value and what would work: a set that is
/// incomplete or contradicts itself, several hosts under torchrun.
RankEnvironment read_rank_environment(const EnvironmentLookup& lookup, int cores);

/// The same of this process: its environment and usable_cores().
RankEnvironment rank_environment();

/// The number of threads that the user asks for by OMP_NUM_THREADS, its first where it is a list;
/// nothing where it is not set. Throws ConfigError where it is no number from 1 to 4096.
std::optional<int> requested_threads(const EnvironmentLookup& lookup);

/// For what runs as one process, as `tessera VERB`. Throws ConfigError where a launcher of MPI or
/// Slurm has started several copies of it: each would do the same, and write to the same files.
void check_no_foreign_world(const EnvironmentLookup& lookup, const std::string& verb);

/// check_no_foreign_world() of this process, and the threads it may compute with.
int threads_of_one_process(const std::string& verb);

}  // namespace tessera::train
