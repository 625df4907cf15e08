#pragma once

// How the ranks of a world ended, and what that means: who failed first, and who only followed.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "train/rank_process.h"

namespace tessera::train {

struct RankEnd {
  int rank = 0;
  pid_t pid = 0;
  ProcessEnd end;
  double seconds = 0;    ///< after the start of the world
  int told_to_stop = 0;  ///< the last signal the launcher had sent it: 0, SIGTERM or SIGKILL
};

/// Whether `candidate`, seen ended no earlier than `first`, is yet the better guess at who failed
/// first. A rank that dies wakes its peers before it is seen dead (the kernel first gives its
/// memory back), and they exit with 1: so a signal that the launcher did not send outweighs an
/// exit, and of two ends seen at one moment (`together`) a status other than 1 outweighs 1.
bool better_culprit(const RankEnd& candidate, const RankEnd& first, bool together);

/// One sentence for people: what the first failing rank did and when, and how the others followed.
/// `ends` in the order they were seen, `first` an index into it.
std::string describe_failure(const std::vector<RankEnd>& ends, size_t first);

/// Ranks that died of themselves: the first to fail, and all that a signal killed which the
/// launcher did not send. Those that stopped because a peer was gone do not count.
int count_lost(const std::vector<RankEnd>& ends, size_t first);

/// "rank 3", "ranks 0, 1, 3", "ranks 0-5, 7".
std::string list_ranks(std::vector<int> ranks);

/// "signal 9 (SIGKILL)".
std::string name_signal(int number);

}  // namespace tessera::train
