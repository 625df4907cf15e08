#include "cli/simulated_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "test_folder.h"
#include "trace/chrome_reader.h"

namespace tessera::cli {
namespace {

plan::Case llama_on_1024() {
  plan::Case run;
  run.model = *plan::find_model("llama-3-70b");
  run.cluster = *plan::find_cluster("h100-80g");
  run.layout.tp = 8;
  run.layout.pp = 4;
  run.layout.dp = 32;
  run.layout.v = 2;
  run.layout.schedule = spec::ScheduleKind::interleaved;
  run.layout.zero = 1;
  run.recipe.seq_len = 4096;
  run.recipe.global_batch = 512;
  return run;
}

struct Simulated {
  plan::Case run = llama_on_1024();
  plan::Estimate estimate = plan::estimate(run, plan::default_constants());
  std::vector<SimulatedRank> ranks = simulated_step(run, plan::default_constants(), estimate);
};

double last_end_s(const SimulatedRank& rank) {
  int64_t end = 0;
  for (const trace::Span& span : rank.spans) end = std::max(end, span.end_ns);
  return 1e-9 * static_cast<double>(end);
}

TEST(SimulatedTrace, HasTheFirstRankOfEveryStage) {
  const Simulated simulated;
  ASSERT_EQ(simulated.ranks.size(), 4u);
  for (size_t pp = 0; pp < 4; ++pp) {
    EXPECT_EQ(simulated.ranks[pp].rank, static_cast<int64_t>(pp) * 32 * 8);
  }
}

TEST(SimulatedTrace, TakesAsLongAsTheEstimatedStep) {
  const Simulated simulated;
  for (const SimulatedRank& rank : simulated.ranks) {
    EXPECT_NEAR(last_end_s(rank), simulated.estimate.time.step_s,
                1e-3 * simulated.estimate.time.step_s);
  }
}

TEST(SimulatedTrace, DoesEveryMicroBatchOnceInEveryStageBothWays) {
  const Simulated simulated;
  std::set<std::string> seen;
  size_t actions = 0;
  for (const SimulatedRank& rank : simulated.ranks) {
    for (const trace::Span& span : rank.spans) {
      if (span.lane != trace::Lane::compute || span.details.micro_batch < 0) continue;
      ++actions;
      seen.insert(span.name);
    }
  }
  EXPECT_EQ(actions, 16u * 8 * 2);  // micro-batches, stages, ways
  EXPECT_EQ(seen.size(), actions);
  EXPECT_TRUE(seen.contains("F s5 c1 m3"));
  EXPECT_TRUE(seen.contains("B s0 c0 m15"));
}

TEST(SimulatedTrace, NoActionBeginsBeforeTheMessageThatItReadsHasCome) {
  const Simulated simulated;
  std::vector<std::pair<int64_t, int64_t>> sent;  // number, end
  for (const SimulatedRank& rank : simulated.ranks) {
    for (const trace::Span& span : rank.spans) {
      if (span.flow_out >= 0) sent.emplace_back(span.flow_out, span.end_ns);
    }
  }
  std::sort(sent.begin(), sent.end());
  size_t arrows = 0;
  for (const SimulatedRank& rank : simulated.ranks) {
    for (const trace::Span& span : rank.spans) {
      if (span.flow_in < 0) continue;
      const auto from =
          std::lower_bound(sent.begin(), sent.end(), std::pair<int64_t, int64_t>(span.flow_in, 0));
      ASSERT_TRUE(from != sent.end() && from->first == span.flow_in) << span.name;
      EXPECT_LE(from->second, span.begin_ns) << span.name;
      ++arrows;
    }
  }
  EXPECT_EQ(arrows, 16u * 7 * 2);
}

TEST(SimulatedTrace, SpansOfTheComputingRowLieApart) {
  const Simulated simulated;
  for (const SimulatedRank& rank : simulated.ranks) {
    int64_t end = 0;
    for (const trace::Span& span : rank.spans) {
      if (span.lane != trace::Lane::compute) continue;
      EXPECT_GE(span.begin_ns, end) << span.name;
      end = span.end_ns;
    }
  }
}

TEST(SimulatedTrace, IsReadBackByTheReaderOfTraces) {
  const TestFolder folder;
  Simulated simulated;
  const std::vector<SimulatedRank> expected = simulated.ranks;
  const auto paths =
      write_simulated_trace((folder.path() / "trace").string(), 1024, simulated.ranks);
  ASSERT_EQ(paths.size(), expected.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const trace::ChromeTrace read = trace::read_chrome_trace(paths[i]);
    EXPECT_FALSE(read.torn);
    ASSERT_EQ(read.events.size(), expected[i].spans.size());
    std::multiset<std::tuple<std::string, int64_t, int64_t>> written, found;
    for (const trace::Span& span : expected[i].spans) {
      written.emplace(span.name, span.begin_ns, span.end_ns);
    }
    for (const trace::ChromeEvent& event : read.events) {
      EXPECT_EQ(event.pid, expected[i].rank);
      EXPECT_EQ(event.details.step, 1);
      found.emplace(event.name, event.begin_ns, event.end_ns);
    }
    EXPECT_EQ(written, found);
  }
}

}  // namespace
}  // namespace tessera::cli
