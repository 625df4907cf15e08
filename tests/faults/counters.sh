#!/bin/sh
# counters.sh PROGRAM CONFIG FAULT|none: what a sharded run of the toy holds and sends, as predicted
# and as counted, in a program with seeded faults. Succeeds when both are equal to the byte without a
# fault, and differ with one.
set -eu
program=$1
config=$2
fault=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$(dirname "$0")/../toy_text.sh" >"$folder/toy.jsonl"

if [ "$fault" != none ]; then export TESSERA_FAULT="$fault"; fi
"$program" launch --nproc-per-node 2 -- train "$config" --data.path "$folder/toy.jsonl" \
  --training.steps 2 --parallelism.zero_stage 3 --parallelism.prefetch 0 --run-dir "$folder/run"
# Every "measured" follows its "predicted".
status=0
awk '/"predicted": [0-9]/ { predicted = $2 + 0 }
     /"measured": [0-9]/ { pairs++; if ($2 + 0 != predicted) differ = differ " " predicted "!=" $2 + 0 }
     END { print pairs " numbers;" (differ ? differ : " no difference")
           exit !pairs ? 2 : differ ? 1 : 0 }' "$folder/run/summary.json" || status=$?
if [ "$fault" = none ]; then exit "$status"; fi
if [ "$status" -ne 1 ]; then
  echo "memory and traffic are as predicted although $fault was seeded" >&2
  exit 1
fi
