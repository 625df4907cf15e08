#include "plan/engine_step.h"

#include <algorithm>
#include <vector>

#include "account/rank_plan.h"
#include "account/sharding.h"
#include "account/timeline.h"
#include "core/error.h"

namespace tessera::plan {

namespace {

using account::ActionTimes;
using account::kDp;
using account::kPp;
using account::kTp;
using account::Purpose;
using account::RankPlan;
using account::StagePart;
using account::UnitKind;
using account::UnitTimes;

ActionTimes operator+(const ActionTimes& a, const ActionTimes& b) {
  return {a.forward + b.forward, a.backward + b.backward, a.backward_input + b.backward_input,
          a.backward_weight + b.backward_weight};
}
ActionTimes operator*(double factor, const ActionTimes& times) {
  return {factor * times.forward, factor * times.backward, factor * times.backward_input,
          factor * times.backward_weight};
}

/// What the parts of a step take on this machine in this company.
class Measured {
 public:
  Measured(const spec::RunConfig& config, const account::MachineTimes& machine,
           const account::Company& company)
      : config_(config), machine_(machine), company_(company) {
    const account::StateTimes* state =
        account::find_state(machine, account::state_shape(config.training), company);
    CHECK(state != nullptr, "a machine whose optimizer was not measured");
    state_ = *state;
  }

  /// Seconds an element.
  const account::StateTimes& state() const { return state_; }

  ActionTimes unit(UnitKind kind, int64_t sequences) const {
    if (sequences == 0) return {0, 0, 0, 0};
    const std::string shape = account::unit_shape(config_, kind, sequences);
    const UnitTimes* unit = account::find_unit(machine_, kind, shape, company_);
    CHECK(unit != nullptr, "a machine on which a unit was not measured: " + shape);
    ActionTimes times{unit->forward_s, unit->backward_s, unit->backward_input_s,
                      unit->backward_weight_s};
    if (config_.parallelism.sequence_parallel) {
      // Of the rows of the stream a rank has but its part.
      const auto ranks = static_cast<double>(config_.parallelism.tensor_parallel_degree);
      const double spared = 1 - 1 / ranks;
      const bool again = config_.activation_checkpoint.mode == spec::Recompute::full;
      times.forward -= spared * unit->stream_forward_s;
      times.backward -= spared * (unit->stream_backward_s + (again ? unit->stream_forward_s : 0));
      times.backward_input -= spared * unit->stream_backward_s;
    }
    return times;
  }

  double collective(const account::Message& message, int64_t ranks) const {
    if (ranks <= 1 || message.elements == 0) return 0;
    const account::CollectiveCost cost = account::collective_cost(message, ranks);
    return through(account::name_of(message.collective), ranks, cost.hops, cost.bytes);
  }
  double stream_message(int64_t elements, int64_t ranks) const {
    const auto bytes =
        static_cast<double>(elements * core::size_of(spec::dtype_of(config_.training.precision)));
    return through("sendrecv", ranks, 1, bytes);
  }
  bool has_idle_cores() const { return company_.ranks * company_.threads < machine_.cores; }

 private:
  double through(const char* collective, int64_t ranks, double hops, double bytes) const {
    const account::LinkTimes* link = account::find_link(machine_, collective, ranks);
    CHECK(link != nullptr, "a machine whose links were not measured");
    return hops * link->latency_s + (link->bytes_per_s > 0 ? bytes / link->bytes_per_s : 0);
  }

  const spec::RunConfig& config_;
  const account::MachineTimes& machine_;
  account::Company company_;
  account::StateTimes state_;
};

/// Adds up one step. Ranks of a pipeline differ; of the ranks of the other axes the first has the
/// most samples, and stands for them.
class Step {
 public:
  Step(const spec::RunConfig& config, const account::MachineTimes& machine,
       const account::Company& company)
      : config_(config), measured_(config, machine, company) {
    const spec::Mesh mesh = spec::mesh_of(config.parallelism);
    // Attention's scratch is memory: here it does not matter.
    const auto no_scratch = [](const account::AttentionSize&) { return int64_t{0}; };
    for (int64_t pp = 0; pp < mesh.pp; ++pp) {
      plans_.emplace_back(config, mesh.rank_of({pp, 0, 0, 0}), no_scratch);
    }
  }

