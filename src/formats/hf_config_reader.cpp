#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/hf_config.h"
#include "formats/hf_fields.h"
#include "formats/strict_json.h"
#include "spec/run_config.h"

namespace tessera::formats {
namespace {

using nlohmann::json;
using spec::Architecture;
using spec::AttentionBias;
using spec::ModelConfig;

/// Where the members of the Llama family differ, and what transformers takes for keys left out.
struct LlamaType {
  const char* name;
  AttentionBias bias;  ///< without attention_bias
  bool bias_keys;      ///< reads attention_bias
  bool mlp_bias_key;   ///< reads mlp_bias
  bool qk_norm;
  bool window_switch;           ///< sliding_window counts only with use_sliding_window
  int64_t num_key_value_heads;  ///< 0: as many as heads
  int64_t head_dim;             ///< 0: hidden_size / heads
  int64_t max_position_embeddings;
  int64_t sliding_window;  ///< 0: none
};
constexpr std::array kLlamaTypes = {
    LlamaType{"llama", AttentionBias::none, true, true, false, false, 0, 0, 2048, 0},
    LlamaType{"mistral", AttentionBias::none, false, false, false, false, 8, 0, 131072, 4096},
    LlamaType{"qwen2", AttentionBias::qkv, false, false, false, true, 32, 0, 32768, 0},
    LlamaType{"qwen3", AttentionBias::none, true, false, true, true, 32, 128, 32768, 0}};

/// Token ids, generation, bookkeeping, classification heads, GPT-2's summaries, the memory that a
/// run may use: nothing of it changes what the model computes.
const std::vector<std::string_view> kHarmless = {"_attn_implementation",
                                                 "_attn_implementation_autoset",
                                                 "_commit_hash",
                                                 "_experts_implementation",
                                                 "_flash_attn_2_enabled",
                                                 "_name_or_path",
                                                 "architectures",
                                                 "attn_implementation",
                                                 "auto_map",
                                                 "bad_words_ids",
                                                 "begin_suppress_tokens",
                                                 "bos_token_id",
                                                 "chunk_size_feed_forward",
                                                 "cls_token_id",
                                                 "decoder_start_token_id",
                                                 "diversity_penalty",
                                                 "do_sample",
                                                 "dtype",
                                                 "early_stopping",
                                                 "encoder_no_repeat_ngram_size",
                                                 "eos_token_id",
                                                 "exponential_decay_length_penalty",
                                                 "finetuning_task",
                                                 "forced_bos_token_id",
                                                 "forced_eos_token_id",
                                                 "gradient_checkpointing",
                                                 "id2label",
                                                 "initializer_range",
                                                 "is_decoder",
                                                 "label2id",
                                                 "length_penalty",
                                                 "max_length",
                                                 "max_new_tokens",
                                                 "max_sequence_length",
                                                 "min_length",
                                                 "model_max_length",
                                                 "model_type",
                                                 "n_special",
                                                 "name_or_path",
                                                 "no_repeat_ngram_size",
                                                 "num_beam_groups",
                                                 "num_beams",
                                                 "num_labels",
                                                 "num_return_sequences",
                                                 "output_attentions",
                                                 "output_hidden_states",
                                                 "output_past",
                                                 "output_scores",
                                                 "pad_token_id",
                                                 "predict_special_tokens",
                                                 "prefix",
                                                 "problem_type",
                                                 "remove_invalid_values",
                                                 "repetition_penalty",
                                                 "return_dict",
                                                 "return_dict_in_generate",
                                                 "sep_token_id",
                                                 "summary_activation",
                                                 "summary_first_dropout",
                                                 "summary_proj_to_labels",
                                                 "summary_type",
                                                 "summary_use_proj",
                                                 "suppress_tokens",
                                                 "task_specific_params",
                                                 "temperature",
                                                 "tf_legacy_loss",
                                                 "tie_encoder_decoder",
                                                 "tokenizer_class",
                                                 "top_k",
                                                 "top_p",
                                                 "torch_dtype",
                                                 "torchscript",
                                                 "transformers.js_config",
                                                 "transformers_version",
                                                 "typical_p",
                                                 "unk_token_id",
                                                 "unsloth_fixed",
                                                 "unsloth_version",
                                                 "use_bfloat16",
                                                 "use_cache"};

/// One config.json being read.
class Reader {
 public:
  Reader(const json& object, std::string where)
      : fields_(object, "", problems_), where_(std::move(where)) {}

  HfConfig read() {
    config_.model_type = fields_.text("model_type").value_or("");
    if (config_.model_type == "gpt2") {
      read_gpt2();
    } else {
      read_llama(llama_type());
    }
    read_common();
    if (problems_.empty()) check_values();
    if (!problems_.empty()) refuse();
    config_.model = spec::resolved(config_.model);
    return std::move(config_);
  }

 private:
  [[noreturn]] void refuse() const {
    std::string text = where_ + ": not a model that can be read here:";
    for (const std::string& problem : problems_) text += "\n  " + problem;
    throw core::ConfigError(text);
  }

