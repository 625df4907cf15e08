// Runs that go on in another mesh: checkpoints written by ranks that hold parts of a model are read
// by ranks that hold other parts. In numerics = "invariant", with products cut over as many ranks,
// the run is to the last bit the one that did not change.

#include <gtest/gtest.h>

#include "toy_run.h"
#include "train/checkpoint.h"
#include "train/generate.h"
#include "train/thread_ranks.h"
#include "train/trainer.h"

namespace tessera::train {
namespace {

struct Mesh {
  int64_t tp = 1, pp = 1, dp = 1, zero = 0;
  const char* schedule = "1f1b";
  int64_t v = 1;
  bool sp = false;
  int ranks() const { return static_cast<int>(tp * pp * dp); }
};

std::string text_of(const Mesh& mesh) {
  return "tp " + std::to_string(mesh.tp) + " pp " + std::to_string(mesh.pp) + " dp " +
         std::to_string(mesh.dp) + " zero " + std::to_string(mesh.zero) + " " + mesh.schedule;
}

class MeshResumeTest : public testing::Test {
 protected:
  MeshResumeTest() : config_(toy_config(write_toy_text(folder_.path() / "toy.jsonl"))) {
    config_.training.numerics = spec::Numerics::invariant;
    config_.training.global_batch_size = 8;
    config_.training.micro_batch_size = 2;
    config_.training.max_norm = 0.5;
    config_.data.seq_len = 29;
    config_.model.hidden_size = 20;
    config_.model.dropout = 0.1;
    config_.lr_scheduler.decay = spec::Decay::constant;  // whatever the number of steps
    config_.checkpoint.interval = 4;
  }

  Summary run(const std::string& name, const Mesh& mesh, int64_t steps,
              Existing existing = Existing::refuse) {
    TrainOptions options;
    options.config = config_;
    options.config.training.steps = steps;
    options.config.parallelism.tensor_parallel_degree = mesh.tp;
    options.config.parallelism.pipeline_parallel_degree = mesh.pp;
    options.config.parallelism.data_parallel_degree = mesh.dp;
    options.config.parallelism.zero_stage = mesh.zero;
    options.config.parallelism.pipeline_schedule = mesh.schedule;
    options.config.parallelism.virtual_stages = mesh.v;
    options.config.parallelism.sequence_parallel = mesh.sp;
    options.run_dir = folder_.path() / name;
    options.existing = existing;
    Summary summary;
    run_thread_ranks({mesh.ranks(), mesh.ranks()}, {}, [&](comm::Communicator& comm) {
      Summary mine = train(options, comm, {});
      if (comm.rank() == 0) summary = std::move(mine);
    });
    return summary;
  }

  void expect_unchanged(const std::string& model, const Mesh& whole_in,
                        const std::vector<std::pair<Mesh, Mesh>>& changes) {
    const std::string whole = run(model + "whole", whole_in, 8).weights_hash;
    int number = 0;
    for (const auto& [before, after] : changes) {
      const std::string name = model + std::to_string(number++);
      run(name, before, 4);
      EXPECT_EQ(run(name, after, 8, Existing::resume).weights_hash, whole)
          << model << ": " << text_of(before) << " to " << text_of(after);
    }
  }

  TestFolder folder_;
  spec::RunConfig config_;
};

TEST_F(MeshResumeTest, ARunThatChangesItsMeshIsTheRunThatDidNot) {
  for (const bool llama : {false, true}) {
    if (llama) config_.model = toy_llama();
    const std::string model = llama ? "llama" : "gpt2";
    expect_unchanged(
        model, {}, {{{1, 2, 1}, {1, 1, 2, 3}}, {{1, 2, 2, 1}, {1, 1, 1}}, {{1, 1, 3, 2}, {1, 2}}});
    expect_unchanged(model + "-tp2-", {2, 1, 1},
                     {{{2, 2, 1}, {2, 1, 2, 3}}, {{2, 1, 2, 1}, {2, 2, 1}}, {{2, 2, 2}, {2, 1}}});
  }
}

TEST_F(MeshResumeTest, SoIsOneThatChangesItsScheduleAndPlacement) {
  config_.model.num_hidden_layers = 4;
  expect_unchanged("gpt2", {},
                   {{{1, 2, 1, 0, "interleaved", 2}, {1, 2, 2, 1, "zb-v", 2}},
                    {{1, 2, 2, 3, "zb-v", 2}, {1, 4, 1, 0, "zb-h1"}},
                    {{1, 4, 1, 0, "gpipe"}, {1, 2, 1, 0, "interleaved", 2}}});
}

TEST_F(MeshResumeTest, SoIsOneOfSequenceParallelism) {
  config_.data.seq_len = 28;
  config_.model = toy_llama();
  const Mesh whole{2, 1, 1, 0, "1f1b", 1, true};
  expect_unchanged("llama", whole,
                   {{{2, 2, 1, 0, "1f1b", 1, true}, {2, 1, 2, 2, "1f1b", 1, true}},
                    {{2, 1, 2, 3, "1f1b", 1, true}, {2, 2, 1, 0, "1f1b", 1, true}}});
}

TEST_F(MeshResumeTest, SoIsARunOfAdapters) {
  config_.model = toy_llama();
  run("base", {1, 2, 1}, 4);
  config_.training.load = (folder_.path() / "base").string();
  config_.lora.rank = 3;
  config_.optimizer.lr = 1e-2;
  expect_unchanged("adapted", {}, {{{1, 2, 2, 3}, {}}, {{}, {1, 2, 2, 1}}});
}

TEST_F(MeshResumeTest, WhereProductsAreCutOtherwiseItDiffersByRounding) {
  config_.model = toy_llama();
  const double whole = run("whole", {}, 8).loss_last;
  run("cut", {4, 1, 1}, 4);
  EXPECT_NEAR(run("cut", {}, 8, Existing::resume).loss_last, whole, 1e-4 * whole);
  EXPECT_NEAR(run("cut", {2, 2, 1}, 8, Existing::overwrite).loss_last, whole, 1e-4 * whole);
}

TEST_F(MeshResumeTest, ARunOfAnyMeshGeneratesOnOneRank) {
  SamplingOptions options;
  options.max_new_tokens = 12;
  options.temperature = 0;
  run("alone", {}, 4);
  run("staged", {1, 2, 2, 3}, 4);
  const auto text = [&](const char* name) {
    return Generator(folder_.path() / name).generate("the ", options, {});
  };
  EXPECT_EQ(text("staged"), text("alone"));
}

}  // namespace
}  // namespace tessera::train
