#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "account/activations.h"
#include "account/flops.h"
#include "account/memory.h"
#include "account/model_part.h"
#include "account/pipeline.h"
#include "account/tensor_traffic.h"
#include "account/timeline.h"
#include "account/traffic.h"
#include "kernels/attention.h"
#include "kernels/device.h"
#include "spec/mesh.h"
#include "spec/schedule.h"
#include "train/process_memory.h"
#include "train/summary.h"

// Joins account's formulas to a run: which micro-batch is the largest a rank meets, and which small
// messages a step exchanges (see train_step.cpp).

namespace tessera::train {

namespace {

using account::Collective;

account::ActivationSizes sizes_of(const spec::RunConfig& config, int64_t batch) {
  const int64_t tp = config.parallelism.tensor_parallel_degree;
  kernels::AttentionShape shape;
  shape.batch = batch;
  shape.seq_len = config.data.seq_len;
  shape.num_heads = config.model.num_attention_heads / tp;
  shape.num_kv_heads = std::max<int64_t>(config.model.num_key_value_heads / tp, 1);
  shape.head_dim = config.model.head_dim;
  account::ActivationSizes sizes;
  sizes.batch = batch;
  sizes.seq_len = config.data.seq_len;
  sizes.dtype = spec::dtype_of(config.training.precision);
  sizes.recompute = config.activation_checkpoint.mode;
  sizes.numerics = config.training.numerics;
  sizes.lora = config.lora;
  sizes.attention_scratch_bytes = kernels::attention_scratch_bytes(shape, kernels::num_threads());
  sizes.tp = tp;
  sizes.sequence_parallel = config.parallelism.sequence_parallel;
  return sizes;
}

/// One rank of the mesh, and what it has to do.
class RankPlan {
 public:
  RankPlan(const spec::RunConfig& config, int64_t rank)
      : config_(config),
        at_(spec::mesh_of(config.parallelism).at(rank)),
        schedule_(spec::schedule_of(config)),
        part_(account::part_of(config, rank)),
        table_(account::parameter_table(config.model, config.lora, part_)),
        share_(spec::batch_share(config.training.global_batch_size,
                                 config.parallelism.data_parallel_degree, at_.dp)
                   .count) {}

  const account::ParameterTable& table() const { return table_; }
  int64_t activation_bytes() const;
  /// The arenas that activation_bytes is spread over.
  parallel::ArenaBytes arena_bytes() const;
  int64_t stream_buffer_bytes() const;
  AxisBytes traffic() const;

 private:
  bool whole() const { return schedule_.num_stages() == 1; }
  int64_t micro_batch_size() const { return config_.training.micro_batch_size; }
  int64_t num_micro_batches() const {
    return (share_ + micro_batch_size() - 1) / micro_batch_size();
  }
  /// Sequences of a micro-batch of this rank; 0 beyond its last.
  int64_t sequences_of(int64_t micro_batch) const {
    return std::clamp<int64_t>(share_ - micro_batch * micro_batch_size(), 0, micro_batch_size());
  }
  int64_t stream_elements(int64_t sequences) const {
    const int64_t parts =
        config_.parallelism.sequence_parallel ? config_.parallelism.tensor_parallel_degree : 1;
    return sequences * config_.data.seq_len / parts * config_.model.hidden_size;
  }
  account::ChunkActivations chunk_bytes(const account::StagePart& stage, int64_t sequences) const;
  std::vector<account::ChunkPass> passes() const;
  void add_gradient_traffic(account::StepTraffic& dp, account::StepTraffic& tp,
                            account::StepTraffic& pp) const;
  void add_agreements(account::StepTraffic& dp, account::StepTraffic& tp,
                      account::StepTraffic& pp) const;
  /// By the layers of tensor parallelism, over all micro-batches.
  int64_t layer_bytes_sent() const;

