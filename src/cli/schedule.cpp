// tessera schedule: draws a pipeline's schedule with what it costs, checks one that somebody wrote,
// and writes one for PyTorch.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/schedule_drawing.h"
#include "cli/schedule_source.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "train/run_folder.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;
using spec::Schedule;
using spec::ScheduleKind;

struct ShowOptions {
  ScheduleSource source;
  int64_t width = 0;
  bool json = false;
};

std::string counts_of(const Schedule& schedule) {
  const auto counted = [](int64_t count, const char* one, const char* several) {
    return fmt::format("{} {}", count, count == 1 ? one : several);
  };
  return counted(schedule.num_ranks(), "rank", "ranks") + ", " +
         counted(schedule.num_stages(), "stage", "stages") + ", " +
         counted(schedule.num_micro_batches, "micro-batch", "micro-batches");
}

std::vector<int64_t> peaks_of(const Schedule& schedule) {
  std::vector<int64_t> peaks;
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
    peaks.push_back(spec::peak_in_flight(schedule, rank));
  }
  return peaks;
}

const char* kind_name(spec::ActionKind kind) {
  switch (kind) {
    case spec::ActionKind::forward:
      return "forward";
    case spec::ActionKind::backward:
      return "backward";
    case spec::ActionKind::backward_input:
      return "backward_input";
    case spec::ActionKind::backward_weight:
      return "backward_weight";
  }
  return "";
}

Json report_of(const ScheduleSource::Found& found, const account::Timeline& timeline) {
  const Schedule& schedule = found.schedule;
  Json ranks = Json::array();
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
    const auto index = static_cast<size_t>(rank);
    Json actions = Json::array();
    for (size_t i = 0; i < schedule.ranks[index].size(); ++i) {
      const spec::Action& action = schedule.ranks[index][i];
      actions.push_back({{"action", spec::to_string(action)},
                         {"kind", kind_name(action.kind)},
                         {"stage", action.stage},
                         {"micro_batch", action.micro_batch},
                         {"begin_ticks", timeline.ranks[index][i].begin},
                         {"end_ticks", timeline.ranks[index][i].end}});
    }
    ranks.push_back({{"rank", rank},
                     {"stages", schedule.stages_of(rank)},
                     {"peak_in_flight", spec::peak_in_flight(schedule, rank)},
                     {"busy_ticks", timeline.busy[index]},
                     {"idle_ticks", timeline.makespan - timeline.busy[index]},
                     {"actions", actions}});
  }
  return {{"schedule", found.name},
          {"num_ranks", schedule.num_ranks()},
          {"num_stages", schedule.num_stages()},
          {"num_micro_batches", schedule.num_micro_batches},
          {"step_ticks", timeline.makespan},
          {"bubble_fraction", timeline.bubble_fraction()},
          {"gradient_send_buffers", spec::buffers_to_send(schedule)},
          {"ranks", ranks}};
}

/// Columns of the screen; 0: it is none.
int64_t screen_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

void show(const ShowOptions& options) {
  const ScheduleSource::Found found = options.source.find();
  const account::Timeline timeline = account::simulate(found.schedule, found.times);
  if (options.json) return fmt::print("{}\n", report_of(found, timeline).dump(2));
  DrawingOptions look;
  look.colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  look.width = options.width > 0 ? options.width : screen_width();
  fmt::print("{}: {}; {}\n\n{}\n", found.name, counts_of(found.schedule), found.times_of,
             drawing(found.schedule, timeline, look));
  fmt::print("step {:.4g} ticks, bubble {:.1f} % of it\npeak in flight by rank: {}\n",
             timeline.makespan, 100 * timeline.bubble_fraction(),
             fmt::join(peaks_of(found.schedule), " "));
}

/// Which of ours a schedule is action by action; empty: none.
std::string_view known_as(const Schedule& schedule) {
  const int64_t ranks = schedule.num_ranks();
  const int64_t chunks = schedule.num_stages() / ranks;
  if (ranks * chunks != schedule.num_stages()) return {};
  for (const ScheduleKind kind : spec::kNamedSchedules) {
    if (!spec::takes_chunks(kind, chunks)) continue;
    const Schedule ours = spec::make_schedule(kind, ranks, chunks, schedule.num_micro_batches);
    if (ours.ranks == schedule.ranks) return spec::schedule_name(kind);
  }
  return {};
}

int check(const std::string& path, bool json) {
  const spec::ParsedSchedule parsed = checked_schedule(path);
  const bool ok = parsed.errors.empty();
  const Schedule& schedule = parsed.schedule;
  const std::string_view name = ok ? known_as(schedule) : "";
  if (json) {
    Json report = {{"ok", ok}, {"mistakes", parsed.errors}};
    if (ok) {
      report["known_as"] = name.empty() ? Json() : Json(std::string(name));
      report["num_ranks"] = schedule.num_ranks();
      report["num_stages"] = schedule.num_stages();
      report["num_micro_batches"] = schedule.num_micro_batches;
      report["peak_in_flight"] = peaks_of(schedule);
    }
    fmt::print("{}\n", report.dump(2));
  } else if (ok) {
    fmt::print("{}: {}; can be carried out{}\npeak in flight by rank: {}\n", path,
               counts_of(schedule), name.empty() ? "" : fmt::format("; it is {}", name),
               fmt::join(peaks_of(schedule), " "));
  } else {
    fmt::print(stderr, "tessera: {}\n", describe_mistakes(path, parsed.errors));
  }
  return ok ? kDone : kUsage;
}

}  // namespace

void add_schedule_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("schedule", "draw, check or export a pipeline's schedule");
  verb->require_subcommand(1);

  CLI::App* show_verb = verb->add_subcommand("show", "draw a schedule, with its bubble and memory");
  const auto options = std::make_shared<ShowOptions>();
  options->source.add_to(*show_verb, "Rows are ranks, time goes to the right.");
  show_verb->add_option("--width", options->width, "columns to draw in (the terminal's)")
      ->check(CLI::Range(40, 100'000));
  show_verb->add_flag("--json", options->json, "one JSON object with every action and its ticks");
  show_verb->callback([options] { show(*options); });

  CLI::App* check_verb =
      verb->add_subcommand("check", "list every mistake of a schedule in PyTorch's CSV");
  const auto path = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  check_verb->add_option("file", *path, "the file; exit status 2 when there are mistakes")
      ->required()
      ->type_name("FILE.csv");
  check_verb->add_flag("--json", *json, "one JSON object: ok, mistakes, and what it is");
  check_verb->callback([path, json, &status] { status = check(*path, *json); });

  CLI::App* export_verb = verb->add_subcommand("export", "write a schedule as PyTorch's CSV");
  const auto source = std::make_shared<ScheduleSource>();
  const auto output = std::make_shared<std::string>();
  source->add_to(*export_verb, "A row a rank, a cell a tick; every action takes one.");
  export_verb->add_option("--output", *output, "file to write (standard output)");
  export_verb->callback([source, output] {
    const std::string text = account::to_csv(source->find().schedule);
    if (!output->empty()) return train::write_file_atomically(*output, text);
    fmt::print("{}", text);
    if (std::fflush(stdout) != 0) throw core::RunError("the schedule could not be written");
  });
}

}  // namespace tessera::cli
