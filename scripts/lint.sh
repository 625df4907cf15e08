#!/bin/sh
# scripts/lint.sh CHECK...   CHECK: format (is the code laid out as .clang-format says?), tidy
# (.clang-tidy), rewrite (lay it out). One version of the tools, so that all machines agree.
set -eu
cd "$(dirname "$0")/.."

sources() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
  if [ -f "$file" ]; then printf '%s\n' "$file"; fi; done; }

for check; do
  case $check in
    format) sources '*.h' '*.cpp' | xargs clang-format-19 --dry-run --Werror ;;
    rewrite) sources '*.h' '*.cpp' | xargs clang-format-19 -i ;;
    tidy)
      # A build folder of its own: clang reads the compile commands, nothing is built.
      cmake -S . -B build/tidy -G Ninja -DTESSERA_FAULTS=OFF -DTESSERA_BENCHMARKS=ON >/dev/null
      sources 'src/*.cpp' 'bench/*.cpp' |
        xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/tidy --quiet --warnings-as-errors='*' \
          --extra-arg=-Wno-unknown-warning-option
      ;;
    *) echo "lint: unknown check '$check': format, tidy or rewrite" >&2 && exit 2 ;;
  esac
done
