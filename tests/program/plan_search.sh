#!/bin/sh
# A search writes its best layout as a file that a run takes; flags for others; advice.
. "$(dirname "$0")/common.sh"

# A plan has no data to take the vocabulary from: it is said.
cat >model.toml <<'END'
[model]
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
max_position_embeddings = 64
vocab_size = 257
END
plan() { expect_status 0 plan --model model.toml --cluster cpu-host --gpus 2 --global-batch 8 \
  --seq-len 32 --precision fp32 "$@"; }

plan --search --out layout.toml
expect_says "layouts in"
expect_says "each value of each knob"
expect_status 0 config check toy.toml layout.toml --ranks 2
expect_status 0 launch --nproc-per-node 2 -- train toy.toml layout.toml --run-dir run --training.steps 2
[ "$(wc -l <run/metrics.jsonl)" -eq 2 ] || fail "not two steps"

# What is asked for is kept to, and the engine takes it: a pipeline, then tensor parallelism.
for pins in "--pp 2 --schedule 1f1b" "--tp 2 --sp 1 --recompute full"; do
  # shellcheck disable=SC2086
  plan --search $pins --out pinned.toml
  expect_status 0 launch --nproc-per-node 2 -- train toy.toml pinned.toml --run-dir pinned \
    --overwrite --training.steps 2
done
grep -q "tensor_parallel_degree = 2" pinned.toml || fail "--tp 2 is not kept to"

plan --search --json
expect_json
plan --search --explain
expect_says "time.step_s"
plan --search --explain --json
expect_json
expect_says '"not_modelled"'
plan --search --emit deepspeed
expect_json
plan --search --emit megatron
expect_says "--tensor-model-parallel-size"
plan --tp 2 --emit torchtitan
expect_says "tensor_parallel_degree = 2"

# Flags of experts are an array that a shell takes.
expect_status 0 plan --model deepseek-v3 --cluster h100-80g --gpus 2048 --tp 8 --ep 64 --pp 16 \
  --zero 1 --recompute full --emit megatron
expect_says "moe-layer-freq \""
if command -v bash >/dev/null; then bash -n out || fail "not a shell's array"; fi

# Mistakes teach.
big="plan --model llama-2-70b --cluster h100-80g"
expect_status 2 $big --gpus 16 --search --tp 7
expect_says "have to divide the 16 GPUs"
expect_status 2 $big --gpus 16 --search --emit nanotron
expect_says "megatron, deepspeed and torchtitan"
for asked in --search --advise "--emit megatron"; do
  # shellcheck disable=SC2086
  expect_status 2 $big --gpus 64 $asked --ideal
  expect_says "leave out the one or the other"
done
expect_status 2 $big --gpus 64 --advise --explain
expect_says "beside --advise alone"
expect_status 3 $big --gpus 2 --search
expect_says "no layout fits"

expect_status 0 $big --gpus 64 --global-batch 256 --advise
expect_says "Does one GPU hold everything? No"
expect_says "A search of every layout finds"
expect_status 0 $big --gpus 64 --global-batch 256 --advise --json
expect_json
expect_status 2 $big --gpus 64 --advise --tp 8
expect_says "leave it out"
