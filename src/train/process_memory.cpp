#include "train/process_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "core/error.h"
#include "train/control_groups.h"

namespace tessera::train {

int64_t process_memory_bytes() {
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0 || line.rfind("RssShmem:", 0) == 0) {
      std::istringstream fields(line.substr(line.find(':') + 1));
      int64_t value = 0;
      fields >> value;
      kib += value;
    }
  }
  return kib * 1024;
}

int64_t machine_memory_bytes(const std::string& cgroup_root, const std::string& cgroup_file) {
  int64_t limit =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  for (const auto& group : control_groups("memory", cgroup_root, cgroup_file)) {
    for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
      std::ifstream file(group / name);
      int64_t value = 0;
      if (file >> value && value > 0) limit = std::min(limit, value);  // "max" is no number
    }
  }
  return limit;
}

void check_fits(int64_t bytes, const std::string& what, int num_ranks, const std::string& advice) {
  constexpr double kGiB = 1 << 30;
  const int64_t machine = machine_memory_bytes();
  if (bytes <= machine) return;
  throw core::MemoryError(
      fmt::format("{} does not fit: it takes {:.1f} GiB{}, and this machine has {:.1f}. {}", what,
                  static_cast<double>(bytes) / kGiB,
                  num_ranks > 1 ? fmt::format(" on {} ranks together", num_ranks) : "",
                  static_cast<double>(machine) / kGiB, advice));
}

}  // namespace tessera::train
