#!/bin/sh
# run.sh PROGRAM CONFIG FAULT|none [LAYOUT...]: `verify` of the toy in a program with seeded faults.
# Succeeds when verify calls the layouts equal without a fault, and finds a mismatch (exit 4) with.
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
status=0
"$program" verify "$config" --training.numerics "$numerics" --data.path "$folder/toy.jsonl" --layouts "$layouts" || status=$?
if [ "$fault" = none ]; then exit "$status"; fi
if [ "$status" -ne 4 ]; then
  echo "verify ended with status $status although $fault was seeded; it should be 4" >&2
  exit 1
fi
