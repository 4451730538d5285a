"""How far one meaning is from another: what the semantic chunkers share.

Vectors of sentences, asked for in blocks and never of more than the model reads, and the distances between them: for
all of these the larger, the less alike. For whoever cuts by meaning. Cost: one embedding a sentence; the rest is numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Span
from chunklab.chunkers.sentence import fitting_pieces
from chunklab.models.vectors import embed, unit

Distance = Callable[[np.ndarray, np.ndarray], float]

LONGEST, USUAL = 2000, 70
"""Characters: what is longer has no sentence ends, as a transcript has none; what a sentence usually has."""

NOISE = 1e-6
"""Distances that differ by less are equal: the rounding of a float32."""

_AT_ONCE = 2048  # texts in one call of the model: its lists stay small, its batches full


def cosine_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """1 - cosine of each row of `left` with the same row of `right`; 1 where one of them has no direction.

    >>> cosine_distances(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 3.0]])).tolist()
    [0.0, 1.0]
    """
    return 1 - (unit(left) * unit(right)).sum(axis=1)


def euclidean_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The length of the difference of each two rows."""
    return np.sqrt(np.square(left - right, dtype=np.float64).sum(axis=1))


def manhattan_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The sum of the absolute differences of each two rows."""
    return np.abs(left - right).sum(axis=1, dtype=np.float64)


DISTANCES = {"cosine": cosine_distances, "euclidean": euclidean_distances, "manhattan": manhattan_distances}


def row_distances(left: np.ndarray, right: np.ndarray, distance: str | Distance = "cosine") -> np.ndarray:
    """How far each row of `left` is from the same row of `right`.

    Args:
        left: (places, dimensions).
        right: the same shape.
        distance: "cosine", "euclidean", "manhattan", or a function of two vectors.

    Returns:
        float64 (places,).

    Raises:
        ValueError: a function that gives something else than a finite number; vectors too long to be computed with.

    >>> row_distances(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]]), "euclidean").tolist()
    [5.0]
    """
    if callable(distance):
        return np.array([_number(distance(a, b)) for a, b in zip(left, right, strict=True)], dtype=np.float64)
    # In blocks, as each copy that a formula makes would be as large as all vectors.
    blocks = [slice(i, i + _AT_ONCE) for i in range(0, len(left), _AT_ONCE)]
    far = np.concatenate([np.zeros(0), *(DISTANCES[distance](left[block], right[block]) for block in blocks)])
    if not np.isfinite(far).all():
        raise ValueError(f"the {distance} distance of two vectors is not finite: they are too long")
    return far


def _number(value: Any) -> float:
    """What a function of two vectors gave, be it a number of Python, of numpy or of another library."""
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "bfiu" or not np.isfinite(number):
        raise ValueError(f"distance gave {value!r:.80}: must give a finite number")
    return float(number)


def check_distance(distance: Any) -> None:
    """Raise ValueError unless it is the name of a distance or a function."""
    if not callable(distance) and not (isinstance(distance, str) and distance in DISTANCES):
        names = ", ".join(map(repr, DISTANCES))
        raise ValueError(f"distance={distance!r:.80}: must be one of {names}, or a function of two vectors")


def embed_in_blocks(model: Embeddings, texts: Sequence[str], dtype: type | None = np.float32) -> np.ndarray:
    """The vectors of texts, asked for some thousand at a time, so that only vectors fill the memory.

    Args:
        model: the embedding model.
        texts: the texts, one at least, none of them blank.
        dtype: what the numbers are kept as; None: in the precision of the answer.

    Returns:
        `dtype` of shape (texts, dimensions).

    Raises:
        ValueError: an answer that is not a finite vector a text.
    """
    vectors = embed(model, texts[:_AT_ONCE], dtype)
    if len(texts) <= _AT_ONCE:
        return vectors
    everything = np.empty((len(texts), vectors.shape[1]), dtype=vectors.dtype)
    everything[:_AT_ONCE] = vectors
    for i in range(_AT_ONCE, len(texts), _AT_ONCE):
        vectors = embed(model, texts[i : i + _AT_ONCE], dtype)
        if vectors.shape[1] != everything.shape[1]:
            raise ValueError(
                f"vectors differ in length: {everything.shape[1]}, and {vectors.shape[1]} from text {i} on"
            )
        everything[i : i + len(vectors)] = vectors
    return everything


def units(text: str, sentences: Sequence[Span]) -> list[Span]:
    """What is judged: the sentences; where there are none, pieces of words, about as long as sentences are.

    Args:
        text: the document.
        sentences: (start, end) of each.

    Returns:
        (start, end) of each unit, in order.

    >>> len(units("one two " * 200, [(0, 1600)])), len(units("one two " * 300, [(0, 2400)]))
    (1, 36)
    """
    found = []
    for start, end in sentences:
        whole = end - start <= LONGEST
        found += [(start, end)] if whole else fitting_pieces(text, [(start, end)], USUAL, len)
    return found


def readable(text: str, sentences: Sequence[Span], model: Embeddings) -> list[Span]:
    """The sentences, those longer than the model reads in pieces that it reads whole.

    Args:
        text: the document.
        sentences: (start, end) of each.
        model: one without `max_tokens` and `count_tokens` is taken to read everything.

    Returns:
        (start, end) of each piece, in order.
    """
    limit, count = getattr(model, "max_tokens", None), getattr(model, "count_tokens", None)
    if limit is None or count is None:
        return list(sentences)
    return fitting_pieces(text, sentences, limit, count)
