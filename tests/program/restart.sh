#!/bin/sh
# With --max-restarts the launcher starts a run again after a rank was killed, from its last
# checkpoint, and the run ends as if nothing had happened.
. "$(dirname "$0")/common.sh"

expect_status 0 launch --nproc-per-node 2 -- train toy.toml --checkpoint.interval 10 --training.steps 600 --run-dir whole
hash=$(grep -o '"weights_hash": "[0-9a-f]*"' whole/summary.json)

"$program" launch --nproc-per-node 2 --max-restarts 1 -- train toy.toml --checkpoint.interval 10 --training.steps 600 \
  --run-dir run >out 2>&1 &
launcher=$!
wait_for_step run 12 "$launcher"
kill -KILL "$(pgrep -P "$launcher" | tail -n 1)" || fail "the run was over too soon"
status=0
wait "$launcher" || status=$?
[ "$status" -eq 0 ] || fail "status $status instead of 0"
expect_says "resumed from"
grep -q "$hash" run/summary.json || fail "other weights than those of the uninterrupted run"
