"""Holds Tessera's tokenizers against Hugging Face's `tokenizers`, on generated strings and on text.

    tokenizer_ids.py TESSERA TOKENIZER [--strings 10000] [--seed 1] [--text FILE ...]

TESSERA is the program, TOKENIZER a tokenizer.json, or a folder with it or with GPT-2's vocab.json
and merges.txt (tokenizer_files.py rebuilds some). The strings mix every white-space character,
CRLF, emoji with joiners and modifiers, digits, contractions, scripts, combining marks, special
tokens' texts, and bytes that are no UTF-8, which Python decodes with errors="replace". Each FILE is
one document, encoded as a whole. Exit status 1 when an id differs. Speeds are per second of
processor time, without that of loading the tokenizer.
"""

import argparse
import json
import pathlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SPACES = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028,
          0x2029, 0x202F, 0x205F, 0x3000]
NO_SPACES = [0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x180E, 0x00, 0x1C, 0x1F, 0x7F, 0x80, 0x9F,
             0xAD]
ATOMS = [text.encode() for text in (
    [chr(c) for c in SPACES * 2 + NO_SPACES]
    + [" ", " ", " ", "\n", "\r\n", "\r\n\r\n", "\n\n", "  ", "   ", "\t"] * 3
    + ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'LL", "'", "''",
       "’s", "'\u017f", "it's", "don't", "WE'LL"]
    + ["a", "b", "the", "The", "word", "WORD", "HTTPServer", "camelCase", "é", "e\u0301", "ß",
       "ﬁ", "Å", "Å", "A\u030A", "가", "가", "각", "Việt", "ещё", "булок", "Ω",
       "いろ", "は", "カタカナ", "漢字", "中文。", "مرحبا", "שלום", "नमस्ते", "สวัสดี", "ǅ", "ª", "ʰ",
       "o\u0323\u0302", "q\u0307\u0323", "\u0301", "\u0345"]
    + ["0", "7", "42", "123", "1234567", "½", "²", "Ⅷ", "٣", "൧", "３"]
    + [".", ",", "...", "!", "?!", "-", "_", "__init__", "(", ")", "{", "}", "/", "\\", '"', "€",
       "∑", "→", "`", "<", "|", ">", "://", "==", "\u2019", "\u2014"]
    + ["👍", "👍🏽", "👨‍👩‍👧", "🇫🇷", "☕️", "\U0001F1EB", "\U0010FFFF", "\uFFFD", "\uE000"])]
INVALID = [b"\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x91", b"\xc0\xaf", b"\xed\xa0\xbd",
           b"\xf4\x90\x80\x80", b"\xe0\x80", b"\xf8\x88"]


def random_character(draw):
    """An assigned character of an old version of Unicode, for all to know."""
    while True:
        c = draw.choice([draw.randrange(0x80, 0x800), draw.randrange(0x800, 0x3400),
                         draw.randrange(0xA000, 0xD800), draw.randrange(0xF900, 0x10000),
                         draw.randrange(0x10000, 0x1F700)])
        if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Cs"):
            return chr(c).encode()


def strings(seed, count, specials):
    draw = random.Random(seed)
    for _ in range(count):
        parts = []
        for _ in range(draw.randrange(1, 16)):
            kind = draw.randrange(40)
            atom = (draw.choice(INVALID) if kind == 0 else
                    draw.choice(specials).encode() if kind == 1 and specials else
                    random_character(draw) if kind < 6 else draw.choice(ATOMS))
            parts.append(atom * draw.choice([1, 1, 1, 1, 1, 1, 2, 3, draw.randrange(1, 20)]))
        yield b"".join(parts)


def reference(path):
    path = pathlib.Path(path)
    if path.is_dir() and (path / "tokenizer.json").exists():
        path = path / "tokenizer.json"
    if path.is_file():
        return Tokenizer.from_file(str(path))
    tokenizer = Tokenizer(models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def as_json(text):
    """A JSON string of bytes, whatever they are."""
    escaped = bytearray()
    for byte in text:
        if byte < 0x20 or byte in b'"\\':
            escaped += b"\\u%04x" % byte
        else:
            escaped.append(byte)
    return b'"' + bytes(escaped) + b'"'


def compare_strings(options, tokenizer, special_tokens):
    tokenizer.encode_special_tokens = special_tokens == "text"
    specials = [token.content for token in tokenizer.get_added_tokens_decoder().values()][:20]
    texts = list(strings(options.seed, options.strings, specials))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "strings.jsonl"
        file.write_bytes(b"".join(b'{"text": ' + as_json(text) + b"}\n" for text in texts))
        for added in (True, False):
            command = [options.tessera, "data", "encode", str(file), "--tokenizer",
                       options.tokenizer, "--json", "--special-tokens", special_tokens]
            output = subprocess.run(command + ([] if added else ["--no-added-tokens"]), check=True,
                                    stdout=subprocess.PIPE).stdout
            ours = json.loads(output)["documents"]
            theirs = [encoding.ids for encoding in tokenizer.encode_batch(
                [text.decode(errors="replace") for text in texts], add_special_tokens=added)]
            assert len(ours) == len(theirs)
            for text, a, b in zip(texts, ours, theirs):
                if a != b:
                    wrong += 1
                    if wrong <= 5:
                        print(f"  {text!r}\n    tessera    {a}\n    tokenizers {b}")
    print(f"strings, special tokens as {special_tokens}: {2 * len(texts)} encoded, {wrong} differ")
    return wrong


def tokenize(options, path, output):
    """Seconds of processor time that it took, and the ids."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([options.tessera, "data", "tokenize", path, "--tokenizer", options.tokenizer,
                    "--output", output, "--format", "text", "--dtype", "uint32", "--overwrite"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    tokens = pathlib.Path(output).read_bytes()[1024:]
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            list(struct.unpack(f"<{len(tokens) // 4}I", tokens)))


def compare_text(options, tokenizer, path):
    content = pathlib.Path(path).read_bytes()
    tokenizer.encode_special_tokens = False
    start = time.process_time()
    theirs = tokenizer.encode(content.decode(errors="replace"), add_special_tokens=True).ids
    their_seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        small = pathlib.Path(folder) / "small.txt"
        small.write_text("x")
        output = str(pathlib.Path(folder) / "t.bin")
        loading, _ = tokenize(options, str(small), output)
        seconds, ours = tokenize(options, path, output)
    ours = ours[:-1]  # the separator is the last
    equal = ours == theirs
    megabytes = len(content) / 1e6
    print(f"{path}: {megabytes:.1f} MB, {len(theirs)} tokens, {'equal' if equal else 'DIFFERENT'}; "
          f"MB a second of processor time: tessera {megabytes / max(seconds - loading, 1e-3):.1f}, "
          f"tokenizers {megabytes / their_seconds:.1f}")
    if not equal:
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
                  min(len(ours), len(theirs)))
        print(f"  first at token {at}: {ours[at:at + 8]} {theirs[at:at + 8]}, before it "
              f"{tokenizer.decode(theirs[max(0, at - 8):at], skip_special_tokens=False)!r}")
    return not equal


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera")
    parser.add_argument("tokenizer")
    parser.add_argument("--strings", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", nargs="*", default=[])
    options = parser.parse_args()
    tokenizer = reference(options.tokenizer)
    wrong = sum(compare_strings(options, tokenizer, choice) for choice in ("parse", "text"))
    wrong += sum(compare_text(options, tokenizer, path) for path in options.text)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
