// Schedules as PyTorch's own classes dump them (tests/fixtures/make_schedule_fixtures.py), and
// ours.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "account/timeline.h"

namespace tessera::account {
namespace {

using spec::make_schedule;
using spec::Schedule;
using spec::ScheduleKind;

const std::string kFolder = TESSERA_TESTS_DIR "/fixtures/schedules/";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Of torch 2.13.0, whose list of 1F1B's actions begins on the last rank with micro-batch 1.
const std::string kWrong = "1f1b-p4-v1-m8";

Schedule pytorch(const std::string& name) {
  const spec::ParsedSchedule parsed = spec::parse_schedule(text_of(kFolder + name + ".csv"));
  EXPECT_EQ(parsed.errors, std::vector<std::string>{}) << name;
  return parsed.schedule;
}

/// The actions of each rank.
std::vector<std::string> lines(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (const std::vector<spec::Action>& actions : schedule.ranks) {
    std::string& line = lines.emplace_back();
    for (const spec::Action& action : actions) line += spec::to_string(action) + " ";
  }
  return lines;
}

Timeline unit_timeline(const Schedule& schedule) {
  return simulate(schedule, even_times(schedule, {}));
}

TEST(PytorchSchedules, AreReadWithoutMistakes) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    ++files;
    if (entry.path().stem() == kWrong) continue;
    const Schedule schedule = pytorch(entry.path().stem());
    EXPECT_EQ(spec::mistakes(schedule), std::vector<std::string>{}) << entry.path();
    EXPECT_GE(schedule.num_ranks(), 2) << entry.path();
  }
  EXPECT_EQ(files, 14);
}

TEST(PytorchSchedules, AreTheSameWithCommunicationAndWithout) {
  for (const std::string name : {"interleaved-p4-v2-m8", "zbv-p4-v2-m8"}) {
    EXPECT_EQ(lines(pytorch(name)), lines(pytorch(name + "-comms")));
  }
}

TEST(PytorchSchedules, AreOursActionByAction) {
  struct Pair {
    const char* theirs;
    ScheduleKind kind;
    int64_t p, v, m;
  };
  for (const Pair& pair : {Pair{"gpipe-p4-v1-m8", ScheduleKind::gpipe, 4, 1, 8},
                           Pair{"interleaved-p4-v2-m8", ScheduleKind::interleaved, 4, 2, 8},
                           Pair{"interleaved-p2-v3-m6", ScheduleKind::interleaved, 2, 3, 6},
                           Pair{"interleaved-p4-v2-m4", ScheduleKind::interleaved, 4, 2, 4},
                           Pair{"zb1p-p4-v1-m8", ScheduleKind::zb_h1, 4, 1, 8},
                           Pair{"zbv-p4-v2-m8", ScheduleKind::zb_v, 4, 2, 8},
                           Pair{"zbv-p4-v2-m3", ScheduleKind::zb_v, 4, 2, 3},
                           Pair{"zbv-p2-v2-m6", ScheduleKind::zb_v, 2, 2, 6}}) {
    const Schedule theirs = pytorch(pair.theirs);
    const Schedule ours = make_schedule(pair.kind, pair.p, pair.v, pair.m);
    EXPECT_EQ(ours.rank_of_stage, theirs.rank_of_stage) << pair.theirs;
    EXPECT_EQ(lines(ours), lines(theirs)) << pair.theirs;
    EXPECT_DOUBLE_EQ(unit_timeline(ours).makespan, unit_timeline(theirs).makespan) << pair.theirs;
    for (int64_t rank = 0; rank < ours.num_ranks(); ++rank) {
      EXPECT_EQ(peak_in_flight(ours, rank), peak_in_flight(theirs, rank)) << pair.theirs;
    }
  }
}

TEST(PytorchSchedules, AreCheckedToo) {
  // An F and a B too many make one micro-batch more, of which all the rest is missing.
  const Schedule theirs = pytorch(kWrong);
  EXPECT_EQ(spec::mistakes(theirs),
            (std::vector<std::string>{"0F8 is missing", "0B8 is missing", "1F8 is missing",
                                      "1B8 is missing", "2F8 is missing", "2B8 is missing",
                                      "3F0 is missing", "3B8 is missing"}));
  std::vector<std::string> ours = lines(make_schedule(ScheduleKind::one_f_one_b, 4, 1, 8));
  EXPECT_NE(ours, lines(theirs));
  ours.back() = lines(theirs).back();
  EXPECT_EQ(ours, lines(theirs));
}

TEST(ToCsv, IsReadBack) {
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
        ScheduleKind::zb_h1, ScheduleKind::zb_v}) {
    for (const int64_t m : {1, 5, 8}) {
      const int64_t v = kind == ScheduleKind::zb_v || kind == ScheduleKind::interleaved ? 2 : 1;
      const Schedule schedule = make_schedule(kind, 4, v, m);
      const spec::ParsedSchedule parsed = spec::parse_schedule(to_csv(schedule));
      EXPECT_EQ(parsed.errors, std::vector<std::string>{});
      EXPECT_EQ(lines(parsed.schedule), lines(schedule));
      EXPECT_EQ(parsed.schedule.rank_of_stage, schedule.rank_of_stage);
      EXPECT_EQ(parsed.schedule.num_micro_batches, m);
    }
  }
}

TEST(ToCsv, LeavesCellsEmptyWhereARankWaits) {
  EXPECT_EQ(to_csv(make_schedule(ScheduleKind::one_f_one_b, 3, 1, 3)),
            "0F0,0F1,0F2,,,0B0,,0B1,,0B2\n"
            ",1F0,1F1,,1B0,1F2,1B1,,1B2\n"
            ",,2F0,2B0,2F1,2B1,2F2,2B2\n");
}

}  // namespace
}  // namespace tessera::account
