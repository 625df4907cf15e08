// The one validator: every row of the option table against its limits, then what keys have to do
// with each other; of the axes of the mesh in validate_parallelism.cpp. Rules across keys look only
// at keys that are legal by themselves, so that one mistake is told once.

#include <algorithm>

#include "spec/lora_targets.h"
#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/run_config.h"
#include "spec/validate_findings.h"

namespace tessera::spec {
namespace {

class Validator : private Findings {
 public:
  using Findings::Findings;

  std::vector<Violation> run() {
    check_limits();
    end_of_limits();
    check_model();
    check_rope();
    check_unread_rope();
    check_data();
    check_precision();
    check_lora();
    check_parallelism(*this);
    check_unused();
    if (empty()) check_products();
    return take();
  }

 private:
  void check_limits() {
    for (const Option& option : options()) {
      const Value value = option.get(config());
      if (is_legal(option, value)) continue;
      add(option.key, "has to be " + legal_text(option), nearest_legal(option, value));
    }
    if (!config().model_preset.empty() && find_model_preset(config().model_preset) == nullptr) {
      std::vector<std::string_view> names;
      for (const ModelPreset& preset : model_presets()) names.push_back(preset.name);
      add("model.preset", "no preset has this name",
          std::string(nearest_name(config().model_preset, names)));
    }
  }

  void check_model() {
    const ModelConfig& model = config().model;
    const int64_t heads = model.num_attention_heads;
    if (model.head_dim == 0 && ok({"model.hidden_size", "model.num_attention_heads"}) &&
        model.hidden_size % heads != 0) {
      std::vector<std::string> divisors;
      for (const int64_t divisor : nearest_divisors(model.hidden_size, heads)) {
        divisors.push_back(std::to_string(divisor));
      }
      add("model.num_attention_heads",
          "does not divide hidden_size " + std::to_string(model.hidden_size) +
              ", and no head_dim is given",
          join_or(divisors));
    }
    if (model.num_key_value_heads > 0 &&
        ok({"model.num_attention_heads", "model.num_key_value_heads"}) &&
        heads % model.num_key_value_heads != 0) {
      std::vector<std::string> divisors;
      for (const int64_t divisor : nearest_divisors(heads, model.num_key_value_heads)) {
        divisors.push_back(std::to_string(divisor));
      }
      add("model.num_key_value_heads",
          "does not divide num_attention_heads " + std::to_string(heads), join_or(divisors));
    }
  }

  /// What rotary positions need.
  void check_rope() {
    if (config().model.architecture != Architecture::llama) return;
    const ModelConfig model = resolved(config().model);
    const RopeScaling& scaling = config().model.rope_scaling;
    if (ok({"model.head_dim", "model.hidden_size", "model.num_attention_heads"}) &&
        model.head_dim % 2 != 0) {
      add("model.head_dim", "is odd: rotary positions turn pairs",
          std::to_string(model.head_dim + 1));
    }
    if (scaling.rope_type == RopeType::yarn && ok({"model.rope_theta"}) && model.rope_theta <= 1) {
      add("model.rope_theta", "has to be more than 1 with rope_type yarn: pairs turn at its powers",
          "10000");
    }
    if (scaling.rope_type == RopeType::llama3 &&
        scaling.high_freq_factor <= scaling.low_freq_factor &&
        ok({"model.rope_scaling.high_freq_factor", "model.rope_scaling.low_freq_factor"})) {
      add("model.rope_scaling.high_freq_factor",
          "has to be more than low_freq_factor " +
              to_text(find_option("model.rope_scaling.low_freq_factor")->get(config())),
          "4, with a low_freq_factor of 1");
    }
  }

