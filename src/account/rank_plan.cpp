#include "account/rank_plan.h"

#include <algorithm>

#include "account/flops.h"
#include "account/memory.h"
#include "account/pipeline.h"
#include "account/sharding.h"
#include "account/tensor_traffic.h"
#include "account/timeline.h"

namespace tessera::account {

RankPlan::RankPlan(const spec::RunConfig& config, int64_t rank, AttentionScratch attention_scratch)
    : config_(config),
      attention_scratch_(std::move(attention_scratch)),
      at_(spec::mesh_of(config.parallelism).at(rank)),
      schedule_(spec::schedule_of(config)),
      part_(part_of(config, rank)),
      table_(parameter_table(config.model, config.lora, part_)),
      share_(spec::batch_share(config.training.global_batch_size,
                               config.parallelism.data_parallel_degree, at_.dp)
                 .count) {}

int64_t RankPlan::sequences_of(int64_t micro_batch) const {
  return std::clamp<int64_t>(share_ - micro_batch * micro_batch_size(), 0, micro_batch_size());
}

int64_t RankPlan::stream_elements(int64_t sequences) const {
  const int64_t parts =
      config_.parallelism.sequence_parallel ? config_.parallelism.tensor_parallel_degree : 1;
  return sequences * config_.data.seq_len / parts * config_.model.hidden_size;
}

ActivationSizes RankPlan::sizes_of(int64_t batch) const {
  const int64_t tp = config_.parallelism.tensor_parallel_degree;
  AttentionSize attention;
  attention.batch = batch;
  attention.seq_len = config_.data.seq_len;
  attention.num_heads = config_.model.num_attention_heads / tp;
  attention.num_kv_heads = std::max<int64_t>(config_.model.num_key_value_heads / tp, 1);
  attention.head_dim = config_.model.head_dim;
  ActivationSizes sizes;
  sizes.batch = batch;
  sizes.seq_len = config_.data.seq_len;
  sizes.dtype = spec::dtype_of(config_.training.precision);
  sizes.recompute = config_.activation_checkpoint.mode;
  sizes.numerics = config_.training.numerics;
  sizes.lora = config_.lora;
  sizes.attention_scratch_bytes = attention_scratch_(attention);
  sizes.tp = tp;
  sizes.sequence_parallel = config_.parallelism.sequence_parallel;
  return sizes;
}

ChunkActivations RankPlan::chunk_bytes(const StagePart& stage, int64_t sequences) const {
  ChunkShape shape;
  shape.num_layers = stage.layers.num_layers;
  shape.embeds = stage.embeds;
  shape.has_head = stage.has_head;
  shape.input_stays = stage.stage > 0 && schedule_.rank_of_stage[stage.stage - 1] == at_.pp;
  return chunk_activations(config_.model, sizes_of(sequences), shape);
}

/// The peak over training and evaluation.
int64_t RankPlan::activation_bytes() const {
  const auto peak = [&](const spec::Schedule& schedule, bool training, const auto& sequences_of) {
    std::map<std::pair<int64_t, int64_t>, ChunkActivations> known;
    const auto bytes_of = [&](int64_t stage, int64_t micro_batch) {
      const int64_t sequences = sequences_of(micro_batch);
      const ChunkActivations* none = nullptr;
      if (sequences == 0) return none;
      const auto part = std::find_if(part_.stages.begin(), part_.stages.end(),
                                     [&](const auto& each) { return each.stage == stage; });
      auto [at, fresh] = known.try_emplace({stage, sequences});
      if (fresh) at->second = chunk_bytes(*part, sequences);
      return static_cast<const ChunkActivations*>(&at->second);
    };
    return pipeline_activation_bytes(schedule, at_.pp, training, bytes_of);
  };
  const int64_t training =
      peak(schedule_, true, [&](int64_t micro_batch) { return sequences_of(micro_batch); });
  if (config_.data.validation_fraction == 0) return training;
  // A validation set may fill micro-batches that training does not.
  return std::max(training, peak(spec::forward_only(schedule_, 1), false,
                                 [&](int64_t) { return micro_batch_size(); }));
}

ArenaBytes RankPlan::arena_bytes() const {
  if (whole()) return {activation_bytes(), 0};
  ArenaBytes bytes;
  const int64_t sequences = sequences_of(0);
  for (const StagePart& stage : part_.stages) {
    const ChunkActivations chunk = chunk_bytes(stage, sequences);
    bytes.micro_batch = std::max(bytes.micro_batch, chunk.kept);
    bytes.scratch = std::max({bytes.scratch, chunk.forward - chunk.kept, chunk.backward});
  }
  return bytes;
}

int64_t RankPlan::stream_buffer_bytes() const {
  const StreamBuffers buffers =
      stream_buffers(schedule_, at_.pp, num_micro_batches(), config_.data.validation_fraction > 0);
  return buffers.total() * stream_elements(micro_batch_size()) *
         core::size_of(spec::dtype_of(config_.training.precision));
}

std::vector<ChunkPass> RankPlan::passes() const {
  std::vector<ChunkPass> passes;
  for (const spec::Action& action : schedule_.ranks[static_cast<size_t>(at_.pp)]) {
    const auto part = std::find_if(part_.stages.begin(), part_.stages.end(),
                                   [&](const auto& each) { return each.stage == action.stage; });
    passes.push_back({action.kind, static_cast<int>(part - part_.stages.begin())});
  }
  return passes;
}

AxisBytes RankPlan::traffic() const {
  AxisBytes bytes{};
  for (const AxisMessage& each : messages()) {
    bytes[each.axis] += bytes_sent(each.message.message, each.message.ranks, each.message.rank);
  }
  for (const StagePart& stage : part_.stages) {
    for (int64_t i = 0; i < num_micro_batches(); ++i) {
      for (const Message& message : layer_messages(stage, sequences_of(i), /*training=*/true)) {
        bytes[kTp] += bytes_sent(message, config_.parallelism.tensor_parallel_degree, at_.tp);
      }
    }
  }
  bytes[kPp] += core::size_of(spec::dtype_of(config_.training.precision)) *
                stream_elements_sent(schedule_, at_.pp,
                                     [&](int64_t m) { return stream_elements(sequences_of(m)); });
  return bytes;
}

std::vector<AxisMessage> RankPlan::messages() const {
  std::vector<AxisMessage> messages;
  add_gradient_messages(messages);
  add_agreements(messages);
  return messages;
}

void RankPlan::add_gradient_messages(std::vector<AxisMessage>& messages) const {
  StepShape shape;
  shape.sharding = sharding_of(config_.parallelism);
  shape.weight_bytes = core::size_of(spec::dtype_of(config_.training.precision));
  shape.gradient_bytes = core::size_of(spec::gradient_storage(config_.training));
  shape.bucket_bytes = config_.parallelism.bucket_bytes;
  shape.passes = passes();
  for (const StepMessage& message : step_messages(table_, shape, at_.dp)) {
    messages.push_back({kDp, message});
  }
  const int64_t shards = shape.sharding.shards;
  const auto sum = [&](size_t axis, int64_t owned, int64_t ranks, int64_t rank) {
    const Message message{Collective::all_reduce, owned, shape.gradient_bytes};
    messages.push_back({axis, {message, ranks, rank, Purpose::copies}});
  };
  for (const Parameter& parameter : table_.parameters) {
    if (!parameter.partial_gradient || !parameter.trainable) continue;
    const int64_t owned = owned_range(table_, parameter, shape.sharding, at_.dp % shards).count;
    sum(kTp, owned, parameter.copies, at_.tp % parameter.copies);
  }
  const int64_t num_ranks = config_.parallelism.pipeline_parallel_degree;
  const int64_t first = schedule_.rank_of_stage.front(), last = schedule_.rank_of_stage.back();
  const bool tied = config_.model.tie_word_embeddings && last != first;
  if (num_ranks == 1 || !tied || (at_.pp != first && at_.pp != last)) return;
  for (const Unit& unit : table_.units) {
    if (unit.kind != UnitKind::embedding) continue;
    const int64_t owned = padded(unit.trainable_elements(), shards) / shards;
    sum(kPp, owned, 2, at_.pp == std::min(first, last) ? 0 : 1);
  }
}

void RankPlan::add_agreements(std::vector<AxisMessage>& messages) const {
  const spec::Mesh mesh = spec::mesh_of(config_.parallelism);
  const bool invariant = config_.training.numerics == spec::Numerics::invariant;
  const int64_t rank = mesh.rank_of(at_);
  const auto add = [&](size_t axis, const Message& message, int64_t ranks, int64_t number) {
    messages.push_back({axis, {message, ranks, number, Purpose::agreement}});
  };
  // As train/train_step.cpp and parallel/replica.cpp do: token counts and wishes to stop; every
  // rank's loss; gradients beyond the range of their sums.
  add(kDp, {Collective::all_reduce, 2, 8}, mesh.size(), rank);
  add(kDp, {Collective::all_gather, whole() ? 1 : 3, 8}, mesh.size(), rank);
  if (invariant) add(kDp, {Collective::all_reduce, 1, 8}, mesh.size(), rank);
  // The squares of the norm, in the invariant mode as digits.
  const Message squares{Collective::all_reduce, invariant ? 6 : 1, 8};
  const int64_t shards = sharding_of(config_.parallelism).shards;
  add(kDp, squares, shards, at_.dp % shards);
  add(kTp, squares, mesh.tp, at_.tp);
  add(kPp, squares, mesh.pp, at_.pp);
}

std::vector<Message> RankPlan::layer_messages(const StagePart& stage, int64_t sequences,
                                              bool training) const {
  TensorPass pass;
  pass.batch = sequences;
  pass.seq_len = config_.data.seq_len;
  pass.dtype = spec::dtype_of(config_.training.precision);
  pass.ranks = config_.parallelism.tensor_parallel_degree;
  pass.sequence_parallel = config_.parallelism.sequence_parallel;
  pass.recompute = config_.activation_checkpoint.mode;
  pass.numerics = config_.training.numerics;
  pass.lora = config_.lora;
  pass.training = training;
  pass.embeds = stage.embeds;
  pass.has_head = stage.has_head;
  pass.num_layers = stage.layers.num_layers;
  return tensor_messages(config_.model, pass);
}

CategoryBytes RankPlan::memory(int64_t communication_bytes) const {
  const StateBytes state = state_bytes(table_, config_.training, sharding_of(config_.parallelism));
  CategoryBytes memory{};
  const auto at = [&](core::Category category) -> int64_t& {
    return memory[static_cast<size_t>(category)];
  };
  at(core::Category::weights) = state.weights;
  at(core::Category::gradients) = state.gradients;
  at(core::Category::optimizer) = state.optimizer;
  at(core::Category::gathered) = gathered_bytes(table_, config_.training, config_.parallelism);
  at(core::Category::activations) = activation_bytes();
  at(core::Category::communication) = communication_bytes + stream_buffer_bytes();
  return memory;
}

double step_flops(const spec::RunConfig& config) {
  return train_flops_per_token(config.model, config.data.seq_len) *
         static_cast<double>(config.training.global_batch_size * config.data.seq_len);
}

double predicted_bubble_fraction(const spec::RunConfig& config) {
  if (config.parallelism.pipeline_parallel_degree == 1) return 0;
  return simulate(spec::schedule_of(config), stage_times(config)).bubble_fraction();
}

}  // namespace tessera::account
