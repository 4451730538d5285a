"""Find the chunks that are nearest in meaning to a question.

A `ChunkIndex` holds the vectors of chunks in FAISS (Johnson, Douze, Jégou: "Billion-scale similarity search with
GPUs", 2017) as unit vectors with exact inner product: scores are cosines, from -1 to 1, and nothing is approximate. It
serves the lessons, the scoreboard, and collections of up to some hundred thousand chunks. Cost: one embedding a chunk,
then one pass over all vectors a search. An index is kept on disk as JSON and a FAISS file, never as a pickle: loading
one runs no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunk, check_size, is_blank
from chunklab.models.vectors import check_model, embed, unit

Where = Callable[[Chunk], bool] | Mapping[str, Any]
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a search found: its cosine with the query, from -1 to 1, and its rank, from 1."""

    chunk: Chunk
    score: float
    rank: int


class ChunkIndex:
    """Chunks, ready to be searched by meaning.

    Args:
        chunks: what to search; document and id together name a chunk, and must be unique.
        embeddings: the model that gives vectors, for the chunks now and for the queries later.

    Raises:
        ValueError: two chunks with one document and id; or what the model gave is not usable.

    Attributes:
        chunks: the chunks, in the order given.
        vectors: float32 (chunks, dimensions), of unit length; all zeros where the model gave no direction.
        model: the name of the model.
    """

    def __init__(self, chunks: Iterable[Chunk], embeddings: Embeddings) -> None:
        chunks = _checked(chunks)
        self._fill(chunks, _chunk_vectors(chunks, embeddings), embeddings)

    def _fill(self, chunks: list[Chunk], vectors: np.ndarray, embeddings: Embeddings) -> None:
        import faiss

        self.chunks, self.vectors, self.embeddings = chunks, vectors, embeddings
        self.model = model_name(embeddings)
        # A vector of zeros has a cosine with nothing; among equal scores it comes last.
        self._no_direction = ~vectors.any(axis=1) if len(chunks) else np.zeros(0, dtype=bool)
        self._faiss = faiss.IndexFlatIP(vectors.shape[1])
        if vectors.size:
            self._faiss.add(vectors)

    def __len__(self) -> int:
        return len(self.chunks)

    def __repr__(self) -> str:
        return f"ChunkIndex of {len(self)} chunks, {self.vectors.shape[1]} dimensions, {self.model}"

    def search(self, query: str, k: int = 4, min_score: float | None = None, where: Where | None = None) -> list[Hit]:
        """The chunks nearest to a query.

        Args:
            query: a question, or any text.
            k: how many hits at most.
            min_score: leave out what scores less; a cosine, from -1 to 1.
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
        given = isinstance(queries, np.ndarray)
        queries = _vectors_given(queries) if given else _queries(queries)
        k = _check_search(k, min_score)
        allowed = self._allowed(where)
        if not len(allowed) or not len(queries) or not self.vectors.size:
            return [[] for _ in queries]
        vectors = queries if given else query_vectors(queries, self.embeddings)
        if vectors.shape[1] != self.vectors.shape[1]:
            source = "the vectors given" if given else model_name(self.embeddings)
            raise ValueError(
                f"the query has {vectors.shape[1]} dimensions ({source}), the index has {self.vectors.shape[1]} "
                f"({self.model}): search with the model that the index was built with"
            )
        vectors = unit(vectors)
        places = self._nearest(vectors, min(k, len(allowed)), allowed)
        return [self._hits(query, near, k, min_score) for query, near in zip(vectors, places, strict=True)]

    def _nearest(self, queries: np.ndarray, k: int, allowed: np.ndarray) -> list[np.ndarray]:
        """For each query the places of the k nearest, and of all that may score the same as the last of them."""
        import faiss

        everything = len(allowed) == len(self)
        selected = None if everything else faiss.SearchParameters(sel=faiss.IDSelectorBatch(allowed))
        places: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(queries)
        pending, wanted = np.arange(len(queries)), min(k + 8, len(allowed))
        while len(pending):
            scores, found = self._faiss.search(queries[pending], wanted, params=selected)
            # FAISS breaks ties as it likes: go on until the last score is clearly below that of the k-th.
            done = (scores[:, -1] < scores[:, k - 1] - _SAME) | (wanted == len(allowed))
            for row in np.flatnonzero(done):
                close = scores[row] >= scores[row, k - 1] - _SAME
                places[pending[row]] = found[row][close & (found[row] >= 0)]
            pending, wanted = pending[~done], min(wanted * 4, len(allowed))
        return places

    def _hits(self, query: np.ndarray, places: np.ndarray, k: int, min_score: float | None) -> list[Hit]:
        if not query.any():
            return []
        # Each row on its own and in double precision: equal vectors get equal scores, in any order and batch.
        scores = np.clip((self.vectors[places].astype(np.float64) * query).sum(axis=1), -1, 1)
        best = np.lexsort((places, self._no_direction[places], -scores))[:k]
        return [
            Hit(self.chunks[places[i]], float(scores[i]), rank)
            for rank, i in enumerate(best, start=1)
            if min_score is None or scores[i] >= min_score
        ]

    def _allowed(self, where: Where | None) -> np.ndarray:
        """The places of the chunks that may be found."""
        if where is None:
            return np.arange(len(self))
        if isinstance(where, Mapping):
            seen = [_properties(chunk) for chunk in self.chunks]
            for key in where:
                if seen and not any(key in properties for properties in seen):
                    known = ", ".join(sorted({str(name) for properties in seen for name in properties}))
                    raise ValueError(f"where has the key {key!r}, which no chunk has; there are {known}")
            tests = (all(key in p and p[key] == value for key, value in where.items()) for p in seen)
        elif callable(where):
            tests = (bool(where(chunk)) for chunk in self.chunks)
        else:
            raise ValueError(f"where={where!r}: must be a function of a chunk, or a dictionary of values")
        return np.flatnonzero(np.fromiter(tests, dtype=bool, count=len(self)))

    def save(self, folder: str | Path) -> None:
        """Write the index into a folder, whole or not at all: a crash leaves the one that was there.

        Args:
            folder: made if it is not there; other files in it are left alone. A file .lock in it lets one at a time
                save.

        Raises:
            ValueError: metadata that JSON cannot hold.
        """
        import faiss
        from filelock import FileLock

        folder = Path(folder)
        data = faiss.serialize_index(self._faiss).tobytes()
        content = {
            "format": FORMAT,
            "model": self.model,
            "dimension": self.vectors.shape[1],
            "count": len(self),
            "vectors": f"{_sha(data)}.faiss",
            "chunks": [{name: getattr(chunk, name) for name in _FIELDS} for chunk in self.chunks],
        }
        content["sha256"] = _sha(_as_json(content))
        folder.mkdir(parents=True, exist_ok=True)
        # The vectors' file is named after what it holds, so the old pair stays whole until index.json is replaced. Of
        # two that save at once, one waits: it would take the other's vectors for old ones.
        with FileLock(folder / ".lock"):
            _write(folder / content["vectors"], data)
            _write(folder / "index.json", _as_json(content))
            for path in folder.glob("*.faiss"):
                if _OURS.fullmatch(path.name) and path.name != content["vectors"]:
                    path.unlink(missing_ok=True)

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
            ValueError: an index of another model or format, or a damaged one.
        """
        content, vectors = _read(Path(folder))
        if content["model"] != model_name(embeddings):
            raise ValueError(
                f"the index in {folder} was built with {content['model']} ({content['dimension']} dimensions), not "
                f"with {model_name(embeddings)}: load it with that model, or build it anew"
            )
        index = cls.__new__(cls)
        index._fill(content["chunks"], vectors, embeddings)
        return index


