#!/bin/sh
# `config import` as a user meets it: what is printed passes `config check`, and what could not be
# mapped is told on stderr.
. "$(dirname "$0")/common.sh"

cat >ds.json <<'JSON'
{"train_batch_size": 32, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}}
JSON
"$program" config import --from deepspeed ds.json >mine.toml 2>out || fail "import failed"
expect_says "zero_optimization.stage = 2"
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
