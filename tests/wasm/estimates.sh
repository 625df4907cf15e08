#!/bin/sh
# estimates.sh NATIVE COMMAND...: what plan estimates must be the same in the program NATIVE and in
# the command, whatever its constants are at the time.
set -eu
native=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$native" --estimates >"$folder/native"
"$@" --estimates >"$folder/other"
[ "$(grep -c '^plan ' "$folder/native")" -ge 5 ] || { echo "fewer than five plans" >&2; exit 1; }
diff "$folder/native" "$folder/other"