  /// Keys of the Llama family and of one rope_type that nothing would read.
  void check_unread_rope() {
    const auto unread = [&](std::string_view key, bool has_reader, std::string_view reader) {
      if (has_reader || !changed(key)) return;
      add(key, "is not used: only " + std::string(reader) + " reads it", "leave it out");
    };
    const bool rotary = config().model.architecture == Architecture::llama;
    unread("model.rope_theta", rotary, "model.architecture = \"llama\"");
    unread("model.qk_norm", rotary, "model.architecture = \"llama\"");
    if (!rotary) {
      for (const Option& option : options()) {
        if (!option.key.starts_with("model.rope_scaling.") || !changed(option.key)) continue;
        add(option.key, "is not used: gpt2 has no rotary positions",
            "leave it out, or model.architecture = \"llama\"");
      }
      return;
    }
    const RopeType type = config().model.rope_scaling.rope_type;
    const bool llama3 = type == RopeType::llama3;
    const bool yarn = type == RopeType::yarn;
    unread("model.rope_scaling.factor", type != RopeType::none, "a rope_scaling.rope_type");
    unread("model.rope_scaling.low_freq_factor", llama3, "rope_type llama3");
    unread("model.rope_scaling.high_freq_factor", llama3, "rope_type llama3");
    unread("model.rope_scaling.original_max_position_embeddings", llama3 || yarn,
           "rope_type llama3 or yarn");
    unread("model.rope_scaling.beta_fast", yarn, "rope_type yarn");
    unread("model.rope_scaling.beta_slow", yarn, "rope_type yarn");
    unread("model.rope_scaling.attention_factor", yarn, "rope_type yarn");
  }

  void check_data() {
    const DataConfig& data = config().data;
    if (data.path.empty()) {
      add("data.path", "is missing: there is nothing to train on", "a text, JSONL or token file");
    }
    if (data.tokenizer.empty()) {
      add("data.tokenizer", "is empty", "bytes, or a tokenizer's file or folder");
    }
    const bool stretched = config().model.rope_scaling.rope_type == RopeType::dynamic &&
                           ok({"model.rope_scaling.factor"});
    const int64_t positions =
        stretched ? longest_sequence(config().model) : config().model.max_position_embeddings;
    if (ok({"data.seq_len", "model.max_position_embeddings"}) && data.seq_len > positions) {
      add("data.seq_len",
          "is beyond the model's max_position_embeddings " + std::to_string(positions) +
              (stretched ? " with rope_scaling" : ""),
          std::to_string(positions) + ", or a larger model.max_position_embeddings");
    }
  }

  void check_precision() {
    if (config().training.precision == Precision::fp32 &&
        config().training.gradient_dtype == GradientDtype::bf16) {
      add("training.gradient_dtype", "rounds the gradients of a training.precision of fp32 to bf16",
          "fp32, or training.precision = \"bf16\"");
    } else if (config().training.numerics == Numerics::invariant &&
               config().training.gradient_dtype == GradientDtype::bf16) {
      add("training.gradient_dtype",
          "is not used: training.numerics = invariant sums gradients as 64-bit integers",
          "leave it out, or training.numerics = \"fast\"");
    }
  }

  void check_lora() {
    const LoraConfig& lora = config().lora;
    if (lora.rank == 0) {
      for (const char* key : {"lora.alpha", "lora.targets"}) {
        if (!changed(key)) continue;
        add(key, "is not used: there are no adapters", "leave it out, or lora.rank = 8");
      }
      return;
    }
    std::vector<std::string_view> products = lora_targets(config().model.architecture);
    products.push_back(kAllLinear);
    const int64_t width = config().model.hidden_size;
    if (ok({"lora.rank", "model.hidden_size"}) && lora.rank > width) {
      add("lora.rank",
          "is more than hidden_size " + std::to_string(width) +
              ": no product of a block has a rank above that",
          "8 to 64, or " + std::to_string(width) + " at most");
    }
    if (lora.targets.empty()) {
      add("lora.targets", "is empty: nothing would be trained", "q_proj, v_proj");
    }
    for (const std::string& target : lora.targets) {
      if (std::find(products.begin(), products.end(), target) != products.end()) continue;
      add("lora.targets",
          "names \"" + target + "\", which is no product of this model's blocks; there are " +
              join_or({products.begin(), products.end()}),
          std::string(nearest_name(target, products)));
      break;
    }
  }

