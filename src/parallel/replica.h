#pragma once

#include <memory>
#include <vector>

#include "model/lora.h"
#include "parallel/mesh_groups.h"
#include "parallel/model_state.h"
#include "parallel/pipeline/pipeline.h"
#include "parallel/step_hooks.h"
#include "parallel/unit_spans.h"

namespace tessera::parallel {

/// One rank of the mesh: its part of the model, its share of the training state, and what the axes
/// do around it. Data parallelism: each rank adds up the gradient of its own samples, and the
/// reduction makes the sum over all. Because every token's loss is scaled by the same 1 / (valid
/// tokens of the global batch) on every rank, that sum is the gradient of the mean over the global
/// batch, however unevenly samples and masks are spread. Tensor parallelism is in the layers, a
/// pipeline in the order of their passes. The order of calls in a step, the same on every rank:
///
///   begin_step, accumulate, reduce_gradients, gradient_norm, update
///
/// All but begin_step may talk to other ranks.
class Replica {
 public:
  /// `config` is resolved for `groups`, which must outlive this. Weights are initialised from
  /// training.seed. `expected`: of the arenas.
  Replica(const spec::RunConfig& config, MeshGroups& groups, core::MemoryLedger& ledger,
          const ArenaBytes& expected);

  /// Begins a step. Gradients are zero afterwards.
  void begin_step();
  /// Forward and backward of this rank's micro-batches of the step, in the order of the schedule;
  /// adds to the gradients. `grad_scale`: 1 / valid tokens of the global batch. `step` keys
  /// dropout. Returns what the losses came to where reports_loss(), elsewhere nothing of use.
  model::LossResult accumulate(const std::vector<model::MicroBatch>& batches, float grad_scale,
                               int64_t step);
  /// Forward alone, without dropout, of `passes` micro-batches, the first of which are this rank's.
  /// Returns as accumulate does.
  model::LossResult evaluate(const std::vector<model::MicroBatch>& batches, int64_t passes);
  /// Whether this rank answers for the losses of its samples: one of the ranks that have the head
  /// and these samples.
  bool reports_loss() const;

  /// Ends the reduction of the gradients: what a rank owns of them is the sum over all ranks.
  void reduce_gradients();
  /// The L2 norm of the reduced gradient, each parameter of the model counted once; every rank
  /// computes the same. Infinite where numerics is invariant and some rank met a gradient beyond
  /// the range of its sums.
  double gradient_norm();
  /// Clips by `norm` and takes one optimizer step; `step` counts from 1. Weights that a stage keeps
  /// whole are whole again afterwards.
  void update(int64_t step, double lr, double norm);
  /// Makes weights that are whole on every rank so, from what each owns: after a loader has set
  /// that.
  void share_weights();

  ModelState& state() { return state_; }
  /// Of this rank's part of the model.
  const account::ParameterTable& table() const { return table_; }
  MeshGroups& groups() { return groups_; }
  Pipeline& pipeline() { return pipeline_; }

  /// Passes, units, the optimizer and nothing else leave spans there; null: nowhere.
  void set_recorder(trace::Recorder* recorder);

 private:
  const model::LayerFactory& layers() const;
  void make_hooks(core::MemoryLedger& ledger);
  /// Sums over the ranks of other axes what each has a summand of.
  void reduce_partial_gradients();
  void reduce_tied_gradients();
  /// Starts to share the new weights of a unit.
  comm::Handle start_sharing(int unit);

  spec::RunConfig config_;
  MeshGroups& groups_;
  account::ParameterTable table_;
  ModelState state_;
  model::DenseFactory dense_;
  std::unique_ptr<model::LayerFactory> tensor_;  ///< where tensor parallelism cuts layers
  model::LoraFactory factory_;
  HookChain hooks_;
  UnitSpans* unit_spans_ = nullptr;  ///< in the chain
  Pipeline pipeline_;
  std::vector<core::View> counted_;                            ///< owned gradients of the norm
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;  ///< by unit
  trace::Recorder* recorder_ = nullptr;
  int64_t beyond_range_ = 0;  ///< passes whose gradients were; after the reduction, all ranks'
};

}  // namespace tessera::parallel
