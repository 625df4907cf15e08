#include <algorithm>
#include <cmath>

#include "plan/emit_systems.h"
#include "plan/text.h"

namespace tessera::plan {

namespace {

class Flags {
 public:
  explicit Flags(const Case& run) : run_(run), layout_(run.layout), model_(run.model.dense) {}

  std::string text() {
    for (const std::string& line : heading(run_)) text_ += "# " + line + '\n';
    text_ += "MEGATRON_ARGS=(\n";
    model();
    if (run_.model.experts) experts();
    if (run_.model.latent) latent_attention();
    batch();
    degrees();
    pipeline();
    data_parallel();
    recompute();
    precision();
    return text_ + ")\n";
  }

 private:
  void flag(const std::string& name, const std::string& value = {}) {
    text_ += "  --" + name + (value.empty() ? "" : ' ' + value) + '\n';
  }
  void flag(const std::string& name, int64_t value) { flag(name, std::to_string(value)); }
  void remark(const std::string& line) { text_ += "  # " + line + '\n'; }

  void model() {
    const bool llama = model_.architecture == spec::Architecture::llama;
    remark("model");
    flag("num-layers", model_.num_hidden_layers);
    flag("hidden-size", model_.hidden_size);
    flag("ffn-hidden-size", model_.intermediate_size);
    flag("num-attention-heads", model_.num_attention_heads);
    if (model_.num_key_value_heads != model_.num_attention_heads) {
      flag("group-query-attention");
      flag("num-query-groups", model_.num_key_value_heads);
    }
    flag("kv-channels", model_.head_dim);
    flag("seq-length", run_.recipe.seq_len);
    flag("max-position-embeddings", std::max(model_.max_position_embeddings, run_.recipe.seq_len));
    if (llama) {
      flag("swiglu");
      flag("normalization", "RMSNorm");
      flag("disable-bias-linear");
      flag("position-embedding-type", "rope");
      rotary();
    }
    flag("norm-epsilon", number_text(model_.norm_eps));
    if (model_.qk_norm) flag("qk-layernorm");
    // Megatron-LM's own defaults are 0.1.
    flag("attention-dropout", number_text(run_.recipe.dropout));
    flag("hidden-dropout", number_text(run_.recipe.dropout));
    if (!model_.tie_word_embeddings) flag("untie-embeddings-and-output-weights");
    remark("its vocabulary of " + std::to_string(model_.vocab_size) + " comes with the tokenizer");
    if (run_.model.window > 0) {
      remark("every second layer sees " + std::to_string(run_.model.window) +
             " keys: --window-size and --window-attn-skip-freq of recent versions");
    }
  }

  void rotary() {
    // An integer there.
    flag("rotary-base", std::llround(model_.rope_theta));
    const spec::RopeScaling& scaling = model_.rope_scaling;
    if (scaling.rope_type == spec::RopeType::llama3) {
      flag("use-rope-scaling");
      flag("rope-scaling-factor", number_text(scaling.factor));
    } else if (scaling.rope_type != spec::RopeType::none) {
      remark("the model's rotary positions are stretched by " + number_text(scaling.factor) +
             ", in another way than Llama 3's: not said here");
    }
  }

  void experts() {
    const Experts& experts = *run_.model.experts;
    flag("num-experts", experts.count);
    flag("moe-router-topk", experts.top_k);
    flag("moe-ffn-hidden-size", experts.width);
    flag("moe-token-dispatcher-type", "alltoall");
    flag("moe-grouped-gemm");
    if (experts.shared > 0) {
      const int64_t width = experts.shared_width > 0 ? experts.shared_width : experts.width;
      flag("moe-shared-expert-intermediate-size", experts.shared * width);
    }
    if (experts.dense_layers > 0) {
      // Quoted: a shell would take the brackets for its own.
      flag("moe-layer-freq", "\"([0]*" + std::to_string(experts.dense_layers) + "+[1]*" +
                                 std::to_string(model_.num_hidden_layers - experts.dense_layers) +
                                 ")\"");
    }
  }

  void latent_attention() {
    const LatentAttention& latent = *run_.model.latent;
    flag("multi-latent-attention");
    if (latent.q_rank > 0) flag("q-lora-rank", latent.q_rank);
    flag("kv-lora-rank", latent.kv_rank);
    flag("qk-head-dim", latent.nope_dim);
    flag("qk-pos-emb-head-dim", latent.rope_dim);
    flag("v-head-dim", latent.value_dim);
  }

  void batch() {
    remark("batch");
    flag("micro-batch-size", layout_.micro_batch);
    flag("global-batch-size", run_.recipe.global_batch);
  }

