#include "spec/schedule.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "spec/nearest.h"
#include "spec/schedule_kinds.h"

namespace tessera::spec {

namespace {

Schedule of_one_rank(int64_t num_micro_batches) {
  Schedule schedule = dealt_out(1, 1, num_micro_batches);
  for (int64_t i = 0; i < num_micro_batches; ++i) {
    schedule.ranks[0].push_back({ActionKind::forward, 0, i});
    schedule.ranks[0].push_back({ActionKind::backward, 0, i});
  }
  return schedule;
}

}  // namespace

std::string to_string(const Action& action) {
  return std::to_string(action.stage) + letter_of(action.kind) + std::to_string(action.micro_batch);
}

std::vector<int64_t> Schedule::stages_of(int64_t rank) const {
  std::vector<int64_t> stages;
  for (int64_t stage = 0; stage < num_stages(); ++stage) {
    if (rank_of_stage[static_cast<size_t>(stage)] == rank) stages.push_back(stage);
  }
  return stages;
}

int64_t Schedule::stage_behind(const Action& action) const {
  if (action.kind == ActionKind::backward_weight) return -1;
  if (action.kind != ActionKind::forward) return action.stage - 1;
  return action.stage + 1 < num_stages() ? action.stage + 1 : -1;
}

int64_t Schedule::stage_needed(const Action& action) const {
  if (action.kind == ActionKind::backward_weight) return -1;
  if (action.kind == ActionKind::forward) return action.stage - 1;
  return action.stage + 1 < num_stages() ? action.stage + 1 : -1;
}

std::optional<ScheduleKind> schedule_kind(std::string_view name) {
  for (const ScheduleKind kind : kNamedSchedules) {
    if (schedule_name(kind) == name) return kind;
  }
  if (name.ends_with(".csv")) return ScheduleKind::csv;
  return std::nullopt;
}

std::string_view schedule_name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return "gpipe";
    case ScheduleKind::one_f_one_b:
      return "1f1b";
    case ScheduleKind::interleaved:
      return "interleaved";
    case ScheduleKind::zb_h1:
      return "zb-h1";
    case ScheduleKind::zb_v:
      return "zb-v";
    case ScheduleKind::csv:
      break;
  }
  return "csv";
}

std::string nearest_schedules(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ScheduleKind kind : kNamedSchedules) names.push_back(schedule_name(kind));
  const std::string_view near = nearest_name(name, names);
  if (!near.empty()) return std::string(near);
  std::vector<std::string> all(names.begin(), names.end());
  all.emplace_back("a file NAME.csv");
  return join_or(all);
}

int64_t usual_chunks(ScheduleKind kind) {
  return kind == ScheduleKind::interleaved || kind == ScheduleKind::zb_v ? 2 : 1;
}

bool takes_chunks(ScheduleKind kind, int64_t chunks_per_rank) {
  const bool any = kind == ScheduleKind::interleaved || kind == ScheduleKind::csv;
  return any ? chunks_per_rank >= 1 : chunks_per_rank == usual_chunks(kind);
}

Schedule dealt_out(int64_t num_ranks, int64_t chunks_per_rank, int64_t num_micro_batches) {
  Schedule schedule;
  schedule.num_micro_batches = num_micro_batches;
  schedule.ranks.resize(static_cast<size_t>(num_ranks));
  for (int64_t stage = 0; stage < num_ranks * chunks_per_rank; ++stage) {
    schedule.rank_of_stage.push_back(stage % num_ranks);
  }
  return schedule;
}

Schedule first_of(Schedule schedule, int64_t num_micro_batches) {
  schedule.num_micro_batches = num_micro_batches;
  for (std::vector<Action>& actions : schedule.ranks) {
    std::erase_if(actions,
                  [&](const Action& action) { return action.micro_batch >= num_micro_batches; });
  }
  return schedule;
}

Schedule make_schedule(ScheduleKind kind, int64_t num_ranks, int64_t chunks_per_rank,
                       int64_t num_micro_batches) {
  if (num_ranks == 1) return of_one_rank(num_micro_batches);
  CHECK(takes_chunks(kind, chunks_per_rank), "a schedule with another number of chunks a rank");
  switch (kind) {
    case ScheduleKind::gpipe:
      return gpipe(num_ranks, num_micro_batches);
    case ScheduleKind::one_f_one_b:
      return one_f_one_b(num_ranks, num_micro_batches);
    case ScheduleKind::interleaved:
      return interleaved(num_ranks, chunks_per_rank, num_micro_batches);
    case ScheduleKind::zb_h1:
      return zb_h1(num_ranks, num_micro_batches);
    case ScheduleKind::zb_v:
      return zb_v(num_ranks, num_micro_batches);
    case ScheduleKind::csv:
      break;
  }
  CHECK(false, "a schedule from a file is read, not made");
  return {};
}

namespace {

/// schedule_of, with that many micro-batches where no file says how many.
Schedule schedule_with(const RunConfig& config, int64_t num_micro_batches) {
  const ParallelismConfig& parallelism = config.parallelism;
  const std::optional<ScheduleKind> kind = schedule_kind(parallelism.pipeline_schedule);
  CHECK(kind.has_value(), "a resolved config names a schedule");
  const int64_t num_ranks = parallelism.pipeline_parallel_degree;
  if (num_ranks > 1 && kind == ScheduleKind::csv) {
    ParsedSchedule parsed = parse_schedule(parallelism.schedule_csv);
    CHECK(parsed.errors.empty(), "a resolved config's schedule is one");
    return std::move(parsed.schedule);
  }
  return make_schedule(*kind, num_ranks, parallelism.virtual_stages, num_micro_batches);
}

}  // namespace

Schedule schedule_of(const RunConfig& config) {
  return schedule_with(config, passes_per_step(config));
}

std::vector<int64_t> rank_of_stage(const RunConfig& config) {
  return schedule_with(config, 0).rank_of_stage;
}

Schedule forward_only(const Schedule& training, int64_t num_micro_batches) {
  Schedule schedule;
  schedule.num_micro_batches = num_micro_batches;
  schedule.rank_of_stage = training.rank_of_stage;
  schedule.ranks.resize(training.ranks.size());
  const int64_t group = training.num_ranks();
  for (int64_t first = 0; first < num_micro_batches; first += group) {
    const int64_t end = std::min(first + group, num_micro_batches);
    for (int64_t stage = 0; stage < schedule.num_stages(); ++stage) {
      const auto rank = static_cast<size_t>(schedule.rank_of_stage[static_cast<size_t>(stage)]);
      for (int64_t i = first; i < end; ++i) {
        schedule.ranks[rank].push_back({ActionKind::forward, stage, i});
      }
    }
  }
  return schedule;
}

int64_t peak_in_flight(const Schedule& schedule, int64_t rank) {
  int64_t in_flight = 0, peak = 0;
  for (const Action& action : schedule.ranks[static_cast<size_t>(rank)]) {
    if (action.kind == ActionKind::forward) peak = std::max(peak, ++in_flight);
    if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) {
      --in_flight;
    }
  }
  return peak;
}

}  // namespace tessera::spec
