#!/bin/sh
# Sourced by the benchmarks of this folder: reads what a run has written.

# figure FILE KEY [KEY …]: a number of a JSON file with a key a line, as summary.json: the last key's,
# inside the object of the one before, and so on; 0 where it is not there.
figure() {
  file=$1
  shift
  awk -v keys="$*" '
    BEGIN { n = split(keys, key, " "); at = 1 }
    $1 == "\"" key[at] "\":" {
      if (at++ < n) next
      sub(/,$/, "", $2)
      print $2
      found = 1
      exit
    }
    END { if (!found) print 0 }' "$file"
}

# step_seconds RUN: of every step but the first.
step_seconds() {
  sed -n 's/.*"step":\([0-9]*\),.*"step_s":\([0-9.e-]*\).*/\1 \2/p' "$1/metrics.jsonl" |
    awk '$1 > 1 { print $2 }'
}

# Of the numbers of standard input, a line each.
fastest() { sort -g | head -n 1; }
median() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

# The real text and its tokenizer, once.
prepare_text() {
  scripts/real_text.sh build/data/bible.jsonl
  if [ ! -f build/data/tokenizer/tokenizer.json ]; then
    build/tessera data train-tokenizer build/data/bible.jsonl --output build/data/tokenizer
  fi
}
