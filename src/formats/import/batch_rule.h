#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/import/mapper.h"

namespace tessera::formats {

/// Where a system says its batch sizes; empty where it has no key for one.
struct BatchKeys {
  std::string_view global;
  std::string_view micro;
  std::string_view accumulation;
  std::optional<int64_t> ranks;  ///< data-parallel ranks, where the system says how many
};

/// The rule that the global batch is micro-batch × accumulation × ranks, any two of which give the
/// third. Here the global and the micro-batch are given and accumulation follows; what needs a
/// number of ranks that nobody said is told as that.
void map_batch(Mapper& m, const BatchKeys& keys);

}  // namespace tessera::formats
