#include "plan/step.h"

#include <algorithm>
#include <cmath>

#include "plan/collectives.h"
#include "plan/layer_time.h"
#include "plan/parts.h"
#include "spec/schedule.h"

namespace tessera::plan {

namespace {

double efficiency_of(const Case& run, const Constants& constants) {
  for (size_t i = 0; i < stacks().size() && i < constants.stack_efficiency.size(); ++i) {
    if (stacks()[i].name == run.stack.name) return constants.stack_efficiency[i];
  }
  return 1;
}

bool splits_backward(spec::ScheduleKind schedule) {
  return schedule == spec::ScheduleKind::zb_h1 || schedule == spec::ScheduleKind::zb_v;
}

account::ActionTimes action_times(const LayerTime& time) {
  return {time.forward, time.backward(), time.backward_input, time.backward_weight};
}

/// What ZeRO-3 shows of one layer's gathers and scatter in one micro-batch.
double exposed_gathers(const Case& run, const Constants& constants, const LayerTime& layer,
                       double parameters) {
  const Network network(run.cluster, constants);
  const Groups groups = groups_of(run.cluster, run.layout);
  const double weight_bytes = parameters * stream_bytes(run.recipe);
  const auto pieces = static_cast<double>(run.stack.gathers_per_layer);
  const double gather = pieces * network.all_gather_s(weight_bytes / pieces, groups.shard);
  // Gradients leave as they are kept, but no wider than fp32.
  const double scatter =
      pieces *
      network.all_gather_s(parameters * static_cast<double>(run.recipe.gradient_bytes) / pieces,
                           groups.shard);
  const double backward = (run.layout.reshard_after_forward ? gather : 0) + scatter;
  const double overlap = run.stack.overlaps_gathers ? constants.gather_overlap : 0;
  return std::max(0.0, gather - overlap * layer.forward) +
         std::max(0.0, backward - overlap * layer.backward());
}

}  // namespace

LayerTimes layer_times(const Case& run, const Constants& constants) {
  const double slower = 1 / efficiency_of(run, constants);
  LayerTimes layers;
  layers.dense = slower * layer_time(run, constants, false);
  if (run.model.experts) layers.sparse = slower * layer_time(run, constants, true);
  layers.embedding = slower * embedding_time(run, constants);
  layers.head = slower * head_time(run, constants);
  return layers;
}

StepParts step_parts(const Case& run, const Constants& constants) {
  return step_parts(run, constants, layer_times(run, constants));
}

StepParts step_parts(const Case& run, const Constants& constants, const LayerTimes& layers) {
  const Network network(run.cluster, constants);
  const Groups groups = groups_of(run.cluster, run.layout);
  const double message =
      run.layout.pp == 1
          ? 0
          : network.send_s(static_cast<double>(run.layout.micro_batch * run.recipe.seq_len) /
                               static_cast<double>(run.layout.cp * run.layout.tp) *
                               static_cast<double>(run.model.dense.hidden_size) *
                               stream_bytes(run.recipe),
                           groups.stages_apart);
  StepParts parts;
  std::vector<LayerTime> by_rank(static_cast<size_t>(run.layout.pp));
  const std::vector<Stage> stages = stages_of(run);
  for (size_t i = 0; i < stages.size(); ++i) {
    LayerTime time = static_cast<double>(stages[i].dense_layers) * layers.dense;
    time += static_cast<double>(stages[i].expert_layers) * layers.sparse;
    if (stages[i].embeds) time += layers.embedding;
    if (stages[i].has_head) time += layers.head;
    if (run.layout.pp > 1 && !run.stack.overlaps_pp) {
      time.forward += message;
      time.backward_input += message;
    }
    if (run.layout.pp > 1 && splits_backward(run.layout.schedule)) {
      time.backward_input *= 1 + constants.split_backward;
      time.backward_weight *= 1 + constants.split_backward;
    }
    by_rank[static_cast<size_t>(rank_of(run.layout, static_cast<int64_t>(i)))] += time;
    parts.stages.stages.push_back(action_times(time));
  }
  parts.stages.message = run.stack.overlaps_pp ? message : 0;
  const auto micro_batches = static_cast<double>(num_micro_batches(run.recipe, run.layout));
  const auto busiest =
      std::max_element(by_rank.begin(), by_rank.end(), [](const auto& one, const auto& other) {
        return one.forward + one.backward() < other.forward + other.backward();
      });
  parts.tp_exposed = busiest->tp_exposed * micro_batches;
  parts.cp_exposed = busiest->cp_exposed * micro_batches;
  parts.ep_exposed = busiest->ep_exposed * micro_batches;
  if (run.layout.zero == 3) {
    const LocalParameters local = parameters_of(run, stages_of_rank(run, 0));
    const double layers_here =
        static_cast<double>(run.model.dense.num_hidden_layers) / static_cast<double>(run.layout.pp);
    parts.gather_exposed =
        micro_batches * layers_here *
        exposed_gathers(run, constants, run.model.experts ? layers.sparse : layers.dense,
                        local.largest_unit);
  }
  return parts;
}

PipelineTime pipeline_time(const Layout& layout, const account::StageTimes& times,
                           int64_t micro_batches) {
  std::vector<double> busy(static_cast<size_t>(layout.pp));
  for (size_t stage = 0; stage < times.stages.size(); ++stage) {
    busy[static_cast<size_t>(rank_of(layout, static_cast<int64_t>(stage)))] +=
        times.stages[stage].forward + times.stages[stage].backward;
  }
  const double most = *std::max_element(busy.begin(), busy.end());
  PipelineTime time;
  time.busy = most * static_cast<double>(micro_batches);
  if (layout.pp == 1) {
    time.makespan = time.busy;
    return time;
  }
  const int64_t enough = 4 * layout.pp;
  const int64_t simulated =
      micro_batches <= enough ? micro_batches : enough + micro_batches % layout.pp;
  const spec::Schedule schedule =
      spec::make_schedule(layout.schedule, layout.pp, layout.v, simulated);
  time.makespan = account::simulate(schedule, times).makespan +
                  most * static_cast<double>(micro_batches - simulated);
  return time;
}

namespace {

/// Gradients, and the weights that come back, of what data-parallel ranks share; and how much of
/// it does not hide behind the last backward.
double exposed_reduction(const Case& run, const Constants& constants, const LocalParameters& local,
                         double last_backward) {
  const Layout& layout = run.layout;
  const Network network(run.cluster, constants);
  const Groups groups = groups_of(run.cluster, layout);
  const auto gradient = static_cast<double>(run.recipe.gradient_bytes);
  const double trained = run.recipe.fine_tune == FineTune::full ? local.dense : local.trainable;
  const double gradient_bytes = trained * gradient;
  const double weight_bytes = trained * stream_bytes(run.recipe);
  double reduce = 0, gather = 0;
  if (layout.zero == 0) {
    reduce = network.all_reduce_s(gradient_bytes, groups.dp);
  } else if (layout.zero < 3) {
    reduce = network.all_gather_s(gradient_bytes, groups.shard);
    gather = network.all_gather_s(weight_bytes, groups.shard);
  }
  if (layout.zero > 0 && groups.replicas.ranks > 1) {
    reduce += network.all_reduce_s(gradient_bytes / static_cast<double>(layout.shards()),
                                   groups.replicas);
  }
  if (local.experts > 0 && run.recipe.fine_tune == FineTune::full) {
    const Group& group = layout.ep > 1 ? groups.expert_shard : groups.dp;
    reduce += network.all_gather_s(local.experts * gradient, group);
    gather += network.all_gather_s(local.experts * stream_bytes(run.recipe), group);
  }
  const double hides = run.stack.overlaps_dp ? constants.dp_overlap * last_backward : 0;
  // Stage 2 has room for a shard of the gradients alone: every micro-batch's are scattered.
  const double earlier = layout.zero == 2
                             ? static_cast<double>(num_micro_batches(run.recipe, layout) - 1) *
                                   std::max(0.0, reduce - hides)
                             : 0;
  // Weights come back one after the other into the next forward, of about half that length.
  return earlier + std::max(0.0, reduce - hides) + std::max(0.0, gather - hides / 2);
}

}  // namespace

double overhead_s(const Case& run, const Constants& constants, double work) {
  const double nodes =
      static_cast<double>(run.layout.devices()) / static_cast<double>(run.cluster.devices_per_node);
  const double late = nodes > 1 ? constants.straggler * std::sqrt(2 * std::log(nodes)) * work : 0;
  return constants.step_s + late;
}

StepTime step_time(const Case& run, const Constants& constants) {
  const StepParts parts = step_parts(run, constants);
  const int64_t micro_batches = num_micro_batches(run.recipe, run.layout);
  return step_time(run, constants, parts, pipeline_time(run.layout, parts.stages, micro_batches));
}

StepTime step_time(const Case& run, const Constants& constants, const StepParts& parts,
                   const PipelineTime& pipeline) {
  StepTime time;
  time.tp_exposed_s = parts.tp_exposed;
  time.cp_exposed_s = parts.cp_exposed;
  time.ep_exposed_s = parts.ep_exposed;
  time.compute_s = pipeline.busy;
  time.pp_bubble_s = pipeline.makespan - pipeline.busy;

  const Kernels kernels(run, constants);
  for (int64_t rank = 0; rank < run.layout.pp; rank += std::max<int64_t>(run.layout.pp - 1, 1)) {
    const LocalParameters local = parameters_of(run, stages_of_rank(run, rank));
    double last_backward = 0;
    for (size_t stage = 0; stage < parts.stages.stages.size(); ++stage) {
      if (rank_of(run.layout, static_cast<int64_t>(stage)) == rank) {
        last_backward += parts.stages.stages[stage].backward;
      }
    }
    time.dp_exposed_s =
        std::max(time.dp_exposed_s, exposed_reduction(run, constants, local, last_backward));
    time.optimizer_s = std::max(
        time.optimizer_s,
        kernels.memory_s(update_bytes(run.recipe.optimizer) * updated_parameters(run, local)));
  }
  time.dp_exposed_s += parts.gather_exposed;
  const double sum = time.compute_s + time.pp_bubble_s + time.dp_exposed_s + time.optimizer_s;
  time.overhead_s = overhead_s(run, constants, sum);
  time.step_s = sum + time.overhead_s;
  return time;
}

}  // namespace tessera::plan
