#include "plan/engine_step.h"

#include <gtest/gtest.h>

#include <limits>

#include "spec/layout.h"

namespace tessera::plan {
namespace {

using account::MachineTimes;
using account::UnitKind;

/// A block takes 1 s forward and 2 s backward for a sequence, the embedding 0.1 s each way and the
/// head 0.5 s; messages are free unless a test says otherwise.
class EngineStepTest : public ::testing::Test {
 protected:
  spec::RunConfig config_of(const std::string& layout, int64_t ranks, int64_t batch = 4) const {
    spec::RunConfig config;
    config.model.architecture = spec::Architecture::gpt2;
    config.model.hidden_size = 16;
    config.model.num_hidden_layers = 4;
    config.model.num_attention_heads = 4;
    config.model.vocab_size = 32;
    config.model.max_position_embeddings = 8;
    config.data.seq_len = 8;
    config.training.global_batch_size = batch;
    config.training.micro_batch_size = 1;
    config.training.precision = spec::Precision::fp32;
    const bool says = layout.find("micro_batch") != std::string::npos;
    const auto layouts = spec::parse_layouts(says ? layout : layout + ",micro_batch=1");
    EXPECT_TRUE(layouts.violations.empty()) << layout;
    return spec::resolved(spec::with_layout(spec::resolved(config, 1), layouts.layouts.at(0)),
                          ranks);
  }

  MachineTimes machine_for(const spec::RunConfig& config, const account::Company& company) const {
    MachineTimes machine;
    machine.cores = cores_;
    for (const int64_t batch : account::micro_batch_sizes(config)) {
      for (const UnitKind kind : account::kUnitKinds) {
        account::UnitTimes unit;
        unit.kind = kind;
        unit.shape = account::unit_shape(config, kind, batch);
        unit.company = company;
        const double times = static_cast<double>(batch);
        unit.forward_s = times * (kind == UnitKind::block ? 1 : kind == UnitKind::head ? 0.5 : 0.1);
        unit.backward_s = times * (kind == UnitKind::block ? 2 : kind == UnitKind::head ? 0 : 0.1);
        unit.backward_input_s = kind == UnitKind::block ? times : 0;
        unit.backward_weight_s = unit.backward_s - unit.backward_input_s;
        machine.units.push_back(unit);
      }
    }
    account::StateTimes state;
    state.shape = account::state_shape(config.training);
    state.company = company;
    state.optimizer_s = optimizer_s_;
    machine.states.push_back(state);
    for (const int64_t size : account::group_sizes(config)) {
      machine.links.push_back({"", "shm", size, latency_s_, bytes_per_s_});
    }
    return machine;
  }

  EngineStep step(const std::string& layout, int64_t ranks, int64_t batch = 4) const {
    const spec::RunConfig config = config_of(layout, ranks, batch);
    const account::Company company{ranks, 1};
    const MachineTimes machine = machine_for(config, company);
    EXPECT_EQ(account::missing_times(config, company, machine), "");
    return engine_step(config, machine, company);
  }

