"""Trains transformers' GPT-2 in PyTorch from the weights and on the batches of a Tessera run, and
holds the two loss curves against each other.

  gpt2_curve.py CHECKPOINT BATCHES METRICS --config CONFIG_JSON [--tolerance 0.01] [--window 20]

CHECKPOINT: `tessera checkpoint init` of the run's config; BATCHES: `tessera data batches`; METRICS:
the run's metrics.jsonl; CONFIG_JSON: `tessera config check --json` of the run's config. Curves are
compared as means over windows of steps: single steps of two bf16 programs differ by their rounding.
Exit status 1 when a window differs by more than the tolerance.
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("batches")
    parser.add_argument("metrics")
    parser.add_argument("--config", required=True)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--window", type=int, default=20)
    args = parser.parse_args()
    config = json.loads(pathlib.Path(args.config).read_text())
    config = config.get("config", config)
    m = config["model"]
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=m["vocab_size"], n_positions=m["max_position_embeddings"],
        n_embd=m["hidden_size"], n_layer=m["num_hidden_layers"], n_head=m["num_attention_heads"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, layer_norm_epsilon=m["norm_eps"]))
    load_weights(model, args.checkpoint)
    model.train()
    theirs = train(model, load_file(args.batches), config)
    ours = [json.loads(line)["loss"] for line in pathlib.Path(args.metrics).read_text().splitlines()]
    assert len(ours) >= len(theirs), f"{len(ours)} steps in the metrics, {len(theirs)} trained"

    worst = 0.0
    print(f"{'steps':>12} {'tessera':>9} {'pytorch':>9} {'difference':>11}")
    for first in range(0, len(theirs), args.window):
        a = sum(ours[first:first + args.window]) / len(ours[first:first + args.window])
        b = sum(theirs[first:first + args.window]) / len(theirs[first:first + args.window])
        worst = max(worst, abs(a - b) / b)
        print(f"{first + 1:>5} - {first + len(theirs[first:first + args.window]):>4} "
              f"{a:9.5f} {b:9.5f} {100 * (a - b) / b:10.3f} %")
    print(f"largest difference of a window {100 * worst:.3f} %, allowed {100 * args.tolerance:g} %")
    sys.exit(0 if worst <= args.tolerance else 1)


if __name__ == "__main__":
    main()
