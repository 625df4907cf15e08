#include "formats/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/config_io.h"
#include "formats/import/entry.h"
#include "spec/assignment.h"

namespace tessera::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kMegatronScript = R"(#!/bin/bash
# Pretrains a small Llama.
export CUDA_DEVICE_MAX_CONNECTIONS=1
LAYERS=24
HEADS=16   # used below
GPUS=$(nvidia-smi -L | wc -l)
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS
    --nnodes 1
)
MODEL_ARGS=(
    --num-layers $LAYERS --hidden-size 2048
    --num-attention-heads ${HEADS}
    --group-query-attention
    --num-query-groups 4
    --seq-length 2048  # tokens
    --max-position-embeddings 2048
    --swiglu
    --normalization RMSNorm
    --position-embedding-type rope
    --rotary-base 500000
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --hidden-dropout 0.0
    --attention-dropout 0.0
    "--vocab-size 32000"
)
TRAINING_ARGS="--micro-batch-size 4 --global-batch-size 256 \
    --train-iters 10000 --lr 3.0e-4 --min-lr 3.0e-5 --lr-decay-style cosine \
    --lr-warmup-fraction .01 --clip-grad 1.0 --adam-beta2 0.95 --weight-decay 0.1 --bf16"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} $TRAINING_ARGS \
    --tensor-model-parallel-size 2 \
    --use-distributed-optimizer \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model '/models/my tokenizer' \
    --data-path $DATA_PATH \
    --split 949,50,1 \
    --log-interval 10 --tensorboard-dir "$LOGS" --save /ckpt 2>&1 | tee log.txt
)";

const char* const kDeepSpeed = R"({
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 2,
  "gradient_clipping": 0.5,
  "bf16": {"enabled": true},
  "fp16": {"enabled": false, "loss_scale": 0},
  "optimizer": {"type": "AdamW",
                "params": {"lr": 1e-3, "betas": [0.8, 0.999], "eps": 1e-8, "weight_decay": 3e-7}},
  "scheduler": {"type": "WarmupDecayLR",
                "params": {"warmup_min_lr": 0, "warmup_max_lr": 2e-3, "warmup_num_steps": 100,
                           "total_num_steps": "auto"}},
  "zero_optimization": {"stage": 2, "overlap_comm": true,
                        "offload_optimizer": {"device": "cpu", "pin_memory": true}},
  "activation_checkpointing": {"partition_activations": true},
  "tensorboard": {"enabled": true},
  "steps_per_print": 10,
  "elasticity": {}
})";

const char* const kAccelerate = R"(compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
mixed_precision: bf16
num_processes: 8
machine_rank: 0
main_process_ip: null
deepspeed_config:
  gradient_accumulation_steps: 4
  gradient_clipping: 1.0
  zero_stage: 1
  offload_optimizer_device: none
  zero3_init_flag: false
fsdp_config: {}
invalid_key: 7
)";

const char* const kTorchtitan = R"([job]
dump_folder = "./outputs"
[metrics]
log_freq = 10
enable_tensorboard = true
[model]
name = "llama3"
flavor = "debugmodel"
tokenizer_path = "./assets/tokenizer"
converters = ["float8"]
[optimizer]
name = "AdamW"
lr = 3e-4
[lr_scheduler]
warmup_steps = 200
decay_ratio = 0.2
[training]
local_batch_size = 2
seq_len = 512
steps = 1000
dataset = "c4"
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
pipeline_parallel_degree = 1
context_parallel_degree = 1
[checkpoint]
enable = true
interval = 500
async_mode = "async"
[activation_checkpoint]
mode = "full"
[validation]
enable = false
freq = 500
)";

std::string value_of(const ImportResult& result, const std::string& key) {
  for (const MappedKey& mapped : result.mapped) {
    if (mapped.key == key) return mapped.refused.empty() ? mapped.text : "refused " + mapped.text;
  }
  return "-";
}

/// "KIND: REASON" of the unmapped key whose source begins so.
std::string why(const ImportResult& result, const std::string& source) {
  for (const UnmappedKey& unmapped : result.unmapped) {
    if (unmapped.source.compare(0, source.size(), source) == 0) {
      return std::string(name_of(unmapped.kind)) + ": " + unmapped.reason;
    }
  }
  return "-";
}

