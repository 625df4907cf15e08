#pragma once

// What one rank of a run holds at its peak and sends in a step: account's formulas joined over the
// micro-batches, the schedule and the small messages that ranks agree by. A run predicts with it
// before step 1 and measures afterwards, without these formulas; a test holds the two equal.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "account/activations.h"
#include "account/model_part.h"
#include "account/parameter_table.h"
#include "account/traffic.h"
#include "core/memory.h"
#include "spec/mesh.h"
#include "spec/run_config.h"
#include "spec/schedule.h"

namespace tessera::account {

/// Bytes by category, in core::Category's order.
using CategoryBytes = std::array<int64_t, core::kNumCategories>;

/// Bytes by axis along which ranks talk: data parallelism, to which everything belongs that all
/// ranks agree on; tensor parallelism; the pipeline. In that order.
using AxisBytes = std::array<int64_t, 3>;
inline constexpr size_t kDp = 0, kTp = 1, kPp = 2;

/// A collective that belongs to one of the axes, by its place in AxisBytes.
struct AxisMessage {
  size_t axis = 0;
  StepMessage message;
};

/// Sizes that a rank's arenas are made with: what they are expected to hold at most.
struct ArenaBytes {
  /// Of a micro-batch in flight; where the model is whole, with all that an action needs besides.
  int64_t micro_batch = 0;
  /// What actions need besides; 0 where the model is whole.
  int64_t scratch = 0;
};

/// What a rank's attention is asked to do: the heads that it has after tensor parallelism.
struct AttentionSize {
  int64_t batch = 0, seq_len = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0;
};
/// Bytes of scratch that the attention kernel takes for it.
using AttentionScratch = std::function<int64_t(const AttentionSize& size)>;

/// One rank of the mesh, and what it has to do in a step.
class RankPlan {
 public:
  /// `config` is resolved and outlives this.
  RankPlan(const spec::RunConfig& config, int64_t rank, AttentionScratch attention_scratch);

  /// The rank's place.
  const spec::Coordinate& at() const { return at_; }
  const spec::Schedule& schedule() const { return schedule_; }
  /// The rank's part of the model, and its parameters.
  const ModelPart& part() const { return part_; }
  const ParameterTable& table() const { return table_; }
  /// Micro-batches that the rank has samples for; the schedule may have more.
  int64_t num_micro_batches() const {
    return (share_ + micro_batch_size() - 1) / micro_batch_size();
  }
  /// Sequences of a micro-batch of this rank; 0 beyond its last.
  int64_t sequences_of(int64_t micro_batch) const;
  /// Elements of the stream between two blocks of one micro-batch, this rank's part of it.
  int64_t stream_elements(int64_t sequences) const;
  /// The passes of the rank's actions, in order, by chunk.
  std::vector<ChunkPass> passes() const;

  /// The peak of the activations over training and evaluation.
  int64_t activation_bytes() const;
  /// The arenas that activation_bytes is spread over.
  ArenaBytes arena_bytes() const;
  /// Buffers for the streams exchanged with other stages.
  int64_t stream_buffer_bytes() const;
  /// The peaks by category. `communication_bytes`: what the rank's communicators hold.
  CategoryBytes memory(int64_t communication_bytes) const;
  /// The collectives of a step but for those inside of layers: over weights and gradients, over
  /// what several ranks hold, and the small ones by which ranks agree on token counts, losses and
  /// the norm.
  std::vector<AxisMessage> messages() const;
  /// Those inside of the layers of one of its stages for one micro-batch, which all are of tensor
  /// parallelism: of its forward or, in training, of forward and backward.
  std::vector<Message> layer_messages(const StagePart& stage, int64_t sequences,
                                      bool training) const;
  /// What the rank sends in a step: weights and gradients, streams, the sums inside of layers, and
  /// the small messages by which ranks agree on token counts, losses and the norm.
  AxisBytes traffic() const;

 private:
  bool whole() const { return schedule_.num_stages() == 1; }
  int64_t micro_batch_size() const { return config_.training.micro_batch_size; }
  ActivationSizes sizes_of(int64_t batch) const;
  ChunkActivations chunk_bytes(const StagePart& stage, int64_t sequences) const;
  void add_gradient_messages(std::vector<AxisMessage>& messages) const;
  void add_agreements(std::vector<AxisMessage>& messages) const;

  const spec::RunConfig& config_;
  AttentionScratch attention_scratch_;
  spec::Coordinate at_;
  spec::Schedule schedule_;
  ModelPart part_;
  ParameterTable table_;
  int64_t share_;  // sequences of the global batch
};

/// FLOPs of one step of the whole world, by train_flops_per_token.
double step_flops(const spec::RunConfig& config);

/// The idle share of the step in the config's pipeline, by the FLOPs of its stages; 0 without one.
double predicted_bubble_fraction(const spec::RunConfig& config);

}  // namespace tessera::account
