#include "trace/chrome_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "test_folder.h"
#include "trace/chrome_reader.h"

namespace tessera::trace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Span span(const std::string& name, Lane lane, int64_t begin_ns, int64_t end_ns) {
  return {name, lane, begin_ns, end_ns, {}};
}

class ChromeWriterTest : public testing::Test {
 protected:
  ChromeWriter writer(int rank = 0) { return {folder_.path().string(), rank, 2, origin_}; }
  json file(const std::string& name = "rank-0.json") const {
    return json::parse(core::read_file((folder_.path() / name).string()));
  }
  /// The events that are no names.
  json spans() const {
    json found = json::array();
    const json whole = file();
    for (const json& event : whole["traceEvents"]) {
      if (event["ph"] != "M") found.push_back(event);
    }
    return found;
  }

  TestFolder folder_;
  Origin origin_ = origin_now();
};

TEST_F(ChromeWriterTest, WritesWhatChromeTakes) {
  Span gather = span("all-gather", Lane::dp, origin_.steady_ns + 2001, origin_.steady_ns + 5000);
  gather.details.step = 7;
  gather.details.unit = "layers.3";
  gather.details.axis = "dp";
  gather.details.bytes = 4096;
  ChromeWriter chrome = writer(1);
  chrome.write({gather});
  const json written = file("rank-1.json");
  EXPECT_EQ(written["displayTimeUnit"], "ms");
  EXPECT_EQ(written["otherData"]["world_size"], 2);
  const json& events = written["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0], json::parse(R"({"pid": 1, "tid": 0, "ph": "M", "name": "process_name",
                                       "args": {"name": "rank 1"}})"));
  EXPECT_EQ(events[1]["args"]["sort_index"], 1);
  EXPECT_EQ(events[2], json::parse(R"({"pid": 1, "tid": 2, "ph": "M", "name": "thread_name",
                                       "args": {"name": "dp"}})"));
  EXPECT_EQ(events[3]["args"]["sort_index"], 20);
  EXPECT_EQ(events[4], json::parse(R"({"pid": 1, "tid": 2, "ph": "X", "name": "all-gather",
                                       "cat": "comm", "ts": 2.001, "dur": 2.999,
                                       "args": {"step": 7, "unit": "layers.3", "axis": "dp",
                                                "bytes": 4096}})"));
}

TEST_F(ChromeWriterTest, LeavesWholeJsonAfterEveryWrite) {
  ChromeWriter chrome = writer();
  EXPECT_EQ(spans().size(), 0u);
  for (int step = 0; step < 3; ++step) {
    chrome.write({span("F", Lane::compute, 1, 2), span("data", Lane::host, 0, 1)});
    EXPECT_EQ(spans().size(), 2u * (step + 1));
  }
  chrome.write({});
  EXPECT_EQ(spans().size(), 6u);
}

TEST_F(ChromeWriterTest, PutsASpanBeforeThoseItHolds) {
  ChromeWriter chrome = writer();
  chrome.write({span("inner", Lane::compute, 10, 20), span("outer", Lane::compute, 10, 30)});
  EXPECT_EQ(spans()[0]["name"], "outer");
}

TEST_F(ChromeWriterTest, GivesCollectivesThatOverlapRowsOfTheirOwn) {
  ChromeWriter chrome = writer();
  chrome.write({span("a", Lane::dp, 10, 20), span("b", Lane::dp, 15, 30),
                span("c", Lane::dp, 20, 25), span("d", Lane::tp, 16, 18)});
  chrome.write({span("e", Lane::dp, 26, 40), span("f", Lane::dp, 27, 28)});
  std::map<std::string, int> tids;
  for (const json& event : spans()) tids[event["name"]] = event["tid"];
  const std::map<std::string, int> expected = {{"a", 2}, {"b", 12}, {"c", 2},
                                               {"d", 1}, {"e", 2},  {"f", 22}};
  EXPECT_EQ(tids, expected);
  const ChromeTrace trace = read_chrome_trace(chrome.path());
  EXPECT_EQ(trace.threads.at({0, 12}), "dp 2");
}

TEST_F(ChromeWriterTest, DrawsArrowsFromTheEndsOfSpansToBeginnings) {
  Span sends = span("F s0 c0 m0", Lane::compute, 1000, 3000);
  Span reads = span("F s1 c0 m0", Lane::compute, 5000, 6000);
  sends.flow_out = 7;
  reads.flow_in = 7;
  origin_.steady_ns = 0;
  writer(0).write({sends});
  writer(1).write({reads});
  const json begin = file("rank-0.json")["traceEvents"].back();
  const json end = file("rank-1.json")["traceEvents"].back();
  EXPECT_EQ(begin, json::parse(R"({"pid": 0, "tid": 0, "ph": "s", "cat": "comm", "name": "stream",
                                   "id": 7, "ts": 2.999})"));
  EXPECT_EQ(end, json::parse(R"({"pid": 1, "tid": 0, "ph": "f", "bp": "e", "cat": "comm",
                                 "name": "stream", "id": 7, "ts": 5})"));
  const ChromeTrace trace = read_chrome_trace((folder_.path() / "rank-0.json").string());
  ASSERT_EQ(trace.flows.size(), 1u);
  EXPECT_EQ(trace.flows[0].id, "7");
  EXPECT_EQ(trace.flows[0].time_ns, 2999);
  EXPECT_TRUE(trace.flows[0].begins);
}

TEST_F(ChromeWriterTest, GivesPredictionsAProcessOfTheirOwn) {
  Span measured = span("F s0 c0 m0", Lane::compute, 1000, 3000);
  Span predicted = span("F s0 c0 m0", Lane::compute, 1000, 2000);
  Span next_step = span("F s0 c0 m0", Lane::compute, 1500, 2500);
  predicted.predicted = next_step.predicted = true;
  ChromeWriter chrome = writer(1);
  chrome.write({measured, predicted, next_step});
  const ChromeTrace trace = read_chrome_trace(chrome.path());
  EXPECT_EQ(trace.processes.at(1), "rank 1");
  EXPECT_EQ(trace.processes.at(10001), "rank 1, predicted");
  EXPECT_EQ(trace.threads.at({10001, 0}), "compute");
  ASSERT_EQ(trace.events.size(), 3u);
  EXPECT_EQ(trace.events[0].pid, 1);
  EXPECT_EQ(trace.events[1].pid, 10001);
  EXPECT_EQ(trace.events[1].tid, 0);
  EXPECT_EQ(trace.events[2].tid, 10) << "overlaps the one before";
}

TEST_F(ChromeWriterTest, TakesAnyNameAndATimeBeforeTheOrigin) {
  const std::string name = "a \"b\" \\ \n \x01 \xc3\xa9";
  ChromeWriter chrome = writer();
  chrome.write({span(name, Lane::host, origin_.steady_ns - 1500, origin_.steady_ns)});
  EXPECT_EQ(spans()[0]["name"], name);
  EXPECT_EQ(spans()[0]["ts"], -1.5);
}

TEST_F(ChromeWriterTest, KeepsTheTracesOfEarlierStarts) {
  for (const char* name : {"first", "second", "third"}) {
    ChromeWriter chrome = writer();
    chrome.write({span(name, Lane::compute, 1, 2)});
  }
  const auto name_in = [&](const char* path) { return file(path)["traceEvents"].back()["name"]; };
  EXPECT_EQ(name_in("rank-0.start-1.json"), "first");
  EXPECT_EQ(name_in("rank-0.start-2.json"), "second");
  EXPECT_EQ(name_in("rank-0.json"), "third");
}

TEST_F(ChromeWriterTest, PutsAwayTheTracesOfRanksThatAreGone) {
  for (const int rank : {0, 1, 2}) ChromeWriter(folder_.path().string(), rank, 3, origin_);
  for (const int rank : {0, 1}) ChromeWriter(folder_.path().string(), rank, 2, origin_);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "rank-2.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "rank-2.start-1.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "rank-1.json"));
}

