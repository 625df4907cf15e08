#include "plan/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

Case case_of(const char* model, const Layout& layout) {
  Case run{*find_model(model), {}, *find_cluster("h100-80g"), layout, find_stack("generic")};
  run.recipe.global_batch = 512;
  return run;
}

Layout layout_of(int64_t tp, int64_t pp, int64_t dp) {
  Layout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp = dp;
  return layout;
}

TEST(Emit, WritesTheKeysOfThisEngine) {
  Layout layout = layout_of(4, 4, 8);
  layout.sequence_parallel = true;
  layout.schedule = spec::ScheduleKind::interleaved;
  layout.v = 2;
  layout.zero = 2;
  layout.shard = 4;
  layout.micro_batch = 2;
  layout.recompute = spec::Recompute::selective;
  const Case run = case_of("llama-2-7b", layout);
  const std::string text = emit(run, System::tessera);
  for (const char* line :
       {"global_batch_size = 512\n", "micro_batch_size = 2\n", "precision = \"bf16\"\n",
        "gradient_dtype = \"fp32\"\n", "data_parallel_degree = 8\n", "tensor_parallel_degree = 4\n",
        "sequence_parallel = true\n", "pipeline_parallel_degree = 4\n",
        "pipeline_schedule = \"interleaved\"\n", "virtual_stages = 2\n",
        "layers_per_stage = [4, 4, 4, 4, 4, 4, 4, 4]\n", "zero_stage = 2\n", "shard_degree = 4\n",
        "mode = \"selective\"\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("NOT RUNNABLE")));
}

TEST(Emit, CommentsOutWhatThisEngineDoesNotHave) {
  Layout layout = layout_of(2, 1, 8);
  layout.cp = 4;
  Case run = case_of("mixtral-8x7b", layout);
  run.recipe.format = Format::fp8;
  const std::string text = emit(run, System::tessera);
  for (const char* what : {"experts", "context parallelism", "fp8 products"}) {
    EXPECT_THAT(text, HasSubstr(std::string("#   ") + what + '\n'));
  }
  EXPECT_THAT(text, HasSubstr("NOT RUNNABLE"));
  EXPECT_THAT(text, HasSubstr("\n# context_parallel_degree = 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nprecision =")));
}

TEST(Emit, WritesMegatronsFlags) {
  Layout layout = layout_of(8, 8, 2);
  layout.sequence_parallel = true;
  layout.schedule = spec::ScheduleKind::interleaved;
  layout.v = 2;
  layout.zero = 1;
  layout.recompute = spec::Recompute::full;
  const std::string text = emit(case_of("llama-2-70b", layout), System::megatron);
  for (const char* flag :
       {"--num-layers 80\n", "--num-query-groups 8\n", "--swiglu\n", "--micro-batch-size 1\n",
        "--global-batch-size 512\n", "--tensor-model-parallel-size 8\n", "--sequence-parallel\n",
        "--pipeline-model-parallel-size 8\n", "--context-parallel-size 1\n",
        "--num-virtual-stages-per-pipeline-rank 2\n", "--use-distributed-optimizer\n",
        "--recompute-granularity full\n", "--recompute-method uniform\n", "--bf16\n"}) {
    EXPECT_THAT(text, HasSubstr(flag));
  }
  EXPECT_THAT(text, Not(HasSubstr("use-megatron-fsdp")));
}

TEST(Emit, TellsMegatronWhatItsDefaultsWouldChange) {
  const std::string llama = emit(case_of("llama-3-70b", layout_of(8, 1, 8)), System::megatron);
  for (const char* flag : {"--rotary-base 500000\n", "--norm-epsilon 1e-05\n",
                           "--attention-dropout 0\n", "--hidden-dropout 0\n"}) {
    EXPECT_THAT(llama, HasSubstr(flag));
  }
  Case run = case_of("gpt2-124m", layout_of(1, 1, 8));
  run.recipe.dropout = 0.1;
  const std::string gpt2 = emit(run, System::megatron);
  EXPECT_THAT(gpt2, HasSubstr("--hidden-dropout 0.1\n"));
  EXPECT_THAT(gpt2, Not(HasSubstr("rotary")));
}

TEST(Emit, NamesAnOptimizerThatThisEngineLacks) {
  Case run = case_of("llama-2-7b", layout_of(1, 1, 8));
  EXPECT_THAT(emit(run, System::tessera), Not(HasSubstr("optimizer")));
  run.recipe.optimizer = Optimizer::muon;
  EXPECT_THAT(emit(run, System::tessera), HasSubstr("\n# optimizer: Muon is planned for"));
}

TEST(Emit, SaysUnevenStagesAndForeignSchedulesToMegatron) {
  Layout layout = layout_of(8, 16, 2);
  layout.schedule = spec::ScheduleKind::zb_v;
  layout.v = 2;
  layout.zero = 3;
  layout.shard = 1;
  const std::string text = emit(case_of("llama-3-405b", layout), System::megatron);
  // 126 layers in 32 stages: three or four each, from the embedding to the loss.
  EXPECT_THAT(text, HasSubstr("--pipeline-model-parallel-layout 'Et*3|"));
  EXPECT_THAT(text, HasSubstr("|t*3L'"));
  EXPECT_THAT(text, HasSubstr("# planned with schedule zb-v, which Megatron-LM does not have"));
  EXPECT_THAT(text, HasSubstr("--data-parallel-sharding-strategy optim_grads_params\n"));
  EXPECT_THAT(text, HasSubstr("--num-distributed-optimizer-instances 2\n"));
}

TEST(Emit, TellsMegatronOfExperts) {
  Layout layout = layout_of(2, 1, 16);
  layout.ep = 8;
  const std::string text = emit(case_of("deepseek-v3", layout), System::megatron);
  EXPECT_THAT(text, HasSubstr("--num-experts 256\n"));
  EXPECT_THAT(text, HasSubstr("--expert-model-parallel-size 8\n"));
  EXPECT_THAT(text, HasSubstr("--expert-tensor-parallel-size 1\n"));
  EXPECT_THAT(text, HasSubstr("--moe-layer-freq \"([0]*3+[1]*58)\"\n"));
  EXPECT_THAT(text, HasSubstr("--multi-latent-attention\n"));
}

TEST(Emit, WritesDeepSpeedsFileAndWhatItCannotSay) {
  Layout layout = layout_of(2, 4, 8);
  layout.schedule = spec::ScheduleKind::interleaved;
  layout.v = 2;
  layout.zero = 2;
  const std::string text = emit(case_of("llama-2-7b", layout), System::deepspeed);
  EXPECT_THAT(text, HasSubstr("\"train_batch_size\": 512"));
  EXPECT_THAT(text, HasSubstr("\"gradient_accumulation_steps\": 64"));
  EXPECT_THAT(text, HasSubstr("\"stage\": 2"));
  EXPECT_THAT(text, HasSubstr("\"autotp_size\": 2"));
  EXPECT_THAT(text, HasSubstr("num_stages=4"));
  EXPECT_THAT(text, HasSubstr("refuses ZeRO-2 and 3"));
}

TEST(Emit, SharesOutTorchtitansReplicas) {
  Layout layout = layout_of(4, 2, 16);
  layout.cp = 2;
  layout.sequence_parallel = true;
  layout.schedule = spec::ScheduleKind::zb_v;
  layout.v = 2;
  layout.zero = 3;
  layout.shard = 8;
  layout.micro_batch = 2;
  const std::string text = emit(case_of("llama-3-8b", layout), System::torchtitan);
  // Eight ranks of a group are four replicas of two context-parallel ranks.
  for (const char* line :
       {"data_parallel_replicate_degree = 4\n", "data_parallel_shard_degree = 4\n",
        "fsdp_reshard_after_forward = \"always\"\n", "tensor_parallel_degree = 4\n",
        "context_parallel_degree = 2\n", "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n",
        "pipeline_parallel_microbatch_size = 2\n", "pipeline_parallel_layers_per_stage = 8\n",
        "local_batch_size = 32\n", "global_batch_size = 512\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace tessera::plan
