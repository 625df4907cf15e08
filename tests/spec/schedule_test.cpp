#include "spec/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::spec {
namespace {

struct Case {
  ScheduleKind kind;
  int64_t p, v, m;
};
std::string name_of(const Case& c) {
  return std::string(schedule_name(c.kind)) + " p " + std::to_string(c.p) + " v " +
         std::to_string(c.v) + " m " + std::to_string(c.m);
}

template <class F>
void for_all(const F& f) {
  using K = ScheduleKind;
  for (const K kind : {K::gpipe, K::one_f_one_b, K::interleaved, K::zb_h1, K::zb_v}) {
    for (int64_t p = 1; p <= 8; ++p) {
      for (int64_t v = 1; v <= 3; ++v) {
        if (kind != K::interleaved && v != (kind == K::zb_v ? 2 : 1)) continue;
        for (int64_t m = 1; m <= 17; ++m) f(Case{kind, p, v, m});
      }
    }
  }
}

Schedule made(const Case& c) {
  return make_schedule(c.kind, c.p, c.v, c.m);
}

/// The text of a schedule, a rank a line.
std::string text_of(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& actions : schedule.ranks) {
    for (const Action& action : actions) text += to_string(action) + " ";
    text.back() = '\n';
  }
  return text;
}

TEST(Schedule, OfEveryKindHasNoMistakes) {
  for_all([](const Case& c) {
    const Schedule schedule = made(c);
    EXPECT_EQ(mistakes(schedule), std::vector<std::string>{}) << name_of(c);
    EXPECT_EQ(schedule.num_ranks(), c.p);
    EXPECT_EQ(schedule.num_stages(), c.p == 1 ? 1 : c.p * c.v) << name_of(c);
    EXPECT_EQ(schedule.num_micro_batches, c.m);
  });
}

TEST(Schedule, TakesTheMicroBatchesOfAStageInAscendingOrder) {
  // So gradients are added up in the same order whatever the schedule.
  for_all([](const Case& c) {
    const Schedule schedule = made(c);
    for (const std::vector<Action>& actions : schedule.ranks) {
      for (size_t i = 0; i < actions.size(); ++i) {
        for (size_t j = i + 1; j < actions.size(); ++j) {
          if (actions[i].kind != actions[j].kind || actions[i].stage != actions[j].stage) continue;
          ASSERT_LT(actions[i].micro_batch, actions[j].micro_batch) << name_of(c);
        }
      }
    }
  });
}

