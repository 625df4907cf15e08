#!/bin/sh
# The demonstrations of exactness come out as expected, and what docs/exactness.md shows is what
# comes.
. "$(dirname "$0")/common.sh"

expect_status 0 exact
expect_says 'W by columns on two: \[1, 2\] ‖ \[4, 7\] gathered: \[1, 2, 4, 7\]'
expect_says 'W by rows on two: \[1, 0, 2, 1\] + \[0, 2, 2, 6\] all-reduced: \[1, 2, 4, 7\]'
expect_says '^column_split: off by 0, .*: equal$'
expect_says '^uneven_shards_plain: off by .*: wrong, as expected$'
expect_says '^all as expected$'
cp out first

# Nothing in it depends on timing, threads or the instruction set.
OMP_NUM_THREADS=3 TESSERA_ISA=ref expect_status 0 exact
diff first out || fail "two runs say different things"
expect_status 0 exact --seed 7
cmp -s first out && fail "another seed draws the same operands"

expect_status 0 exact --json
expect_json
expect_says '"ok": true'
expect_says '"name": "mlp_columns_then_rows"'
[ "$(grep -c '"as_expected": true' out)" -eq 10 ] || fail "not ten demonstrations"
[ "$(grep -c '"as_expected": false' out)" -eq 0 ] || fail "one is not as expected"
expect_status 2 exact --seed minus

# The console block of the page: a command, then what it prints. Digits of what is rounding are
# the mathematics library's as well.
awk '/^```console$/ { on = 1; next } /^```$/ { on = 0 } on' "$tests/../docs/exactness.md" >block
[ "$(head -n 1 block)" = '$ tessera exact' ] || fail "docs/exactness.md has no example"
sed '1d; s/[0-9.]*e-/Ne-/g' block >expected
sed 's/[0-9.]*e-/Ne-/g' first >printed
diff expected printed || fail "docs/exactness.md: tessera exact prints something else"
