#include "train/control_groups.h"

#include <fstream>
#include <sstream>

namespace tessera::train {

namespace {

namespace fs = std::filesystem;

bool lists(const std::string& controllers, const std::string& controller) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == controller) return true;
  }
  return false;
}

}  // namespace

// Lines of the file are ID:CONTROLLERS:PATH. No controllers: the one tree of v2, mounted at the
// root or, on hybrid systems, at root/unified. Else a tree of v1.
std::vector<fs::path> control_groups(const std::string& controller, const fs::path& root,
                                     const fs::path& file) {
  std::vector<fs::path> folders = {root, root / controller};
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    std::vector<fs::path> mounts;
    if (controllers.empty()) {
      mounts = {root, root / "unified"};
    } else if (lists(controllers, controller)) {
      mounts = {root / controller, root / controllers};
    }
    for (fs::path folder : mounts) {
      folders.push_back(folder);
      if (group.find("..") != std::string::npos) continue;
      for (const fs::path& part : fs::path(group).relative_path()) {
        folder /= part;
        folders.push_back(folder);
      }
    }
  }
  return folders;
}

}  // namespace tessera::train
