// Tensor, pipeline and data parallelism together: whatever the mesh and the schedule, it is the
// model of one rank; and a rank holds and sends what was predicted.

#include <gtest/gtest.h>

#include <sstream>

#include "account/parameter_table.h"
#include "spec/mesh.h"
#include "toy_run.h"
#include "train/evaluation.h"
#include "train/run_data.h"
#include "train/summary.h"
#include "train/thread_ranks.h"
#include "train/train_step.h"
#include "train/verify.h"

namespace tessera::train {
namespace {

using core::Category;

class MeshTest : public testing::Test {
 protected:
  MeshTest() : config_(toy_config(write_toy_text(folder_.path() / "toy.jsonl"))) {
    config_.model.num_hidden_layers = 5;
    config_.training.global_batch_size = 11;
    config_.training.max_norm = 0.5;
    config_.data.seq_len = 24;
    config_.optimizer.lr = 3e-4;
    config_.training.numerics = spec::Numerics::invariant;
  }

  spec::RunConfig config_for(const std::string& layout_text) {
    if (!data_.tokenizer) data_ = load_run_data(config_);
    spec::RunConfig config = spec::resolved(with_vocabulary(config_, *data_.tokenizer), 1);
    std::istringstream words(layout_text);
    for (std::string word; std::getline(words, word, ',');) {
      const std::string key = word.substr(0, word.find('='));
      const std::string value = word.substr(word.find('=') + 1);
      spec::ParallelismConfig& parallelism = config.parallelism;
      if (key == "dp") parallelism.data_parallel_degree = std::stoi(value);
      if (key == "tp") parallelism.tensor_parallel_degree = std::stoi(value);
      if (key == "pp") parallelism.pipeline_parallel_degree = std::stoi(value);
      if (key == "sp") parallelism.sequence_parallel = value == "1";
      if (key == "v") parallelism.virtual_stages = std::stoi(value);
      if (key == "zero") parallelism.zero_stage = std::stoi(value);
      if (key == "shard") parallelism.shard_degree = std::stoi(value);
      if (key == "schedule") parallelism.pipeline_schedule = value;
      if (key == "micro_batch") config.training.micro_batch_size = std::stoi(value);
      if (key == "recompute")
        config.activation_checkpoint.mode =
            value == "full" ? spec::Recompute::full : spec::Recompute::selective;
    }
    return config;
  }

  template <class Work>
  void run(const std::string& layout, const Work& work) {
    const spec::RunConfig config = config_for(layout);
    const int ranks = static_cast<int>(spec::mesh_of(config.parallelism).size());
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) { work(config, comm); });
  }

  VerifyRecord record(const std::string& layout, int64_t steps = 4) {
    VerifyRecord result;
    run(layout, [&](const spec::RunConfig& config, comm::Communicator& comm) {
      VerifyRecord mine = record_run(config, *data_.training, comm, steps);
      if (comm.rank() == 0) result = std::move(mine);
    });
    return result;
  }

  void expect_bits(const std::string& reference, const std::vector<std::string>& layouts) {
    const VerifyRecord one = record(reference);
    for (const std::string& layout : layouts) {
      const VerifyRecord other = record(layout);
      EXPECT_TRUE(one.losses == other.losses) << layout;
      EXPECT_TRUE(one.grad_norms == other.grad_norms) << layout;
      EXPECT_TRUE(one.gradients == other.gradients) << layout;
      EXPECT_TRUE(one.weights == other.weights) << layout;
      EXPECT_EQ(other.differing_copy, "") << layout;
    }
  }
  void expect_close(const std::vector<std::string>& layouts) {
    std::vector<std::string> names;
    const spec::RunConfig config = config_for("dp=1");
    for (const auto& parameter : account::parameter_table(config.model, config.lora).parameters) {
      names.push_back(parameter.name);
    }
    constexpr int64_t kSteps = 10;
    Tolerance tolerance = default_tolerance(config, kSteps);
    tolerance.loss = 5e-6;
    const VerifyRecord one = record("dp=1", kSteps);
    for (const std::string& layout : layouts) {
      const LayoutVerdict verdict = compare(one, record(layout, kSteps), names, tolerance);
      EXPECT_TRUE(verdict.ok) << layout << ": " << verdict.why;
    }
  }