ImportResult from_json(const std::string& text) {
  return import_config(System::deepspeed, text, "ds.json");
}
ImportResult from_arguments(const std::string& text) {
  std::vector<std::string> words;
  for (const ShellWord& word : read_shell_words(text, "x")) words.push_back(word.text);
  return import_megatron_arguments(words);
}

/// Everything the result says of keys of the input.
std::vector<std::string> sources_in(const ImportResult& result) {
  std::vector<std::string> sources;
  for (const MappedKey& mapped : result.mapped) {
    sources.insert(sources.end(), mapped.sources.begin(), mapped.sources.end());
  }
  for (const UnmappedKey& unmapped : result.unmapped) sources.push_back(unmapped.source);
  return sources;
}

void expect_all_accounted_for(const ImportResult& result, const std::vector<std::string>& keys) {
  const std::vector<std::string> sources = sources_in(result);
  for (const std::string& key : keys) {
    EXPECT_TRUE(std::any_of(
        sources.begin(), sources.end(),
        [&](const std::string& source) { return source.compare(0, key.size(), key) == 0; }))
        << key << " is in neither list";
  }
}

std::vector<std::string> keys_of(const std::vector<Entry>& entries) {
  std::vector<std::string> keys;
  for (const Entry& entry : entries) keys.push_back(entry.key);
  return keys;
}

/// What `config check` finds in the TOML, beside the data that is missing.
std::vector<std::string> violations_in(const std::string& toml) {
  std::vector<std::string> found;
  std::string text = toml;
  const spec::RunConfig config = parse_config(text, "imported");
  for (const spec::Violation& violation : spec::validate(config, 0)) {
    if (violation.key != "data.path") found.push_back(violation.key + " " + violation.why);
  }
  return found;
}

TEST(ImportMegatron, ReadsTheScriptThatStartsIt) {
  const ImportResult result = import_config(System::megatron, kMegatronScript, "run.sh");
  const std::pair<const char*, const char*> expected[] = {
      {"model.architecture", "llama"},
      {"model.num_hidden_layers", "24"},
      {"model.num_attention_heads", "16"},
      {"model.num_key_value_heads", "4"},
      {"model.intermediate_size", "5440"},  // Megatron's own rounding, to 64
      {"model.rope_theta", "500000"},
      {"model.attention_bias", "false"},
      {"model.mlp_bias", "false"},
      {"model.tie_word_embeddings", "false"},
      {"model.dropout", "0.0"},
      {"model.vocab_size", "32000"},
      {"data.seq_len", "2048"},
      {"data.tokenizer", "/models/my tokenizer"},
      {"data.document_mask", "false"},
      {"data.validation_fraction", "0.05"},
      {"training.steps", "10000"},
      {"training.global_batch_size", "256"},
      {"training.micro_batch_size", "4"},
      {"training.precision", "bf16"},
      {"optimizer.beta2", "0.95"},
      {"lr_scheduler.decay", "cosine"},
      {"lr_scheduler.warmup_steps", "100"},
      {"lr_scheduler.min_lr_factor", "0.1"},
      {"metrics.log_freq", "10"},
      {"metrics.tensorboard", "true"}};
  for (const auto& pair : expected) {
    if (std::string(pair.second) == "0.0") {
      EXPECT_EQ(std::stod(value_of(result, pair.first)), 0) << pair.first;
    } else {
      EXPECT_EQ(value_of(result, pair.first), pair.second) << pair.first;
    }
  }
}

TEST(ImportMegatron, ListsWhatItCouldNotMapWithTheLine) {
  const ImportResult result = import_config(System::megatron, kMegatronScript, "run.sh");
  EXPECT_THAT(why(result, "--data-path $DATA_PATH"), HasSubstr("not in the input"));
  EXPECT_THAT(why(result, "--nproc_per_node"), HasSubstr("said elsewhere"));
  EXPECT_THAT(why(result, "--save /ckpt"), HasSubstr("--run-dir"));
  for (const UnmappedKey& unmapped : result.unmapped) {
    EXPECT_THAT(unmapped.where, HasSubstr("run.sh:")) << unmapped.source;
    EXPECT_THAT(unmapped.source, testing::Not(HasSubstr("log.txt")));
  }
}

