#!/bin/sh
# targets.sh ROOT BUILD [FOLDER...]: every .cpp under the folders is compiled by some target of the
# build folder (which has compile_commands.json).
. "$(dirname "$0")/common.sh"
build=$1
shift
compiled=$(mktemp)
trap 'rm -f "$compiled"' EXIT
sed -n 's/^ *"file": *"\(.*\)",*$/\1/p' "$build/compile_commands.json" | sort -u >"$compiled"
for folder; do project_files "$folder/*.cpp"; done | while read -r file; do
  grep -qxF "$(pwd -P)/$file" "$compiled" || printf '%s:1: no target compiles it\n' "$file"
done | report
