#!/bin/sh
# Writes a real English text, in the public domain, as JSON Lines: the King James Bible out of the
# Debian package bible-kjv, one document a chapter, one verse a line, without verse labels.
#   scripts/real_text.sh FILE.jsonl
# FILE appears whole or not at all; one that is there already is left as it is.
set -eu

fail() {
  echo "real_text.sh: $*" >&2
  exit 1
}

[ $# -eq 1 ] || fail "usage: scripts/real_text.sh FILE.jsonl"
output=$1
case $output in
  *.jsonl) ;;
  *) fail "\"$output\" must end in .jsonl: JSON Lines is what it will hold" ;;
esac
[ ! -s "$output" ] || exit 0

PATH=$PATH:/usr/games
command -v bible >/dev/null 2>&1 ||
  fail "the program \"bible\" is missing: apt-get install bible-kjv"
mkdir -p "$(dirname "$output")"

temporary=$output.tmp.$$
trap 'rm -f "$temporary" "$temporary.raw"' EXIT
trap 'exit 1' HUP INT TERM
bible -f gen1:1-rev22:21 </dev/null >"$temporary.raw" || fail "\"bible\" failed"

# A line is "Ge1:2 And the earth was …": book and chapter up to the colon, the verse after the space.
LC_ALL=C awk '
  function finish() {
    if (chapter != "") printf "{\"chapter\": \"%s\", \"text\": \"%s\"}\n", chapter, text
  }
  !/^[0-9]?[A-Za-z]+[0-9]+:[0-9]+ ./ { print "line " NR ": " $0 >"/dev/stderr"; exit 1 }
  {
    label = $1
    sub(/:.*/, "", label)
    verse = $0
    sub(/^[^ ]+ +/, "", verse)
    sub(/[ \t\r]+$/, "", verse)
    gsub(/["\\]/, "\\\\&", verse)
    if (label != chapter) {
      finish()
      chapter = label
      text = verse
    } else {
      text = text "\\n" verse
    }
  }
  END { finish() }
' "$temporary.raw" >"$temporary" || fail "\"bible\" printed a line without a verse label"

chapters=$(wc -l <"$temporary")
bytes=$(wc -c <"$temporary")
[ "$bytes" -gt 4000000 ] && [ "$chapters" -eq 1189 ] ||
  fail "got $chapters chapters in $bytes bytes, not 1189 in more than 4000000: is bible-kjv whole?"
mv "$temporary" "$output"
