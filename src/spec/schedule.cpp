#include "spec/schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "spec/schedule_kinds.h"

namespace tessera::spec {

namespace {

constexpr std::array<std::pair<ScheduleKind, std::string_view>, 5> kNames = {{
    {ScheduleKind::gpipe, "gpipe"},
    {ScheduleKind::one_f_one_b, "1f1b"},
    {ScheduleKind::interleaved, "interleaved"},
    {ScheduleKind::zb_h1, "zb-h1"},
    {ScheduleKind::zb_v, "zb-v"},
}};

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
  constexpr std::array<const char*, 4> kLetters = {"F", "B", "I", "W"};
  return std::to_string(action.stage) + kLetters[static_cast<size_t>(action.kind)] +
         std::to_string(action.micro_batch);
}

std::vector<int64_t> Schedule::stages_of(int64_t rank) const {
  std::vector<int64_t> stages;
  for (int64_t stage = 0; stage < num_stages(); ++stage) {
    if (rank_of_stage[static_cast<size_t>(stage)] == rank) stages.push_back(stage);
  }
  return stages;
}

std::optional<ScheduleKind> schedule_kind(std::string_view name) {
  for (const auto& [kind, its_name] : kNames) {
    if (its_name == name) return kind;
  }
  if (name.ends_with(".csv")) return ScheduleKind::csv;
  return std::nullopt;
}

std::string_view schedule_name(ScheduleKind kind) {
  for (const auto& [named, name] : kNames) {
    if (named == kind) return name;
  }
  return "csv";
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
  const int64_t chunks = kind == ScheduleKind::zb_v ? 2 : 1;
  CHECK(kind == ScheduleKind::interleaved || chunks_per_rank == chunks,
        "a schedule with another number of chunks a rank");
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

Schedule schedule_of(const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  const std::optional<ScheduleKind> kind = schedule_kind(parallelism.pipeline_schedule);
  CHECK(kind.has_value(), "a resolved config names a schedule");
  const int64_t num_ranks = parallelism.pipeline_parallel_degree;
  if (num_ranks > 1 && kind == ScheduleKind::csv) {
    ParsedSchedule parsed = parse_schedule(parallelism.schedule_csv);
    CHECK(parsed.errors.empty(), "a resolved config's schedule is one");
    return std::move(parsed.schedule);
  }
  return make_schedule(*kind, num_ranks, parallelism.virtual_stages, passes_per_step(config));
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
