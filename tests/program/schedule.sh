#!/bin/sh
# Schedules are drawn, checked and exchanged with PyTorch; what docs/pipeline.md shows is what comes.
. "$(dirname "$0")/common.sh"

# Exported and read back, each is itself.
for name in gpipe 1f1b interleaved zb-h1 zb-v; do
  expect_status 0 schedule export --schedule "$name" --pp 3 --micro-batches 7 --output "$name.csv"
  expect_status 0 schedule check "$name.csv"
  expect_says "it is $name"
  expect_status 0 schedule show --schedule "$name.csv"
done
expect_status 0 schedule check "$tests/fixtures/schedules/zbv-p4-v2-m8-comms.csv"
expect_says "4 ranks, 8 stages, 8 micro-batches; can be carried out; it is zb-v"

# Every mistake of a file is said at once.
printf '0F0,0B0,0F1,0X1\n1F1,1B1,1F0,1B0\n' >wrong.csv
expect_status 2 schedule check wrong.csv
expect_says 'row 1, column 4: "0X1" is no action'
sed -i s/0X1/0B1,0B1/ wrong.csv
expect_status 2 schedule check wrong.csv
expect_says "0B1 is done more than once"
expect_says "ranks wait for each other: 0B0 on rank 0 waits for 1B0 on rank 1; 1F1 on rank 1 waits"
expect_status 2 schedule show --schedule wrong.csv
expect_says "0B1 is done more than once"
expect_status 2 schedule check missing.csv
expect_status 2 schedule show --schedule zbv
expect_says "try: zb-v"
expect_status 2 schedule show --schedule zb-v --virtual-stages 3
expect_status 2 schedule show --schedule gpipe.csv --pp 4
expect_status 2 schedule show toy.toml --pp 4
expect_status 2 schedule show --times 1,1
expect_status 2 schedule show --times 0,0,0
expect_status 2 schedule show --pp 1024 --micro-batches 65536

# A config's own schedule, with times by FLOPs.
expect_status 0 schedule show toy.toml --parallelism.pipeline_parallel_degree 2 \
  --training.micro_batch_size 1
expect_says "2 ranks, 2 stages, 8 micro-batches; by FLOPs"
expect_status 0 schedule show toy.toml
expect_says "1 rank, 1 stage"

# JSON, and no colours but on a terminal.
expect_status 0 schedule show --json
expect_json
expect_says '"bubble_fraction": 0.27'
expect_status 0 schedule check 1f1b.csv --json
expect_json
expect_status 2 schedule check wrong.csv --json
expect_json
"$program" schedule show | grep -q "$(printf '\033')" && fail "colours in a pipe"

# The console blocks of the page: a command, then what it prints.
awk '/^```console$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("block." n) }' \
  "$tests/../docs/pipeline.md"
[ -f block.5 ] || fail "docs/pipeline.md has fewer examples than there were"
for block in block.*; do
  arguments=$(sed -n '1s/^\$ tessera //p' "$block")
  sed 1d "$block" >expected
  # shellcheck disable=SC2086
  "$program" $arguments >out 2>&1 || fail "tessera $arguments"
  diff expected out || fail "docs/pipeline.md: tessera $arguments prints something else"
done