TEST_F(ChromeWriterTest, SaysWhichFileCannotBeWritten) {
  const std::string path = (folder_.path() / "no-folder").string();
  core::write_atomically(path, "a file");
  try {
    ChromeWriter chrome(path, 0, 1, origin_);
    FAIL();
  } catch (const core::RunError& error) {
    EXPECT_NE(std::string(error.what()).find(path + "/rank-0.json"), std::string::npos)
        << error.what();
  }
}

TEST_F(ChromeWriterTest, IsReadBackAsItWas) {
  Span forward = span("F s1 c2 m3", Lane::compute, origin_.steady_ns + 123456789012345,
                      origin_.steady_ns + 123456789012999);
  forward.details = {4, 1, 2, 3, "layers.0", "tp", "all-reduce", 64, 9};
  ChromeWriter chrome = writer();
  chrome.write({forward});
  const ChromeTrace trace = read_chrome_trace(chrome.path());
  EXPECT_FALSE(trace.torn);
  EXPECT_EQ(trace.processes.at(0), "rank 0");
  EXPECT_EQ(trace.threads.at({0, 0}), "compute");
  ASSERT_EQ(trace.events.size(), 1u);
  const ChromeEvent& event = trace.events[0];
  EXPECT_EQ(event.name, forward.name);
  EXPECT_EQ(event.category, "compute");
  EXPECT_EQ(event.begin_ns, 123456789012345);
  EXPECT_EQ(event.end_ns, 123456789012999);
  const Details& read = event.details;
  EXPECT_EQ(read.step, 4);
  EXPECT_EQ(read.stage, 1);
  EXPECT_EQ(read.chunk, 2);
  EXPECT_EQ(read.micro_batch, 3);
  EXPECT_EQ(read.unit, "layers.0");
  EXPECT_EQ(read.axis, "tp");
  EXPECT_EQ(read.collective, "all-reduce");
  EXPECT_EQ(read.bytes, 64);
  EXPECT_EQ(read.sequence, 9);
}

TEST(Origin, IsTheSameInstantOnItsOwnHostAndNearlyOnAnother) {
  Origin origin = origin_now();
  EXPECT_EQ(on_this_host(origin), origin.steady_ns);
  origin.host += 1;  // another host, whose monotonic clock counts from another time
  origin.steady_ns += 987654321;
  const int64_t here = on_this_host(origin);
  EXPECT_NEAR(static_cast<double>(here), static_cast<double>(origin.steady_ns - 987654321), 1e8);
}

}  // namespace
}  // namespace tessera::trace
