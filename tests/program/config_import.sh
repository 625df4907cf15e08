#!/bin/sh
# `config import` as a user meets it: what is printed passes `config check`, and what could not be
# mapped is told on stderr.
. "$(dirname "$0")/common.sh"

cat >ds.json <<'JSON'
{"train_batch_size": 32, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
JSON
"$program" config import --from deepspeed ds.json >mine.toml 2>out || fail "import failed"
grep -q "^zero_stage = 2" mine.toml || fail "the stage is lost"
expect_status 0 config check mine.toml --data.path toy.jsonl
expect_says "global_batch_size = 32"

"$program" config import --from megatron -- --num-layers 2 --hidden-size 64 \
  --num-attention-heads 4 --lr 1e-3 --no-such-flag 7 >mine.toml 2>out || fail "import failed"
expect_says "no-such-flag 7"
expect_status 0 config check mine.toml --data.path toy.jsonl
expect_says "num_hidden_layers = 2"

expect_status 0 config import --from deepspeed ds.json --json
expect_json
expect_status 2 config import --from nemo ds.json
expect_says "has to be megatron, deepspeed"
expect_status 2 config import --from deepspeed no.json
expect_says "no.json"
expect_status 2 config import --from deepspeed mine.toml
expect_says "mine.toml: not JSON"
expect_status 2 config import --from torchtitan -- --lr 1
expect_says "Megatron's form"

cat >grow.sh <<'SH'
ARGS="--num-layers 2"
ARGS="$ARGS --hidden-size 64 --num-attention-heads 4"
if [ -n "$LONG" ]; then ARGS="${ARGS} --train-iters 5"; fi
torchrun --nproc_per_node 2 pretrain_gpt.py $ARGS $MORE_ARGS --seq-length ${SEQ:-128} \
  --use-rope-scaling --rope-scaling-factor 8
SH
"$program" config import --from megatron grow.sh >mine.toml 2>out || fail "import failed"
expect_says "  \$MORE_ARGS: "
expect_says "  --nproc_per_node 2: "
expect_status 0 config check mine.toml --data.path toy.jsonl
expect_says "hidden_size = 64"
expect_says "steps = 5"
expect_says "seq_len = 128"
expect_status 2 config import --from megatron toy.jsonl
expect_says "toy.jsonl"
echo "x.py --lr '1" >open.sh
expect_status 2 config import --from megatron open.sh
expect_says "open.sh:1: opens a quote"
: >empty.toml
expect_status 2 config import --from torchtitan empty.toml
expect_says "no key of torchtitan's"