TEST(ImportMegatron, LeavesVariablesAloneThatTheScriptDoesNotSetToOneWord) {
  const ImportResult result = import_config(
      System::megatron, "A=1\nA=2\nB=$1\nx --seed $A --clip-grad $B --num-layers 2\n", "run.sh");
  for (const char* source : {"--seed $A", "--clip-grad $B"}) {
    EXPECT_THAT(why(result, source), HasSubstr("value not in the input")) << source;
  }
}

TEST(ImportMegatron, TakesWhatIsLeftOutForMegatronsDefault) {
  const ImportResult result = from_arguments("--num-layers 2 --lr 1e-4");
  EXPECT_EQ(value_of(result, "model.architecture"), "gpt2");
  EXPECT_EQ(value_of(result, "model.tie_word_embeddings"), "true");
  EXPECT_EQ(value_of(result, "model.dropout"), "0.1");
  EXPECT_EQ(value_of(result, "training.precision"), "fp32");
  EXPECT_EQ(value_of(result, "optimizer.beta2"), "0.999");
  EXPECT_EQ(value_of(result, "lr_scheduler.decay"), "linear");
}

TEST(ImportMegatron, TakesDataByItsPrefixesAndNotByWeights) {
  EXPECT_EQ(value_of(from_arguments("--data-path a_document b_document"), "data.path"),
            "a_document,b_document");
  const ImportResult result = from_arguments("--data-path 0.3 a 0.7 b");
  EXPECT_EQ(value_of(result, "data.path"), "-");
  EXPECT_THAT(why(result, "--data-path 0.3 a 0.7 b"), HasSubstr("weights"));
}

TEST(ImportMegatron, MapsNoMixtureOfFamilies) {
  const ImportResult result = from_arguments("--swiglu --normalization LayerNorm");
  EXPECT_EQ(value_of(result, "model.architecture"), "-");
  EXPECT_THAT(why(result, "--swiglu"), HasSubstr("no family here"));
  EXPECT_THAT(why(result, "--normalization"), HasSubstr("no family here"));
}

TEST(ImportMegatron, MapsDropoutOnlyWhereBothSharesAreOne) {
  EXPECT_EQ(
      value_of(from_arguments("--hidden-dropout 0.2 --attention-dropout .2"), "model.dropout"),
      "0.2");
  EXPECT_EQ(value_of(from_arguments("--attention-dropout 0.1"), "model.dropout"), "0.1");
  const ImportResult result = from_arguments("--hidden-dropout 0");
  EXPECT_EQ(value_of(result, "model.dropout"), "-");
  EXPECT_THAT(why(result, "--hidden-dropout"), HasSubstr("differ"));
}

TEST(ImportMegatron, CountsSamplesInStepsOfTheGlobalBatch) {
  const ImportResult result = from_arguments(
      "--train-samples 1000 --lr-warmup-samples 100 --lr-decay-samples 1000 --global-batch-size "
      "10");
  EXPECT_EQ(value_of(result, "training.steps"), "100");
  EXPECT_EQ(value_of(result, "lr_scheduler.warmup_steps"), "10");
  EXPECT_THAT(why(result, "--lr-decay-samples"), HasSubstr("already"));
  EXPECT_THAT(why(from_arguments("--train-samples 1000"), "--train-samples"),
              HasSubstr("--global-batch-size"));
}

TEST(ImportMegatron, RefusesFp16AndUnknownShapesOfDecay) {
  const ImportResult result = from_arguments("--fp16 --lr-decay-style inverse-square-root");
  EXPECT_EQ(value_of(result, "training.precision"), "-");
  EXPECT_THAT(why(result, "--fp16"), HasSubstr("value not supported"));
  EXPECT_THAT(why(result, "--lr-decay-style"), HasSubstr("value not supported"));
}

TEST(ImportMegatron, TakesWsdOnlyAsTheDecayThatIsHere) {
  EXPECT_EQ(value_of(from_arguments("--lr-decay-style WSD --lr-wsd-decay-style linear "
                                    "--lr-wsd-decay-iters 20 --train-iters 100"),
                     "lr_scheduler.decay"),
            "wsd");
  const ImportResult other = from_arguments("--lr-decay-style WSD --lr-wsd-decay-iters 10");
  EXPECT_EQ(value_of(other, "lr_scheduler.decay"), "-");
  EXPECT_THAT(why(other, "--lr-wsd-decay-iters 10"), HasSubstr("last fifth"));
}

