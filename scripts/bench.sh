#!/bin/sh
# scripts/bench.sh BUILD [GOOGLE BENCHMARK ARGUMENTS]: runs every benchmark that was built.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
for benchmark in "$build"/bench/bench_*; do
  if [ -f "$benchmark" ] && [ -x "$benchmark" ]; then "$benchmark" "$@"; fi
done
"$build/tessera" bench step
"$build/tessera" bench comm --collective all -b 8 -e 64M -f 8 --copy
