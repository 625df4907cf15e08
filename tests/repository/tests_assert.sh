#!/bin/sh
# Every test file holds tests, and every test file asserts something.
. "$(dirname "$0")/common.sh"
project_files 'tests/*_test.cpp' | while read -r file; do
  grep -qE '^(TYPED_)?TEST(_[FP])?\(' "$file" || printf '%s:1: holds no test\n' "$file"
  grep -qE 'EXPECT_|ASSERT_' "$file" || printf '%s:1: asserts nothing\n' "$file"
done | report
