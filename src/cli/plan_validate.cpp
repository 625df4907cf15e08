// tessera plan validate: how far the planner is from published runs. tessera plan calibrate: fits
// its constants on them.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/plan_constants.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "plan/calibrate.h"
#include "plan/validate.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;
using plan::ErrorSummary;
using plan::ValidatedRow;
using plan::ValidationGroup;

std::vector<plan::PublishedRun> read_runs(const std::string& path) {
  plan::PublishedRuns runs = plan::parse_published_runs(core::read_file(path));
  if (runs.errors.empty()) return std::move(runs.runs);
  std::string message = path + " is not a table of published runs:";
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(runs.errors.size(), kMost); ++i) {
    message += "\n  " + runs.errors[i];
  }
  if (runs.errors.size() > kMost) {
    message += fmt::format("\n  and {} more", runs.errors.size() - kMost);
  }
  throw core::ConfigError(message);
}

struct ValidateOptions {
  std::string csv, constants;
  bool rows = false;
  bool json = false;
};

Json row_json(const ValidatedRow& row) {
  Json json = {{"id", row.published->id}};
  if (row.run) {
    json["predicted_step_s"] = row.step_s;
    json["predicted_mem_gib"] = row.memory_gib;
    json["predicted_fits"] = row.fits;
  }
  if (row.published->step_time_s) json["published_step_s"] = *row.published->step_time_s;
  if (row.published->mem_gib_per_gpu) json["published_mem_gib"] = *row.published->mem_gib_per_gpu;
  if (row.published->out_of_memory()) json["published_out_of_memory"] = true;
  if (!row.skipped.empty()) json["skipped"] = row.skipped;
  if (!row.assumed.empty()) json["assumed"] = row.assumed;
  json["fitted"] = row.fitted;
  return json;
}

void add_errors(Json& json, const std::string& prefix, const ErrorSummary& errors) {
  if (errors.count == 0) return;
  json[prefix + "count"] = errors.count;
  json[prefix + "mean_abs_error"] = errors.mean_abs_error;
  json[prefix + "worst_abs_error"] = errors.worst_abs_error;
  json[prefix + "worst_id"] = errors.worst_id;
}

Json to_json(const plan::Validation& validation) {
  Json rows = Json::array();
  for (const ValidatedRow& row : validation.rows) rows.push_back(row_json(row));
  Json groups = Json::object();
  for (const ValidationGroup& group : validation.groups) {
    Json json = {{"count", group.time.count}};
    add_errors(json, "", group.time);
    add_errors(json, "memory_", group.memory);
    if (group.baseline.count > 0) {
      json["baseline_mean_abs_error"] = group.baseline.mean_abs_error;
    }
    if (group.ranking) {
      json["kendall_tau"] = group.ranking->kendall_tau;
      json["regret"] = group.ranking->regret;
      json["layouts"] = group.ranking->count;
    }
    if (group.held_out) {
      json["held_out_kendall_tau"] = group.held_out->kendall_tau;
      json["held_out_regret"] = group.held_out->regret;
    }
    groups[group.name] = std::move(json);
  }
  return {{"rows", std::move(rows)},
          {"groups", std::move(groups)},
          {"out_of_memory_rows", validation.out_of_memory_rows},
          {"out_of_memory_rows_called_fitting", validation.wrongly_fitting},
          {"ran_rows", validation.ran_rows},
          {"ran_but_called_too_large", validation.wrongly_too_large}};
}

std::string errors_text(const ErrorSummary& errors) {
  if (errors.count == 0) return fmt::format("{:>4} {:>7} {:>7}", "", "", "");
  return fmt::format("{:>4} {:>6.1f}% {:>6.1f}%", errors.count, 100 * errors.mean_abs_error,
                     100 * errors.worst_abs_error);
}

void print_groups(const plan::Validation& validation) {
  fmt::print(
      "{:<44} {:>20}  {:>8}  {:>20}  {:>5} {:>6}\n{:<44} {:>4} {:>7} {:>7}  {:>8}  {:>4} "
      "{:>7} {:>7}\n",
      "", "step time", "baseline", "memory", "tau", "regret", "", "rows", "mean", "worst", "mean",
      "rows", "mean", "worst");
  for (const ValidationGroup& group : validation.groups) {
    if (group.time.count + group.memory.count == 0) continue;
    fmt::print(
        "{:<44} {}  {:>7}  {}", group.name, errors_text(group.time),
        group.baseline.count > 0 ? fmt::format("{:.1f}%", 100 * group.baseline.mean_abs_error) : "",
        errors_text(group.memory));
    if (group.ranking) {
      fmt::print("  {:>5.2f} {:>5.1f}%", group.ranking->kendall_tau, 100 * group.ranking->regret);
      if (group.held_out) {
        fmt::print("  held out {:.2f} {:.1f}%", group.held_out->kendall_tau,
                   100 * group.held_out->regret);
      }
    }
    fmt::print("\n");
  }
}

void print_row(const ValidatedRow& row) {
  fmt::print("{:<14}{} ", row.published->id, row.fitted ? '*' : ' ');
  if (!row.run) {
    fmt::print("left out: {}\n", row.skipped);
    return;
  }
  if (row.has_time()) {
    fmt::print(" {:>9.3f} s, published {:>9.3f} ({:+.1f} %)", row.step_s,
               *row.published->step_time_s, 100 * row.time_error());
  }
  if (row.has_memory()) {
    fmt::print(" {:>6.1f} GiB, published {:>6.1f} ({:+.1f} %)", row.memory_gib,
               *row.published->mem_gib_per_gpu, 100 * row.memory_error());
  }
  if (row.published->out_of_memory()) {
    fmt::print(" {:>6.1f} GiB, published: out of memory", row.memory_gib);
  }
  fmt::print("  {}\n", plan::to_string(row.run->layout));
}

