// What account predicts of the activation arena, held against what the ledger counts, over shapes
// that make each of the candidates for the peak win.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "account/activations.h"
#include "account/memory.h"
#include "comm/communicator.h"
#include "kernels/attention.h"
#include "kernels/device.h"
#include "parallel/replica.h"

namespace tessera::train {
namespace {

using core::Category;
using core::ConstView;
using core::DType;

struct Case {
  const char* about;
  spec::ModelConfig model;
  int64_t batch = 2;
  int64_t seq_len = 16;
  spec::Precision precision = spec::Precision::fp32;
  spec::Recompute recompute = spec::Recompute::none;
  spec::Numerics numerics = spec::Numerics::fast;
  spec::LoraConfig lora = {};
};

spec::ModelConfig model_of(int64_t width, int64_t layers, int64_t heads, int64_t vocab_size) {
  spec::ModelConfig config;
  config.hidden_size = width;
  config.num_hidden_layers = layers;
  config.num_attention_heads = heads;
  config.vocab_size = vocab_size;
  config.max_position_embeddings = 2048;
  return spec::resolved(config);
}

std::vector<Case> cases() {
  spec::ModelConfig grouped = model_of(40, 2, 4, 97);
  grouped.num_key_value_heads = 2;
  grouped.head_dim = 24;
  grouped.intermediate_size = 56;
  spec::ModelConfig dropout = model_of(32, 2, 2, 97);
  dropout.dropout = 0.1;
  spec::ModelConfig untied = model_of(32, 1, 2, 1000);
  untied.tie_word_embeddings = false;
  spec::ModelConfig llama = spec::family_defaults(spec::Architecture::llama);
  llama.hidden_size = 40;
  llama.intermediate_size = 72;
  llama.num_hidden_layers = 2;
  llama.num_attention_heads = 4;
  llama.num_key_value_heads = 2;
  llama.head_dim = 14;
  llama.vocab_size = 97;
  llama = spec::resolved(llama);
  spec::ModelConfig normed = llama;
  normed.qk_norm = true;
  normed.dropout = 0.1;
  spec::ModelConfig biased = llama;
  biased.attention_bias = spec::AttentionBias::all;
  biased.mlp_bias = true;
  biased.tie_word_embeddings = true;
  spec::ModelConfig wide = llama;
  wide.intermediate_size = 12000;
  const auto fp32 = spec::Precision::fp32;
  const auto bf16 = spec::Precision::bf16;
  const auto none = spec::Recompute::none;
  const auto selective = spec::Recompute::selective;
  const auto full = spec::Recompute::full;
  const auto apart = spec::Numerics::invariant;
  // So wide that what adapters need is the peak, product by product.
  const auto adapters = [](std::vector<std::string> targets, int64_t rank) {
    spec::LoraConfig lora;
    lora.rank = rank;
    lora.targets = std::move(targets);
    return lora;
  };
  const auto fast = spec::Numerics::fast;
  return {
      {"adapters of a usual rank", llama, 3, 17, bf16, none, fast, adapters({"all-linear"}, 8)},
      {"adapters with recompute", dropout, 2, 16, fp32, full, fast, adapters({"all-linear"}, 8)},
      {"adapters, sequences apart", normed, 3, 17, bf16, selective, apart,
       adapters({"all-linear"}, 8)},
      {"wide adapters of q", llama, 3, 17, fp32, none, fast, adapters({"q_proj"}, 5000)},
      {"wide adapters of v", llama, 3, 17, bf16, full, fast, adapters({"v_proj"}, 5000)},
      {"wide adapters of o", llama, 3, 17, fp32, none, fast, adapters({"o_proj"}, 5000)},
      {"wide adapters of gate", llama, 3, 17, fp32, none, fast, adapters({"gate_proj"}, 5000)},
      {"wide adapters of down", wide, 3, 17, fp32, none, fast, adapters({"down_proj"}, 5000)},
      {"wide adapters of gpt2", dropout, 3, 17, fp32, none, fast, adapters({"up_proj"}, 5000)},
      {"wide adapters of all", normed, 3, 17, fp32, none, fast, adapters({"all-linear"}, 5000)},
      {"a small model", model_of(32, 2, 4, 256)},
      {"sizes that divide by nothing", model_of(36, 3, 3, 101), 3, 17},
      {"grouped heads of a width of their own", grouped},
      {"dropout", dropout},
      {"dropout and recompute", dropout, 2, 16, spec::Precision::fp32, full},
      {"bf16", model_of(64, 3, 2, 300), 2, 33, bf16},
      {"bf16 and recompute", model_of(64, 3, 2, 300), 2, 33, bf16, full},
      {"a head of its own that is the peak", untied, 4, 32},
      {"logits in several chunks", model_of(16, 1, 1, 60001), 3, 230, bf16},
      {"logits of whole sequences", model_of(16, 1, 1, 60001), 5, 170, bf16, none, apart},
      {"logits of pieces of sequences", model_of(16, 1, 1, 60001), 2, 1100, bf16, none, apart},
      {"sequences apart", model_of(36, 3, 3, 101), 3, 17, spec::Precision::fp32, full, apart},
      {"long sequences, where attention's scratch counts", model_of(16, 1, 4, 50), 1, 512},
      {"one token", model_of(16, 1, 1, 50), 1, 1},
      {"selective recompute", dropout, 2, 16, fp32, selective},
      {"llama", llama, 3, 17},
      {"llama in bf16 with selective recompute", llama, 3, 17, bf16, selective},
      {"llama in bf16 with recompute", llama, 3, 17, bf16, full},
      {"llama with biases", biased, 2, 16, fp32, selective},
      {"llama whose MLP is the peak", wide, 2, 16},
      {"norms of heads and dropout", normed, 3, 17},
      {"norms of heads, dropout and selective recompute", normed, 3, 17, bf16, selective},
      {"norms of heads, sequences apart", normed, 3, 17, fp32, none, apart},
  };
}

account::ActivationSizes sizes_of(const Case& c) {
  kernels::AttentionShape shape;
  shape.batch = c.batch;
  shape.seq_len = c.seq_len;
  shape.num_heads = c.model.num_attention_heads;
  shape.num_kv_heads = c.model.num_key_value_heads;
  shape.head_dim = c.model.head_dim;
  account::ActivationSizes sizes;
  sizes.batch = c.batch;
  sizes.seq_len = c.seq_len;
  sizes.dtype = c.precision == spec::Precision::bf16 ? DType::bf16 : DType::f32;
  sizes.recompute = c.recompute;
  sizes.numerics = c.numerics;
  sizes.lora = c.lora;
  sizes.attention_scratch_bytes = kernels::attention_scratch_bytes(shape, kernels::num_threads());
  return sizes;
}

/// A model in training, and one micro-batch of it.
class Trial {
 public:
  explicit Trial(const Case& c)
      : tokens_(static_cast<size_t>(c.batch * c.seq_len), 1),
        samples_(static_cast<size_t>(c.batch), 0),
        shape_{c.batch, c.seq_len} {
    spec::RunConfig config;
    config.model = c.model;
    config.training.precision = c.precision;
    config.training.numerics = c.numerics;
    config.lora = c.lora;
    config.data.seq_len = c.seq_len;
    config.training.micro_batch_size = config.training.global_batch_size = c.batch;
    config.activation_checkpoint.mode = c.recompute;
    replica_ = std::make_unique<parallel::Replica>(spec::resolved(config, 1), alone_, ledger_,
                                                   parallel::ArenaBytes{});
  }
  int64_t training_peak() {
    replica_->begin_step();
    replica_->accumulate({batch()}, 1.0f, 1);
    return ledger_.peak(Category::activations);
  }
  int64_t evaluation_peak() {
    replica_->evaluate({batch()}, 1);
    return ledger_.peak(Category::activations);
  }
  int64_t state(Category category) const { return ledger_.peak(category); }

