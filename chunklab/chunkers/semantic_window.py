"""Semantic windows: stretches of sentences that stay together where they are alike.

The text is laid out in windows of some sentences, and neighbouring groups are joined, the most alike first, until no
two neighbours are as alike as the threshold asks (after the Ragu project, where the first group that passes takes a
window, wherever it stands). For long texts in which a topic fills pages. Cost: one embedding a window, a tenth of those
of single sentences, and n log n comparisons. A group has no greatest size; put a splitter behind it for one.
"""

from __future__ import annotations

import heapq
import sys

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunker, Span, check_size, is_number
from chunklab.chunkers.boundaries import sentence_spans
from chunklab.chunkers.distances import NOISE, Distance, check_distance, embed_in_blocks, readable, row_distances, units
from chunklab.chunkers.sentence import fitting_pieces, last_that_fits
from chunklab.models.vectors import check_model


def alike(left: np.ndarray, right: np.ndarray, distance: str | Distance = "cosine") -> np.ndarray:
    """How alike rows are, 1 at most: their cosine, or 1 / (1 + distance) for any other distance.

    Raises:
        ValueError: a function that gives a negative distance: nothing is nearer than what is the same.

    >>> alike(np.array([[3.0, 0.0]]), np.array([[0.0, 4.0]]), "euclidean").round(3).tolist()
    [0.167]
    """
    far = row_distances(left, right, distance)
    if distance == "cosine":
        return 1 - far
    if (far < -NOISE).any():
        raise ValueError(f"distance gave {far.min()}: must give 0 or more, the less the more two vectors are alike")
    return 1 / (1 + np.maximum(far, 0))


def joined_groups(vectors: np.ndarray, threshold: float, distance: str | Distance = "cosine") -> list[Span]:
    """Neighbours joined, the two that are most alike first, as long as their means are as alike as the threshold.

    Args:
        vectors: (windows, dimensions).
        threshold: how alike two groups must be, from 0 to 1.
        distance: "cosine", "euclidean", "manhattan", or a function of two vectors.

    Returns:
        (first, last) window of each group, in order.

    >>> joined_groups(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), 0.9)
    [(0, 1), (2, 2)]
    """
    count, threshold = len(vectors), threshold - NOISE
    sums, ends, before = vectors.astype(np.float64), list(range(count)), list(range(-1, count - 1))
    size, age = [1] * count, [0] * count  # a group is known by its first window; its age tells an old pair in the heap

    def pair(first: int, second: int, likeness: float) -> tuple[float, int, int, int, int]:
        return -likeness, first, second, age[first], age[second]

    likeness = alike(vectors[:-1], vectors[1:], distance).tolist()
    heap = [pair(i, i + 1, value) for i, value in enumerate(likeness) if value >= threshold]
    heapq.heapify(heap)
    while heap:
        _, first, second, *ages = heapq.heappop(heap)
        if ages != [age[first], age[second]]:
            continue
        sums[first] += sums[second]
        size[first] += size[second]
        ends[first] = ends[second]
        age[first], age[second] = age[first] + 1, -1
        after = ends[first] + 1
        if after < count:
            before[after] = first
        for left, right in ((before[first], first), (first, after)):
            if left >= 0 and right < count:
                means = sums[[left, right]] / [[size[left]], [size[right]]]
                value = float(alike(means[:1], means[1:], distance)[0])
                if value >= threshold:
                    heapq.heappush(heap, pair(left, right, value))
    return [(first, ends[first]) for first in range(count) if age[first] >= 0]


class SemanticWindowChunker(Chunker):
    """Windows of sentences, joined where neighbours are alike.

    Args:
        embeddings: the model that gives a window its vector. A window has fewer sentences where the model would not
            read all of them.
        size: sentences in a window.
        threshold: how alike two neighbours must be to be joined, from 0 (all with a cosine of 0 or more) to 1.
        distance: "cosine", "euclidean", "manhattan", or a function of two vectors: two are as alike as their cosine, or
            as 1 / (1 + distance).

    Raises:
        ValueError: an argument that is not allowed; later, an answer of the model that is not a finite vector a text.

    >>> from chunklab import embeddings
    >>> text = "The cat sleeps. The cat purrs. The dog sees the cat. Interest rates rose. Banks raised interest rates."
    >>> SemanticWindowChunker(embeddings("static"), size=1, threshold=0.3).split_text(text)
    ['The cat sleeps. The cat purrs. The dog sees the cat.', 'Interest rates rose. Banks raised interest rates.']
    """

    def __init__(
        self, embeddings: Embeddings, size: int = 10, threshold: float = 0.9, distance: str | Distance = "cosine"
    ) -> None:
        check_model(embeddings)
        self._size = check_size("size", size)
        if not is_number(threshold) or not 0 <= threshold <= 1:
            raise ValueError(f"threshold={threshold!r}: must be a number from 0 to 1")
        check_distance(distance)
        super().__init__(sys.maxsize)
        self._embeddings, self._threshold, self._distance = embeddings, float(threshold), distance

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        windows = self._windows(text)
        if len(windows) < 2:
            return windows
        vectors = embed_in_blocks(self._embeddings, [text[a:b] for a, b in windows])
        groups = joined_groups(vectors, self._threshold, self._distance)
        return [(windows[first][0], windows[last][1]) for first, last in groups]

    def _windows(self, text: str) -> list[Span]:
        """`size` sentences each, fewer where the model would not read them all."""
        pieces = fitting_pieces(text, units(text, sentence_spans(text)), sys.maxsize, len)
        sentences = readable(text, pieces, self._embeddings)
        limit, count = getattr(self._embeddings, "max_tokens", None), getattr(self._embeddings, "count_tokens", None)
        windows, first = [], 0
        while first < len(sentences):
            last = min(first + self._size, len(sentences)) - 1
            if limit and count:
                start = sentences[first][0]
                last = last_that_fits(lambda k: count(text[start : sentences[k][1]]), last + 1, first, limit)  # noqa: B023
            windows.append((sentences[first][0], sentences[last][1]))
            first = last + 1
        return windows