  void degrees() {
    remark("layout: data parallelism takes what these leave of the world, dp = " +
           std::to_string(layout_.dp));
    flag("tensor-model-parallel-size", layout_.tp);
    if (layout_.sequence_parallel) flag("sequence-parallel");
    flag("pipeline-model-parallel-size", layout_.pp);
    flag("context-parallel-size", layout_.cp);
    if (run_.model.experts) {
      flag("expert-model-parallel-size", layout_.ep);
      // Experts are whole on their ranks where they are spread, and cut as the rest where not.
      flag("expert-tensor-parallel-size", layout_.ep > 1 ? 1 : layout_.tp);
    }
  }

  void pipeline() {
    if (layout_.pp == 1) return;
    const std::vector<int64_t> blocks = blocks_of_stages(run_.model, layout_);
    const bool even = std::all_of(blocks.begin(), blocks.end(),
                                  [&](int64_t block) { return block == blocks.front(); });
    const bool there = layout_.schedule == spec::ScheduleKind::one_f_one_b ||
                       layout_.schedule == spec::ScheduleKind::interleaved;
    if (!there) {
      remark("planned with schedule " + std::string(spec::schedule_name(layout_.schedule)) +
             ", which Megatron-LM does not have: it runs 1f1b,");
      remark("interleaved where ranks have several stages; plan again with --schedule interleaved");
    }
    if (!even) {
      std::string stages;
      for (size_t i = 0; i < blocks.size(); ++i) {
        stages += (i > 0 ? "|" : "E") + std::string("t*") + std::to_string(blocks[i]);
      }
      flag("pipeline-model-parallel-layout", '\'' + stages + "L'");
    } else if (layout_.v > 1) {
      flag("num-virtual-stages-per-pipeline-rank", layout_.v);
    }
    if (layout_.v > 1 && accumulation(run_) % layout_.pp != 0) {
      remark(std::to_string(accumulation(run_)) +
             " micro-batches are no multiple of pp = " + std::to_string(layout_.pp) +
             ": see --microbatch-group-size-per-virtual-pipeline-stage");
    }
  }

  void data_parallel() {
    const int64_t replicas = layout_.dp * layout_.cp;
    if (layout_.zero == 0) {
      flag("overlap-grad-reduce");
      return;
    }
    flag("use-distributed-optimizer");
    flag("overlap-grad-reduce");
    flag("overlap-param-gather");
    if (layout_.zero > 1) {
      remark("ZeRO-" + std::to_string(layout_.zero) + " is Megatron-FSDP's");
      flag("use-megatron-fsdp");
      flag("data-parallel-sharding-strategy",
           layout_.zero == 2 ? "optim_grads" : "optim_grads_params");
    }
    if (layout_.shards() < replicas) {
      flag("num-distributed-optimizer-instances", replicas / layout_.shards());
    }
  }

  void recompute() {
    if (layout_.recompute == spec::Recompute::selective) {
      flag("recompute-granularity", "selective");
    } else if (layout_.recompute == spec::Recompute::full) {
      flag("recompute-granularity", "full");
      flag("recompute-method", "uniform");
      flag("recompute-num-layers", 1);
    }
  }

  void precision() {
    switch (run_.recipe.format) {
      case Format::bf16:
        flag("bf16");
        break;
      case Format::fp16:
        flag("fp16");
        break;
      case Format::fp8:
        flag("bf16");
        flag("fp8-format", "hybrid");
        break;
      case Format::fp4:
        flag("bf16");
        flag("fp4-format", "e2m1");
        break;
      case Format::fp32:
        remark("fp32: without --bf16 and --fp16");
        break;
    }
    if (run_.recipe.format != Format::fp32 && run_.recipe.gradient_bytes == 2) {
      flag("grad-reduce-in-bf16");
    }
    if (run_.recipe.optimizer == Optimizer::adam8bit) {
      remark(
          "8-bit Adam: not an optimizer of Megatron-LM's; --use-precision-aware-optimizer has "
          "narrower states");
    } else if (run_.recipe.optimizer == Optimizer::muon) {
      flag("optimizer", "muon");
    } else if (run_.recipe.optimizer == Optimizer::sgd) {
      flag("optimizer", "sgd");
    }
    if (run_.recipe.fine_tune != FineTune::full) {
      remark("LoRA is Megatron-Bridge's (bridge.peft), not a flag here");
    }
  }

  const Case& run_;
  const Layout& layout_;
  const spec::ModelConfig& model_;
  std::string text_;
};

}  // namespace

std::string emit_megatron(const Case& run) {
  return Flags(run).text();
}

}  // namespace tessera::plan
