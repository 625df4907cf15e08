#pragma once

// How a planned run is cut over devices, and what it trains. spec::RunConfig is the same for a run
// of this engine; here are the axes and recipes too that the engine does not have yet.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/cluster.h"
#include "plan/model.h"
#include "spec/run_config.h"
#include "spec/schedule.h"

namespace tessera::plan {

struct Layout {
  int64_t tp = 1;  ///< ranks that share every product
  int64_t cp = 1;  ///< ranks that share every sequence
  int64_t pp = 1;  ///< ranks that each have a run of the layers
  int64_t dp = 1;  ///< replicas
  int64_t ep = 1;  ///< ranks, of dp · cp · tp, over which the experts of a layer are spread
  int64_t v = 1;   ///< stages on each rank of the pipeline
  bool sequence_parallel = false;
  spec::ScheduleKind schedule = spec::ScheduleKind::one_f_one_b;
  int64_t zero = 0;                   ///< ZeRO stage
  int64_t shard = 0;                  ///< ranks of a shard group; 0: all of dp · cp
  bool reshard_after_forward = true;  ///< stage 3: weights are gathered again for the backward
  int64_t micro_batch = 1;            ///< sequences
  spec::Recompute recompute = spec::Recompute::none;
  std::vector<int64_t> layers_per_stage;  ///< of pp · v stages; empty: as even as can be

  int64_t devices() const { return tp * cp * pp * dp; }
  int64_t stages() const { return pp * v; }
  /// Ranks over which training states are spread.
  int64_t shards() const { return zero == 0 ? 1 : shard > 0 ? shard : dp * cp; }
};
/// "tp=8,pp=4,dp=8,zero=1", what is as it is by itself left out.
std::string to_string(const Layout& layout);

enum class Optimizer : uint8_t { adamw, adam8bit, muon, sgd };
/// Full: every weight. LoRA: adapters beside frozen 16-bit weights. QLoRA: beside 4-bit ones.
enum class FineTune : uint8_t { full, lora, qlora };

/// What is trained, whatever the layout.
struct Recipe {
  int64_t seq_len = 4096;
  int64_t global_batch = 1024;   ///< sequences
  Format format = Format::bf16;  ///< of products
  int64_t gradient_bytes = 4;    ///< of one gradient in its buffer
  Optimizer optimizer = Optimizer::adamw;
  FineTune fine_tune = FineTune::full;
  int64_t lora_rank = 16;
  double dropout = 0;
};

/// Micro-batches that a replica takes in a step.
int64_t num_micro_batches(const Recipe& recipe, const Layout& layout);

/// Whether replicas may take shares of the batch that differ, and smaller last micro-batches. The
/// engine does; most others do not, and a search has no use for them.
enum class UnevenBatches : uint8_t { refused, taken };

/// Everything that makes the layout impossible, each with its nearest legal values; empty: legal.
/// Memory is not asked here.
std::vector<spec::Violation> mistakes(const Model& model, const Recipe& recipe,
                                      const Layout& layout,
                                      UnevenBatches uneven = UnevenBatches::refused);

/// The blocks of every stage, [pp · v]: those given, or even, the middle ones with one more.
std::vector<int64_t> blocks_of_stages(const Model& model, const Layout& layout);

}  // namespace tessera::plan
