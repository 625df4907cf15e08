#!/bin/sh
# scripts/nightly_verify.sh [GROUP…]: `tessera verify` of several hundred layouts, in groups: toys of
# both families along every axis of the mesh, with every schedule and stage of ZeRO and by every
# backend, equal to the bit in the invariant numerics and close in the fast ones; adapters, bf16, an
# odd vocabulary; then models of a real size on a real text, whose documents end anywhere in their
# rows, so that masks are unequal. All groups run, whatever becomes of the first. Fails when a layout
# differs, or when a group's JUnit file, build/nightly/verify/GROUP.xml, has fewer layouts than this
# script says.
# Needs `make build`. About half an hour on 2 cores.
set -eu
cd "$(dirname "$0")/.."
out=build/nightly/verify
mkdir -p "$out"
# As root, mpirun asks for these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
wanted=" $* "
failed=
total=0

# group NAME LEAST CONFIG LAYOUTS [--section.key value …]: LEAST is how many layouts there must be.
group() {
  name=$1 least=$2 config=$3 layouts=$4
  shift 4
  case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
  rm -f "$out/$name.xml"
  status=0
  build/tessera verify "$config" --layouts "$layouts" --junit "$out/$name.xml" "$@" \
    >"$out/$name.log" 2>&1 || status=$?
  count=$(grep -o '<testcase ' "$out/$name.xml" 2>/dev/null | wc -l) || :
  total=$((total + count))
  if [ "$status" -eq 0 ] && [ "$count" -ge "$least" ]; then
    printf '%-22s %3d layouts\n' "$name" "$count"
  else
    cat "$out/$name.log"
    printf '%-22s %3d layouts of %d, exit status %d\n' "$name" "$count" "$least" "$status"
    failed="$failed $name"
  fi
}
toy() {
  family=$1 name=$2 least=$3 layouts=$4
  shift 4
  group "$name" "$least" "tests/faults/$family.toml" "$layouts" --data.path "$out/toy.jsonl" \
    --steps 6 "$@"
}

tests/toy_text.sh >"$out/toy.jsonl"
schedules="gpipe|1f1b|interleaved|zb-h1|zb-v"

# To the bit, ranks as threads.
six="--training.numerics invariant --model.num_hidden_layers 6"
toy toy data-invariant 36 "dp=2|3|4,accumulate=1|2|4,zero=0|1|2|3" $six
toy toy pipeline-invariant 74 "
  pp=2|3,schedule=gpipe|1f1b|zb-h1,dp=1|2,zero=0|1|2|3;
  pp=2|3,schedule=interleaved|zb-v,dp=1|2,zero=0|2;
  pp=2,schedule=interleaved,v=3,accumulate=4|6;
  pp=2|3,schedule=1f1b|zb-v,recompute=selective|full" $six
toy toy tensor-invariant 36 "tp=2|4,sp=0|1,dp=1|2,zero=0|1|2|3" $six
toy toy mesh-invariant 42 "tp=2,sp=0|1,pp=2,schedule=$schedules,dp=1|2,zero=0|3" $six
toy toy_llama llama-invariant 34 "
  dp=2|3,zero=0|1|2|3;
  tp=2|4,sp=0|1,dp=2,zero=0|2;
  pp=2,schedule=$schedules,dp=2,zero=1|3;
  tp=2,sp=0|1,pp=2,schedule=1f1b|zb-v,dp=2,zero=1" $six

# Close, ranks as processes.
toy toy gpt2-shm 23 "
  tp=2,sp=0|1,dp=2,zero=0|1|2|3,backend=shm;
  pp=2|3,schedule=$schedules,backend=shm;
  tp=2,sp=1,pp=2,schedule=$schedules,backend=shm" --model.num_hidden_layers 6
toy toy_llama llama-shm 36 "
  tp=2|4,sp=0|1,dp=1|2,zero=0|3,backend=shm;
  tp=2,sp=0|1,pp=2,schedule=1f1b|zb-h1|zb-v,dp=2,zero=1,backend=shm;
  pp=4,schedule=gpipe|interleaved,dp=2,zero=2,recompute=none|full,backend=shm;
  pp=2,schedule=$schedules,dp=1|2,backend=shm" --model.num_hidden_layers 8
for family in toy toy_llama; do
  toy "$family" "$family-mpi" 10 "
    dp=2|4,zero=0|3,backend=mpi;
    tp=2,sp=0|1,dp=2,backend=mpi;
    pp=2,schedule=1f1b|interleaved|zb-v,backend=mpi;
    tp=2,sp=1,pp=2,dp=2,zero=1,backend=mpi" --model.num_hidden_layers 6

  # Adapters; a vocabulary that divides by nothing, with a head of its own, in bf16.
  toy "$family" "$family-lora" 12 "tp=2,sp=0|1,pp=1|2,dp=2,zero=0|1|3" \
    --lora.rank 3 --lora.targets all-linear --model.num_hidden_layers 6
  toy "$family" "$family-lora-invariant" 8 "pp=2|3,schedule=1f1b|zb-h1,dp=2,zero=1|3" \
    --lora.rank 3 --lora.targets all-linear $six
  toy "$family" "$family-bf16" 14 "
    tp=2|4,pp=1|2,sp=0|1;
    tp=2,dp=2,zero=1|2|3;
    pp=2,schedule=gpipe|interleaved|zb-v" \
    --training.precision bf16 --model.vocab_size 301 --model.tie_word_embeddings false \
    --model.num_hidden_layers 6
  toy "$family" "$family-bf16-invariant" 8 "dp=2|3,pp=1|2,zero=0|3" --training.precision bf16 \
    --model.vocab_size 301 --model.tie_word_embeddings false $six
done

scripts/real_text.sh build/data/bible.jsonl
if [ ! -f build/data/tokenizer/tokenizer.json ]; then
  build/tessera data train-tokenizer build/data/bible.jsonl --output build/data/tokenizer
fi
for config in first_run llama_10m; do
  for numerics in fast invariant; do
    group "$config-$numerics" 24 "examples/$config.toml" "
      dp=1,accumulate=2|4;
      dp=2|3|4,accumulate=1|2|4;
      dp=2,recompute=selective; dp=3,micro_batch=1; dp=2,zero=1; dp=3,zero=2,micro_batch=1;
      dp=2,zero=3; dp=4,zero=3,shard=2,accumulate=2; dp=3,zero=3,recompute=full;
      tp=2,sp=0|1;
      pp=2,schedule=1f1b|zb-h1|interleaved;
      tp=2,sp=1,pp=2,dp=2,zero=1" \
      --training.precision fp32 --training.numerics "$numerics" --optimizer.lr 3e-4 --steps 20
  done
done

echo "$total layouts verified"
if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi
if [ "$wanted" = "  " ] && [ "$total" -lt 300 ]; then
  echo "300 layouts were to be verified" >&2
  exit 1
fi
