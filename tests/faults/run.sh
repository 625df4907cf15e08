#!/bin/sh
# run.sh PROGRAM CONFIG FAULT|none [LAYOUT...]: `verify` of the toy in a program with seeded faults.
# Succeeds when verify calls the layouts equal without a fault, and finds a mismatch (exit 4) with one,
# or where the fault keeps ranks from meeting says that the layout failed (exit 1).
set -eu
program=$1
config=$2
fault=$3
shift 3
[ $# -gt 0 ] || set -- dp=3,accumulate=2,backend=thread dp=2,backend=shm,recompute=selective
layouts=$(printf '%s;' "$@")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$(dirname "$0")/../toy_text.sh" >"$folder/toy.jsonl"

if [ "$fault" != none ]; then export TESSERA_FAULT="$fault"; fi
# Faults of the invariant mode are too small for any tolerance but none at all.
numerics=fast
case $fault in invariant_*) numerics=invariant ;; esac
# Ranks in the wrong group wait for ranks that are in another: verify says so, and whom they miss.
found=4
timeout=60
case $fault in comm_shifted_groups) found=1 timeout=5 ;; esac
# With its parts swapped a run diverges, and one rank meets a number that is none before the other: by
# how many steps depends on the processor. A few steps show the mismatch.
steps=10
case $fault in comm_swapped_rank) steps=2 ;; esac
status=0
"$program" verify "$config" --steps $steps --training.numerics "$numerics" --comm.timeout_seconds $timeout --data.path "$folder/toy.jsonl" --layouts "$layouts" || status=$?
if [ "$fault" = none ]; then exit "$status"; fi
if [ "$status" -ne "$found" ]; then
  echo "verify ended with status $status although $fault was seeded; it should be $found" >&2
  exit 1
fi
