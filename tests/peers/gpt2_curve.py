"""Trains transformers' GPT-2 in PyTorch from the weights and on the batches of Tessera runs, and
holds each of their loss curves against PyTorch's.

  gpt2_curve.py CHECKPOINT BATCHES METRICS… --config CONFIG_JSON [--tolerance 0.01] [--window 20]
                [--losses FILE]

CHECKPOINT: `tessera checkpoint init` of the runs' config; BATCHES: `tessera data batches`; METRICS:
metrics.jsonl of each run, which is called by its folder's name; CONFIG_JSON: `tessera config check
--json` of the config. The runs differ in their layout alone. FILE keeps PyTorch's losses, as JSON;
where it is there already, it is read and nothing trained. Curves are compared as means over windows
of steps: single steps of two bf16 programs differ by their rounding. Exit status 1 when a window of
any run differs by more than the tolerance.
"""

import argparse
import json
import math
import pathlib
import sys
import time

import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel


def load_weights(model, checkpoint):
    tensors = {}
    for path in sorted(pathlib.Path(checkpoint).glob("*.safetensors")):
        tensors.update(load_file(path))

    def get(name):
        return tensors.get("master." + name, tensors[name]).float()

    state = {"transformer.wte.weight": get("model.embed_tokens.weight"),
             "transformer.wpe.weight": get("model.embed_positions.weight"),
             "transformer.ln_f.weight": get("model.norm.weight"),
             "transformer.ln_f.bias": get("model.norm.bias"),
             "lm_head.weight": get("model.embed_tokens.weight")}
    for i in range(model.config.n_layer):
        ours, theirs = f"model.layers.{i}.", f"transformer.h.{i}."
        qkv = [ours + f"self_attn.{x}_proj" for x in "qkv"]
        # Conv1D keeps [in, out].
        state[theirs + "attn.c_attn.weight"] = torch.cat([get(n + ".weight") for n in qkv]).t()
        state[theirs + "attn.c_attn.bias"] = torch.cat([get(n + ".bias") for n in qkv])
        for a, b in (("self_attn.o_proj", "attn.c_proj"), ("mlp.up_proj", "mlp.c_fc"),
                     ("mlp.down_proj", "mlp.c_proj")):
            state[theirs + b + ".weight"] = get(ours + a + ".weight").t()
            state[theirs + b + ".bias"] = get(ours + a + ".bias")
        for a, b in (("input_layernorm", "ln_1"), ("post_attention_layernorm", "ln_2")):
            for part in ("weight", "bias"):
                state[theirs + b + "." + part] = get(ours + a + "." + part)
    model.load_state_dict(state, strict=True)


def learning_rate(step, config):
    """lr_scheduler's cosine with linear warm-up; steps count from 1."""
    schedule, lr, total = config["lr_scheduler"], config["optimizer"]["lr"], config["training"]["steps"]
    warmup = schedule["warmup_steps"]
    if step <= warmup:
        return lr * step / warmup
    assert schedule["decay"] == "cosine"
    progress = (step - warmup) / max(1, total - warmup)
    low = schedule["min_lr_factor"]
    return lr * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * progress)))


def attention_mask(doc_start):
    """[B, 1, T, T]: a token sees its own document up to itself."""
    length = doc_start.shape[-1]
    positions = torch.arange(length)
    seen = positions[None, None, :] <= positions[None, :, None]
    seen = seen & (positions[None, None, :] >= doc_start[:, :, None])
    return torch.where(seen, 0.0, torch.finfo(torch.bfloat16).min)[:, None]


def train(model, batches, config):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    o = config["optimizer"]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": o["weight_decay"]},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])
    losses = []
    for step in range(1, batches["inputs"].shape[0] + 1):
        start = time.time()
        inputs, labels, doc_start = (batches[k][step - 1].long()
                                     for k in ("inputs", "labels", "doc_start"))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(inputs, attention_mask=attention_mask(doc_start)).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(),
                                                 ignore_index=-1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config["training"]["max_norm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step == 1 or step % 20 == 0:
            print(f"pytorch step {step}: loss {loss.item():.5f}, {time.time() - start:.2f} s",
                  flush=True)
    return losses


def train_from(checkpoint, batches, config):
    """PyTorch's losses, step by step."""
    m = config["model"]
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=m["vocab_size"], n_positions=m["max_position_embeddings"],
        n_embd=m["hidden_size"], n_layer=m["num_hidden_layers"], n_head=m["num_attention_heads"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, layer_norm_epsilon=m["norm_eps"]))
    load_weights(model, checkpoint)
    model.train()
    return train(model, load_file(batches), config)


def window_means(losses, window):
    windows = [losses[first:first + window] for first in range(0, len(losses), window)]
    return [sum(w) / len(w) for w in windows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("batches")
    parser.add_argument("metrics", nargs="+", type=pathlib.Path)
    parser.add_argument("--config", required=True, type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--window", type=int, default=20)
    parser.add_argument("--losses", type=pathlib.Path)
    args = parser.parse_args()
    if args.losses and args.losses.exists():
        theirs = json.loads(args.losses.read_text())
    else:
        config = json.loads(args.config.read_text())
        theirs = train_from(args.checkpoint, args.batches, config.get("config", config))
        if args.losses:
            args.losses.write_text(json.dumps(theirs))

    runs = {}
    for path in args.metrics:
        losses = [json.loads(line)["loss"] for line in path.read_text().splitlines()]
        assert len(losses) >= len(theirs), f"{path}: {len(losses)} steps, {len(theirs)} trained here"
        runs[path.parent.name] = window_means(losses[:len(theirs)], args.window)

    worst = dict.fromkeys(runs, 0.0)
    print(f"{'steps':>12} {'pytorch':>9}" + "".join(f" {name:>18}" for name in runs))
    for i, b in enumerate(window_means(theirs, args.window)):
        row = f"{i * args.window + 1:>5} - {min((i + 1) * args.window, len(theirs)):>4} {b:9.5f}"
        for name, means in runs.items():
            worst[name] = max(worst[name], abs(means[i] - b) / b)
            row += f" {means[i]:9.5f} {100 * (means[i] - b) / b:+6.3f} %"
        print(row)
    for name, difference in worst.items():
        print(f"{name}: largest difference of a window {100 * difference:.3f} %, "
              f"allowed {100 * args.tolerance:g} %")
    sys.exit(0 if all(difference <= args.tolerance for difference in worst.values()) else 1)


if __name__ == "__main__":
    main()
