#include "plan/step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/collectives.h"
#include "plan/products.h"

namespace tessera::plan {
namespace {

Case llama(int64_t devices) {
  Case run;
  run.model = *find_model("llama-3-8b");
  run.cluster = *find_cluster("h100-80g");
  run.stack = find_stack("nemo");
  run.recipe.seq_len = 8192;
  run.recipe.global_batch = 512;
  run.layout.dp = devices;
  run.layout.zero = 1;
  return run;
}

double step_s(const Case& run) {
  return estimate(run, default_constants()).time.step_s;
}

TEST(PipelineTime, OfManyMicroBatchesIsThatOfTheWholeSimulation) {
  using spec::ScheduleKind;
  for (const auto& [kind, v] : {std::pair<ScheduleKind, int64_t>{ScheduleKind::one_f_one_b, 1},
                                {ScheduleKind::interleaved, 3},
                                {ScheduleKind::zb_h1, 1},
                                {ScheduleKind::gpipe, 1}}) {
    Layout layout;
    layout.pp = 4;
    layout.v = v;
    layout.schedule = kind;
    account::StageTimes times;
    for (int64_t stage = 0; stage < layout.stages(); ++stage) {
      const double slower = stage == layout.stages() - 1 ? 1.3 : 1;
      times.stages.push_back({1 * slower, 2 * slower, 1.1 * slower, 0.9 * slower});
    }
    times.message = 0.01;
    const double whole =
        account::simulate(spec::make_schedule(kind, layout.pp, v, 96), times).makespan;
    EXPECT_NEAR(pipeline_time(layout, times, 96).makespan, whole, 0.005 * whole)
        << to_string(layout);
  }
}

TEST(StepTime, IsThePartsOfIt) {
  Case run = llama(16);
  run.layout.dp = 4;
  run.layout.pp = 4;
  const StepTime time = estimate(run, default_constants()).time;
  EXPECT_DOUBLE_EQ(time.step_s, time.compute_s + time.pp_bubble_s + time.dp_exposed_s +
                                    time.optimizer_s + time.overhead_s);
  EXPECT_GT(time.pp_bubble_s, 0);
}

TEST(StepTime, GrowsWhereItMust) {
  const double base = step_s(llama(64));
  Case slower = llama(64);
  slower.cluster.inter.bytes_per_s /= 10;
  EXPECT_GT(step_s(slower), base);
  Case recomputed = llama(64);
  recomputed.layout.recompute = spec::Recompute::full;
  const double factor = step_s(recomputed) / base;
  EXPECT_GT(factor, 1.2);  // a third more products, but not of the head
  EXPECT_LT(factor, 1.36);
  Case far = llama(64);
  far.layout.tp = 16;  // two nodes share every product
  far.layout.dp = 4;
  Case near = llama(64);
  near.layout.tp = 8;
  near.layout.dp = 8;
  EXPECT_GT(step_s(far), 1.2 * step_s(near));
}

// ZeRO-3 without overlap over more and more devices falls apart (Narayanan et al. 2021, table 2):
// from 384 to 1536 devices with the same batch it lost two thirds of its rate.
TEST(StepTime, OfZero3CollapsesWithDevices) {
  Case run = llama(1);
  run.model = *find_model("gpt3-175b");
  run.cluster = *find_cluster("a100-80g");
  run.stack = find_stack("deepspeed-2021");
  run.recipe.seq_len = 2048;
  run.recipe.global_batch = 1536;
  run.recipe.gradient_bytes = 2;
  run.layout.zero = 3;
  run.layout.recompute = spec::Recompute::full;
  const auto rate = [&](int64_t devices) {
    run.layout.dp = devices;
    run.layout.micro_batch = 1536 / devices;
    return estimate(run, default_constants()).mfu;
  };
  EXPECT_GE(rate(384) / rate(1536), 2.5);
}

TEST(Products, LoseTheLastWaveAndOddWidths) {
  Case run = llama(8);
  run.cluster = *find_cluster("a100-80g");
  const Kernels kernels(run, default_constants());
  const auto rate = [&](double rows, double columns, double depth) {
    return 2 * rows * columns * depth / kernels.product_s({rows, columns, depth, 1});
  };
  EXPECT_GT(rate(4096, 12288, 12288), rate(4096, 12288 + 32, 12288));
  EXPECT_GT(rate(4096, 12288 + 32, 12288), rate(4096, 12288 + 33, 12288));
  EXPECT_GT(rate(4096, 4096, 4096), rate(256, 256, 4096));
  EXPECT_LT(rate(8192, 8192, 8192), 312e12);
  EXPECT_GT(rate(8192, 8192, 8192), 150e12);
  // 108 units: 108 tiles of 128 × 256 in one wave, 109 in two.
  EXPECT_GT(rate(128 * 108, 256, 4096), 1.1 * rate(128 * 109, 256, 4096));
}

TEST(Collectives, AreThoseOfRingsOnTwoLevels) {
  const Cluster& cluster = *find_cluster("a100-80g");
  Constants constants = default_constants();
  constants.collective_s = constants.hop_s = constants.inter_collective_s = 0;
  for (FamilyConstants& family : constants.family) family.intra = family.inter = 1;
  const Network network(cluster, constants);
  const Group inside = group_of(cluster, 8, 1), across = group_of(cluster, 64, 8);
  EXPECT_EQ(across.per_node, 1);
  EXPECT_EQ(group_of(cluster, 64, 2).per_node, 4);
  EXPECT_DOUBLE_EQ(network.all_reduce_s(3e9, inside), 2 * 7 / 8.0 * 3e9 / 300e9);
  EXPECT_DOUBLE_EQ(network.all_gather_s(1e9, across), 63 / 64.0 * 1e9 / 25e9);
  EXPECT_DOUBLE_EQ(network.all_gather_s(1e9, group_of(cluster, 64, 2)), 63 / 64.0 * 1e9 / 100e9);
  EXPECT_EQ(network.all_reduce_s(1e9, group_of(cluster, 1, 1)), 0);
}

}  // namespace
}  // namespace tessera::plan
