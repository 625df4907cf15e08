#pragma once

// A pipeline's schedule as data: what each rank does, in which order. The executor carries it out
// (parallel/pipeline), account says what it takes, a checker looks for what is wrong with it.

#include <cstdint>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// A micro-batch's way through a stage. A backward is one action, or two: the gradient of the
/// stage's input, for which the stage before waits, and that of its weights, for which nobody does.
enum class ActionKind : uint8_t { forward, backward, backward_input, backward_weight };

struct Action {
  ActionKind kind = ActionKind::forward;
  int64_t stage = 0;
  int64_t micro_batch = 0;
};

/// Stage s hands its output to stage s + 1. A rank may have several stages, its chunks.
struct Schedule {
  int64_t num_micro_batches = 0;
  std::vector<std::vector<Action>> ranks;  ///< what each does, in order
  std::vector<int64_t> rank_of_stage;

  int64_t num_ranks() const { return static_cast<int64_t>(ranks.size()); }
  int64_t num_stages() const { return static_cast<int64_t>(rank_of_stage.size()); }
  /// Ascending.
  std::vector<int64_t> stages_of(int64_t rank) const;
};

/// The schedule of a resolved config's training step.
Schedule schedule_of(const RunConfig& config);
/// Of an evaluation of so many micro-batches in the same placement: forward alone.
Schedule forward_only(const Schedule& training, int64_t num_micro_batches);
/// Buffers for gradients on their way to the stage before with which no rank waits for ever.
int64_t buffers_to_send(const Schedule& schedule);

}  // namespace tessera::spec