  const LlamaType& llama_type() {
    std::string known = "gpt2";
    for (const LlamaType& type : kLlamaTypes) {
      if (config_.model_type == type.name) return type;
      known += std::string(", ") + type.name;
    }
    problems_.push_back(
        fmt::format("model_type = {}: not one of {}", fields_.value_text("model_type"), known));
    refuse();
  }

  void read_gpt2();
  void read_gpt2_dropout();
  void read_llama(const LlamaType& type);
  void read_heads(const LlamaType& type);
  void read_window(const LlamaType& type);
  void read_common();
  void check_values();
  void note(std::string text) { config_.notes.push_back(std::move(text)); }

  std::vector<std::string> problems_;
  HfFields fields_;
  std::string where_;
  HfConfig config_;
};

void Reader::read_gpt2() {
  ModelConfig& model = config_.model = spec::family_defaults(Architecture::gpt2);
  model.hidden_size = fields_.required("n_embd", "hidden_size");
  model.num_hidden_layers = fields_.required("n_layer", "num_hidden_layers");
  model.num_attention_heads = fields_.required("n_head", "num_attention_heads");
  model.intermediate_size = fields_.integer("n_inner").value_or(4 * model.hidden_size);
  const std::optional<int64_t> positions = fields_.integer("n_positions");
  const std::optional<int64_t> alias = fields_.integer("max_position_embeddings");
  const std::optional<int64_t> context = fields_.integer("n_ctx");
  model.max_position_embeddings = positions ? *positions : alias ? *alias : context.value_or(1024);
  if (context && *context != model.max_position_embeddings) {
    note(fmt::format("n_ctx = {} is not read: n_positions = {} counts", *context,
                     model.max_position_embeddings));
  }
  model.norm_eps = fields_.real("layer_norm_epsilon").value_or(1e-5);
  model.tie_word_embeddings = fields_.boolean("tie_word_embeddings").value_or(true);

  // Names of GELU's tanh form in transformers; they differ in how they are computed.
  constexpr std::array kTanhGelu = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast",
                                    "gelu_python_tanh"};
  const std::string activation = fields_.text("activation_function").value_or("gelu_new");
  if (std::find(kTanhGelu.begin(), kTanhGelu.end(), activation) == kTanhGelu.end()) {
    const bool erf = activation == "gelu" || activation == "gelu_python";
    fields_.problem("activation_function",
                    fmt::format("{}; known here is the tanh form of GELU: {}",
                                erf ? "this is the erf form of GELU" : "not known",
                                fmt::join(kTanhGelu, ", ")));
  }
  fields_.expect("scale_attn_weights", true, "scores are always divided by sqrt(head_dim) here");
  fields_.expect("scale_attn_by_inverse_layer_idx", false, "this model cannot be run here");
  fields_.ignore({"reorder_and_upcast_attn"});  // the same function, in another order of rounding
  read_gpt2_dropout();
}

void Reader::read_gpt2_dropout() {
  std::string values;
  bool any = false;
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    const double share = fields_.real(key).value_or(0.1);
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", key, share);
    any = any || share != 0;
  }
  if (any) {
    note(values + ": dropout is a choice of training here, 0 unless model.dropout sets it");
  }
}

void Reader::read_llama(const LlamaType& type) {
  ModelConfig& model = config_.model = spec::family_defaults(Architecture::llama);
  model.hidden_size = fields_.required("hidden_size");
  model.intermediate_size = fields_.required("intermediate_size");
  model.num_hidden_layers = fields_.required("num_hidden_layers");
  model.num_attention_heads = fields_.required("num_attention_heads");
  model.max_position_embeddings =
      fields_.integer("max_position_embeddings").value_or(type.max_position_embeddings);
  model.norm_eps = fields_.real("rms_norm_eps").value_or(1e-6);
  model.tie_word_embeddings = fields_.boolean("tie_word_embeddings").value_or(false);
  model.qk_norm = type.qk_norm;
  model.attention_bias = type.bias;
  if (type.bias_keys && fields_.boolean("attention_bias").value_or(false)) {
    model.attention_bias = AttentionBias::all;
  }
  if (type.mlp_bias_key) {
    model.mlp_bias = fields_.boolean("mlp_bias").value_or(false);
  } else {
    fields_.expect("mlp_bias", false, "this model_type has no such biases");
  }
  if (type.bias == AttentionBias::qkv) {
    fields_.ignore({"attention_bias"});  // Qwen2 has them whatever it says
  } else if (!type.bias_keys) {
    fields_.expect("attention_bias", false, "this model_type has no biases");
  }
  read_heads(type);
  read_window(type);
  fields_.expect("hidden_act", "silu", "the one activation of this family known here is silu");
  fields_.expect("pretraining_tp", 1, "products are not cut up here");
  const double dropout = fields_.real("attention_dropout").value_or(0);
  if (dropout != 0) {
    note(
        fmt::format("attention_dropout = {}: dropout is a choice of training here, 0 unless "
                    "model.dropout sets it",
                    dropout));
  }
  read_hf_rope(fields_, model, problems_, config_.notes);
}

