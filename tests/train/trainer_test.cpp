#include "train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/communicator.h"
#include "core/error.h"
#include "formats/safetensors.h"
#include "kernels/elementwise.h"
#include "toy_run.h"
#include "train/checkpoint.h"
#include "train/thread_ranks.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public testing::Test {
 protected:
  TrainOptions options(const std::string& run) const {
    TrainOptions options;
    options.config = toy_config(text_);
    options.run_dir = folder_.path() / run;
    return options;
  }

  Summary run(const TrainOptions& options, int ranks = 1) {
    Summary summary;
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      Summary mine = train(options, comm, observer_);
      if (comm.rank() == 0) summary = std::move(mine);
    });
    return summary;
  }

  std::vector<nlohmann::json> metrics(const std::string& run) const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(folder_.path() / run / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TestFolder folder_;
  std::string text_ = write_toy_text(folder_.path() / "toy.jsonl");
  Observer observer_;
};

TEST_F(TrainerTest, LowersTheLossAndWritesTheRunFolder) {
  TrainOptions train_options = options("run");
  train_options.config.training.steps = 30;
  const Summary summary = run(train_options);
  EXPECT_LT(summary.loss_last, summary.loss_first - 0.5);
  EXPECT_TRUE(summary.has_validation);
  for (const char* name : {"config.toml", "plan.json", "metrics.jsonl", "summary.json",
                           "tokenizer.json", "checkpoints/step-00000030/manifest.json"}) {
    EXPECT_TRUE(fs::exists(folder_.path() / "run" / name)) << name;
  }
  EXPECT_EQ(metrics("run").size(), 30u);
}

TEST_F(TrainerTest, RepeatsARunToTheBit) {
  EXPECT_EQ(run(options("a"), 3).weights_hash, run(options("b"), 3).weights_hash);
}

TEST_F(TrainerTest, PredictsMemoryAndTrafficToTheByteOnEveryRank) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16}) {
    for (const auto recompute : {spec::Recompute::none, spec::Recompute::full}) {
      for (const int ranks : {1, 2, 5}) {
        TrainOptions train_options = options("run");
        train_options.existing = Existing::overwrite;
        train_options.config.training.precision = precision;
        train_options.config.training.micro_batch_size = 2;
        train_options.config.training.steps = 2;
        train_options.config.activation_checkpoint.mode = recompute;
        const Summary summary = run(train_options, ranks);
        EXPECT_EQ(summary.memory_measured, summary.predicted.memory_bytes) << ranks;
        EXPECT_EQ(summary.bytes_measured(), summary.predicted.bytes_per_step) << ranks;
      }
    }
  }
}

TEST_F(TrainerTest, TrainsALlamaWithEveryOptionAsPredicted) {
  TrainOptions base = options("base");
  base.config.model = toy_llama();
  base.config.model.qk_norm = true;
  base.config.model.attention_bias = spec::AttentionBias::qkv;
  base.config.model.dropout = 0.1;
  base.config.training.micro_batch_size = 2;
  base.config.checkpoint.interval = 3;
  base.config.checkpoint.keep_latest_k = 0;
  const Summary trained = run(base);
  EXPECT_LT(trained.loss_last, trained.loss_first);
  for (const auto mode : {spec::Recompute::none, spec::Recompute::selective}) {
    for (const int64_t rank : {0, 4}) {
      TrainOptions each = base;
      each.run_dir = folder_.path() / "each";
      each.existing = Existing::overwrite;
      each.config.activation_checkpoint.mode = mode;
      if (rank > 0) each.config.training.load = base.run_dir.string();
      each.config.lora.rank = rank;
      const Summary summary = run(each);
      EXPECT_EQ(summary.memory_measured, summary.predicted.memory_bytes) << rank;
      if (rank > 0) continue;
      EXPECT_EQ(summary.weights_hash, trained.weights_hash) << "recomputation changed a bit";

      fs::remove_all(each.run_dir / "checkpoints/step-00000006");
      each.existing = Existing::resume;
      EXPECT_EQ(run(each).weights_hash, trained.weights_hash) << "a resumed run went elsewhere";
    }
  }
}

