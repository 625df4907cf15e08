#!/bin/sh
# A model that ranks train in parts is sampled from by ranks with other parts, and by one rank.
. "$(dirname "$0")/common.sh"

expect_status 0 launch --nproc-per-node 4 -- train toy.toml --run-dir run --training.precision fp32 \
  --parallelism.tensor_parallel_degree 2 --parallelism.pipeline_parallel_degree 2
say() {
  "$program" "$@" run --prompt "tile" --temperature 0 --max-new-tokens 12 >said 2>out ||
    fail "tessera $*"
  cat said
}
alone=$(say generate)
[ -n "$alone" ] || fail "nothing was said"
for layout in tp=2 pp=2 tp=2,pp=2; do
  ranks=2
  [ "$layout" != tp=2,pp=2 ] || ranks=4
  [ "$(say launch --nproc-per-node $ranks -- generate --layout $layout)" = "$alone" ] ||
    fail "$layout says something else than one rank: $(cat said)"
done
"$program" launch --nproc-per-node 2 -- generate run --json --layout pp=2 --max-new-tokens 2 \
  >out 2>said || fail "generate --json: $(cat said)"
expect_json

expect_status 2 generate run --layout tp=2
expect_says "launch --nproc-per-node 2"
expect_status 2 launch --nproc-per-node 2 -- generate run --layout tp=2,pp=2
expect_says "tp=2, pp=2 is a layout of 4 ranks, but there are 2"
[ "$(grep -c "is a layout of 4 ranks" out)" -eq 1 ] || fail "more than one rank tells it"
expect_status 2 generate run --layout tp=2,dp=2
expect_says "cut by tp and pp alone"
expect_status 2 generate run --layout tpp=2
expect_says "tpp"

expect_status 0 checkpoint convert run --to hf --output hf
expect_status 0 generate hf --prompt "tile" --temperature 0 --max-new-tokens 12
[ "$(cat out)" = "$alone" ] || fail "the exported model says something else"
expect_status 0 train toy.toml --run-dir run --resume --training.precision fp32 --training.steps 14
