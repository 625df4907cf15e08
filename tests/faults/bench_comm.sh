#!/bin/sh
# bench_comm.sh PROGRAM FAULT|none: `bench comm` in a program with seeded faults. Succeeds when it
# finds no wrong value without a fault, and wrong values (exit 4) with. A fault that garbles what the
# ranks agree on sends them apart, which ends the run, too (exit 1).
set -eu
program=$1
fault=$2
if [ "$fault" != none ]; then export TESSERA_FAULT="$fault"; fi
status=0
"$program" bench comm --collective all -b 4 -e 4M -f 32 -n 1 -w 0 --nproc-per-node 3 || status=$?
case $fault:$status in none:0 | comm_stale_buffer:[14] | comm_*:4) exit 0 ;; esac
echo "bench comm ended with status $status, fault $fault" >&2
exit 1
