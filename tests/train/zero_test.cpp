// ZeRO: whatever is sharded, and whatever runs beside the computation, it is the model of one rank;
// and a rank holds and sends what was predicted.

#include <gtest/gtest.h>

#include "account/parameter_table.h"
#include "core/error.h"
#include "kernels/device.h"
#include "spec/model_config.h"
#include "toy_run.h"
#include "train/process_memory.h"
#include "train/run_data.h"
#include "train/summary.h"
#include "train/thread_ranks.h"
#include "train/train_step.h"
#include "train/verify.h"

namespace tessera::train {
namespace {

using core::Category;

class ZeroTest : public testing::Test {
 protected:
  ZeroTest() : config_(toy_config(write_toy_text(folder_.path() / "toy.jsonl"))) {
    config_.training.global_batch_size = 11;
    config_.training.max_norm = 0.5;
    config_.data.seq_len = 29;
    config_.optimizer.lr = 3e-4;
  }

  spec::RunConfig config_for(const std::string& layout_text) {
    if (!data_.tokenizer) data_ = load_run_data(config_);
    const spec::LayoutList list = spec::parse_layouts(layout_text);
    EXPECT_TRUE(list.violations.empty()) << layout_text;
    const spec::RunConfig base = spec::resolved(with_vocabulary(config_, *data_.tokenizer), 1);
    return spec::with_layout(base, list.layouts.at(0));
  }

