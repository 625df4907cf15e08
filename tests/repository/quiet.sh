#!/bin/sh
# Nothing under src/ prints, exits or aborts, src/cli aside: libraries throw (src/core/error.h) and
# call back. A child between fork and exec may _exit.
. "$(dirname "$0")/common.sh"
project_files 'src/*.h' 'src/*.cpp' | grep -v '^src/cli/' | xargs awk '
  {
    code = $0
    gsub(/"([^"\\]|\\.)*"/, "\"\"", code)   # no strings
    sub(/\/\/.*/, "", code)                 # no comments
  }
  code ~ /(^|[^A-Za-z0-9_.>])(cout|cerr|clog|stdout|stderr|STDOUT_FILENO|STDERR_FILENO)([^A-Za-z0-9_]|$)/ ||
  code ~ /(^|[^A-Za-z0-9_.>])(printf|vprintf|puts|putchar|perror|exit|quick_exit|_Exit) *\(/ ||
  code ~ /(^|[^A-Za-z0-9_.>])(abort|terminate) *\( *\)/ || code ~ /fmt::print/ {
    text = $0
    sub(/^[ \t]+/, "", text)
    print FILENAME ":" FNR ": prints, exits or aborts: " text
  }' | report
