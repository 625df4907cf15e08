#!/bin/sh
# scripts/nightly.sh BUILD [CTEST ARGUMENTS]: what is too long for `make test`: the tests that ctest runs only in its configuration `nightly`.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
exec ctest --test-dir "$build" --build-config nightly --label-regex nightly \
  --output-on-failure "$@"
