#include "train/rank_end.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cmath>

namespace tessera::train {
namespace {

bool died_by_itself(const RankEnd& end) {
  return end.end.signal != 0 && end.told_to_stop == 0;
}

std::string describe_end(const RankEnd& end) {
  std::string how = end.end.signal != 0
                        ? fmt::format("was killed by {}", name_signal(end.end.signal))
                        : fmt::format("exited with status {}", end.end.exit_code);
  how = fmt::format("rank {} (pid {}) {} {:.1f} s after the start", end.rank, end.pid, how,
                    end.seconds);
  if (end.end.signal == SIGKILL) how += ", as the system does when memory runs out";
  return how;
}

}  // namespace

std::string name_signal(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("signal {} (SIG{})", number, name)
                         : fmt::format("signal {}", number);
}

std::string list_ranks(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string list;
  for (size_t begin = 0; begin < ranks.size();) {
    size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - begin < 3) end = begin + 1;
    if (!list.empty()) list += ", ";
    list += end - begin == 1 ? fmt::format("{}", ranks[begin])
                             : fmt::format("{}-{}", ranks[begin], ranks[end - 1]);
    begin = end;
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", list);
}

bool better_culprit(const RankEnd& candidate, const RankEnd& first, bool together) {
  const bool killed = died_by_itself(candidate);
  if (killed != died_by_itself(first)) return killed;
  return together && !killed && candidate.end.exit_code != 1 && first.end.exit_code == 1;
}

int count_lost(const std::vector<RankEnd>& ends, size_t first) {
  int lost = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (i == first || died_by_itself(ends[i])) ++lost;
  }
  return lost;
}

std::string describe_failure(const std::vector<RankEnd>& ends, size_t first) {
  std::string text = describe_end(ends[first]);
  std::vector<int> finished, followed, also_killed, terminated, killed;
  double last = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const RankEnd& end = ends[i];
    if (i == first) continue;
    if (end.told_to_stop == SIGKILL) {
      killed.push_back(end.rank);
    } else if (end.told_to_stop == SIGTERM) {
      terminated.push_back(end.rank);
    } else if (end.end.signal != 0) {
      also_killed.push_back(end.rank);
    } else if (i < first && !end.end.failed()) {
      finished.push_back(end.rank);
    } else {
      followed.push_back(end.rank);
      last = std::max(last, end.seconds - ends[first].seconds);
    }
  }
  if (!finished.empty()) text += fmt::format("; {} had finished", list_ranks(finished));
  if (!also_killed.empty())
    text += fmt::format("; {} died of a signal too", list_ranks(also_killed));
  if (!followed.empty()) {
    text += fmt::format("; {} stopped by {} within {:.1f} s", list_ranks(followed),
                        followed.size() == 1 ? "itself" : "themselves", std::ceil(last * 10) / 10);
  }
  if (!terminated.empty()) text += fmt::format("; {} stopped on SIGTERM", list_ranks(terminated));
  if (!killed.empty()) text += fmt::format("; {} had to be killed", list_ranks(killed));
  return text;
}

}  // namespace tessera::train
