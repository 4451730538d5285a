"""What a worker of `chunk_corpus` does with some files: read and cut them, or embed and write what was cut.

For `scale.py`, which hands the work out, and for whoever would do it with another engine than Ray: nothing here knows
of one. Both halves take a table and give one, and done again they give the same. At which document a worker was, should
it die, stands in a small file: one that kills each worker is an error like others. Cost: that of reading, cutting and
embedding.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunker, is_blank
from chunklab.chunk_table import chunk_rows, write_part
from chunklab.chunkers.distances import embed_in_blocks
from chunklab.documents import MAX_BYTES, read_document
from chunklab.models.vectors import unit
from chunklab.queries import model_name

TRIES = "[0-9a-f]" * 32 + ".try"
"""What the files of `Tries` are called."""

_HELD = 50_000_000  # bytes of chunks that a worker gathers before it passes them on
_DEATHS = 3  # of workers, until what they were at is taken to be the reason; Ray alone would go on for ever
_DONE = [("document", pa.string()), ("path", pa.string()), ("sha256", pa.string()), ("error", pa.string())]
_DONE += [(name, pa.float64()) for name in ("reading", "cutting")]


def cut_files(files: pa.Table, chunker: Chunker, folder: Path) -> Iterator[pa.Table]:
    """Read and cut files; gives a row a document, with its chunks in it or with the error."""
    rows, chunks, held = [], [], 0
    with Tries(folder, files["document"].to_pylist(), "cut") as tries:
        for place, file in enumerate(files.to_pylist()):
            tries.begin(place)
            row, found_chunks = _cut_one(file, chunker, tries.deaths[place])
            rows.append(row)
            chunks.append(found_chunks)
            held += found_chunks.nbytes
            if held > _HELD:  # small files may unpack to a thousand times their size
                yield _rows_of(rows, chunks)
                rows, chunks, held = [], [], 0
        if rows:
            yield _rows_of(rows, chunks)


def _rows_of(rows: list[list[Any]], chunks: list[pa.Array]) -> pa.Table:
    columns = [pa.array(column, kind) for column, (_, kind) in zip(zip(*rows, strict=True), _DONE, strict=True)]
    ends = np.cumsum([0, *map(len, chunks)])
    nested = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.concat_arrays(chunks))
    return pa.table([*columns, nested], names=[*(name for name, _ in _DONE), "chunks"])


def _cut_one(file: dict[str, Any], chunker: Chunker, deaths: int) -> tuple[list[Any], pa.Array]:
    """What was done with one file, and its chunks; `deaths` workers have died of it."""
    times, chunks = [time.perf_counter()], chunk_rows([])
    path: Any
    path, base = (Path(os.fsdecode(file[name])) if file[name] else None for name in ("file", "base"))
    sha, error = None, None
    try:
        if deaths >= _DEATHS:
            raise RuntimeError(f"{deaths} workers have died while they read or cut it")
        # First its checksum, then the document: should the file change in between, the next run does it again.
        sha = sha_of(path)
        if sha is None or sha not in file["known"]:
            document = read_document(path.relative_to(base) if base else path, base=base)
            if sha is None:
                raise RuntimeError("it has changed while it was read")
            times.append(time.perf_counter())
            chunks = chunk_rows(chunker.chunk(document.text, file["document"]))
    except Exception as problem:  # one document must not cost what the others give
        said = str(problem).partition(f"{path.name} ")[2] if isinstance(problem, OSError) else ""
        error = (said or f"{type(problem).__name__}: {problem}").encode("utf-8", "replace").decode()
    times += [time.perf_counter()] * (3 - len(times))
    return [file["document"], file["path"], sha, error, times[1] - times[0], times[2] - times[1]], chunks


class Tries:
    """At which document of a group workers have died: a file that outlives them says how far each came."""

    def __init__(self, folder: Path, documents: list[str], work: str) -> None:
        name = hashlib.sha256("\0".join([work, *documents]).encode()).hexdigest()[:32]
        self._path = folder / f"{name}.try"
        begun = list(map(int, self._path.read_text().split())) if self._path.exists() else []
        # Each came from the first document up to the one before the next began again at the first.
        ended = [place for place, after in zip(begun, [*begun, 0][1:], strict=True) if after == 0]
        self.deaths = Counter(ended)

    def __enter__(self) -> Tries:
        self._file = self._path.open("a", buffering=1)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def begin(self, place: int) -> None:
        """Note that a document is begun, before it is."""
        self._file.write(f"{place}\n")


class Writer:
    """Embeds and writes what was cut. An actor: it has the model loaded."""

    def __init__(self, embeddings: Embeddings | None, folder: str, recipe: str) -> None:
        # There is an actor for each core: threads of the tokenizer's would only be in each other's way.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self.embeddings, self.folder, self.recipe = embeddings, Path(folder), recipe

    def __call__(self, documents: pa.Table) -> pa.Table:
        with Tries(self.folder, documents["document"].to_pylist(), "embed") as tries:
            if tries.deaths[0] >= _DEATHS:
                raise RuntimeError(
                    f"{_DEATHS} workers have died while they embedded {documents['document'][0]} and more"
                )
            tries.begin(0)
            began = time.perf_counter()
            rows = pa.compute.list_flatten(documents["chunks"]).combine_chunks()
            vectors = None
            if self.embeddings is not None and len(rows):
                vectors = _vectors(self.embeddings, rows.field("text").to_pylist())
            embedded = time.perf_counter()
            if len(rows):
                self._write(documents, rows, vectors)
            took = {"embedding": embedded - began, "writing": time.perf_counter() - embedded}
        counts = pa.compute.list_value_length(documents["chunks"])
        done = documents.drop_columns("chunks").append_column("chunks", counts)
        for name, seconds in took.items():  # those of the whole group stand in its first row
            done = done.append_column(name, pa.array([seconds, *[0.0] * (len(done) - 1)]))
        return done

    def _write(self, documents: pa.Table, rows: pa.Array, vectors: np.ndarray | None) -> None:
        with_chunks = documents.filter(pa.compute.greater(pa.compute.list_value_length(documents["chunks"]), 0))
        cut = dict(zip(*(with_chunks[name].to_pylist() for name in ("document", "sha256")), strict=True))
        model = None if self.embeddings is None else model_name(self.embeddings)
        write_part(self.folder, rows, vectors, self.recipe, model, cut)


def _vectors(embeddings: Embeddings, texts: list[str]) -> np.ndarray:
    """The unit vectors of texts, as `ChunkIndex` has them: a blank one has no direction."""
    speaking = [place for place, text in enumerate(texts) if not is_blank(text)]
    # Where all are blank, some word tells how many numbers a vector has.
    found_vectors = unit(embed_in_blocks(embeddings, [texts[place] for place in speaking] or ["word"]))
    vectors = np.zeros((len(texts), found_vectors.shape[1]), dtype=np.float32)
    vectors[speaking] = found_vectors[: len(speaking)]
    return vectors


def sha_of(path: Path) -> str | None:
    """The checksum of a file's bytes; None for what is no file, or more than is read."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            state = os.fstat(file.fileno())
            if stat.S_ISREG(state.st_mode) and state.st_size <= MAX_BYTES:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        pass  # read_document says what is wrong
    return None
