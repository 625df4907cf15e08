#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/member.h"
#include "comm/pool.h"

namespace tessera::comm {

/// A rank's place in the group that it got by its color.
struct SplitGroup {
  int rank = 0;                  ///< in the group
  int64_t staging_bytes = 0;     ///< what the group may share at most
  int64_t where = -1;            ///< its board in the pool
  std::unique_ptr<Board> board;  ///< null: it is alone
};

/// Collective over `parent`'s ranks. Throws CommError, also when there is no memory.
SplitGroup split(Member& parent, Pool& pool, int color, const std::string& name);

}  // namespace tessera::comm
