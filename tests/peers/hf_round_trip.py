"""Sends models of transformers through Tessera and back, and looks whether transformers, tokenizers
and safetensors open what comes out as it is, with the same weights, logits and greedy text.

  hf_round_trip.py [--tessera build/tessera] [--keep FOLDER]

Needs transformers 4 or 5 (run it with both: they write different keys), safetensors and tokenizers.
A line a case; exit status 1 when one fails.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import tokenizers
import torch
import transformers
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

VERSION = int(transformers.__version__.split(".")[0])
VOCAB, POSITIONS, T = 263, 48, 24
LLAMA = dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=80, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=POSITIONS,
             bos_token_id=256, eos_token_id=256, pad_token_id=None)


def rope(**parameters):
    """The same scaling in the keys of either version."""
    theta = parameters.pop("rope_theta", 10000.0)
    if VERSION >= 5:
        return {"rope_parameters": {"rope_theta": theta, **parameters}}
    return {"rope_theta": theta, "rope_scaling": parameters}


def configs():
    t = transformers
    yield "gpt2", t.GPT2Config(vocab_size=VOCAB, n_positions=POSITIONS, n_embd=48, n_layer=2, n_head=4,
                               bos_token_id=256, eos_token_id=256)
    yield "gpt2-wide-untied", t.GPT2Config(vocab_size=VOCAB, n_positions=POSITIONS, n_embd=48, n_layer=2,
                                           n_head=4, n_inner=100, tie_word_embeddings=False,
                                           bos_token_id=256, eos_token_id=256)
    yield "llama", t.LlamaConfig(**LLAMA)
    yield "llama-biased-tied", t.LlamaConfig(**LLAMA, head_dim=16, attention_bias=True, mlp_bias=True,
                                             tie_word_embeddings=True)
    yield "llama-linear", t.LlamaConfig(**LLAMA, **rope(rope_type="linear", factor=2.0))
    yield "llama-dynamic", t.LlamaConfig(**LLAMA, **rope(rope_type="dynamic", factor=2.0))
    yield "llama-llama3", t.LlamaConfig(**LLAMA, **rope(
        rope_theta=500000.0, rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=12))
    yield "llama-yarn", t.LlamaConfig(**LLAMA, **rope(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=12))
    yield "llama-yarn-mscale", t.LlamaConfig(**LLAMA, **rope(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=12, mscale=0.7,
        mscale_all_dim=1.3))
    yield "qwen2", t.Qwen2Config(**LLAMA)
    yield "qwen3", t.Qwen3Config(**LLAMA, head_dim=20, tie_word_embeddings=True)
    yield "mistral", t.MistralConfig(**LLAMA, sliding_window=None)
    yield "mistral-odd-heads", t.MistralConfig(**{**LLAMA, "hidden_size": 50}, head_dim=16,
                                               sliding_window=None)


def make(config):
    """Weights large enough that every part of the model matters."""
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(config).float().eval()
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape)
        is_norm = "norm" in name or "ln_" in name
        parameter.data = 1 + 0.2 * noise if is_norm and name.endswith("weight") else 0.2 * noise
    return model


def run(tessera, *words):
    done = subprocess.run([tessera, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


def load(folder, dtype):
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True,
                                                       **{"dtype" if VERSION >= 5 else "torch_dtype": dtype})
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[kind]:
            raise RuntimeError(f"{folder}: {kind}: {info[kind]}")
    return model.eval()


def logits(model):
    tokens = torch.arange(3 * T).reshape(3, T) * 37 % VOCAB
    with torch.no_grad():
        return model(tokens, use_cache=False).logits


def check_export(folder, original, dtype):
    """The exported model is the one of the original's folder, rounded to dtype, to the last bit."""
    theirs, original = load(folder, dtype), load(original, dtype)
    for name, weight in original.state_dict().items():
        if not torch.equal(theirs.state_dict()[name], weight):
            raise RuntimeError(f"{folder}: {name} differs")
    if not torch.equal(logits(theirs), logits(original)):
        raise RuntimeError(f"{folder}: logits differ")
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            assert file.metadata()["format"] == "pt"
            for name in file.keys():
                assert file.get_tensor(name).dtype == dtype, name
    transformers.GenerationConfig.from_pretrained(folder)
    return theirs


def check_tokenizer(folder):
    text = "Mosaic: ein Stein,\r\n два камня 🧱"
    theirs = AutoTokenizer.from_pretrained(folder)
    plain = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = theirs(text)["input_ids"]
    assert ids == plain.encode(text).ids, "tokenizers disagree"
    assert theirs.decode(ids) == text, theirs.decode(ids)
    assert theirs.eos_token_id is not None


def greedy(model, tokenizer, prompt, count):
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        for _ in range(count):
            known = model(ids, use_cache=False).logits[:, -1, :len(tokenizer)]
            step = known.argmax(-1, keepdim=True)
            if step.item() == tokenizer.eos_token_id:
                break
            ids = torch.cat([ids, step], 1)
    return tokenizer.decode(ids[0, len(tokenizer(prompt)["input_ids"]):].tolist())


def check_greedy(tessera, folder, model):
    """Our forward and theirs say the same next tokens. The ids of bytes are all below 256."""
    prompt = "tile"
    ours = json.loads(run(tessera, "generate", folder, "--prompt", prompt, "--max-new-tokens", 12,
                          "--temperature", 0, "--json"))["text"]
    theirs = greedy(model, AutoTokenizer.from_pretrained(folder), prompt, 12)
    # Bytes that are no UTF-8 are printed by each in its own way.
    if ours.encode("ascii", "ignore") != theirs.encode("ascii", "ignore"):
        raise RuntimeError(f"{folder}: greedy text {ours!r}, and transformers' {theirs!r}")


def round_trip(tessera, work, name, config):
    work.mkdir(parents=True)
    original = make(config)
    if name == "qwen3":  # fp16 is read, too
        original = original.half()
    original.save_pretrained(work / "theirs")
    run(tessera, "checkpoint", "convert", "--from", "hf", work / "theirs", "--output", work / "ours",
        "--tokenizer", "bytes", "--dtype", "fp32")
    for dtype, word in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
        for shard in ("5GB", "20KB"):
            folder = work / f"{word}-{shard}"
            run(tessera, "checkpoint", "convert", "--to", "hf", work / "ours", "--output", folder,
                "--dtype", word, "--max-shard-size", shard)
            sharded = (folder / "model.safetensors.index.json").exists()
            assert sharded == (shard == "20KB"), sorted(folder.iterdir())
            theirs = check_export(folder, work / "theirs", dtype)
            check_tokenizer(folder)
            if dtype == torch.float32 and not sharded:
                check_greedy(tessera, folder, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    print(f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}")
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.keep or pathlib.Path(temporary)
        for name, config in configs():
            try:
                round_trip(arguments.tessera, root / name, name, config)
                print(f"{name}: ok")
            except Exception as error:  # the other cases are worth a try
                failed += 1
                print(f"{name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
