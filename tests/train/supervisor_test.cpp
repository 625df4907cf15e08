#include "train/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "train/environment.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using core::ConfigError;
using ::testing::HasSubstr;
using ::testing::Not;

/// Long enough never to pass in a test that expects something else to happen first.
constexpr std::chrono::seconds kForever{60};

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Whether the process still runs. One that is dead but not yet waited for by init does not.
bool alive(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.at(name_end + 2) != 'Z';
}

/// Looks again until `condition` holds; false when it does not within half a minute.
bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Ranks are shell scripts that leave files in a folder of the test's own, their working directory.
class Launch : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "launch-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.cores = 2;
    options_.graces.notice = kForever;
    options_.graces.terminate = kForever;
    options_.graces.interrupt = kForever;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void ranks(int count, const std::string& script) { ranks(count, count, script); }
  void ranks(int min, int max, const std::string& script) {
    options_.ranks = {min, max};
    options_.command = {"/bin/sh", "-c", "cd " + folder_.string() + "\n" + script};
  }

  LaunchOutcome run() {
    return launch(options_, [this](const std::string& line) { report_ += line + "\n"; });
  }

  /// Runs the launcher in a process of its own, which reports into the file "report".
  pid_t run_apart(const std::function<void()>& prepare = [] {}) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prepare();
    const LaunchOutcome outcome = launch(options_, [this](const std::string& line) {
      std::ofstream(folder_ / "report", std::ios::app) << line << "\n";
    });
    _exit(outcome.exit_status);
  }

  /// The exit status of that process, −signal where one killed it, as the test itself does when it
  /// does not end.
  static int wait_for(pid_t pid) {
    int status = 0;
    if (!eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; })) {
      ADD_FAILURE() << "the launcher does not end";
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  pid_t pid_in(const std::string& name) const { return std::stoi(file(name)); }
  /// Waits for pid-0 … pid-(count − 1), each complete with its newline.
  bool all_started(int count) const {
    return eventually([&] {
      for (int rank = 0; rank < count; ++rank) {
        if (file("pid-" + std::to_string(rank)).find('\n') == std::string::npos) return false;
      }
      return true;
    });
  }

  /// What a rank saw in its environment, from a file made by `env -0`.
  std::map<std::string, std::string> variables(const std::string& name) const {
    std::map<std::string, std::string> result;
    std::istringstream text(file(name));
    for (std::string entry; std::getline(text, entry, '\0');) {
      const size_t equals = entry.find('=');
      result[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    return result;
  }

  fs::path folder_;
  LaunchOptions options_;
  std::string report_;
};

constexpr const char* kShowPid = "echo $$ > tmp-$RANK; mv tmp-$RANK pid-$RANK\n";
constexpr const char* kAwaitFailure = "until [ -e failed ]; do sleep 0.02; done\n";

TEST_F(Launch, StartsEveryRankOnce) {
  ranks(5, "echo started >> rank-$RANK");
  const LaunchOutcome outcome = run();
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.restarts, 0);
  EXPECT_EQ(outcome.world_size, 5);
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(file("rank-" + std::to_string(rank)), "started\n");
  }
  EXPECT_FALSE(has("rank-5"));
}

TEST_F(Launch, GivesRanksTheVariablesOfTorchrun) {
  options_.max_restarts = 7;
  ranks(3, "env -0 > env-$RANK");
  run();
  for (int rank = 0; rank < 3; ++rank) {
    auto seen = variables("env-" + std::to_string(rank));
    EXPECT_EQ(seen["RANK"], std::to_string(rank));
    EXPECT_EQ(seen["LOCAL_RANK"], std::to_string(rank));
    EXPECT_EQ(seen["WORLD_SIZE"], "3");
    EXPECT_EQ(seen["LOCAL_WORLD_SIZE"], "3");
    EXPECT_EQ(seen["GROUP_RANK"], "0");
    EXPECT_EQ(seen["MASTER_ADDR"], "127.0.0.1");
    EXPECT_GT(std::stoi(seen["MASTER_PORT"]), 1023);
    EXPECT_EQ(seen["TORCHELASTIC_RESTART_COUNT"], "0");
    EXPECT_EQ(seen["TORCHELASTIC_MAX_RESTARTS"], "7");
    EXPECT_EQ(seen.count("TESSERA_RESTART"), 0u);
  }
}

