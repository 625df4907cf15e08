#!/bin/sh
# scripts/text.sh FILE: writes the King James Bible (public domain, from Debian's bible-kjv) to FILE
# as JSON lines, a chapter a document, without the verse labels.
set -eu
file=$1
PATH=$PATH:/usr/games
mkdir -p "$(dirname "$file")"

# A verse is one line, "Ge1:1 In the beginning ...".
bible -f gen1:1-rev22:21 </dev/null | awk '
  /["\\]/ { exit 1 }   # would need escapes in JSON; this text has none
  {
    chapter = $1
    sub(/:.*/, "", chapter)
    sub(/^[^ ]+ +/, "")
    if (chapter == current) printf "\\n%s", $0
    else printf "%s{\"text\": \"%s", (NR == 1 ? "" : "\"}\n"), $0
    current = chapter
  }
  END { if (NR) print "\"}" }' >"$file.partial"
if [ ! -s "$file.partial" ]; then
  echo "text: the program 'bible' (package bible-kjv) printed nothing; run 'make setup'" >&2
  exit 1
fi
mv "$file.partial" "$file"
