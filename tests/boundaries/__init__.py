"""Sentence boundaries set by hand, over the kinds of text that splitters get wrong, and scores on them.

The files say how to read them. The benchmark of sentences and lesson 03 measure splitters here: each is a function from a
text to its sentences, in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

Splitter = Callable[[str], list[str]]

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


def places(sentences: list[str]) -> set[int]:
    """The boundaries between sentences: how many characters that are not white space come before each."""
    lengths = [len("".join(sentence.split())) for sentence in sentences]
    totals = [sum(lengths[: k + 1]) for k in range(len(lengths))]
    return {place for place in totals if 0 < place < totals[-1]}


def scores(split: Splitter, texts: list[tuple[str, list[str]]]) -> tuple[float, float, float]:
    """Precision, recall and F1 over all boundaries."""
    right = found = wanted = 0
    for _, sentences in texts:
        ours, truth = places(split("".join(sentences))), places(sentences)
        right, found, wanted = right + len(ours & truth), found + len(ours), wanted + len(truth)
    precision, recall = right / max(found, 1), right / max(wanted, 1)
    return precision, recall, 2 * right / max(found + wanted, 1)


def score_table(splitters: Mapping[str, Splitter]) -> DataFrame:
    """Precision, recall and F1 in percent, a row a splitter, on the first set and on the second."""
    import pandas as pd

    sets, shares = {"first set": marked(), "second set": marked("second")}, ("precision", "recall", "F1")
    rows = [[100 * share for texts in sets.values() for share in scores(split, texts)] for split in splitters.values()]
    return pd.DataFrame(rows, list(splitters), pd.MultiIndex.from_product([sets, shares])).round(1)