  int64_t cores_ = 2;
  double latency_s_ = 0;
  double bytes_per_s_ = std::numeric_limits<double>::infinity();
  double optimizer_s_ = 0;
};

TEST_F(EngineStepTest, OfOneRankIsItsUnitsTimesItsMicroBatches) {
  // 4 · (4 · (1 + 2) + 0.1 + 0.1 + 0.5)
  const EngineStep one = step("dp=1", 1);
  EXPECT_NEAR(one.compute_s, 4 * 12.7, 1e-9);
  EXPECT_NEAR(one.step_s, one.compute_s, 1e-9);
  EXPECT_EQ(one.bubble_fraction, 0);
}

TEST_F(EngineStepTest, OfDataParallelRanksIsThatOfTheLargestShare) {
  EXPECT_NEAR(step("dp=2", 2).step_s, 2 * 12.7, 1e-9);
  EXPECT_NEAR(step("dp=2", 2, 5).step_s, 3 * 12.7, 1e-9);
}

TEST_F(EngineStepTest, OfAPipelineHasTheBubbleOfItsSchedule) {
  // Two stages of 2 blocks: F 2 and B 4; the ends take a little. With m micro-batches both are at
  // work for m · 6 of (m + 1) · 6.
  const EngineStep pipeline = step("pp=2", 2);
  EXPECT_NEAR(pipeline.compute_s, 4 * 6.35, 1.5);
  EXPECT_GT(pipeline.pp_bubble_s, 5);
  EXPECT_NEAR(pipeline.bubble_fraction, 1.0 / 5, 0.04);
  EXPECT_GT(pipeline.step_s, step("dp=2", 2).step_s);
}

TEST_F(EngineStepTest, OfZeroBubbleIsShorterThanThatOfOneForwardOneBackward) {
  EXPECT_LT(step("pp=2,schedule=zb-h1", 2).step_s, step("pp=2,schedule=1f1b", 2).step_s);
}

TEST_F(EngineStepTest, CountsEveryMessageWhereNoCoreIsIdle) {
  bytes_per_s_ = 1e4;
  const EngineStep busy = step("dp=2", 2);
  // The fp32 gradients of all parameters once, between two ranks: S bytes.
  const double bytes =
      4.0 *
      static_cast<double>(account::parameter_table(config_of("dp=2", 2).model).num_elements());
  EXPECT_NEAR(busy.dp_exposed_s, bytes / 1e4, 1e-6);
  cores_ = 4;
  EXPECT_LT(step("dp=2", 2).dp_exposed_s, busy.dp_exposed_s);
  EXPECT_GT(step("dp=2,bucket_bytes=0", 2).dp_exposed_s, step("dp=2", 2).dp_exposed_s);
}

TEST_F(EngineStepTest, OfZeroStagesSendsAsMuchButForTheThird) {
  bytes_per_s_ = 1e4;
  const double none = step("dp=2,micro_batch=2", 2).dp_exposed_s;
  EXPECT_NEAR(step("dp=2,micro_batch=2,zero=1", 2).dp_exposed_s / none, 1, 0.05);
  EXPECT_NEAR(step("dp=2,micro_batch=2,zero=2", 2).dp_exposed_s / none, 1, 0.05);
  EXPECT_NEAR(step("dp=2,micro_batch=2,zero=3", 2).dp_exposed_s / none, 1.5, 0.05);
}

TEST_F(EngineStepTest, OfTensorParallelRanksWaitsInEveryLayer) {
  EXPECT_EQ(step("tp=2", 2).tp_exposed_s, 0);
  latency_s_ = 1e-3;
  // Of each of 4 micro-batches: 4 blocks with 4 sums, and some more at the ends; an all-reduce of
  // two ranks is two hops.
  EXPECT_GT(step("tp=2", 2).tp_exposed_s, 4 * 4 * 4 * 2e-3);
  EXPECT_LT(step("tp=2", 2).tp_exposed_s, 4 * 4 * 6 * 2e-3);
}

TEST_F(EngineStepTest, SharesTheOptimizerOutFromStageOneOn) {
  optimizer_s_ = 1e-3;
  const double whole = step("dp=2", 2).optimizer_s;
  EXPECT_NEAR(step("dp=2,zero=1", 2).optimizer_s, whole / 2, 1e-9);
  EXPECT_NEAR(step("pp=2", 2).optimizer_s, whole / 2, whole / 5);
}

TEST_F(EngineStepTest, AddsUpToItsParts) {
  bytes_per_s_ = 1e5;
  latency_s_ = 1e-4;
  optimizer_s_ = 1e-4;
  for (const char* layout : {"dp=2,zero=3", "tp=2,sp=1", "pp=2,schedule=interleaved,v=2"}) {
    const EngineStep s = step(layout, 2);
    EXPECT_NEAR(s.step_s,
                s.compute_s + s.tp_exposed_s + s.dp_exposed_s + s.pp_bubble_s + s.optimizer_s +
                    s.overhead_s,
                1e-9)
        << layout;
  }
}

TEST_F(EngineStepTest, IsNotGuessedWhereAUnitWasNotMeasured) {
  const spec::RunConfig config = config_of("dp=2", 2);
  const MachineTimes machine = machine_for(config, {1, 1});
  EXPECT_NE(account::missing_times(config, {2, 1}, machine), "");
}

}  // namespace
}  // namespace tessera::plan
