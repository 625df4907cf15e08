#!/bin/sh
# bench/bubble.sh [ROUNDS [--section.key value …]]: the bubble of a pipeline of 2 ranks, each with one
# core: the share of the time in which a rank waits, as it was measured, as the simulation has it from
# the times that the actions took, and by the formula for stages of one cost. The model's stages are
# that: 8 blocks, and a vocabulary so small that the head is negligible. An action takes some 20 ms.
#   SCHEDULES="gpipe 1f1b"   only these
#   MICRO_BATCHES="2 4"      only these
#   STEPS=6                  a run
# Needs `make build`. A few minutes a round.
set -eu
cd "$(dirname "$0")/.."
. bench/figures.sh
rounds=${1:-2}
[ $# -eq 0 ] || shift
schedules=${SCHEDULES:-gpipe 1f1b interleaved zb-h1 zb-v}
micro_batches=${MICRO_BATCHES:-2 4 8 16}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
tests/toy_text.sh >"$work/one.jsonl"
for _ in 1 2 3 4 5 6 7 8 9 10; do cat "$work/one.jsonl"; done >"$work/text.jsonl"
cat >"$work/config.toml" <<TOML
[model]
hidden_size = 512
num_hidden_layers = 8
num_attention_heads = 8
max_position_embeddings = 128
[data]
path = ["$work/text.jsonl"]
seq_len = 128
validation_fraction = 0
[training]
steps = ${STEPS:-6}
micro_batch_size = 1
precision = "fp32"
[parallelism]
pipeline_parallel_degree = 2
TOML

for round in $(seq "$rounds"); do
  for m in $micro_batches; do
    for schedule in $schedules; do
      stages=1
      case $schedule in interleaved | zb-v) stages=2 ;; esac
      build/tessera launch --nproc-per-node 2 -- train "$work/config.toml" --run-dir "$work/run" \
        --overwrite --training.global_batch_size "$m" --parallelism.pipeline_schedule "$schedule" \
        --parallelism.virtual_stages "$stages" "$@" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
      for which in predicted simulated measured; do
        figure "$work/run/summary.json" bubble_fraction $which >>"$work/$which-$schedule-$m"
      done
      step_seconds "$work/run" >>"$work/times-$schedule-$m"
      rm -rf "$work/run"
    done
  done
  echo "round $round of $rounds done" >&2
done

# formula SCHEDULE M: gpipe and 1f1b (p - 1)/(m + p - 1); interleaved with v stages a rank
# (p - 1)/(v m + p - 1); for the others there is the simulation.
formula() {
  case $1 in
    gpipe | 1f1b) awk -v m="$2" 'BEGIN { print 1 / (m + 1) }' ;;
    interleaved) awk -v m="$2" 'BEGIN { print 1 / (2 * m + 1) }' ;;
    *) echo - ;;
  esac
}
printf '%-12s %3s %9s %10s %10s %8s %9s  %s\n' \
  schedule m formula predicted simulated measured step_s "within 3 points of"
for schedule in $schedules; do
  for m in $micro_batches; do
    of="$schedule-$m"
    measured=$(median <"$work/measured-$of")
    echo "$measured" >"$work/bubble-$of"
    awk -v schedule="$schedule" -v m="$m" -v formula="$(formula "$schedule" "$m")" \
      -v predicted="$(median <"$work/predicted-$of")" \
      -v simulated="$(median <"$work/simulated-$of")" -v measured="$measured" \
      -v step="$(fastest <"$work/times-$of")" '
      function off(a) { return a < measured ? measured - a : a - measured }
      BEGIN {
        near = ""
        if (formula != "-" && off(formula) <= 0.03) near = "the formula"
        if (off(simulated) <= 0.03) near = near (near == "" ? "" : ", ") "the simulation"
        printf "%-12s %3d %9s %8.1f %% %8.1f %% %6.1f %% %9.3f  %s\n", schedule, m,
               formula == "-" ? "-" : sprintf("%.1f %%", 100 * formula), 100 * predicted,
               100 * simulated, 100 * measured, step, near == "" ? "NEITHER" : near
      }'
  done
done
echo
for m in $micro_batches; do
  for schedule in $schedules; do
    case $schedule in gpipe | 1f1b) continue ;; esac
    [ -f "$work/bubble-1f1b-$m" ] || continue
    awk -v schedule="$schedule" -v m="$m" -v a="$(cat "$work/bubble-$schedule-$m")" \
      -v b="$(cat "$work/bubble-1f1b-$m")" \
      -v s="$(fastest <"$work/times-$schedule-$m")" -v t="$(fastest <"$work/times-1f1b-$m")" 'BEGIN {
        printf "m = %2d: %-11s bubble %5.1f points %s than of 1f1b, step %.3f of its\n", m, schedule,
               100 * (a < b ? b - a : a - b), (a < b ? "less" : "MORE"), s / t }'
  done
done
