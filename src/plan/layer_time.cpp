#include "plan/layer_time.h"

#include <algorithm>
#include <cmath>

#include "plan/parts.h"

namespace tessera::plan {

LayerTime& LayerTime::operator+=(const LayerTime& other) {
  forward += other.forward;
  backward_input += other.backward_input;
  backward_weight += other.backward_weight;
  tp_exposed += other.tp_exposed;
  cp_exposed += other.cp_exposed;
  ep_exposed += other.ep_exposed;
  return *this;
}

LayerTime operator*(double factor, LayerTime time) {
  time.forward *= factor;
  time.backward_input *= factor;
  time.backward_weight *= factor;
  time.tp_exposed *= factor;
  time.cp_exposed *= factor;
  time.ep_exposed *= factor;
  return time;
}

namespace {

/// Adds up a layer's operations.
class LayerClock {
 public:
  LayerClock(const Case& run, const Constants& constants)
      : run_(run),
        constants_(constants),
        kernels_(run, constants),
        network_(run.cluster, constants),
        groups_(groups_of(run.cluster, run.layout)),
        wide_(stream_bytes(run.recipe)),
        tp_(static_cast<double>(run.layout.tp)),
        tokens_(static_cast<double>(run.layout.micro_batch * run.recipe.seq_len) /
                static_cast<double>(run.layout.cp)),
        hidden_(static_cast<double>(run.model.dense.hidden_size)) {}

  LayerTime layer(bool with_experts) {
    attention();
    if (with_experts) {
      experts();
    } else {
      mlp(static_cast<double>(run_.model.dense.intermediate_size), tokens_, tp_, 1);
    }
    stream_operations();
    tensor_collectives();
    return finished();
  }

  LayerTime embedding() {
    const double bytes = tokens_ * hidden_ * wide_;
    moves(2 * bytes, 3 * bytes);
    return time_;
  }

  LayerTime head() {
    const double vocabulary = static_cast<double>(padded_vocabulary(run_.model, run_.layout.tp));
    product_bf16(tokens_, vocabulary / tp_, hidden_);
    // The loss goes through fp32 logits a few times in each direction.
    moves(14 * tokens_ * vocabulary / tp_, 10 * tokens_ * vocabulary / tp_);
    return time_;
  }

 private:
  bool gated() const { return run_.model.dense.architecture == spec::Architecture::llama; }

  /// y = x Wᵀ, dx = dy W, dW = dyᵀ x.
  template <class Seconds>
  void product_by(const Seconds& seconds, double rows, double columns, double depth, double count) {
    time_.forward += seconds({rows, columns, depth, count});
    time_.backward_input += seconds({rows, depth, columns, count});
    if (run_.recipe.fine_tune == FineTune::full) {
      time_.backward_weight += seconds({columns, depth, rows, count});
    }
  }
  void product(double rows, double columns, double depth, double count = 1) {
    product_by([&](const Product& shape) { return kernels_.product_s(shape); }, rows, columns,
               depth, count);
    if (run_.recipe.format == Format::fp8 || run_.recipe.format == Format::fp4) {
      // Its operands are cast, and the gradient transposed too.
      moves(3 * rows * depth * count, 5 * rows * columns * count);
    }
  }
  void product_bf16(double rows, double columns, double depth) {
    product_by([&](const Product& shape) { return kernels_.product_bf16_s(shape); }, rows, columns,
               depth, 1);
  }
  void moves(double forward_bytes, double backward_bytes) {
    time_.forward += kernels_.memory_s(forward_bytes);
    time_.backward_input += kernels_.memory_s(backward_bytes);
  }

