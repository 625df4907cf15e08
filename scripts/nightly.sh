#!/bin/sh
# scripts/nightly.sh BUILD [CTEST ARGUMENTS]: runs what is too long for `make test`, the tests that
# ctest has in its configuration `nightly` alone.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
exec ctest --test-dir "$build" --build-config nightly --label-regex nightly \
  --output-on-failure "$@"
