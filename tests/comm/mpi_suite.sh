#!/bin/sh
# mpi_suite.sh TESTS RANKS: the tests that every transport has to pass, over Open MPI, in as many
# copies of the test binary as there are ranks. Tests of fewer ranks run in the first copies.
set -eu
. "$(dirname "$0")/../mpi_environment.sh"
exec mpirun -n "$2" "$1" --gtest_filter='*/mpi*:Mpi*' --gtest_brief=1
