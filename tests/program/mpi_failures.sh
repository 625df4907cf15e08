#!/bin/sh
# What goes wrong under mpirun and srun is told once, with a way out, and ends the run.
. "$(dirname "$0")/common.sh"
. "$tests/mpi_environment.sh"
command -v mpirun >/dev/null || exit 77
case $("$program" bench comm -b 8 -e 8 -i 8 --backend mpi 2>&1) in
  *"no Open MPI"*) exit 77 ;;
esac

# RANKS STATUS COMMAND…: under mpirun, the output in `out`.
expect_mpirun() {
  ranks=$1 expected=$2 status=0
  shift 2
  mpirun -n "$ranks" "$program" "$@" >out 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "status $status instead of $expected: mpirun $*"
}

expect_mpirun 2 2 train toy.toml --run-dir wrong --parallelism.data_parallel_degree 8
[ "$(grep -c "^tessera: " out)" = 1 ] || fail "not told once"
expect_says "data_parallel_degree"
expect_mpirun 2 2 verify toy.toml
expect_says "2 copies of .tessera verify."
expect_status 2 launch --nproc-per-node 2 -- train toy.toml --run-dir wrong --comm.backend mpi
expect_says "mpirun -n 2 tessera train"
TESSERA_RANKS_PER_HOST=1 expect_mpirun 2 2 train toy.toml --run-dir wrong --comm.backend shm
expect_says "joins the ranks of one host"

# Two tasks of a step whose srun has not told Open MPI of each other.
export SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0
export SLURM_STEP_NUM_NODES=1
SLURM_PROCID=1 SLURM_LOCALID=1 "$program" train toy.toml --run-dir wrong --comm.backend mpi \
  >second 2>&1 &
SLURM_PROCID=0 SLURM_LOCALID=0 expect_status 2 train toy.toml --run-dir wrong --comm.backend mpi
expect_says "srun --mpi=pmix"
wait $! && fail "the second task ended well"
# On one host they meet in its memory.
SLURM_PROCID=1 SLURM_LOCALID=1 "$program" train toy.toml --run-dir step >second 2>&1 &
SLURM_PROCID=0 SLURM_LOCALID=0 expect_status 0 train toy.toml --run-dir step
expect_says "2 rank(s), Slurm's srun"
wait $! || fail "the second task failed: $(cat second)"
unset SLURM_JOB_ID SLURM_STEP_ID SLURM_STEP_NUM_TASKS SLURM_NODEID SLURM_STEP_NUM_NODES

# A rank that is killed: mpirun ends the others.
mpirun -n 2 "$program" train toy.toml --training.steps 1000000 --run-dir run --comm.backend mpi \
  >out 2>&1 &
launcher=$!
wait_for_step run 8 "$launcher"
kill -KILL "$(pgrep -P "$launcher" | sed -n 2p)"
status=0
wait "$launcher" || status=$?
[ "$status" -ne 0 ] || fail "mpirun ended well without a rank"
for pid in $(pgrep -f "run-dir run" || :); do
  [ "$(readlink "/proc/$pid/cwd")" != "$folder" ] || fail "process $pid is left"
done

# A rank that is stopped: the other says whom it misses, after the timeout, and nobody hangs.
mpirun -n 2 "$program" train toy.toml --training.steps 1000000 --run-dir stopped \
  --comm.backend mpi --comm.timeout_seconds 2 >out 2>&1 &
launcher=$!
wait_for_step stopped 8 "$launcher"
victim=$(pgrep -P "$launcher" | sed -n 2p)
kill -STOP "$victim"
status=0
wait "$launcher" || status=$?
[ "$status" -ne 0 ] || fail "mpirun ended well with a rank that is stopped"
expect_says "nothing for 2 s from rank [01] ("
expect_says "of step [0-9]"
for pid in $(pgrep -f "run-dir stopped" || :); do
  [ "$(readlink "/proc/$pid/cwd")" != "$folder" ] || fail "process $pid is left"
done
