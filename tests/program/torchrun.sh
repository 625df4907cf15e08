#!/bin/sh
# Ranks started by hand with torchrun's variables, as `torchrun --no-python` starts them.
. "$(dirname "$0")/common.sh"

export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000))
RANK=1 LOCAL_RANK=1 "$program" train toy.toml --run-dir run >second 2>&1 &
RANK=0 LOCAL_RANK=0 "$program" train toy.toml --run-dir run >out 2>&1 || fail "rank 0 failed"
wait $! || fail "rank 1 failed: $(cat second)"
expect_says "torchrun"
[ ! -s second ] || fail "rank 1 is not silent: $(cat second)"
unset WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
expect_status 0 launch --nproc-per-node 2 -- train toy.toml --run-dir run2
[ "$(grep weights_hash run/summary.json)" = "$(grep weights_hash run2/summary.json)" ] ||
  fail "torchrun's ranks train another model than the launcher's"
