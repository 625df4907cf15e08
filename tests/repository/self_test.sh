#!/bin/sh
# self_test.sh ROOT COMPILER: every check passes a sound little tree and fails when one thing in it
# is wrong. A check that can't fail checks nothing.
set -eu
root=$(cd "$1" && pwd)
compiler=$2
checks=$root/tests/repository
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# A sound tree of two modules.
plant() {
  rm -rf "$tree" && mkdir -p "$tree/cmake" "$tree/src/low" "$tree/src/high" "$tree/src/cli" \
    "$tree/tests/low" "$tree/docs" "$tree/build"
  cd "$tree"
  printf '# table\nlow:\nhigh: low\ncli: low high\n' >cmake/modules.txt
  printf '#pragma once\ninline int one() { return 1; }\n' >src/low/one.h
  printf '#include "low/one.h"\nint low() { return one(); }\n' >src/low/one.cpp
  printf '#pragma once\n#include "low/one.h"\ninline int two() { return one() + 1; }\n' >src/high/two.h
  printf '#include <cstdio>\nint main() { std::printf("hello"); }\n' >src/cli/main.cpp
  printf 'TEST(Low, IsOne) { EXPECT_EQ(one(), 1); }\n' >tests/low/one_test.cpp
  printf 'clean:\n\trm -rf build\n' >Makefile
  printf '| module | holds | may use |\n|---|---|---|\n| low | one | – |\n| high | two | low |\n| cli | x | low high |\n' >docs/architecture.md
  printf 'See `src/low/one.h`, [that](docs/architecture.md), `make clean`.\n\n| `src/low` | one |\n| `src/high` | two |\n| `src/cli` | x |\n' >README.md
  printf '#!/bin/sh\necho fine\n' >run.sh
  chmod +x run.sh
  for source in src/low/one.cpp src/cli/main.cpp tests/low/one_test.cpp; do
    printf '  "file": "%s/%s",\n' "$(pwd -P)" "$source"
  done >build/compile_commands.json
}

# expect CHECK FILE WHAT SPOIL [ARGUMENTS]: the check passes the sound tree; after the shell text
# SPOIL it fails and names FILE.
expect() {
  check=$1 file=$2 what=$3 spoil=$4
  shift 4
  plant
  if ! output=$("$checks/$check.sh" "$tree" "$@" 2>&1); then
    printf '%s fails a sound tree:\n%s\n' "$check" "$output"
    failed=1
  fi
  eval "$spoil"
  if output=$("$checks/$check.sh" "$tree" "$@" 2>&1); then
    printf '%s passes %s\n' "$check" "$what"
    failed=1
  elif ! printf '%s\n' "$output" | grep -q "^$file:"; then
    printf '%s fails on %s without naming %s:\n%s\n' "$check" "$what" "$file" "$output"
    failed=1
  fi
}

expect includes src/low/up.h 'an upward include' 'echo "#include \"high/two.h\"" >src/low/up.h'
expect includes src/low/up.h 'a spaced upward include' 'echo "  #  include  \"high/two.h\"" >src/low/up.h'
expect includes src/high/x.cpp 'an include without a folder' 'echo "#include \"two.h\"" >src/high/x.cpp'
expect includes src/high/x.cpp 'an include that climbs' 'echo "#include \"../low/one.h\"" >src/high/x.cpp'
expect includes src/high/x.cpp 'angle brackets round a header of ours' 'echo "#include <low/one.h>" >src/high/x.cpp'
expect includes src/odd/x.h 'a module outside the table' 'mkdir src/odd && echo >src/odd/x.h'
expect includes cmake/modules.txt 'a table with a cycle' 'printf "low: high\nhigh: low\ncli:\n" >cmake/modules.txt'
expect includes src/high/x.cpp 'a second header where one is allowed' \
  'printf "low:\nhigh: low/one.h\ncli:\n" >cmake/modules.txt; echo "#include \"low/two.h\"" >src/high/x.cpp'
expect heavy_headers src/low/json.h 'a heavy header in a header' 'echo "#include <nlohmann/json.hpp>" >src/low/json.h'
expect headers_alone src/low/alone.h 'a header that needs another' 'echo "std::string name();" >src/low/alone.h' "$compiler"
expect targets src/low/lost.cpp 'a source in no target' 'echo >src/low/lost.cpp' build src tests
expect targets tests/lost_test.cpp 'a test in no target' 'echo >tests/lost_test.cpp' build src tests
expect file_length src/low/long.cpp '501 lines' 'yes | head -n 501 >src/low/long.cpp'
expect file_length tests/long_test.cpp '701 lines of test' 'yes | head -n 701 >tests/long_test.cpp'
expect quiet src/low/loud.cpp 'std::cout' 'echo "void f() { std::cout << 1; }" >src/low/loud.cpp'
expect quiet src/low/loud.cpp 'printf' 'echo "  printf(\"x\");" >src/low/loud.cpp'
expect quiet src/low/loud.cpp 'stderr' 'echo "  std::fputs(\"x\", stderr);" >src/low/loud.cpp'
expect quiet src/low/loud.cpp 'exit' 'echo "  std::exit(1);" >src/low/loud.cpp'
expect quiet src/low/loud.cpp 'abort' 'echo "  abort();" >src/low/loud.cpp'
expect finished src/low/later.cpp 'an unfinished source' 'echo "// T""ODO: more" >src/low/later.cpp'
expect tests_assert tests/low/idle_test.cpp 'a test that asserts nothing' 'echo "TEST(A, B) {}" >tests/low/idle_test.cpp'
expect tests_assert tests/low/idle_test.cpp 'a test file without a test' 'echo "// EXPECT_" >tests/low/idle_test.cpp'
expect local_paths docs/mine.md 'a folder of one machine' 'echo "see /h""ome/me/notes" >docs/mine.md'
expect local_paths docs/mine.md 'a registry host' 'echo "from pypi"".org" >docs/mine.md'
expect shell_syntax bad.sh 'a script that does not parse' 'echo "if then" >bad.sh'
expect shell_syntax run.sh 'a script without its run bit' 'chmod -x run.sh'
expect documents docs/a.md 'a path that is gone' 'echo "\`src/gone\`" >docs/a.md'
expect documents docs/a.md 'a header that is gone' 'echo "\`low/gone.h\`" >docs/a.md'
expect documents docs/a.md 'a dead link' 'echo "[x](gone.md)" >docs/a.md'
expect documents docs/a.md 'a target that is gone' 'echo "\`make gone\`" >docs/a.md'
expect module_tables docs/architecture.md 'a row that may use more' 'sed -i "s/| two | low |/| two | low cli |/" docs/architecture.md'
expect module_tables docs/architecture.md 'a missing row' 'sed -i "/^| high/d" docs/architecture.md'
expect module_tables README.md 'a module that the README lacks' 'sed -i "/^| .src.high/d" README.md'

[ $failed = 0 ] && echo 'every check can pass and can fail'
exit $failed
