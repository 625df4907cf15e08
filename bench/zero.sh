#!/bin/sh
# bench/zero.sh [ROUNDS [--section.key value ...]]: a step of gpt2-124m on 2 ranks over shared memory,
# 4 x 256 tokens each, in every stage of ZeRO. The stages take turns, so that a change of the
# machine's load meets all of them; of each the fastest step of all rounds is compared, which is what
# the machine can do when nobody else is on it, and the median. A run's first step is left out.
#   LAYOUTS="4:0 2:3"   other ranks:stage to compare, the first being the yardstick
#   CONFIG=FILE         another config
# Needs `make build`.
set -eu
cd "$(dirname "$0")/.."
. bench/figures.sh
rounds=${1:-3}
[ $# -eq 0 ] || shift
layouts=${LAYOUTS:-2:0 2:1 2:2 2:3}
config=${CONFIG:-examples/gpt2_124m.toml}

prepare_text
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
for round in $(seq "$rounds"); do
  for layout in $layouts; do
    ranks=${layout%:*} stage=${layout#*:}
    build/tessera launch --nproc-per-node "$ranks" -- train "$config" --run-dir "$work/run" \
      --overwrite --data.seq_len 256 --data.validation_fraction 0 --validation.freq 0 --training.global_batch_size 8 \
      --training.micro_batch_size 4 --training.steps 6 --lr_scheduler.warmup_steps 0 --parallelism.zero_stage "$stage" "$@" \
      >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    step_seconds "$work/run" >>"$work/times-$ranks-$stage"
    rm -rf "$work/run"
  done
  echo "round $round of $rounds done" >&2
done
printf '%5s %5s %10s %10s %14s %14s\n' ranks stage fastest_s median_s of_the_first of_its_median
for layout in $layouts; do
  file=$work/times-${layout%:*}-${layout#*:}
  sort -g "$file" | awk -v ranks="${layout%:*}" -v stage="${layout#*:}" -v base="${base:-}" '
    { t[NR] = $1 }
    END {
      split(base == "" ? t[1] " " t[int((NR + 1) / 2)] : base, b, " ")
      printf "%5s %5s %10.3f %10.3f %14.3f %14.3f\n", ranks, stage, t[1], t[int((NR + 1) / 2)], t[1] / b[1], t[int((NR + 1) / 2)] / b[2]
    }'
  base=${base:-$(sort -g "$file" | awk '{ t[NR] = $1 } END { print t[1], t[int((NR + 1) / 2)] }')}
done
