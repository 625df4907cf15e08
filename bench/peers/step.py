"""One training step of gpt2-124m: Tessera's and PyTorch's, alternately, on this machine.

    make bench-peers                        # 4 sequences of 256 tokens, bf16, 2 threads
    make bench-peers ARGS="--precision fp32 --rounds 5"

PyTorch runs transformers' GPT-2 with random weights, its fused attention, autocast for bf16, and
the fused AdamW: the same work, token for token. Rounds alternate, because machines drift.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import torch
import transformers


def pytorch_steps(arguments):
    """Seconds of each of arguments.steps training steps, after one that is not timed."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=False
    )
    model = transformers.GPT2LMHeadModel(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    ids = torch.randint(config.vocab_size, (arguments.batch, arguments.seq_len))
    seconds = []
    for _ in range(arguments.steps + 1):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = model(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def tessera_steps(arguments):
    """The same from `tessera bench step`, and what it says of the device."""
    command = [
        "build/tessera", "bench", "step", "--json", "--steps", str(arguments.steps),
        "--training.precision", arguments.precision,
        "--training.global_batch_size", str(arguments.batch),
        "--data.seq_len", str(arguments.seq_len),
    ]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    report = json.loads(subprocess.run(command, env=environment, check=True, text=True,
                                       stdout=subprocess.PIPE).stdout)
    return report["step_seconds"], report["device"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4, help="sequences")
    parser.add_argument("--seq-len", type=int, default=256, help="tokens of a sequence")
    parser.add_argument("--steps", type=int, default=3, help="timed steps a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    os.chdir(pathlib.Path(__file__).resolve().parents[2])

    ours, theirs = [], []
    for _ in range(arguments.rounds):
        seconds, device = tessera_steps(arguments)
        ours += seconds
        theirs += pytorch_steps(arguments)

    tokens = arguments.batch * arguments.seq_len
    rates = [tokens / statistics.median(seconds) for seconds in (ours, theirs)]
    if arguments.json:
        print(json.dumps({
            "device": device, "pytorch": torch.__version__, "threads": arguments.threads,
            "precision": arguments.precision, "batch": arguments.batch,
            "seq_len": arguments.seq_len, "tessera_tokens_per_s": rates[0],
            "pytorch_tokens_per_s": rates[1], "ratio": rates[0] / rates[1],
        }, indent=2))
        return
    print(f"gpt2-124m, {arguments.batch} x {arguments.seq_len}, {arguments.precision}, "
          f"{arguments.threads} threads")
    print(f"Tessera   {rates[0]:8.0f} tokens/s   {device}")
    print(f"PyTorch   {rates[1]:8.0f} tokens/s   {torch.__version__}")
    print(f"ratio     {rates[0] / rates[1]:8.2f}")


if __name__ == "__main__":
    main()
