#!/bin/sh
# What the documents name is there: paths in backticks, links between files, `make` targets.
. "$(dirname "$0")/common.sh"

# Prints "DOCUMENT:LINE<tab>WHAT" for every code span and every link target outside code blocks.
mentions() {
  awk '
    FNR == 1 { block = 0 }
    /^[ \t]*```/ { block = !block; next }
    block { next }
    {
      where = FILENAME ":" FNR
      rest = $0
      while (match(rest, /`[^`]+`/)) {
        print where "\tspan\t" substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
      }
      rest = $0
      while (match(rest, /\]\([^)#]+/)) {
        print where "\tlink\t" substr(rest, RSTART + 2, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
      }
    }' "$@"
}

# A name in capitals (MODULE, RUN) stands for any name.
exists() {
  case $1 in *[A-Z][A-Z]*/* | */*[A-Z][A-Z][A-Z]*) return 0 ;; esac
  for found in $1; do [ -e "$found" ] && return 0; done
  return 1
}

documents=$(project_files '*.md' | grep -v '^CHANGELOG.md$' || :)
mentions $documents | while IFS="$(printf '\t')" read -r where kind what; do
  case $kind:$what in
    link:http://* | link:https://* | link:mailto:*) ;;
    link:*)
      folder=$(dirname "${where%%:*}")
      [ -e "$folder/$what" ] || printf '%s: links to %s, which is not there\n' "$where" "$what"
      ;;
    span:make\ [a-z]*)
      target=$(printf '%s' "${what#make }" | cut -d ' ' -f 1)
      grep -qE "^([a-z-]+ )*$target( [a-z-]+)*:" Makefile ||
        printf '%s: make %s: the Makefile has no such target\n' "$where" "$target"
      ;;
    span:*[!A-Za-z0-9_./*-]*) ;;
    span:build/* | span:runs/* | span:.venv/*) ;;
    span:src/* | span:tests/* | span:bench/* | span:docs/* | span:scripts/* | span:cmake/* | \
      span:examples/* | span:.ci/*)
      exists "$what" || printf '%s: %s is not there\n' "$where" "$what"
      ;;
    span:*/*)
      # A path within src/, as in `core/view.h`.
      if [ -d "src/${what%%/*}" ] && ! exists "src/$what" && ! exists "$what"; then
        printf '%s: src/%s is not there\n' "$where" "$what"
      fi
      ;;
    span:CMakeLists.txt | span:Makefile | span:packages.txt | span:LICENSE | span:*.md)
      exists "$what" || exists "docs/$what" || printf '%s: %s is not there\n' "$where" "$what"
      ;;
  esac
done | report