TEST(ImportMegatron, StretchesRopeAsLlama3Does) {
  const ImportResult result = from_arguments(
      "--swiglu --normalization RMSNorm --position-embedding-type rope --use-rope-scaling "
      "--max-position-embeddings 131072");
  EXPECT_EQ(value_of(result, "model.rope_scaling.rope_type"), "llama3");
  EXPECT_EQ(value_of(result, "model.rope_scaling.factor"), "8");
  EXPECT_EQ(value_of(result, "model.rope_scaling.original_max_position_embeddings"), "8192");
}

TEST(ImportMegatron, MapsTheDegreesAndInterleavesStages) {
  const std::string degrees =
      "--num-layers 24 --num-attention-heads 16 --hidden-size 1024 --tensor-model-parallel-size 4 "
      "--pipeline-model-parallel-size 2 --sequence-parallel ";
  ImportResult result = from_arguments(degrees);
  EXPECT_EQ(value_of(result, "parallelism.tensor_parallel_degree"), "4");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_parallel_degree"), "2");
  EXPECT_EQ(value_of(result, "parallelism.sequence_parallel"), "true");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_schedule"), "-");
  for (const char* stages :
       {"--num-layers-per-virtual-pipeline-stage 4", "--num-virtual-stages-per-pipeline-rank 3"}) {
    result = from_arguments(degrees + stages);
    EXPECT_EQ(value_of(result, "parallelism.virtual_stages"), "3") << stages;
    EXPECT_EQ(value_of(result, "parallelism.pipeline_schedule"), "interleaved") << stages;
    EXPECT_THAT(violations_in(to_toml(result)), IsEmpty()) << stages;
  }
}

TEST(ImportMegatron, LetsTheLastOfARepeatedFlagCount) {
  const ImportResult result = from_arguments("--lr 1 --lr=2 --lr 1e-3");
  EXPECT_EQ(value_of(result, "optimizer.lr"), "1e-3");
  EXPECT_THAT(why(result, "--lr 1"), HasSubstr("given again"));
  EXPECT_THAT(why(result, "--lr=2"), HasSubstr("given again"));
}

TEST(ImportMegatron, ListsWordsThatBelongToNoFlag) {
  const ImportResult result =
      import_megatron_arguments({"pretrain.py", "--bf16", "stray", "--lr", "1e-3", "more", "--x"});
  for (const char* word : {"pretrain.py", "stray", "more", "--x"}) {
    EXPECT_THAT(why(result, word), HasSubstr("no counterpart")) << word;
  }
}

TEST(ImportDeepSpeed, ReadsTheBatchTripleTheOptimizerAndTheScheduler) {
  const ImportResult result = from_json(kDeepSpeed);
  EXPECT_EQ(value_of(result, "training.global_batch_size"), "64");
  EXPECT_EQ(value_of(result, "training.micro_batch_size"), "4");
  EXPECT_EQ(value_of(result, "training.max_norm"), "0.5");
  EXPECT_EQ(value_of(result, "training.precision"), "bf16");
  EXPECT_EQ(value_of(result, "optimizer.beta1"), "0.8");
  EXPECT_EQ(value_of(result, "optimizer.beta2"), "0.999");
  EXPECT_EQ(value_of(result, "optimizer.lr"), "0.002");  // the scheduler's, which wins
  EXPECT_EQ(value_of(result, "lr_scheduler.decay"), "linear");
  EXPECT_EQ(value_of(result, "lr_scheduler.min_lr_factor"), "0");
  EXPECT_EQ(value_of(result, "lr_scheduler.warmup_steps"), "100");
  EXPECT_EQ(value_of(result, "metrics.tensorboard"), "true");
  EXPECT_THAT(why(result, "scheduler.params.total_num_steps"), HasSubstr("not in the input"));
  EXPECT_THAT(why(result, "zero_optimization.offload_optimizer.device"), HasSubstr("none"));
  EXPECT_THAT(why(result, "scheduler.params.warmup_type"), HasSubstr("logarithm"));
}