def model_name(embeddings: Embeddings) -> str:
    """What to call a model: its `name`, or the `model` of a LangChain class, else its class."""
    for attribute in ("name", "model", "model_name"):
        name = getattr(embeddings, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(embeddings).__name__


def query_vectors(queries: Sequence[str], embeddings: Embeddings) -> np.ndarray:
    """The vectors of questions, float32 (queries, dimensions); some models treat these unlike documents."""
    check_model(embeddings)
    if hasattr(embeddings, "encode") or not queries:
        return embed(embeddings, list(queries))
    return embed(_AsQueries(embeddings), list(queries))


class _AsQueries(Embeddings):
    """A model that takes every text for a query, so that `embed` and its checks serve queries too."""

    def __init__(self, model: Embeddings) -> None:
        self.name = model_name(model)
        self._model = model

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._model.embed_query(text) for text in texts]


_SAME = 1e-5
"""Scores that differ by less may be equal: FAISS sums in single precision."""

_OURS = re.compile(r"[0-9a-f]{64}\.faiss")
_FIELDS = [field.name for field in fields(Chunk)]  # metadata is the last
_KEYS = {"format": int, "model": str, "dimension": int, "count": int, "vectors": str, "chunks": list}


def _checked(chunks: Any) -> list[Chunk]:
    if not isinstance(chunks, Iterable):
        raise ValueError(f"chunks={chunks!r:.80}: must be a list of chunks")
    chunks = list(chunks)
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise ValueError(f"chunks holds a {type(chunk).__name__}: must hold Chunk objects, as a chunker gives")
    for (document, chunk_id), times in Counter((c.document, c.id) for c in chunks).most_common(1):
        if times > 1:
            raise ValueError(
                f"chunks holds {times} with document {document!r} and id {chunk_id!r}: together they must be unique; "
                "give each document its own doc_id"
            )
    return chunks


