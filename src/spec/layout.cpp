#include "spec/layout.h"

#include <algorithm>

#include "spec/schedule.h"

namespace tessera::spec {

namespace {

/// The part of a completed layout that concerns a pipeline.
void set_pipeline(ParallelismConfig& parallelism, const Layout& layout) {
  const ParallelismConfig plain;
  const std::string schedule = layout.schedule.empty() ? plain.pipeline_schedule : layout.schedule;
  // A file that was read is kept; another one is read by whoever asked for it.
  if (schedule != parallelism.pipeline_schedule) parallelism.schedule_csv.clear();
  parallelism.pipeline_parallel_degree = layout.pp;
  parallelism.pipeline_schedule = schedule;
  parallelism.virtual_stages = std::max<int64_t>(layout.v, 1);
  const int64_t stages = layout.pp * parallelism.virtual_stages;
  const auto given = static_cast<int64_t>(parallelism.layers_per_stage.size());
  if (layout.pp == 1 || given != stages) parallelism.layers_per_stage.clear();
}

}  // namespace

Layout layout_of(const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  Layout layout;
  layout.dp = parallelism.data_parallel_degree;
  layout.tp = parallelism.tensor_parallel_degree;
  layout.pp = parallelism.pipeline_parallel_degree;
  if (parallelism.sequence_parallel) layout.sp = 1;
  const ParallelismConfig plain;
  if (parallelism.pipeline_schedule != plain.pipeline_schedule) {
    layout.schedule = parallelism.pipeline_schedule;
  }
  if (parallelism.virtual_stages > 1) layout.v = parallelism.virtual_stages;
  if (parallelism.zero_stage > 0) layout.zero = parallelism.zero_stage;
  const bool hybrid = layout.zero > 0 && shard_ranks(parallelism) != layout.dp;
  if (hybrid) layout.shard = shard_ranks(parallelism);
  return layout;
}

Layout completed(Layout layout, const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  const bool several = layout.dp > 1;
  const bool said = layout.zero >= 0;
  if (!said && several && parallelism.zero_stage > 0) layout.zero = parallelism.zero_stage;
  const int64_t shard = parallelism.shard_degree;
  if (!said && layout.zero > 0 && layout.shard == 0 && shard > 0 && layout.dp % shard == 0) {
    layout.shard = shard;
  }
  if (layout.sp < 0 && layout.tp > 1 && parallelism.sequence_parallel) layout.sp = 1;
  if (layout.pp == 1) return layout;
  const bool of_config = layout.schedule.empty();
  if (of_config && parallelism.pipeline_schedule != ParallelismConfig{}.pipeline_schedule) {
    layout.schedule = parallelism.pipeline_schedule;
  }
  if (layout.v == 0 && of_config && parallelism.virtual_stages > 1) {
    layout.v = parallelism.virtual_stages;
  }
  const std::optional<ScheduleKind> kind = schedule_kind(layout.schedule);
  if (layout.v == 0 && kind && usual_chunks(*kind) > 1) layout.v = usual_chunks(*kind);
  return layout;
}

RunConfig with_layout(RunConfig config, const Layout& given) {
  const Layout layout = completed(given, config);
  const int64_t by_itself = layout.pp > 1 ? 2 * layout.pp : 1;
  const int64_t accumulation = layout.accumulate > 0 ? layout.accumulate : by_itself;
  const int64_t largest =
      micro_batch_size_for(config.training.global_batch_size, layout.dp, accumulation);
  ParallelismConfig& parallelism = config.parallelism;
  parallelism.data_parallel_degree = layout.dp;
  parallelism.tensor_parallel_degree = layout.tp;
  parallelism.sequence_parallel = layout.sp == 1;
  if (layout.tp == 1) parallelism.tensor_parallel_across_hosts = false;
  set_pipeline(parallelism, layout);
  parallelism.zero_stage = std::max<int64_t>(layout.zero, 0);
  parallelism.shard_degree = layout.shard > 0 ? layout.shard : -1;
  if (layout.bucket_bytes >= 0) parallelism.bucket_bytes = layout.bucket_bytes;
  if (layout.prefetch >= 0) parallelism.prefetch = layout.prefetch;
  if (parallelism.zero_stage < 3) parallelism.prefetch = ParallelismConfig{}.prefetch;
  const int64_t share = micro_batch_size_for(config.training.global_batch_size, layout.dp, 1);
  config.training.micro_batch_size =
      layout.micro_batch > 0 ? std::min(layout.micro_batch, share) : largest;
  if (layout.has_recompute) config.activation_checkpoint.mode = layout.recompute;
  config.comm.backend = layout.backend;
  return config;
}

}  // namespace tessera::spec
