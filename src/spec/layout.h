#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// A way to cut a run over ranks: "dp=4,accumulate=2,backend=shm". 0 means: not said.
struct Layout {
  int64_t dp = 1;             ///< data-parallel replicas
  int64_t accumulate = 0;     ///< micro-batches of the largest share, at most
  int64_t micro_batch = 0;    ///< sequences of a micro-batch; the whole share when neither is said
  int64_t zero = -1;          ///< ZeRO stage; -1: not said
  int64_t shard = 0;          ///< ranks a shard group spans
  int64_t bucket_bytes = -1;  ///< -1: not said
  int64_t prefetch = -1;      ///< -1: not said
  Backend backend = Backend::automatic;
  bool has_recompute = false;
  Recompute recompute = Recompute::none;
};

struct LayoutList {
  std::vector<Layout> layouts;
  std::vector<Violation> violations;
};

/// Reads the layout grammar: key=value joined by commas, layouts by semicolons. White space is
/// free. Every mistake is listed; keys that a later version brings are named as such.
LayoutList parse_layouts(std::string_view text);

/// The layout in its own grammar, only what was said.
std::string to_string(const Layout& layout);

/// The layout of a resolved config, without what is as it is by itself.
Layout layout_of(const RunConfig& config);

/// The layout with what it does not say of sharding as the config has it: of several ranks the
/// stage, and where stage or ranks are not said anew the shard group, as far as that divides.
Layout completed(Layout layout, const RunConfig& config);

/// The config of a run in that layout, completed, of the same global batch. `config` is resolved.
RunConfig with_layout(RunConfig config, const Layout& layout);

}  // namespace tessera::spec
