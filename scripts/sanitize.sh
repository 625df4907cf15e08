#!/bin/sh
# scripts/sanitize.sh asan|tsan [CTEST ARGUMENTS]: runs the tests of build/asan or build/tsan.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift

case $preset in
  asan)
    export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1"
    export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
    # Open MPI keeps what it has allocated until the process ends.
    export LSAN_OPTIONS="suppressions=$PWD/tests/open_mpi.supp:print_suppressions=0"
    set -- --parallel "$(nproc)" "$@"
    ;;
  tsan)
    # libgomp and oneDNN are not built for ThreadSanitizer, which sees races in them that are none:
    # ranks are threads here, a rank computes on one thread, with the reference kernels.
    export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
    export TESSERA_ISA=ref OMP_NUM_THREADS=1
    set -- --label-regex '^(core|comm|parallel|train)$' --parallel "$(nproc)" "$@"
    ;;
  *) echo "sanitize: asan or tsan, not '$preset'" >&2 && exit 2 ;;
esac

# The sanitizers' shadow memory does not fit round a widely randomised address space.
run=
if setarch --addr-no-randomize true 2>/dev/null; then run="setarch --addr-no-randomize"; fi
exec $run ctest --test-dir "build/$preset" --output-on-failure "$@"
