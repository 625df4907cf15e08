// A published row as a case. What sources leave out is filled in as their software did it, and
// said; what decides the result and is not there makes the row one that cannot be modelled.

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/published_check.h"

namespace tessera::plan {

namespace {

int64_t whole(const std::optional<double>& number, int64_t otherwise) {
  return number ? std::llround(*number) : otherwise;
}

/// A group of rows whose machines are not those of the presets: what a device sends out of its
/// node, in GB/s, and the software where the rows name it otherwise.
struct SourceFacts {
  std::string_view group;
  double inter_gb_per_s;
  std::string_view stack;
};
constexpr std::array<SourceFacts, 8> kSources = {{
    {"bloom", 6.25, ""},  // Jean Zay: 4 Omni-Path links of 100 Gbit/s for 8 GPUs
    {"vtrain", 12.5, "megatron-lm-2021"},
    {"sc21t1", 25, "megatron-lm-2021"},  // Selene: 8 HDR links for 8 GPUs
    {"sc21t2", 25, "megatron-lm-2021"},
    {"sc21f", 25, "megatron-lm-2021"},
    {"mg2020", 0, "megatron-lm-2021"},
    {"mg2022", 25, "megatron-lm-2021"},
    {"kort", 25, "megatron-lm-2022"},
}};

class Reader {
 public:
  explicit Reader(const PublishedRun& row) : row_(row) {}

  ModelledRun read() {
    if (read_all()) {
      const std::vector<spec::Violation> wrong = mistakes(run_.model, run_.recipe, run_.layout);
      if (wrong.empty()) {
        result_.run = run_;
      } else {
        result_.skipped = wrong[0].key + " = " + wrong[0].value + ' ' + wrong[0].why;
      }
    }
    return std::move(result_);
  }

 private:
  bool skip(std::string reason) {
    result_.skipped = std::move(reason);
    return false;
  }
  void assume(std::string what) { result_.assumed.push_back(std::move(what)); }

  bool read_all() {
    const std::string wrong = impossible_in(row_);
    if (!wrong.empty()) return skip(wrong);
    return read_model() && read_cluster() && read_stack() && read_recipe() && read_layout();
  }

  bool read_model() {
    if (!row_.layers || !row_.hidden || !row_.heads || !row_.ffn || !row_.vocab) {
      return skip("the model's shape is not published");
    }
    spec::ModelConfig& config = run_.model.dense;
    run_.model.name = row_.model;
    const int64_t hidden = whole(row_.hidden, 0), ffn = whole(row_.ffn, 0);
    // SwiGLU has a third matrix, and its width is made smaller for it. Squared ReLU has two.
    const bool gated = row_.has_experts() || ffn * 10 < hidden * 39;
    config = spec::family_defaults(gated ? spec::Architecture::llama : spec::Architecture::gpt2);
    config.hidden_size = hidden;
    config.num_hidden_layers = whole(row_.layers, 0);
    config.num_attention_heads = whole(row_.heads, 0);
    config.num_key_value_heads = whole(row_.kv_heads, config.num_attention_heads);
    config.head_dim = std::max<int64_t>(hidden / config.num_attention_heads, 1);
    config.intermediate_size =
        whole(row_.has_experts() && row_.dense_ffn ? row_.dense_ffn : row_.ffn, 0);
    config.vocab_size = whole(row_.vocab, 0);
    config.max_position_embeddings = whole(row_.seq_len, 2048);
    if (row_.has_experts()) read_experts(ffn);
    return true;
  }

  void read_experts(int64_t ffn) {
    Experts experts;
    experts.count = whole(row_.num_experts, 0);
    experts.top_k = whole(row_.top_k, 1);
    experts.width = ffn;
    experts.shared = whole(row_.shared_experts, 0);
    experts.dense_layers = whole(row_.dense_layers, 0);
    run_.model.experts = experts;
    run_.model.dense.tie_word_embeddings = false;
    // Models whose shape alone does not tell all of it, as their authors publish it.
    const auto is = [&](std::string_view part) {
      return row_.model.find(part) != std::string::npos || row_.run.find(part) != std::string::npos;
    };
    if (is("deepseek") || is("dsv3") || is("kimi")) {
      run_.model.latent = LatentAttention{1536, 512, 128, 64, 128};
    } else if (is("qwen3")) {
      run_.model.dense.head_dim = 128;
    } else if (is("gpt-oss") || is("gpt_oss")) {
      run_.model.dense.head_dim = 64;
      run_.model.window = 128;
    }
  }

