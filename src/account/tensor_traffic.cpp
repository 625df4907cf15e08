#include "account/tensor_traffic.h"

#include <algorithm>
#include <utility>

#include "account/head_chunks.h"
#include "spec/lora_targets.h"

namespace tessera::account {

namespace {

/// Messages of one pass, added up. The stream of width W is [B, T, W].
class Count {
 public:
  explicit Count(const TensorPass& pass)
      : pass_(pass),
        element_(core::size_of(pass.dtype)),
        statistic_(std::max<int64_t>(element_, 4)) {}

  /// The whole stream where each rank has a part: nothing, where it has all.
  void gather(int64_t width) {
    if (!pass_.sequence_parallel) return;
    const int64_t part = pass_.seq_len / pass_.ranks * width;
    for (int64_t b = 0; b < pass_.batch; ++b) add(Collective::all_gather, part, element_);
  }

  /// The sum over the ranks of what each has made of the whole stream: all of it, or a part.
  void sum(int64_t width) {
    const int64_t sequence = pass_.seq_len * width;
    if (!pass_.sequence_parallel) {
      return add(Collective::all_reduce, pass_.batch * sequence, element_);
    }
    for (int64_t b = 0; b < pass_.batch; ++b) add(Collective::reduce_scatter, sequence, element_);
  }

  /// The reductions of a loss: for each token of each chunk one maximum and two sums.
  void softmax(int64_t vocab_size) {
    const bool apart = pass_.numerics == spec::Numerics::invariant;
    const int64_t runs = apart ? pass_.batch : 1;
    const int64_t run = pass_.batch * pass_.seq_len / runs;
    const int64_t held = vocabulary_rows(vocab_size, pass_.ranks);
    const int64_t chunk = head_chunk_rows(runs, run, held, pass_.dtype);
    for_each_head_chunk(runs * run, run, chunk, [&](int64_t /*first*/, int64_t n) {
      add(Collective::all_reduce, n, statistic_);
      add(Collective::all_reduce, 2 * n, statistic_);
    });
  }

  std::vector<Message> messages;

 private:
  void add(Collective collective, int64_t elements, int64_t element_bytes) {
    messages.push_back({collective, elements, element_bytes});
  }

  const TensorPass& pass_;
  int64_t element_, statistic_;
};

/// A product of the block whose side in the stream is `width` wide, or the B (cut by outputs) or A
/// (cut by inputs) of an adapter, whose side is the adapter's rank.
enum class Side : uint8_t { outputs, inputs };

void forward(Count& count, Side cut, int64_t width) {
  cut == Side::outputs ? count.gather(width) : count.sum(width);
}
void backward_input(Count& count, Side cut, int64_t width) {
  cut == Side::outputs ? count.sum(width) : count.gather(width);
}
/// Both gather what they do not have whole: x, or dy.
void backward_weight(Count& count, int64_t width) {
  count.gather(width);
}

/// The adapter of one product (model/lora.h): its backward_weight makes hidden and dhidden again,
/// of which one or the other takes communication.
void adapter_forward(Count& count, Side cut, int64_t rank) {
  forward(count, cut, rank);
}
void adapter_backward(Count& count, Side cut, int64_t rank) {
  backward_input(count, cut, rank);
  count.sum(rank);
  backward_weight(count, rank);
}

struct BlockProduct {
  Side cut;
  std::vector<std::string_view> parts;  ///< the names of those that are fused
};

const BlockProduct kBlock[] = {{Side::outputs, {"q_proj", "k_proj", "v_proj"}},
                               {Side::inputs, {"o_proj"}},
                               {Side::outputs, {"gate_proj", "up_proj"}},
                               {Side::inputs, {"down_proj"}}};

void block(Count& count, const spec::ModelConfig& config, const TensorPass& pass) {
  const auto for_each_adapter = [&](const BlockProduct& product, auto&& visit) {
    for (const std::string_view part : product.parts) {
      if (spec::has_adapter(pass.lora, config.architecture, part)) visit();
    }
  };
  const bool again = pass.training && pass.recompute == spec::Recompute::full;
  for (const BlockProduct& product : kBlock) {
    for (int i = 0; i < (again ? 2 : 1); ++i) {
      forward(count, product.cut, config.hidden_size);
      for_each_adapter(product, [&] { adapter_forward(count, product.cut, pass.lora.rank); });
    }
    if (!pass.training) continue;
    backward_input(count, product.cut, config.hidden_size);
    if (pass.lora.rank == 0) backward_weight(count, config.hidden_size);
    for_each_adapter(product, [&] { adapter_backward(count, product.cut, pass.lora.rank); });
  }
}

}  // namespace

std::vector<Message> tensor_messages(const spec::ModelConfig& config, const TensorPass& pass) {
  Count count(pass);
  if (pass.ranks == 1) return {};
  if (pass.embeds) {
    count.sum(config.hidden_size);
    if (pass.training && pass.lora.rank == 0) count.gather(config.hidden_size);
  }
  for (int64_t layer = 0; layer < pass.num_layers; ++layer) block(count, config, pass);
  if (pass.has_head) {
    count.gather(config.hidden_size);
    count.softmax(config.vocab_size);
    if (pass.training) count.sum(config.hidden_size);
  }
  return std::move(count.messages);
}

StepTraffic tensor_traffic(const spec::ModelConfig& config, const TensorPass& pass, int64_t rank) {
  StepTraffic traffic;
  for (const Message& message : tensor_messages(config, pass)) {
    traffic.add(message, pass.ranks, rank);
  }
  return traffic;
}

}  // namespace tessera::account
