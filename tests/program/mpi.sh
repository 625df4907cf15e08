#!/bin/sh
# Ranks that Open MPI's mpirun starts train the model that the launcher's ranks train, over memory
# and over messages; verify and bench comm start such ranks themselves.
. "$(dirname "$0")/common.sh"
. "$tests/mpi_environment.sh"
command -v mpirun >/dev/null || exit 77
case $("$program" bench comm -b 8 -e 8 -i 8 --backend mpi 2>&1) in
  *"no Open MPI"*) exit 77 ;;
esac

hash_of() { grep weights_hash "$1/summary.json"; }
# Runs under mpirun, the output in `out`: RANKS RUN-FOLDER MORE…
mpirun_train() {
  ranks=$1 run=$2
  shift 2
  mpirun -n "$ranks" "$program" train toy.toml --run-dir "$run" "$@" >out 2>&1 ||
    fail "mpirun -n $ranks ended with $?"
}

expect_status 0 launch --nproc-per-node 2 -- train toy.toml --run-dir launched
mpirun_train 2 memory
expect_says "^2 rank(s), Open MPI's mpirun; "
[ "$(grep -c "rank(s)" out)" = 1 ] || fail "more than one rank speaks"
grep -q '"backend": "shm"' memory/summary.json || fail "one host's ranks do not use its memory"
[ "$(hash_of memory)" = "$(hash_of launched)" ] || fail "another model under mpirun"
mpirun_train 2 messages --comm.backend mpi
grep -q '"backend": "mpi"' messages/summary.json || fail "not over mpi"
[ "$(hash_of messages)" = "$(hash_of launched)" ] || fail "another model over messages"
expect_says "sent in a step .* equal"

export TESSERA_RANKS_PER_HOST=2
mpirun_train 4 levels
grep -q '"backend": "mpi+shm"' levels/summary.json || fail "hosts do not make two levels"
expect_says "sent in a step .* equal"
mpirun_train 4 levels_again
[ "$(hash_of levels)" = "$(hash_of levels_again)" ] || fail "two levels differ from run to run"
status=0
mpirun -n 4 "$program" train toy.toml --run-dir wide --parallelism.tensor_parallel_degree 4 \
  >out 2>&1 || status=$?
[ "$status" -ne 0 ] || fail "tensor parallelism over hosts that nobody asked for"
expect_says "tensor-parallel ranks on different hosts"
mpirun_train 4 wide --parallelism.tensor_parallel_degree 4 \
  --parallelism.tensor_parallel_across_hosts
unset TESSERA_RANKS_PER_HOST

expect_status 0 verify toy.toml --steps 3 --layouts 'dp=2,backend=mpi'
expect_says "every layout trains"
expect_status 0 bench comm --backend mpi -b 1K -e 4K --nproc-per-node 2
expect_status 0 bench comm --backend mpi -b 1K -e 1K --nproc-per-node 3 --collective sendrecv
