#include "plan/conventions.h"

namespace tessera::plan {

const std::vector<ConventionInfo>& conventions() {
  static const std::vector<ConventionInfo> all = {
      {Convention::palm, "palm", "model FLOPs, attention over all keys"},
      {Convention::causal, "causal", "model FLOPs, attention over the keys the mask leaves"},
      {Convention::parameters, "6nd", "6 FLOPs a parameter and token, no attention"},
      {Convention::hardware, "hardware", "with recomputation, attention over all keys"},
      {Convention::megatron_2021, "megatron-2021", "96 B s l h² (1 + s/6h + V/16lh)"},
      {Convention::korthikanti, "korthikanti", "72 B s l h² (1 + s/3h + V/12lh)"},
      {Convention::no_query_groups, "no-query-groups", "as palm, with as many key heads as heads"},
  };
  return all;
}

namespace {

/// B s l h², which the closed forms of GPT count in, and its ratios.
struct GptShape {
  double unit, length_by_width, vocabulary;

  explicit GptShape(const Case& run) {
    const spec::ModelConfig& config = run.model.dense;
    const auto width = static_cast<double>(config.hidden_size);
    const auto layers = static_cast<double>(config.num_hidden_layers);
    const auto length = static_cast<double>(run.recipe.seq_len);
    unit = static_cast<double>(run.recipe.global_batch) * length * layers * width * width;
    length_by_width = length / width;
    vocabulary = static_cast<double>(config.vocab_size) / (layers * width);
  }
};

}  // namespace

double flops_by(Convention convention, const Case& run) {
  const auto tokens = static_cast<double>(run.recipe.global_batch * run.recipe.seq_len);
  const auto layers = static_cast<double>(run.model.dense.num_hidden_layers);
  const double scores = layer_flops(run.model, run.recipe.seq_len, false).attention_scores;
  const GptShape gpt(run);
  switch (convention) {
    case Convention::palm:
      return step_flops(run).model;
    case Convention::causal:
      return step_flops(run).model - tokens * 3 * layers * scores / 2;
    case Convention::parameters:
      return 6 * tokens * static_cast<double>(count_parameters(run.model).active);
    case Convention::hardware:
      return step_flops(run).hardware;
    case Convention::megatron_2021:
      return 96 * gpt.unit * (1 + gpt.length_by_width / 6 + gpt.vocabulary / 16);
    case Convention::korthikanti:
      return 72 * gpt.unit * (1 + gpt.length_by_width / 3 + gpt.vocabulary / 12);
    case Convention::no_query_groups: {
      Case whole = run;
      whole.model.dense.num_key_value_heads = whole.model.dense.num_attention_heads;
      return step_flops(whole).model;
    }
  }
  return 0;
}

double utilisation(Convention convention, const Case& run, double step_s, Format format) {
  const auto devices = static_cast<double>(run.layout.devices());
  return flops_by(convention, run) / (step_s * devices * run.cluster.device.peak(format));
}

double step_seconds(Convention convention, const Case& run, double flops_per_device) {
  return flops_by(convention, run) / (flops_per_device * static_cast<double>(run.layout.devices()));
}

}  // namespace tessera::plan