TEST_F(TrainerTest, TrainsAdaptersOfABaseThatDoesNotMove) {
  TrainOptions base = options("base");
  base.config.training.steps = 3;
  run(base);
  TrainOptions adapted = options("adapted");
  adapted.config.training.load = (folder_.path() / "base").string();
  adapted.config.lora.rank = 4;
  adapted.config.optimizer.lr = 1e-2;
  adapted.config.checkpoint.interval = 3;
  adapted.config.checkpoint.keep_latest_k = 0;
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16}) {
    adapted.existing = Existing::overwrite;
    adapted.config.training.precision = precision;
    const Summary summary = run(adapted, 2);
    EXPECT_LT(summary.loss_last, summary.loss_first);
    EXPECT_EQ(summary.memory_measured, summary.predicted.memory_bytes);
    EXPECT_EQ(summary.bytes_measured(), summary.predicted.bytes_per_step);

    fs::remove_all(folder_.path() / "adapted/checkpoints/step-00000006");
    adapted.existing = Existing::resume;
    EXPECT_EQ(run(adapted, 2).weights_hash, summary.weights_hash);
  }
  TrainOptions scaled = adapted;
  scaled.config.lora.alpha = 64;
  scaled.config.training.steps = 9;
  EXPECT_THROW(run(scaled, 2), core::ConfigError) << "adapters of another alpha";
  TrainOptions plain = options("plain");
  plain.config.training.load = (folder_.path() / "adapted").string();
  EXPECT_THROW(run(plain), core::ConfigError) << "adapters for a config without";
  const auto weights = [&](const char* run, int step, const char* name) {
    const std::string folder =
        fmt::format("{}/{}/checkpoints/step-{:08d}/rank-0000", folder_.path().string(), run, step);
    for (const char* rank : {"0", "1"}) {
      if (!fs::exists(folder + rank + ".safetensors")) continue;
      const formats::SafetensorsFile file(folder + rank + ".safetensors");
      const formats::SafetensorsEntry* entry = file.find(name);
      if (entry == nullptr) continue;
      std::vector<float> values(static_cast<size_t>(entry->shape.elements()));
      const core::View out{values.data(), core::DType::f32, entry->shape};
      kernels::cast(out, core::ConstView{file.data(*entry), entry->dtype, entry->shape});
      return values;
    }
    return std::vector<float>{};
  };
  const std::vector<float> before = weights("base", 3, "model.layers.0.mlp.up_proj.weight");
  const std::vector<float> after = weights("adapted", 6, "model.layers.0.mlp.up_proj.weight");
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(static_cast<float>(core::bf16(before[i])), after[i]);
  }
}

TEST_F(TrainerTest, RefusesWeightsThatFitAndWereTrainedAsAnotherModel) {
  TrainOptions first = options("first");
  first.config.training.steps = 2;
  run(first);
  TrainOptions other = options("other");
  other.config.training.load = (folder_.path() / "first").string();
  other.config.model.norm_eps = 1e-2;
  EXPECT_THROW(run(other), core::ConfigError);
  other.config.model.norm_eps = 1e-5;
  other.config.model.num_attention_heads = 2;
  EXPECT_THROW(run(other), core::ConfigError);
  other.config.model.num_attention_heads = 4;
  other.config.model.dropout = 0.1;
  EXPECT_NO_THROW(run(other));
  first.existing = Existing::resume;
  first.config.training.steps = 3;
  first.config.model.num_attention_heads = 8;
  EXPECT_THROW(run(first), core::ConfigError);
}

TEST_F(TrainerTest, RefusesARunThatTheMachineHasNoMemoryForBeforeItAllocatesAny) {
  TrainOptions huge = options("huge");
  huge.config.model = spec::find_model_preset("llama-3-405b")->config;
  huge.config.data.seq_len = 16;
  EXPECT_THROW(run(huge), core::MemoryError);
  EXPECT_FALSE(fs::exists(folder_.path() / "huge"));
}

TEST_F(TrainerTest, PredictsTheWiderGradientsOfTheInvariantMode) {
  TrainOptions train_options = options("run");
  train_options.config.training.numerics = spec::Numerics::invariant;
  train_options.config.training.micro_batch_size = 2;
  train_options.config.training.steps = 2;
  for (const int ranks : {1, 3}) {
    train_options.existing = Existing::overwrite;
    const Summary summary = run(train_options, ranks);
    EXPECT_EQ(summary.memory_measured, summary.predicted.memory_bytes) << ranks;
    EXPECT_EQ(summary.bytes_measured(), summary.predicted.bytes_per_step) << ranks;
  }
}

TEST_F(TrainerTest, ResumesAtAnotherRankCountWithTheSamplesOfTheUninterruptedRun) {
  TrainOptions whole = options("whole");
  whole.config.checkpoint.interval = 3;
  const Summary uninterrupted = run(whole, 2);

  TrainOptions first = options("parts");
  first.config.checkpoint.interval = 3;
  first.config.checkpoint.keep_latest_k = 0;
  run(first, 2);
  fs::remove_all(folder_.path() / "parts/checkpoints/step-00000006");
  TrainOptions second = first;
  second.existing = Existing::resume;
  const Summary resumed = run(second, 2);
  EXPECT_EQ(resumed.weights_hash, uninterrupted.weights_hash);
  EXPECT_EQ(metrics("parts").size(), 6u);

  fs::remove_all(folder_.path() / "parts/checkpoints/step-00000006");
  const Summary elsewhere = run(second, 3);
  EXPECT_NEAR(elsewhere.loss_last, uninterrupted.loss_last, 5e-7 * uninterrupted.loss_last);
}

