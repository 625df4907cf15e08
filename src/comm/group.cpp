#include "comm/group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::comm {

std::string name_of(const Group& group) {
  const size_t count = group.ranks.size();
  const bool run =
      count > 2 && group.ranks.back() - group.ranks.front() + 1 == static_cast<int>(count);
  const std::string ranks = run ? fmt::format("{}..{}", group.ranks.front(), group.ranks.back())
                                : fmt::format("{}", fmt::join(group.ranks, ", "));
  return fmt::format("group{}{} (ranks {})", group.name.empty() ? "" : " ", group.name, ranks);
}

}  // namespace tessera::comm
