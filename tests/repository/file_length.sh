#!/bin/sh
# No source file is over 500 lines, no test over 700: split by idea.
. "$(dirname "$0")/common.sh"
project_files '*.h' '*.cpp' '*.cu' '*.py' '*.sh' '*.awk' '*.cmake' '*.ts' '*.tsx' |
  while read -r file; do
    case $file in tests/*) limit=700 ;; *) limit=500 ;; esac
    lines=$(wc -l <"$file")
    if [ "$lines" -gt "$limit" ]; then printf '%s:%s: over %s lines\n' "$file" "$lines" "$limit"; fi
  done | report
