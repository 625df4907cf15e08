#pragma once

#include <array>
#include <deque>

#include "parallel/data_parallel.h"
#include "parallel/model_state.h"
#include "parallel/step_hooks.h"

namespace tessera::parallel {

/// Stage 3: a rank has its part of the weights alone. A unit's whole weights are all-gathered
/// before its forward and again before its backward, and given up after it. Which unit is needed
/// when is known beforehand (account::unit_plan), so the next `prefetch` gathers run while this
/// unit computes. Buffers are as many as units are whole at once, and stay from step to step.
/// Of the two halves of a backward only the first reads weights, unless there are adapters.
class WeightGathering final : public StepHooks {
 public:
  /// References must outlive this.
  WeightGathering(ModelState& state, DataParallel& dp, int64_t prefetch,
                  core::MemoryLedger& ledger);

  void begin_step(const account::UnitPlan& plan) override { expect(plan); }
  void begin_evaluation(const account::UnitPlan& plan) override { expect(plan); }
  void before_forward(int unit) override { open(unit); }
  void after_forward(int unit) override { close(unit); }
  void before_backward(int unit) override { open(unit); }
  void before_weight_gradient(int unit) override {
    if (account::weight_gradient_reads_weights(state_.table(), unit)) open(unit);
  }
  void gradient_ready(int unit) override { close(unit); }

 private:
  /// Memory for one whole unit.
  struct Buffer {
    core::Tensor memory;
    int unit = -1;       // whose weights it has or is about to have; -1: it is free
    bool ready = false;  // they have come
    std::array<comm::Handle, 2> gathers;
  };
  void expect(const account::UnitPlan& plan);
  /// The unit's weights are whole and bound afterwards.
  void open(int unit);
  void close(int unit);
  /// Starts to gather the unit if a buffer for it is free.
  bool gather(const account::UnitUse& use);
  Buffer* buffer_of(int unit);
  /// The buffers a unit may use.
  std::vector<Buffer>& room_of(int unit);

  ModelState& state_;
  DataParallel& dp_;
  size_t prefetch_;
  std::array<std::vector<Buffer>, account::kNumUnitKinds> rooms_;  // by kind of unit
  std::deque<account::UnitUse> uses_;                              // what is to be opened, in order
};

}  // namespace tessera::parallel