TEST(ImportDeepSpeed, TellsBatchSizesThatContradictEachOther) {
  const ImportResult result = from_json(
      R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4,
          "gradient_accumulation_steps": 2})");
  EXPECT_EQ(value_of(result, "training.global_batch_size"), "-");
  EXPECT_THAT(why(result, "train_batch_size"), HasSubstr("10 is not 4 x 2"));
}

TEST(ImportDeepSpeed, SaysWhereTheNumberOfRanksIsMissing) {
  const ImportResult result =
      from_json(R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})");
  EXPECT_EQ(value_of(result, "training.micro_batch_size"), "4");
  EXPECT_THAT(why(result, "gradient_accumulation_steps"), HasSubstr("data-parallel ranks"));
}

TEST(ImportDeepSpeed, MapsAdamOnlyWhereItIsAdamW) {
  EXPECT_EQ(value_of(from_json(R"({"optimizer": {"type": "Adam"}})"), "optimizer.name"), "adamw");
  for (const char* optimizer :
       {R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})",
        R"({"optimizer": {"type": "Adam", "params": {"torch_adam": true}}})",
        R"({"optimizer": {"type": "Lamb"}})"}) {
    const ImportResult result = from_json(optimizer);
    EXPECT_EQ(value_of(result, "optimizer.name"), "-") << optimizer;
    EXPECT_THAT(why(result, "optimizer.type"), HasSubstr("value not supported")) << optimizer;
  }
}

TEST(ImportAccelerate, ReadsItsSectionsAndListsKeysThatItRefusesItself) {
  const ImportResult result = import_config(System::accelerate, kAccelerate, "a.yaml");
  EXPECT_EQ(value_of(result, "training.precision"), "bf16");
  EXPECT_EQ(value_of(result, "training.max_norm"), "1.0");
  EXPECT_THAT(why(result, "invalid_key"), HasSubstr("Accelerate itself refuses"));
  EXPECT_THAT(why(result, "num_processes"), HasSubstr("--nproc-per-node 8"));
  EXPECT_THAT(why(result, "main_process_ip"), HasSubstr("is not set"));
}

TEST(ImportAccelerate, MapsTheDegreesOfMegatron) {
  const ImportResult result = import_config(
      System::accelerate,
      "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  megatron_lm_tp_degree: 2\n"
      "  megatron_lm_pp_degree: 3\n  megatron_lm_sequence_parallelism: true\n",
      "a.yaml");
  EXPECT_EQ(value_of(result, "parallelism.tensor_parallel_degree"), "2");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_parallel_degree"), "3");
  EXPECT_EQ(value_of(result, "parallelism.sequence_parallel"), "true");
}

TEST(ImportAccelerate, ReadsBothNamesOfFsdpsStrategies) {
  const std::pair<const char*, const char*> strategies[] = {
      {"FULL_SHARD", "3"}, {"1", "3"}, {"SHARD_GRAD_OP", "2"}, {"NO_SHARD", "0"}};
  for (const auto& pair : strategies) {
    const ImportResult result = import_config(
        System::accelerate,
        std::string("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: ") +
            pair.first,
        "a.yaml");
    EXPECT_THAT(value_of(result, "parallelism.zero_stage"), testing::EndsWith(pair.second));
  }
}

TEST(ImportTorchtitan, ReadsTheClassicSections) {
  const ImportResult result = import_config(System::torchtitan, kTorchtitan, "t.toml");
  EXPECT_EQ(value_of(result, "optimizer.lr"), "3e-04");
  EXPECT_EQ(value_of(result, "lr_scheduler.decay"), "wsd");
  EXPECT_EQ(value_of(result, "training.micro_batch_size"), "2");
  EXPECT_EQ(value_of(result, "data.seq_len"), "512");
  EXPECT_EQ(value_of(result, "data.validation_fraction"), "0");
  EXPECT_EQ(value_of(result, "data.tokenizer"), "./assets/tokenizer");
  EXPECT_EQ(value_of(result, "parallelism.data_parallel_degree"), "8");
  EXPECT_EQ(value_of(result, "checkpoint.interval"), "500");
  EXPECT_EQ(value_of(result, "activation_checkpoint.mode"), "full");
  EXPECT_EQ(value_of(result, "metrics.tensorboard"), "true");
  EXPECT_EQ(value_of(result, "lr_scheduler.min_lr_factor"), "0");
  EXPECT_THAT(why(result, "model.flavor"), HasSubstr("no preset"));
  EXPECT_THAT(why(result, "validation.freq"), HasSubstr("validation.enable"));
}

