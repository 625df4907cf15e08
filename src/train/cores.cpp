#include "train/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

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

/// Quotas nest: the least of `group` and all groups around it, up to the mount point. A container
/// often sees the host's path of its group but only its own files; then the mount point alone
/// exists, and it is the container's group.
int hierarchy_limit(const fs::path& mount, const std::string& group) {
  int limit = group_limit(mount);
  if (group.find("..") != std::string::npos) return limit;
  fs::path folder = mount;
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    limit = std::min(limit, group_limit(folder));
  }
  return limit;
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

/// Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH. No controllers: the one tree of v2, mounted
/// at the root or, on hybrid systems, at root/unified. Else a tree of v1.
int quota_cores(const CoreSources& sources) {
  const fs::path root = sources.cgroup_root;
  int limit = group_limit(root);
  std::ifstream file(sources.cgroup_file);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    std::vector<fs::path> mounts;
    if (controllers.empty()) {
      mounts = {root, root / "unified"};
    } else if (lists_cpu(controllers)) {
      mounts = {root / "cpu", root / controllers};
    }
    for (const fs::path& mount : mounts) limit = std::min(limit, hierarchy_limit(mount, group));
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
