#pragma once

#include <string>
#include <vector>

namespace tessera::comm {

/// Ranks that were split off, as messages name them.
struct Group {
  std::string name;        ///< what it is for, "dp"; may be empty
  std::vector<int> ranks;  ///< its ranks in order, by their numbers in the world
};

/// "group dp (ranks 0..3)", "group (ranks 0, 2, 4)"
std::string name_of(const Group& group);

}  // namespace tessera::comm
