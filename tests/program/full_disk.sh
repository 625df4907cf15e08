#!/bin/sh
# The disk is full while a checkpoint is written: exit status 1, a message, and the checkpoints
# before it are whole; whether every rank has all of the state or a shard. Needs root, to mount a
# small disk; ends with 77 (skipped) without.
. "$(dirname "$0")/common.sh"

mkdir small
mount -t tmpfs -o size=1600k tmpfs small 2>/dev/null || exit 77
trap 'umount "$folder/small"; rm -rf "$folder"' EXIT
for stage in 0 3; do
  expect_status 1 launch --nproc-per-node 2 -- train toy.toml --run-dir small/run \
    --checkpoint.keep_latest_k 0 --training.steps 100 --parallelism.zero_stage $stage
  expect_says "could not be saved"
  expect_says "rank-0000[01].safetensors.*[Nn]o space"
  [ -d small/run/checkpoints/step-00000004 ] || fail "the disk is too small for the test"
  for checkpoint in small/run/checkpoints/*; do
    "$program" checkpoint verify "$checkpoint" >out 2>&1 || fail "$checkpoint is not whole"
  done
  rm -r small/run
done
