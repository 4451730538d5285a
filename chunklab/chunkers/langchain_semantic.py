"""LangChain's SemanticChunker, to the last digit: what `SemanticChunker(compatible=True)` computes.

For those who come from langchain-experimental 0.4 and want their very cuts, and for the lesson, which sets them beside
better ones. Its sentences end where a pattern says; a window is a sentence joined with its neighbours, embedded anew,
so that each sentence costs three embeddings' tokens. Chunks here are slices of the text; there, joined by spaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Span, is_blank, last_boundary, trim
from chunklab.chunkers.distances import embed_in_blocks

_AFTER_A_STOP = re.compile(r"(?<=[.?!])\s+")


def langchain_sentences(text: str) -> list[Span]:
    """Sentences that end at white space after a stop: (start, end) of each, without white space at its edges.

    >>> langchain_sentences("Dr. Lind came. He sat. ")
    [(0, 3), (4, 14), (15, 22)]
    """
    start, end = trim(text, 0, len(text))
    # The last characters of the white space may belong to the sentence, as a blank that carries a mark does.
    starts = [last_boundary(text, start, match.end()) for match in _AFTER_A_STOP.finditer(text, start, end)]
    edges = [start, *starts, end]
    return [trim(text, a, b) for a, b in zip(edges, edges[1:], strict=False)] if start < end else []


def langchain_texts(text: str) -> list[str]:
    """The sentences as LangChain reads them: with a BOM before one, without the blank that a mark stands on.

    >>> langchain_texts(" Dr. \ufeffLind came. \ufeff ")
    ['Dr.', '\ufeffLind came.']
    """
    texts = _AFTER_A_STOP.split(text.strip())
    return texts[:-1] if is_blank(texts[-1]) else texts


def langchain_distances(texts: Sequence[str], model: Embeddings, buffer_size: int) -> np.ndarray:
    """The distance from each window to the next: a window is a sentence and its neighbours, joined by spaces.

    Args:
        texts: what `langchain_texts` gives.
        model: embeds the windows.
        buffer_size: neighbours on either side.

    Returns:
        (sentences - 1,), in the precision of the model's answer, and summed in the order in which LangChain sums, as a
        last digit decides between equals.
    """
    windows = [" ".join(texts[max(0, i - buffer_size) : i + buffer_size + 1]) for i in range(len(texts))]
    # Where a model has an `encode`, LangChain asks for the same numbers as lists, which are of double precision.
    vectors = embed_in_blocks(model, windows, np.float64 if hasattr(model, "encode") else None)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
        dots = np.array([np.dot(vectors[i : i + 1], vectors[i + 1 : i + 2].T)[0, 0] for i in range(len(texts) - 1)])
        cosines = dots / (lengths[:-1] * lengths[1:])
    cosines[~np.isfinite(cosines)] = 0
    return 1 - cosines


def langchain_threshold(distances: np.ndarray, kind: str, amount: float) -> tuple[np.ndarray, float]:
    """What LangChain compares with what: values (places,), and the threshold in their unit.

    Its standard deviation counts the breaks too, and of ten distances none is ever three deviations above their mean;
    its gradient is centred, and so at its highest one sentence before a peak.

    >>> values, threshold = langchain_threshold(np.array([0.1, 0.11, 0.5, 0.12, 0.1]), "gradient", 95)
    >>> np.flatnonzero(values > threshold).tolist()
    [1]
    """
    if kind == "percentile":
        return distances, np.percentile(distances, amount)
    if kind == "standard_deviation":
        return distances, np.mean(distances) + amount * np.std(distances)
    if kind == "interquartile":
        low, high = np.percentile(distances, [25, 75])
        return distances, np.mean(distances) + amount * (high - low)
    slopes = np.gradient(distances, range(len(distances)))
    return slopes, np.percentile(slopes, amount)


def langchain_breaks(distances: np.ndarray, kind: str, amount: float, number_of_chunks: int | None) -> list[int]:
    """The places after which LangChain ends a chunk; `number_of_chunks` stands for a percentile there."""
    if kind == "gradient" and len(distances) == 1:  # it has no gradient: `langchain_groups` gives both sentences
        return [0]
    if number_of_chunks:
        most = float(len(distances))
        wanted = max(min(number_of_chunks, most), 1.0)
        percent = 100.0 if most == 1 else 0.0 + ((100.0 - 0.0) / (1.0 - most)) * (wanted - most)
        values, threshold = distances, np.percentile(distances, min(max(percent, 0), 100))
    else:
        values, threshold = langchain_threshold(distances, kind, amount)
    return np.flatnonzero(values > threshold).tolist()


def langchain_groups(texts: Sequence[str], breaks: Sequence[int], kind: str, min_chunk_size: int | None) -> list[Span]:
    """The first and the last sentence of each of LangChain's chunks: the last one may be short.

    >>> langchain_groups(["Dr.", "Lind came.", "He sat."], [0, 1], "percentile", 5)
    [(0, 1), (2, 2)]
    """
    least = 0 if kind == "gradient" and len(texts) == 2 else min_chunk_size or 0
    groups, first, length, ends = [], 0, -1, set(breaks)
    for last, text in enumerate(texts):
        length += 1 + len(text)
        if last == len(texts) - 1 or (last in ends and length >= least):
            groups.append((first, last))
            first, length = last + 1, -1
    return groups
