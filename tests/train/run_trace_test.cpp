#include "train/run_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "toy_run.h"
#include "trace/chrome_reader.h"
#include "train/thread_ranks.h"
#include "train/trainer.h"

namespace tessera::train {
namespace {

class RunTraceTest : public testing::Test {
 protected:
  RunTraceTest() {
    options_.config = toy_config(write_toy_text(folder_.path() / "toy.jsonl"));
    options_.config.training.steps = 2;
    options_.config.training.micro_batch_size = 2;
    options_.config.profiling.trace = true;
    options_.run_dir = folder_.path() / "run";
  }
  Summary run(int ranks) {
    Summary summary;
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      Summary mine = train(options_, comm, {});
      if (comm.rank() == 0) summary = std::move(mine);
    });
    return summary;
  }
  std::vector<trace::ChromeEvent> events(const std::string& name) const {
    return trace::read_chrome_trace((options_.run_dir / "trace" / name).string()).events;
  }

  TestFolder folder_;
  TrainOptions options_;
};

TEST_F(RunTraceTest, TellsEveryPassOfEveryStepOnItsRank) {
  run(2);
  for (const int rank : {0, 1}) {
    std::map<std::string, int> count;
    for (const auto& event : events("rank-" + std::to_string(rank) + ".json")) {
      EXPECT_EQ(event.pid, rank);
      if (event.details.step == 2) ++count[event.name];
    }
    // Six of the twelve sequences, two at a time.
    for (const char* name : {"F s0 c0 m0", "B s0 c0 m0", "F s0 c0 m2", "B s0 c0 m2", "optimizer",
                             "data", "validation", "checkpoint"}) {
      EXPECT_EQ(count[name], 1) << name << " of rank " << rank;
    }
    EXPECT_EQ(count["F s0 c0 m3"], 0);
    EXPECT_GE(count["all-reduce"], 1);
  }
}

TEST_F(RunTraceTest, PutsRanksOfAHostOnOneTime) {
  run(2);
  // A collective that both must have entered: neither ends before the other begins.
  std::map<int64_t, std::vector<trace::ChromeEvent>> calls;
  for (const char* name : {"rank-0.json", "rank-1.json"}) {
    for (const auto& event : events(name)) {
      if (event.name == "all-reduce" && event.tid == 2)
        calls[event.details.sequence].push_back(event);
    }
  }
  ASSERT_FALSE(calls.empty());
  for (const auto& [sequence, both] : calls) {
    ASSERT_EQ(both.size(), 2u) << sequence;
    EXPECT_LE(both[0].begin_ns, both[1].end_ns) << sequence;
    EXPECT_LE(both[1].begin_ns, both[0].end_ns) << sequence;
  }
}

TEST_F(RunTraceTest, KeepsTheTraceOfTheStartBeforeAResume) {
  run(2);
  options_.existing = Existing::resume;
  options_.config.training.steps = 3;
  run(2);
  const auto steps = [&](const char* name) {
    std::set<int64_t> found;
    for (const auto& event : events(name)) found.insert(event.details.step);
    found.erase(-1);
    return found;
  };
  EXPECT_EQ(steps("rank-1.start-1.json"), (std::set<int64_t>{1, 2}));
  EXPECT_EQ(steps("rank-1.json"), (std::set<int64_t>{3}));
}

TEST_F(RunTraceTest, IsWrittenOnlyWhereTheConfigAsksForIt) {
  options_.config.profiling.trace = false;
  run(1);
  EXPECT_FALSE(std::filesystem::exists(options_.run_dir / "trace"));
}

TEST_F(RunTraceTest, ItsWaitsAddUpToTheExposedCommunication) {
  options_.config.checkpoint.interval = 0;
  options_.config.validation.freq = 0;
  run(2);
  std::map<int64_t, double> waited;
  for (const auto& event : events("rank-0.json")) {
    if (event.name == "wait") {
      waited[event.details.step] += static_cast<double>(event.end_ns - event.begin_ns) * 1e-9;
    }
  }
  std::ifstream file(options_.run_dir / "metrics.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto first = nlohmann::json::parse(line);
  EXPECT_NEAR(waited[1], first["exposed_communication_s"].get<double>(), 1e-5);
  EXPECT_GT(first["communication_s"].get<double>(), 0);
}

TEST_F(RunTraceTest, ASummarySplitsTrafficByCollective) {
  const Summary summary = run(3);
  const auto json = nlohmann::json::parse(to_json(summary));
  const auto& dp = json["traffic_bytes_per_step"]["dp"];
  int64_t sum = 0;
  for (const auto& [name, bytes] : dp["by_collective"].items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, dp["measured"].get<int64_t>());
  EXPECT_GT(dp["by_collective"]["all_reduce"].get<int64_t>(), sum / 2);
  EXPECT_FALSE(dp["by_collective"].contains("broadcast")) << "no step broadcasts";
}

}  // namespace
}  // namespace tessera::train
