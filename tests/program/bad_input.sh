#!/bin/sh
# What a user gets wrong: a message that says what, why and what to do; the right exit status.
. "$(dirname "$0")/common.sh"

expect_status 2 train nowhere.toml
expect_says "nowhere.toml"
expect_says "does not exist"

expect_status 2 train toy.toml --training.stepz 3 --model.hidden_size 33 --optimizer.lr -1 \
  --lr_scheduler.decay slow --data.seq_len 0
expect_says "5 mistakes"
expect_says "training.steps"

: >empty.txt
expect_status 2 train toy.toml --data.path empty.txt
expect_says "empty"
expect_status 2 train toy.toml --data.path missing.txt
expect_says "missing.txt"
expect_status 2 train toy.toml --data.path .
expect_says "folder"

expect_status 2 launch --nproc-per-node 9 -- train toy.toml --run-dir run
expect_says "global_batch_size"
[ "$(grep -c '^tessera:' out)" -eq 1 ] || fail "more than one rank told of a shared mistake"
[ ! -e run ] || fail "a refused run left a folder"

expect_status 2 launch --nproc-per-node 4 -- train toy.toml --run-dir run \
  --parallelism.tensor_parallel_degree 3 --parallelism.sequence_parallel \
  --parallelism.pipeline_parallel_degree 4 --parallelism.pipeline_schedule interleaved
expect_says "mistakes"
expect_says "does not divide num_attention_heads 4"
expect_says "do not divide data.seq_len 32"
expect_says "do not divide the 4 there are"
expect_says "virtual_stages = 1"
expect_status 2 launch --nproc-per-node 2 -- train toy.toml --run-dir run \
  --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule nowhere.csv
expect_says "nowhere.csv does not exist"
printf '0F0,0B0\n1F0\n' >broken.csv
expect_status 2 launch --nproc-per-node 2 -- train toy.toml --run-dir run \
  --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule broken.csv
expect_says "cannot be carried out"
expect_status 2 verify toy.toml --layouts "tp=3|4,sp=1; pp=3; pp=2,schedule=zb-v; dp=2,v=2"
expect_says "mistakes"
expect_says "(--layouts: dp=1,tp=3,sp=1)"
expect_says "(--layouts: dp=1,pp=3)"
expect_says "(--layouts: dp=2,v=2)"
[ ! -e run ] || fail "a refused run left a folder"

expect_status 0 train toy.toml --run-dir run
expect_status 2 train toy.toml --run-dir run
expect_says "\-\-resume"
mkdir home && echo mine >home/precious.txt
expect_status 2 train toy.toml --run-dir home --overwrite
[ -f home/precious.txt ] || fail "somebody's file is gone"

expect_status 0 data tokenize toy.jsonl --output toy.bin
expect_status 0 train toy.toml --data.path toy.bin --run-dir run2
head -c 2000 toy.bin >cut.bin
expect_status 2 train toy.toml --data.path cut.bin --run-dir run3
expect_says "cut.bin"
printf '\377\377' | dd of=toy.bin bs=1 seek=1200 conv=notrunc 2>/dev/null
expect_status 2 train toy.toml --data.path toy.bin --run-dir run3
expect_says "65535"

for file in run/checkpoints/step-00000012/*.safetensors; do truncate -s 100 "$file"; done
expect_status 1 checkpoint verify run/checkpoints/step-00000012
expect_says "damaged"
expect_status 1 train toy.toml --training.load run/checkpoints/step-00000012 --run-dir run4
expect_says "damaged"
expect_status 1 generate run --prompt the --max-new-tokens 4
expect_says "damaged"
expect_status 1 checkpoint verify run
expect_status 2 train toy.toml --run-dir run --resume --training.seed 5 --training.steps 13
expect_says "training.seed"
expect_status 2 train toy.toml --run-dir run --resume --model.hidden_size 64 --training.steps 13
grep -q "hidden_size = 32" run/config.toml || fail "a refused resume changed config.toml"
expect_status 0 train --run-dir run --resume --training.steps 13
expect_says "passing over"
expect_says "step-00000008 (step 8"
cp run/summary.json before.json
expect_status 0 train toy.toml --run-dir run --resume --training.steps 13
expect_says "nothing to do"
cmp -s before.json run/summary.json || fail "a run that had nothing to do changed its summary"

expect_status 2 train toy.toml --run-dir run --overwrite --training.load run
expect_says "overwrite would empty"
expect_status 2 train toy.toml --run-dir run --overwrite --training.load nowhere
[ -d run/checkpoints/step-00000013 ] || fail "a refused --overwrite removed the old run"
expect_status 2 train toy.toml --training.precision fp32 --training.gradient_dtype bf16
expect_says "gradient_dtype"

"$program" train toy.toml --run-dir busy --training.steps 100000 >busy.out 2>&1 &
busy=$!
wait_for_step busy 3 "$busy"
expect_status 2 train toy.toml --run-dir busy --resume
expect_says "in use by process $busy"
kill -TERM "$busy"
status=0
wait "$busy" || status=$?
[ "$status" -eq 143 ] || fail "status $status instead of 143 after SIGTERM"

cp toy.jsonl own.jsonl
expect_status 2 data tokenize own.jsonl --output own.jsonl --overwrite
expect_says "is what is read"
cmp -s toy.jsonl own.jsonl || fail "a refused output took its input's place"
expect_status 0 data tokenize toy.jsonl --output shard.bin --shard-tokens 400
[ -f shard_000003.bin ] || fail "fewer shards than the text takes"
expect_status 0 data tokenize toy.jsonl --output shard.bin --overwrite
[ ! -e shard_000001.bin ] || fail "shards of an earlier run were left beside the new file"

expect_status 3 train --run-dir huge --model.preset llama-3-405b --data.path toy.jsonl --data.seq_len 32
expect_says "does not fit"
[ ! -e huge ] || fail "a run that does not fit made its folder"

expect_status 2 verify toy.toml --layouts "dp=2,cp=2; dq=1"
expect_says "cp"
expect_says "dq"
expect_status 2 generate toy.toml
for option in "--temperature nan" "--temperature inf" "--temperature -1" "--top-p nan" "--seed -1"; do
    # shellcheck disable=SC2086
    expect_status 2 generate run $option
    expect_says "${option#* }"
done
expect_status 2 launch --nproc-per-node 0 -- train toy.toml
expect_status 2 launch --nproc-per-node 2 -- generate run
expect_status 2 trian toy.toml
expect_says "try: train"
expect_status 2 verify toy.toml --layouts "dp=2,dp=3"
expect_says "twice"
status=0
"$program" config check toy.toml >/dev/full 2>out || status=$?
[ "$status" -eq 1 ] || fail "status $status instead of 1 where the report cannot be written"