TEST_F(TrainerTest, OpensANewEventFileForEachPartOfARun) {
  TrainOptions train_options = options("run");
  train_options.config.metrics.tensorboard = true;
  train_options.config.checkpoint.interval = 3;
  train_options.config.checkpoint.keep_latest_k = 0;
  run(train_options, 2);
  const fs::path events = folder_.path() / "run/tensorboard";
  const auto count = [&] {
    return std::distance(fs::directory_iterator(events), fs::directory_iterator());
  };
  EXPECT_EQ(count(), 1);
  train_options.existing = Existing::resume;
  run(train_options);  // nothing to do
  EXPECT_EQ(count(), 1);
  fs::remove_all(folder_.path() / "run/checkpoints/step-00000006");
  run(train_options);
  EXPECT_EQ(count(), 2);
  train_options.existing = Existing::overwrite;
  run(train_options);
  EXPECT_EQ(count(), 1);
}

TEST_F(TrainerTest, WritesNoEventFileUnasked) {
  run(options("run"));
  EXPECT_FALSE(fs::exists(folder_.path() / "run/tensorboard"));
}

TEST_F(TrainerTest, PassesOverADamagedCheckpointAndSaysSo) {
  TrainOptions train_options = options("run");
  train_options.config.checkpoint.interval = 3;
  train_options.config.checkpoint.keep_latest_k = 0;
  run(train_options);
  const fs::path last = folder_.path() / "run/checkpoints/step-00000006";
  for (const auto& entry : fs::directory_iterator(last)) {
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), 100);
  }
  std::string said;
  observer_.on_notice = [&](const std::string& text) { said += text + "\n"; };
  train_options.existing = Existing::resume;
  run(train_options);
  EXPECT_NE(said.find("step-00000006"), std::string::npos) << said;
  EXPECT_NE(said.find("step-00000003 (step 3"), std::string::npos) << said;
  EXPECT_NO_THROW(verify_checkpoint(last));
}

TEST_F(TrainerTest, RefusesAnExistingRunFolder) {
  run(options("run"));
  EXPECT_THROW(run(options("run")), core::ConfigError);
}

TEST_F(TrainerTest, RefusesRanksWithDifferentConfigs) {
  const TrainOptions one = options("run");
  TrainOptions other = one;
  other.config.training.seed = 99;
  EXPECT_THROW(run_thread_ranks({2, 2}, {},
                                [&](comm::Communicator& comm) {
                                  train(comm.rank() == 0 ? one : other, comm, observer_);
                                }),
               core::ConfigError);
}

TEST_F(TrainerTest, RefusesToOverwriteAFolderThatIsNoRun) {
  fs::create_directories(folder_.path() / "home");
  std::ofstream(folder_.path() / "home/precious.txt") << "mine";
  TrainOptions train_options = options("home");
  train_options.existing = Existing::overwrite;
  EXPECT_THROW(run(train_options), core::ConfigError);
  EXPECT_TRUE(fs::exists(folder_.path() / "home/precious.txt"));
}

TEST_F(TrainerTest, HaltsOnALossThatIsNotANumberNamingTheStep) {
  TrainOptions train_options = options("run");
  train_options.config.optimizer.lr = 1e30;
  train_options.config.training.max_norm = 0;
  try {
    run(train_options, 2);
    FAIL() << "trained on";
  } catch (const core::RunError& error) {
    EXPECT_NE(std::string(error.what()).find("step"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank"), std::string::npos) << error.what();
  }
}

TEST_F(TrainerTest, StopsAfterTheStepUnderWayWithACheckpointWhenAsked) {
  std::atomic<bool> stop{false};
  TrainOptions train_options = options("run");
  train_options.config.training.steps = 1000;
  train_options.stop = &stop;
  observer_.on_step = [&](const StepRecord& record) { stop = record.step == 4; };
  const Summary summary = run(train_options, 2);
  EXPECT_TRUE(summary.stopped_early);
  EXPECT_EQ(summary.last_checkpoint, (folder_.path() / "run/checkpoints/step-00000005").string());
  EXPECT_NO_THROW(verify_checkpoint(summary.last_checkpoint));
}

TEST_F(TrainerTest, TrainsWithAGlobalBatchThatDividesNeitherByRanksNorMicroBatches) {
  TrainOptions one = options("one");
  one.config.training.global_batch_size = 11;
  TrainOptions four = one;
  four.run_dir = folder_.path() / "four";
  four.config.training.micro_batch_size = 2;
  const Summary alone = run(one);
  const Summary spread = run(four, 4);
  EXPECT_NEAR(spread.loss_last, alone.loss_last, 5e-7 * alone.loss_last);
}

}  // namespace
}  // namespace tessera::train
