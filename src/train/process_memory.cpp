#include "train/process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

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

}  // namespace tessera::train