  void attention() {
    const spec::ModelConfig& config = run_.model.dense;
    const auto heads = static_cast<double>(config.num_attention_heads);
    const auto kv = static_cast<double>(config.num_key_value_heads);
    auto head_dim = static_cast<double>(config.head_dim);
    double key_dims = 2 * head_dim;
    if (run_.model.latent) {
      const LatentAttention& latent = *run_.model.latent;
      const double query = static_cast<double>(latent.nope_dim + latent.rope_dim);
      const auto q_rank = static_cast<double>(latent.q_rank);
      const auto kv_rank = static_cast<double>(latent.kv_rank);
      product(tokens_, q_rank + kv_rank + static_cast<double>(latent.rope_dim), hidden_);
      product(tokens_, heads * query / tp_, q_rank);
      product(tokens_, heads * static_cast<double>(latent.nope_dim + latent.value_dim) / tp_,
              kv_rank);
      product(tokens_, hidden_, heads * static_cast<double>(latent.value_dim) / tp_);
      key_dims = query + static_cast<double>(latent.value_dim);
      head_dim = key_dims / 2;
    } else {
      const double kv_here = std::max(kv / tp_, 1.0);
      product(tokens_, (heads / tp_ + 2 * kv_here) * head_dim, hidden_);
      product(tokens_, hidden_, heads * head_dim / tp_);
    }
    AttentionShape shape;
    shape.sequences = static_cast<double>(run_.layout.micro_batch);
    const auto length = static_cast<double>(run_.recipe.seq_len);
    shape.queries = length / static_cast<double>(run_.layout.cp);
    shape.keys = length;
    shape.at_once = shape.queries;
    shape.heads = heads / tp_;
    shape.head_dim = head_dim;
    Kernels::Times times = kernels_.attention_s(shape);
    if (run_.model.window > 0) {
      shape.keys = std::min(length, static_cast<double>(run_.model.window));
      shape.at_once = std::min(shape.at_once, shape.keys);
      const Kernels::Times narrow = kernels_.attention_s(shape);
      times = {(times.forward + narrow.forward) / 2, (times.backward + narrow.backward) / 2};
    }
    core_ = times;
    time_.forward += times.forward;
    time_.backward_input += times.backward;
    // Q and K are rotated, or only laid out anew.
    const double qk = tokens_ * (heads + kv) * head_dim / tp_ * wide_;
    moves(2 * qk, 2 * qk);
    if (run_.layout.cp > 1) {
      // Keys and values go round while attention runs on those that are there.
      const double bytes = tokens_ * static_cast<double>(run_.layout.cp) * std::max(kv / tp_, 1.0) *
                           key_dims * wide_;
      const double there = network_.all_gather_s(bytes, groups_.cp);
      const double hidden_forward = constants_.cp_overlap * times.forward;
      const double hidden_backward = constants_.cp_overlap * times.backward;
      const double forward = std::max(0.0, there - hidden_forward);
      const double backward = std::max(0.0, 2 * there - hidden_backward);
      time_.forward += forward;
      time_.backward_input += backward;
      time_.cp_exposed += forward + backward;
    }
  }

  void mlp(double width, double rows, double cut, double count) {
    product(rows, (gated() ? 2 : 1) * width / cut, hidden_, count);
    product(rows, hidden_, width / cut, count);
    // The activation function reads its one or two inputs and writes one output.
    const double element = rows * count * width / cut * wide_;
    moves((gated() ? 3 : 2) * element, (gated() ? 5 : 3) * element);
  }

  void experts() {
    const Experts& experts = *run_.model.experts;
    kernels_factor_ = 2.5;  // routing, permuting and exchanging, besides the experts
    const auto top_k = static_cast<double>(experts.top_k);
    const auto ep = static_cast<double>(run_.layout.ep);
    const double local = static_cast<double>(experts.count) / ep;
    // With experts spread out, tensor-parallel ranks hold different experts for their own tokens.
    const double cut = run_.layout.ep > 1 ? 1 : tp_;
    const double own_tokens = run_.layout.ep > 1 ? tokens_ / tp_ : tokens_;
    const double copies = own_tokens * top_k;
    product_bf16(tokens_, static_cast<double>(experts.count), hidden_);
    // All ranks' copies for the experts here, evenly spread.
    mlp(static_cast<double>(experts.width), copies / local, cut, local);
    if (experts.shared > 0) {
      const int64_t width = experts.shared_width > 0 ? experts.shared_width : experts.width;
      mlp(static_cast<double>(experts.shared * width), tokens_, tp_, 1);
    }
    // Copies are gathered by expert and summed again, in and out.
    moves(4 * copies * hidden_ * wide_, 4 * copies * hidden_ * wide_);
    if (run_.layout.ep == 1) return;
    const bool narrow = run_.recipe.format == Format::fp8 || run_.recipe.format == Format::fp4;
    const double out = network_.all_to_all_s(copies * hidden_ * (narrow ? 1 : 2), groups_.ep);
    const double back = network_.all_to_all_s(copies * hidden_ * 2, groups_.ep);
    const double exposed = (1 - run_.stack.ep_overlap) * (out + back);
    time_.forward += exposed;
    time_.backward_input += exposed;
    time_.ep_exposed += 2 * exposed;
  }

