#include <gtest/gtest.h>

#include <algorithm>

#include "spec/schedule.h"

namespace tessera::spec {
namespace {

using Lines = std::vector<std::string>;

Schedule small() {
  return make_schedule(ScheduleKind::one_f_one_b, 2, 1, 2);
}
Schedule small_halves() {
  return make_schedule(ScheduleKind::zb_h1, 2, 1, 2);
}
size_t position(const std::vector<Action>& actions, const std::string& name) {
  const auto found = std::find_if(actions.begin(), actions.end(),
                                  [&](const Action& action) { return to_string(action) == name; });
  EXPECT_NE(found, actions.end()) << name;
  return static_cast<size_t>(found - actions.begin());
}
void remove(std::vector<Action>& actions, const std::string& name) {
  actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(position(actions, name)));
}
void swap(std::vector<Action>& actions, const std::string& one, const std::string& other) {
  std::swap(actions[position(actions, one)], actions[position(actions, other)]);
}

TEST(ScheduleMistakes, FindAnActionThatIsMissing) {
  Schedule schedule = small();
  remove(schedule.ranks[1], "1F1");
  EXPECT_EQ(mistakes(schedule), Lines{"1F1 is missing"});
  schedule = small();
  remove(schedule.ranks[0], "0B0");
  EXPECT_EQ(mistakes(schedule), Lines{"0B0 is missing"});
  schedule = small_halves();
  remove(schedule.ranks[0], "0W1");
  EXPECT_EQ(mistakes(schedule), Lines{"0W1 is missing"});
  schedule = small_halves();
  remove(schedule.ranks[1], "1I0");
  EXPECT_EQ(mistakes(schedule), Lines{"1I0 is missing"});
}

TEST(ScheduleMistakes, FindAnActionThatIsDoubled) {
  Schedule schedule = small();
  schedule.ranks[1].push_back({ActionKind::backward, 1, 0});
  EXPECT_EQ(mistakes(schedule), Lines{"1B0 is done more than once"});
}

TEST(ScheduleMistakes, FindAnActionOfNoStageOrMicroBatch) {
  Schedule schedule = small();
  schedule.ranks[1].push_back({ActionKind::forward, 2, 0});
  schedule.ranks[0].push_back({ActionKind::forward, 0, -1});
  EXPECT_EQ(mistakes(schedule), (Lines{"0F-1 on rank 0: there are 2 stages and 2 micro-batches",
                                       "2F0 on rank 1: there are 2 stages and 2 micro-batches"}));
}

TEST(ScheduleMistakes, FindAStageOnNoRankOrOnTwo) {
  Schedule schedule = small();
  schedule.ranks[1].clear();
  EXPECT_EQ(mistakes(schedule), (Lines{"rank 1 does nothing", "stage 1 is on no rank"}));
  schedule = small();
  schedule.ranks[0].push_back(schedule.ranks[1].back());
  schedule.ranks[1].pop_back();
  EXPECT_EQ(mistakes(schedule)[0], "stage 1 is on several ranks: 0, 1");
  schedule = small();
  std::swap(schedule.rank_of_stage[0], schedule.rank_of_stage[1]);
  EXPECT_EQ(mistakes(schedule), (Lines{"stage 0 belongs to rank 1, but rank 0 does it",
                                       "stage 1 belongs to rank 0, but rank 1 does it"}));
}

TEST(ScheduleMistakes, FindRanksThatDoNothingHoweverMany) {
  Schedule schedule = small();
  schedule.ranks.resize(100'000);
  const Lines lines = mistakes(schedule);
  EXPECT_EQ(lines.size(), 100'000u - 2);
  EXPECT_EQ(lines[0], "rank 2 does nothing");
}

TEST(ScheduleMistakes, FindABackwardBeforeWhatItNeeds) {
  Schedule schedule = small();
  swap(schedule.ranks[1], "1F1", "1B1");
  EXPECT_EQ(mistakes(schedule), Lines{"1B1 comes before 1F1"});
  schedule = small_halves();
  swap(schedule.ranks[0], "0W0", "0I0");
  EXPECT_EQ(mistakes(schedule), Lines{"0W0 comes before 0I0"});
}

TEST(ScheduleMistakes, FindAStageThatIsThroughBeforeTheNextOneOnItsRankHasReadItsOutput) {
  Schedule schedule = parse_schedule("0F0,1F0,1I0,1W0,0B0\n2F0,2B0").schedule;
  EXPECT_EQ(mistakes(schedule), Lines{});
  swap(schedule.ranks[0], "1W0", "0B0");
  EXPECT_EQ(mistakes(schedule),
            Lines{"0B0 comes before 1W0, which reads what stage 0 left on their rank"});
  schedule = parse_schedule("0F0,1F0,1I0,0I0,0W0,1W0\n2F0,2B0").schedule;
  EXPECT_EQ(mistakes(schedule),
            Lines{"0W0 comes before 1W0, which reads what stage 0 left on their rank"});
}

TEST(ScheduleMistakes, FindABackwardThatIsBothWholeAndInHalves) {
  Schedule schedule = small();
  schedule.ranks[0].push_back({ActionKind::backward_weight, 0, 1});
  EXPECT_EQ(mistakes(schedule), Lines{"0B1 does a backward that 0W1 does too"});
}

TEST(ScheduleMistakes, FindRanksThatWaitForEachOther) {
  // Rank 0 wants the gradient of micro-batch 0 before it begins 1; rank 1 wants 1 first.
  Schedule schedule = small();
  swap(schedule.ranks[0], "0F1", "0B0");
  EXPECT_EQ(mistakes(schedule), Lines{});
  swap(schedule.ranks[1], "1B0", "1F1");
  EXPECT_EQ(mistakes(schedule),
            Lines{"ranks wait for each other: 0B0 on rank 0 waits for 1B0 on rank 1; 1F1 on rank 1 "
                  "waits for 0F1 on rank 0"});
}

TEST(ScheduleMistakes, FindARankThatWaitsForItself) {
  Schedule schedule = make_schedule(ScheduleKind::zb_v, 2, 2, 1);
  swap(schedule.ranks[1], "1F0", "2F0");
  EXPECT_EQ(mistakes(schedule),
            Lines{"ranks wait for each other: 2F0 on rank 1 waits for 1F0 on rank 1"});
}

TEST(ScheduleMistakes, AreFoundAllAtOnce) {
  Schedule schedule = small();
  remove(schedule.ranks[0], "0B1");
  schedule.ranks[1].push_back({ActionKind::forward, 1, 0});
  swap(schedule.ranks[1], "1B1", "1F1");
  EXPECT_EQ(mistakes(schedule),
            (Lines{"1F0 is done more than once", "0B1 is missing", "1B1 comes before 1F1"}));
}

TEST(ScheduleMistakes, OfForwardAloneAreItsBackwards) {
  EXPECT_EQ(mistakes(small(), false), (Lines{"0B0 is a backward", "0B1 is a backward",
                                             "1B0 is a backward", "1B1 is a backward"}));
}

}  // namespace
}  // namespace tessera::spec