TEST(ImportTorchtitan, MapsAPipelineAndReckonsItsStages) {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"
      "tensor_parallel_degree = 2\npipeline_parallel_degree = 4\n"
      "pipeline_parallel_microbatch_size = 2\npipeline_parallel_schedule = ";
  ImportResult result = import_config(System::torchtitan, text + "\"ZBVZeroBubble\"\n", "t.toml");
  EXPECT_EQ(value_of(result, "parallelism.tensor_parallel_degree"), "2");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_parallel_degree"), "4");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_schedule"), "zb-v");
  EXPECT_EQ(value_of(result, "parallelism.virtual_stages"), "2");
  EXPECT_EQ(value_of(result, "training.micro_batch_size"), "2");
  // 32 blocks, embedding and head, three by three: twelve stages.
  result = import_config(System::torchtitan,
                         text + "\"Interleaved1F1B\"\npipeline_parallel_layers_per_stage = 3\n",
                         "t.toml");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_schedule"), "interleaved");
  EXPECT_EQ(value_of(result, "parallelism.virtual_stages"), "3");
  result = import_config(System::torchtitan,
                         text + "\"1F1B\"\npipeline_parallel_layers_per_stage = 9\n", "t.toml");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_schedule"), "1f1b");
  EXPECT_THAT(why(result, "parallelism.pipeline_parallel_layers_per_stage"),
              HasSubstr("cut by their cost"));
  result = import_config(System::torchtitan,
                         text + "\"1F1B\"\npipeline_parallel_schedule_csv = \"x.csv\"\n", "t.toml");
  EXPECT_EQ(value_of(result, "parallelism.pipeline_schedule"), "x.csv");
}

TEST(ImportTorchtitan, KnowsTheOlderNames) {
  const ImportResult result = import_config(
      System::torchtitan, "[training]\nbatch_size = 4\nseed = 7\n[lr_scheduler]\nlr_min = 0.1\n",
      "t.toml");
  EXPECT_EQ(value_of(result, "training.micro_batch_size"), "4");
  EXPECT_EQ(value_of(result, "training.seed"), "7");
  EXPECT_EQ(value_of(result, "lr_scheduler.min_lr_factor"), "0.1");
}

TEST(Import, AccountsForEveryKeyOfTheInput) {
  expect_all_accounted_for(from_json(kDeepSpeed), keys_of(read_json_entries(kDeepSpeed, "x")));
  expect_all_accounted_for(import_config(System::accelerate, kAccelerate, "x"),
                           keys_of(read_yaml_entries(kAccelerate, "x")));
  expect_all_accounted_for(import_config(System::torchtitan, kTorchtitan, "x"),
                           keys_of(read_toml_entries(kTorchtitan, "x")));
  std::vector<std::string> flags;
  for (const ShellWord& word : read_shell_words(kMegatronScript, "x")) {
    if (word.text.compare(0, 2, "--") == 0) flags.push_back(word.text);
  }
  EXPECT_EQ(flags.size(), 38u);
  expect_all_accounted_for(import_config(System::megatron, kMegatronScript, "x"), flags);
}

TEST(Import, PrintsWhatConfigCheckTakes) {
  const ImportResult results[] = {import_config(System::megatron, kMegatronScript, "x"),
                                  from_json(kDeepSpeed),
                                  import_config(System::accelerate, kAccelerate, "x"),
                                  import_config(System::torchtitan, kTorchtitan, "x")};
  for (const ImportResult& result : results) {
    const std::string toml = to_toml(result);
    EXPECT_THAT(violations_in(toml), IsEmpty()) << toml;
    for (const MappedKey& mapped : result.mapped) {
      EXPECT_THAT(toml, HasSubstr(mapped.sources.front().substr(0, 20)));
    }
  }
}

