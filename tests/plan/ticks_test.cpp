#include "plan/ticks.h"

#include <gtest/gtest.h>

namespace tessera::plan {
namespace {

Layout pipeline(int64_t stages) {
  Layout layout;
  layout.pp = stages;
  return layout;
}

TEST(Ticks, AreThoseOfTheTextbooksPipelines) {
  struct Row {
    int64_t stages, micro_batches;
    double step, busy, idle;
  };
  for (const Row& row :
       {Row{4, 4, 21, 12, 0.429}, Row{4, 16, 57, 48, 0.158}, Row{4, 32, 105, 96, 0.086},
        Row{8, 8, 45, 24, 0.467}, Row{16, 4, 57, 12, 0.789}, Row{4, 12, 45, 36, 0.2},
        Row{8, 32, 117, 96, 0.179}}) {
    for (const auto schedule : {spec::ScheduleKind::one_f_one_b, spec::ScheduleKind::gpipe}) {
      Layout layout = pipeline(row.stages);
      layout.schedule = schedule;
      const Ticks ticks = ticks_of(layout, row.micro_batches);
      EXPECT_DOUBLE_EQ(ticks.step, row.step) << row.stages << ' ' << row.micro_batches;
      EXPECT_DOUBLE_EQ(ticks.busy, row.busy);
      EXPECT_NEAR(ticks.bubble_fraction(), row.idle, 0.0005);
    }
  }
}

TEST(Ticks, OfInterleavedStagesIdleAVthOfUsefulTime) {
  Layout layout = pipeline(4);
  layout.schedule = spec::ScheduleKind::interleaved;
  layout.v = 3;
  const Ticks ticks = ticks_of(layout, 16);
  EXPECT_NEAR(ticks.busy, 48, 1e-9);
  EXPECT_NEAR(ticks.bubble_over_useful(), 3.0 / 48, 1e-9);
}

TEST(Ticks, OfLongRunsAreThoseOfAWholeSimulation) {
  // Of 8 stages, 41,666 micro-batches make a million actions; one more is taken as periodic.
  const Layout layout = pipeline(8);
  const Ticks before = ticks_of(layout, 41'666), after = ticks_of(layout, 41'667);
  EXPECT_DOUBLE_EQ(before.step, 3 * 41'666 + 21);
  EXPECT_DOUBLE_EQ(after.step, 3 * 41'667 + 21);
}

}  // namespace
}  // namespace tessera::plan
