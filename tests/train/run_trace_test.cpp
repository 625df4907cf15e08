#include "train/run_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

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

  /// Two stages on each of two ranks, four times. Validation, which goes through them too, is no
  /// part of a step.
  void run_mesh() {
    options_.config.model.num_hidden_layers = 4;
    options_.config.parallelism.pipeline_parallel_degree = 2;
    options_.config.parallelism.virtual_stages = 2;
    options_.config.parallelism.pipeline_schedule = "zb-v";
    options_.config.parallelism.tensor_parallel_degree = 2;
    options_.config.validation.freq = 1;
    run(8);
  }
  std::vector<trace::ChromeTrace> traces(int ranks) const {
    std::vector<trace::ChromeTrace> traces;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string name = "rank-" + std::to_string(rank) + ".json";
      traces.push_back(trace::read_chrome_trace((options_.run_dir / "trace" / name).string()));
    }
    return traces;
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

/// The span of a trace that an arrow's end is tied to.
const trace::ChromeEvent* span_at(const trace::ChromeTrace& trace, const trace::ChromeFlow& end) {
  const trace::ChromeEvent* innermost = nullptr;
  for (const trace::ChromeEvent& event : trace.events) {
    if (event.pid != end.pid || event.tid != end.tid) continue;
    if (event.begin_ns > end.time_ns || end.time_ns >= event.end_ns) continue;
    if (event.details.stage >= 0) innermost = &event;
  }
  return innermost;
}

TEST_F(RunTraceTest, DrawsAnArrowForEveryStreamFromTheActionThatMadeItToTheOneThatReadsIt) {
  run_mesh();
  const spec::Mesh mesh{2, 2, 1, 2};
  std::map<std::string, std::vector<const trace::ChromeEvent*>> from, to;
  const std::vector<trace::ChromeTrace> all = traces(8);
  for (const trace::ChromeTrace& trace : all) {
    for (const trace::ChromeFlow& flow : trace.flows) {
      const trace::ChromeEvent* span = span_at(trace, flow);
      ASSERT_NE(span, nullptr) << flow.id;
      (flow.begins ? from : to)[flow.id].push_back(span);
    }
  }
  // By step and pipeline: three micro-batches over three boundaries there and back.
  EXPECT_EQ(from.size(), 2u * 4 * 3 * (3 + 3));
  EXPECT_EQ(from.size(), to.size());
  for (const auto& [id, spans] : from) {
    ASSERT_EQ(spans.size(), 1u) << id;
    ASSERT_EQ(to[id].size(), 1u) << id;
    const trace::ChromeEvent& sends = *spans[0];
    const trace::ChromeEvent& reads = *to[id][0];
    EXPECT_LE(sends.end_ns, reads.begin_ns) << sends.name << ", " << reads.name;
    EXPECT_EQ(sends.details.step, reads.details.step);
    EXPECT_EQ(sends.details.micro_batch, reads.details.micro_batch);
    EXPECT_EQ(reads.details.stage - sends.details.stage, sends.name[0] == 'F' ? 1 : -1)
        << sends.name << ", " << reads.name;
    EXPECT_EQ(sends.name[0], reads.name[0]);
    const spec::Coordinate a = mesh.at(sends.pid), b = mesh.at(reads.pid);
    EXPECT_EQ(a.dp, b.dp);
    EXPECT_EQ(a.tp, b.tp);
  }
}

TEST_F(RunTraceTest, SetsWhatWasPredictedBesideWhatAPipelineDid) {
  run_mesh();
  const std::vector<trace::ChromeTrace> all = traces(8);
  // By step and pipeline: what its ranks were busy, in nanoseconds.
  std::map<std::pair<int64_t, int64_t>, int64_t> measured_ns, predicted_ns;
  for (int64_t rank = 0; rank < 8; ++rank) {
    const trace::ChromeTrace& trace = all[static_cast<size_t>(rank)];
    EXPECT_EQ(trace.processes.at(10000 + rank), "rank " + std::to_string(rank) + ", predicted");
    using Action = std::tuple<int64_t, std::string, int64_t, int64_t, int64_t>;
    std::vector<Action> measured, predicted;
    for (const trace::ChromeEvent& event : trace.events) {
      const trace::Details& details = event.details;
      if (details.micro_batch < 0) continue;
      const Action action{details.step, event.name, details.stage, details.chunk,
                          details.micro_batch};
      const bool is_predicted = event.pid == 10000 + rank;
      (is_predicted ? predicted : measured).push_back(action);
      (is_predicted ? predicted_ns : measured_ns)[{details.step, rank % 4}] +=
          event.end_ns - event.begin_ns;
    }
    EXPECT_EQ(predicted, measured) << "rank " << rank;
    EXPECT_EQ(measured.size(), 2u * 2 * 3 * 3) << "steps, chunks, micro-batches, F I W";
  }
  for (const auto& [key, ns] : measured_ns) {
    EXPECT_NEAR(static_cast<double>(predicted_ns[key]), static_cast<double>(ns), 50);
  }
}

TEST_F(RunTraceTest, PutsWhatAnAxisSendsOnItsLane) {
  run_mesh();
  for (const trace::ChromeTrace& trace : traces(8)) {
    std::set<std::string> names[10];
    for (const trace::ChromeEvent& event : trace.events) {
      const int64_t lane = event.tid % 10;
      names[lane].insert(event.name);
      if (!event.details.axis.empty() && event.name != "wait") {
        EXPECT_EQ(event.details.axis, name_of(static_cast<trace::Lane>(lane))) << event.name;
      }
    }
    EXPECT_TRUE(names[3].count("send") == 1 && names[3].count("recv") == 1);
    EXPECT_TRUE(names[1].count("all-reduce") == 1 && names[1].count("send") == 0);
    EXPECT_EQ(names[2].count("send") + names[2].count("recv"), 0u);
    for (const auto& name : {"F s0 c0 m0", "B s0 c0 m0"}) EXPECT_EQ(names[3].count(name), 0u);
  }
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
