#!/bin/sh
# What `make run` does once the program is built: a real text, a tokenizer trained on it, a GPT
# trained on 4 local ranks, a sample of what it writes.
#   scripts/run.sh [--section.key value ...]     for instance --training.steps 50
# From the environment: CONFIG, TEXT (text, JSON lines), RANKS, RUN (the run folder), VOCABULARY.
set -eu
cd "$(dirname "$0")/.."
CONFIG=${CONFIG:-examples/first_run.toml}
TEXT=${TEXT:-runs/text/bible.jsonl}
RANKS=${RANKS:-4}
RUN=${RUN:-runs/first}
VOCABULARY=${VOCABULARY:-4096}
tokenizer=$TEXT.bpe-$VOCABULARY.json

if [ ! -f "$TEXT" ]; then scripts/text.sh "$TEXT"; fi
if [ ! -f "$tokenizer" ] || [ "$TEXT" -nt "$tokenizer" ]; then
  build/tessera data train-tokenizer "$TEXT" --vocab-size "$VOCABULARY" --output "$tokenizer"
fi
build/tessera launch --nproc-per-node "$RANKS" -- train "$CONFIG" --run-dir "$RUN" --overwrite \
  --data.path "$TEXT" --data.tokenizer "$tokenizer" "$@"
build/tessera generate "$RUN" --prompt "In the beginning"