TEST(Schedule, OfAPipelineIsThePublishedOne) {
  EXPECT_EQ(text_of(make_schedule(ScheduleKind::gpipe, 2, 1, 2)),
            "0F0 0F1 0B0 0B1\n"
            "1F0 1F1 1B0 1B1\n");
  EXPECT_EQ(text_of(make_schedule(ScheduleKind::one_f_one_b, 3, 1, 4)),
            "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
            "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
            "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
  EXPECT_EQ(text_of(make_schedule(ScheduleKind::interleaved, 2, 2, 4)),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
  EXPECT_EQ(text_of(make_schedule(ScheduleKind::zb_h1, 3, 1, 4)),
            "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3\n"
            "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3\n");
  EXPECT_EQ(text_of(make_schedule(ScheduleKind::zb_v, 2, 2, 3)),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2\n"
            "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2\n");
}

TEST(Schedule, OfOneRankIsForwardAndBackwardInTurn) {
  for_all([](const Case& c) {
    if (c.p == 1 && c.m == 2) {
      EXPECT_EQ(text_of(made(c)), "0F0 0B0 0F1 0B1\n");
    }
  });
}

TEST(Schedule, HasNoMoreInFlightThanItsKindPromises) {
  for_all([](const Case& c) {
    if (c.p == 1) return;
    const Schedule schedule = made(c);
    for (int64_t rank = 0; rank < c.p; ++rank) {
      const int64_t peak = peak_in_flight(schedule, rank);
      const std::string where = name_of(c) + " rank " + std::to_string(rank);
      const bool interleaves = c.kind == ScheduleKind::interleaved && c.v > 1;
      if (c.kind == ScheduleKind::gpipe) {
        EXPECT_EQ(peak, c.m) << where;
      } else if (interleaves && c.m % c.p == 0) {
        const int64_t warm_up = 2 * (c.p - 1 - rank) + (c.v - 1) * c.p;
        EXPECT_EQ(peak, std::min(c.m * c.v, warm_up + 1)) << where;
      } else if (interleaves) {
        const int64_t groups = std::max<int64_t>(c.m / c.p, 1);
        const int64_t group = std::max(c.p, (c.m + groups - 1) / groups);
        EXPECT_LE(peak, 2 * (c.p - 1 - rank) + (c.v - 1) * group + 1) << where;
      } else if (c.kind == ScheduleKind::zb_h1) {
        EXPECT_LE(peak, std::min(c.m, c.p)) << where;
      } else if (c.kind == ScheduleKind::zb_v) {
        EXPECT_LE(peak, std::min(2 * c.m, 2 * c.p)) << where;
      } else {
        EXPECT_EQ(peak, std::min(c.m, c.p - rank)) << where;
      }
    }
  });
}

TEST(Schedule, OfForwardAloneRunsToItsEndWithTwoBuffers) {
  for_all([](const Case& c) {
    const Schedule forward = forward_only(made(c), c.m);
    EXPECT_EQ(mistakes(forward, /*training=*/false), std::vector<std::string>{}) << name_of(c);
    const std::vector<int64_t> done = actions_done(forward, {2, 2});
    for (size_t rank = 0; rank < done.size(); ++rank) {
      EXPECT_EQ(done[rank], static_cast<int64_t>(forward.ranks[rank].size())) << name_of(c);
    }
  });
}

TEST(Schedule, RunsToItsEndWithTheBuffersItAsksFor) {
  for_all([](const Case& c) {
    const Schedule schedule = made(c);
    const int64_t buffers = buffers_to_send(schedule);
    const auto completes = [&](int64_t gradients) {
      const std::vector<int64_t> done = actions_done(schedule, {0, gradients});
      for (size_t rank = 0; rank < done.size(); ++rank) {
        if (done[rank] < static_cast<int64_t>(schedule.ranks[rank].size())) return false;
      }
      return true;
    };
    EXPECT_TRUE(completes(buffers)) << name_of(c);
    EXPECT_TRUE(buffers == 2 || !completes(buffers - 1)) << name_of(c);
  });
}

TEST(Schedule, AsksForMoreBuffersWhereASenderHasToGetFarAhead) {
  // Rank 1 sends gradients of so many micro-batches before the forward that rank 0 waits for ahead
  // of the first of them. One arrives at once, and the others have to leave.
  for (const int64_t ahead : {1, 2, 3, 4, 7}) {
    Schedule schedule;
    schedule.num_micro_batches = ahead + 1;
    schedule.rank_of_stage = {0, 1, 0};
    schedule.ranks.resize(2);
    const auto add = [&](size_t rank, ActionKind kind, int64_t stage, int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) schedule.ranks[rank].push_back({kind, stage, i});
    };
    const auto F = ActionKind::forward, B = ActionKind::backward;
    add(0, F, 0, 0, ahead + 1);
    add(0, F, 2, 0, ahead);
    add(0, B, 2, 0, ahead);
    add(0, F, 2, ahead, ahead + 1);
    add(0, B, 0, 0, ahead);
    add(0, B, 2, ahead, ahead + 1);
    add(0, B, 0, ahead, ahead + 1);
    add(1, F, 1, 0, ahead);
    add(1, B, 1, 0, ahead);
    add(1, F, 1, ahead, ahead + 1);
    add(1, B, 1, ahead, ahead + 1);
    EXPECT_EQ(mistakes(schedule), std::vector<std::string>{}) << ahead;
    EXPECT_EQ(buffers_to_send(schedule), std::max<int64_t>(2, ahead - 1)) << ahead;
  }
}

TEST(Schedule, IsKnownByItsNameInAConfig) {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
    ASSERT_TRUE(schedule_kind(name).has_value()) << name;
    EXPECT_EQ(schedule_name(*schedule_kind(name)), name);
  }
  EXPECT_EQ(schedule_kind("plans/mine.csv"), ScheduleKind::csv);
  EXPECT_EQ(schedule_kind("1F1B"), std::nullopt);
}

}  // namespace
}  // namespace tessera::spec
