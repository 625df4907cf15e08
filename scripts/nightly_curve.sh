#!/bin/sh
# scripts/nightly_curve.sh [STEPS]: trains gpt2-124m in bf16 on the real text in each of four layouts
# of ranks, and PyTorch once from the same weights on the same batches; fails when a layout's loss
# curve differs from PyTorch's by more than 1 %.
#   LAYOUTS="data tensor"   only these: data, tensor, pipeline, mesh
# Needs `make build` and `make peers`. About an hour and a quarter on 2 cores.
set -eu
cd "$(dirname "$0")/.."
steps=${1:-300}
layouts=${LAYOUTS:-data tensor pipeline mesh}
python=${PYTHON:-.venv/bin/python}
work=build/nightly/curve
config="examples/gpt2_124m.toml --training.steps $steps --validation.freq 0"

# The ranks of layout $1, and then the flags that make them that layout.
flags_of() {
  case $1 in
    data) echo 2 --parallelism.data_parallel_degree 2 ;;
    tensor)
      echo 2 --parallelism.tensor_parallel_degree 2 --parallelism.sequence_parallel true \
        --training.micro_batch_size 4
      ;;
    pipeline)
      echo 2 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_schedule zb-h1 \
        --training.micro_batch_size 1
      ;;
    mesh)
      echo 8 --parallelism.tensor_parallel_degree 2 --parallelism.pipeline_parallel_degree 2 \
        --parallelism.data_parallel_degree 2 --parallelism.zero_stage 1 --training.micro_batch_size 1
      ;;
    *)
      echo "nightly_curve.sh: no layout \"$1\"" >&2
      exit 1
      ;;
  esac
}

scripts/real_text.sh build/data/bible.jsonl
if [ ! -f build/data/tokenizer/tokenizer.json ]; then
  build/tessera data train-tokenizer build/data/bible.jsonl --output build/data/tokenizer
fi
rm -rf "$work"
mkdir -p "$work"
build/tessera checkpoint init $config --output "$work/seed"
build/tessera data batches $config --steps "$steps" --output "$work/batches.safetensors"
build/tessera config check $config --json >"$work/config.json"
metrics=
for layout in $layouts; do
  flags=$(flags_of "$layout")
  build/tessera launch --nproc-per-node "${flags%% *}" -- train $config ${flags#* } --run-dir "$work/$layout"
  rm -rf "$work/$layout/checkpoints"
  metrics="$metrics $work/$layout/metrics.jsonl"
done
"$python" tests/peers/gpt2_curve.py "$work/seed" "$work/batches.safetensors" $metrics \
  --config "$work/config.json" --losses "$work/pytorch.json"
rm -rf "$work/seed"
