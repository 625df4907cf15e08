#!/bin/sh
# headers_alone.sh ROOT COMPILER [JOBS]: every header compiles when it is all that is included.
. "$(dirname "$0")/common.sh"
compiler=$1
jobs=${2:-2}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
project_files 'src/*.h' 'tests/*.h' 'bench/*.h' | xargs -P "$jobs" -I HEADER sh -c '
  avx=
  case $2 in *_avx2.h) avx="-mavx2 -mfma -mf16c" ;; *_avx512.h) avx="-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c" ;; esac
  messages=$("$1" -std=c++20 -fsyntax-only -fopenmp -Wall -Wextra -Wshadow -Werror $avx \
    -Isrc -Itests -Ibench -DTESSERA_TESTS_DIR=\"tests\" -DTESSERA_BINARY_DIR=\"build\" \
    -include "$2" -x c++ /dev/null 2>&1) ||
    printf "%s:1: does not compile alone:\n%s\n" "$2" "$messages"' - "$compiler" HEADER >"$log"
report <"$log"
