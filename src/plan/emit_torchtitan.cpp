#include <algorithm>

#include "plan/emit_systems.h"
#include "spec/options.h"

namespace tessera::plan {

namespace {

class Toml {
 public:
  explicit Toml(const Case& run) : run_(run), layout_(run.layout) {}

  std::string text() {
    for (const std::string& line : heading(run_)) remark(line);
    remark("For v0.2; later versions take most of the same names as --section.key.");
    training();
    parallelism();
    activation_checkpoint();
    if (run_.recipe.format == Format::fp8) {
      text_ += "\n[model]\nconverters = [\"quantize.linear.float8\"]\n";
    }
    return text_;
  }

 private:
  void key(const char* name, const std::string& value) {
    text_ += std::string(name) + " = " + value + '\n';
  }
  void key(const char* name, int64_t value) { key(name, std::to_string(value)); }
  void remark(const std::string& line) { text_ += "# " + line + '\n'; }

  void training() {
    text_ += "\n[training]\n";
    // Its pipeline cuts a local batch into micro-batches; without one, global_batch_size makes it
    // accumulate gradients.
    key("local_batch_size", layout_.micro_batch * (layout_.pp > 1 ? accumulation(run_) : 1));
    key("global_batch_size", run_.recipe.global_batch);
    key("seq_len", run_.recipe.seq_len);
    const Format format = run_.recipe.format;
    key("mixed_precision_param", format == Format::fp32 ? "\"float32\"" : "\"bfloat16\"");
    if (format == Format::fp16) remark("fp16 is not there: bfloat16 stands for it");
    if (format == Format::fp4) remark("fp4 is not there: products run in bfloat16");
    if (run_.recipe.gradient_bytes == 2) remark("gradients are reduced in float32 there, not bf16");
    if (run_.recipe.fine_tune != FineTune::full) remark("LoRA is torchtune's, not here");
  }

  void parallelism() {
    text_ += "\n[parallelism]\n";
    data_parallel();
    key("tensor_parallel_degree", layout_.tp);
    if (layout_.tp > 1 && !layout_.sequence_parallel) {
      remark("tensor parallelism is with sequence parallelism there, planned without");
    }
    key("context_parallel_degree", layout_.cp);
    if (run_.model.experts) key("expert_parallel_degree", layout_.ep);
    pipeline();
  }

  /// Shards lie over data_parallel_shard_degree · context_parallel_degree there.
  void data_parallel() {
    int64_t sharded = layout_.zero == 0 ? 1 : std::max<int64_t>(layout_.shards() / layout_.cp, 1);
    if (layout_.dp % sharded != 0) sharded = layout_.dp;
    key("data_parallel_replicate_degree", layout_.dp / sharded);
    key("data_parallel_shard_degree", sharded);
    if (layout_.zero == 0 && layout_.cp > 1) {
      remark("weights are sharded over the " + std::to_string(layout_.cp) +
             " context-parallel ranks there, planned whole");
    }
    if (layout_.zero == 0) return;
    if (layout_.zero < 3) {
      remark("ZeRO-" + std::to_string(layout_.zero) +
             " is not there: weights are sharded too, and \"never\" gathers them once a step");
    }
    key("fsdp_reshard_after_forward",
        layout_.zero == 3 && layout_.reshard_after_forward ? "\"always\"" : "\"never\"");
  }

  void pipeline() {
    key("pipeline_parallel_degree", layout_.pp);
    if (layout_.pp == 1) return;
    const char* schedule = "1F1B";
    switch (layout_.schedule) {
      case spec::ScheduleKind::gpipe:
        schedule = "GPipe";
        break;
      case spec::ScheduleKind::interleaved:
        schedule = "Interleaved1F1B";
        break;
      case spec::ScheduleKind::zb_v:
        schedule = "ZBVZeroBubble";
        break;
      case spec::ScheduleKind::zb_h1:
        remark("zb-h1 is not there: 1F1B stands for it, InterleavedZeroBubble needs two stages");
        break;
      case spec::ScheduleKind::one_f_one_b:
      case spec::ScheduleKind::csv:
        break;
    }
    key("pipeline_parallel_schedule", '"' + std::string(schedule) + '"');
    key("pipeline_parallel_microbatch_size", layout_.micro_batch);
    const std::vector<int64_t> blocks = blocks_of_stages(run_.model, layout_);
    key("pipeline_parallel_layers_per_stage", *std::max_element(blocks.begin(), blocks.end()));
    // Else it takes one layer off the first and the last stage.
    key("pipeline_parallel_first_stage_less_layers", 0);
    key("pipeline_parallel_last_stage_less_layers", 0);
    if (*std::min_element(blocks.begin(), blocks.end()) != blocks.front() ||
        blocks.front() != *std::max_element(blocks.begin(), blocks.end())) {
      remark("planned with stages of " + numbers(blocks) +
             " layers: module_fqns_per_model_part can say so");
    }
  }

  void activation_checkpoint() {
    text_ += "\n[activation_checkpoint]\n";
    key("mode", '"' + std::string(spec::name_of(layout_.recompute)) + '"');
    if (layout_.recompute == spec::Recompute::selective) key("selective_ac_option", "\"op\"");
  }

  const Case& run_;
  const Layout& layout_;
  std::string text_;
};

}  // namespace

std::string emit_torchtitan(const Case& run) {
  return Toml(run).text();
}

}  // namespace tessera::plan