  TestFolder folder_;
  spec::RunConfig config_;
  RunData data_;
};

class MeshCounts : public MeshTest {
 protected:
  /// Trains and evaluates; what is held and sent has to be what was predicted.
  void train(const std::string& layout, int64_t steps = 3) {
    run(layout, [&](const spec::RunConfig& config, comm::Communicator& comm) {
      parallel::MeshGroups groups(comm, config);
      std::vector<int64_t> held(static_cast<size_t>(comm.size()));
      const int64_t mine = groups.memory_bytes();
      comm.all_gather(core::View{held.data(), core::DType::i64, {comm.size()}},
                      core::ConstView{&mine, core::DType::i64, {1}});
      const Prediction prediction = predict(config, held);
      core::MemoryLedger ledger;
      ledger.add(Category::communication, mine);
      parallel::Replica replica(config, groups, ledger, expected_arena_bytes(config, comm.rank()));
      TrainStep step(config, replica);
      const BatchLoader loader(*data_.training, config.training, static_cast<int>(groups.mesh().dp),
                               static_cast<int>(groups.coordinate().dp), {});
      const auto rank = static_cast<size_t>(comm.rank());
      for (int64_t number = 1; number <= steps; ++number) {
        std::array<int64_t, parallel::kNumAxes> before{};
        for (const auto axis : parallel::kAxes) {
          before[static_cast<size_t>(axis)] = groups.traffic(axis).total();
        }
        const StepResult done = step.compute_gradients(loader, number);
        step.update(done);
        for (const auto axis : parallel::kAxes) {
          EXPECT_EQ(groups.traffic(axis).total() - before[static_cast<size_t>(axis)],
                    prediction.bytes_per_step[rank][static_cast<size_t>(axis)])
              << layout << " rank " << rank << " " << parallel::name_of(axis);
        }
      }
      evaluate(replica, *data_.validation, 0, config.training.micro_batch_size);
      for (int i = 0; i < core::kNumCategories; ++i) {
        const auto category = static_cast<Category>(i);
        EXPECT_EQ(ledger.peak(category), prediction.memory_bytes[rank][static_cast<size_t>(i)])
            << layout << " rank " << rank << " " << core::name_of(category);
      }
    });
  }
};

TEST_F(MeshCounts, ArePredictedForPipelines) {
  for (const char* layout :
       {"pp=2,micro_batch=2", "pp=2,micro_batch=11", "pp=3,micro_batch=1", "pp=5,micro_batch=2",
        "pp=2,dp=2,micro_batch=2", "pp=2,dp=2,micro_batch=1,zero=1",
        "pp=2,dp=3,micro_batch=1,zero=2", "pp=2,dp=2,micro_batch=1,zero=3",
        "pp=2,dp=4,micro_batch=1,zero=3,shard=2", "pp=2,micro_batch=2,recompute=selective",
        "pp=2,micro_batch=2,recompute=full"}) {
    train(layout);
  }
}

TEST_F(MeshCounts, ArePredictedForEverySchedule) {
  config_.model.num_hidden_layers = 6;
  for (const char* layout :
       {"pp=2,schedule=gpipe,micro_batch=2", "pp=3,schedule=gpipe,micro_batch=1",
        "pp=2,schedule=interleaved,v=2,micro_batch=2",
        "pp=2,schedule=interleaved,v=3,micro_batch=1",
        "pp=3,schedule=interleaved,v=2,micro_batch=1,recompute=full",
        "pp=2,schedule=zb-h1,micro_batch=2", "pp=3,schedule=zb-h1,micro_batch=1",
        "pp=2,schedule=zb-h1,micro_batch=2,recompute=selective",
        "pp=2,schedule=zb-h1,micro_batch=2,recompute=full", "pp=2,schedule=zb-v,v=2,micro_batch=2",
        "pp=3,schedule=zb-v,v=2,micro_batch=1", "pp=2,dp=2,schedule=zb-v,v=2,micro_batch=1,zero=3",
        "pp=2,dp=3,schedule=interleaved,v=2,micro_batch=1,zero=2",
        "tp=2,sp=1,pp=2,dp=2,schedule=zb-h1,micro_batch=1,zero=3"}) {
    train(layout);
  }
}

