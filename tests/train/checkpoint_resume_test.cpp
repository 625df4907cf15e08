// Runs that change their layout on the way are the run that did not: in numerics = "invariant" to
// the last bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "toy_run.h"
#include "train/checkpoint.h"
#include "train/convert.h"
#include "train/run_folder.h"
#include "train/start_weights.h"
#include "train/thread_ranks.h"
#include "train/trainer.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct Layout {
  int ranks = 1;
  int64_t zero = 0;
  int64_t shard = 0;  ///< 0: all ranks
};

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() : config_(toy_config(write_toy_text(folder_.path() / "toy.jsonl"))) {
    config_.training.numerics = spec::Numerics::invariant;
    config_.training.global_batch_size = 11;
    config_.training.micro_batch_size = 2;
    config_.training.max_norm = 0.5;
    config_.data.seq_len = 29;
    config_.model.hidden_size = 20;
    config_.model.dropout = 0.1;
    config_.lr_scheduler.decay = spec::Decay::constant;  // whatever the number of steps
    config_.checkpoint.interval = 3;
    config_.checkpoint.keep_latest_k = 0;
  }

  Summary run(const std::string& name, const Layout& layout, int64_t steps,
              Existing existing = Existing::refuse) {
    TrainOptions options;
    options.config = config_;
    options.config.training.steps = steps;
    options.config.parallelism.zero_stage = layout.zero;
    if (layout.shard > 0) options.config.parallelism.shard_degree = layout.shard;
    options.run_dir = folder_.path() / name;
    options.existing = existing;
    Summary summary;
    run_thread_ranks({layout.ranks, layout.ranks}, {}, [&](comm::Communicator& comm) {
      Summary mine = train(options, comm, observer_);
      if (comm.rank() == 0) summary = std::move(mine);
    });
    return summary;
  }
  fs::path checkpoint(const std::string& name, int64_t step) const {
    return folder_.path() / name / "checkpoints" / ("step-0000000" + std::to_string(step));
  }

  TestFolder folder_;
  spec::RunConfig config_;
  Observer observer_;
};

TEST_F(ResumeTest, EveryLayoutEndsWithTheHashOfOneRank) {
  const std::string alone = run("alone", {1}, 3).weights_hash;
  int number = 0;
  for (const Layout& layout : {Layout{2, 0}, Layout{2, 1}, Layout{2, 2}, Layout{2, 3}, Layout{3, 2},
                               Layout{4, 3, 2}, Layout{4, 1, 2}, Layout{6, 2, 3}, Layout{7, 3}}) {
    const std::string name = "run" + std::to_string(number++);
    EXPECT_EQ(run(name, layout, 3).weights_hash, alone)
        << layout.ranks << " ranks, stage " << layout.zero << ", shards of " << layout.shard;
  }
}

TEST_F(ResumeTest, ARunThatChangesItsLayoutIsTheRunThatDidNot) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16}) {
    config_.training.precision = precision;
    const std::string prefix = precision == spec::Precision::fp32 ? "fp32" : "bf16";
    const std::string whole = run(prefix + "whole", {1}, 6).weights_hash;
    const std::pair<Layout, Layout> changes[] = {{{2, 3}, {3, 1}}, {{3, 1}, {1}},
                                                 {{1}, {3, 3}},    {{2, 2}, {5, 2}},
                                                 {{4, 3, 2}, {2}}, {{3, 0}, {4, 1, 2}}};
    int number = 0;
    for (const auto& [before, after] : changes) {
      const std::string name = prefix + std::to_string(number++);
      run(name, before, 3);
      const Summary summary = run(name, after, 6, Existing::resume);
      EXPECT_EQ(summary.weights_hash, whole) << name;
      EXPECT_EQ(summary.memory_measured, summary.predicted.memory_bytes) << name;
    }
  }
}

TEST_F(ResumeTest, SoIsARunOfAdapters) {
  run("base", {2, 3}, 3);
  config_.training.load = (folder_.path() / "base").string();
  config_.lora.rank = 3;
  config_.optimizer.lr = 1e-2;
  const std::string whole = run("whole", {1}, 6).weights_hash;
  int number = 0;
  for (const auto& [before, after] :
       {std::pair<Layout, Layout>{{2, 3}, {3, 1}}, {{3, 2}, {2, 3}}, {{4, 3, 2}, {3, 0}}}) {
    const std::string name = "adapted" + std::to_string(number++);
    run(name, before, 3);
    EXPECT_EQ(run(name, after, 6, Existing::resume).weights_hash, whole) << name;
  }
}

TEST_F(ResumeTest, WeightsToStartFromAreTheSameInEveryLayout) {
  run("base", {3, 3}, 3);
  config_.training.load = (folder_.path() / "base").string();
  const std::string alone = run("alone", {1}, 3).weights_hash;
  EXPECT_EQ(run("two", {2, 2}, 3).weights_hash, alone);
  EXPECT_EQ(run("three", {3, 3}, 3).weights_hash, alone);
}

TEST_F(ResumeTest, OthersGetTheSameFilesFromEveryLayout) {
  for (const int64_t lora_rank : {0, 3}) {
    config_.lora.rank = lora_rank;
    const auto files_of = [&](const std::string& name, const Layout& layout) {
      run(name, layout, 3);
      const WeightsPath weights = find_weights(folder_.path() / name);
      Conversion to;
      to.output = folder_.path() / (name + "-hf");
      convert_to_hf(weights, to);
      std::string files = read_file(to.output / "model.safetensors");
      if (lora_rank == 0) return files;
      to.output = folder_.path() / (name + "-peft");
      convert_to_peft(weights, to);
      return files + read_file(to.output / "adapter_model.safetensors");
    };
    const std::string suffix = std::to_string(lora_rank);
    const std::string alone = files_of("alone" + suffix, {1});
    EXPECT_TRUE(files_of("three" + suffix, {3, 3}) == alone);
    EXPECT_TRUE(files_of("four" + suffix, {4, 2, 2}) == alone);
  }
}

TEST_F(ResumeTest, PassesOverACheckpointOfWhichAShardIsLostOrChanged) {
  const std::string whole = run("run", {3, 3}, 6).weights_hash;
  std::string said;
  observer_.on_notice = [&](const std::string& text) { said += text + "\n"; };
  const fs::path shard = checkpoint("run", 6) / "rank-00001.safetensors";
  {
    std::fstream changed(shard, std::ios::in | std::ios::out | std::ios::binary);
    changed.seekp(-1, std::ios::end);
    changed.put('\x55');
  }
  EXPECT_EQ(run("run", {2, 2}, 6, Existing::resume).weights_hash, whole);
  EXPECT_THAT(said, AllOf(HasSubstr("passing over"), HasSubstr(shard.string()), HasSubstr("model."),
                          HasSubstr("step-00000003 (step 3")));
  said.clear();
  fs::remove(shard);
  EXPECT_EQ(run("run", {3, 1}, 6, Existing::resume).weights_hash, whole);
  EXPECT_THAT(said, AllOf(HasSubstr("passing over"), HasSubstr(shard.string())));
}

TEST_F(ResumeTest, RefusesToBeginAnewWhereEveryCheckpointLacksAShard) {
  run("run", {2, 3}, 3);
  fs::remove(checkpoint("run", 3) / "rank-00001.safetensors");
  try {
    run("run", {2, 3}, 6, Existing::resume);
    FAIL() << "trained on";
  } catch (const core::RunError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no checkpoint"), HasSubstr("rank-00001")));
  }
}

}  // namespace
}  // namespace tessera::train
