#!/bin/sh
# What `make run` does once the program is built: takes a real text, trains a tokenizer on it, trains
# a GPT on 8 local ranks (tensor parallel 2 × pipeline 2 × data parallel 2, ZeRO-1), lets it write, and
# shows that the losses of these ranks are those of one.
#   scripts/run.sh [--section.key value ...]     for instance --training.steps 50
# From the environment: CONFIG, LAYOUT (a second config, merged with it; empty: none), RANKS, RUN (the
# run folder, written anew), TEXT (a text or JSON-lines file of your own), VOCABULARY (tokens), PROMPT,
# VERIFY_STEPS (0: does not compare).
set -eu
cd "$(dirname "$0")/.."
CONFIG=${CONFIG:-examples/first_run.toml}
RANKS=${RANKS:-8}
# The mesh of eight, where there are as many.
if [ $((RANKS % 8)) -eq 0 ]; then LAYOUT=${LAYOUT-examples/mesh_2x2x2.toml}; fi
LAYOUT=${LAYOUT-}
RUN=${RUN:-runs/first}
TEXT=${TEXT:-}
VOCABULARY=${VOCABULARY:-4096}
PROMPT=${PROMPT:-In the beginning}
VERIFY_STEPS=${VERIFY_STEPS:-10}

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
# shellcheck disable=SC2086  # an empty LAYOUT is no argument
build/tessera launch --nproc-per-node "$RANKS" -- train "$CONFIG" $LAYOUT --run-dir "$RUN" \
  --overwrite --data.path "$TEXT" --data.tokenizer "$tokenizer" "$@"
build/tessera generate "$RUN" --prompt "$PROMPT"

[ "$VERIFY_STEPS" -gt 0 ] && [ "$RANKS" -gt 1 ] || exit 0
layout=$(sed -n 's/.*"layout": "\([^"]*\)".*/\1/p' "$RUN/summary.json")
printf '\nThe first %s steps once more, on one rank and on these %s:\n' "$VERIFY_STEPS" "$RANKS"
build/tessera verify "$RUN/config.toml" --steps "$VERIFY_STEPS" --layouts "$layout,backend=shm"