def _check_search(k: Any, min_score: Any) -> int:
    if min_score is not None and not (isinstance(min_score, Real) and -1 <= min_score <= 1):
        raise ValueError(f"min_score={min_score!r}: must be None or a cosine, from -1 to 1")
    return check_size("k", k)


def _queries(queries: Any) -> list[str]:
    if isinstance(queries, str) or not isinstance(queries, Iterable):
        raise ValueError(f"queries={queries!r:.80}: must be a list of texts; for one text there is search")
    queries = list(queries)
    for query in queries:
        if not isinstance(query, str) or is_blank(query):
            raise ValueError(f"query={query!r:.80}: must be a text, and not a blank one (vectors: as a numpy array)")
    return queries


def _vectors_given(vectors: np.ndarray) -> np.ndarray:
    """The vectors as float32 (queries, dimensions)."""
    if vectors.dtype.kind not in "fiu" or vectors.ndim not in (1, 2):
        raise ValueError(
            f"queries is an array of {vectors.dtype} of shape {vectors.shape}: must be numbers (queries, dimensions)"
        )
    with np.errstate(over="ignore"):
        vectors = np.atleast_2d(vectors).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError("queries holds a number that is not finite (NaN or infinity)")
    return vectors


def _chunk_vectors(chunks: Sequence[Chunk], embeddings: Embeddings) -> np.ndarray:
    """Unit vectors of the chunks; a blank chunk is not embedded, and has no direction."""
    speaking = [place for place, chunk in enumerate(chunks) if not is_blank(chunk.text)]
    found = unit(embed(embeddings, [chunks[place].text for place in speaking]))
    vectors = np.zeros((len(chunks), found.shape[1]), dtype=np.float32)
    vectors[speaking] = found
    return vectors


def _properties(chunk: Chunk) -> dict[str, Any]:
    return {**chunk.metadata, **{name: getattr(chunk, name) for name in _FIELDS[:-1]}}


def _as_json(content: dict[str, Any]) -> bytes:
    try:
        return json.dumps(content, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"the chunks' metadata cannot be saved as JSON ({error}): use texts, numbers, lists") from None


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there, so that nobody ever sees half of it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(folder: Path) -> tuple[dict[str, Any], np.ndarray]:
    """What index.json holds, and the vectors; read again where somebody has just saved another index there."""
    content = _read_content(folder)
    while True:
        try:
            return content, _read_vectors(folder, content)
        except FileNotFoundError:
            before, content = content, _read_content(folder)
            if content["vectors"] == before["vectors"]:
                raise


def _read_content(folder: Path) -> dict[str, Any]:
    """What index.json holds, checked against its own checksum."""
    path = folder / "index.json"
    if not path.is_file():
        raise FileNotFoundError(f"no index in {folder}: it holds no index.json")
    if path.is_symlink():
        raise ValueError(f"{path} is a link, which may lead outside the folder: it is not opened")
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != FORMAT:
            raise ValueError(f"it has format {content['format']!r}, and this version reads {FORMAT}")
        checksum = content.pop("sha256")
        whole = checksum == _sha(_as_json(content)) and all(type(content[k]) is kind for k, kind in _KEYS.items())
        if not whole or len(content["chunks"]) != content["count"]:
            raise ValueError("it is not what was saved")
        content["chunks"] = [Chunk(**row) for row in content["chunks"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}): build the index anew") from None
    return content


def _read_vectors(folder: Path, content: dict[str, Any]) -> np.ndarray:
    """The vectors, from a file that must lie in the folder itself and be what was saved."""
    import faiss

    name, shape = content["vectors"], (content["count"], content["dimension"])
    path = folder / name
    if not _OURS.fullmatch(name) or path.is_symlink():
        raise ValueError(f"the index in {folder} names a file that may lie outside it, {name!r}: it is not opened")
    if not path.is_file():
        raise FileNotFoundError(f"half of the index in {folder} is missing: {name}")
    data = path.read_bytes()
    if f"{_sha(data)}.faiss" == name:
        stored = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8))
        if isinstance(stored, faiss.IndexFlatIP) and (stored.ntotal, stored.d) == shape:
            return stored.reconstruct_n(0, stored.ntotal) if stored.ntotal else np.zeros(shape, np.float32)
    raise ValueError(f"{path} is damaged (it is not what was saved): build the index anew")
