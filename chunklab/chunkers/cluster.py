"""Cluster chunking: of all ways to divide a text into blocks, the one whose blocks hold together best.

Small pieces get vectors, and a block is worth the similarities of all its pairs of pieces, each less the mean of the
whole text's. Dynamic programming finds the division that is worth most (Chroma's ClusterSemanticChunker, "Evaluating
Chunking Strategies for Retrieval", 2024, whose table of steps could lead back over a block that was too long). For
texts where a greedy cut would come too early or too late. Cost: one embedding a piece; the rest grows with the number
of pieces times the pieces in a block. Only pieces near each other are compared, so that memory does not grow with the
square of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunker, Span, check_size
from chunklab.chunkers.boundaries import sentence_spans
from chunklab.chunkers.distances import embed_in_blocks, readable
from chunklab.chunkers.sentence import mend_torn, packed_spans
from chunklab.models.tokens import tokens
from chunklab.models.vectors import check_model, unit

Length = Callable[[str], int]


def mean_similarity(vectors: np.ndarray) -> float:
    """The mean cosine of all pairs of different rows, of unit length, without forming the pairs.

    >>> round(float(mean_similarity(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))), 3)
    0.333
    """
    count, total = len(vectors), vectors.sum(axis=0, dtype=np.float64)
    itself = np.square(vectors, dtype=np.float64).sum()
    return (total @ total - itself) / max(1, count * (count - 1))


def block_values(vectors: np.ndarray, lengths: Sequence[int], size: int) -> np.ndarray:
    """What each block is worth: the sum over its pairs of pieces of their cosine less the mean of the whole text's.

    Args:
        vectors: (pieces, dimensions), of unit length.
        lengths: how long each piece is.
        size: the longest block of more than one piece.

    Returns:
        float64 (pieces of the longest block, pieces): row k, column i is the block of k + 1 pieces that ends with piece
        i; minus infinity where there is none, or too long a one.
    """
    count, mean, edges = len(vectors), mean_similarity(vectors), np.concatenate([[0], np.cumsum(lengths)])
    longest = int((np.searchsorted(edges, edges[:-1] + size, side="right") - np.arange(count)).max()) - 1
    values = np.full((max(1, longest), count), -np.inf)
    values[0] = 0
    for k in range(1, longest):
        # The first piece of a block with its last; rounded, so that what is all the same is worth nothing, not less.
        pairs = np.round(np.einsum("ij,ij->i", vectors[k:], vectors[:-k]) - mean, 6)
        inside = (
            values[k - 2, k - 1 : -1] if k > 1 else 0
        )  # the block without both, which the next two lines count twice
        values[k, k:] = values[k - 1, k:] + values[k - 1, k - 1 : -1] - inside + pairs
    for k in range(1, longest):
        values[k, k:][edges[k + 1 :] - edges[: -k - 1] > size] = -np.inf
    return values


def best_blocks(values: np.ndarray) -> list[Span]:
    """The division of all pieces into blocks that is worth most; of equals the one with the longer last block.

    Args:
        values: what `block_values` gives.

    Returns:
        (first, last) piece of each block, in order.

    >>> best_blocks(block_values(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [5, 5, 5], 15))
    [(0, 1), (2, 2)]
    """
    longest, count = values.shape
    best, length = [0.0], []  # best[i]: what the first i pieces are worth
    for i, column in enumerate(values.T.tolist()):
        worth, k = max((column[k] + best[i - k], k) for k in range(min(longest, i + 1)))
        best.append(worth)
        length.append(k + 1)
    blocks, last = [], count - 1
    while last >= 0:
        blocks.append((last - length[last] + 1, last))
        last -= length[last]
    return blocks[::-1]


class ClusterChunker(Chunker):
    """The best blocks, by dynamic programming.

    Args:
        embeddings: the model that gives a piece its vector.
        max_chunk_size: the longest chunk, in units of `length_function`.
        piece_size: the longest piece: whole sentences where they fit, else words.
        length_function: what sizes count; tokens of cl100k by default.

    Raises:
        ValueError: an argument that is not allowed; later, an answer of the model that is not a finite vector a text.

    >>> from chunklab import embeddings
    >>> text = "The cat sleeps. The cat purrs. The dog sees the cat. Interest rates rose. Banks raised interest rates."
    >>> ClusterChunker(embeddings("static"), 30, 6).split_text(text)
    ['The cat sleeps. The cat purrs. The dog sees the cat.', 'Interest rates rose. Banks raised interest rates.']
    """

    def __init__(
        self,
        embeddings: Embeddings,
        max_chunk_size: int = 400,
        piece_size: int = 50,
        length_function: Length | None = None,
    ) -> None:
        check_model(embeddings)
        size, piece = check_size("max_chunk_size", max_chunk_size), check_size("piece_size", piece_size)
        if piece > size:
            raise ValueError(f"piece_size={piece}: must be at most max_chunk_size={size}")
        super().__init__(size, 0, length_function or tokens("cl100k"))
        self._embeddings, self._piece = embeddings, piece

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        pieces = packed_spans(text, sentence_spans(text), self._piece, 0, self._length_function)
        pieces = mend_torn(text, readable(text, pieces, self._embeddings), self._chunk_size, self._length_function)
        if len(pieces) < 2:
            return pieces
        vectors = unit(embed_in_blocks(self._embeddings, [text[a:b] for a, b in pieces]))
        values = block_values(vectors, [self._length_function(text[a:b]) for a, b in pieces], self._chunk_size)
        return [
            (pieces[first][0], pieces[last][1])
            for block in best_blocks(values)
            for first, last in self._within(text, pieces, block, values)
        ]

    def _within(self, text: str, pieces: Sequence[Span], block: Span, values: np.ndarray) -> list[Span]:
        """The block, or its best parts, where its pieces measure more together than one by one."""
        parts, pending = [], [block]
        while pending:
            first, last = pending.pop()
            if first == last or self._length_function(text[pieces[first][0] : pieces[last][1]]) <= self._chunk_size:
                parts.append((first, last))
                continue

            def worth(k: int, first: int = first, last: int = last) -> tuple[float, int]:  # of equals, the middle
                return values[k - first, k] + values[last - k - 1, last], -abs(2 * k + 1 - first - last)

            cut = max(range(first, last), key=worth)
            pending += [(cut + 1, last), (first, cut)]
        return parts
