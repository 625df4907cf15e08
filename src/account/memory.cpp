#include "account/memory.h"

#include <algorithm>

#include "core/arena.h"
#include "spec/lora_targets.h"

// Legend: B sequences, T tokens each, N = B · T rows, C hidden_size, I intermediate_size, H heads,
// G key-value heads, D head_dim, V vocab_size.

namespace tessera::account {
namespace {

constexpr int64_t kArenaAlignment = core::Arena::kAlignment;
// The loss head's limits, head_chunk_rows and head_row_stride (model/loss_head.h and .cpp), which
// account may not include; tests/model/memory_test.cpp holds the two together.
constexpr int64_t kLogitsChunkBytes = int64_t{64} << 20;
constexpr int64_t kLogitsRowMultiple = 32;

constexpr int64_t rounded(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// What the adapters of one (fused) product need beside it while they run (model/lora.h).
struct AdapterBytes {
  int64_t forward = 0;          ///< [N, r] and the widest part [N, out]
  int64_t backward_input = 0;   ///< those and [N, in]
  int64_t backward_weight = 0;  ///< [N, out] and twice [N, r]
};

/// Bytes of the tensors of one micro-batch, each as the arena rounds it.
struct TensorBytes {
  TensorBytes(const spec::ModelConfig& config, const ActivationSizes& sizes) {
    const bool llama = config.architecture == spec::Architecture::llama;
    const int64_t element = core::size_of(sizes.dtype);
    const int64_t statistic = std::max<int64_t>(element, 4);
    const int64_t rows = sizes.batch * sizes.seq_len;
    const int64_t heads = config.num_attention_heads;
    const int64_t kv_heads = config.num_key_value_heads;
    const auto bytes = [&](int64_t width) {
      return rounded(rows * width * element, kArenaAlignment);
    };
    const auto statistics = [&](int64_t numbers) {
      return rounded(numbers * statistic, kArenaAlignment);
    };
    stream = bytes(config.hidden_size);
    qkv = bytes((heads + 2 * kv_heads) * config.head_dim);
    context = bytes(heads * config.head_dim);
    activated = bytes(config.intermediate_size);
    up = llama ? bytes(2 * config.intermediate_size) : activated;
    activated_gradient = llama ? activated : 0;
    norm_statistics = (llama ? 1 : 2) * statistics(rows);
    softmax_statistics = statistics(rows * heads);
    rotary = llama ? 2 * statistics(sizes.seq_len * config.head_dim / 2) : 0;
    if (config.qk_norm) {
      qk_gradients = context + bytes(kv_heads * config.head_dim);
      qk_saved = qk_gradients + statistics(rows * heads) + statistics(rows * kv_heads);
    }
    scratch = rounded(sizes.attention_scratch_bytes, kArenaAlignment);
    dropped = config.dropout > 0 ? stream : 0;
    adapters(config, sizes, bytes);
    const bool apart = sizes.numerics == spec::Numerics::invariant;
    logits_chunk = apart ? logits_chunk_bytes(sizes.batch, sizes.seq_len, config.vocab_size,
                                              element, statistic)
                         : logits_chunk_bytes(1, rows, config.vocab_size, element, statistic);
  }

  template <class Bytes>
  void adapters(const spec::ModelConfig& config, const ActivationSizes& sizes, const Bytes& bytes) {
    const auto add = [&](AdapterBytes& product, const char* name, int64_t out, int64_t in) {
      if (!spec::has_adapter(sizes.lora, config.architecture, name)) return;
      const int64_t rank = bytes(sizes.lora.rank);
      product.forward = std::max(product.forward, bytes(out) + rank);
      product.backward_input = std::max(product.backward_input, bytes(out) + rank + bytes(in));
      product.backward_weight = std::max(product.backward_weight, bytes(out) + 2 * rank);
    };
    const int64_t C = config.hidden_size, I = config.intermediate_size;
    const int64_t heads = config.num_attention_heads * config.head_dim;
    const int64_t kv_heads = config.num_key_value_heads * config.head_dim;
    add(qkv_adapters, "q_proj", heads, C);
    add(qkv_adapters, "k_proj", kv_heads, C);
    add(qkv_adapters, "v_proj", kv_heads, C);
    add(o_adapters, "o_proj", C, heads);
    add(up_adapters, "gate_proj", I, C);
    add(up_adapters, "up_proj", I, C);
    add(down_adapters, "down_proj", C, I);
  }

  /// The logits of one chunk of rows and their losses: as few equal chunks as fit in the limit, of
  /// whole runs of rows where one run fits.
  static int64_t logits_chunk_bytes(int64_t runs, int64_t run_rows, int64_t vocab_size,
                                    int64_t element, int64_t statistic) {
    const int64_t row_bytes = rounded(vocab_size, kLogitsRowMultiple) * element;
    const int64_t most_rows = std::max<int64_t>(1, kLogitsChunkBytes / row_bytes);
    const bool whole_runs = run_rows <= most_rows;
    const int64_t parts = whole_runs ? runs : run_rows;
    const int64_t most_parts = whole_runs ? most_rows / run_rows : most_rows;
    const int64_t num_chunks = std::max<int64_t>(1, (parts + most_parts - 1) / most_parts);
    const int64_t chunk_rows = (parts + num_chunks - 1) / num_chunks * (whole_runs ? run_rows : 1);
    return rounded(chunk_rows * row_bytes, kArenaAlignment) +
           rounded(chunk_rows * statistic, kArenaAlignment);
  }

  /// What attention computes behind its first product: the context, the softmax's statistics, and
  /// with qk_norm the heads before their norms.
  int64_t attention_inside() const { return context + softmax_statistics + qk_saved; }
  /// What selective recompute does not keep of a block.
  int64_t recomputed() const { return attention_inside() + activated; }
  /// Kept by a block until its backward: both norms' outputs and the stream between them with the
  /// norms' statistics, QKV and attention's inside, the MLP's two.
  int64_t block_saved() const {
    return attention_part() + stream + norm_statistics + up + activated;
  }
  /// The most that is there while a block's forward runs: all that it saves, or what of that is
  /// there when attention or adapters run, with what they need beside it.
  int64_t at_forward() const {
    const int64_t at_qkv = attention_part() - attention_inside() + qkv_adapters.forward;
    const int64_t at_attention = attention_part() + std::max(scratch, o_adapters.forward);
    const int64_t at_up = block_saved() - activated + up_adapters.forward;
    return std::max({at_qkv, at_attention, at_up, block_saved() + down_adapters.forward});
  }
  /// A block's backward. The MLP's: the gradients of its input and its inside, one more where
  /// dropout makes a copy. Then attention's beside them: those of the other norm's output, the
  /// middle, QKV and heads before their norms, and another copy. Beside these for a while: the
  /// gradient of what was activated, that of the context with the scratch, what adapters need.
  int64_t block_gradients() const {
    const int64_t mlp = stream + dropped + up;
    const int64_t attention = 2 * stream + dropped + qkv + qk_gradients;
    const int64_t in_mlp =
        std::max(activated_gradient + down_adapters.backward_input, up_adapters.backward_input);
    const int64_t in_attention =
        std::max(context + scratch + o_adapters.backward_input, qkv_adapters.backward_input);
    const int64_t for_weights =
        std::max({down_adapters.backward_weight, up_adapters.backward_weight,
                  o_adapters.backward_weight, qkv_adapters.backward_weight});
    return mlp + std::max(in_mlp, attention + std::max(in_attention, for_weights));
  }
  /// The final norm's output and statistics, and the logits.
  int64_t head() const { return stream + norm_statistics + logits_chunk; }

  int64_t stream = 0;              ///< [N, C]
  int64_t qkv = 0;                 ///< [N, (H + 2G) · D]
  int64_t context = 0;             ///< [N, H · D]
  int64_t up = 0;                  ///< [N, I], with a gate [N, 2I]
  int64_t activated = 0;           ///< [N, I]
  int64_t activated_gradient = 0;  ///< [N, I] where it is not up's
  int64_t norm_statistics = 0;     ///< [N] once or twice
  int64_t softmax_statistics = 0;  ///< [B, H, T]
  int64_t rotary = 0;              ///< 2 × [T, D/2]
  int64_t qk_saved = 0;            ///< [N, H · D], [N, G · D] and their norms' statistics
  int64_t qk_gradients = 0;        ///< [N, H · D], [N, G · D]
  int64_t scratch = 0;
  int64_t dropped = 0;  ///< [N, C] where there is dropout
  int64_t logits_chunk = 0;
  AdapterBytes qkv_adapters, o_adapters, up_adapters, down_adapters;

 private:
  int64_t attention_part() const { return 2 * stream + norm_statistics + qkv + attention_inside(); }
};

}  // namespace

StateBytes state_bytes(const ParameterTable& table, const spec::TrainingConfig& training,
                       const Sharding& sharding) {
  const int64_t shards = sharding.shards;
  int64_t frozen = 0;
  int64_t trained = 0;
  for (const Unit& unit : table.units) {
    frozen += sharding.shards_weights() ? padded(unit.frozen_elements(), shards) / shards
                                        : unit.frozen_elements();
    trained += padded(unit.trainable_elements(), shards);
  }
  const core::DType dtype = spec::dtype_of(training.precision);
  StateBytes bytes;
  bytes.weights =
      (frozen + (sharding.shards_weights() ? trained / shards : trained)) * core::size_of(dtype);
  bytes.gradients = (sharding.shards_gradients() ? trained / shards : trained) *
                    core::size_of(spec::gradient_storage(training));
  // Two moments, and a master where the weights are not fp32 themselves.
  bytes.optimizer = trained / shards * (dtype == core::DType::f32 ? 8 : 12);
  return bytes;
}

int64_t gathered_bytes(const ParameterTable& table, const spec::TrainingConfig& training,
                       const spec::ParallelismConfig& parallelism) {
  const Sharding sharding = sharding_of(parallelism);
  const auto num_units = static_cast<int64_t>(table.units.size());
  int64_t weights = 0, gradients = 0;  // elements outside blocks
  int64_t block_weights = 0, block_gradients = 0;
  for (int64_t i = 0; i < num_units; ++i) {
    const Unit& unit = table.units[static_cast<size_t>(i)];
    const int64_t trained = padded(unit.trainable_elements(), sharding.shards);
    const int64_t all = padded(unit.frozen_elements(), sharding.shards) + trained;
    const bool block = i > 0 && i + 1 < num_units;
    if (block) {
      block_weights = std::max(block_weights, all);
      block_gradients = std::max(block_gradients, trained);
    } else {
      weights += all;
      gradients += trained;
    }
  }
  const int64_t blocks = num_units - 2;
  weights += gathered_blocks(blocks, parallelism.prefetch) * block_weights;
  gradients += gradient_blocks(blocks, parallelism.bucket_bytes > 0) * block_gradients;
  int64_t bytes = 0;
  if (sharding.shards_weights()) {
    bytes += weights * core::size_of(spec::dtype_of(training.precision));
  }
  if (sharding.shards_gradients()) {
    bytes += gradients * core::size_of(spec::gradient_storage(training));
  }
  return bytes;
}

int64_t training_activation_bytes(const spec::ModelConfig& given, const ActivationSizes& sizes) {
  const spec::ModelConfig config = spec::resolved(given);
  const TensorBytes t(config, sizes);
  const int64_t layers = config.num_hidden_layers;
  int64_t kept = t.block_saved();
  if (sizes.recompute == spec::Recompute::selective) kept -= t.recomputed();
  if (sizes.recompute == spec::Recompute::full) kept = 0;
  // Two buffers for the stream's gradient, the embedding's output, and every block's.
  const int64_t below_last =
      t.rotary + (3 + layers) * t.stream + std::max<int64_t>(layers - 1, 0) * kept;
  const int64_t after_blocks = below_last + (layers > 0 ? kept : 0);
  // A block's saved tensors are whole again, kept or made anew, when its backward begins. The last
  // block is the worst: everything below it is still there.
  const int64_t forward = below_last + t.at_forward();
  const int64_t backward = below_last + t.block_saved() + t.block_gradients();
  return std::max({forward, after_blocks + t.head(), backward});
}

int64_t evaluation_activation_bytes(const spec::ModelConfig& given, const ActivationSizes& sizes) {
  const spec::ModelConfig config = spec::resolved(given);
  const TensorBytes t(config, sizes);
  return t.rotary + 2 * t.stream + std::max(t.at_forward(), t.head());
}

}  // namespace tessera::account
