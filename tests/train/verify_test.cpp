#include "train/verify.h"

#include <gtest/gtest.h>

#include "account/parameter_table.h"
#include "toy_run.h"
#include "train/run_data.h"
#include "train/thread_ranks.h"

namespace tessera::train {
namespace {

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() : config_(toy_config(write_toy_text(folder_.path() / "toy.jsonl"))) {
    config_.optimizer.lr = 3e-4;
    data_ = load_run_data(config_);
    config_ = spec::resolved(with_vocabulary(config_, *data_.tokenizer), 1);
    for (const auto& parameter : account::parameter_table(config_.model).parameters) {
      names_.push_back(parameter.name);
    }
  }

  VerifyRecord record(const std::string& layout_text, int64_t steps = 20) {
    const spec::LayoutList list = spec::parse_layouts(layout_text);
    EXPECT_TRUE(list.violations.empty());
    const spec::Layout& layout = list.layouts.at(0);
    VerifyRecord result;
    const int ranks = static_cast<int>(layout.dp);
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      VerifyRecord mine =
          record_run(spec::with_layout(config_, layout), *data_.training, comm, steps);
      if (comm.rank() == 0) result = std::move(mine);
    });
    return result;
  }

  TestFolder folder_;
  spec::RunConfig config_;
  RunData data_;
  std::vector<std::string> names_;
};

TEST_F(VerifyTest, FindsDataParallelAndAccumulationEqualToOneRank) {
  const VerifyRecord reference = record("dp=1");
  for (const int dp : {1, 2, 3, 4}) {
    for (const int accumulate : {1, 2, 4}) {
      const std::string layout =
          "dp=" + std::to_string(dp) + ",accumulate=" + std::to_string(accumulate);
      const LayoutVerdict verdict = compare(reference, record(layout), names_, Tolerance{});
      EXPECT_TRUE(verdict.ok) << layout << ": " << verdict.why << "; losses "
                              << verdict.loss_max_relative << ", weights "
                              << verdict.weights_max_relative_l2 << " in " << verdict.worst_tensor;
    }
  }
}

TEST_F(VerifyTest, FindsALlamaEqualToOneRank) {
  config_.model = toy_llama();
  config_.model.qk_norm = true;
  config_.model.attention_bias = spec::AttentionBias::qkv;
  config_.model.dropout = 0.1;
  config_ = spec::resolved(with_vocabulary(config_, *data_.tokenizer), 1);
  names_.clear();
  for (const auto& parameter : account::parameter_table(config_.model).parameters) {
    names_.push_back(parameter.name);
  }
  const VerifyRecord reference = record("dp=1");
  for (const char* layout : {"dp=1,accumulate=3", "dp=2", "dp=3,accumulate=2", "dp=4",
                             "dp=2,recompute=full", "dp=3,recompute=selective"}) {
    const LayoutVerdict verdict = compare(reference, record(layout), names_, Tolerance{});
    EXPECT_TRUE(verdict.ok) << layout << ": " << verdict.why;
  }
  EXPECT_TRUE(compare(reference, record("dp=1,recompute=selective"), names_, {}).bitwise);
}

TEST_F(VerifyTest, FindsDropoutTheSameInEveryLayout) {
  config_.model.dropout = 0.2;
  const LayoutVerdict verdict =
      compare(record("dp=1"), record("dp=3,micro_batch=2"), names_, Tolerance{});
  EXPECT_TRUE(verdict.ok) << verdict.why;
}

TEST_F(VerifyTest, CallsTheSameLayoutEqualToTheBit) {
  EXPECT_TRUE(compare(record("dp=2"), record("dp=2"), names_, Tolerance{}).bitwise);
}

TEST_F(VerifyTest, NamesStepAndTensorOfADifference) {
  const VerifyRecord reference = record("dp=1", 3);
  VerifyRecord record_with_error = reference;
  record_with_error.losses[1] *= 1.001;
  record_with_error.tensor_norms[names_.size() + 5] *= 1.5;
  const LayoutVerdict verdict = compare(reference, record_with_error, names_, Tolerance{});
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.first_divergence_step, 2);
  EXPECT_EQ(verdict.first_divergence_tensor, names_[5]);
}

TEST_F(VerifyTest, RefusesRanksThatEndWithDifferentWeights) {
  const VerifyRecord reference = record("dp=2", 1);
  VerifyRecord torn = reference;
  torn.differing_copy = "rank 1 ends with other weights than rank 0";
  EXPECT_FALSE(compare(reference, torn, names_, Tolerance{}).ok);
}

TEST_F(VerifyTest, ReadsBackARecordThatItSaved) {
  const VerifyRecord saved = record("dp=1", 2);
  save_record(folder_.path() / "record.safetensors", saved);
  const VerifyRecord loaded = load_record(folder_.path() / "record.safetensors");
  EXPECT_TRUE(compare(saved, loaded, names_, Tolerance{}).bitwise);
  VerifyRecord torn = saved;
  torn.differing_copy = "rank 1";
  save_record(folder_.path() / "torn.safetensors", torn);
  EXPECT_EQ(load_record(folder_.path() / "torn.safetensors").differing_copy, "rank 1");
  EXPECT_EQ(loaded.differing_copy, "");
}

}  // namespace
}  // namespace tessera::train