TEST_F(MeshCounts, ArePredictedForTensorAndSequenceParallelism) {
  for (const char* layout :
       {"tp=2,micro_batch=11", "tp=2,sp=1,micro_batch=4", "tp=4,micro_batch=4",
        "tp=4,sp=1,micro_batch=4,recompute=full", "tp=2,sp=1,micro_batch=4,recompute=selective"}) {
    train(layout);
  }
}

TEST_F(MeshCounts, ArePredictedForAllTogether) {
  for (const char* layout : {"tp=2,pp=2,micro_batch=2", "tp=2,pp=2,dp=2,micro_batch=1,zero=1",
                             "tp=2,sp=1,pp=2,dp=2,micro_batch=1,zero=3"}) {
    train(layout);
  }
}

TEST_F(MeshCounts, ArePredictedForLlamaAndForAdapters) {
  config_.model = toy_llama();
  config_.model.num_hidden_layers = 4;
  config_.model.qk_norm = true;
  for (const int64_t rank : {0, 3}) {
    config_.lora.rank = rank;
    config_.lora.targets = {rank > 0 ? "all-linear" : "q_proj"};
    for (const char* layout :
         {"tp=2,micro_batch=4", "tp=4,sp=1,micro_batch=4", "tp=2,sp=1,pp=2,dp=2,micro_batch=1",
          "pp=4,dp=2,micro_batch=1,zero=3"}) {
      train(layout);
    }
  }
}

TEST_F(MeshTest, PipelinesHaveTheBitsOfOneRank) {
  config_.model.dropout = 0.1;
  expect_bits("dp=1",
              {"pp=2,micro_batch=2", "pp=2,micro_batch=11", "pp=3,micro_batch=1",
               "pp=5,micro_batch=2", "pp=2,dp=2,micro_batch=2", "pp=2,dp=2,micro_batch=1,zero=1",
               "pp=2,dp=3,micro_batch=1,zero=2", "pp=2,dp=2,micro_batch=1,zero=3",
               "pp=2,dp=4,micro_batch=1,zero=3,shard=2", "pp=2,micro_batch=2,recompute=selective",
               "pp=2,micro_batch=2,recompute=full"});
}

TEST_F(MeshTest, SoHasEverySchedule) {
  config_.model.dropout = 0.1;
  config_.model.num_hidden_layers = 6;
  expect_bits(
      "dp=1",
      {"pp=2,schedule=gpipe,micro_batch=2", "pp=3,schedule=gpipe,micro_batch=1",
       "pp=2,schedule=interleaved,v=2,micro_batch=2", "pp=2,schedule=interleaved,v=3,micro_batch=1",
       "pp=3,schedule=interleaved,v=2,micro_batch=1,recompute=full",
       "pp=2,schedule=zb-h1,micro_batch=2", "pp=3,schedule=zb-h1,micro_batch=1",
       "pp=2,schedule=zb-h1,micro_batch=2,recompute=selective",
       "pp=2,schedule=zb-h1,micro_batch=2,recompute=full", "pp=2,schedule=zb-v,v=2,micro_batch=2",
       "pp=3,schedule=zb-v,v=2,micro_batch=1"});
}

