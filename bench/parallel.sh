#!/bin/sh
# bench/parallel.sh [ROUNDS [--section.key value …]]: what tensor and pipeline parallelism cost. The
# same steps of gpt2-124m in bf16, 16 x 512 tokens, by one rank with all cores and by two ranks with
# half of them each: as a pipeline (1f1b), tensor-parallel, and with sequence parallelism too. The
# layouts take turns, so that a change of the machine's load meets all of them; of each the fastest
# step is compared, which is what the machine can do when nobody else is on it, and the median. A
# run's first step is left out.
#   LAYOUTS="one:16 one:8 pp:1"   kind:micro-batch, kinds one, pp, tp, sp; of each kind the fastest
#                                 micro-batch counts, of `one` as the yardstick
#   STEPS=4                       a run
#   CONFIG=FILE                   another config
# Needs `make build`. Some 15 minutes a round on 2 cores.
set -eu
cd "$(dirname "$0")/.."
. bench/figures.sh
rounds=${1:-2}
[ $# -eq 0 ] || shift
layouts=${LAYOUTS:-one:16 one:8 one:4 pp:1 tp:16 tp:8 tp:4 sp:16 sp:8 sp:4}
steps=${STEPS:-4}
config=${CONFIG:-examples/gpt2_124m.toml}

# The ranks of kind $1, and then its flags.
flags_of() {
  case $1 in
    one) echo 1 --parallelism.data_parallel_degree 1 ;;
    pp) echo 2 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule 1f1b ;;
    tp) echo 2 --parallelism.tensor_parallel_degree 2 ;;
    sp) echo 2 --parallelism.tensor_parallel_degree 2 --parallelism.sequence_parallel true ;;
    *)
      echo "parallel.sh: no kind \"$1\"" >&2
      exit 1
      ;;
  esac
}

prepare_text
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
for round in $(seq "$rounds"); do
  for layout in $layouts; do
    kind=${layout%:*}
    flags=$(flags_of "$kind")
    build/tessera launch --nproc-per-node "${flags%% *}" -- train "$config" ${flags#* } \
      --run-dir "$work/run" --overwrite --data.seq_len 512 --data.validation_fraction 0 --validation.freq 0 \
      --training.global_batch_size 16 --training.micro_batch_size "${layout#*:}" \
      --training.steps "$steps" --lr_scheduler.warmup_steps 0 "$@" >"$work/log" 2>&1 ||
      { cat "$work/log" >&2; exit 1; }
    step_seconds "$work/run" >>"$work/times-$layout"
    # Of one makespan to another, the ranks being at work as long in both.
    awk -v simulated="$(figure "$work/run/summary.json" bubble_fraction simulated)" \
      -v measured="$(figure "$work/run/summary.json" bubble_fraction measured)" \
      'BEGIN { print (1 - measured) / (1 - simulated) }' >>"$work/simulation-$layout"
    for axis in tp pp; do
      figure "$work/run/summary.json" exposed_communication_fraction $axis >>"$work/exposed-$axis-$layout"
    done
    rm -rf "$work/run"
  done
  echo "round $round of $rounds done" >&2
done

printf '%6s %11s %10s %10s %10s %8s\n' kind micro_batch fastest_s median_s tokens/s exposed
for layout in $layouts; do
  awk -v kind="${layout%:*}" -v micro="${layout#*:}" -v fastest="$(fastest <"$work/times-$layout")" \
    -v median="$(median <"$work/times-$layout")" -v tp="$(median <"$work/exposed-tp-$layout")" \
    -v pp="$(median <"$work/exposed-pp-$layout")" 'BEGIN {
      printf "%6s %11d %10.3f %10.3f %10.0f %6.1f %%\n", kind, micro, fastest, median,
             16 * 512 / fastest, 100 * (tp + pp)
    }'
done

# Of kind $1, the fastest and the lowest median over its micro-batches.
best() {
  for layout in $layouts; do
    if [ "${layout%:*}" = "$1" ]; then $2 <"$work/times-$layout"; fi
  done | fastest
}
# verdict WHAT RATIO BAR
verdict() {
  awk -v what="$1" -v ratio="$2" -v bar="$3" 'BEGIN {
    printf "%-44s %6.1f %%   bar %g %%: %s\n", what, 100 * ratio, bar, (100 * ratio >= bar ? "met" : "MISSED") }'
}
echo
for goal in pp:85 tp:85 sp:88; do
  kind=${goal%:*}
  [ -n "$(best "$kind" fastest)" ] && [ -n "$(best one fastest)" ] || continue
  for of in fastest median; do
    verdict "$kind of one rank, $of step" \
      "$(awk -v a="$(best one $of)" -v b="$(best "$kind" $of)" 'BEGIN { print a / b }')" "${goal#*:}"
  done
done
for layout in $layouts; do
  [ "${layout%:*}" = pp ] || continue
  verdict "$layout of its own simulation" "$(median <"$work/simulation-$layout")" 95
done
