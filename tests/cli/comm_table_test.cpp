#include "cli/comm_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tessera::cli {
namespace {

/// All-reduce over 4 ranks: 1 KiB and 1 MiB, over a link of 2 µs and 1 GB/s.
CommReport report() {
  CommReport report;
  report.ranks = 4;
  report.backend = "shm";
  CommReport::Measurement measurement{comm::measured_kinds()[0], {}};
  for (const int64_t bytes : {int64_t{1} << 10, int64_t{1} << 20}) {
    const double seconds = 6 * 2e-6 + 1.5 * static_cast<double>(bytes) * 1e-9;
    const double algbw = static_cast<double>(bytes) / seconds;
    measurement.times.push_back({bytes, bytes / 4, seconds, 0, 0, algbw, 1.5 * algbw});
  }
  report.measurements = {measurement};
  return report;
}

TEST(CommTable, HasTheColumnsOfNcclTests) {
  const CommReport r = report();
  const auto& measurement = r.measurements[0];
  const std::string row = table_row(r, measurement.kind, measurement.times[1]);
  EXPECT_EQ(
      row,
      "      1048576       262144     float    sum    -1    1584.86    0.662    0.992      0\n");
  const std::string head = table_head(r, measurement.kind);
  const std::string last_lines = head.substr(head.find("#        size"));
  EXPECT_EQ(last_lines.find('\n') + 1, row.size()) << "heads stand over columns";
}

TEST(CommTable, SaysThatValuesWereWrongOrNotChecked) {
  CommReport r = report();
  EXPECT_NE(table_end(r).find("# Out of bounds values : 0 OK"), std::string::npos);
  r.measurements[0].times[0].wrong = 3;
  r.measurements[0].times[1].wrong = 4;
  EXPECT_EQ(r.wrong(), 7);
  EXPECT_NE(table_end(r).find("# Out of bounds values : 7 FAILED"), std::string::npos);
  r.options.check = false;
  EXPECT_NE(table_end(r).find("not checked"), std::string::npos);
}

TEST(CommTable, FindsTheLinkInTheTimes) {
  const auto link = link_of(report());
  ASSERT_TRUE(link.has_value());
  EXPECT_NEAR(link->latency_s, 2e-6, 1e-12);
  EXPECT_NEAR(link->bytes_per_s, 1e9, 1);
  const std::string file = links_file(report(), *link);
  EXPECT_NE(file.find("[[link]]\nname = \"shm\"\nranks = 4\nlatency_s = 2.0000e-06\n"
                      "bytes_per_s = 1.0000e+09\n"),
            std::string::npos)
      << file;
}

TEST(CommTable, GivesAllOfItAsJson) {
  const auto json = nlohmann::json::parse(to_json(report()));
  EXPECT_EQ(json["collectives"][0]["collective"], "all_reduce");
  EXPECT_EQ(json["collectives"][0]["rows"][1]["size_bytes"], 1 << 20);
  EXPECT_EQ(json["collectives"][0]["rows"][1]["wrong"], 0);
  EXPECT_NEAR(json["links"][0]["latency_s"].get<double>(), 2e-6, 1e-12);
}

}  // namespace
}  // namespace tessera::cli
