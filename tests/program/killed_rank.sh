#!/bin/sh
# A rank is killed: the others stop and name it, the operation and the step; what was saved stays; a
# restart resumes from it, and nothing is left behind.
. "$(dirname "$0")/common.sh"

"$program" launch --nproc-per-node 3 -- train toy.toml --training.steps 1000000 --run-dir run \
  >out 2>&1 &
launcher=$!
wait_for_step run 12 "$launcher"
victim=$(pgrep -P "$launcher" | sed -n 2p)
kill -KILL "$victim"
status=0
wait "$launcher" || status=$?
[ "$status" -eq 1 ] || fail "status $status instead of 1"
expect_says "rank 1 died (pid $victim is gone)"
expect_says "of step [0-9]"
expect_says "all-\(reduce\|gather\)\|barrier\|broadcast"
expect_says "killed by signal 9"
for pid in $(pgrep -f "run-dir run" || :); do
  [ "$(readlink "/proc/$pid/cwd")" != "$folder" ] || fail "process $pid is left"
done
[ -z "$(find run -name '*.tmp*' -newer toy.toml -path '*step-*.tmp/manifest.json')" ] || fail "torn"

saved=$(ls run/checkpoints | grep -v tmp | tail -n 1)
"$program" checkpoint verify "run/checkpoints/$saved" >out 2>&1 || fail "what was saved is damaged"
last=$(expr "$saved" : 'step-0*\([0-9]*\)')
expect_status 0 launch --nproc-per-node 2 -- train toy.toml --training.steps $((last + 3)) \
  --run-dir run --resume
expect_says "resumed from .*$saved"
[ "$(wc -l <run/metrics.jsonl)" -eq $((last + 3)) ] || fail "metrics do not tell each step once"
