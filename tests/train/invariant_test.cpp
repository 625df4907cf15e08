// numerics = "invariant": the same bits whatever the layout, where the fast mode is only close.

#include <gtest/gtest.h>

#include <cmath>

#include "account/parameter_table.h"
#include "kernels/device.h"
#include "toy_run.h"
#include "train/run_data.h"
#include "train/thread_ranks.h"
#include "train/train_step.h"
#include "train/trainer.h"
#include "train/verify.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

class InvariantTest : public testing::Test {
 protected:
  InvariantTest() : config_(toy_config(write_toy_text(folder_.path() / "toy.jsonl"))) {
    config_.training.numerics = spec::Numerics::invariant;
    config_.training.global_batch_size = 11;
    config_.training.max_norm = 0.5;
    config_.data.seq_len = 29;
    config_.model.dropout = 0.1;
  }

  /// A few steps of the config in a layout, each rank a team of `threads`.
  VerifyRecord record(const spec::RunConfig& config, const std::string& layout_text,
                      int threads = 1) {
    const RunData data = load_run_data(config);
    const spec::RunConfig base = spec::resolved(with_vocabulary(config, *data.tokenizer), 1);
    const spec::LayoutList list = spec::parse_layouts(layout_text);
    EXPECT_TRUE(list.violations.empty()) << layout_text;
    const spec::Layout& layout = list.layouts.at(0);
    const int ranks = static_cast<int>(layout.dp);
    VerifyRecord result;
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      kernels::set_num_threads(threads);
      VerifyRecord mine = record_run(spec::with_layout(base, layout), *data.training, comm, 4);
      if (comm.rank() == 0) result = std::move(mine);
    });
    return result;
  }

  void expect_the_same_bits(const spec::RunConfig& config, const std::string& layout,
                            int threads = 1) {
    const VerifyRecord one = record(config, "dp=1");
    const VerifyRecord other = record(config, layout, threads);
    EXPECT_EQ(one.losses, other.losses) << layout;
    EXPECT_EQ(one.grad_norms, other.grad_norms) << layout;
    EXPECT_EQ(one.weights, other.weights) << layout;
  }

  TestFolder folder_;
  spec::RunConfig config_;
};

TEST_F(InvariantTest, EveryCutOfTheBatchHasTheBitsOfOneRank) {
  for (const char* layout : {"dp=1,micro_batch=1", "dp=1,micro_batch=4", "dp=1,accumulate=3",
                             "dp=2", "dp=2,accumulate=4", "dp=3", "dp=3,micro_batch=2", "dp=4",
                             "dp=4,accumulate=2", "dp=5", "dp=7,micro_batch=1"}) {
    expect_the_same_bits(config_, layout);
  }
}

TEST_F(InvariantTest, SoHasEveryNumberOfThreads) {
  // Wide enough that threads are used, and that weights have more than one tile.
  config_.model.hidden_size = 128;
  config_.model.intermediate_size = 700;
  for (const int threads : {2, 3}) {
    expect_the_same_bits(config_, "dp=1", threads);
    expect_the_same_bits(config_, "dp=2,micro_batch=3", threads);
  }
}

TEST_F(InvariantTest, SoHasRecomputation) {
  const VerifyRecord kept = record(config_, "dp=1");
  for (const auto mode : {spec::Recompute::selective, spec::Recompute::full}) {
    spec::RunConfig again = config_;
    again.activation_checkpoint.mode = mode;
    const VerifyRecord recomputed = record(again, "dp=3,micro_batch=2");
    EXPECT_EQ(kept.losses, recomputed.losses);
    EXPECT_EQ(kept.weights, recomputed.weights);
  }
}

TEST_F(InvariantTest, HoldsInBf16) {
  config_.training.precision = spec::Precision::bf16;
  expect_the_same_bits(config_, "dp=3,micro_batch=2");
  expect_the_same_bits(config_, "dp=2,accumulate=3", 2);
}

