#!/bin/sh
# What `plan CONFIG.toml` says of a run's memory and traffic is what the run then counts.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || exit 77

same() {
  python3 - "$1" "$2" <<'END'
import json, sys
plan, run = (json.load(open(path)) for path in sys.argv[1:])
ranks = [{category: of["measured"] for category, of in rank.items()} for rank in run["memory_bytes"]]
assert plan["memory_bytes"] == ranks, f"memory: planned {plan['memory_bytes']}, was {ranks}"
for axis, of in run["traffic_bytes_per_step_by_rank"].items():
    planned = plan["traffic_bytes_per_step_by_rank"][axis]
    assert planned == of["measured"], f"{axis}: planned {planned}, was {of['measured']}"
time = plan["time"]
parts = sum(time[key] for key in time if key != "step_s")
assert 0 < time["step_s"] < 60 and abs(parts - time["step_s"]) < 1e-9, time
assert plan["memory_bytes_per_gpu"]["total"] == max(sum(rank.values()) for rank in ranks)
END
}

# check RANKS FLAGS…
check() {
  ranks=$1
  shift
  "$program" plan toy.toml --ranks "$ranks" --kernels kernels.json --json "$@" >plan.json 2>out ||
    fail "plan $*"
  rm -rf run
  "$program" launch --nproc-per-node "$ranks" -- train toy.toml --run-dir run --training.steps 2 \
    --checkpoint.interval 0 "$@" >out 2>&1 || fail "train $*"
  same plan.json run/summary.json || fail "$ranks ranks, $*"
}

"$program" bench kernels toy.toml --ranks 2 --out kernels.json --seconds 0.01 --json >out ||
  fail "bench kernels"
expect_json
check 1
check 1 --training.precision fp32 --activation_checkpoint.mode full
for stage in 0 1 2 3; do check 2 --parallelism.zero_stage $stage --training.micro_batch_size 2; done
check 2 --parallelism.tensor_parallel_degree 2
check 2 --parallelism.tensor_parallel_degree 2 --parallelism.sequence_parallel true
for schedule in gpipe 1f1b zb-h1; do
  check 2 --parallelism.pipeline_parallel_degree 2 --training.micro_batch_size 2 \
    --parallelism.pipeline_schedule $schedule
done
check 4 --parallelism.tensor_parallel_degree 2 --parallelism.zero_stage 2

# A second plan measures nothing: the file has all.
before=$(cksum <kernels.json)
expect_status 0 plan toy.toml --ranks 2 --kernels kernels.json
expect_says "tokens/s"
[ "$(cksum <kernels.json)" = "$before" ] || fail "the kernels file was written again"

"$program" bench comm --nproc-per-node 2 -b 1K -e 1M -n 3 --collective all_reduce --links links.toml >out ||
  fail "bench comm"
expect_status 0 plan toy.toml --ranks 2 --kernels kernels.json --links links.toml
expect_says "tokens/s"

echo '{}' >broken.json
expect_status 2 plan toy.toml --kernels broken.json
expect_says "tessera_kernels"
expect_status 2 plan toy.toml --ranks 3 --parallelism.tensor_parallel_degree 2
expect_status 2 plan toy.toml --ranks 2 --tp 2
expect_says "leave out the flags of clusters"
expect_status 2 plan --ranks 2
expect_says "CONFIG.toml"
