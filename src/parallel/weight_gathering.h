#pragma once

#include <array>
#include <deque>

#include "parallel/data_parallel.h"
#include "parallel/model_state.h"
#include "parallel/step_hooks.h"

namespace tessera::parallel {

/// Stage 3: a rank has its part of the weights alone. A unit's whole weights are all-gathered
/// before its forward and again before its backward, and given up after it. Which unit is needed
/// when is known beforehand (account::unit_uses), so the next `prefetch` gathers run while this
/// unit computes. Buffers are as many as units are whole at once, and stay from step to step.
class WeightGathering final : public StepHooks {
 public:
  /// `tied`: the head reads the embedding. References must outlive this.
  WeightGathering(ModelState& state, DataParallel& dp, bool tied, int64_t prefetch,
                  core::MemoryLedger& ledger);

  void begin_step(int64_t passes) override;
  void begin_pass(bool training) override;
  void before_forward(int unit) override { open(unit); }
  void after_forward(int unit) override;
  void before_backward(int unit) override;
  void gradient_ready(int unit) override;

 private:
  /// Memory for one whole unit.
  struct Buffer {
    core::Tensor memory;
    int unit = -1;       // whose weights it has or is about to have; -1: it is free
    bool ready = false;  // they have come
    std::array<comm::Handle, 2> gathers;
  };
  void expect(bool training);
  /// The unit's weights are whole and bound afterwards.
  void open(int unit);
  void close(int unit);
  /// Starts to gather the unit if a buffer for it is free.
  bool gather(int unit);
  Buffer* buffer_of(int unit);
  /// The buffers a unit may use.
  std::vector<Buffer>& room_of(int unit);

  ModelState& state_;
  DataParallel& dp_;
  bool tied_;
  size_t prefetch_;
  std::array<std::vector<Buffer>, 3> rooms_;  // of the embedding, the blocks, the head
  std::deque<int> uses_;                      // units that are to be opened, in order
  bool backward_ = false;  // blocks that open now stay until their gradient is there
};

}  // namespace tessera::parallel
