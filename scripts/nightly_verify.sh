#!/bin/sh
# scripts/nightly_verify.sh: the model of `make run`, and a Llama of its size, in fp32, for 20 steps
# in each layout, against one rank: close in the fast numerics, equal to the bit in the invariant ones.
# Documents end anywhere in their rows, so the masks are unequal.
# Needs `make build`.
set -eu
cd "$(dirname "$0")/.."

scripts/real_text.sh build/data/bible.jsonl
if [ ! -f build/data/tokenizer/tokenizer.json ]; then
  build/tessera data train-tokenizer build/data/bible.jsonl --output build/data/tokenizer
fi
layouts=
for dp in 1 2 3 4; do
  for accumulate in 1 2 4; do
    if [ "$dp$accumulate" != 11 ]; then layouts="$layouts; dp=$dp,accumulate=$accumulate"; fi
  done
done
for config in examples/first_run.toml examples/llama_10m.toml; do
  for numerics in fast invariant; do
    build/tessera verify "$config" --training.precision fp32 --training.numerics "$numerics" \
      --optimizer.lr 3e-4 --steps 20 \
      --layouts "${layouts#; }; dp=2,recompute=selective; dp=3,micro_batch=1; dp=2,zero=1; dp=3,zero=2,micro_batch=1; dp=2,zero=3; dp=4,zero=3,shard=2,accumulate=2; dp=3,zero=3,recompute=full"
  done
done
