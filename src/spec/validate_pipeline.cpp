// The part of the validator that holds a pipeline's stages against the model, and its schedule
// against stages and micro-batches.

#include <algorithm>
#include <numeric>

#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/schedule.h"
#include "spec/stages.h"
#include "spec/validate_findings.h"

namespace tessera::spec {

namespace {

constexpr const char* kDegree = "parallelism.pipeline_parallel_degree";
constexpr const char* kSchedule = "parallelism.pipeline_schedule";
constexpr const char* kVirtual = "parallelism.virtual_stages";
constexpr const char* kLayers = "parallelism.layers_per_stage";

std::string text(int64_t number) {
  return std::to_string(number);
}

int64_t num_stages(const ParallelismConfig& parallelism) {
  return parallelism.pipeline_parallel_degree * parallelism.virtual_stages;
}

/// Stages on a rank that the schedule of that kind does not take.
void check_virtual_stages(Findings& findings, ScheduleKind kind) {
  const int64_t v = findings.config().parallelism.virtual_stages;
  const std::string name(schedule_name(kind));
  if (kind == ScheduleKind::interleaved) {
    if (v > 1) return;
    findings.add(kVirtual, "is too few for interleaved, which takes turns between a rank's stages",
                 "2 or more, or pipeline_schedule = \"1f1b\"");
  } else if (kind == ScheduleKind::zb_v) {
    if (v == 2) return;
    findings.add(kVirtual, "is not what zb-v has: one stage on the way down, one on the way back",
                 "2");
  } else if (kind != ScheduleKind::csv && v > 1) {
    findings.add(kVirtual, "is not what " + name + " has: one stage on each rank",
                 "1, or pipeline_schedule = \"interleaved\"");
  }
}

/// Stages that are left to be filled by cost: each has a block.
void check_stages_by_cost(Findings& findings) {
  const RunConfig& config = findings.config();
  const ParallelismConfig& parallelism = config.parallelism;
  const int64_t layers = config.model.num_hidden_layers;
  const int64_t stages = num_stages(parallelism);
  if (stages <= layers) return;
  const bool degree = parallelism.pipeline_parallel_degree > layers;
  const int64_t other = degree ? parallelism.virtual_stages : parallelism.pipeline_parallel_degree;
  const std::string product = parallelism.virtual_stages == 1 ? text(stages) + " stages"
                                                              : text(stages) + " stages (pp × v)";
  findings.add(
      degree ? kDegree : kVirtual,
      "makes " + product + " of the model's " + text(layers) + " blocks, and each has one at least",
      text(std::max<int64_t>(layers / other, 1)) + " or less, or a larger model");
}

/// The list that would be taken by cost; empty when there is none.
std::string layers_by_cost(const Findings& findings) {
  RunConfig config = resolved(findings.config(), findings.world_size());
  config.parallelism.layers_per_stage.clear();
  if (!findings.empty() || num_stages(config.parallelism) > config.model.num_hidden_layers) {
    return {};
  }
  std::vector<int64_t> counts;
  for (const StageLayers& stage : stage_layers(config)) counts.push_back(stage.num_layers);
  return to_text(Value(counts));
}

void check_layers_per_stage(Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  const std::vector<int64_t>& given = parallelism.layers_per_stage;
  const int64_t layers = findings.config().model.num_hidden_layers;
  const int64_t stages = num_stages(parallelism);
  std::vector<std::string> faults;
  if (static_cast<int64_t>(given.size()) != stages) {
    faults.push_back("has " + text(static_cast<int64_t>(given.size())) + " numbers for " +
                     text(stages) + " stages (pp × v)");
  }
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  if (sum != layers) {
    faults.push_back("adds up to " + text(sum) + " blocks of " + text(layers));
  }
  const auto empty = std::find(given.begin(), given.end() - 1, 0);
  if (empty != given.end() - 1) {
    faults.push_back("leaves stage " + text(empty - given.begin()) +
                     " without a block, which only the last may be: it has the head");
  }
  if (faults.empty()) return;
  std::string why = faults.front();
  for (size_t i = 1; i < faults.size(); ++i) why += "; " + faults[i];
  const std::string by_cost = layers_by_cost(findings);
  findings.add(kLayers, why, by_cost.empty() ? "leave it out" : by_cost + ", or leave it out");
}

/// Micro-batches of a step; 0: not known.
int64_t micro_batches(const Findings& findings) {
  if (!mesh_ok(findings) || replicas(findings) == 0 ||
      !findings.ok({"training.global_batch_size", "training.micro_batch_size"})) {
    return 0;
  }
  RunConfig config = findings.config();
  config.parallelism.data_parallel_degree = replicas(findings);
  return passes_per_step(resolved(config, findings.world_size()));
}

/// The batch sizes with which there would be `wanted` micro-batches a step.
std::string batches_for(const Findings& findings, int64_t wanted) {
  const int64_t ranks = replicas(findings);
  const RunConfig config = resolved(findings.config(), findings.world_size());
  const int64_t global = config.training.global_batch_size;
  const int64_t micro = micro_batch_size_for(global, ranks, wanted);
  const int64_t share = micro_batch_size_for(global, ranks, 1);
  const bool possible = (share + micro - 1) / micro == wanted;
  const std::string larger =
      "a training.global_batch_size of " + text(wanted * config.training.micro_batch_size * ranks);
  return possible ? text(micro) + ", or " + larger : larger;
}

void check_micro_batches(Findings& findings) {
  const int64_t count = micro_batches(findings);
  const int64_t ranks = findings.config().parallelism.pipeline_parallel_degree;
  if (count == 0 || count >= ranks) return;
  findings.add("training.micro_batch_size",
               "makes " + text(count) + " micro-batches a step, and interleaved needs as many as " +
                   "the pipeline has ranks, " + text(ranks),
               batches_for(findings, ranks));
}

/// `lines` and how many more there are, as the reason why the schedule file does not serve.
void add_lines(Findings& findings, const std::vector<std::string>& lines) {
  constexpr size_t kMost = 4;
  std::string why = "cannot be carried out: ";
  for (size_t i = 0; i < std::min(lines.size(), kMost); ++i) why += (i > 0 ? "; " : "") + lines[i];
  if (lines.size() > kMost) {
    why += "; and " + text(static_cast<int64_t>(lines.size() - kMost)) + " more";
  }
  findings.add(kSchedule, why, "");
}

void check_schedule_file(Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  if (parallelism.schedule_csv.empty()) return;  // for the reader of the file to tell
  const ParsedSchedule parsed = parse_schedule(parallelism.schedule_csv);
  if (!parsed.errors.empty()) return add_lines(findings, parsed.errors);
  const Schedule& schedule = parsed.schedule;
  const std::vector<std::string> wrong = mistakes(schedule);
  if (!wrong.empty()) return add_lines(findings, wrong);
  const int64_t ranks = parallelism.pipeline_parallel_degree;
  if (schedule.num_ranks() != ranks) {
    findings.add(kSchedule,
                 "is of " + text(schedule.num_ranks()) + " ranks (rows), and the pipeline has " +
                     text(ranks),
                 "a pipeline_parallel_degree of " + text(schedule.num_ranks()));
    return;
  }
  if (findings.ok({kVirtual}) && schedule.num_stages() != num_stages(parallelism)) {
    const bool even = schedule.num_stages() % ranks == 0;
    findings.add(kVirtual,
                 "makes " + text(num_stages(parallelism)) +
                     " stages (pp × v), and the schedule has " + text(schedule.num_stages()),
                 even ? text(schedule.num_stages() / ranks) : "another pipeline_schedule");
  }
  const int64_t count = micro_batches(findings);
  if (count == 0 || count == schedule.num_micro_batches) return;
  findings.add("training.micro_batch_size",
               "makes " + text(count) + " micro-batches a step, and the schedule is of " +
                   text(schedule.num_micro_batches),
               batches_for(findings, schedule.num_micro_batches));
}

void check_unused_pipeline(Findings& findings) {
  for (const char* key : {kSchedule, kVirtual, kLayers}) {
    if (!findings.ok({key}) || !findings.changed(key)) continue;
    findings.add(key, "is not used: the pipeline has one rank",
                 "leave it out, or a pipeline_parallel_degree of 2 or more");
  }
}

}  // namespace

void check_pipeline(Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  const std::optional<ScheduleKind> kind = schedule_kind(parallelism.pipeline_schedule);
  if (!kind) {
    findings.add(kSchedule, "no schedule has this name",
                 nearest_schedules(parallelism.pipeline_schedule));
  }
  if (!findings.legal({kDegree, kVirtual})) return;
  if (parallelism.pipeline_parallel_degree == 1) return check_unused_pipeline(findings);
  if (kind) check_virtual_stages(findings, *kind);
  if (kind == ScheduleKind::interleaved) check_micro_batches(findings);
  if (kind == ScheduleKind::csv) check_schedule_file(findings);
  if (!findings.legal({kLayers, "model.num_hidden_layers"}) || !findings.ok({kVirtual})) return;
  if (parallelism.layers_per_stage.empty()) {
    check_stages_by_cost(findings);
  } else {
    check_layers_per_stage(findings);
  }
}

}  // namespace tessera::spec