  /// Runs `work(config, comm)` on every rank of the layout.
  template <class Work>
  void run(const std::string& layout, const Work& work) {
    const spec::RunConfig config = config_for(layout);
    const int ranks = static_cast<int>(config.parallelism.data_parallel_degree);
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

  static void expect_the_same_bits(const VerifyRecord& one, const VerifyRecord& other,
                                   const std::string& layout) {
    EXPECT_EQ(one.losses, other.losses) << layout;
    EXPECT_EQ(one.grad_norms, other.grad_norms) << layout;
    EXPECT_EQ(one.gradients, other.gradients) << layout;
    EXPECT_EQ(one.weights, other.weights) << layout;
    EXPECT_EQ(other.differing_copy, "") << layout;
  }
  void expect_the_bits_of_one_rank(const std::vector<std::string>& layouts) {
    const VerifyRecord one = record("dp=1");
    for (const std::string& layout : layouts) expect_the_same_bits(one, record(layout), layout);
  }

  TestFolder folder_;
  spec::RunConfig config_;
  RunData data_;
};

TEST_F(ZeroTest, EveryStageHasTheBitsOfOneRankInTheInvariantNumerics) {
  config_.training.numerics = spec::Numerics::invariant;
  config_.model.dropout = 0.1;
  expect_the_bits_of_one_rank({"dp=2,zero=1", "dp=2,zero=2", "dp=2,zero=3", "dp=3,zero=1",
                               "dp=3,zero=2", "dp=3,zero=3", "dp=5,zero=2", "dp=7,zero=3"});
}

TEST_F(ZeroTest, SoHasAccumulationAlsoWhereSomeRanksRunOutOfSamplesFirst) {
  config_.training.numerics = spec::Numerics::invariant;
  expect_the_bits_of_one_rank({"dp=2,zero=1,micro_batch=1", "dp=2,zero=2,micro_batch=1",
                               "dp=3,zero=2,accumulate=2", "dp=3,zero=3,micro_batch=1",
                               "dp=5,zero=3,micro_batch=1", "dp=2,zero=3,accumulate=3"});
}

TEST_F(ZeroTest, SoHasHybridSharding) {
  config_.training.numerics = spec::Numerics::invariant;
  expect_the_bits_of_one_rank({"dp=4,zero=1,shard=2", "dp=4,zero=2,shard=2,micro_batch=1",
                               "dp=4,zero=3,shard=2", "dp=6,zero=3,shard=3", "dp=6,zero=2,shard=2",
                               "dp=3,zero=3,shard=1"});
}

TEST_F(ZeroTest, SoHasBf16WithRecomputation) {
  config_.training.numerics = spec::Numerics::invariant;
  config_.training.precision = spec::Precision::bf16;
  expect_the_bits_of_one_rank({"dp=2,zero=1", "dp=3,zero=3,recompute=full,micro_batch=2",
                               "dp=2,zero=2,recompute=selective", "dp=3,zero=1,micro_batch=2"});
}

TEST_F(ZeroTest, SoHaveLlamaAndAHeadOfItsOwn) {
  config_.training.numerics = spec::Numerics::invariant;
  config_.model = toy_llama();
  config_.model.tie_word_embeddings = false;
  expect_the_bits_of_one_rank(
      {"dp=2,zero=1", "dp=3,zero=2", "dp=3,zero=3,recompute=full", "dp=2,zero=3,prefetch=0"});
}

TEST_F(ZeroTest, SoHaveAdapters) {
  config_.training.numerics = spec::Numerics::invariant;
  config_.lora.rank = 3;
  expect_the_bits_of_one_rank({"dp=2,zero=1", "dp=3,zero=2,micro_batch=2", "dp=3,zero=3",
                               "dp=4,zero=3,shard=2,micro_batch=1"});
}

TEST_F(ZeroTest, IsCloseInTheFastNumerics) {
  std::vector<std::string> names;
  const VerifyRecord one = record("dp=1", 20);
  for (const auto& parameter : account::parameter_table(config_for("dp=1").model).parameters) {
    names.push_back(parameter.name);
  }
  for (const char* layout :
       {"dp=2,zero=1", "dp=2,zero=2,accumulate=2", "dp=2,zero=3", "dp=3,zero=1,accumulate=2",
        "dp=3,zero=3,accumulate=3", "dp=4,zero=3,shard=2"}) {
    const LayoutVerdict verdict = compare(one, record(layout, 20), names, Tolerance{});
    EXPECT_TRUE(verdict.ok) << layout << ": " << verdict.why;
  }
}

TEST_F(ZeroTest, OverlapAndPrefetchDoNotChangeABit) {
  for (const std::string stage : {"0", "1", "2", "3"}) {
    const std::string layout = "dp=3,micro_batch=2,zero=" + stage;
    const VerifyRecord off =
        record(layout + ",bucket_bytes=0" + (stage == "3" ? ",prefetch=0" : ""));
    expect_the_same_bits(off, record(layout), layout);
    expect_the_same_bits(off, record(layout + ",bucket_bytes=1000"), layout);
    if (stage != "3") continue;
    for (const char* prefetch : {",prefetch=0", ",prefetch=1", ",prefetch=2", ",prefetch=9"}) {
      expect_the_same_bits(off, record(layout + prefetch), layout + prefetch);
    }
  }
}

TEST_F(ZeroTest, IsAdvisedWhereARunDoesNotFit) {
  spec::RunConfig config = config_for("dp=8");
  config.model = spec::find_model_preset("gpt2-124m")->config;
  config.model.vocab_size = 256;
  const int64_t machine = machine_memory_bytes();
  const auto total = [&](int64_t stage) {
    config.parallelism.zero_stage = stage;
    return most_bytes(config, 0, 8);
  };
  // Layers until stage 3 fits this machine and stage 2 does not.
  while (total(2) <= machine) config.model.num_hidden_layers += 8;
  ASSERT_LE(total(3), machine);
  total(0);
  try {
    check_run_fits(config, 0, 8, "the run");
    FAIL() << "fits";
  } catch (const core::MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("parallelism.zero_stage = 3 would take"),
              std::string::npos)
        << error.what();
  }
}

/// What every rank held and sent in its second step, against the prediction.
class ZeroCounts : public ZeroTest {
 protected:
  void expect_as_predicted(const std::string& layout) {
    run(layout, [&](const spec::RunConfig& config, comm::Communicator& comm) {
      parallel::MeshGroups groups(comm, config);
      const std::vector<int64_t> held(static_cast<size_t>(comm.size()), groups.memory_bytes());
      const Prediction prediction = predict(config, held);
      core::MemoryLedger ledger;
      parallel::Replica replica(config, groups, ledger, {});
      TrainStep step(config, replica);
      const BatchLoader loader(*data_.training, config.training, comm.size(), comm.rank(), {});
      int64_t sent = 0;
      for (const int64_t number : {1, 2, 3}) {
        const int64_t before = groups.traffic(parallel::Axis::dp).total();
        const StepResult result = step.compute_gradients(loader, number);
        step.update(result);
        sent = groups.traffic(parallel::Axis::dp).total() - before;
      }
      const auto rank = static_cast<size_t>(comm.rank());
      EXPECT_EQ(sent, prediction.bytes_per_step[rank][0]) << layout << " rank " << rank;
      for (const Category category :
           {Category::weights, Category::gradients, Category::optimizer, Category::gathered}) {
        EXPECT_EQ(ledger.peak(category),
                  prediction.memory_bytes[rank][static_cast<size_t>(category)])
            << layout << " rank " << rank << " " << core::name_of(category);
        EXPECT_EQ(ledger.current(category), ledger.peak(category)) << layout;
      }
    });
  }
};

TEST_F(ZeroCounts, AreThePredictionsInEveryStage) {
  for (const char* dp : {"2", "3", "4", "7"}) {
    for (const char* stage : {"0", "1", "2", "3"}) {
      expect_as_predicted(std::string("dp=") + dp + ",zero=" + stage);
      expect_as_predicted(std::string("dp=") + dp + ",micro_batch=1,zero=" + stage);
    }
  }
}

TEST_F(ZeroCounts, AreThePredictionsOfHybridShardingAndWithoutOverlap) {
  for (const char* layout :
       {"dp=4,zero=1,shard=2", "dp=4,zero=2,shard=2,micro_batch=1", "dp=6,zero=3,shard=3",
        "dp=3,bucket_bytes=0", "dp=3,bucket_bytes=20000", "dp=3,zero=2,bucket_bytes=0",
        "dp=3,zero=3,prefetch=0", "dp=3,zero=3,prefetch=5", "dp=2,zero=3,recompute=full"}) {
    expect_as_predicted(layout);
  }
}

TEST_F(ZeroCounts, AreThePredictionsInEveryDtype) {
  config_.training.precision = spec::Precision::bf16;
  for (const auto gradients : {spec::GradientDtype::bf16, spec::GradientDtype::fp32}) {
    config_.training.gradient_dtype = gradients;
    for (const char* stage : {"1", "2", "3"}) {
      expect_as_predicted(std::string("dp=3,micro_batch=2,zero=") + stage);
    }
  }
  config_.training.gradient_dtype = spec::GradientDtype::fp32;
  config_.training.numerics = spec::Numerics::invariant;
  for (const char* stage : {"0", "1", "2", "3"}) {
    expect_as_predicted(std::string("dp=3,micro_batch=2,zero=") + stage);
  }
}

TEST_F(ZeroCounts, AreThePredictionsForAdaptersAndAHeadOfItsOwn) {
  config_.lora.rank = 3;
  for (const char* stage : {"0", "1", "2", "3"}) {
    expect_as_predicted(std::string("dp=3,micro_batch=2,zero=") + stage);
  }
  config_.lora.rank = 0;
  config_.model = toy_llama();
  config_.model.tie_word_embeddings = false;
  expect_as_predicted("dp=3,zero=3,micro_batch=2");
}

}  // namespace
}  // namespace tessera::train