  bool read_cluster() {
    const Cluster* preset = nullptr;
    for (const Cluster& cluster : cluster_presets()) {
      if (cluster.device.name == row_.gpu) preset = &cluster;
    }
    if (preset == nullptr) return skip("no preset of a cluster with '" + row_.gpu + "'");
    run_.cluster = *preset;
    if (!row_.num_gpus) return skip("the number of GPUs is not published");
    const int64_t nodes = std::max<int64_t>(whole(row_.nodes, 1), 1);
    const int64_t in_node = whole(row_.num_gpus, 1) / nodes;
    // Nodes of one's own counting; a single node may be bigger than eight. Racks are what they are.
    if (preset->devices_per_node <= 16 && in_node > preset->devices_per_node) {
      run_.cluster.devices_per_node = in_node;
    }
    for (const SourceFacts& source : kSources) {
      if (source.group == row_.group() && source.inter_gb_per_s > 0) {
        run_.cluster.inter.bytes_per_s = source.inter_gb_per_s * 1e9;
      }
    }
    return true;
  }

  bool read_stack() {
    std::string name = row_.stack;
    for (const SourceFacts& source : kSources) {
      if (source.group == row_.group() && !source.stack.empty()) name = source.stack;
    }
    if (name == "megascale" && row_.run.find("Megatron-LM") != std::string::npos) {
      name = "megatron-lm-2023";
    }
    if (name == "megatron-lm-2021" && row_.zero_stage.value_or(0) == 3) name = "deepspeed-2021";
    if (name == "paxml") name = "maxtext";
    if (name == "fsdp") name = "torchtitan";
    run_.stack = find_stack(name);
    // torchtitan's reports say which of its features were on in the run's name.
    if (row_.run.find("asyncTP") != std::string::npos) run_.stack.overlaps_tp = true;
    if (run_.stack.name == "generic" && name != "generic") {
      assume("stack '" + name + "' as generic");
    }
    return true;
  }

  bool read_recipe() {
    Recipe& recipe = run_.recipe;
    const std::string& precision = row_.precision;
    if (precision == "fp16") {
      recipe.format = Format::fp16;
    } else if (precision.rfind("bf16", 0) == 0) {
      recipe.format = Format::bf16;
    } else if (precision.rfind("fp8", 0) == 0 || precision.rfind("mxfp8", 0) == 0) {
      recipe.format = Format::fp8;
    } else if (precision == "nvfp4") {
      recipe.format = Format::fp4;
    } else {
      return skip("precision '" + precision + "' is not modelled");
    }
    if (!row_.seq_len || !row_.global_batch) {
      return skip("the sequence length or the global batch is not published");
    }
    recipe.seq_len = whole(row_.seq_len, 0);
    recipe.global_batch = whole(row_.global_batch, 0);
    recipe.gradient_bytes = run_.stack.gradient_bytes;
    if (precision == "fp16" || precision == "bf16-pure") recipe.gradient_bytes = 2;
    recipe.dropout = run_.stack.flash_attention ? 0 : 0.1;
    return true;
  }

  bool read_layout() {
    Layout& layout = run_.layout;
    if (!row_.tp || !row_.pp || !row_.dp) return skip("the layout is not published");
    layout.tp = whole(row_.tp, 1);
    layout.cp = whole(row_.cp, 1);
    layout.pp = whole(row_.pp, 1);
    layout.dp = whole(row_.dp, 1);
    layout.ep = whole(row_.ep, 1);
    layout.zero = whole(row_.zero_stage, 1);
    if (layout.devices() != whole(row_.num_gpus, 0)) {
      return skip("tp · cp · pp · dp is " + std::to_string(layout.devices()) + ", not " +
                  std::to_string(whole(row_.num_gpus, 0)) + " GPUs");
    }
    if (!row_.zero_stage) assume("ZeRO-1");
    if (layout.zero == 2 && layout.pp > 1) {
      // Published with a pipeline, stage 2 keeps gradients whole until the last micro-batch.
      layout.zero = 1;
      assume("ZeRO-1 for 2");
    }
    if (row_.reshard_after_forward == "no") layout.reshard_after_forward = false;
    // Under a pipeline FSDP keeps weights whole from the first micro-batch to the last.
    if (layout.pp > 1 && layout.zero == 3) layout.reshard_after_forward = false;
    // DGX Cloud's JAX recipes: from 512 devices up, groups of 128 that are copies of each other.
    if (run_.stack.name == "maxtext" && layout.zero == 3 && layout.dp >= 512) {
      layout.shard = 128;
      assume("shard groups of 128");
    }
    if (!read_recompute()) return false;
    layout.sequence_parallel =
        layout.tp > 1 && run_.stack.sequence_parallel &&
        !(run_.stack.name == "megatron-lm-2022" && layout.recompute == spec::Recompute::full);
    read_micro_batch();
    read_stages();
    return true;
  }