  /// Norms, residual sums and dropouts, over the whole stream or this rank's part of it.
  void stream_operations() {
    const double by = run_.layout.sequence_parallel ? tp_ : 1;
    const double element = tokens_ * hidden_ * wide_ / by;
    const double passes = run_.stack.fused ? 1 : 1.6;
    const double dropout = run_.recipe.dropout > 0 ? 3 : 0;
    moves(passes * (4 + 6 + dropout) * element, passes * (6 + 4 + dropout) * element);
  }

  void tensor_collectives() {
    if (run_.layout.tp == 1) return;
    const double bytes = tokens_ * hidden_ * wide_;
    // Two sums each way; with sequence parallelism two gathers and two scatters of half of that.
    const double sum = network_.all_reduce_s(bytes, groups_.tp);
    const double shown = (run_.stack.overlaps_tp ? 1 - constants_.tp_overlap : 1) * 2 * sum;
    forward_collectives_ = shown;
    time_.forward += shown;
    time_.backward_input += shown;
    time_.tp_exposed += 2 * shown;
    // What was gathered for a product is gathered again for its weights' gradient.
    if (run_.layout.sequence_parallel && !run_.stack.overlaps_tp) {
      const double again = 2 * network_.all_gather_s(bytes, groups_.tp);
      time_.backward_weight += again;
      time_.tp_exposed += again;
    }
  }

  LayerTime finished() {
    // The host starts kernels while the device works: the longer of the two, and a little of both
    // where they are alike.
    // A round of keys and values among context-parallel ranks starts a few of its own.
    const double starts = run_.stack.kernels_per_layer * kernels_factor_ +
                          4 * static_cast<double>(run_.layout.cp - 1);
    const double host = constants_.host_s * starts;
    const double device = time_.forward + time_.backward();
    const double slower = std::cbrt(1 + std::pow(3 * host / device, 3));
    time_.forward *= slower;
    time_.backward_input *= slower;
    time_.backward_weight *= slower;
    switch (run_.layout.recompute) {
      case spec::Recompute::none:
        break;
      case spec::Recompute::selective:
        time_.backward_input +=
            run_.stack.flash_attention ? run_.stack.selective_time * time_.forward : core_.forward;
        break;
      case spec::Recompute::full:
        time_.backward_input += time_.forward;
        if (run_.stack.waits_at_checkpoints) time_.backward_input += constants_.checkpoint_s;
        time_.tp_exposed += forward_collectives_;
        break;
    }
    return time_;
  }

  const Case& run_;
  const Constants& constants_;
  const Kernels kernels_;
  const Network network_;
  const Groups groups_;
  const double wide_;
  const double tp_;
  const double tokens_;  // of a micro-batch, on a device
  const double hidden_;
  LayerTime time_;
  Kernels::Times core_;  // attention between its products
  double forward_collectives_ = 0;
  double kernels_factor_ = 1;  // of a layer, against a dense one
};

}  // namespace

LayerTime layer_time(const Case& run, const Constants& constants, bool with_experts) {
  return LayerClock(run, constants).layer(with_experts);
}

LayerTime embedding_time(const Case& run, const Constants& constants) {
  return LayerClock(run, constants).embedding();
}

LayerTime head_time(const Case& run, const Constants& constants) {
  return LayerClock(run, constants).head();
}

}  // namespace tessera::plan
