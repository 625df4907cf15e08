#!/bin/sh
# mpi_suite.sh TESTS RANKS: the tests that every transport has to pass, over Open MPI, in as many
# copies of the test binary as there are ranks. Tests of fewer ranks run in the first copies.
set -eu
. "$(dirname "$0")/../mpi_environment.sh"
mpirun -n "$2" "$1" --gtest_filter='*/mpi*:Mpi*' --gtest_brief=1
# Once more where a long message comes in parts: in one host's memory it may come at once.
export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo
exec mpirun -n "$2" "$1" --gtest_filter='Mpi*' --gtest_brief=1
