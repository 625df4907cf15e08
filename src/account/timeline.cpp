#include "account/timeline.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "spec/layer_flops.h"
#include "spec/stages.h"

namespace tessera::account {

using spec::Action;
using spec::ActionKind;
using spec::Schedule;

double ActionTimes::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::forward:
      return forward;
    case ActionKind::backward:
      return backward;
    case ActionKind::backward_input:
      return backward_input;
    case ActionKind::backward_weight:
      return backward_weight;
  }
  return 0;
}

StageTimes even_times(const Schedule& schedule, const ActionTimes& times) {
  return {std::vector<ActionTimes>(static_cast<size_t>(schedule.num_stages()), times), 0};
}

StageTimes stage_times(const spec::RunConfig& config) {
  const spec::StepFlops block =
      spec::block_step_flops(config.model, config.data.seq_len, config.activation_checkpoint.mode);
  const spec::StepFlops head = spec::head_step_flops(config.model);
  StageTimes times;
  for (const spec::StageLayers& stage : spec::stage_layers(config)) {
    const double blocks = static_cast<double>(stage.num_layers) / block.forward;
    times.stages.push_back({blocks * block.forward, blocks * block.backward(),
                            blocks * block.backward_input, blocks * block.backward_weight});
  }
  times.stages.back().forward += head.forward / block.forward;
  return times;
}

double Timeline::bubble_fraction() const {
  double sum = 0;
  for (const double rank : busy) sum += rank;
  const double all = makespan * static_cast<double>(busy.size());
  return all > 0 ? 1 - sum / all : 0;
}

namespace {

class Simulation {
 public:
  Simulation(const Schedule& schedule, const StageTimes& times)
      : schedule_(schedule), times_(times), next_(schedule.ranks.size()) {
    const auto cells = static_cast<size_t>(schedule.num_stages() * schedule.num_micro_batches);
    for (std::vector<double>& ends : stream_ends_) ends.assign(cells, kNotYet);
    timeline_.ranks.resize(schedule.ranks.size());
    timeline_.busy.resize(schedule.ranks.size());
  }

  Timeline run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (int64_t rank = 0; rank < schedule_.num_ranks(); ++rank) {
        while (advance(rank)) moves = true;
      }
    }
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      CHECK(next_[rank] == schedule_.ranks[rank].size(),
            "a schedule that does not come to its end");
    }
    return std::move(timeline_);
  }

 private:
  static constexpr double kNotYet = -1;

  bool advance(int64_t rank) {
    const auto index = static_cast<size_t>(rank);
    if (next_[index] == schedule_.ranks[index].size()) return false;
    const Action& action = schedule_.ranks[index][next_[index]];
    std::vector<Interval>& done = timeline_.ranks[index];
    double begin = done.empty() ? 0 : done.back().end;
    const bool forward = action.kind == ActionKind::forward;
    const bool weight = action.kind == ActionKind::backward_weight;
    const int64_t before = schedule_.stage_needed(action);
    if (before >= 0) {
      const double end = end_of(forward, before, action.micro_batch);
      if (end == kNotYet) return false;
      const bool here = schedule_.rank_of_stage[static_cast<size_t>(before)] == rank;
      begin = std::max(begin, end + (here ? 0 : times_.message));
    }
    const double takes = times_.stages[static_cast<size_t>(action.stage)].of(action.kind);
    done.push_back({begin, begin + takes});
    if (!weight) end_of(forward, action.stage, action.micro_batch) = begin + takes;
    timeline_.busy[index] += takes;
    timeline_.makespan = std::max(timeline_.makespan, begin + takes);
    ++next_[index];
    return true;
  }

  /// When the stream that the stage makes of the micro-batch is there.
  double& end_of(bool forward, int64_t stage, int64_t micro_batch) {
    return stream_ends_[forward ? 0 : 1]
                       [static_cast<size_t>(stage * schedule_.num_micro_batches + micro_batch)];
  }

  const Schedule& schedule_;
  const StageTimes& times_;
  std::vector<size_t> next_;                        // by rank
  std::array<std::vector<double>, 2> stream_ends_;  // [stage, micro-batch]
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Schedule& schedule, const StageTimes& times) {
  CHECK(times.stages.size() == schedule.rank_of_stage.size(), "times of another pipeline");
  return Simulation(schedule, times).run();
}

std::string to_csv(const Schedule& schedule) {
  const Timeline timeline = simulate(schedule, even_times(schedule, {1, 1, 1, 1}));
  std::string text;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    int64_t tick = 0;
    for (size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      if (i > 0) text += ',';
      const auto begin = static_cast<int64_t>(timeline.ranks[rank][i].begin);
      for (; tick < begin; ++tick) text += ',';
      text += spec::to_string(schedule.ranks[rank][i]);
      ++tick;
    }
    text += '\n';
  }
  return text;
}

}  // namespace tessera::account
