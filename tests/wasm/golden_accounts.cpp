#include <cinttypes>
#include <cstdio>
#include <vector>

#include "account/activations.h"
#include "account/flops.h"
#include "account/memory.h"
#include "account/model_part.h"
#include "account/pipeline.h"
#include "account/tensor_traffic.h"
#include "account/timeline.h"
#include "account/traffic.h"
#include "golden.h"
#include "spec/schedule.h"

namespace tessera::golden {

namespace {

using account::ParameterTable;

std::string row_of(const account::Parameter& parameter) {
  char text[256];
  std::string row = parameter.name;
  for (const int64_t size : parameter.shape.sizes()) row += " " + std::to_string(size);
  std::snprintf(
      text, sizeof text, " of %" PRId64 " at %" PRId64 " unit %d std %.17g key %" PRIu64 "%s%s\n",
      parameter.whole.elements(), parameter.offset, parameter.unit, parameter.init_std,
      parameter.init_key, parameter.decay ? " decays" : "", parameter.trainable ? "" : " frozen");
  return row + text;
}

std::string text_of(const ParameterTable& table) {
  std::string text;
  for (const account::Parameter& parameter : table.parameters) text += row_of(parameter);
  return text;
}

void print_tables() {
  for (const spec::ModelPreset& preset : spec::model_presets()) {
    spec::ModelConfig model = spec::resolved(preset.config);
    if (model.vocab_size == 0) model.vocab_size = 4096;
    const ParameterTable table = account::parameter_table(model);
    std::printf("table %s: %zu parameters, %" PRId64 " elements, %016" PRIx64 ", matmul %" PRId64
                ", flops %.17g\n",
                std::string(preset.name).c_str(), table.parameters.size(), table.num_elements(),
                digest(text_of(table)), account::matmul_parameters(model),
                account::train_flops_per_token(model, 1024));
  }
  spec::ModelConfig tiny = spec::family_defaults(spec::Architecture::llama);
  tiny.hidden_size = 64;
  tiny.num_hidden_layers = 1;
  tiny.num_attention_heads = 4;
  tiny.num_key_value_heads = 2;
  tiny.vocab_size = 1000;
  spec::LoraConfig lora;
  lora.rank = 4;
  std::printf("%s", text_of(account::parameter_table(spec::resolved(tiny), lora)).c_str());
}

/// A layout of the mesh, of which a few ranks are looked at.
struct Case {
  const char* preset;
  int64_t world, tp, pp, virtual_stages;
  const char* schedule;
  int64_t zero, shard_degree;
  bool sequence_parallel;
  spec::Recompute recompute;
  spec::GradientDtype gradient;
};

constexpr Case kCases[] = {
    {"gpt2-124m", 8, 1, 1, 1, "1f1b", 0, -1, false, spec::Recompute::none,
     spec::GradientDtype::fp32},
    {"gpt2-1558m", 8, 1, 1, 1, "1f1b", 1, -1, false, spec::Recompute::selective,
     spec::GradientDtype::bf16},
    {"gpt2-1558m", 8, 1, 1, 1, "1f1b", 2, 4, false, spec::Recompute::full,
     spec::GradientDtype::bf16},
    {"llama-2-7b", 64, 1, 1, 1, "1f1b", 3, -1, false, spec::Recompute::full,
     spec::GradientDtype::fp32},
    {"llama-3-70b", 64, 8, 4, 1, "1f1b", 1, -1, true, spec::Recompute::selective,
     spec::GradientDtype::fp32},
    {"gpt3-175b", 1536, 8, 16, 3, "interleaved", 0, -1, true, spec::Recompute::none,
     spec::GradientDtype::fp32},
    {"gpt-1t", 3072, 8, 64, 1, "1f1b", 0, -1, false, spec::Recompute::full,
     spec::GradientDtype::bf16},
    {"llama-3-405b", 16384, 8, 16, 2, "zb-v", 1, -1, true, spec::Recompute::none,
     spec::GradientDtype::bf16},
};

spec::RunConfig config_of(const Case& of) {
  spec::RunConfig config;
  config.model = spec::find_model_preset(of.preset)->config;
  config.data.seq_len = 1024;
  config.training.gradient_dtype = of.gradient;
  config.training.micro_batch_size = 1;
  config.training.global_batch_size = of.world / of.tp / of.pp * 4 * of.pp;
  config.activation_checkpoint.mode = of.recompute;
  auto& parallelism = config.parallelism;
  parallelism.tensor_parallel_degree = of.tp;
  parallelism.pipeline_parallel_degree = of.pp;
  parallelism.virtual_stages = of.virtual_stages;
  parallelism.pipeline_schedule = of.schedule;
  parallelism.zero_stage = of.zero;
  parallelism.shard_degree = of.shard_degree;
  parallelism.sequence_parallel = of.sequence_parallel;
  return spec::resolved(config, of.world);
}

account::ChunkActivations activations_of(const spec::RunConfig& config,
                                         const account::StagePart& stage) {
  account::ActivationSizes sizes;
  sizes.seq_len = config.data.seq_len;
  sizes.dtype = spec::dtype_of(config.training.precision);
  sizes.recompute = config.activation_checkpoint.mode;
  sizes.tp = config.parallelism.tensor_parallel_degree;
  sizes.sequence_parallel = config.parallelism.sequence_parallel;
  account::ChunkShape shape;
  shape.num_layers = stage.layers.num_layers;
  shape.embeds = stage.embeds;
  shape.has_head = stage.has_head;
  return account::chunk_activations(config.model, sizes, shape);
}

void print_memory(const spec::RunConfig& config, const account::ModelPart& part,
                  const ParameterTable& table) {
  const account::StateBytes state =
      account::state_bytes(table, config.training, account::sharding_of(config.parallelism));
  std::printf("  weights %" PRId64 " gradients %" PRId64 " optimizer %" PRId64 " gathered %" PRId64
              "\n",
              state.weights, state.gradients, state.optimizer,
              account::gathered_bytes(table, config.training, config.parallelism));
  for (const account::StagePart& stage : part.stages) {
    const account::ChunkActivations chunk = activations_of(config, stage);
    std::printf("  stage %" PRId64 ": kept %" PRId64 " forward %" PRId64 " backward %" PRId64
                " halves %" PRId64 " %" PRId64 " %" PRId64 " evaluation %" PRId64 "\n",
                stage.stage, chunk.kept, chunk.forward, chunk.backward, chunk.input_half,
                chunk.kept_halves, chunk.weight_half, chunk.evaluation);
  }
}

void print_traffic(const spec::RunConfig& config, const account::ModelPart& part,
                   const ParameterTable& table, int64_t dp_rank) {
  account::StepShape shape;
  shape.sharding = account::sharding_of(config.parallelism);
  shape.weight_bytes = 2;
  shape.gradient_bytes = 4;
  shape.bucket_bytes = config.parallelism.bucket_bytes;
  shape.passes = account::whole_passes(4);
  const account::StepTraffic dp = account::step_traffic(table, shape, dp_rank);
  account::TensorPass pass;
  pass.seq_len = config.data.seq_len;
  pass.dtype = core::DType::bf16;
  pass.ranks = part.tp;
  pass.sequence_parallel = part.sequence_parallel;
  pass.recompute = config.activation_checkpoint.mode;
  pass.num_layers = part.stages.front().layers.num_layers;
  const account::StepTraffic tp = account::tensor_traffic(config.model, pass, part.tp_rank);
  std::printf("  sent for dp %" PRId64 " %" PRId64 " %" PRId64 ", for tp %" PRId64 "\n",
              dp.all_reduce, dp.reduce_scatter, dp.all_gather, tp.total());
}

void print_case(const Case& of) {
  const spec::RunConfig config = config_of(of);
  std::printf("case %s on %" PRId64 " ranks, tp %" PRId64 ", pp %" PRId64 ", zero %" PRId64 "\n",
              of.preset, of.world, of.tp, of.pp, of.zero);
  for (const int64_t rank : {int64_t{0}, of.world / 2 + 1, of.world - 1}) {
    const account::ModelPart part = account::part_of(config, rank);
    const ParameterTable table = account::parameter_table(config.model, config.lora, part);
    std::printf(" rank %" PRId64 ": %" PRId64 " elements, %016" PRIx64 "\n", rank,
                table.num_elements(), digest(text_of(table)));
    print_memory(config, part, table);
    if (of.pp == 1) print_traffic(config, part, table, rank / of.tp);
  }
  if (of.pp == 1) return;
  const spec::Schedule schedule = spec::schedule_of(config);
  const account::Timeline timeline = account::simulate(schedule, account::stage_times(config));
  std::printf(" step %.17g, bubble %.17g, stream elements %" PRId64 "\n", timeline.makespan,
              timeline.bubble_fraction(),
              account::stream_elements_sent(schedule, 1, [](int64_t) { return 1 << 20; }));
}

/// Even times: sums of few digits, the same in any arithmetic.
void print_timelines() {
  for (const spec::ScheduleKind kind : spec::kNamedSchedules) {
    const spec::Schedule schedule = spec::make_schedule(kind, 8, spec::usual_chunks(kind), 32);
    account::StageTimes times = account::even_times(schedule, {1, 2.25, 1.5, 0.75});
    times.message = 0.125;
    const account::Timeline timeline = account::simulate(schedule, times);
    std::printf("timeline %s: step %.17g, bubble %.17g, busy %.17g\n",
                std::string(spec::schedule_name(kind)).c_str(), timeline.makespan,
                timeline.bubble_fraction(), timeline.busy.front());
  }
}

}  // namespace

void print_accounts() {
  print_tables();
  for (const Case& of : kCases) print_case(of);
  print_timelines();
}

}  // namespace tessera::golden