  bool read_recompute() {
    spec::Recompute& recompute = run_.layout.recompute;
    if (row_.recompute == "full") {
      recompute = spec::Recompute::full;
    } else if (row_.recompute == "selective") {
      recompute = spec::Recompute::selective;
    } else if (row_.recompute != "none") {
      recompute = run_.stack.usual_recompute;
      assume("recompute");
    }
    return true;
  }

  /// Those whose stages a rank follow from the name.
  static std::optional<spec::ScheduleKind> schedule_named(std::string_view name) {
    for (const spec::ScheduleKind kind :
         {spec::ScheduleKind::gpipe, spec::ScheduleKind::zb_h1, spec::ScheduleKind::zb_v}) {
      if (name == spec::schedule_name(kind)) return kind;
    }
    return std::nullopt;
  }

  void read_micro_batch() {
    Layout& layout = run_.layout;
    const int64_t share = std::max<int64_t>(run_.recipe.global_batch / layout.dp, 1);
    if (row_.micro_batch && *row_.micro_batch >= 1) {
      layout.micro_batch = whole(row_.micro_batch, 1);
      return;
    }
    layout.micro_batch = 1;
    if (layout.pp > 1 && run_.stack.name == "torchtitan") {
      layout.micro_batch = std::max<int64_t>(share / layout.pp, 1);  // its default
    } else if (layout.pp == 1) {
      for (const int64_t size : {2, 4}) {
        if (share % size == 0 && share <= 4) layout.micro_batch = size;
      }
    }
    assume("micro-batch " + std::to_string(layout.micro_batch));
  }

  void read_stages() {
    Layout& layout = run_.layout;
    if (layout.pp == 1) return;
    layout.schedule = spec::ScheduleKind::one_f_one_b;
    const int64_t layers = run_.model.dense.num_hidden_layers;
    // Embedding and head may each take the place of a layer.
    const int64_t slots = layers % layout.pp == 0 ? layers : layers + 2;
    layout.v = whole(row_.vpp, 0);
    if (row_.schedule == "dualpipe") {
      layout.schedule = spec::ScheduleKind::zb_v;
      layout.v = 2;
      assume("dualpipe as zb-v");
    } else if (const auto named = schedule_named(row_.schedule)) {
      layout.schedule = *named;
      if (layout.v == 0) layout.v = spec::usual_chunks(*named);
    } else if (layout.v == 0) {
      layout.v = 1;
      if (slots % layout.pp == 0 && run_.stack.interleaves) {
        for (int64_t chunks = 2; chunks <= 8; ++chunks) {
          if (slots / layout.pp % chunks == 0) layout.v = chunks;
        }
      } else if (row_.schedule == "interleaved") {
        layout.v = 2;
      }
      assume("stages a rank: " + std::to_string(layout.v));
    }
    if (layout.v > 1 && layout.schedule == spec::ScheduleKind::one_f_one_b) {
      layout.schedule = spec::ScheduleKind::interleaved;
    }
    const int64_t stages = layout.stages();
    if (layers % stages == 0) return;
    if ((layers + 2) % stages == 0) {
      layout.layers_per_stage.assign(static_cast<size_t>(stages), (layers + 2) / stages);
      --layout.layers_per_stage.front();
      --layout.layers_per_stage.back();
    } else if (layout.v == 1 && run_.stack.fills_stages_up) {
      const int64_t full = (layers + stages - 1) / stages;
      int64_t left = layers;
      for (int64_t stage = 0; stage < stages; ++stage) {
        layout.layers_per_stage.push_back(std::min(full, left));
        left -= layout.layers_per_stage.back();
      }
    }
  }

  const PublishedRun& row_;
  Case run_;
  ModelledRun result_;
};

}  // namespace

ModelledRun modelled(const PublishedRun& row) {
  return Reader(row).read();
}

}  // namespace tessera::plan