TEST_F(Launch, StartsRanksThatKnowWhoTheyAre) {
  ranks(2, "env -0 > env-$RANK");
  run();
  std::set<std::string> names;
  for (int rank = 0; rank < 2; ++rank) {
    const auto seen = variables("env-" + std::to_string(rank));
    const RankEnvironment env = read_rank_environment(
        [&](const char* name) {
          const auto found = seen.find(name);
          return found == seen.end() ? nullptr : found->second.c_str();
        },
        16);
    EXPECT_EQ(env.rank, rank);
    EXPECT_EQ(env.world_size, 2);
    EXPECT_EQ(env.source, "tessera launch");
    names.insert(env.rendezvous);
  }
  EXPECT_EQ(names.size(), 1u);
}

TEST_F(Launch, NamesEveryLaunchDifferently) {
  ranks(1, "echo $TESSERA_LAUNCH_ID > id");
  run();
  const std::string first = file("id");
  run();
  EXPECT_NE(first, file("id"));
  EXPECT_GT(first.size(), 8u);
}

TEST_F(Launch, SharesTheCoresAndSaysSo) {
  unsetenv("OMP_NUM_THREADS");
  options_.cores = 7;
  ranks(3, "echo $OMP_NUM_THREADS > threads-$RANK");
  run();
  EXPECT_EQ(file("threads-2"), "2\n");
  EXPECT_THAT(report_, HasSubstr("3 ranks × 2 threads on 7 cores"));
}

TEST_F(Launch, AllowsMoreRanksThanCoresAndSaysSo) {
  unsetenv("OMP_NUM_THREADS");
  ranks(4, "echo $OMP_NUM_THREADS > threads-$RANK");
  EXPECT_EQ(run().exit_status, 0);
  EXPECT_EQ(file("threads-3"), "1\n");
  EXPECT_THAT(report_, HasSubstr("4 ranks × 1 thread on 2 cores, which they share"));
}

TEST_F(Launch, LeavesTheUsersThreadsAlone) {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  ranks(2, "echo $OMP_NUM_THREADS > threads-$RANK");
  run();
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(file("threads-1"), "3,2\n");
}

TEST_F(Launch, LooksForTheProgramInPath) {
  ranks(1, "");
  options_.command.front() = "sh";
  EXPECT_EQ(run().exit_status, 0);
}

TEST_F(Launch, ReturnsTheStatusOfTheRankThatFailedFirst) {
  ranks(3, std::string("if [ $RANK = 1 ]; then touch failed; exit 3; fi\n") + kAwaitFailure +
               "sleep 0.2; exit 1");
  EXPECT_EQ(run().exit_status, 3);
  EXPECT_THAT(report_, HasSubstr("rank 1 (pid "));
  EXPECT_THAT(report_, HasSubstr("exited with status 3"));
  EXPECT_THAT(report_, HasSubstr("ranks 0, 2 stopped by themselves"));
}

TEST_F(Launch, CallsADeathByASignalAFailedRun) {
  ranks(3, std::string("if [ $RANK = 2 ]; then touch failed; kill -9 $$; fi\n") + kAwaitFailure +
               "exit 1");
  EXPECT_EQ(run().exit_status, 1);
  EXPECT_THAT(report_, HasSubstr("rank 2 (pid "));
  EXPECT_THAT(report_, HasSubstr("was killed by signal 9 (SIGKILL)"));
}

TEST_F(Launch, LetsTheOthersStopByThemselvesFirst) {
  ranks(2, std::string("trap 'touch terminated' TERM\n"
                       "if [ $RANK = 0 ]; then touch failed; exit 1; fi\n") +
               kAwaitFailure + "sleep 0.3; touch said-why; exit 1");
  run();
  EXPECT_TRUE(has("said-why"));
  EXPECT_FALSE(has("terminated"));
}

TEST_F(Launch, TerminatesRanksThatDoNotNotice) {
  options_.graces.notice = std::chrono::milliseconds(100);
  ranks(2,
        std::string("if [ $RANK = 0 ]; then until [ -e pid-1 ]; do sleep 0.02; done; exit 1; fi\n"
                    "trap 'touch terminated; exit 0' TERM\n") +
            kShowPid + "while :; do sleep 0.02; done");
  EXPECT_EQ(run().exit_status, 1);
  EXPECT_TRUE(has("terminated"));
  EXPECT_THAT(report_, HasSubstr("rank 1 did not stop: sending SIGTERM"));
  EXPECT_THAT(report_, HasSubstr("rank 1 stopped on SIGTERM"));
}

