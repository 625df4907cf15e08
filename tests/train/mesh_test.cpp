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
    const spec::LayoutList list = spec::parse_layouts(layout_text);
    EXPECT_TRUE(list.violations.empty()) << layout_text;
    const spec::RunConfig base = spec::resolved(with_vocabulary(config_, *data_.tokenizer), 1);
    return spec::with_layout(base, list.layouts.at(0));
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

  static void expect_the_same_bits(const VerifyRecord& one, const VerifyRecord& other,
                                   const std::string& layout) {
    EXPECT_EQ(one.losses, other.losses) << layout;
    EXPECT_EQ(one.grad_norms, other.grad_norms) << layout;
    EXPECT_EQ(one.gradients, other.gradients) << layout;
    EXPECT_EQ(one.weights, other.weights) << layout;
  }

  TestFolder folder_;
  spec::RunConfig config_;
  RunData data_;
};

TEST_F(MeshTest, PipelinesHaveTheBitsOfOneRank) {
  const VerifyRecord one = record("dp=1");
  for (const char* layout : {"pp=2,micro_batch=2", "pp=2,micro_batch=11", "pp=3,micro_batch=1",
                             "pp=5,micro_batch=2", "pp=2,dp=2,micro_batch=2"}) {
    expect_the_same_bits(one, record(layout), layout);
  }
}

}  // namespace
}  // namespace tessera::train
