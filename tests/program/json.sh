#!/bin/sh
# --json prints one JSON value and nothing else.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || exit 77

quiet() {
  "$program" "$@" >out 2>err || fail "tessera $*: $(cat err)"
  expect_json
}
quiet config check toy.toml --json
quiet config schema
quiet train toy.toml --run-dir run --json
quiet checkpoint list run --json
quiet checkpoint show run --json
quiet checkpoint verify run --json
quiet generate run --prompt the --max-new-tokens 3 --json
quiet verify toy.toml --steps 2 --layouts "dp=2" --json
quiet data tokenize toy.jsonl --output toy.bin --json
quiet data show toy.bin --json
quiet data encode toy.jsonl --json
quiet schedule show toy.toml --json
quiet exact --json
quiet simulate --model gpt2-124m --gpus 8 --mtbf-hours 100 --json
quiet plan --model llama-2-7b --gpus 8 --zero 3 --recompute full --explain --json
quiet plan --ideal --params 7e9 --gpus 8 --zero 1 --json
quiet bench step toy.toml --steps 1 --json
quiet bench gemm toy.toml --repetitions 1 --json
"$program" launch --nproc-per-node 2 -- train toy.toml --run-dir run2 --json >out 2>err
expect_json
