#!/bin/sh
# A planned step becomes a trace like a run's; failures, time and cost follow from flags.
. "$(dirname "$0")/common.sh"
flags="--model llama-3-70b --cluster h100-80g --gpus 1024 --tp 8 --pp 4 --zero 1 --sp 1
  --seq-len 4096 --global-batch 512 --recompute selective"

# shellcheck disable=SC2086
simulate() { expect_status "$1" simulate $flags $(shift && echo "$@"); }

simulate 0 --trace trace
expect_says 'trace/rank-0.json to .*trace/rank-768.json'
[ "$(find trace -name 'rank-*.json' | wc -l)" -eq 4 ] || fail "not a file for each stage"
grep -q '"name":"F s3 c0 m7"' trace/rank-768.json || fail "the last stage has no micro-batch 7"
grep -q '"name":"optimizer"' trace/rank-0.json || fail "no optimizer"
grep -q '"rank":256,"world_size":1024' trace/rank-256.json || fail "not rank 256 of 1024"
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys
for path in sys.argv[1:]:
    events = json.load(open(path))["traceEvents"]
    assert any(e["ph"] == "X" for e in events), path' trace/rank-*.json || fail "no JSON"
fi

# Failures: the formula, and a simulation that bears it out.
simulate 0 --mtbf-hours 50000 --save-s 60 --restart-s 600
expect_says 'one in 2.03 days (1024 parts'
expect_says ': agrees$'
cp out first
simulate 0 --mtbf-hours 50000 --save-s 60 --restart-s 600
cmp first out || fail "two runs say different things"
simulate 0 --mtbf-hours 50000 --mtbf-of node --interval-s 900 --json
expect_json
expect_says '"parts": 128'
expect_says '"interval_s": 900.0'
expect_says '"agrees": true'

# Time and cost, of tokens or for a loss.
simulate 0 --tokens 15e12 --mtbf-hours 50000 --json
expect_json
for key in train_days gpu_hours cost_usd scaling_law loss; do expect_says "\"$key\": "; done
simulate 0 --loss 1.95 --law besiroglu
expect_says 'Besiroglu'
simulate 2 --loss 1.5
expect_says 'out of reach.*comes down to'
simulate 2 --loss 1.95 --tokens 1e12
simulate 2 --law kaplan
simulate 2 --mtbf-hours -1
expect_status 2 simulate --model llama-3-70b --gpus 1000 --tp 3
expect_status 2 simulate --params 7e9 --gpus 8
