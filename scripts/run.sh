#!/bin/sh
# What `make run` does once the program is built: takes a real text, trains a tokenizer on it, trains
# a GPT on 4 local ranks, and lets it write.
#   scripts/run.sh [--section.key value ...]     for instance --training.steps 50
# From the environment: CONFIG, RANKS, RUN (the run folder, written anew), TEXT (a text or JSON-lines
# file of your own), VOCABULARY (tokens), PROMPT.
set -eu
cd "$(dirname "$0")/.."
CONFIG=${CONFIG:-examples/first_run.toml}
RANKS=${RANKS:-4}
RUN=${RUN:-runs/first}
TEXT=${TEXT:-}
VOCABULARY=${VOCABULARY:-4096}
PROMPT=${PROMPT:-In the beginning}

if [ -z "$TEXT" ]; then
  TEXT=build/data/bible.jsonl
  scripts/real_text.sh "$TEXT"
  tokenizer=build/data/tokenizer
else
  tokenizer=build/data/$(basename "$TEXT")-tokenizer
fi
if [ ! -f "$tokenizer/tokenizer.json" ] || [ "$TEXT" -nt "$tokenizer/tokenizer.json" ]; then
  build/tessera data train-tokenizer "$TEXT" --vocab-size "$VOCABULARY" --output "$tokenizer" \
    --overwrite
fi
build/tessera launch --nproc-per-node "$RANKS" -- train "$CONFIG" --run-dir "$RUN" --overwrite \
  --data.path "$TEXT" --data.tokenizer "$tokenizer" "$@"
build/tessera generate "$RUN" --prompt "$PROMPT"