  const spec::RunConfig& config_;
  spec::Coordinate at_;
  spec::Schedule schedule_;
  account::ModelPart part_;
  account::ParameterTable table_;
  int64_t share_;  // sequences of the global batch
};

account::ChunkActivations RankPlan::chunk_bytes(const account::StagePart& stage,
                                                int64_t sequences) const {
  account::ChunkShape shape;
  shape.num_layers = stage.layers.num_layers;
  shape.embeds = stage.embeds;
  shape.has_head = stage.has_head;
  shape.input_stays = stage.stage > 0 && schedule_.rank_of_stage[stage.stage - 1] == at_.pp;
  return account::chunk_activations(config_.model, sizes_of(config_, sequences), shape);
}

/// The peak over training and evaluation.
int64_t RankPlan::activation_bytes() const {
  const auto peak = [&](const spec::Schedule& schedule, bool training, const auto& sequences_of) {
    std::map<std::pair<int64_t, int64_t>, account::ChunkActivations> known;
    const auto bytes_of = [&](int64_t stage, int64_t micro_batch) {
      const int64_t sequences = sequences_of(micro_batch);
      const account::ChunkActivations* none = nullptr;
      if (sequences == 0) return none;
      const auto part = std::find_if(part_.stages.begin(), part_.stages.end(),
                                     [&](const auto& each) { return each.stage == stage; });
      auto [at, fresh] = known.try_emplace({stage, sequences});
      if (fresh) at->second = chunk_bytes(*part, sequences);
      return static_cast<const account::ChunkActivations*>(&at->second);
    };
    return account::pipeline_activation_bytes(schedule, at_.pp, training, bytes_of);
  };
  const int64_t training =
      peak(schedule_, true, [&](int64_t micro_batch) { return sequences_of(micro_batch); });
  if (config_.data.validation_fraction == 0) return training;
  // A validation set may fill micro-batches that training does not.
  return std::max(training, peak(spec::forward_only(schedule_, 1), false,
                                 [&](int64_t) { return micro_batch_size(); }));
}

parallel::ArenaBytes RankPlan::arena_bytes() const {
  if (whole()) return {activation_bytes(), 0};
  parallel::ArenaBytes bytes;
  const int64_t sequences = sequences_of(0);
  for (const account::StagePart& stage : part_.stages) {
    const account::ChunkActivations chunk = chunk_bytes(stage, sequences);
    bytes.micro_batch = std::max(bytes.micro_batch, chunk.kept);
    bytes.scratch = std::max({bytes.scratch, chunk.forward - chunk.kept, chunk.backward});
  }
  return bytes;
}

int64_t RankPlan::stream_buffer_bytes() const {
  const account::StreamBuffers buffers = account::stream_buffers(
      schedule_, at_.pp, num_micro_batches(), config_.data.validation_fraction > 0);
  return buffers.total() * stream_elements(micro_batch_size()) *
         core::size_of(spec::dtype_of(config_.training.precision));
}

std::vector<account::ChunkPass> RankPlan::passes() const {
  std::vector<account::ChunkPass> passes;
  for (const spec::Action& action : schedule_.ranks[static_cast<size_t>(at_.pp)]) {
    const auto part = std::find_if(part_.stages.begin(), part_.stages.end(),
                                   [&](const auto& each) { return each.stage == action.stage; });
    passes.push_back({action.kind, static_cast<int>(part - part_.stages.begin())});
  }
  return passes;
}

/// What a rank sends in a step: weights and gradients, and the small messages of train_step.cpp and
/// replica.cpp.
AxisBytes RankPlan::traffic() const {
  account::StepTraffic dp, tp, pp;
  add_gradient_traffic(dp, tp, pp);
  add_agreements(dp, tp, pp);
  const int64_t stream_bytes = core::size_of(spec::dtype_of(config_.training.precision)) *
                               account::stream_elements_sent(schedule_, at_.pp, [&](int64_t m) {
                                 return stream_elements(sequences_of(m));
                               });
  return {dp.total(), tp.total() + layer_bytes_sent(), pp.total() + stream_bytes};
}

void RankPlan::add_gradient_traffic(account::StepTraffic& dp, account::StepTraffic& tp,
                                    account::StepTraffic& pp) const {
  account::StepShape shape;
  shape.sharding = account::sharding_of(config_.parallelism);
  shape.weight_bytes = core::size_of(spec::dtype_of(config_.training.precision));
  shape.gradient_bytes = core::size_of(spec::gradient_storage(config_.training));
  shape.bucket_bytes = config_.parallelism.bucket_bytes;
  shape.passes = passes();
  dp = account::step_traffic(table_, shape, at_.dp);
  const int64_t shards = shape.sharding.shards;
  for (const account::Parameter& parameter : table_.parameters) {
    if (!parameter.partial_gradient || !parameter.trainable) continue;
    const int64_t owned =
        account::owned_range(table_, parameter, shape.sharding, at_.dp % shards).count;
    tp.add({Collective::all_reduce, owned, shape.gradient_bytes}, parameter.copies,
           at_.tp % parameter.copies);
  }
  const int64_t num_ranks = config_.parallelism.pipeline_parallel_degree;
  const int64_t first = schedule_.rank_of_stage.front(), last = schedule_.rank_of_stage.back();
  const bool tied = config_.model.tie_word_embeddings && last != first;
  if (num_ranks == 1 || !tied || (at_.pp != first && at_.pp != last)) return;
  for (const account::Unit& unit : table_.units) {
    if (unit.kind != account::UnitKind::embedding) continue;
    const int64_t owned = account::padded(unit.trainable_elements(), shards) / shards;
    pp.add({Collective::all_reduce, owned, shape.gradient_bytes}, 2,
           at_.pp == std::min(first, last) ? 0 : 1);
  }
}

void RankPlan::add_agreements(account::StepTraffic& dp, account::StepTraffic& tp,
                              account::StepTraffic& pp) const {
  const spec::Mesh mesh = spec::mesh_of(config_.parallelism);
  const bool invariant = config_.training.numerics == spec::Numerics::invariant;
  const int64_t rank = mesh.rank_of(at_);
  // Token counts and wishes to stop; every rank's loss; gradients beyond the range of their sums.
  dp.add({Collective::all_reduce, 2, 8}, mesh.size(), rank);
  dp.add({Collective::all_gather, whole() ? 1 : 3, 8}, mesh.size(), rank);
  if (invariant) dp.add({Collective::all_reduce, 1, 8}, mesh.size(), rank);
  // The squares of the norm, in the invariant mode as digits.
  const account::Message squares{Collective::all_reduce, invariant ? 6 : 1, 8};
  const int64_t shards = account::sharding_of(config_.parallelism).shards;
  dp.add(squares, shards, at_.dp % shards);
  tp.add(squares, mesh.tp, at_.tp);
  pp.add(squares, mesh.pp, at_.pp);
}

int64_t RankPlan::layer_bytes_sent() const {
  account::TensorPass pass;
  pass.seq_len = config_.data.seq_len;
  pass.dtype = spec::dtype_of(config_.training.precision);
  pass.ranks = config_.parallelism.tensor_parallel_degree;
  pass.sequence_parallel = config_.parallelism.sequence_parallel;
  pass.recompute = config_.activation_checkpoint.mode;
  pass.numerics = config_.training.numerics;
  pass.lora = config_.lora;
  if (pass.ranks == 1) return 0;
  int64_t bytes = 0;
  for (const account::StagePart& stage : part_.stages) {
    pass.embeds = stage.embeds;
    pass.has_head = stage.has_head;
    pass.num_layers = stage.layers.num_layers;
    for (int64_t i = 0; i < num_micro_batches(); ++i) {
      pass.batch = sequences_of(i);
      bytes += account::tensor_traffic(config_.model, pass, at_.tp).total();
    }
  }
  return bytes;
}

/// The peaks of one rank.
CategoryBytes rank_memory(const spec::RunConfig& config, int64_t communication_bytes,
                          int64_t rank) {
  const RankPlan plan(config, rank);
  const account::StateBytes state =
      account::state_bytes(plan.table(), config.training, account::sharding_of(config.parallelism));
  CategoryBytes memory{};
  const auto at = [&](core::Category category) -> int64_t& {
    return memory[static_cast<size_t>(category)];
  };
  at(core::Category::weights) = state.weights;
  at(core::Category::gradients) = state.gradients;
  at(core::Category::optimizer) = state.optimizer;
  at(core::Category::gathered) =
      account::gathered_bytes(plan.table(), config.training, config.parallelism);
  at(core::Category::activations) = plan.activation_bytes();
  at(core::Category::communication) = communication_bytes + plan.stream_buffer_bytes();
  return memory;
}

}  // namespace

Prediction predict(const spec::RunConfig& config, const std::vector<int64_t>& communication_bytes) {
  Prediction prediction;
  for (size_t rank = 0; rank < communication_bytes.size(); ++rank) {
    const auto number = static_cast<int64_t>(rank);
    prediction.memory_bytes.push_back(rank_memory(config, communication_bytes[rank], number));
    prediction.bytes_per_step.push_back(RankPlan(config, number).traffic());
  }
  prediction.flops_per_step =
      account::train_flops_per_token(config.model, config.data.seq_len) *
      static_cast<double>(config.training.global_batch_size * config.data.seq_len);
  if (config.parallelism.pipeline_parallel_degree > 1) {
    prediction.bubble_fraction =
        account::simulate(spec::schedule_of(config), account::stage_times(config))
            .bubble_fraction();
  }
  return prediction;
}

int64_t most_bytes(const spec::RunConfig& config, int64_t communication_bytes, int num_ranks) {
  // Hosts have neighbouring ranks.
  const int64_t world = spec::mesh_of(config.parallelism).size();
  int64_t most = 0;
  for (int64_t first = 0; first < world; first += num_ranks) {
    int64_t sum = 0;
    for (int64_t rank = first; rank < std::min<int64_t>(first + num_ranks, world); ++rank) {
      const CategoryBytes memory = rank_memory(config, communication_bytes, rank);
      sum = std::accumulate(memory.begin(), memory.end(), sum);
    }
    most = std::max(most, sum);
  }
  return most;
}

void check_run_fits(const spec::RunConfig& config, int64_t communication_bytes, int ranks_on_host,
                    const std::string& what) {
  const int64_t bytes = most_bytes(config, communication_bytes, ranks_on_host);
  const int64_t machine = machine_memory_bytes();
  std::string advice = kTrainingAdvice;
  spec::RunConfig sharded = config;
  for (int64_t& stage = sharded.parallelism.zero_stage;
       bytes > machine && config.parallelism.data_parallel_degree > 1 && ++stage <= 3;) {
    const int64_t less = most_bytes(sharded, communication_bytes, ranks_on_host);
    if (less > machine) continue;
    constexpr double kGiB = 1 << 30;
    advice = fmt::format("parallelism.zero_stage = {} would take {:.1f} GiB, and fit. {}", stage,
                         static_cast<double>(less) / kGiB, kTrainingAdvice);
    break;
  }
  check_fits(bytes, what, ranks_on_host, advice);
}

parallel::ArenaBytes expected_arena_bytes(const spec::RunConfig& config, int64_t rank) {
  return RankPlan(config, rank).arena_bytes();
}

}  // namespace tessera::train