TEST_F(Launch, KillsARankThatIgnoresSigterm) {
  options_.graces.notice = std::chrono::milliseconds(100);
  options_.graces.terminate = std::chrono::milliseconds(100);
  ranks(2,
        std::string("if [ $RANK = 0 ]; then until [ -e pid-1 ]; do sleep 0.02; done; exit 1; fi\n"
                    "trap '' TERM\n") +
            kShowPid + "while :; do sleep 0.02; done");
  EXPECT_EQ(run().exit_status, 1);
  EXPECT_THAT(report_, HasSubstr("rank 1 had to be killed"));
  EXPECT_FALSE(alive(pid_in("pid-1")));
}

TEST_F(Launch, LeavesNothingBehindThatARankHasStarted) {
  ranks(1, "sleep 60 & echo $! > helper; exit 0");
  EXPECT_EQ(run().exit_status, 0);
  const pid_t helper = pid_in("helper");
  EXPECT_TRUE(eventually([&] { return !alive(helper); }));
}

TEST_F(Launch, RestartsAllRanksUntilTheySucceed) {
  options_.max_restarts = 5;
  ranks(2,
        "echo $TESSERA_RESTART,$TESSERA_LAUNCH_ID > start-$RANK-$TORCHELASTIC_RESTART_COUNT\n"
        "[ $RANK = 0 ] || exit 0\n"
        "[ $TORCHELASTIC_RESTART_COUNT = 2 ]");
  const LaunchOutcome outcome = run();
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.restarts, 2);
  EXPECT_EQ(outcome.world_size, 2);
  EXPECT_TRUE(has("start-1-2"));
  EXPECT_FALSE(has("start-0-3"));
  const std::string id = file("start-0-0").substr(1);
  EXPECT_EQ(file("start-0-0"), "," + id);
  EXPECT_EQ(file("start-0-1"), "1," + id);
  EXPECT_EQ(file("start-1-2"), "1," + id);
}

TEST_F(Launch, GivesUpAfterTheRestartsItMayMake) {
  options_.max_restarts = 2;
  ranks(1, "echo start >> starts; exit 7");
  const LaunchOutcome outcome = run();
  EXPECT_EQ(outcome.exit_status, 7);
  EXPECT_EQ(outcome.restarts, 2);
  EXPECT_EQ(file("starts"), "start\nstart\nstart\n");
}

TEST_F(Launch, DoesNotRestartWhatWouldFailAgain) {
  options_.max_restarts = 5;
  for (int status : {2, 3, 4}) {
    ranks(1, "exit " + std::to_string(status));
    const LaunchOutcome outcome = run();
    EXPECT_EQ(outcome.exit_status, status);
    EXPECT_EQ(outcome.restarts, 0);
  }
}

TEST_F(Launch, RestartsWithoutTheRanksItHasLost) {
  options_.max_restarts = 1;
  ranks(1, 4,
        std::string("[ $WORLD_SIZE = 4 ] || exit 0\n"
                    "if [ $RANK = 3 ]; then touch failed; kill -9 $$; fi\n") +
            kAwaitFailure + "exit 1");
  const LaunchOutcome outcome = run();
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.world_size, 3);
}

TEST_F(Launch, NeverRestartsWithFewerRanksThanTheMinimum) {
  options_.max_restarts = 3;
  ranks(3, 4, "exit 1");
  EXPECT_EQ(run().world_size, 3);
}

TEST_F(Launch, RefusesAProgramThatCannotBeRun) {
  options_.ranks = {2, 2};
  options_.command = {(folder_ / "missing").string()};
  try {
    run();
    FAIL() << "a missing program was launched";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder_ / "missing").string()));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  options_.command = {folder_.string()};
  EXPECT_THROW(run(), ConfigError);
}

TEST_F(Launch, RefusesNumbersThatMakeNoSense) {
  ranks(0, "");
  EXPECT_THROW(run(), ConfigError);
  ranks(1025, "");
  EXPECT_THROW(run(), ConfigError);
  ranks(3, 2, "");
  EXPECT_THROW(run(), ConfigError);
  ranks(1, "");
  options_.max_restarts = -1;
  EXPECT_THROW(run(), ConfigError);
}

TEST_F(Launch, KillsItsRanksWhenReportingThrows) {
  options_.graces.notice = std::chrono::milliseconds(10);
  ranks(2, std::string(
               "if [ $RANK = 0 ]; then until [ -e pid-1 ]; do sleep 0.02; done; exit 1; fi\n") +
               kShowPid + "exec sleep 60");
  EXPECT_THROW(launch(options_,
                      [](const std::string& line) {
                        if (line.find("did not stop") != std::string::npos) throw std::bad_alloc();
                      }),
               std::bad_alloc);
  EXPECT_FALSE(alive(pid_in("pid-1")));
}

