#!/bin/sh
# Every shell script parses, and can be run.
. "$(dirname "$0")/common.sh"
project_files '*' | while read -r file; do
  first=$(head -c 64 "$file" | head -n 1 | tr -d '\0')
  case $first in
    '#!/bin/sh'*) shell=sh ;;
    '#!/bin/bash'* | '#!/usr/bin/env bash'*) shell=bash ;;
    *) case $file in *.sh) shell=sh ;; *) continue ;; esac ;;
  esac
  messages=$($shell -n "$file" 2>&1) || printf '%s:1: %s\n' "$file" "$messages"
  case $first in '#!'*) [ -x "$file" ] || printf '%s:1: lacks its run bit\n' "$file" ;; esac
done | report
