#include <cinttypes>
#include <cstdio>

#include "account/timeline.h"
#include "golden.h"
#include "spec/layer_flops.h"
#include "spec/layout.h"
#include "spec/model_config.h"
#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/schedule.h"
#include "spec/stages.h"

namespace tessera::golden {

namespace {

void print_presets() {
  for (const spec::ModelPreset& preset : spec::model_presets()) {
    const spec::ModelConfig model = spec::resolved(preset.config);
    const int64_t length = spec::longest_sequence(model);
    std::printf("preset %s: longest %" PRId64 ", block %" PRId64 " head %" PRId64
                ", flops %.17g %.17g\n",
                std::string(preset.name).c_str(), length, spec::block_matmul_parameters(model),
                spec::head_matmul_parameters(model), spec::block_flops_per_token(model, length),
                spec::head_flops_per_token(model));
  }
}

void print_violations() {
  spec::RunConfig config;
  config.model.hidden_size = 100;
  config.model.num_attention_heads = 3;
  config.model.vocab_size = 257;
  config.training.steps = -1;
  config.optimizer.beta1 = 1.5;
  config.parallelism.tensor_parallel_degree = 7;
  config.parallelism.pipeline_parallel_degree = 3;
  config.parallelism.pipeline_schedule = "zbv";
  config.parallelism.zero_stage = 4;
  for (const spec::Violation& found : spec::validate(config, 64)) {
    std::printf("violation %s = %s: %s\n", found.key.c_str(), found.value.c_str(),
                found.suggest.c_str());
  }
}

void print_layouts() {
  const spec::LayoutList list = spec::parse_layouts(
      "dp=2,zero=1|3; tp=2,sp=1,pp=4,v=2,schedule=interleaved,accumulate=8; dp=2,tq=2");
  for (const spec::Layout& layout : list.layouts) {
    std::printf("layout %s: %" PRId64 " ranks\n", spec::to_string(layout).c_str(), layout.ranks());
  }
  for (const spec::Violation& found : list.violations) {
    std::printf("layout violation %s: %s\n", found.key.c_str(), found.suggest.c_str());
  }
}

void print_stages() {
  spec::RunConfig config;
  config.model = spec::find_model_preset("llama-3-405b")->config;
  config.data.seq_len = 8192;
  config.parallelism.pipeline_parallel_degree = 16;
  config.parallelism.tensor_parallel_degree = 8;
  config = spec::resolved(config, 16 * 8 * 8);
  std::printf("stages of llama-3-405b on pp 16:");
  for (const spec::StageLayers& stage : spec::stage_layers(config)) {
    std::printf(" %" PRId64 "+%" PRId64, stage.first_layer, stage.num_layers);
  }
  std::printf("\n");
}

void print_schedules() {
  for (const spec::ScheduleKind kind : spec::kNamedSchedules) {
    const std::string name(spec::schedule_name(kind));
    const int64_t chunks = spec::usual_chunks(kind);
    const spec::Schedule small = spec::make_schedule(kind, 3, chunks, 4);
    std::printf("schedule %s, 3 ranks, 4 micro-batches:\n%s", name.c_str(),
                account::to_csv(small).c_str());
    const spec::Schedule large = spec::make_schedule(kind, 16, chunks, 64);
    const std::string csv = account::to_csv(large);
    const spec::ParsedSchedule read = spec::parse_schedule(csv);
    std::printf("schedule %s, 16 ranks, 64 micro-batches: %016" PRIx64
                ", read back %s, in flight %" PRId64 " to %" PRId64 ", buffers %" PRId64 "\n",
                name.c_str(), digest(csv), read.schedule.ranks == large.ranks ? "equal" : "unequal",
                spec::peak_in_flight(large, 0), spec::peak_in_flight(large, 15),
                spec::buffers_to_send(large));
  }
  for (const std::string& mistake :
       spec::mistakes(spec::parse_schedule("0F0,0B0,0F1\n1F1,1B1,1F0,1B0\n").schedule)) {
    std::printf("mistake: %s\n", mistake.c_str());
  }
}

}  // namespace

void print_specs() {
  print_presets();
  print_violations();
  print_layouts();
  print_stages();
  print_schedules();
  std::printf(
      "nearest to steps: %s\n",
      std::string(spec::nearest_name("trainning.steps", {"training.steps", "training.seed"}))
          .c_str());
}

}  // namespace tessera::golden
