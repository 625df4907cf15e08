#include <gtest/gtest.h>

#include "spec/schedule.h"

namespace tessera::spec {
namespace {

using Lines = std::vector<std::string>;

std::string names(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += to_string(action) + " ";
  return text;
}

TEST(ParseSchedule, ReadsARowARankAndPlacesStagesWhereTheyAre) {
  const ParsedSchedule parsed = parse_schedule("0F0,3F0,3I0,,3W0,0B0\r\n,1F0,2F0, 2B0 ,1B0\n\n");
  EXPECT_EQ(parsed.errors, Lines{});
  const Schedule& schedule = parsed.schedule;
  ASSERT_EQ(schedule.num_ranks(), 2);
  EXPECT_EQ(names(schedule.ranks[0]), "0F0 3F0 3I0 3W0 0B0 ");
  EXPECT_EQ(names(schedule.ranks[1]), "1F0 2F0 2B0 1B0 ");
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(schedule.num_micro_batches, 1);
}

TEST(ParseSchedule, LeavesCommunicationOut) {
  const ParsedSchedule parsed = parse_schedule(
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD,0REDUCE_GRAD3\n"
      "1RECV_F0,1F0,1B0,1SEND_B0");
  EXPECT_EQ(parsed.errors, Lines{});
  EXPECT_EQ(names(parsed.schedule.ranks[0]), "0F0 0B0 ");
  EXPECT_EQ(mistakes(parsed.schedule), Lines{});
}

TEST(ParseSchedule, DoesTwoAtOnceOneAfterTheOther) {
  const ParsedSchedule parsed = parse_schedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1");
  EXPECT_EQ(parsed.errors, Lines{});
  EXPECT_EQ(names(parsed.schedule.ranks[0]), "0F0 0F1 0B0 0B1 ");
}

TEST(ParseSchedule, SaysWhereATextIsNone) {
  EXPECT_EQ(parse_schedule("0F0,F1,0X1\n1F,1F0x,-1F0").errors,
            (Lines{"row 1, column 2: \"F1\" is no action", "row 1, column 3: \"0X1\" is no action",
                   "row 2, column 1: \"1F\" is no action", "row 2, column 2: \"1F0x\" is no action",
                   "row 2, column 3: \"-1F0\" is no action"}));
  EXPECT_EQ(parse_schedule("").errors, Lines{"no rows"});
  EXPECT_EQ(parse_schedule("\n\n").errors, Lines{"no rows"});
  EXPECT_EQ(parse_schedule("0SEND_Q1,0F-1,(0F1;0B0)OVERLAP").errors.size(), 3U);
}

TEST(ParseSchedule, RefusesNumbersBeyondTheText) {
  EXPECT_EQ(parse_schedule("0F0,999999999999F0").errors,
            Lines{"row 1, column 2: \"999999999999F0\" is no action"});
  EXPECT_EQ(parse_schedule("0F99999999999999999999").errors.size(), 1U);
  EXPECT_EQ(parse_schedule("9F0,0F9,0F0,0F1").errors,
            Lines{"the text is too short for the actions of 10 stages and 10 micro-batches"});
}

}  // namespace
}  // namespace tessera::spec
