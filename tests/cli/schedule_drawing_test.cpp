#include "cli/schedule_drawing.h"

#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

using account::even_times;
using account::simulate;
using spec::make_schedule;
using spec::Schedule;
using spec::ScheduleKind;

std::string drawn(const Schedule& schedule, const account::ActionTimes& times,
                  const DrawingOptions& options = {}) {
  return drawing(schedule, simulate(schedule, even_times(schedule, times)), options);
}

TEST(ScheduleDrawing, HasARowARankAndTimeToTheRight) {
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::one_f_one_b, 2, 1, 2), {}),
            "rank 0 F0 F1       B0===    B1===\n"
            "rank 1    F0 B0=== F1 B1===\n");
}

TEST(ScheduleDrawing, NamesTheStageWhereARankHasSeveral) {
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::zb_v, 2, 2, 1), {}),
            "rank 0 0F0         3F0 3I0 3W0         0I0 0W0\n"
            "rank 1     1F0 2F0         2I0 2W0 1I0 1W0\n");
}

TEST(ScheduleDrawing, GivesTheShortestActionRoomForItsName) {
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::zb_h1, 2, 1, 1), {1, 1.5, 1, 0.5}),
            "rank 0 F0===             I0=== W0\n"
            "rank 1       F0=== I0=== W0\n");
}

TEST(ScheduleDrawing, LeavesOutWhatTakesNoTime) {
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::one_f_one_b, 1, 1, 2), {1, 0, 0, 0}),
            "rank 0 F0 F1\n");
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::one_f_one_b, 1, 1, 1), {0, 0, 0, 0}), "");
}

TEST(ScheduleDrawing, GoesOnInAFurtherBlockOfRows) {
  DrawingOptions options;
  options.width = 27;
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::one_f_one_b, 2, 1, 2), {}, options),
            "rank 0 F0 F1       B0===\n"
            "rank 1    F0 B0=== F1 B1===\n"
            "\n"
            "rank 0  B1===\n"
            "rank 1\n");
}

TEST(ScheduleDrawing, PaintsActionsByKind) {
  DrawingOptions options;
  options.colour = true;
  EXPECT_EQ(drawn(make_schedule(ScheduleKind::one_f_one_b, 1, 1, 1), {}, options),
            "rank 0 \x1b[30;48;5;75mF0\x1b[0m \x1b[30;48;5;215mB0   \x1b[0m\n");
}

}  // namespace
}  // namespace tessera::cli
