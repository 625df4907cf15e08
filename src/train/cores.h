#pragma once

// How many cores may this process keep busy? Not how many the machine has: a container's quota and
// a batch system's affinity mask are smaller, and threads beyond them make a run many times slower.

#include <string>

namespace tessera::train {

/// Where the system says what a process may use. The defaults are Linux's; tests put their own.
struct CoreSources {
  int hardware = 0;  ///< cores on line; 0: ask the system
  int affinity = 0;  ///< cores in this process's affinity mask; 0: ask the system
  std::string cgroup_file = "/proc/self/cgroup";  ///< which control groups this process is in
  std::string cgroup_root = "/sys/fs/cgroup";     ///< where their files are mounted
};

/// The least of: cores on line, the affinity mask, and the CPU quota of every control group around
/// this process (cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us`), rounded down. At least 1. A source
/// that cannot be read sets no limit.
int usable_cores(const CoreSources& sources = {});

}  // namespace tessera::train
