#!/bin/sh
# bench/plan_engine.sh [ROUNDS]: how well `tessera plan CONFIG.toml` predicts our own engine on this
# machine. Layouts of one and of two ranks, several models and precisions: of each the parts of a step
# are measured, the step is predicted, and then the run is made; the next round measures anew. What is
# compared is the median over the rounds of predicted / measured, a run's being the median of its
# steps but the first. Memory of every rank and category, and bytes by axis, must be equal. Prints a
# table, and ends with 1 where something is not equal or a time is more than 10 % off.
#   CASES="toy-dp2 …"   only these
#   STEPS=6             a run
#   OUT=FILE            the rows as CSV too
# Needs `make build` and python3. Meant for a machine on which nothing else runs: the load is printed.
set -eu
cd "$(dirname "$0")/.."
. bench/figures.sh
program=${TESSERA:-build/tessera}
rounds=${1:-3}
steps=${STEPS:-6}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

tests/toy_text.sh >"$work/text.jsonl"
for i in 1 2 3 4 5 6 7 8; do cat "$work/text.jsonl"; done >"$work/long.jsonl"

# About 10 M parameters each; the bytes of the text are the vocabulary.
cat >"$work/gpt2.toml" <<END
[model]
architecture = "gpt2"
hidden_size = 320
num_hidden_layers = 8
num_attention_heads = 5
max_position_embeddings = 256
[data]
path = ["$work/long.jsonl"]
seq_len = 256
document_mask = false
validation_fraction = 0
[training]
global_batch_size = 16
micro_batch_size = 2
precision = "fp32"
[lr_scheduler]
warmup_steps = 0
END
sed -e 's/"gpt2"/"llama"/' -e 's/^num_attention_heads = 5/num_attention_heads = 10\nnum_key_value_heads = 2/' \
  -e 's/precision = .*/precision = "bf16"/' "$work/gpt2.toml" >"$work/llama.toml"
cat >"$work/124m.toml" <<END
[model]
preset = "gpt2-124m"
[data]
path = ["$work/long.jsonl"]
seq_len = 128
document_mask = false
validation_fraction = 0
[training]
global_batch_size = 8
micro_batch_size = 2
precision = "bf16"
END

# name model ranks flags
cases() {
  cat <<'END'
one gpt2 1
one-full gpt2 1 --activation_checkpoint.mode full
one-selective llama 1 --activation_checkpoint.mode selective
one-micro8 llama 1 --training.micro_batch_size 8
dp2 gpt2 2
dp2-zero1 gpt2 2 --parallelism.zero_stage 1
dp2-zero2 gpt2 2 --parallelism.zero_stage 2 --training.micro_batch_size 8
dp2-zero3 gpt2 2 --parallelism.zero_stage 3 --training.micro_batch_size 8
dp2-llama llama 2
dp2-zero3-llama llama 2 --parallelism.zero_stage 3 --training.micro_batch_size 4
tp2 gpt2 2 --parallelism.tensor_parallel_degree 2 --model.num_attention_heads 10
tp2-llama llama 2 --parallelism.tensor_parallel_degree 2 --training.micro_batch_size 4
tp2-sp-llama llama 2 --parallelism.tensor_parallel_degree 2 --parallelism.sequence_parallel true --training.micro_batch_size 4
pp2-1f1b gpt2 2 --parallelism.pipeline_parallel_degree 2
pp2-gpipe gpt2 2 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule gpipe
pp2-interleaved llama 2 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule interleaved --parallelism.virtual_stages 2
pp2-zb-h1 gpt2 2 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule zb-h1
pp2-full llama 2 --parallelism.pipeline_parallel_degree 2 --activation_checkpoint.mode full
124m-one 124m 1
124m-dp2-zero1 124m 2 --parallelism.zero_stage 1
124m-tp2 124m 2 --parallelism.tensor_parallel_degree 2
124m-pp2 124m 2 --parallelism.pipeline_parallel_degree 2 --training.micro_batch_size 1
END
}

# Predicts and runs one case; adds "case predicted measured memory traffic load" to the rows.
run_case() {
  name=$1 model=$2 ranks=$3
  shift 3
  load=$(cut -d ' ' -f 1 /proc/loadavg)
  "$program" plan "$work/$model.toml" --ranks "$ranks" "$@" --json >"$work/plan.json"
  rm -rf "$work/run"
  "$program" launch --nproc-per-node "$ranks" -- train "$work/$model.toml" --run-dir "$work/run" \
    --training.steps "$steps" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  step_seconds "$work/run" | median >"$work/measured"
  python3 - "$work/plan.json" "$work/run/summary.json" "$name" "$(cat "$work/measured")" "$load" \
    >>"$work/rows" <<'END'
import json, sys
plan, run = (json.load(open(path)) for path in sys.argv[1:3])
ranks = [{name: of["measured"] for name, of in rank.items()} for rank in run["memory_bytes"]]
sent = {axis: of["measured"] for axis, of in run["traffic_bytes_per_step_by_rank"].items()}
planned = {axis: plan["traffic_bytes_per_step_by_rank"][axis] for axis in sent}
time = plan["time"]
print(sys.argv[3], time["step_s"], sys.argv[4], plan["memory_bytes"] == ranks, planned == sent,
      sys.argv[5], *(time[key] for key in ("compute_s", "tp_exposed_s", "dp_exposed_s",
                                           "pp_bubble_s", "optimizer_s")))
END
  rm -rf "$work/run"
}

for round in $(seq "$rounds"); do
  cases | while read -r name model ranks flags; do
    case " ${CASES:-$name} " in *" $name "*) ;; *) continue ;; esac
    run_case "$name" "$model" "$ranks" $flags
    tail -n 1 "$work/rows" | cut -d ' ' -f 1-6 >&2
  done
  echo "round $round of $rounds done" >&2
done
[ -z "${OUT:-}" ] || cp "$work/rows" "$OUT"

python3 - "$work/rows" <<'END'
import statistics, sys
cases = {}
for line in open(sys.argv[1]):
    name, *rest = line.split()
    cases.setdefault(name, []).append(rest)
bad = False
print(f"{'case':<18} {'predicted_s':>11} {'measured_s':>11} {'ratio':>6} {'memory':>7} {'traffic':>8} {'load':>6}")
ratios = []
for name, rows in cases.items():
    predicted = statistics.median(float(row[0]) for row in rows)
    measured = statistics.median(float(row[1]) for row in rows)
    ratio = statistics.median(float(row[0]) / float(row[1]) for row in rows)
    memory = all(row[2] == "True" for row in rows)
    traffic = all(row[3] == "True" for row in rows)
    ratios.append(abs(ratio - 1))
    bad = bad or not memory or not traffic or abs(ratio - 1) > 0.1
    print(f"{name:<18} {predicted:>11.4f} {measured:>11.4f} {ratio:>6.3f} "
          f"{'equal' if memory else 'DIFFERS':>7} {'equal' if traffic else 'DIFFERS':>8} "
          f"{max(float(row[4]) for row in rows):>6.2f}")
print(f"{len(cases)} cases: mean error {100 * statistics.mean(ratios):.1f} %, worst {100 * max(ratios):.1f} %")
sys.exit(1 if bad else 0)
END
