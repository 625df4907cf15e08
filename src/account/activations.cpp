#include "account/activations.h"

#include <algorithm>

#include "account/head_chunks.h"
#include "core/arena.h"
#include "spec/lora_targets.h"

// Legend: B sequences, T tokens each, T' of them in the residual stream of a rank, N = B · T rows,
// C hidden_size, I intermediate_size, H heads, G key-value heads, D head_dim, V vocab_size.

namespace tessera::account {
namespace {

constexpr int64_t kArenaAlignment = core::Arena::kAlignment;

constexpr int64_t rounded(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// What one (fused) product needs beside its operands while it runs: with sequence parallelism a
/// stream that is whole for a while (parallel/tensor), and what its adapters need (model/lora.h).
struct ProductBytes {
  int64_t forward = 0;
  int64_t backward_input = 0;
  int64_t backward_weight = 0;

  void at_least(const ProductBytes& other) {
    forward = std::max(forward, other.forward);
    backward_input = std::max(backward_input, other.backward_input);
    backward_weight = std::max(backward_weight, other.backward_weight);
  }
};

/// Bytes of the tensors of one micro-batch, each as the arena rounds it.
struct TensorBytes {
  TensorBytes(const spec::ModelConfig& config, const ActivationSizes& sizes) {
    const bool llama = config.architecture == spec::Architecture::llama;
    const int64_t element = core::size_of(sizes.dtype);
    const int64_t statistic = std::max<int64_t>(element, 4);
    const int64_t rows = sizes.batch * sizes.seq_len;
    const int64_t stream_rows = rows / (sizes.sequence_parallel ? sizes.tp : 1);
    const int64_t heads = config.num_attention_heads / sizes.tp;
    const int64_t kv_heads = std::max<int64_t>(config.num_key_value_heads / sizes.tp, 1);
    const int64_t inner = config.intermediate_size / sizes.tp;
    const auto bytes = [&](int64_t width) {
      return rounded(rows * width * element, kArenaAlignment);
    };
    const auto statistics = [&](int64_t numbers) {
      return rounded(numbers * statistic, kArenaAlignment);
    };
    stream = rounded(stream_rows * config.hidden_size * element, kArenaAlignment);
    qkv = bytes((heads + 2 * kv_heads) * config.head_dim);
    context = bytes(heads * config.head_dim);
    activated = bytes(inner);
    up = llama ? bytes(2 * inner) : activated;
    activated_gradient = llama ? activated : 0;
    norm_statistics = (llama ? 1 : 2) * statistics(stream_rows);
    softmax_statistics = statistics(rows * heads);
    rotary = llama ? 2 * statistics(sizes.seq_len * config.head_dim / 2) : 0;
    if (config.qk_norm) {
      qk_gradients = context + bytes(kv_heads * config.head_dim);
      qk_saved = qk_gradients + statistics(rows * heads) + statistics(rows * kv_heads);
    }
    scratch = rounded(sizes.attention_scratch_bytes, kArenaAlignment);
    dropped = config.dropout > 0 ? stream : 0;
    if (sizes.sequence_parallel) whole_stream = bytes(config.hidden_size);
    products(config, sizes);
    const bool apart = sizes.numerics == spec::Numerics::invariant;
    if (apart && sizes.lora.rank == 0) {
      norm_sums = (llama ? 1 : 2) * rounded(config.hidden_size * 4, kArenaAlignment);
    }
    const int64_t vocab_size = vocabulary_rows(config.vocab_size, sizes.tp);
    const int64_t runs = apart ? sizes.batch : 1;
    const int64_t chunk = head_chunk_rows(runs, rows / runs, vocab_size, sizes.dtype);
    // Logits and losses, and where the vocabulary is cut what ranks exchange of a row.
    logits_chunk = rounded(chunk * head_row_stride(vocab_size) * element, kArenaAlignment) +
                   statistics(chunk) + (sizes.tp > 1 ? statistics(3 * chunk) : 0);
  }

  void products(const spec::ModelConfig& config, const ActivationSizes& sizes) {
    for (ProductBytes* product : {&qkv_product, &o_product, &up_product, &down_product}) {
      // What is frozen needs no input for its gradient.
      *product = {whole_stream, whole_stream, sizes.lora.rank > 0 ? 0 : whole_stream};
    }
    const int64_t C = config.hidden_size, inner = config.intermediate_size / sizes.tp;
    const int64_t heads = config.num_attention_heads / sizes.tp * config.head_dim;
    const int64_t kv_heads =
        std::max<int64_t>(config.num_key_value_heads / sizes.tp, 1) * config.head_dim;
    add_adapter(qkv_product, config, sizes, "q_proj", true, heads, C);
    add_adapter(qkv_product, config, sizes, "k_proj", true, kv_heads, C);
    add_adapter(qkv_product, config, sizes, "v_proj", true, kv_heads, C);
    add_adapter(o_product, config, sizes, "o_proj", false, C, heads);
    add_adapter(up_product, config, sizes, "gate_proj", true, inner, C);
    add_adapter(up_product, config, sizes, "up_proj", true, inner, C);
    add_adapter(down_product, config, sizes, "down_proj", false, C, inner);
  }

  /// `column`: the product is cut by outputs, so x has the stream's rows and y all; else y has
  /// them.
  static void add_adapter(ProductBytes& product, const spec::ModelConfig& config,
                          const ActivationSizes& sizes, const char* name, bool column, int64_t out,
                          int64_t in) {
    if (!spec::has_adapter(sizes.lora, config.architecture, name)) return;
    const int64_t element = core::size_of(sizes.dtype);
    const int64_t all = sizes.batch * sizes.seq_len;
    const int64_t stream_rows = sizes.sequence_parallel ? all / sizes.tp : all;
    const auto bytes = [&](int64_t rows, int64_t width) {
      return rounded(rows * width * element, kArenaAlignment);
    };
    const int64_t part = bytes(column ? all : stream_rows, out);
    const int64_t through = bytes(column ? stream_rows : all, in);
    const int64_t hidden = bytes(stream_rows, sizes.lora.rank);
    const int64_t exchanged = sizes.sequence_parallel ? bytes(all, sizes.lora.rank) : 0;
    product.at_least({hidden + part + exchanged, part + hidden + through + exchanged,
                      part + 2 * hidden + exchanged});
  }

  /// What attention computes behind its first product: the context, the softmax's statistics, and
  /// with qk_norm the heads before their norms.
  int64_t attention_inside() const { return context + softmax_statistics + qk_saved; }
  /// What selective recompute does not keep of a block.
  int64_t recomputed() const { return attention_inside() + activated; }
  /// A block's tensors between forward and backward: both norms' outputs and the stream between
  /// them with the norms' statistics, QKV and attention's inside, the MLP's two.
  int64_t block_saved() const {
    return attention_part() + stream + norm_statistics + up + activated;
  }
  /// Of these, what stays.
  int64_t block_kept(spec::Recompute recompute) const {
    if (recompute == spec::Recompute::full) return 0;
    return block_saved() - (recompute == spec::Recompute::selective ? recomputed() : 0);
  }
  /// The most that is there while a block's forward runs: all of its tensors, or what of them is
  /// there when attention or a product runs, with what that needs beside it. What is not `selected`
  /// of attention is gone again when the MLP runs.
  int64_t at_forward(bool selected) const {
    const int64_t gone = selected ? attention_inside() : 0;
    const int64_t at_qkv = attention_part() - attention_inside() + qkv_product.forward;
    const int64_t at_attention = attention_part() + std::max(scratch, o_product.forward);
    const int64_t at_up = block_saved() - activated - gone + up_product.forward;
    const int64_t at_down = block_saved() - gone + down_product.forward;
    return std::max({at_qkv, at_attention, at_up, at_down});
  }
  /// What a block's backward makes anew of its tensors, and what it takes for that.
  int64_t made_anew(spec::Recompute recompute) const {
    return block_saved() - block_kept(recompute);
  }
  int64_t at_recompute(spec::Recompute recompute) const {
    if (recompute == spec::Recompute::none) return 0;
    if (recompute == spec::Recompute::full) return at_forward(false);
    return std::max(attention_inside() + scratch, recomputed());
  }
  // A block's gradients. The MLP's: those of its input and its inside, one more where dropout makes
  // a copy. Then attention's beside them: those of the other norm's output, the middle, QKV and
  // heads before their norms, and another copy.
  int64_t mlp_gradients() const { return stream + dropped + up; }
  int64_t block_gradients() const {
    return mlp_gradients() + 2 * stream + dropped + qkv + qk_gradients;
  }
  /// The most while the gradient of a block's input is made: beside those for a while the gradient
  /// of what was activated, that of the context with the scratch, what adapters need.
  int64_t at_backward_input() const {
    const int64_t in_mlp =
        std::max(activated_gradient + down_product.backward_input, up_product.backward_input);
    const int64_t in_attention =
        std::max(context + scratch + o_product.backward_input, qkv_product.backward_input);
    return std::max(mlp_gradients() + in_mlp, block_gradients() + in_attention);
  }
  /// What the gradients of a block's weights need, beside those.
  int64_t for_weights() const {
    return std::max({down_product.backward_weight, up_product.backward_weight,
                     o_product.backward_weight, qkv_product.backward_weight, norm_sums});
  }
  /// The final norm's output and statistics, and the logits; with sequence parallelism the output
  /// gathered.
  int64_t head() const { return stream + norm_statistics + whole_stream + logits_chunk; }

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
  int64_t norm_sums = 0;  ///< [C] once or twice, fp32: a sequence's gradient, sequences apart
  /// [N, C] with sequence parallelism, where a stream is whole for a while.
  int64_t whole_stream = 0;
  ProductBytes qkv_product, o_product, up_product, down_product;

 private:
  int64_t attention_part() const { return 2 * stream + norm_statistics + qkv + attention_inside(); }
};

}  // namespace

ChunkActivations chunk_activations(const spec::ModelConfig& config, const ActivationSizes& sizes,
                                   const ChunkShape& shape) {
  const TensorBytes t(config, sizes);
  const int64_t layers = shape.num_layers;
  const int64_t kept = t.block_kept(sizes.recompute);
  const bool selected = sizes.recompute == spec::Recompute::selective;
  // The stream that the first block reads: embedded or received.
  const int64_t input = shape.input_stays ? 0 : t.stream;
  const int64_t behind_blocks = t.rotary + input + layers * (t.stream + kept);
  ChunkActivations bytes;
  bytes.kept = behind_blocks + (shape.has_head ? t.stream : 0);
  bytes.forward = bytes.kept;
  if (layers > 0) {
    bytes.forward = std::max(bytes.forward, behind_blocks - kept + t.at_forward(selected));
  }
  // The gradient at the stream's end is there; that at the final norm's output is not kept.
  if (shape.has_head) {
    bytes.forward = std::max(bytes.forward, bytes.kept + t.stream + t.whole_stream + t.head());
  }
  if (shape.embeds) {
    bytes.forward = std::max(bytes.forward, t.rotary + t.stream + t.whole_stream);
  }

  // The gradient of the stream: received, and going to and fro between two buffers; the first
  // block writes it into what is sent.
  const int64_t received = shape.has_head ? 0 : t.stream;
  const int64_t written = layers - (shape.embeds ? 0 : 1);  // blocks whose input's is kept here
  const int64_t anew = t.made_anew(sizes.recompute);
  const int64_t at_recompute = t.at_recompute(sizes.recompute);
  const int64_t in_block = std::max(
      {at_recompute, anew + t.at_backward_input(), anew + t.block_gradients() + t.for_weights()});
  const int64_t at_embedding = shape.embeds && sizes.lora.rank == 0 ? t.whole_stream : 0;
  bytes.backward =
      received + (written > 0 ? t.stream : 0) + std::max(layers > 0 ? in_block : 0, at_embedding);
  const int64_t of_block = t.block_gradients() + anew;
  bytes.kept_halves = received + std::max<int64_t>(written, 0) * t.stream + layers * of_block;
  bytes.input_half = received;
  if (layers > 0) {
    bytes.input_half =
        bytes.kept_halves - of_block + std::max(at_recompute, anew + t.at_backward_input());
  }
  bytes.weight_half = bytes.kept_halves + std::max(layers > 0 ? t.for_weights() : 0, at_embedding);

  bytes.evaluation = (shape.embeds ? 0 : t.stream) + t.rotary + 2 * t.stream +
                     std::max({layers > 0 ? t.at_forward(false) : 0, shape.has_head ? t.head() : 0,
                               shape.embeds ? t.whole_stream : 0});
  return bytes;
}

int64_t training_activation_bytes(const spec::ModelConfig& given, const ActivationSizes& sizes) {
  const spec::ModelConfig config = spec::resolved(given);
  const ChunkActivations bytes =
      chunk_activations(config, sizes, {config.num_hidden_layers, true, true, false});
  return std::max(bytes.forward, bytes.kept + bytes.backward);
}

int64_t evaluation_activation_bytes(const spec::ModelConfig& given, const ActivationSizes& sizes) {
  const spec::ModelConfig config = spec::resolved(given);
  return chunk_activations(config, sizes, {config.num_hidden_layers, true, true, false}).evaluation;
}

}  // namespace tessera::account
