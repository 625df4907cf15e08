#!/bin/bash
# How much of ZeRO-3's communication does prefetch hide on a slow network? Two hosts of one rank, 24
# equal blocks with a small vocabulary, over a link on which the gather of a block takes about half of
# its forward. The same steps with prefetch on and off; the share of bytes hidden comes from the
# traces.
#
#   bench/netlab/prefetch.sh [BUILD] [-- --section.key value …]      [build/release]
#
# Needs what netlab.sh needs, and a BUILD with Open MPI and bench/.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../figures.sh"
build=$here/../../build/release
if [ $# -gt 0 ] && [ "$1" != -- ]; then
  build=$1
  shift
fi
[ "${1-}" != -- ] || shift
build=$(realpath "$build")
for program in tessera bench/netlab_overlap; do
  [ -x "$build/$program" ] || {
    echo "$build has no $program: build the preset release" >&2
    exit 2
  }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$here/../../tests/toy_text.sh" >"$folder/one.jsonl"
for _ in $(seq 20); do cat "$folder/one.jsonl"; done >"$folder/text.jsonl"

cat >"$folder/config.toml" <<END
[model]
hidden_size = 256
num_hidden_layers = 24
num_attention_heads = 4
max_position_embeddings = 256
[data]
path = ["$folder/text.jsonl"]
seq_len = 256
validation_fraction = 0
[training]
steps = 6
global_batch_size = 8
micro_batch_size = 4
precision = "fp32"
[parallelism]
zero_stage = 3
[profiling]
trace = true
[comm]
backend = "mpi"
END

# measure NAME RATE PREFETCH [more …]
measure() {
  local name=$1 rate=$2 prefetch=$3
  shift 3
  OMP_NUM_THREADS=1 "$here/netlab.sh" --rate "$rate" -- "$build/tessera" train "$folder/config.toml" \
    --run-dir "$folder/$name" --parallelism.prefetch "$prefetch" --json "$@" >"$folder/$name.json" \
    2>"$folder/$name.log" || {
    cat "$folder/$name.log" >&2
    exit 1
  }
}
# value FILE KEY: a number of a JSON object.
value() { grep -o "\"$2\": *[-0-9.e+]*" "$1" | head -n 1 | sed 's/.*: *//'; }
overlap() { "$build/bench/netlab_overlap" "$folder/$1" "${@:2}"; }

# Without prefetch nothing overlaps, and the forward of a block and its gather are each measured by
# themselves. The link is set twice: by what it should carry, then by what it did.
rate=1000000
for try in 1 2; do
  measure "alone$try" "${rate}kbit" 0 "$@"
  overlap "alone$try" --json >"$folder/figures.json"
  forward=$(value "$folder/figures.json" unit_forward_s)
  gather=$(value "$folder/figures.json" gather_s)
  echo "at $rate kbit/s: forward of a block $forward s, its gather $gather s"
  rate=$(awk -v r="$rate" -v f="$forward" -v g="$gather" 'BEGIN { printf "%d", r * g / (f / 2) }')
done
for prefetch in 1 0; do
  measure "prefetch$prefetch" "${rate}kbit" "$prefetch" "$@"
  printf 'prefetch %d at %d kbit/s: step %.3f s; ' "$prefetch" "$rate" "$(step_seconds "$folder/prefetch$prefetch" | median)"
  overlap "prefetch$prefetch"
done
