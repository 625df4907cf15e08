#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::train {

/// The folders of the control groups that this process is in, as far as they have to do with
/// `controller` ("cpu", "memory"): its own and all around it up to the mount point, since limits
/// nest. `root` is where groups are mounted, `file` /proc/self/cgroup. Folders need not exist: a
/// container often sees the host's path of its group but only its own files.
std::vector<std::filesystem::path> control_groups(const std::string& controller,
                                                  const std::filesystem::path& root,
                                                  const std::filesystem::path& file);

}  // namespace tessera::train
