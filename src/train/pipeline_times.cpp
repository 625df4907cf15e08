#include "train/pipeline_times.h"

#include <algorithm>

namespace tessera::train {

PipelineTimes::PipelineTimes(const spec::Schedule& schedule)
    : schedule_(schedule), totals_(static_cast<size_t>(schedule.num_stages())) {}

void PipelineTimes::add_step(const std::vector<parallel::TimedAction>& actions,
                             double bubble_fraction) {
  if (steps_ == 1) {  // that one warmed up
    totals_.assign(totals_.size(), {});
    bubble_sum_ = 0;
  }
  for (const parallel::TimedAction& done : actions) {
    Total& total =
        totals_[static_cast<size_t>(done.action.stage)][static_cast<size_t>(done.action.kind)];
    total.seconds += 1e-9 * static_cast<double>(done.end_ns - done.begin_ns);
    total.count += 1;
  }
  bubble_sum_ += bubble_fraction;
  ++steps_;
}

double PipelineTimes::bubble_measured() const {
  return bubble_sum_ / static_cast<double>(std::max<int64_t>(steps_ - 1, 1));
}

account::StageTimes PipelineTimes::mean_times(comm::Communicator& world) const {
  std::vector<std::array<Total, kNumKinds>> totals = totals_;
  static_assert(sizeof(Total) == 2 * sizeof(double));
  const auto numbers = static_cast<int64_t>(totals.size() * kNumKinds * 2);
  world.all_reduce(core::View{totals.data(), core::DType::f64, {numbers}}, comm::ReduceOp::sum);
  account::StageTimes times;
  for (const auto& stage : totals) {
    const auto mean = [&](spec::ActionKind kind) {
      const Total& total = stage[static_cast<size_t>(kind)];
      return total.count > 0 ? total.seconds / total.count : 0;
    };
    times.stages.push_back({mean(spec::ActionKind::forward), mean(spec::ActionKind::backward),
                            mean(spec::ActionKind::backward_input),
                            mean(spec::ActionKind::backward_weight)});
  }
  return times;
}

double PipelineTimes::bubble_simulated(comm::Communicator& world) const {
  if (schedule_.num_ranks() == 1) return 0;
  return account::simulate(schedule_, mean_times(world)).bubble_fraction();
}

}  // namespace tessera::train
