// tessera exact: shows in double precision what ranks may cut without changing a result, and what
// not.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "train/exact.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;
using train::Demonstration;
using train::ExactReport;
using train::WorkedExample;

struct ExactOptions {
  uint64_t seed = 1;
  bool json = false;
};

/// "[[1, 0], [0, 1]]", or "[1, 0]" of one row.
std::string rows_text(const std::vector<double>& values, size_t columns) {
  std::vector<std::string> rows;
  for (auto row = values.begin(); row != values.end(); row += static_cast<int64_t>(columns)) {
    rows.push_back(fmt::format("[{}]", fmt::join(row, row + static_cast<int64_t>(columns), ", ")));
  }
  return rows.size() == 1 ? rows[0] : fmt::format("[{}]", fmt::join(rows, ", "));
}

std::string parts_text(const std::vector<std::vector<double>>& parts, const char* between) {
  std::vector<std::string> texts;
  for (const auto& part : parts) texts.push_back(rows_text(part, part.size()));
  return fmt::format("{}", fmt::join(texts, between));
}

void print_worked(const WorkedExample& worked) {
  const size_t columns = worked.w.size() / worked.x.size();
  fmt::print("X = {}, W = {}: XW = {} on one rank\n", rows_text(worked.x, worked.x.size()),
             rows_text(worked.w, columns), rows_text(worked.whole, columns));
  fmt::print("  W by columns on two: {} gathered: {}\n", parts_text(worked.by_columns, " ‖ "),
             rows_text(worked.joined, columns));
  fmt::print("  W by rows on two: {} all-reduced: {}\n", parts_text(worked.by_rows, " + "),
             rows_text(worked.summed, columns));
}

/// Words of `text` in lines of at most 92 characters, each after four spaces.
std::string wrapped(const std::string& text) {
  constexpr size_t kWidth = 92;
  std::string result, line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      result += "    " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return result + "    " + line + "\n";
}

void print_demonstration(const Demonstration& shown) {
  const bool equal = shown.expected == train::Expected::equal;
  const char* verdict =
      shown.as_expected() ? (equal ? "equal" : "wrong, as expected") : "NOT AS EXPECTED";
  fmt::print("\n{}: off by {:.2g}, {} {:.2g} expected; {} bytes sent: {}\n{}", shown.name,
             shown.error, equal ? "at most" : "at least", shown.bound, shown.bytes, verdict,
             wrapped(shown.shows));
}

void print_report(const ExactReport& report, uint64_t seed) {
  fmt::print("double precision, {} ranks against one, seed {}\n\n", train::kExactRanks, seed);
  print_worked(report.worked);
  for (const Demonstration& shown : report.demonstrations) print_demonstration(shown);
  fmt::print("\n{}\n", report.as_expected() ? "all as expected" : "NOT all as expected");
}

Json json_of(const ExactReport& report, uint64_t seed) {
  const WorkedExample& worked = report.worked;
  Json list = Json::array();
  for (const Demonstration& shown : report.demonstrations) {
    list.push_back({{"name", shown.name},
                    {"shows", shown.shows},
                    {"expected", shown.expected == train::Expected::equal ? "equal" : "wrong"},
                    {"error", shown.error},
                    {"bound", shown.bound},
                    {"bytes_sent", shown.bytes},
                    {"as_expected", shown.as_expected()}});
  }
  return {{"ok", report.as_expected()},
          {"num_ranks", train::kExactRanks},
          {"dtype", "fp64"},
          {"seed", seed},
          {"worked_example",
           {{"x", worked.x},
            {"w", worked.w},
            {"whole", worked.whole},
            {"by_columns", worked.by_columns},
            {"joined", worked.joined},
            {"by_rows", worked.by_rows},
            {"summed", worked.summed}}},
          {"demonstrations", list}};
}

int demonstrate(const ExactOptions& options) {
  const ExactReport report = train::demonstrate_exactness(options.seed);
  if (options.json) {
    fmt::print("{}\n", json_of(report, options.seed).dump(2));
  } else {
    print_report(report, options.seed);
  }
  return report.as_expected() ? kDone : kRunFailed;
}

}  // namespace

void add_exact_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "exact", "show in double precision that what ranks compute is what one computes");
  verb->footer(
      "Gradients of shards, products cut by columns and by rows, an MLP, and what goes wrong "
      "without an exchange: with the kernels and collectives of training, on 8 ranks that are "
      "threads. Exit status 1 when one is not as expected. docs/exactness.md has the "
      "reasons.");
  const auto options = std::make_shared<ExactOptions>();
  verb->add_option("--seed", options->seed, "of the operands (1)");
  verb->add_flag("--json", options->json, "one JSON object with every number");
  verb->callback([options, &status] { status = demonstrate(*options); });
}

}  // namespace tessera::cli
