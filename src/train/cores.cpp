#include "train/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "train/control_groups.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

constexpr int kNoLimit = std::numeric_limits<int>::max();

/// The mask grows until the kernel's fits: cpu_set_t ends at 1024 cores.
int affinity_cores() {
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cpus);
    if (mask == nullptr) return kNoLimit;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const bool read = sched_getaffinity(0, bytes, mask) == 0;
    const int count = read ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (read) return count;
  }
  return kNoLimit;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Whole cores of a quota a period, both in microseconds; a period that is missing is the kernel's
/// default. "max" (v2) and negative quotas (v1) are no limit.
int whole_cores(const std::string& quota, const std::string& period) {
  std::istringstream quota_in(quota), period_in(period);
  double used = 0;
  double every = 0;
  if (!(quota_in >> used) || used <= 0) return kNoLimit;
  if (!(period_in >> every) || every <= 0) every = 100000;
  return static_cast<int>(std::clamp(used / every, 1.0, 1e6));
}

/// The limit set by one group itself; a folder has the files of v2, of v1, or neither.
int group_limit(const fs::path& folder) {
  std::istringstream v2(first_line(folder / "cpu.max"));
  std::string quota, period;
  v2 >> quota >> period;
  return std::min(whole_cores(quota, period),
                  whole_cores(first_line(folder / "cpu.cfs_quota_us"),
                              first_line(folder / "cpu.cfs_period_us")));
}

int quota_cores(const CoreSources& sources) {
  int limit = kNoLimit;
  for (const fs::path& group : control_groups("cpu", sources.cgroup_root, sources.cgroup_file)) {
    limit = std::min(limit, group_limit(group));
  }
  return limit;
}

}  // namespace

int usable_cores(const CoreSources& sources) {
  const int hardware =
      sources.hardware > 0 ? sources.hardware : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int affinity = sources.affinity > 0 ? sources.affinity : affinity_cores();
  return std::max(1, std::min({hardware, affinity, quota_cores(sources)}));
}

}  // namespace tessera::train
