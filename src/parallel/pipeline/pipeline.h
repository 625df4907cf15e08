#pragma once

#include <memory>
#include <vector>

#include "account/rank_plan.h"
#include "core/arena.h"
#include "model/transformer.h"
#include "parallel/mesh_groups.h"
#include "parallel/pipeline/action_spans.h"
#include "parallel/pipeline/stream_exchange.h"
#include "parallel/step_hooks.h"
#include "spec/schedule.h"
#include "trace/recorder.h"

namespace tessera::parallel {

/// An action that was carried out, and when. What it waited for is not in it.
struct TimedAction {
  spec::Action action;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

/// What the micro-batches of a step have in common.
struct StepPass {
  bool training = true;
  float grad_scale = 1;  ///< 1 / valid tokens of the global batch
  int64_t step = 0;      ///< keys dropout
};

/// Sizes that arenas are made with.
using account::ArenaBytes;

/// This rank's chunks of the model, and the micro-batches that are in flight through them: carries
/// out a schedule (spec/schedule.h), action by action, and hands streams to the stages before and
/// behind (Huang et al., "GPipe", 2019; Narayanan et al., "PipeDream", 2019, and "Efficient
/// Large-Scale Language Model Training", 2021; Qi et al., "Zero Bubble Pipeline Parallelism",
/// 2023). What the schedules differ in is the order of the actions alone, so there is one executor.
///
/// A rank of a pipeline of one is the same: its schedule is forward, backward, forward, …, and
/// nothing is sent.
///
/// Memory: a micro-batch in flight keeps its activations on an arena of its own, of which there are
/// as many as the schedule has in flight on this rank; what an action needs beside them it takes
/// from one arena for all. A whole model has one arena for both.
class Pipeline {
 public:
  /// References must outlive this; `config` is resolved.
  Pipeline(const spec::RunConfig& config, const spec::Schedule& schedule, MeshGroups& groups,
           const model::Parameters& parameters, const model::LayerFactory& factory,
           StepHooks& hooks, core::MemoryLedger& ledger, const ArenaBytes& expected);

  /// Forward and backward of the micro-batches of a step, at most as many as the schedule has: the
  /// passes of the others only call the hooks. Returns what the losses came to, where this rank has
  /// the head. Throws CommError.
  model::LossResult train(const std::vector<model::MicroBatch>& batches, const StepPass& pass);
  /// Forward alone, of `passes` micro-batches, of which this rank has the first batches.size().
  model::LossResult evaluate(const std::vector<model::MicroBatch>& batches, int64_t passes);

  /// The ways through this rank's chunks that train() takes, and that evaluate() does.
  std::vector<account::ChunkPass> training_passes() const { return passes_of(schedule_); }
  std::vector<account::ChunkPass> evaluation_passes(int64_t passes) const {
    return passes_of(forward_schedule(passes));
  }

  std::vector<model::Transformer>& chunks() { return chunks_; }
  core::Arena& scratch() { return scratch_ ? *scratch_ : slots_.front()->arena; }
  const spec::Schedule& schedule() const { return schedule_; }

  /// Those of the last train(), in order.
  const std::vector<TimedAction>& actions() const { return done_; }
  /// Micro-batches of the last train() with a gradient beyond the invariant mode's range.
  int64_t beyond_range() const { return beyond_range_; }
  /// Actions of train() leave spans there; null: nowhere.
  void set_recorder(trace::Recorder* recorder) { recorder_ = recorder; }

 private:
  /// A micro-batch in flight through one chunk.
  struct Slot {
    Slot(core::MemoryLedger& ledger, int64_t bytes)
        : arena(ledger, core::Category::activations, bytes) {}
    core::Arena arena;
    core::Arena::Mark empty = arena.mark();
    model::Activations activations;
    int64_t stage = -1;  ///< -1: free
    int64_t micro_batch = -1;
  };
  /// What a call of train or evaluate works on.
  struct Work {
    const std::vector<model::MicroBatch>& batches;
    StepPass pass;
    model::LossResult losses;
  };

  spec::Schedule forward_schedule(int64_t passes) const;
  std::vector<account::ChunkPass> passes_of(const spec::Schedule& schedule) const;
  void run(const spec::Schedule& schedule, Work& work);
  void begin_exchange(const spec::Schedule& schedule, const Work& work);
  void skip(const spec::Action& action, bool training);
  void forward(const spec::Action& action, Work& work);
  void evaluate_stage(const spec::Action& action, Work& work);
  void backward(const spec::Action& action, Work& work);
  /// What it needs it takes from `arena`.
  void backward(const spec::Action& action, Work& work, Slot& slot, core::Arena& arena);
  void backward_weight(const spec::Action& action, Work& work);

  model::Pass make_pass(core::Arena& kept, const spec::Action& action, const Work& work);
  core::Shape stream_shape(const model::MicroBatch& batch) const;
  int64_t chunk_of(int64_t stage) const;
  int rank_of(int64_t stage) const {
    return static_cast<int>(schedule_.rank_of_stage[static_cast<size_t>(stage)]);
  }
  bool is_first(int64_t stage) const { return stage == 0; }
  bool is_last(int64_t stage) const { return stage + 1 == schedule_.num_stages(); }
  bool alone() const { return scratch_ == nullptr; }
  model::Transformer& stage_at(const spec::Action& action) {
    return chunks_[static_cast<size_t>(chunk_of(action.stage))];
  }
  /// A free slot becomes that action's.
  Slot& claim_slot(const spec::Action& action);
  Slot& slot_of(int64_t stage, int64_t micro_batch);
  /// The end of the micro-batch in this chunk.
  void free_slot(Slot& slot);
  /// Carries out `compute` as the action: times it, and leaves a span.
  template <class F>
  void timed(const spec::Action& action, const F& compute);

  const spec::RunConfig& config_;
  spec::Schedule schedule_;
  int64_t rank_;                 ///< in the pipeline
  std::vector<int64_t> stages_;  ///< this rank's, chunk by chunk
  StreamNumbers stream_numbers_;
  int64_t stream_parts_ = 1, stream_part_ = 0;
  core::DType dtype_;
  std::vector<model::Transformer> chunks_;
  std::unique_ptr<core::Arena> scratch_;  ///< null where the model is whole
  std::vector<std::unique_ptr<Slot>> slots_;
  core::MemoryLedger& ledger_;
  int64_t slot_bytes_;
  std::unique_ptr<StreamExchange> activations_, gradients_;  ///< null where the model is whole
  std::vector<TimedAction> done_;
  int64_t beyond_range_ = 0;
  trace::Recorder* recorder_ = nullptr;
};

/// The stage that chunk `chunk` of the table is.
model::Stage stage_of_chunk(const account::ParameterTable& table, int chunk);

}  // namespace tessera::parallel