  /// Keys that are legal by themselves and name together what no machine holds. Held to these
  /// limits, counts of elements, bytes and tokens stay within 64 bits wherever they are multiplied.
  void check_products() {
    constexpr double kMostElements = 0x1p40;    // of one activation of one micro-batch
    constexpr double kMostParameters = 0x1p48;  // of the model
    constexpr double kMostTokens = 0x1p62;      // of the run
    const ModelConfig model = resolved(config().model);
    const RunConfig run = resolved(config(), world_size());
    const auto width = static_cast<double>(model.hidden_size);
    const auto inner = static_cast<double>(model.intermediate_size);
    const auto head = static_cast<double>(model.head_dim);
    const double attention = static_cast<double>(model.num_attention_heads) * head;
    const double fused = attention + 2 * static_cast<double>(model.num_key_value_heads) * head;
    const auto tokens = static_cast<double>(run.data.seq_len);
    const double rows = static_cast<double>(run.training.micro_batch_size) * tokens;
    const double embedded =
        static_cast<double>(model.vocab_size) + static_cast<double>(model.max_position_embeddings);
    const double mlp = inner * (model.architecture == Architecture::llama ? 3 : 2);
    const double parameters = width * (embedded + static_cast<double>(model.num_hidden_layers) *
                                                      (fused + attention + mlp));
    if (parameters > kMostParameters) {
      add("model.hidden_size", "makes a model of more than 2^48 parameters with its other sizes",
          "a smaller model");
    } else if (rows * std::max({width, inner, fused}) > kMostElements) {
      add("training.micro_batch_size",
          "makes activations of more than 2^40 elements with data.seq_len and the model's widths",
          "a smaller one");
    } else if (static_cast<double>(run.training.steps) *
                   static_cast<double>(run.training.global_batch_size) * tokens >
               kMostTokens) {
      add("training.steps", "makes more than 2^62 tokens with the global batch and data.seq_len",
          "fewer");
    }
  }

  /// Keys that were changed and that this run would not use.
  void check_unused() {
    const LrSchedulerConfig& schedule = config().lr_scheduler;
    const int64_t steps = config().training.steps;
    if (ok({"lr_scheduler.warmup_steps", "training.steps"}) && schedule.warmup_steps > steps) {
      add("lr_scheduler.warmup_steps",
          "is longer than the run, training.steps " + std::to_string(steps),
          std::to_string(steps) + " or less");
    }
    if (schedule.decay == Decay::constant && ok({"lr_scheduler.min_lr_factor"}) &&
        changed("lr_scheduler.min_lr_factor")) {
      add("lr_scheduler.min_lr_factor", "is not used: the decay is constant",
          "leave it out, or decay = cosine");
    }
    if (config().data.validation_fraction == 0 && config().validation.freq > 0) {
      add("validation.freq", "is not used: data.validation_fraction 0 keeps nothing to evaluate",
          "0, or a validation_fraction above 0");
    }
  }
};

}  // namespace

void Findings::add(std::string_view key, std::string why, std::string suggest) {
  Violation violation;
  violation.key = std::string(key);
  if (const Option* option = find_option(key)) violation.value = to_text(option->get(config_));
  violation.why = std::move(why);
  violation.suggest = std::move(suggest);
  bad_.insert(violation.key);
  violations_.push_back(std::move(violation));
}

bool Findings::ok(std::initializer_list<const char*> keys) const {
  return std::none_of(keys.begin(), keys.end(),
                      [this](const char* key) { return bad_.count(key) != 0; });
}

bool Findings::legal(std::initializer_list<const char*> keys) const {
  return std::none_of(keys.begin(), keys.end(),
                      [this](const char* key) { return illegal_.count(key) != 0; });
}

bool Findings::changed(std::string_view key) const {
  const Option& option = *find_option(key);
  return option.get(config_) != option.get(RunConfig{});
}

std::vector<Violation> validate(const RunConfig& config, int64_t world_size) {
  return Validator(config, world_size).run();
}

}  // namespace tessera::spec
