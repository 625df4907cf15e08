#!/bin/sh
# The module tables of docs/architecture.md and README.md agree with cmake/modules.txt. Their rows
# are "| module | what it holds | may use |" and "| `src/module` | what it holds |"; planned modules
# stand in tables of their own.
. "$(dirname "$0")/common.sh"
table=$(mktemp)
trap 'rm -f "$table"' EXIT
grep -vE '^(#|$)' cmake/modules.txt | sed 's/: */:/; s/ *$//' | sort >"$table"
{
  awk -F ' *[|] *' '
    /^\| *module *\|.*\| *may use *\|/ { inside = 1; next }
    !/^\|/ { inside = 0 }
    inside && !/^\|[ -]*---/ {
      gsub(/`/, "")
      uses = $(NF - 1)
      if (uses == "–") uses = ""
      print $2 ":" uses
    }' docs/architecture.md | sort | diff "$table" - |
    sed -n 's|^<|docs/architecture.md:1: lacks a row that says|p; s|^>|docs/architecture.md:1: says otherwise than cmake/modules.txt:|p'
  sed -n 's/^| *`src\/\([a-z_]*\)` *|.*/\1/p' README.md | sort >"$table.readme"
  sed 's/:.*//' "$table" | diff - "$table.readme" |
    sed -n 's|^<|README.md:1: the module table lacks|p; s|^>|README.md:1: the module table has, but cmake/modules.txt lacks:|p'
  rm -f "$table.readme"
} | report