void print_text(const plan::Validation& validation, bool all_rows) {
  print_groups(validation);
  fmt::print("\nrows out of memory: {}, called fitting: {}\n", validation.out_of_memory_rows,
             validation.wrongly_fitting);
  fmt::print("rows that ran, with a published recomputation: {}, called too large: {}\n",
             validation.ran_rows, validation.wrongly_too_large);
  constexpr double kTimeMiss = 0.25, kMemoryMiss = 0.10;
  const auto misses = [](const ValidatedRow& row) {
    return (row.has_time() && std::abs(row.time_error()) > kTimeMiss) ||
           (row.has_memory() && std::abs(row.memory_error()) > kMemoryMiss);
  };
  fmt::print("\n{}, those that the constants were fitted on with a star:\n",
             all_rows ? "rows" : "rows off by more than 25 % in time or 10 % in memory");
  for (const ValidatedRow& row : validation.rows) {
    if (all_rows ? row.run.has_value() : misses(row)) print_row(row);
  }
  fmt::print("\nrows left out:\n");
  for (const ValidatedRow& row : validation.rows) {
    if (!row.run) print_row(row);
  }
}

void run_validate(const ValidateOptions& options) {
  const std::vector<plan::PublishedRun> runs = read_runs(options.csv);
  const plan::Validation validation = plan::validate(runs, read_constants(options.constants));
  if (options.json) {
    fmt::print("{}\n", to_json(validation).dump(2));
  } else {
    print_text(validation, options.rows);
  }
}

struct CalibrateOptions {
  std::string csv, out;
  int64_t rounds = plan::CalibrationOptions{}.rounds;
  bool all = false;
  bool json = false;
};

int run_calibrate(const CalibrateOptions& options) {
  const std::vector<plan::PublishedRun> runs = read_runs(options.csv);
  plan::CalibrationOptions calibration;
  calibration.rounds = options.rounds;
  calibration.all_rows = options.all;
  if (!options.json) {
    calibration.progress = [](int64_t round, double objective) {
      fmt::print("round {:>2}: {:.4f}\n", round + 1, objective);
      std::fflush(stdout);
    };
  }
  plan::Calibration fit = plan::calibrate(runs, plan::prior_constants(), calibration);
  if (fit.used.empty()) {
    throw core::ConfigError(options.csv +
                            " has no row to fit on: a row needs a step time and a layout that is "
                            "modelled, and its id decides whether it is one of the 40 % (--all "
                            "takes every row)");
  }
  Json constants = Json::object();
  for (const plan::ConstantField& field : plan::fields(fit.constants)) {
    if (std::count(fit.moved.begin(), fit.moved.end(), field.name) > 0) {
      constants[field.name] = *field.value;
    }
  }
  const Json json = {{"objective_before", fit.objective_before},
                     {"objective_after", fit.objective_after},
                     {"constants", constants},
                     {"rows_used", fit.used}};
  if (!options.out.empty()) core::write_atomically(options.out, json.dump(2) + "\n");
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
    return kDone;
  }
  fmt::print("\n{} rows, objective {:.4f} before and {:.4f} after\n\n", fit.used.size(),
             fit.objective_before, fit.objective_after);
  for (const auto& [name, value] : constants.items()) {
    fmt::print("{{\"{}\", {:.5g}}},\n", name, value.get<double>());
  }
  return kDone;
}

}  // namespace

void add_plan_validate_action(CLI::App& plan_verb) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* action = plan_verb.add_subcommand(
      "validate",
      "Predicts published runs and says how far off it is, row by row and by groups. The project's "
      "own rows are in data/published_runs.csv; those that the constants were fitted on are "
      "marked.");
  action->add_option("--csv", options->csv, "published runs, a row each")
      ->required()
      ->check(CLI::ExistingFile);
  action->add_option("--constants", options->constants,
                     "constants that `plan calibrate --out` wrote, in place of the shipped ones");
  action->add_flag("--rows", options->rows, "print every row, not the misses alone");
  action->add_flag("--json", options->json, "one JSON object on stdout");
  action->callback([options] { run_validate(*options); });
}

void add_plan_calibrate_action(CLI::App& plan_verb, int& status) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* action = plan_verb.add_subcommand(
      "calibrate",
      "Fits the constants of the time model on published runs: on the seeded 40 % of the rows that "
      "`plan validate` marks. Takes about a minute; the result depends on the rows alone.");
  action->add_option("--csv", options->csv, "published runs, a row each")
      ->required()
      ->check(CLI::ExistingFile);
  action->add_option("--out", options->out, "write the constants and the rows used as JSON");
  action->add_option("--rounds", options->rounds, "passes over all constants, at most")
      ->check(CLI::Range(1, 1000));
  action->add_flag("--all", options->all, "fit on every row: for a cluster of one's own");
  action->add_flag("--json", options->json, "one JSON object on stdout");
  action->callback([options, &status] { status = run_calibrate(*options); });
}

}  // namespace tessera::cli
