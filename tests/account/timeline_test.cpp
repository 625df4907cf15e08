#include "account/timeline.h"

#include <gtest/gtest.h>

namespace tessera::account {
namespace {

using spec::make_schedule;
using spec::Schedule;
using spec::ScheduleKind;

/// Forward 1 tick and backward 2, or its halves 1 each; divided by the chunks of a rank.
Timeline unit_timeline(ScheduleKind kind, int64_t p, int64_t v, int64_t m) {
  const Schedule schedule = make_schedule(kind, p, v, m);
  const double part = 1.0 / static_cast<double>(v);
  return simulate(schedule, even_times(schedule, {part, 2 * part, part, part}));
}

TEST(Timeline, OfGpipeAnd1F1BIsThePublishedOne) {
  struct Fact {
    int64_t p, m;
    double ticks, idle;
  };
  for (const Fact& fact :
       {Fact{4, 4, 21, 3.0 / 7}, Fact{4, 16, 57, 3.0 / 19}, Fact{4, 32, 105, 3.0 / 35},
        Fact{8, 8, 45, 7.0 / 15}, Fact{16, 4, 57, 15.0 / 19}, Fact{4, 12, 45, 3.0 / 15},
        Fact{8, 32, 117, 7.0 / 39}}) {
    for (const ScheduleKind kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
      const Timeline timeline = unit_timeline(kind, fact.p, 1, fact.m);
      EXPECT_DOUBLE_EQ(timeline.makespan, fact.ticks) << fact.p << ", " << fact.m;
      EXPECT_NEAR(timeline.bubble_fraction(), fact.idle, 1e-12) << fact.p << ", " << fact.m;
      EXPECT_DOUBLE_EQ(timeline.busy[0], 3.0 * static_cast<double>(fact.m));
    }
  }
}

TEST(Timeline, OfInterleavingHasAVthOfTheBubble) {
  for (const int64_t p : {2, 4, 8}) {
    for (const int64_t v : {2, 3, 4}) {
      for (int64_t m = p; m <= 4 * p; ++m) {  // p need not divide it
        const Timeline timeline = unit_timeline(ScheduleKind::interleaved, p, v, m);
        const double idle = 3.0 * static_cast<double>(p - 1) / static_cast<double>(v);
        EXPECT_NEAR(timeline.makespan - timeline.busy[0], idle, 1e-9)
            << p << ", " << v << ", " << m;
      }
    }
  }
}

TEST(Timeline, OfZbH1HasAThirdOfTheBubble) {
  // (p − 1)(F + I − W), of (p − 1)(F + B), once there are enough micro-batches to put W off.
  for (int64_t p = 2; p <= 8; ++p) {
    for (int64_t m = p; m <= 3 * p; ++m) {
      const Timeline timeline = unit_timeline(ScheduleKind::zb_h1, p, 1, m);
      EXPECT_DOUBLE_EQ(timeline.makespan - timeline.busy[0], static_cast<double>(p - 1))
          << p << ", " << m;
    }
  }
}

TEST(Timeline, OfZbVIsIdleForAFillAlone) {
  // In units of a whole stage's forward: half a unit a rank, and none of it between the first
  // action and the last of any rank.
  for (int64_t p = 2; p <= 8; ++p) {
    for (int64_t m = 2 * p; m <= 4 * p; ++m) {
      const Timeline timeline = unit_timeline(ScheduleKind::zb_v, p, 2, m);
      EXPECT_DOUBLE_EQ(timeline.makespan - timeline.busy[0], static_cast<double>(p - 1) / 2)
          << p << ", " << m;
      for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
        const std::vector<Interval>& actions = timeline.ranks[rank];
        EXPECT_DOUBLE_EQ(actions.back().end - actions.front().begin, timeline.busy[rank]);
      }
    }
  }
}

TEST(Timeline, PutsAMessageBetweenTheStagesOfTwoRanks) {
  // Two ranks, one micro-batch: F, message, F, B, message, B.
  const Schedule schedule = make_schedule(ScheduleKind::one_f_one_b, 2, 1, 1);
  StageTimes times = even_times(schedule, {});
  times.message = 0.25;
  const Timeline timeline = simulate(schedule, times);
  EXPECT_DOUBLE_EQ(timeline.ranks[1][0].begin, 1.25);
  EXPECT_DOUBLE_EQ(timeline.makespan, 6.5);
  // The stages at the turn of a V are on one rank, and send nothing.
  const Schedule turn = make_schedule(ScheduleKind::zb_v, 2, 2, 1);
  times = even_times(turn, {});
  times.message = 0.25;
  EXPECT_DOUBLE_EQ(simulate(turn, times).ranks[1][1].begin, 2.25);
}

TEST(Timeline, WaitsForTheSlowestStage) {
  const Schedule schedule = make_schedule(ScheduleKind::one_f_one_b, 2, 1, 8);
  StageTimes times = even_times(schedule, {});
  times.stages[1] = {2, 4, 2, 2};
  const Timeline timeline = simulate(schedule, times);
  EXPECT_DOUBLE_EQ(timeline.makespan, 1 + 8 * 6 + 2);
  EXPECT_DOUBLE_EQ(timeline.busy[0], 24);
  EXPECT_DOUBLE_EQ(timeline.busy[1], 48);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), 1 - 72.0 / 102);
}

TEST(StageTimes, CountTheHeadsBackwardInTheLastForward) {
  spec::RunConfig config;
  config.model = spec::resolved(spec::find_model_preset("gpt2-124m")->config);
  config.data.seq_len = 1024;
  config.parallelism.pipeline_parallel_degree = 2;
  const double products = 2.0 * 7'077'888, attention = 4.0 * 768 * 1024;
  const double head = 2.0 * 768 * 50257;
  const double block = products + attention;
  StageTimes times = stage_times(config);
  ASSERT_EQ(times.stages.size(), 2U);
  EXPECT_DOUBLE_EQ(times.stages[0].forward, 8);
  EXPECT_DOUBLE_EQ(times.stages[0].backward, 16);
  EXPECT_DOUBLE_EQ(times.stages[0].backward_weight, 8 * products / block);
  EXPECT_DOUBLE_EQ(times.stages[1].forward, 4 + 3 * head / block);
  EXPECT_DOUBLE_EQ(times.stages[1].backward_input + times.stages[1].backward_weight, 8);

  config.parallelism.layers_per_stage = {8, 4};
  config.activation_checkpoint.mode = spec::Recompute::full;
  times = stage_times(config);
  EXPECT_DOUBLE_EQ(times.stages[0].backward, 24);
  EXPECT_DOUBLE_EQ(times.stages[0].backward_weight, 8 * products / block);
  config.activation_checkpoint.mode = spec::Recompute::selective;
  EXPECT_DOUBLE_EQ(stage_times(config).stages[0].backward, 16 + 8 * attention / block);
}

}  // namespace
}  // namespace tessera::account
