#!/bin/sh
# A model goes out to a Hugging Face folder, is fine-tuned from it, resumed without it and comes back;
# an output that cannot be finished leaves nothing. The full disk needs root, and is left out without.
. "$(dirname "$0")/common.sh"

convert() {
  status=$1
  shift
  expect_status "$status" checkpoint convert "$@"
}

expect_status 0 train toy.toml --run-dir run --training.steps 4
convert 0 --to hf run --output hf --max-shard-size 50KB
[ -f hf/model.safetensors.index.json ] && [ -f hf/tokenizer.json ] || fail "no shards or no tokenizer"
convert 2 --to hf run --output hf
expect_says "exists"
convert 0 --to hf run --output hf --overwrite --json
expect_json
convert 2 --to hf run --from hf --output x
convert 2 --from llmc hf --output x
expect_says "it is hf"
expect_status 0 checkpoint show hf
expect_says "hidden_size = 32"
expect_status 0 checkpoint show hf --json
expect_json
expect_status 0 generate hf --prompt tile --max-new-tokens 4

# Starting from it; the config of the run needs the folder no more.
cat >tune.toml <<'END'
[model]
hf = "hf"
[data]
path = ["toy.jsonl"]
seq_len = 32
tokenizer = "hf"
[training]
steps = 4
global_batch_size = 8
load = "hf"
[checkpoint]
interval = 2
END
expect_status 0 train tune.toml --run-dir tuned
expect_says "weights loaded from hf"
expect_status 2 train tune.toml --run-dir other --model.hf "" --model.hidden_size 64
expect_says "model.hidden_size: 64 here, 32 there"
rm hf/model*.safetensors
expect_status 2 train tune.toml --run-dir other
expect_says "model.safetensors"
[ ! -e other ] || fail "a run that could not start left a folder"
mv hf moved && mkdir hf && cp moved/tokenizer*.json hf
expect_status 0 train --run-dir tuned --resume --training.steps 6
expect_says "resumed from"
rm -rf hf

convert 0 --to hf tuned --output back --dtype bf16
convert 0 --from hf back --output native
expect_status 0 checkpoint verify native
expect_status 0 generate native --prompt tile --max-new-tokens 4
expect_status 0 train toy.toml --run-dir again --training.steps 1 --training.load native

mkdir small
mount -t tmpfs -o size=64k tmpfs small 2>/dev/null || exit 0
trap 'umount "$folder/small"; rm -rf "$folder"' EXIT
convert 1 --to hf tuned --output small/hf
expect_says "[Nn]o space"
[ -z "$(ls small)" ] || fail "a conversion that failed left $(ls small)"
