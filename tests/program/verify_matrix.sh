#!/bin/sh
# verify_matrix.sh PROGRAM CONFIG_FOLDER: every axis with every other, both families, ranks as
# threads and as processes, is the model of one rank.
set -eu
program=$1
configs=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$(dirname "$0")/../toy_text.sh" >"$folder/toy.jsonl"

verify() {
  config=$1
  layouts=$2
  shift 2
  "$program" verify "$configs/$config.toml" --data.path "$folder/toy.jsonl" --steps 4 \
    --layouts "$layouts" --junit "$folder/$config.$#.xml" "$@"
}

# To the bit, ranks as threads.
verify toy "pp=1|2,dp=2,accumulate=1|3,zero=0|1|2|3;
  pp=2,schedule=gpipe|zb-h1,dp=1|2,zero=0|3;
  pp=2,schedule=interleaved|zb-v,dp=1|2,zero=0|2;
  pp=2|3,recompute=selective|full;
  tp=2|4,sp=0|1,pp=2;
  dp=2,tp=2,pp=2,sp=0|1,zero=1|3" \
  --training.numerics invariant --model.num_hidden_layers 6
# Close, ranks as processes.
verify toy_llama "tp=2|4,sp=0|1,dp=1|2,zero=0|3,backend=shm;
  tp=2,sp=0|1,pp=2,schedule=1f1b|zb-h1|zb-v,dp=2,zero=1,backend=shm;
  pp=4,schedule=gpipe|interleaved,dp=2,zero=2,recompute=none|full,backend=shm" \
  --model.num_hidden_layers 8
# Adapters, a head of its own, an odd vocabulary in bf16.
verify toy_llama "tp=2,sp=0|1,pp=2,dp=2,zero=1|3" --lora.rank 3 --lora.targets all-linear
verify toy_llama "tp=4,pp=2; tp=2,sp=1,dp=2,zero=2" --model.tie_word_embeddings false \
  --training.precision bf16 --model.vocab_size 301

cases=$(cat "$folder"/*.xml | grep -o '<testcase ' | wc -l)
if [ "$cases" -lt 60 ]; then
  echo "only $cases layouts were verified" >&2
  exit 1
fi
echo "$cases layouts verified"
