#!/bin/sh
# What a run would take on machines that are not here; what docs/planning.md shows is what comes.
. "$(dirname "$0")/common.sh"

# Fits, does not fit, cannot be asked.
expect_status 0 plan --model llama-2-7b --gpus 8 --zero 1 --recompute full
expect_says ": fits"
expect_says "step  "
expect_status 3 plan --model llama-2-7b --recompute full
expect_says "does not fit"
expect_says "MFU"
expect_status 3 plan --model llama-2-7b --recompute full --json
expect_json
expect_says '"fits": false'
expect_status 2 plan --model llama-2-7c --tp 3 --zero 5
expect_says "has 2 mistakes"
expect_says "try: llama-2-7b"
expect_status 2 plan --model llama-2-7b --tp 3
expect_says "try: 2 or 4"
expect_status 2 plan --params 7e9
expect_says "ideal"
expect_status 2 plan --model llama-2-7b --flops-per-gpu 150e12
expect_status 2 plan --ideal --params 7e9 --flops-per-gpu fast
expect_says "try: 150e12"
expect_status 2 plan --ideal --params 7e9 --flops-per-gpu 1e-300
expect_says "from 1000 to 1e+30"
expect_status 2 plan --model llama-2-7b --layout ''
expect_says "is empty"

# The batch that the learning rate was chosen for, and a format that is not there.
grown="plan --model llama-2-7b --gpus 64 --zero 1 --recompute full --global-batch 1024"
expect_status 0 $grown
if grep -q "learning rate was chosen" out; then fail "warned of a batch that nothing is known of"; fi
expect_status 0 $grown --tuned-batch 8
expect_says "warning: the global batch is 1024 sequences, 128 times the 8"
expect_status 2 $grown --tuned-batch abc
expect_says "tuned-batch"
expect_status 0 $grown --precision fp8 --cluster a100-80g
expect_says "warning: the A100-80GB has no products in fp8"

# Dashes and underscores, and a layout in one word.
expect_status 0 plan --model llama-2-7b --gpus 8 --zero 1 --micro-batch 2 --recompute full --json
cp out dashes
expect_status 0 plan --model llama-2-7b --gpus 8 --layout zero=1,micro_batch=2,recompute=full --json
cmp out dashes || fail "a layout in one word is another"
expect_status 0 plan --model llama-2-7b --gpus 8 --zero 1 --micro_batch 2 --recompute full --json
cmp out dashes || fail "underscores are another"

# A model of one's own, a cluster over a preset, links that bench comm measured.
cat >model.toml <<'END'
[model]
preset = "llama-2-7b"
num_hidden_layers = 16
END
expect_status 0 plan --ideal --model model.toml --gpus 8 --zero 1
expect_says "without norms  3500146688"
cat >cluster.toml <<'END'
[cluster]
base = "h100-80g"
devices_per_node = 4
[device]
memory_bytes = 40e9
[inter]
bytes_per_s = 12.5e9
END
expect_status 0 plan --ideal --model llama-2-7b --cluster cluster.toml --gpus 8 --zero 1 --recompute full
expect_says "2 nodes of 4"
expect_says "a GPU of 40 GB"
expect_says "1.887 s between nodes"
sed 's/memory_bytes/memory_byte/' cluster.toml >wrong.toml
expect_status 2 plan --ideal --model llama-2-7b --cluster wrong.toml
expect_says "wrong.toml:5"
expect_says "try: device.memory_bytes"
expect_status 0 bench comm --nproc-per-node 2 -b 8 -e 64K -n 5 --collective all_reduce --links links.toml
expect_status 0 plan --ideal --model llama-2-7b --tp 8 --recompute full --links links.toml

# Reasons, and what is left out.
expect_status 0 plan --ideal --params 7e9 --gpus 8 --zero 1 --explain
expect_says "= 7000000000 \* 12 / 8 = 10500000000"
expect_says "not modelled"

# The console blocks of the page: a command, then what it prints. The textbook's are compared word
# by word; an estimate's numbers follow the constants, so of those the lines' first words are.
awk '/^```console$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("block." n) }' \
  "$tests/../docs/planning.md"
[ -f block.5 ] || fail "docs/planning.md has fewer examples than there were"
for block in block.*; do
  arguments=$(sed -n '1s/^\$ tessera //p' "$block")
  sed 1d "$block" >expected
  # shellcheck disable=SC2086
  "$program" $arguments >out 2>&1 || [ $? -eq 3 ] || fail "tessera $arguments"
  case $arguments in
    *--ideal*) ;;
    *) for file in expected out; do
        awk '{ print $1 }' "$file" >words && mv words "$file"
      done ;;
  esac
  diff expected out || fail "docs/planning.md: tessera $arguments prints something else"
done