TEST_F(Launch, TakesItsRanksAlongWhenItIsKilled) {
  ranks(2, std::string(kShowPid) + "exec sleep 60");
  const pid_t launcher = run_apart();
  ASSERT_TRUE(all_started(2));
  kill(launcher, SIGKILL);
  EXPECT_EQ(wait_for(launcher), -SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(pid_in("pid-0")) && !alive(pid_in("pid-1")); }));
}

TEST_F(Launch, PassesAStopOnToEveryRankOnce) {
  for (const auto& [number, status] : {std::pair{SIGTERM, 143}, std::pair{SIGINT, 130}}) {
    ranks(2, std::string("rm -f told-$RANK; trap 'echo told >> told-$RANK; exit 0' TERM\n"
                         "trap 'echo interrupted >> told-$RANK' INT\n") +
                 kShowPid + "while :; do sleep 0.02; done");
    options_.max_restarts = 3;
    const pid_t launcher = run_apart([] {
      setpgid(0, 0);
      signal(SIGINT, SIG_DFL);
    });
    ASSERT_TRUE(all_started(2));
    kill(-launcher, number);  // as a terminal does: to the launcher's whole process group
    EXPECT_EQ(wait_for(launcher), status);
    for (const char* rank : {"0", "1"}) {
      EXPECT_EQ(file(std::string("told-") + rank), "told\n");
      EXPECT_FALSE(alive(pid_in(std::string("pid-") + rank)));
      fs::remove(folder_ / (std::string("pid-") + rank));
    }
    EXPECT_THAT(file("report"), Not(HasSubstr("restart")));
  }
}

TEST_F(Launch, KillsRanksThatIgnoreAStop) {
  options_.graces.interrupt = std::chrono::milliseconds(100);
  ranks(1, std::string("trap '' TERM\n") + kShowPid + "while :; do sleep 0.02; done");
  const pid_t launcher = run_apart();
  ASSERT_TRUE(all_started(1));
  kill(launcher, SIGTERM);
  EXPECT_EQ(wait_for(launcher), 143);
  EXPECT_FALSE(alive(pid_in("pid-0")));
}

TEST_F(Launch, KillsAtOnceWhenToldTwice) {
  ranks(1, std::string("trap '' TERM\n") + kShowPid + "while :; do sleep 0.02; done");
  const pid_t launcher = run_apart();
  ASSERT_TRUE(all_started(1));
  kill(launcher, SIGTERM);
  ASSERT_TRUE(eventually([&] { return file("report").find("stopping") != std::string::npos; }));
  kill(launcher, SIGTERM);
  EXPECT_EQ(wait_for(launcher), 143);
  EXPECT_THAT(file("report"), HasSubstr("again"));
}

TEST_F(Launch, OutlivesASignalItWasToldToIgnore) {
  ranks(1, std::string(kShowPid) + "until [ -e go ]; do sleep 0.02; done");
  const pid_t launcher = run_apart([] { signal(SIGHUP, SIG_IGN); });
  ASSERT_TRUE(all_started(1));
  kill(launcher, SIGHUP);
  std::ofstream(folder_ / "go") << "\n";
  EXPECT_EQ(wait_for(launcher), 0);
}

TEST_F(Launch, KnowsHowRanksEndedThoughItsParentIgnoredChildren) {
  ranks(2, "exit 5");
  EXPECT_EQ(wait_for(run_apart([] { signal(SIGCHLD, SIG_IGN); })), 5);
}

TEST(RankRange, ReadsANumberARangeAndAuto) {
  EXPECT_EQ(parse_rank_range("4", 2).min, 4);
  EXPECT_EQ(parse_rank_range("4", 2).max, 4);
  EXPECT_EQ(parse_rank_range("2:4", 2).min, 2);
  EXPECT_EQ(parse_rank_range("2:4", 2).max, 4);
  EXPECT_EQ(parse_rank_range("auto", 6).min, 6);
  EXPECT_EQ(parse_rank_range("auto", 6).max, 6);
}

TEST(RankRange, RefusesWhatIsNone) {
  for (const char* text : {"", "0", "-1", "x", "4x", "2:", ":2", "4:2", "1:2:3", "1025", "gpu"}) {
    EXPECT_THROW(parse_rank_range(text, 2), ConfigError) << text;
  }
}

}  // namespace
}  // namespace tessera::train
