#!/bin/sh
# The collectives measured by the program: its own ranks, a launcher's, the forms of its output.
. "$(dirname "$0")/common.sh"

expect_status 0 bench comm -b 8 -e 64K -f 16 -n 2 --collective all --nproc-per-node 3 --copy
expect_says '^# *size *count *type *redop *root *time *algbw *busbw *#wrong of copy$'
for collective in all_reduce all_gather reduce_scatter alltoall broadcast gather scatter sendrecv; do
  expect_says "^# $collective: 3 ranks on shm"
done
expect_says '^ *32768 *8192 *float *sum *-1 .* 0 *[0-9.]*$'
expect_says '^# Out of bounds values : 0 OK$'
expect_says '^# Avg bus bandwidth    : [0-9.]*$'

expect_status 0 bench comm -b 1K -e 1M -f 32 -n 2 -d bf16 -o max --json --links links.toml
expect_json
expect_says '"wrong": 0'
for line in '\[\[link\]\]' 'name = "shm"' 'ranks = 2' 'latency_s = [0-9]' 'bytes_per_s = [0-9]'; do
  grep -q "^$line" links.toml || fail "no line like $line in the links file"
done

expect_status 0 launch --nproc-per-node 2 -- bench comm -b 64 -e 64 -n 1 -c 0
expect_says '2 ranks on shm'
expect_says 'N/A$'
expect_says 'not checked'

expect_status 2 bench comm -b 1K -e 64
expect_says 'minbytes 1K is more than'
expect_status 2 bench comm -e 64Q
expect_says '64Q is no size'
expect_status 2 bench comm --collective broadcast --root 2
expect_says 'none of the 2 ranks'
expect_status 2 bench comm -d int32 -o avg
expect_says 'integers have no average'
expect_status 2 bench comm -b 64 -e 64 -n 1 --links links2.toml
expect_says 'does not tell latency from rate'
[ ! -e links2.toml ] || fail "a links file without a link"
