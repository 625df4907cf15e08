#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tessera::comm {

/// Ranks that were split off, as messages name them.
struct Group {
  std::string name;        ///< what it is for, "dp"; may be empty
  std::vector<int> ranks;  ///< its ranks in order, by their numbers in the world
};

/// How the ranks of a board are called where they are part of a larger world, as those of one of
/// its hosts: what they are, and their numbers there. Null: the board's own numbers.
using Callsigns = std::shared_ptr<const Group>;

/// "group dp (ranks 0..3)", "group (ranks 0, 2, 4)"
std::string name_of(const Group& group);

}  // namespace tessera::comm
