#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// A way to cut a run over ranks: "dp=2,tp=2,sp=1,accumulate=2,backend=shm".
struct Layout {
  int64_t dp = 1;             ///< data-parallel replicas
  int64_t tp = 1;             ///< ranks that share every product
  int64_t pp = 1;             ///< ranks that each have a run of the blocks
  int sp = -1;                ///< sequence parallelism; -1: not said
  int64_t v = 0;              ///< stages on each rank of a pipeline; 0: not said
  std::string schedule;       ///< of a pipeline, by name or file; empty: not said
  int64_t accumulate = 0;     ///< micro-batches of the largest share, at most; 0: not said
  int64_t micro_batch = 0;    ///< sequences of a micro-batch; 0: not said
  int64_t zero = -1;          ///< ZeRO stage; -1: not said
  int64_t shard = 0;          ///< ranks a shard group spans; 0: not said
  int64_t bucket_bytes = -1;  ///< -1: not said
  int64_t prefetch = -1;      ///< -1: not said
  Backend backend = Backend::automatic;
  bool has_recompute = false;
  Recompute recompute = Recompute::none;

  int64_t ranks() const { return tp * pp * dp; }
};

struct LayoutList {
  std::vector<Layout> layouts;
  std::vector<Violation> violations;
};

/// Reads the layout grammar: key=value joined by commas, layouts by semicolons. Of values divided
/// by bars ("tp=1|2,zero=0|1") every combination is a layout, the last key changing fastest. White
/// space is free. Every mistake is listed; keys that a later version brings are named as such.
LayoutList parse_layouts(std::string_view text);

/// The layout in its own grammar, only what was said.
std::string to_string(const Layout& layout);

/// The layout of a resolved config, without what is as it is by itself.
Layout layout_of(const RunConfig& config);

/// The layout with what it does not say as the config has it, as far as that fits: of several
/// data-parallel ranks the ZeRO stage, and where stage or ranks are not said anew the shard group;
/// of several tensor-parallel ranks sequence parallelism; of a pipeline the schedule and, with it,
/// the stages on a rank: those that a schedule of several needs are two where nobody says more.
Layout completed(Layout layout, const RunConfig& config);

/// The config of a run in that layout, completed, of the same global batch. A micro-batch is the
/// whole share where the layout does not say otherwise; in a pipeline there are 2 · pp of them, as
/// far as there are samples. layers_per_stage are the config's where it has as many stages.
/// `config` is resolved.
RunConfig with_layout(RunConfig config, const Layout& layout);

}  // namespace tessera::spec