TEST_F(MeshTest, SoHasEveryScheduleWithShardedDataParallelism) {
  config_.model.num_hidden_layers = 6;
  expect_bits("dp=1", {"pp=2,dp=2,schedule=gpipe,micro_batch=1,zero=3",
                       "pp=2,dp=3,schedule=interleaved,v=2,micro_batch=1,zero=3",
                       "pp=2,dp=2,schedule=interleaved,v=3,micro_batch=1,zero=2",
                       "pp=2,dp=2,schedule=zb-h1,micro_batch=1,zero=3",
                       "pp=2,dp=2,schedule=zb-h1,micro_batch=1,zero=1",
                       "pp=2,dp=2,schedule=zb-v,v=2,micro_batch=1,zero=2",
                       "pp=2,dp=2,schedule=zb-v,v=2,micro_batch=1,zero=3",
                       "pp=2,dp=4,schedule=zb-v,v=2,micro_batch=1,zero=3,shard=2"});
  config_.lora.rank = 3;
  expect_bits("dp=1", {"pp=2,dp=2,schedule=zb-h1,micro_batch=1,zero=3",
                       "pp=2,dp=2,schedule=zb-v,v=2,micro_batch=1,zero=3"});
}

TEST_F(MeshTest, SoHaveLlamasWithAHeadOfTheirOwnAndTiedOnes) {
  config_.model = toy_llama();
  config_.model.num_hidden_layers = 4;
  config_.model.qk_norm = true;
  for (const bool tied : {false, true}) {
    config_.model.tie_word_embeddings = tied;
    expect_bits("dp=1", {"pp=2,micro_batch=2", "pp=4,dp=2,micro_batch=1,zero=3",
                         "pp=2,dp=2,micro_batch=1,zero=2"});
  }
}

TEST_F(MeshTest, SoHaveAdaptersAndBf16) {
  config_.lora.rank = 3;
  config_.training.precision = spec::Precision::bf16;
  expect_bits("dp=1", {"pp=2,micro_batch=2", "pp=4,dp=2,micro_batch=1,zero=3"});
}

TEST_F(MeshTest, WithTensorParallelismItIsThatOfTheSameCut) {
  config_.model.dropout = 0.1;
  expect_bits("tp=2",
              {"tp=2,micro_batch=2", "tp=2,dp=2,micro_batch=2,zero=1", "tp=2,pp=2,micro_batch=2",
               "tp=2,pp=2,dp=2,micro_batch=1,zero=3", "tp=2,pp=3,micro_batch=1,recompute=full"});
  expect_bits("tp=2,sp=1",
              {"tp=2,sp=1,micro_batch=2", "tp=2,sp=1,dp=2,micro_batch=2,zero=2",
               "tp=2,sp=1,pp=2,micro_batch=2", "tp=2,sp=1,pp=2,dp=2,micro_batch=1,zero=3"});
  expect_bits("tp=4", {"tp=4,pp=2,micro_batch=2"});
}

TEST_F(MeshTest, TensorAndSequenceParallelismAreCloseToOneRank) {
  config_.training.numerics = spec::Numerics::fast;
  config_.model.dropout = 0.1;
  const std::vector<std::string> layouts = {"tp=2,micro_batch=11",
                                            "tp=2,sp=1,micro_batch=4",
                                            "tp=4,micro_batch=4",
                                            "tp=4,sp=1,dp=2,micro_batch=2,zero=2",
                                            "tp=2,pp=2,dp=2,micro_batch=1,zero=1",
                                            "tp=2,sp=1,pp=2,dp=2,micro_batch=1,zero=3"};
  expect_close(layouts);
  config_.model = toy_llama();
  config_.model.num_hidden_layers = 4;
  config_.model.qk_norm = true;
  config_.model.attention_bias = spec::AttentionBias::qkv;
  expect_close(layouts);
  config_.lora.rank = 3;
  config_.lora.targets = {"all-linear"};
  expect_close({"tp=2,sp=1,micro_batch=4", "tp=4,pp=2,micro_batch=2"});
}

}  // namespace
}  // namespace tessera::train