 private:
  model::MicroBatch batch() const {
    model::MicroBatch batch;
    batch.inputs = batch.labels = ConstView{tokens_.data(), DType::i32, shape_};
    batch.samples = ConstView{samples_.data(), DType::i64, {shape_[0]}};
    return batch;
  }

  core::MemoryLedger ledger_;
  parallel::MeshGroups alone_;
  std::vector<int32_t> tokens_;
  std::vector<int64_t> samples_;
  core::Shape shape_;
  std::unique_ptr<parallel::Replica> replica_;
};

TEST(TrainingActivationBytes, AreWhatTheLedgerCounts) {
  for (const Case& c : cases()) {
    EXPECT_EQ(Trial(c).training_peak(), account::training_activation_bytes(c.model, sizes_of(c)))
        << c.about;
  }
}

TEST(EvaluationActivationBytes, AreWhatTheLedgerCounts) {
  for (const Case& c : cases()) {
    EXPECT_EQ(Trial(c).evaluation_peak(),
              account::evaluation_activation_bytes(c.model, sizes_of(c)))
        << c.about;
  }
}

TEST(StateBytes, AreWhatTheLedgerCounts) {
  for (const Case& c : cases()) {
    const Trial trial(c);
    spec::TrainingConfig training;
    training.precision = c.precision;
    training.numerics = c.numerics;
    const account::StateBytes expected =
        account::state_bytes(account::parameter_table(c.model, c.lora), training);
    EXPECT_EQ(trial.state(Category::weights), expected.weights) << c.about;
    EXPECT_EQ(trial.state(Category::gradients), expected.gradients) << c.about;
    EXPECT_EQ(trial.state(Category::optimizer), expected.optimizer) << c.about;
  }
}

}  // namespace
}  // namespace tessera::train