/// null is the family's rule, as many KV heads as heads and a quotient; a key that is absent is
/// what the model_type starts from.
void Reader::read_heads(const LlamaType& type) {
  ModelConfig& model = config_.model;
  const bool has_kv = !fields_.is_absent("num_key_value_heads");
  model.num_key_value_heads =
      fields_.integer("num_key_value_heads").value_or(has_kv ? 0 : type.num_key_value_heads);
  const bool has_dim = !fields_.is_absent("head_dim");
  model.head_dim = fields_.integer("head_dim").value_or(has_dim ? 0 : type.head_dim);
  for (const char* key : {"num_key_value_heads", "head_dim"}) {
    if (fields_.integer(key) == 0) fields_.problem(key, "has to be at least 1, or null");
  }
  const int64_t heads = model.num_attention_heads;
  if (model.head_dim == 0 && heads > 0 && model.hidden_size % heads != 0) {
    fields_.problem("num_attention_heads",
                    fmt::format("does not divide hidden_size = {}; such a model names its head_dim",
                                model.hidden_size));
  }
}

/// Attention here sees the whole sequence.
void Reader::read_window(const LlamaType& type) {
  const bool on = !type.window_switch || fields_.boolean("use_sliding_window").value_or(false);
  const bool given = !fields_.is_absent("sliding_window");
  const int64_t window =
      fields_.integer("sliding_window").value_or(given ? 0 : type.sliding_window);
  if (type.window_switch) fields_.ignore({"max_window_layers"});
  if (on && window != 0 && window < config_.model.max_position_embeddings) {
    fields_.problem("sliding_window",
                    fmt::format("attention over a window{} is not done here; null says that there "
                                "is none",
                                given ? "" : fmt::format(" ({} of this model_type)", window)));
  }
  const json* layers = fields_.any("layer_types");
  if (layers == nullptr) return;
  const bool full = layers->is_array() &&
                    std::all_of(layers->begin(), layers->end(),
                                [](const json& layer) { return layer == "full_attention"; });
  if (!full) fields_.problem("layer_types", "only layers of \"full_attention\" are done here");
}

void Reader::read_common() {
  ModelConfig& model = config_.model;
  model.vocab_size = fields_.required("vocab_size");
  fields_.expect("quantization_config", nullptr, "quantised weights are not read here");
  fields_.expect("is_encoder_decoder", false, "a decoder alone is done here");
  fields_.expect("add_cross_attention", false, "a decoder alone is done here");
  fields_.expect("pruned_heads", json::object(), "pruned heads are not done here");
  fields_.ignore(kHarmless);
  for (const std::string& key : fields_.unread()) {
    fields_.problem(key, "what it means for the model is not known");
  }
}

/// What the validator says of these sizes, in the file's words.
void Reader::check_values() {
  if (config_.model.vocab_size < 1) fields_.problem("vocab_size", "has to be at least 1");
  spec::RunConfig run;
  run.model = config_.model;
  constexpr std::string_view kSection = "model.";
  for (const spec::Violation& violation : spec::validate(run, 0)) {
    if (violation.key.rfind(kSection, 0) != 0) continue;
    const std::string key = hf_key(run.model.architecture, violation.key.substr(kSection.size()));
    problems_.push_back(fmt::format("{} = {}: {}", key, violation.value, violation.why));
  }
}

}  // namespace

HfConfig parse_hf_config(std::string_view text, const std::string& where) {
  const json object = parse_json_object(text, where);
  return Reader(object, where).read();
}

HfConfig read_hf_config(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    throw core::ConfigError(folder +
                            " is not a folder; a Hugging Face model is one, with a "
                            "config.json and model.safetensors");
  }
  if (!std::filesystem::exists(path, error)) {
    throw core::ConfigError(folder +
                            " has no config.json, so it is not the folder of a Hugging "
                            "Face model (of a downloaded one it is snapshots/REVISION)");
  }
  const json object = read_json_object(path);
  return Reader(object, path).read();
}

bool is_hf_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(path) / "config.json", ignored);
}

std::string hf_key(Architecture architecture, std::string_view key) {
  struct Name {
    std::string_view ours;
    std::string_view gpt2;
    std::string_view llama;
  };
  constexpr std::array kNames = {
      Name{"hidden_size", "n_embd", "hidden_size"},
      Name{"intermediate_size", "n_inner", "intermediate_size"},
      Name{"num_hidden_layers", "n_layer", "num_hidden_layers"},
      Name{"num_attention_heads", "n_head", "num_attention_heads"},
      Name{"max_position_embeddings", "n_positions", "max_position_embeddings"},
      Name{"norm_eps", "layer_norm_epsilon", "rms_norm_eps"}};
  for (const Name& name : kNames) {
    if (name.ours == key) {
      return std::string(architecture == Architecture::gpt2 ? name.gpt2 : name.llama);
    }
  }
  return std::string(key);
}

}  // namespace tessera::formats
