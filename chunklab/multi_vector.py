"""Search by several vectors a chunk: its own, its sentences', and its neighbours'.

One vector for a chunk of six sentences says what they are about together, and blurs the one that answers. Here a chunk
scores by the mean of its own cosine with the query and its best sentence's, so that one sentence can speak for it; and
a part of the score is that of its better neighbour, as an answer seldom stands alone. For collections where the best
few chunks must hold the answer. Cost: the sentences are embedded too, about twice the tokens; a search is one pass over
all vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunk, is_number
from chunklab.chunkers.boundaries import sentence_spans
from chunklab.chunkers.distances import embed_in_blocks, readable
from chunklab.chunkers.sentence import fitting_pieces
from chunklab.models.vectors import unit
from chunklab.queries import cosines
from chunklab.retrieval import ChunkIndex, Hit

_AT_ONCE = 64  # queries scored together


class MultiVectorIndex(ChunkIndex):
    """Chunks, ready to be searched by their meaning, their sentences' and their neighbours'.

    `save` keeps the weights, not the sentences' vectors: `load` asks the model for them again.

    Args:
        chunks: what to search; document and id together name a chunk, and must be unique.
        embeddings: the model that gives vectors.
        sentence_weight: how much of a score is the best sentence's cosine, from 0 to 1; the rest is the chunk's own.
        neighbour_weight: how much of the score, in the end, is that of the better one of the chunks before and after it
            in its document, from 0 to 1.

    Raises:
        ValueError: a weight that is not allowed; as for `ChunkIndex`.

    >>> from chunklab import FixedSizeChunker, embeddings
    >>> chunks = FixedSizeChunker(40).chunk("The bell is old. Its founder was a smith. Rain falls on the harbour.")
    >>> [hit.chunk.index for hit in MultiVectorIndex(chunks, embeddings("static")).search("rain", k=1)]
    [1]
    """

    sentence_weight, neighbour_weight = 0.5, 0.3
    _settings = ("sentence_weight", "neighbour_weight")

    def __init__(
        self,
        chunks: Iterable[Chunk],
        embeddings: Embeddings,
        sentence_weight: float = sentence_weight,
        neighbour_weight: float = neighbour_weight,
    ) -> None:
        for name, weight in {"sentence_weight": sentence_weight, "neighbour_weight": neighbour_weight}.items():
            if not is_number(weight) or not 0 <= weight <= 1:
                raise ValueError(f"{name}={weight!r}: must be a number from 0 to 1")
        self.sentence_weight, self.neighbour_weight = float(sentence_weight), float(neighbour_weight)
        super().__init__(chunks, embeddings)

    def _fill(
        self, chunks: list[Chunk], vectors: np.ndarray, embeddings: Embeddings, kept: np.ndarray | None = None
    ) -> None:
        super()._fill(chunks, vectors, embeddings, kept)
        # What a chunk had stays with it, as its own vector does.
        old = [None] * len(chunks) if kept is None else [self._of_chunk(place) for place in kept]
        new = [_sentences(c.text, embeddings) if had is None else [] for c, had in zip(chunks, old, strict=True)]
        # A chunk without a sentence, a blank one, keeps a vector of zeros.
        counts = [max(1, len(texts)) if had is None else len(had) for texts, had in zip(new, old, strict=True)]
        first = np.concatenate([[0], np.cumsum(counts)])[:-1].astype(np.int64)
        sentences = np.zeros((sum(counts), vectors.shape[1]), dtype=np.float32)
        for place, had in zip(first, old, strict=True):
            if had is not None:
                sentences[place : place + len(had)] = had
        places = [place + i for place, texts in zip(first, new, strict=True) for i in range(len(texts))]
        if places:
            sentences[places] = unit(embed_in_blocks(embeddings, [text for texts in new for text in texts]))
        self._first, self._sentences = first, sentences
        where = {(c.document, c.parent_id, c.index): place for place, c in enumerate(chunks)}
        nobody = len(chunks)
        beside = [[where.get((c.document, c.parent_id, c.index + step), nobody) for step in (-1, 1)] for c in chunks]
        self._beside = np.array(beside, dtype=np.int64).reshape(-1, 2)

    def _of_chunk(self, place: int) -> np.ndarray | None:
        """The vectors of the sentences of the chunk at a place; None at -1."""
        if place < 0:
            return None
        last = place + 1 == len(self._first)
        return self._sentences[self._first[place] : None if last else self._first[place + 1]]

    def _found(self, queries: np.ndarray, k: int, allowed: np.ndarray, min_score: float | None) -> list[list[Hit]]:
        hits = []
        for i in range(0, len(queries), _AT_ONCE):
            block = queries[i : i + _AT_ONCE]
            scores = self._scores(block)[:, allowed]
            hits += [self._hits(query, allowed, row, k, min_score) for query, row in zip(block, scores, strict=True)]
        return hits

    def _scores(self, queries: np.ndarray) -> np.ndarray:
        """The score of each chunk for each query: (queries, chunks)."""
        own = cosines(queries, self.vectors)
        best = np.maximum.reduceat(cosines(queries, self._sentences), self._first, axis=1)
        mixed = (1 - self.sentence_weight) * own + self.sentence_weight * best
        # A chunk without a neighbour stands for it itself: it neither gains nor loses.
        padded = np.concatenate([mixed, np.full((len(queries), 1), -np.inf)], axis=1)
        near = padded[:, self._beside].max(axis=2)
        near = np.where(np.isinf(near), mixed, near)
        return (1 - self.neighbour_weight) * mixed + self.neighbour_weight * near


def _sentences(text: str, model: Embeddings) -> list[str]:
    """The sentences of a chunk, those longer than the model reads in pieces."""
    spans = fitting_pieces(text, sentence_spans(text), sys.maxsize, len)
    return [text[start:end] for start, end in readable(text, spans, model)]
