#!/bin/sh
# scripts/nightly_curve.sh [STEPS]: trains gpt2-124m in bf16 on the real text with 2 ranks, and then
# PyTorch from the same weights on the same batches; fails when the loss curves differ by more than
# 1 %. Needs `make build` and `make peers`. About half an hour on 2 cores.
set -eu
cd "$(dirname "$0")/.."
steps=${1:-300}
python=${PYTHON:-.venv/bin/python}
work=build/nightly/curve
config="examples/gpt2_124m.toml --training.steps $steps"

scripts/real_text.sh build/data/bible.jsonl
if [ ! -f build/data/tokenizer/tokenizer.json ]; then
  build/tessera data train-tokenizer build/data/bible.jsonl --output build/data/tokenizer
fi
rm -rf "$work"
mkdir -p "$work"
build/tessera checkpoint init $config --output "$work/seed"
build/tessera data batches $config --steps "$steps" --output "$work/batches.safetensors"
build/tessera config check $config --json >"$work/config.json"
build/tessera launch --nproc-per-node 2 -- train $config --run-dir "$work/run"
"$python" tests/peers/gpt2_curve.py "$work/seed" "$work/batches.safetensors" \
  "$work/run/metrics.jsonl" --config "$work/config.json"
rm -rf "$work/seed" "$work/run/checkpoints"
