#include "cli/own_program.h"

#include <limits.h>
#include <unistd.h>

namespace tessera::cli {

std::string own_program() {
  char path[PATH_MAX + 1];
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  return !program.empty() && access(program.c_str(), X_OK) == 0 ? program : "/proc/self/exe";
}

}  // namespace tessera::cli
