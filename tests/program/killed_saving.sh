#!/bin/sh
# A rank that has a shard is killed while the ranks save: the checkpoint that was on its way does not
# appear, those before it are whole, and another number of ranks, with another stage, goes on from
# the last of them.
. "$(dirname "$0")/common.sh"

stage=3
steps=0
resume=
for ranks in 3 2 4; do
  "$program" launch --nproc-per-node $ranks -- train toy.toml --training.steps 1000000 --run-dir run \
    --model.hidden_size 256 --checkpoint.interval 1 --checkpoint.keep_latest_k 2 \
    --parallelism.zero_stage $stage $resume >out 2>&1 &
  launcher=$!
  wait_for_step run $((steps + 3)) "$launcher"
  victim=$(pgrep -P "$launcher" | tail -n 1)
  # The builtin test looks often enough to find the folder while files are written to it.
  while :; do
    for saving in run/checkpoints/*.tmp/rank-*; do
      [ ! -e "$saving" ] || break 2
    done
    kill -0 "$launcher" 2>/dev/null || fail "the run ended by itself"
  done
  kill -KILL "$victim"
  status=0
  wait "$launcher" || status=$?
  [ "$status" -eq 1 ] || fail "status $status instead of 1"
  expect_says "died (pid $victim is gone)"
  saved=0
  for checkpoint in run/checkpoints/step-*; do
    case $checkpoint in *.tmp) continue ;; esac
    "$program" checkpoint verify "$checkpoint" >out 2>&1 || fail "$checkpoint is not whole"
    saved=$((saved + 1))
  done
  [ "$saved" -ge 1 ] || fail "no checkpoint is left"
  stage=$((stage - 1))
  steps=$(wc -l <run/metrics.jsonl)
  resume=--resume
done

newest=$(ls run/checkpoints | grep -v tmp | tail -n 1)
last=$(expr "$newest" : 'step-0*\([0-9]*\)')
expect_status 0 launch --nproc-per-node 5 -- train toy.toml --training.steps $((last + 1)) \
  --run-dir run --model.hidden_size 256 --parallelism.zero_stage 3 --resume
expect_says "resumed from .*$newest"

# A shard that is lost: file and tensor are named, and the checkpoint before it is taken.
newest=$(ls run/checkpoints | grep -v tmp | tail -n 1)
before=$(ls run/checkpoints | grep -v tmp | tail -n 2 | head -n 1)
rm "run/checkpoints/$newest/rank-00002.safetensors"
expect_status 1 checkpoint verify "run/checkpoints/$newest"
expect_says "$newest/rank-00002.safetensors: No such file.*model\..* lie in it"
expect_status 1 generate "run/checkpoints/$newest" --prompt tile
expect_says "$newest/rank-00002.safetensors"
expect_status 0 generate "run/checkpoints/$before" --prompt tile --max-new-tokens 4
expect_status 0 launch --nproc-per-node 2 -- train toy.toml --training.steps $((last + 2)) \
  --run-dir run --model.hidden_size 256 --parallelism.zero_stage 2 --resume
expect_says "passing over .*$newest.*rank-00002"
expect_says "resumed from .*$before"
[ -z "$(find run -name '*.tmp*')" ] || fail "something of killed saves is left"
