#pragma once

// What of the model is on one rank of a pipeline, in parameters: the common ground of memory,
// traffic, the optimizer's time and the search.

#include <cstdint>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

/// One stage: some layers, maybe the embedding or the head.
struct Stage {
  int64_t dense_layers = 0;
  int64_t expert_layers = 0;  ///< layers with experts in place of the MLP
  bool embeds = false;
  bool has_head = false;

  int64_t layers() const { return dense_layers + expert_layers; }
};
/// All stages in order, [pp · v].
std::vector<Stage> stages_of(const Case& run);
/// Those on one pipeline rank.
std::vector<Stage> stages_of_rank(const Case& run, int64_t pp_rank);
/// The rank that has a stage: zb-v runs back on the way it came, the others deal out in turn.
int64_t rank_of(const Layout& layout, int64_t stage);

/// Parameters on one device, by how they are shared with others.
struct LocalParameters {
  double dense = 0;         ///< shared by the data-parallel ranks
  double experts = 0;       ///< shared by those ranks that have the same experts
  double trainable = 0;     ///< adapters, where there are some; 0: everything is
  double largest_unit = 0;  ///< of the dense ones, what ZeRO-3 gathers at once: a layer
  double largest_edge = 0;  ///< the embedding or head, gathered whole

  double total() const { return dense + experts; }
};
LocalParameters parameters_of(const Case& run, const std::vector<Stage>& stages);

/// Bytes that each of `ranks` ranks sends of a buffer in an all-gather or reduce-scatter by a ring.
double ring_bytes(double bytes, int64_t ranks);

/// Rows of a vocabulary as Megatron pads them: to a multiple of 128 · tp.
int64_t padded_vocabulary(const Model& model, int64_t tp);
/// Bytes of a weight, a gradient, and an optimizer's states of one trained parameter.
struct StateBytes {
  double weight = 0, gradient = 0, optimizer = 0;
};
StateBytes bytes_per_parameter(const Case& run);
/// Ranks over which the states of the experts on a device are spread: those that have the same
/// ones.
int64_t expert_shards(const Layout& layout);
/// Parameters whose update is this device's work.
double updated_parameters(const Case& run, const LocalParameters& local);
/// Bytes read and written to update one of them: its gradient, master weight and moments, and the
/// 16-bit weight. Muon's own products are not in it.
double update_bytes(Optimizer optimizer);
/// Of a frozen weight: 4 bits and their scales in QLoRA (Dettmers et al. 2023), 16 else.
double frozen_weight_bytes(const Recipe& recipe);
/// Bytes of an activation: 2, and 4 in fp32.
double stream_bytes(const Recipe& recipe);
/// What the runtime takes beside the other parts of `memory`: its context, and what the allocator
/// loses of all of them. Whoever changes a part has to ask again.
double runtime_bytes(const Stack& stack, Memory memory);

}  // namespace tessera::plan