  EngineStep predict();

 private:
  /// Of one stage and micro-batch, without and with what it waits for in its layers.
  ActionTimes computes(const StagePart& stage, int64_t sequences) const;
  ActionTimes waits_in_layers(const RankPlan& plan, const StagePart& stage,
                              int64_t sequences) const;
  /// The mean over the micro-batches of the schedule, of every stage of the pipeline.
  void add_stages(const RankPlan& plan, account::StageTimes& all, account::StageTimes& waits) const;
  double sum_of(const RankPlan& plan, const account::StageTimes& times) const;
  double state_passes_s(const RankPlan& plan) const;
  double messages_s(const RankPlan& plan, size_t axis, Purpose purpose) const;
  double dp_exposed_s(const RankPlan& plan, const account::StageTimes& times) const;
  double optimizer_s(const RankPlan& plan) const;

  const spec::RunConfig& config_;
  Measured measured_;
  std::vector<RankPlan> plans_;  // by place in the pipeline
};

ActionTimes Step::computes(const StagePart& stage, int64_t sequences) const {
  ActionTimes times =
      static_cast<double>(stage.layers.num_layers) * measured_.unit(UnitKind::block, sequences);
  if (stage.embeds) times = times + measured_.unit(UnitKind::embedding, sequences);
  if (stage.has_head) times = times + measured_.unit(UnitKind::head, sequences);
  return times;
}

ActionTimes Step::waits_in_layers(const RankPlan& plan, const StagePart& stage,
                                  int64_t sequences) const {
  const int64_t tp = config_.parallelism.tensor_parallel_degree;
  if (tp == 1 || sequences == 0) return {0, 0, 0, 0};
  const auto seconds = [&](bool training) {
    double sum = 0;
    for (const account::Message& message : plan.layer_messages(stage, sequences, training)) {
      sum += measured_.collective(message, tp);
    }
    return sum;
  };
  const double forward = seconds(false);
  const double backward = seconds(true) - forward;
  return {forward, backward, backward, 0};
}

void Step::add_stages(const RankPlan& plan, account::StageTimes& all,
                      account::StageTimes& waits) const {
  const int64_t micro_batches = plan.schedule().num_micro_batches;
  for (const StagePart& stage : plan.part().stages) {
    ActionTimes computing{0, 0, 0, 0}, waiting{0, 0, 0, 0};
    for (int64_t i = 0; i < micro_batches; ++i) {
      computing = computing + computes(stage, plan.sequences_of(i));
      waiting = waiting + waits_in_layers(plan, stage, plan.sequences_of(i));
    }
    const double share = 1 / static_cast<double>(micro_batches);
    all.stages[static_cast<size_t>(stage.stage)] = share * (computing + waiting);
    waits.stages[static_cast<size_t>(stage.stage)] = share * waiting;
  }
}

/// Over the actions of the rank.
double Step::sum_of(const RankPlan& plan, const account::StageTimes& times) const {
  double sum = 0;
  for (const spec::Action& action : plan.schedule().ranks[static_cast<size_t>(plan.at().pp)]) {
    sum += times.stages[static_cast<size_t>(action.stage)].of(action.kind);
  }
  return sum;
}

/// Gradients cleared; where they are sharded, of a whole unit before every pass that adds to it,
/// and what the rank owns of it copied in.
double Step::state_passes_s(const RankPlan& plan) const {
  const account::Sharding sharding = account::sharding_of(config_.parallelism);
  const account::ParameterTable& table = plan.table();
  const auto held = static_cast<double>(table.num_trainable_elements());
  const auto shards = static_cast<double>(sharding.shards);
  if (!sharding.shards_gradients()) return held * measured_.state().zero_s;
  const account::UnitPlan units = account::unit_plan(table, plan.passes(), /*training=*/true);
  double seconds = held / shards * measured_.state().zero_s;
  for (size_t u = 0; u < table.units.size(); ++u) {
    const auto elements = static_cast<double>(table.units[u].trainable_elements());
    seconds += static_cast<double>(units.contributions[u]) * elements *
               (measured_.state().zero_s + measured_.state().copy_s / shards);
  }
  return seconds;
}

double Step::messages_s(const RankPlan& plan, size_t axis, Purpose purpose) const {
  double seconds = 0;
  for (const account::AxisMessage& each : plan.messages()) {
    if (each.axis != axis || each.message.purpose != purpose) continue;
    seconds += measured_.collective(each.message.message, each.message.ranks);
  }
  return seconds;
}

double Step::dp_exposed_s(const RankPlan& plan, const account::StageTimes& times) const {
  const double gradients = messages_s(plan, kDp, Purpose::gradients);
  const double weights = messages_s(plan, kDp, Purpose::weights);
  const double new_weights = messages_s(plan, kDp, Purpose::new_weights);
  if (!measured_.has_idle_cores()) return gradients + weights + new_weights;
  const spec::ParallelismConfig& parallelism = config_.parallelism;
  const auto units = static_cast<double>(plan.table().units.size());
  const auto passes = static_cast<double>(plan.passes().size());
  const double busy = sum_of(plan, times);
  // Behind what they can hide: gradients behind the last backward but for its last unit, whose
  // reduction begins when all else is over; gathers but the first behind the unit before; new
  // weights behind the update of the units that follow.
  const double backward = busy / std::max(passes, 1.0) * 2 * (1 - 1 / units);
  const double hidden_gradients =
      parallelism.bucket_bytes > 0 ? std::min(gradients * (1 - 1 / units), backward) : 0;
  const double hidden_weights = parallelism.prefetch > 0 ? std::min(weights, busy) : 0;
  const double hidden_new = std::min(new_weights * (1 - 1 / units), optimizer_s(plan));
  return gradients - hidden_gradients + weights - hidden_weights + new_weights - hidden_new;
}

double Step::optimizer_s(const RankPlan& plan) const {
  const account::Sharding sharding = account::sharding_of(config_.parallelism);
  const auto owned = static_cast<double>(plan.table().num_trainable_elements()) /
                     static_cast<double>(sharding.shards);
  return owned * (measured_.state().norm_s + measured_.state().optimizer_s);
}

EngineStep Step::predict() {
  const auto num_stages = static_cast<size_t>(plans_.front().schedule().num_stages());
  account::StageTimes all, waits;
  all.stages.resize(num_stages, {0, 0, 0, 0});
  waits.stages.resize(num_stages, {0, 0, 0, 0});
  for (const RankPlan& plan : plans_) add_stages(plan, all, waits);
  const int64_t pp = config_.parallelism.pipeline_parallel_degree;
  if (pp > 1) {
    const int64_t most = config_.training.micro_batch_size;
    all.message = measured_.stream_message(plans_.front().stream_elements(most), pp);
  }
  const account::Timeline timeline = account::simulate(plans_.front().schedule(), all);
  EngineStep slowest;
  for (const RankPlan& plan : plans_) {
    EngineStep step;
    const double waited = sum_of(plan, waits);
    const double busy = sum_of(plan, all);
    step.compute_s = busy - waited + state_passes_s(plan);
    step.tp_exposed_s = waited + messages_s(plan, kTp, Purpose::copies);
    step.dp_exposed_s = dp_exposed_s(plan, all);
    step.pp_bubble_s = timeline.makespan - busy + messages_s(plan, kPp, Purpose::copies);
    step.optimizer_s = optimizer_s(plan);
    for (const size_t axis : {kDp, kTp, kPp}) {
      step.overhead_s += messages_s(plan, axis, Purpose::agreement);
    }
    step.bubble_fraction = pp > 1 ? timeline.bubble_fraction() : 0;
    step.step_s = step.compute_s + step.tp_exposed_s + step.dp_exposed_s + step.pp_bubble_s +
                  step.optimizer_s + step.overhead_s;
    if (step.step_s > slowest.step_s) slowest = step;
  }
  return slowest;
}

}  // namespace

EngineStep engine_step(const spec::RunConfig& config, const account::MachineTimes& machine,
                       const account::Company& company) {
  return Step(config, machine, company).predict();
}

}  // namespace tessera::plan