TEST(Import, PrintsAsACommentWhatThisVersionWouldRefuse) {
  const ImportResult result = from_arguments(
      "--seq-length 4096 --max-position-embeddings 2048 --num-attention-heads 0 --clip-grad -1");
  EXPECT_EQ(value_of(result, "data.seq_len"), "refused 4096");
  EXPECT_EQ(value_of(result, "training.max_norm"), "refused -1");
  EXPECT_THAT(to_toml(result), HasSubstr("# seq_len = 4096"));
  EXPECT_THAT(why(result, "--seq-length"), HasSubstr("max_position_embeddings"));
  EXPECT_THAT(violations_in(to_toml(result)), IsEmpty());
}

TEST(Import, PrintsNoStretchedPositionsWithoutRotaryOnes) {
  const ImportResult result =
      from_arguments("--num-layers 4 --use-rope-scaling --rope-scaling-factor 16");
  EXPECT_EQ(value_of(result, "model.rope_scaling.factor"), "refused 16");
  EXPECT_THAT(violations_in(to_toml(result)), IsEmpty()) << to_toml(result);
}

TEST(Import, PrintsAsACommentWhatDoesNotGoWithAKeyThatIsLeftOut) {
  const ImportResult result = from_arguments("--hidden-size 98");
  EXPECT_EQ(value_of(result, "model.hidden_size"), "refused 98");
  EXPECT_THAT(why(result, "--hidden-size"), HasSubstr("num_attention_heads"));
  EXPECT_THAT(violations_in(to_toml(result)), IsEmpty()) << to_toml(result);
}

TEST(Import, KeepsControlCharactersOutOfTheToml) {
  const ImportResult result =
      from_json(R"({"optimizer": {"type": "AdamW\n[model]\u0007"}, "seed": "1\n2", "seed\n": 1})");
  EXPECT_NO_THROW(parse_config(to_toml(result), "x")) << to_toml(result);
  EXPECT_THAT(describe(result), testing::Not(HasSubstr("\x07")));
}

TEST(Import, TellsTheWholeAsJson) {
  const auto json = nlohmann::json::parse(to_json(from_json(kDeepSpeed)));
  EXPECT_EQ(json["from"], "deepspeed");
  EXPECT_EQ(json["toml"], to_toml(from_json(kDeepSpeed)));
  EXPECT_TRUE(json["mapped"][0]["sources"].is_array());
  EXPECT_TRUE(json["unmapped"][0].contains("reason"));
}

TEST(Import, SaysWhereATextIsNotOfItsForm) {
  const std::pair<System, std::pair<std::string, const char*>> broken[] = {
      {System::deepspeed, {"{\"a\": }", "JSON"}},
      {System::deepspeed, {"[1]", "object"}},
      {System::deepspeed, {"{\"a\": 1, \"a\": 2}", "twice"}},
      {System::deepspeed, {std::string(99, '[') + std::string(99, ']'), "deeply"}},
      {System::accelerate, {"a: [1", "YAML"}},
      {System::accelerate, {"- 1", "mapping"}},
      {System::accelerate, {"a: " + std::string(3000, '['), "deeply"}},
      {System::deepspeed, {"{}", "no key of deepspeed's"}},
      {System::accelerate, {"title: x\n", "no key of accelerate's"}},
      {System::torchtitan, {"", "no key of torchtitan's"}},
      {System::accelerate, {"a: &x\n  b: *x\n", "circle"}},
      {System::torchtitan, {"[a\n", "TOML"}},
      {System::megatron, {"--lr \xff", "UTF-8"}}};
  for (const auto& entry : broken) {
    try {
      import_config(entry.first, entry.second.first, "file.x");
      ADD_FAILURE() << "took " << entry.second.first;
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("file.x"));
      if (std::string(entry.second.second) != "circle") {
        EXPECT_THAT(error.what(), HasSubstr(entry.second.second));
      }
    }
  }
}

TEST(ShellWords, FollowsQuotesContinuationsAndComments) {
  std::vector<std::string> words;
  for (const ShellWord& word : read_shell_words("run --a 'x y' \\\n  --b \"p \\\" $Q\" # --c "
                                                "1\n--d 'it'\"s\" >out --not-this\necho hi\n",
                                                "x")) {
    words.push_back(word.text);
  }
  EXPECT_THAT(words, ElementsAre("--a", "x y", "--b", "p \" $Q", "--d", "its", "--not-this"));
}

}  // namespace
}  // namespace tessera::formats
