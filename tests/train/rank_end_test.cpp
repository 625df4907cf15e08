#include "train/rank_end.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace tessera::train {
namespace {

RankEnd exited(int rank, int code, double seconds = 1.0) {
  return {rank, 100 + rank, {code, 0}, seconds, 0};
}
RankEnd killed(int rank, int signal, double seconds = 1.0) {
  return {rank, 100 + rank, {0, signal}, seconds, 0};
}
RankEnd told(RankEnd end, int signal) {
  end.told_to_stop = signal;
  return end;
}

TEST(RankList, ShortensRuns) {
  EXPECT_EQ(list_ranks({3}), "rank 3");
  EXPECT_EQ(list_ranks({1, 0}), "ranks 0, 1");
  EXPECT_EQ(list_ranks({3, 0, 1}), "ranks 0, 1, 3");
  EXPECT_EQ(list_ranks({0, 1, 2, 3, 5, 7, 8, 9}), "ranks 0-3, 5, 7-9");
}

TEST(FailureReport, TellsTheFirstFailureFromThoseThatFollowed) {
  const std::vector<RankEnd> ends{killed(2, SIGKILL, 12.3), exited(0, 1, 12.38),
                                  exited(1, 1, 12.66), exited(3, 1, 12.5)};
  EXPECT_EQ(
      describe_failure(ends, 0),
      "rank 2 (pid 102) was killed by signal 9 (SIGKILL) 12.3 s after the start, as the system "
      "does when memory runs out; ranks 0, 1, 3 stopped by themselves within 0.4 s");
}

TEST(FailureReport, TellsHowEachOfTheOthersEnded) {
  const std::vector<RankEnd> ends{exited(0, 0, 1.0), exited(1, 3, 2.0), killed(2, SIGSEGV, 2.1),
                                  told(killed(3, SIGTERM, 7.0), SIGTERM),
                                  told(killed(4, SIGKILL, 10.0), SIGKILL)};
  EXPECT_EQ(
      describe_failure(ends, 1),
      "rank 1 (pid 101) exited with status 3 2.0 s after the start; rank 0 had finished; rank 2 "
      "died of a signal too; rank 3 stopped on SIGTERM; rank 4 had to be killed");
}

TEST(FailureReport, IsAboutOneRankAloneInAWorldOfOne) {
  EXPECT_EQ(describe_failure({killed(0, SIGSEGV, 0.5)}, 0),
            "rank 0 (pid 100) was killed by signal 11 (SIGSEGV) 0.5 s after the start");
}

TEST(Culprit, IsTheRankThatASignalKilledEvenWhenItIsSeenLater) {
  EXPECT_TRUE(better_culprit(killed(2, SIGKILL), exited(0, 1), true));
  EXPECT_TRUE(better_culprit(killed(2, SIGKILL), exited(0, 1), false));
  EXPECT_FALSE(better_culprit(exited(0, 2), killed(2, SIGKILL), true));
}

TEST(Culprit, IsTheEarlierOfTwoOfOneKind) {
  EXPECT_FALSE(better_culprit(killed(1, SIGSEGV), killed(0, SIGKILL), true));
  EXPECT_FALSE(better_culprit(exited(1, 1), exited(0, 1), true));
}

TEST(Culprit, IsTheRankWithAStatusOfItsOwnAmongThoseSeenTogether) {
  EXPECT_TRUE(better_culprit(exited(1, 3), exited(0, 1), true));
  EXPECT_FALSE(better_culprit(exited(1, 3), exited(0, 1), false));
}

TEST(LostRanks, AreThoseThatDiedOfThemselves) {
  const std::vector<RankEnd> ends{killed(2, SIGKILL), killed(3, SIGKILL), exited(0, 1),
                                  told(killed(1, SIGTERM), SIGTERM)};
  EXPECT_EQ(count_lost(ends, 0), 2);
  EXPECT_EQ(count_lost({exited(1, 1), exited(0, 1)}, 0), 1);
}

}  // namespace
}  // namespace tessera::train
