# Sourced by the tests beside it: SCENARIO.sh PROGRAM. Each runs the program as a user would, on a toy,
# in a folder of its own that is removed at the end.
set -eu
program=$(realpath "$1")
tests=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; rm -rf "$folder"' EXIT
cd "$folder"
export OMP_NUM_THREADS=1

fail() {
  echo "FAILED: $*" >&2
  if [ -f out ]; then tail -n 25 out | sed 's/^/  | /' >&2; fi
  exit 1
}

# Waits for step N of the run whose folder is $1, at most a minute, while process $3 lives.
wait_for_step() {
  tries=0
  until [ -f "$1/metrics.jsonl" ] && [ "$(wc -l <"$1/metrics.jsonl")" -ge "$2" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || fail "no step $2 after a minute"
    kill -0 "$3" 2>/dev/null || fail "the run ended before step $2"
    sleep 0.05
  done
}

# Runs the program, its output in `out`; fails unless it ends with the status given first.
expect_status() {
  expected=$1
  shift
  status=0
  "$program" "$@" >out 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected: tessera $*"
}
expect_says() { grep -q -e "$1" out || fail "nothing like \"$1\" in the output"; }
# Judged where there is a Python to judge it; a machine that only builds has none.
expect_json() {
  command -v python3 >/dev/null || return 0
  python3 -c 'import json, sys; json.load(sys.stdin)' <out || fail "not one JSON object"
}

"$tests/toy_text.sh" >toy.jsonl

cat >toy.toml <<'END'
[model]
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
max_position_embeddings = 64
[data]
path = ["toy.jsonl"]
seq_len = 32
validation_fraction = 0.1
[training]
steps = 12
global_batch_size = 8
[checkpoint]
interval = 4
END
