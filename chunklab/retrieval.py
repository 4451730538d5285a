"""Find the chunks that are nearest in meaning to a question.

A `ChunkIndex` holds the vectors of chunks in FAISS (Johnson, Douze, Jégou: "Billion-scale similarity search with
GPUs", 2017) as unit vectors with exact inner product: scores are cosines, from -1 to 1, and nothing is approximate. It
serves the lessons, the scoreboard, and collections of up to some hundred thousand chunks. Cost: one embedding a chunk,
then one pass over all vectors a search. Where documents change, only texts that are new are embedded. An index is kept
on disk as JSON and a FAISS file, never as a pickle: loading one runs no code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunk, check_size, is_blank, is_number
from chunklab.chunkers.distances import NOISE, embed_in_blocks
from chunklab.index_file import FIELDS, read_index, write_index
from chunklab.models.vectors import unit
from chunklab.queries import check_queries, check_vectors, cosines, model_name, query_vectors

Where = Callable[[Chunk], bool] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a search found: its score (of a `ChunkIndex`, the cosine with the query), and its rank, from 1."""

    chunk: Chunk
    score: float
    rank: int


class ChunkIndex:
    """Chunks, ready to be searched by meaning.

    Threads may search while one of them changes it: a search sees the chunks from before a change or from after it.

    Args:
        chunks: what to search; document and id together name a chunk, and must be unique.
        embeddings: the model that gives vectors, for the chunks now and for the queries later.
        vectors: those of the chunks, (chunks, dimensions) of any length, where they are there already: from a database,
            or from `late_embeddings`. Chunks that are added later are embedded by the model.

    Raises:
        ValueError: chunks that are none, or two with one document and id; or vectors that are not usable.

    Attributes:
        chunks: the chunks, in the order given.
        vectors: float32 (chunks, dimensions), of unit length; all zeros where the model gave no direction.
        model: the name of the model.

    >>> from chunklab import SentenceChunker, embeddings
    >>> chunker = SentenceChunker(40)
    >>> index = ChunkIndex(chunker.chunk("The bell is old. Rain falls on the harbour.", "town"), embeddings("static"))
    >>> index.update("town", chunker.chunk("The bell is gone. Rain falls on the harbour.", "town"))
    >>> [hit.chunk.text for hit in index.search("the bell", k=1)]
    ['The bell is gone.']
    """

    _settings: tuple[str, ...] = ()  # attributes that are kept with the index

    def __init__(self, chunks: Iterable[Chunk], embeddings: Embeddings, vectors: np.ndarray | None = None) -> None:
        chunks = check_chunks(chunks)
        found = _chunk_vectors(chunks, embeddings) if vectors is None else _given(vectors, chunks)
        self._fill(chunks, found, embeddings)

    def _fill(
        self, chunks: list[Chunk], vectors: np.ndarray, embeddings: Embeddings, kept: np.ndarray | None = None
    ) -> None:
        """Hold these chunks; `kept` is the place that the text of each had until now, -1 for a new one."""
        import faiss

        self.chunks, self.vectors, self.embeddings = chunks, vectors, embeddings
        self.model = model_name(embeddings)
        # A vector of zeros has a cosine with nothing; among equal scores it comes last.
        self._no_direction: Any = ~vectors.any(axis=1) if len(chunks) else np.zeros(0, dtype=bool)
        self._faiss = faiss.IndexFlatIP(vectors.shape[1])
        if vectors.size:
            self._faiss.add(vectors)

    def __len__(self) -> int:
        return len(self.chunks)

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self)} chunks, {self.vectors.shape[1]} dimensions, {self.model}"

    def search(self, query: str, k: int = 4, min_score: float | None = None, where: Where | None = None) -> list[Hit]:
        """The chunks nearest to a query.

        Args:
            query: a question, or any text.
            k: how many hits at most.
            min_score: leave out what scores less, by more than rounding; a cosine, from -1 to 1.
            where: search only chunks of which this is true: a function of a chunk, or a dictionary of values that the
                chunk's fields or metadata must have, {"document": "manual.md"}. It is applied before the cut to k.

        Returns:
            Hits, best first, equal scores in the order of the index. Fewer than k where there are no more; none where
            the model gives the query no direction (a vector of zeros).

        Raises:
            ValueError: a blank query, a k or min_score that is not allowed, a key that no chunk has, a query vector of
                another dimension.
        """
        return self.search_many([query], k, min_score, where)[0]

    def search_many(
        self,
        queries: Sequence[str] | np.ndarray,
        k: int = 4,
        min_score: float | None = None,
        where: Where | None = None,
    ) -> list[list[Hit]]:
        """Search for many queries at once, which is faster.

        Args:
            queries: texts; or their vectors (queries, dimensions), of any length, where they are there already.
            k: as for `search`, like the others.
            min_score: a cosine.
            where: applied before the cut to k.

        Returns:
            One list of hits a query.

        Raises:
            ValueError: as for `search`.
        """
        queries = check_vectors(queries) if isinstance(queries, np.ndarray) else check_queries(queries)
        k = _check_search(k, min_score)
        now = copy(self)  # another thread may be changing the index
        allowed = now.allowed(where)
        if not len(allowed) or not len(queries) or not now.vectors.size:
            return [[] for _ in queries]
        return now._found(now._directions(queries), k, allowed, min_score)

    def scores(self, queries: Sequence[str] | np.ndarray) -> np.ndarray:
        """How near every chunk is, for methods that add something of their own to it, as `Hybrid` does.

        Args:
            queries: texts, or their vectors, as for `search_many`.

        Returns:
            float64 (queries, chunks), in the order of the index.

        Raises:
            ValueError: as for `search_many`.
        """
        queries = check_vectors(queries) if isinstance(queries, np.ndarray) else check_queries(queries)
        now = copy(self)
        if not len(queries) or not now.vectors.size:
            return np.zeros((len(queries), len(now)))
        return now._scores(now._directions(queries))

    def _directions(self, queries: list[str] | np.ndarray) -> np.ndarray:
        """The unit vectors of queries."""
        vectors = queries if isinstance(queries, np.ndarray) else query_vectors(queries, self.embeddings)
        if vectors.shape[1] != self.vectors.shape[1]:
            source = "the vectors given" if vectors is queries else model_name(self.embeddings)
            raise ValueError(
                f"the query has {vectors.shape[1]} dimensions ({source}), the index has {self.vectors.shape[1]} "
                f"({self.model}): search with the model that the index was built with"
            )
        return unit(vectors)

    def _scores(self, queries: np.ndarray) -> np.ndarray:
        """The score of each chunk for each query, a unit vector: (queries, chunks)."""
        return cosines(queries, self.vectors)

    def _found(self, queries: np.ndarray, k: int, allowed: np.ndarray, min_score: float | None) -> list[list[Hit]]:
        """The hits of each query, a unit vector, among the chunks at the places that are allowed."""
        places = self._nearest(queries, min(k, len(allowed)), allowed)
        # Each row on its own and in double precision: equal vectors get equal scores, in any order and batch.
        scores = [
            (self.vectors[near].astype(np.float64) * query).sum(axis=1)
            for query, near in zip(queries, places, strict=True)
        ]
        return [self._hits(*found, k, min_score) for found in zip(queries, places, scores, strict=True)]

    def _nearest(self, queries: np.ndarray, k: int, allowed: np.ndarray) -> list[np.ndarray]:
        """For each query the places of the k nearest, and of all that may score the same as the last of them."""
        import faiss

        everything = len(allowed) == len(self)
        parameters: Any = faiss.SearchParameters
        selected = None if everything else parameters(sel=faiss.IDSelectorBatch(allowed))
        places: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(queries)
        pending, wanted = np.arange(len(queries)), min(k + 8, len(allowed))
        while len(pending):
            scores, found = self._faiss.search(queries[pending], wanted, params=selected)
            # FAISS breaks ties as it likes: go on until the last score is clearly below that of the k-th.
            done: np.ndarray = (scores[:, -1] < scores[:, k - 1] - _SAME) | (wanted == len(allowed))
            for row in np.flatnonzero(done):
                close = scores[row] >= scores[row, k - 1] - _SAME
                places[pending[row]] = found[row][close & (found[row] >= 0)]
            pending, wanted = pending[~done], min(wanted * 4, len(allowed))
        return places

    def _hits(
        self, query: np.ndarray, places: np.ndarray, scores: np.ndarray, k: int, min_score: float | None
    ) -> list[Hit]:
        """The best k of the places, by their scores."""
        if not query.any():
            return []
        scores = np.clip(scores, -1, 1)
        best = np.lexsort((places, self._no_direction[places], -scores))[:k]
        found = zip(places[best].tolist(), scores[best].tolist(), strict=True)
        return [
            Hit(self.chunks[place], score, rank)
            for rank, (place, score) in enumerate(found, start=1)
            if min_score is None or score >= min_score - NOISE
        ]

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Take in more chunks, after those that are there.

        Args:
            chunks: of new documents, or more of an old one. A text that is there already is not embedded again.

        Raises:
            ValueError: a document and id that is there already; as for a new index. Then nothing is changed.
        """
        self._change([*self.chunks, *check_chunks(chunks)])

    def remove(self, document: str) -> None:
        """Forget the chunks of a document.

        Args:
            document: its id.

        Raises:
            ValueError: the index has no chunk of it.
        """
        left = [chunk for chunk in self.chunks if chunk.document != document]
        if len(left) == len(self):
            raise ValueError(f"document={document!r:.80}: the index has no chunk of it")
        self._change(left)

    def update(self, document: str, chunks: Iterable[Chunk]) -> None:
        """Put new chunks of a document in the place of the old ones; only texts that are new are embedded.

        Args:
            document: its id; one that is not there is added at the end.
            chunks: all its chunks, as they are now.

        Raises:
            ValueError: a chunk of another document; as for a new index. Then nothing is changed.
        """
        if not isinstance(document, str):
            raise ValueError(f"document={document!r:.80}: must be a str")
        chunks = check_chunks(chunks)
        if others := {chunk.document for chunk in chunks} - {document}:
            raise ValueError(f"chunks holds some of document {min(others)!r}: must be of {document!r} alone")
        first = next((place for place, chunk in enumerate(self.chunks) if chunk.document == document), len(self))
        after = [chunk for chunk in self.chunks[first:] if chunk.document != document]
        self._change([*self.chunks[:first], *chunks, *after])

    def _change(self, chunks: list[Chunk]) -> None:
        """Hold these chunks from now on, all at once, or as before where something fails."""
        chunks = check_chunks(chunks)
        # An index that was empty, or of blank chunks alone, does not know the model's dimensions: it keeps nothing.
        place_of = {chunk.text: place for place, chunk in enumerate(self.chunks) if self.vectors.shape[1]}
        kept = np.array([place_of.get(chunk.text, -1) for chunk in chunks], dtype=np.int64)
        new = np.flatnonzero(kept < 0)
        fresh = _chunk_vectors([chunks[place] for place in new], self.embeddings)
        size = self.vectors.shape[1] or fresh.shape[1]
        if fresh.shape[1] not in (0, size):
            raise ValueError(f"the model gives {fresh.shape[1]} dimensions, the index has {size} ({self.model})")
        vectors = np.zeros((len(chunks), size), dtype=np.float32)
        if len(new) < len(chunks):
            vectors[kept >= 0] = self.vectors[kept[kept >= 0]]
        if fresh.size:
            vectors[new] = fresh
        changed = copy(self)
        changed._fill(chunks, vectors, self.embeddings, kept)
        self.__dict__.update(changed.__dict__)

    def allowed(self, where: Where | None) -> np.ndarray:
        """The places of the chunks that may be found: see `search`. Raises ValueError for a where that is none."""
        if where is None:
            return np.arange(len(self))
        if isinstance(where, Mapping):
            for key in where:
                if self.chunks and key not in _OWN and not any(key in chunk.metadata for chunk in self.chunks):
                    known = ", ".join(sorted({*_OWN, *(str(name) for chunk in self.chunks for name in chunk.metadata)}))
                    raise ValueError(f"where has the key {key!r}, which no chunk has; there are {known}")
            tests = (all(_has(chunk, key, value) for key, value in where.items()) for chunk in self.chunks)
        elif callable(where):
            tests = (bool(where(chunk)) for chunk in self.chunks)
        else:
            raise ValueError(f"where={where!r}: must be a function of a chunk, or a dictionary of values")
        try:
            return np.flatnonzero(np.fromiter(tests, dtype=bool, count=len(self)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"where={where!r:.80}: must be true or false of each chunk ({error})") from error

    def save(self, folder: str | Path) -> None:
        """Write the index into a folder, whole or not at all: a crash leaves the one that was there.

        Args:
            folder: made if it is not there; other files in it are left alone. A file .lock in it lets one at a time
                save.

        Raises:
            ValueError: a folder that is no path; metadata that JSON cannot hold. A tuple in it comes back as a list.
        """
        now = copy(self)
        content = {
            "model": now.model,
            "dimension": now.vectors.shape[1],
            "chunks": [{name: getattr(chunk, name) for name in FIELDS} for chunk in now.chunks],
            **{name: getattr(now, name) for name in now._settings},
        }
        write_index(folder, content, now._faiss)

    @classmethod
    def load(cls, folder: str | Path, embeddings: Embeddings) -> ChunkIndex:
        """Read an index that `save` wrote; no other file in the folder is opened.

        Args:
            folder: the folder.
            embeddings: the model that the index was built with.

        Returns:
            The index, without embedding anything again.

        Raises:
            FileNotFoundError: no index there, or half of one.
            ValueError: a folder that is no path; an index of another model or format, or a damaged one.
        """
        content, vectors = read_index(folder)
        if content["model"] != model_name(embeddings):
            raise ValueError(
                f"the index in {folder} was built with {content['model']} ({content['dimension']} dimensions), not "
                f"with {model_name(embeddings)}: load it with that model, or build it anew"
            )
        index = cls.__new__(cls)
        for name in cls._settings:
            setattr(index, name, content.get(name, getattr(cls, name)))
        index._fill(check_chunks(content["chunks"]), vectors, embeddings)
        return index


_OWN = FIELDS[:-1]  # all but the metadata
_SAME = 1e-5
"""Scores that differ by less may be equal: FAISS sums in single precision."""


def check_chunks(chunks: Any, name: str = "chunks") -> list[Chunk]:
    """The chunks as a list; a ValueError says what is none, or has the document and id of another."""
    if not isinstance(chunks, Iterable):
        raise ValueError(f"{name}={chunks!r:.80}: must be a list of chunks")
    chunks = list(chunks)
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise ValueError(f"{name} holds a {type(chunk).__name__}: must hold Chunk objects, as a chunker gives")
        if not all(isinstance(value, str) for value in (chunk.text, chunk.document, chunk.id)):
            raise ValueError(f"{name} holds {chunk!r:.160}: its text, document and id must be of type str")
    for (document, chunk_id), times in Counter((c.document, c.id) for c in chunks).most_common(1):
        if times > 1:
            raise ValueError(
                f"{name} holds {times} with document {document!r} and id {chunk_id!r}: together they must be unique; "
                "give each document its own doc_id"
            )
    return chunks


def _check_search(k: Any, min_score: Any) -> int:
    if min_score is not None and not (is_number(min_score) and -1 <= min_score <= 1):
        raise ValueError(f"min_score={min_score!r}: must be None or a cosine, from -1 to 1")
    return check_size("k", k)


def _chunk_vectors(chunks: Sequence[Chunk], embeddings: Embeddings) -> np.ndarray:
    """Unit vectors of the chunks; a blank chunk is not embedded, and has no direction."""
    speaking = [place for place, chunk in enumerate(chunks) if not is_blank(chunk.text)]
    found = unit(embed_in_blocks(embeddings, [chunks[place].text for place in speaking]))
    if len(speaking) == len(chunks):
        return found
    vectors = np.zeros((len(chunks), found.shape[1]), dtype=np.float32)
    vectors[speaking] = found
    return vectors


def _given(vectors: Any, chunks: Sequence[Chunk]) -> np.ndarray:
    """Unit vectors of the chunks that the caller has."""
    vectors = check_vectors(np.asarray(vectors), "vectors")
    if len(vectors) != len(chunks):
        raise ValueError(f"vectors has {len(vectors)} rows: must have one for each of the {len(chunks)} chunks")
    return unit(vectors)


def _has(chunk: Chunk, key: str, value: Any) -> bool:
    """Whether a chunk's field or, where no field has that name, its metadata have the value."""
    if key in _OWN:
        return getattr(chunk, key) == value
    return key in chunk.metadata and chunk.metadata[key] == value
