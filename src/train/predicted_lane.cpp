#include "train/predicted_lane.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "parallel/pipeline/action_spans.h"

namespace tessera::train {

namespace {

/// The schedule without the micro-batches that other pipelines have and this one does not.
spec::Schedule schedule_at(const spec::RunConfig& config, const spec::Coordinate& at) {
  spec::Schedule schedule = spec::schedule_of(config);
  const int64_t size = config.training.micro_batch_size;
  const int64_t sequences = spec::batch_share(config.training.global_batch_size,
                                              config.parallelism.data_parallel_degree, at.dp)
                                .count;
  const int64_t micro_batches = (sequences + size - 1) / size;
  for (std::vector<spec::Action>& actions : schedule.ranks) {
    std::erase_if(actions, [&](const auto& action) { return action.micro_batch >= micro_batches; });
  }
  return schedule;
}

}  // namespace

PredictedLane::PredictedLane(const spec::RunConfig& config, const spec::Coordinate& at)
    : schedule_(schedule_at(config, at)),
      rank_(at.pp),
      timeline_(account::simulate(schedule_, account::stage_times(config))),
      busy_(std::accumulate(timeline_.busy.begin(), timeline_.busy.end(), 0.0)) {}

std::vector<trace::Span> PredictedLane::spans(const StepResult& result) const {
  const double scale = 1e9 * result.pipeline_work_s / busy_;
  const auto time_ns = [&](double time) { return result.begin_ns + std::llround(scale * time); };
  const auto rank = static_cast<size_t>(rank_);
  const std::vector<int64_t> stages = schedule_.stages_of(rank_);
  std::vector<trace::Span> spans;
  for (size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
    const spec::Action& action = schedule_.ranks[rank][i];
    const account::Interval& at = timeline_.ranks[rank][i];
    const int64_t chunk = std::find(stages.begin(), stages.end(), action.stage) - stages.begin();
    trace::Span span = parallel::span_of(action, chunk, time_ns(at.begin), time_ns(at.end));
    span.details.step = result.step;
    span.predicted = true;
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace tessera::train
