#!/bin/sh
# exact.sh PROGRAM FAULT|none: `exact` in a program with seeded faults. Succeeds when all is as
# expected without a fault, and something is not (exit 1) with one in a collective.
set -eu
program=$1
fault=$2
if [ "$fault" != none ]; then export TESSERA_FAULT="$fault"; fi
status=0
"$program" exact || status=$?
case $fault:$status in none:0 | comm_*:1) exit 0 ;; esac
echo "exact ended with status $status, fault $fault" >&2
exit 1
