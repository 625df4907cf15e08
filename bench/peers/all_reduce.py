"""All-reduce of fp32 between two processes: Tessera's, gloo's and Open MPI's, alternately.

    make bench-peers-comm
    make bench-peers-comm ARGS="--rounds 5"

gloo is PyTorch's; Open MPI is the one that is installed, or left out. Rounds alternate, because
machines drift: how far two cores are from each other changes too, where they are virtual ones.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = [8, 4096, 65536, 64 << 20]


def gloo_rank(rank, rendezvous):
    """One rank of gloo; rank 0 prints {bytes: seconds}."""
    import torch
    import torch.distributed as dist

    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    medians = {}
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        calls = max(1, min(200, (8 << 20) // size))
        seconds = []
        for _ in range(9):
            dist.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(tensor)
            seconds.append((time.perf_counter() - start) / calls)
        medians[size] = statistics.median(seconds)
    if rank == 0:
        print(json.dumps(medians))
    dist.destroy_process_group()


def gloo(folder):
    rendezvous = pathlib.Path(folder, "gloo")
    rendezvous.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--gloo-rank"]
    ranks = [subprocess.Popen([*command, str(rank), str(rendezvous)], stdout=subprocess.PIPE,
                              text=True) for rank in (0, 1)]
    answers = [rank.communicate()[0] for rank in ranks]
    return {int(size): seconds for size, seconds in json.loads(answers[0]).items()}


def open_mpi(folder):
    program = pathlib.Path(folder, "all_reduce_mpi")
    if not program.exists():
        source = pathlib.Path(__file__).with_name("all_reduce_mpi.c")
        subprocess.run(["mpicc", "-O2", "-o", program, source], check=True)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = ["mpirun", "-n", "2", "--bind-to", "core", str(program), *map(str, SIZES)]
    lines = subprocess.run(command, env=environment, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\n")
    return {int(line.split()[0]): float(line.split()[1]) for line in lines if line}


def tessera(copies):
    """{bytes: seconds}; adds to `copies` a memory copy's time over the all-reduce's, by size."""
    medians = {}
    for size in SIZES:
        command = ["build/tessera", "bench", "comm", "-b", str(size), "-e", str(size), "--copy",
                   "--json", "-n", "20"]
        report = json.loads(subprocess.run(command, check=True, text=True,
                                           stdout=subprocess.PIPE).stdout)
        row = report["collectives"][0]["rows"][0]
        medians[size] = row["time_us"] * 1e-6
        copies.setdefault(size, []).append(row["of_copy"])
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--gloo-rank", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.gloo_rank:
        gloo_rank(int(arguments.gloo_rank[0]), arguments.gloo_rank[1])
        return
    os.chdir(pathlib.Path(__file__).resolve().parents[2])

    copies = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = {"tessera": lambda: tessera(copies), "gloo": lambda: gloo(folder)}
        if shutil.which("mpicc") and shutil.which("mpirun"):
            runs["open_mpi"] = lambda: open_mpi(folder)
        rounds = [{name: run() for name, run in runs.items()} for _ in range(arguments.rounds)]

    rows = []
    for size in SIZES:
        row = {"bytes": size, "of_copy": statistics.median(copies[size])}
        for name in runs:
            row[f"{name}_us"] = statistics.median(r[name][size] for r in rounds) * 1e6
            if name != "tessera":
                row[f"{name}_over_tessera"] = statistics.median(
                    r[name][size] / r["tessera"][size] for r in rounds)
        rows.append(row)
    if arguments.json:
        print(json.dumps({"ranks": 2, "rounds": arguments.rounds, "rows": rows}, indent=2))
        return
    print("all-reduce of fp32, 2 processes, medians in us; how many times Tessera's in brackets")
    for row in rows:
        line = f"{row['bytes']:>10} B   Tessera {row['tessera_us']:10.2f}"
        for name in list(runs)[1:]:
            line += f"   {name} {row[name + '_us']:10.2f} ({row[name + '_over_tessera']:.2f})"
        print(line + f"   of a copy {row['of_copy']:.2f}")


if __name__ == "__main__":
    main()
