#!/bin/sh
# compare.sh GOLDEN COMMAND...: the command must print what the file GOLDEN has.
set -eu
golden=$1
shift
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
"$@" >"$printed"
if ! diff "$golden" "$printed" | head -n 40 | grep .; then exit 0; fi
echo "what is printed differs from $golden (<). If the change is meant, write that file anew:" >&2
echo "build/release/tests/wasm/golden >tests/wasm/golden.txt, and have the other machine agree" >&2
exit 1
