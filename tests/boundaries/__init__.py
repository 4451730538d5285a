"""Sentence boundaries set by hand, over the kinds of text that splitters get wrong; the files say how to read them."""

import re
from pathlib import Path

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "u2028": "\u2028", "\\": "\\"}


def marked(name: str = "sentences") -> list[tuple[str, list[str]]]:
    """(kind, sentences) of every text of a file; the sentences, joined, are the text."""
    kind, texts = "", []
    for line in Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and "¦" not in line:
            kind = line[1:-1]
        elif line and not line.startswith("//"):
            plain = re.sub(r"\\(n|r|t|u2028|\\)", lambda match: _ESCAPES[match[1]], line)
            texts.append((kind, plain.split("¦")))
    return texts
