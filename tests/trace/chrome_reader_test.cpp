#include "trace/chrome_reader.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "test_folder.h"
#include "trace/chrome_writer.h"

namespace tessera::trace {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_chrome_trace(text, "t.json");
    return "";
  } catch (const core::ConfigError& error) {
    return error.what();
  }
}

TEST(ChromeReader, TakesTheArrayForm) {
  const ChromeTrace trace = parse_chrome_trace(
      R"([{"name": "a", "ph": "X", "ts": 1, "dur": 2.5, "pid": 3, "tid": 4}, {"ph": "C", "ts": 1}])",
      "t.json");
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].begin_ns, 1000);
  EXPECT_EQ(trace.events[0].end_ns, 3500);
  EXPECT_EQ(trace.events[0].pid, 3);
  EXPECT_EQ(trace.events[0].tid, 4);
  EXPECT_EQ(trace.events[0].details.bytes, -1);
}

TEST(ChromeReader, PassesOverWhatIsBesideTheEventsAndInsideThem) {
  const ChromeTrace trace = parse_chrome_trace(
      R"({"schemaVersion": 1, "list": [1, [2], {"ph": "X"}], "traceEvents": [
          {"ph": "X", "name": "a", "ts": 0, "dur": 1, "args": {"deep": {"step": 1}, "bytes": 8,
           "more": [{"unit": "x"}]}, "other": {"name": "no", "ts": 5}}],
          "after": {"traceEvents": [{"ph": "X", "name": "no", "ts": 0}]}})",
      "t.json");
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].name, "a");
  EXPECT_EQ(trace.events[0].begin_ns, 0);
  EXPECT_EQ(trace.events[0].details.bytes, 8);
  EXPECT_EQ(trace.events[0].details.step, -1);
  EXPECT_EQ(trace.events[0].details.unit, "");
}

TEST(ChromeReader, JoinsBeginningsAndEndsOfARow) {
  const ChromeTrace trace = parse_chrome_trace(R"([
      {"name": "outer", "ph": "B", "ts": 1, "tid": 1}, {"name": "inner", "ph": "B", "ts": 2, "tid": 1},
      {"name": "else", "ph": "B", "ts": 2, "tid": 2},
      {"ph": "E", "ts": 3, "tid": 1}, {"ph": "E", "ts": 4, "tid": 1}, {"ph": "E", "ts": 9, "tid": 3}])",
                                               "t.json");
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].name, "inner");
  EXPECT_EQ(trace.events[0].end_ns, 3000);
  EXPECT_EQ(trace.events[1].name, "outer");
  EXPECT_EQ(trace.events[1].end_ns, 4000);
}

TEST(ChromeReader, ReadsArrowsWithIdsOfEitherKind) {
  const ChromeTrace trace = parse_chrome_trace(R"([
      {"ph": "s", "id": 9007199254740991, "ts": 1.5, "pid": 2, "tid": 3, "name": "a", "cat": "c"},
      {"ph": "t", "id": 1, "ts": 2}, {"ph": "f", "bp": "e", "id": "0x2a", "ts": 2}])",
                                               "t.json");
  EXPECT_TRUE(trace.events.empty());
  ASSERT_EQ(trace.flows.size(), 2u) << "steps of a flow are passed over";
  EXPECT_EQ(trace.flows[0].name, "a");
  EXPECT_EQ(trace.flows[0].category, "c");
  EXPECT_EQ(trace.flows[0].id, "9007199254740991");
  EXPECT_EQ(trace.flows[0].pid, 2);
  EXPECT_EQ(trace.flows[0].tid, 3);
  EXPECT_EQ(trace.flows[0].time_ns, 1500);
  EXPECT_TRUE(trace.flows[0].begins);
  EXPECT_EQ(trace.flows[1].id, "0x2a");
  EXPECT_FALSE(trace.flows[1].begins);
}

TEST(ChromeReader, GivesRowsNamedByTextNumbersOfTheirOwn) {
  const ChromeTrace trace = parse_chrome_trace(R"([
      {"ph": "X", "ts": 1, "pid": "python", "tid": "stream 7"}, {"ph": "X", "ts": 1, "pid": 1, "tid": 2},
      {"ph": "X", "ts": 1, "pid": "python", "tid": "stream 8"}])",
                                               "t.json");
  ASSERT_EQ(trace.events.size(), 3u);
  EXPECT_EQ(trace.events[0].pid, trace.events[2].pid);
  EXPECT_NE(trace.events[0].tid, trace.events[2].tid);
  EXPECT_NE(trace.events[0].pid, trace.events[1].pid);
}

TEST(ChromeReader, ReadsATornFileAsFarAsItGoes) {
  TestFolder folder;
  ChromeWriter writer(folder.path().string(), 0, 1, origin_now());
  for (int i = 0; i < 3; ++i) writer.write({{"F s0 c0 m0", Lane::compute, 5, 9, {}}});
  const std::string whole = core::read_file(writer.path());
  const size_t head = whole.find("[") + 1;
  size_t last = 0;
  for (size_t length = head; length + 2 < whole.size(); ++length) {
    const ChromeTrace trace = parse_chrome_trace(whole.substr(0, length), "t.json");
    EXPECT_TRUE(trace.torn) << length;
    EXPECT_GE(trace.events.size(), last);
    last = trace.events.size();
  }
  EXPECT_EQ(last, 3u);
  for (size_t length = 0; length < head; ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "") << length;
  }
}

TEST(ChromeReader, RefusesWhatIsNoTrace) {
  const auto says = [](std::string_view text, const std::string& what) {
    const std::string message = refusal(text);
    EXPECT_NE(message.find("t.json is no Chrome trace: "), std::string::npos) << text;
    EXPECT_NE(message.find(what), std::string::npos) << text << " gave " << message;
  };
  says("", "parse error");
  says("hello", "invalid literal");
  says("3", "no array of events");
  says("{}", "no array of events");
  says(R"({"traceEvents": {}})", "no array of events");
  says(R"({"traceEvents": []}})", "syntax error");
  says(R"([3])", "an event is no object");
  says(R"([[]])", "an event is no object");
  says(R"([{"name": "a"}])", "says no kind");
  says(R"([{"name": "a", "ph": "X"}])", "\"a\" says no time");
  says(R"([{"ph": "X", "ts": 1e300}])", "beyond what a clock says");
  says(R"([{"ph": "X", "ts": 1, "dur": -1}])", "ends before it begins");
  says(R"([{"ph": "X", "ts": 1, "pid": 1e300}])", "out of range");
}

TEST(ChromeReader, NamesAFileThatIsNotThere) {
  try {
    read_chrome_trace("/nowhere/trace.json");
    FAIL();
  } catch (const core::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/trace.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace tessera::trace