TEST_F(InvariantTest, HoldsForAHeadOfItsOwnAndLogitsInPieces) {
  config_.model.tie_word_embeddings = false;
  config_.model.vocab_size = 1'200'003;  // 13 rows at once: neither a sequence nor a divisor of one
  config_.model.hidden_size = 8;
  config_.model.num_hidden_layers = 1;
  config_.model.num_attention_heads = 2;
  config_.training.global_batch_size = 4;
  expect_the_same_bits(config_, "dp=3,micro_batch=1");
}

TEST_F(InvariantTest, HoldsForTheLlamaFamilyWithNormsOfHeads) {
  config_.model = toy_llama();
  config_.model.dropout = 0.1;
  config_.model.qk_norm = true;
  config_.model.attention_bias = spec::AttentionBias::all;
  config_.model.mlp_bias = true;
  expect_the_same_bits(config_, "dp=3,micro_batch=2");
  config_.activation_checkpoint.mode = spec::Recompute::selective;
  expect_the_same_bits(config_, "dp=2,accumulate=4", 2);
  config_.training.precision = spec::Precision::bf16;
  expect_the_same_bits(config_, "dp=1,micro_batch=1");
}

TEST_F(InvariantTest, HoldsForAdapters) {
  config_.lora.rank = 4;
  config_.lora.targets = {"all-linear"};
  config_.optimizer.lr = 1e-2;
  expect_the_same_bits(config_, "dp=3,micro_batch=2");
  config_.training.precision = spec::Precision::bf16;
  expect_the_same_bits(config_, "dp=2,accumulate=3", 2);
}

TEST_F(InvariantTest, IsCloseToTheFastMode) {
  spec::RunConfig fast = config_;
  fast.training.numerics = spec::Numerics::fast;
  const VerifyRecord a = record(fast, "dp=1");
  const VerifyRecord b = record(config_, "dp=1");
  std::vector<std::string> names;
  const RunData data = load_run_data(config_);
  for (const auto& parameter :
       account::parameter_table(with_vocabulary(config_, *data.tokenizer).model).parameters) {
    names.push_back(parameter.name);
  }
  const LayoutVerdict verdict = compare(a, b, names, Tolerance{});
  EXPECT_TRUE(verdict.ok) << verdict.why;
  EXPECT_FALSE(verdict.bitwise);
}

TEST_F(InvariantTest, AResumeAtAnotherRankCountEndsInTheSameWeights) {
  Observer observer;
  const auto run = [&](const fs::path& folder, int ranks, Existing existing) {
    TrainOptions options;
    options.config = config_;
    options.config.checkpoint.interval = 3;
    options.config.checkpoint.keep_latest_k = 0;
    options.run_dir = folder;
    options.existing = existing;
    Summary summary;
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      Summary mine = train(options, comm, observer);
      if (comm.rank() == 0) summary = std::move(mine);
    });
    return summary;
  };
  const Summary whole = run(folder_.path() / "whole", 1, Existing::refuse);
  run(folder_.path() / "parts", 3, Existing::refuse);
  fs::remove_all(folder_.path() / "parts/checkpoints/step-00000006");
  const Summary resumed = run(folder_.path() / "parts", 2, Existing::resume);
  EXPECT_EQ(resumed.weights_hash, whole.weights_hash);
  EXPECT_EQ(resumed.validation_loss, whole.validation_loss);
}

TEST_F(InvariantTest, HasNoFiniteNormForAGradientBeyondTheRangeOfItsSums) {
  const RunData data = load_run_data(config_);
  const spec::RunConfig config = spec::resolved(with_vocabulary(config_, *data.tokenizer), 1);
  parallel::MeshGroups alone;
  core::MemoryLedger ledger;
  parallel::Replica replica(config, alone, ledger, {});
  const BatchLoader loader(*data.training, config.training, 1, 0, SampleOrigin{});
  const std::vector<data::Batch> batches = loader.micro_batches(1);
  const auto norm_at = [&](float grad_scale) {
    replica.begin_step();
    replica.accumulate(as_micro_batches(batches), grad_scale, 1);
    replica.reduce_gradients();
    return replica.gradient_norm();
  };
  EXPECT_TRUE(std::isfinite(norm_at(1.0f)));
  EXPECT_TRUE(std::isinf(norm_at(1e6f)));
  EXPECT_TRUE(std::isfinite(norm_at(1.0f)));
}

}  // namespace
}  // namespace tessera::train
