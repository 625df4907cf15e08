#!/bin/sh
# The planner judged by published runs: the table is printed, and the bars hold (where there is a
# Python to look; tests/plan/validate_test.cpp asks the same of the module).
. "$(dirname "$0")/common.sh"
runs=$2

expect_status 0 plan validate --csv "$runs"
cat out
expect_says "dense 16-bit, multi-node, held out"
expect_says "rows left out"
expect_says "rows that ran, with a published recomputation: [0-9]*, called too large: [0-9]*"

"$program" plan validate --csv "$runs" --json >validation.json
if command -v python3 >/dev/null; then python3 - validation.json <<'PYTHON' || fail "a bar is missed"
import json, sys

validation = json.load(open(sys.argv[1]))
groups, rows = validation["groups"], validation["rows"]
assert groups["dense 16-bit, multi-node, held out"]["mean_abs_error"] <= 0.08
assert groups["sc21t1"]["worst_abs_error"] <= 0.08 and groups["sc21t1"]["count"] == 10
assert groups["kort"]["mean_abs_error"] <= 0.04 and groups["kort"]["count"] == 8
assert groups["experts, held out"]["mean_abs_error"] <= 0.20
assert validation["out_of_memory_rows_called_fitting"] == 0
# The groups' figures once more, from the rows.
errors = [abs(row["predicted_step_s"] / row["published_step_s"] - 1) for row in rows
          if row["id"].startswith("kort-") and "published_step_s" in row]
assert abs(sum(errors) / len(errors) - groups["kort"]["mean_abs_error"]) < 1e-9
assert all(("skipped" in row) != ("predicted_step_s" in row) for row in rows)
PYTHON
fi

# A file that is none, one with mistakes, and constants that are not there.
printf 'id,layers\na-1,many\n' >bad.csv
expect_status 2 plan validate --csv bad.csv
expect_says "layers = 'many' is not a number"
expect_status 2 plan validate --csv nowhere.csv
expect_status 2 plan calibrate --csv bad.csv
printf 'id,layers\na-1,3\n' >few.csv
expect_status 2 plan calibrate --csv few.csv
expect_says "no row to fit on"
printf '{"constants": {"ampere.luck": 1}}' >constants.json
expect_status 2 plan validate --csv "$runs" --constants constants.json
expect_says "no constant named ampere.luck"

sed '2s/,3.528,/,0,/' "$runs" >nothing.csv
expect_status 2 plan validate --csv nothing.csv
expect_says "record 2: step_time_s = '0' must be above 0"

# A short fit on a few rows changes predictions, and its file can be used.
{ head -1 "$runs"; grep '^sc21t1' "$runs"; } >some.csv
expect_status 0 plan calibrate --csv some.csv --rounds 1 --all --out fit.json
expect_status 0 plan validate --csv some.csv --constants fit.json
expect_says "sc21t1"
