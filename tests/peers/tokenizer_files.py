"""Rebuilds tokenizers that many models use, for comparisons; they are not ours to keep here.

    tokenizer_files.py gpt2 TIKTOKEN FOLDER      GPT-2: vocab.json, merges.txt, and tokenizer.json
    tokenizer_files.py o200k TIKTOKEN FOLDER     o200k: tokenizer.json (takes a minute)
    tokenizer_files.py llama3 LLAMA3 FOLDER      Llama-3: tokenizer.json

TIKTOKEN is the unpacked npm package `tiktoken`, LLAMA3 that of `llama3-tokenizer-js`:
`npm pack tiktoken llama3-tokenizer-js`, then tar xzf.
"""

import base64
import json
import pathlib
import re
import sys

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3_SPECIALS = [
    "<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|reserved_special_token_2|>",
    "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
    *(f"<|reserved_special_token_{i}|>" for i in range(3, 248))]


def alphabet():
    """Byte -> its character in GPT-2's alphabet."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable},
            **{byte: chr(256 + place) for place, byte in enumerate(others)}}


ALPHABET = alphabet()


def spelled(token):
    return "".join(ALPHABET[byte] for byte in token)


def ranks_of(package, name):
    """Token -> rank, and the pattern and specials, of one of tiktoken's encodings."""
    encoding = json.loads((pathlib.Path(package) / "encoders" / f"{name}.json").read_text())
    ranks = {}
    for line in encoding["bpe_ranks"].split("\n"):
        _, first, *tokens = line.split(" ")
        for place, token in enumerate(tokens):
            ranks[base64.b64decode(token)] = int(first) + place
    return ranks, encoding["pat_str"], encoding["special_tokens"]


def two_parts(token, ranks):
    """The two tokens that merges of lower rank leave of `token`."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        joined = [ranks.get(parts[i] + parts[i + 1], 1 << 40) for i in range(len(parts) - 1)]
        at = joined.index(min(joined))
        parts[at:at + 2] = [parts[at] + parts[at + 1]]
    return parts


def merges_of(ranks):
    return [tuple(spelled(part) for part in two_parts(token, ranks))
            for token in sorted(ranks, key=ranks.get) if len(token) > 1]


def added(content, number):
    return {"id": number, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True}


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": use_regex}


def split_then_bytes(pattern):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        byte_level(False)]}


def write(folder, name, value):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value, ensure_ascii=False))


def tokenizer(vocab, merges, specials, pre_tokenizer, post_processor, ignore_merges):
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(content, number) for content, number in specials.items()],
        "normalizer": None, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
        "decoder": byte_level(True),
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges,
                  "vocab": vocab, "merges": [" ".join(merge) for merge in merges]}}


def gpt2(package, folder):
    ranks, _, specials = ranks_of(package, "gpt2")
    vocab = {spelled(token): rank for token, rank in ranks.items()}
    merges = merges_of(ranks)
    write(folder / "json", "tokenizer.json",
          tokenizer(vocab, merges, specials, byte_level(True), byte_level(True), False))
    write(folder, "vocab.json", {**vocab, **specials})
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")


def o200k(package, folder):
    ranks, pattern, specials = ranks_of(package, "o200k_base")
    vocab = {spelled(token): rank for token, rank in ranks.items()}
    write(folder, "tokenizer.json",
          tokenizer(vocab, merges_of(ranks), specials, split_then_bytes(pattern), None, True))


def llama3(package, folder):
    source = (pathlib.Path(package) / "src" / "data-converted.js").read_text()
    names = {name: text for name, text in re.findall(r'const (\w+) = "([^"]*)"', source)}
    tokens = base64.b64decode(names["llama_vocab_base64"]).decode().split("\n")
    bits = base64.b64decode(names["llama_merges_binary"])
    number = int.from_bytes(bits, "big")
    total = len(bits) * 8
    text = bin(number)[2:].zfill(total)
    ids = [int(text[at:at + 17], 2) for at in range(0, total - total % 17, 17)]
    ids = ids[:len(ids) - len(ids) % 2]
    merges = [(tokens[ids[i]], tokens[ids[i + 1]]) for i in range(0, len(ids), 2)]
    specials = {content: len(tokens) + place for place, content in enumerate(LLAMA3_SPECIALS)}
    begin = {"SpecialToken": {"id": LLAMA3_SPECIALS[0], "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}},
                 {**begin, "SpecialToken": {"id": LLAMA3_SPECIALS[0], "type_id": 1}},
                 {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {LLAMA3_SPECIALS[0]: {
            "id": LLAMA3_SPECIALS[0], "ids": [len(tokens)], "tokens": [LLAMA3_SPECIALS[0]]}}}
    post = {"type": "Sequence", "processors": [byte_level(True), template]}
    write(folder, "tokenizer.json",
          tokenizer({token: place for place, token in enumerate(tokens)}, merges, specials,
                    split_then_bytes(LLAMA3_PATTERN), post, True))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("gpt2", "o200k", "llama3"):
        sys.exit(__doc__)
    globals()[sys.argv[1]](sys.argv[2], pathlib.Path(sys.argv[3]))
