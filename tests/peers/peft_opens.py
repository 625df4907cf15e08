"""Whether our adapters open in PEFT as they are, and mean there what they mean here.

    python tests/peers/peft_opens.py build/tessera

Trains adapters on tiny random models of transformers, exports them with `--to peft`, and the whole
with `--to hf`, which adds them to the weights. The base with PEFT's adapters and the merged model
must give the same logits, and other logits than the base alone.
"""

import pathlib
import subprocess
import sys
import tempfile

import torch
from peft import PeftModel
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM)

VOCABULARY = 300
POSITIONS = 32
LLAMA = dict(vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, hidden_size=32,
             intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=10)
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**LLAMA)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**LLAMA)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=POSITIONS,
                                               n_embd=32, n_layer=2, n_head=4)),
}
CASES = [
    ("llama", "all-linear"),
    ("qwen3", "q_proj,o_proj,gate_proj"),
    ("gpt2", "q_proj,v_proj,up_proj"),
    ("gpt2", "all-linear"),
    ("gpt2", "k_proj,down_proj"),
]


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.stdout}{done.stderr}")


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def main():
    tessera = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        (work / "text.txt").write_text("tiles of stone and tiles of glass make one mosaic. " * 200)
        for name, targets in CASES:
            folder = work / f"{name}-{targets}"
            base = folder / "base"
            torch.manual_seed(1)
            MODELS[name]().save_pretrained(base)
            model = load(base)
            run(tessera, "train", "--model.hf", base, "--training.load", base,
                "--data.path", work / "text.txt", "--data.tokenizer", "bytes",
                "--data.seq_len", 16, "--data.validation_fraction", "0",
                "--training.precision", "fp32", "--training.steps", "20",
                "--optimizer.lr", "0.05", "--lora.rank", "4", "--lora.alpha", "6",
                "--lora.targets", targets, "--run-dir", folder / "run")
            run(tessera, "checkpoint", "convert", "--to", "peft", folder / "run",
                "--output", folder / "peft")
            run(tessera, "checkpoint", "convert", "--to", "hf", folder / "run",
                "--output", folder / "merged")
            ids = torch.randint(0, VOCABULARY, (2, 16),
                                generator=torch.Generator().manual_seed(1))
            with torch.no_grad():
                alone = model(ids).logits
                adapted = PeftModel.from_pretrained(model, folder / "peft").eval()(ids).logits
                merged = load(folder / "merged")(ids).logits
            scale = merged.abs().max()
            error = ((adapted - merged).abs().max() / scale).item()
            moved = ((alone - merged).abs().max() / scale).item()
            print(f"{name:12} {targets:28} adapters against merged {error:.1e}, "
                  f"moved from the base by {moved:.1e}")
            if error > 1e-5 or moved < 1e-2:
                sys.exit("not the same model")


if __name__ == "__main__":
    main()
