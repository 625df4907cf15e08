#!/bin/bash
# What may cross a slow network? The same model on two hosts, cut by each axis: tensor parallelism
# across the link (with and without sequence parallelism), a pipeline across it, data parallelism
# across it; then with two ranks a host, one axis inside the hosts and the other across. Prints a
# table in Markdown: the fastest step, its ratio to the first layout's of as many ranks, what a host
# sends over the link in a step as counted and as the formula has it, and the share of the step in
# which rank 0 waited.
#
#   bench/netlab/tensor_or_pipeline.sh [--rate RATE] [BUILD] [-- --section.key value …]
#
#   --rate RATE   of the link, as netlab.sh has it   [1gbit]
#   BUILD         [build/release]
#   ROUNDS=2      the layouts take turns so often
#   ONLY=REGEX    of the layouts, by their names
#   STEPS=6       a run; the first is left out
#
# Needs what netlab.sh needs, and a BUILD with Open MPI.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../figures.sh"
rate=1gbit
build=$here/../../build/release
if [ "${1-}" = --rate ]; then
  rate=$2
  shift 2
fi
if [ $# -gt 0 ] && [ "$1" != -- ]; then
  build=$1
  shift
fi
[ "${1-}" != -- ] || shift
build=$(realpath "$build")
[ -x "$build/tessera" ] || {
  echo "$build has no tessera: build the preset release" >&2
  exit 2
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$here/../../tests/toy_text.sh" >"$folder/one.jsonl"
for _ in $(seq 20); do cat "$folder/one.jsonl"; done >"$folder/text.jsonl"

layers=8 width=512 length=256 sequences=16
cat >"$folder/config.toml" <<TOML
[model]
hidden_size = $width
num_hidden_layers = $layers
num_attention_heads = 8
max_position_embeddings = $length
[data]
path = ["$folder/text.jsonl"]
seq_len = $length
validation_fraction = 0
[training]
steps = ${STEPS:-6}
global_batch_size = $sequences
precision = "bf16"
[comm]
backend = "mpi"
TOML

# layout NAME RANKS_PER_HOST ACROSS "WORDS": measured, and left in $folder/NAME. ACROSS is the axis
# whose messages cross the link. WORDS go to train; --map-by node before them to mpirun, which then
# deals ranks to the hosts in turn.
names=()
declare -A ranks_of across_of words_of
layout() {
  [[ $1 =~ ${ONLY-} ]] || return 0
  names+=("$1")
  ranks_of[$1]=$2 across_of[$1]=$3 words_of[$1]=$4
}
tp="--parallelism.tensor_parallel_degree 2"
sp="$tp --parallelism.sequence_parallel true"
far="--parallelism.tensor_parallel_across_hosts true"
pp="--parallelism.pipeline_parallel_degree 2 --training.micro_batch_size 1"
layout "tp 2 across" 1 tp "$tp $far --training.micro_batch_size 4"
layout "tp 2 with sp across" 1 tp "$sp $far --training.micro_batch_size 4"
layout "dp 2 across" 1 dp "--training.micro_batch_size 8"
layout "pp 2 across" 1 pp "$pp"
layout "pp 2 inside, tp 2 across" 2 tp "--map-by node $pp $tp $far"
layout "dp 2 inside, tp 2 across" 2 tp "--map-by node $tp $far --training.micro_batch_size 4"
layout "tp 2 inside, dp 2 across" 2 dp "$tp --training.micro_batch_size 4"
layout "tp 2 inside, pp 2 across" 2 pp "$pp $tp"

measure() {
  local name=$1 placed=() words
  shift
  read -ra words <<<"${words_of[$name]}"
  if [ "${words[0]}" = --map-by ]; then
    placed=("${words[@]:0:2}")
    words=("${words[@]:2}")
  fi
  OMP_NUM_THREADS=1 "$here/netlab.sh" --rate "$rate" --ranks-per-host "${ranks_of[$name]}" -- \
    "${placed[@]}" "$build/tessera" train "$folder/config.toml" "${words[@]}" --run-dir "$folder/run" \
    --overwrite --json "$@" >"$folder/log" 2>&1 || {
    echo "$name:" >&2
    cat "$folder/log" >&2
    exit 1
  }
  step_seconds "$folder/run" >>"$folder/$name.times"
  cp "$folder/run/summary.json" "$folder/$name.json"
  for axis in tp pp dp; do
    figure "$folder/run/summary.json" exposed_communication_fraction $axis >>"$folder/$name.$axis"
  done
}

# What one of two ranks sends for the blocks in a step, in bytes: B T C L being the step's tokens, the
# width and the layers, tensor parallelism 16 (t-1)/t B T C L, 24 with sequence parallelism; data
# parallelism 2 (n-1)/n of gradients in fp32; a pipeline the stream in bf16, each way. Ranks that are
# copies of each other in what crosses share the sequences (dp inside) or the layers (pp inside), or
# have half of the parameters each (tp inside); a pipeline's stream both send.
formula() {
  local name=$1
  awk -v across="${across_of[$name]}" -v words="${words_of[$name]}" -v ranks="${ranks_of[$name]}" \
    -v stream=$((sequences * length * width)) -v layers=$layers -v width=$width 'BEGIN {
      if (across == "tp") bytes = (words ~ /sequence_parallel/ ? 24 : 16) / 2 * stream * layers
      if (across == "dp") bytes = 4 * 12 * width * width * layers
      if (across == "pp") bytes = 2 * stream * ranks
      print bytes
    }'
}

for round in $(seq "${ROUNDS:-2}"); do
  for name in "${names[@]}"; do measure "$name" "$@"; done
  echo "round $round done" >&2
done

echo "| two hosts, $rate | ranks | step, s | of the first | a host sends, MB a step | the blocks, by the formula | rank 0 waits for tp · dp · pp |"
echo "|---|---|---|---|---|---|---|"
declare -A yardsticks
for name in "${names[@]}"; do
  step=$(fastest <"$folder/$name.times")
  ranks=${ranks_of[$name]}
  : "${yardsticks[$ranks]:=$step}"
  awk -v name="$name" -v ranks="$ranks" -v step="$step" -v yardstick="${yardsticks[$ranks]}" \
    -v bytes="$(figure "$folder/$name.json" traffic_bytes_per_step "${across_of[$name]}" measured)" \
    -v formula="$(formula "$name")" -v tp="$(median <"$folder/$name.tp")" \
    -v dp="$(median <"$folder/$name.dp")" -v pp="$(median <"$folder/$name.pp")" '
    function share(x) { return x > 0 ? sprintf("%.0f %%", 100 * x) : "–" }
    BEGIN {
      printf "| %s | %d | %.2f | %.2f | %.1f | %.1f | %s · %s · %s |\n", name, 2 * ranks, step,
             step / yardstick, ranks * bytes / 1e6, formula / 1e6, share(tp), share(dp), share(pp)
    }'
done
