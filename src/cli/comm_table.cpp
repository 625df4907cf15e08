#include "cli/comm_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera::cli {

using comm::CollectiveTime;
using comm::MeasuredKind;

namespace {

const char* type_name(core::DType dtype) {
  switch (dtype) {
    case core::DType::f64:
      return "double";
    case core::DType::bf16:
      return "bfloat16";
    case core::DType::i64:
      return "int64";
    case core::DType::i32:
      return "int32";
    default:
      return "float";
  }
}

const char* op_name(const CommReport& report, const MeasuredKind& kind) {
  if (!kind.reduces) return "none";
  constexpr const char* names[] = {"sum", "avg", "max", "min"};
  return names[static_cast<int>(report.options.op)];
}

int root_of(const CommReport& report, const MeasuredKind& kind) {
  return kind.rooted ? report.options.root : -1;
}

}  // namespace

int64_t CommReport::wrong() const {
  int64_t wrong = 0;
  for (const Measurement& measurement : measurements) {
    for (const CollectiveTime& time : measurement.times) wrong += std::max<int64_t>(time.wrong, 0);
  }
  return wrong;
}

double CommReport::avg_busbw() const {
  double sum = 0;
  int rows = 0;
  for (const Measurement& measurement : measurements) {
    for (const CollectiveTime& time : measurement.times) {
      sum += time.busbw;
      ++rows;
    }
  }
  return rows == 0 ? 0 : sum / rows;
}

std::string table_head(const CommReport& report, const MeasuredKind& kind) {
  std::string head =
      fmt::format("#\n# {}: {} ranks on {}{}; warmup iters: {} iters: {} validation: {}\n#\n",
                  kind.name, report.ranks, report.backend, report.pinned ? ", a core each" : "",
                  report.options.warmups, report.options.iterations, report.options.check ? 1 : 0);
  constexpr const char* line = "#{:>12} {:>12} {:>9} {:>6} {:>5} {:>10} {:>8} {:>8} {:>6}{}\n";
  const bool copy = report.options.copy;
  head += fmt::format(line, "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                      "#wrong", copy ? " of copy" : "");
  head += fmt::format(line, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "");
  return head;
}

std::string table_row(const CommReport& report, const MeasuredKind& kind,
                      const CollectiveTime& time) {
  return fmt::format(" {:>12} {:>12} {:>9} {:>6} {:>5} {:>10.2f} {:>8.3f} {:>8.3f} {:>6}{}\n",
                     time.bytes, time.count, type_name(report.options.dtype), op_name(report, kind),
                     root_of(report, kind), time.seconds * 1e6, time.algbw * 1e-9,
                     time.busbw * 1e-9, time.wrong < 0 ? "N/A" : std::to_string(time.wrong),
                     report.options.copy ? fmt::format(" {:>7.2f}", time.of_copy) : "");
}

std::string table_end(const CommReport& report) {
  std::string end = "#\n";
  if (report.options.check) {
    const int64_t wrong = report.wrong();
    end += fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  } else {
    end += "# Out of bounds values : not checked (-c 0)\n";
  }
  return end + fmt::format("# Avg bus bandwidth    : {:.4g}\n#\n", report.avg_busbw() * 1e-9);
}

std::optional<comm::LinkFit> link_of(const CommReport& report) {
  std::vector<comm::LinkSample> samples;
  for (const CommReport::Measurement& measurement : report.measurements) {
    const MeasuredKind& kind = measurement.kind;
    for (const CollectiveTime& time : measurement.times) {
      samples.push_back({static_cast<double>(kind.hops(report.ranks)),
                         kind.bus(report.ranks) * static_cast<double>(time.bytes), time.seconds});
    }
  }
  return comm::fit_link(samples);
}

std::string links_file(const CommReport& report, const comm::LinkFit& link) {
  return fmt::format(
      "# Measured by tessera bench comm. A hop of S bytes takes latency_s + S / bytes_per_s, where "
      "a\n"
      "# collective of n ranks has as many hops as it has in a ring: 2(n - 1) for an all-reduce.\n"
      "# By that model the times measured are met within {:.0f} % on average.\n"
      "[[link]]\n"
      "name = \"{}\"\n"
      "ranks = {}\n"
      "latency_s = {:.4e}\n"
      "bytes_per_s = {:.4e}\n",
      100 * link.mean_error, report.backend, report.ranks, link.latency_s, link.bytes_per_s);
}

std::string to_json(const CommReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"ranks", report.ranks},
               {"backend", report.backend},
               {"core_each", report.pinned},
               {"iterations", report.options.iterations},
               {"warmup_iterations", report.options.warmups},
               {"collectives", Json::array()}};
  for (const CommReport::Measurement& measurement : report.measurements) {
    const MeasuredKind& kind = measurement.kind;
    Json rows = Json::array();
    for (const CollectiveTime& time : measurement.times) {
      Json row = {{"size_bytes", time.bytes},
                  {"count", time.count},
                  {"type", type_name(report.options.dtype)},
                  {"redop", op_name(report, kind)},
                  {"root", root_of(report, kind)},
                  {"time_us", time.seconds * 1e6},
                  {"algbw_gb_per_s", time.algbw * 1e-9},
                  {"busbw_gb_per_s", time.busbw * 1e-9},
                  {"wrong", nullptr}};
      if (time.wrong >= 0) row["wrong"] = time.wrong;
      if (report.options.copy) row["of_copy"] = time.of_copy;
      rows.push_back(row);
    }
    json["collectives"].push_back({{"collective", kind.name}, {"rows", rows}});
  }
  json["avg_busbw_gb_per_s"] = report.avg_busbw() * 1e-9;
  json["links"] = Json::array();
  if (const auto link = link_of(report)) {
    json["links"].push_back({{"name", report.backend},
                             {"ranks", report.ranks},
                             {"latency_s", link->latency_s},
                             {"bytes_per_s", link->bytes_per_s},
                             {"mean_error", link->mean_error}});
  }
  return json.dump(2);
}

}  // namespace tessera::cli
