// Memory of a rank at the peak of its step. Activations are counted as Korthikanti et al. 2022
// ("Reducing Activation Recomputation in Large Transformer Models") count them, tensor by tensor,
// for each kind of layer and stack; states as Rajbhandari et al. 2020 (ZeRO).

#include <algorithm>
#include <cmath>

#include "plan/activations.h"
#include "plan/parts.h"

namespace tessera::plan {

namespace {

/// State of parameters, from each stage of ZeRO on cut over `shards` ranks.
void add_states(Memory& memory, double parameters, const StateBytes& bytes, int64_t zero,
                int64_t shards) {
  const auto by = [&](int64_t from_stage) {
    return zero >= from_stage ? static_cast<double>(shards) : 1.0;
  };
  memory.weights += parameters * bytes.weight / by(3);
  memory.gradients += parameters * bytes.gradient / by(2);
  memory.optimizer += parameters * bytes.optimizer / by(1);
}

Memory memory_of(const Case& run, int64_t pp_rank, int64_t micro_batches) {
  const std::vector<Stage> stages = stages_of_rank(run, pp_rank);
  const LocalParameters local = parameters_of(run, stages);
  const StateBytes bytes = bytes_per_parameter(run);
  const Layout& layout = run.layout;
  const int64_t shards = layout.shards();
  Memory memory;
  if (run.recipe.fine_tune == FineTune::full) {
    add_states(memory, local.dense, bytes, layout.zero, shards);
    add_states(memory, local.experts, bytes, layout.zero, expert_shards(layout));
  } else {
    memory.weights = local.total() * frozen_weight_bytes(run.recipe) /
                     (layout.zero == 3 ? static_cast<double>(shards) : 1);
    add_states(memory, local.trainable, bytes, layout.zero, shards);
  }
  if (layout.zero == 3 && shards > 1) {
    // The layer in use, the one gathered ahead, and the gradient of a whole one until it is cut.
    memory.gathered = 2 * local.largest_unit * bytes.weight + local.largest_edge * bytes.weight +
                      local.largest_unit * bytes.gradient;
    if (!layout.reshard_after_forward) {
      // Whole from the first micro-batch to the last, and the gradients they add to with them.
      memory.gathered += local.dense * (bytes.weight + (layout.pp > 1 ? bytes.gradient : 0));
    }
  }

  double per_micro_batch = 0, working = 0;
  for (const Stage& stage : stages) {
    const StageActivations activations = stage_activations(run, stage);
    per_micro_batch += activations.kept;
    working = std::max(working, activations.working);
    memory.logits = std::max(memory.logits, activations.logits);
  }
  const double chunks = chunks_in_flight(layout, pp_rank, micro_batches);
  memory.activations =
      per_micro_batch / static_cast<double>(stages.size()) * chunks + working + memory.logits;
  if (layout.pp > 1) {
    memory.communication +=
        4 * static_cast<double>(layout.micro_batch * run.recipe.seq_len) /
        static_cast<double>(layout.cp) * static_cast<double>(run.model.dense.hidden_size) *
        stream_bytes(run.recipe) / static_cast<double>(layout.sequence_parallel ? layout.tp : 1);
  }
  memory.runtime = runtime_bytes(run.stack, memory);
  return memory;
}

}  // namespace

double runtime_bytes(const Stack& stack, Memory memory) {
  memory.runtime = 0;
  return stack.runtime_bytes + stack.allocator_loss * memory.total();
}

std::vector<Memory> memory_of_ranks(const Case& run) {
  const int64_t micro_batches = num_micro_batches(run.recipe, run.layout);
  std::vector<Memory> ranks;
  for (int64_t rank = 0; rank < run.layout.pp; ++rank) {
    ranks.push_back(memory_of(run, rank, micro_batches));
  }
  return ranks;
}

size_t worst_rank(const std::vector<Memory>& ranks) {
  const auto worst = std::max_element(
      ranks.begin(), ranks.end(),
      [](const Memory& one, const Memory& other) { return one.total() < other.total(); });
  return static_cast<size_t>(worst - ranks.begin());
}

}  // namespace tessera::plan
