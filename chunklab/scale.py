"""A corpus that outgrows one process: files in, a table of chunks and vectors out, on every core or every machine.

For whoever has more documents than an afternoon. The work streams through Ray Data (Moritz et al.: "Ray: A Distributed
Framework for Emerging AI Applications", 2018): tasks read, parse and cut some files at a time; actors, which load the
embedding model once, take what they give, and write it as Parquet. Nobody holds the corpus: memory is bounded by what
is under way, some megabytes of documents a core (or one document, where that is larger). What a lost worker was doing
is done again, and what it had written stands. Files are known by their content: a second run does what is new or
changed, and forgets what is gone. Cost: some 15 seconds to start on two cores, then close to the time of one process
divided by the cores. A model that uses all cores by itself, as minilm does, gains on more machines only.
"""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunker
from chunklab.chunk_files import ENDINGS, Problem, document_ids, found
from chunklab.chunk_table import (
    CHUNKS,
    ERROR,
    ERRORS,
    PARTS,
    index_from_parquet,
    parts_in,
    read_chunks,
    recipe_of,
    without,
    write_errors,
)
from chunklab.corpus_worker import TRIES, Writer, cut_files, sha_of
from chunklab.documents import utf_8
from chunklab.models.vectors import check_model
from chunklab.ray_session import load_ray, running, start_ray

__all__ = ["CorpusRun", "chunk_corpus", "index_from_parquet", "read_chunks", "start_ray"]

GROUP_BYTES = 4_000_000
"""Bytes of files that one worker has under way. More would need more memory; fewer, more time for passing them on."""

HASHED_HERE = 500_000_000
"""Up to so many bytes, files that are known already are compared without starting Ray; that takes half a second."""

_READING, _EMBEDDING = 0.25, 0.75  # of a core. Each core has one of both, and works on whichever has something to do.
_UNFINISHED = "unfinished"
_SECONDS = ("reading", "cutting", "embedding", "writing")
_FILES = pa.schema(
    [
        ("document", pa.string()),
        ("path", pa.string()),
        ("file", pa.binary()),
        ("base", pa.binary()),
        ("known", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class CorpusRun:
    """What a run of `chunk_corpus` did.

    Attributes:
        output: the folder that holds the result.
        documents: how many documents are in it now.
        chunks: how many chunks.
        new: documents that were cut in this run, as they are new or changed, or the chunker or the model is another.
        kept: documents that were done before, and are as they were.
        removed: documents of an earlier run that are gone now, or cannot be read any more.
        errors: rows of the table of errors.
        seconds: "all", of this run; and "reading", "cutting", "embedding", "writing", summed over all workers.
    """

    output: Path
    documents: int
    chunks: int
    new: int
    kept: int
    removed: int
    errors: int
    seconds: dict[str, float]


class _File(NamedTuple):
    document: str
    path: Path
    base: Path | None
    size: int


def chunk_corpus(
    paths: str | Path | Iterable[str | Path],
    chunker: Chunker,
    embeddings: Embeddings | None = None,
    output: str | Path = "chunked",
) -> CorpusRun:
    """Read, cut and embed files on all cores, or on a cluster, and write the chunks as Parquet.

    The chunks are those that one process would give, ids included. On a cluster (`ray.init(address="auto")` on one of
    its machines before the call, or its address in RAY_ADDRESS) all machines must have chunklab, and see the files and
    the output under the same paths. Otherwise Ray runs on this machine, and is ended after the call if it was started
    for it.

    A run that was ended half-way is gone on with by the next. While one goes on, the result of the one before stands.

    Args:
        paths: a file, a folder or a pattern such as "notes/*.md"; or a list of these. Ids of documents are their paths
            in the folder given, or the names of files given, with "/"; where two would be the same, the second keeps
            its whole path.
        chunker: cuts the documents. It is sent to the workers, so it must be picklable, and so must a model that it
            holds.
        embeddings: gives the vectors; None: the chunks have none.
        output: a folder, made if it is not there. `chunks/*.parquet` in it has a row a chunk: id, parent, document,
            index, total, start, end, text, metadata (JSON) and vector (float32, unit length). `errors.parquet` has one
            for each document that could not be read or cut in this run: document, path, error. Such a document is tried
            again in each run; its chunks from an earlier run are removed.

    Returns:
        What was done.

    Raises:
        ValueError: an argument that is not allowed, or no file there at all: then the output is left as it was.
        ImportError: Ray is not installed.
        RuntimeError: another run is writing to the output.

    >>> run = chunk_corpus("notes", RecursiveChunker(500), embeddings("static"), "table")  # doctest: +SKIP
    >>> pandas.read_parquet("table/chunks"), pandas.read_parquet("table/errors.parquet")  # doctest: +SKIP
    """
    from filelock import FileLock, Timeout

    began = time.perf_counter()
    _check(paths, chunker, embeddings, output)
    folder = Path(output)
    failures: list[str] = []
    files = _listed(paths, failures)
    if not any(os.path.exists(file.path) for file in files):
        raise ValueError(f"paths={paths!r:.80}: no file there that can be read ({', '.join(ENDINGS)})")
    recipe = recipe_of(chunker, embeddings)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            return _run(files, failures, chunker, embeddings, folder, recipe, began)
    except Timeout:
        raise RuntimeError(f"output={folder}: another run is writing there; wait for it, or give another") from None


def _run(
    files: list[_File],
    failures: list[str],
    chunker: Chunker,
    embeddings: Embeddings | None,
    folder: Path,
    recipe: str,
    began: float,
) -> CorpusRun:
    """All of a run, once it is clear that it can be."""
    for name in (CHUNKS, _UNFINISHED):
        (folder / name).mkdir(exist_ok=True)
    left_over = [place.glob(f"{PARTS}.*.tmp") for place in (folder / CHUNKS, folder / _UNFINISHED)]
    for path in chain(*left_over, folder.glob(f"{ERRORS}.*.tmp"), (folder / _UNFINISHED).glob(TRIES)):
        path.unlink(missing_ok=True)  # of processes that were killed
    noted = parts_in(folder)  # documents without chunks
    before = [*parts_in(folder / CHUNKS), *noted]
    known: dict[str, set[str]] = {}
    sha: str | None
    for part in (*before, *parts_in(folder / _UNFINISHED)):
        if part.recipe == recipe:
            for document, sha in part.documents.items():
                known.setdefault(document, set()).add(sha)

    now: dict[str, str] = {}
    ahead = files
    if sum(file.size for file in files if file.document in known) <= HASHED_HERE:
        now = {f.document: sha for f in files if (sha := sha_of(f.path) if f.document in known else None)}
        now = {document: sha for document, sha in now.items() if sha in known[document]}
        ahead = [file for file in files if file.document not in now]
    kept, seconds, errors = len(now), Counter(dict.fromkeys(_SECONDS, 0.0)), []
    for line in failures:
        place, _, error = utf_8(line).rpartition(": ")
        errors.append({"document": place, "path": place, "error": error})
    empty = {name: sha for part in noted if part.recipe == recipe for name, sha in part.documents.items()}
    for row in _done(ahead, known, chunker, embeddings, folder / _UNFINISHED, recipe) if ahead else ():
        seconds.update({name: row[name] for name in _SECONDS})
        if row["error"] is not None:
            errors.append({name: row[name] for name in ERROR.names})
            continue
        now[row["document"]] = row["sha256"]
        if row["sha256"] in known.get(row["document"], ()):
            kept += 1
        elif not row["chunks"]:
            empty[row["document"]] = row["sha256"]

    empty = {name: sha for name, sha in empty.items() if now.get(name) == sha}
    _settle(folder, recipe, {name: sha for name, sha in now.items() if name not in empty})
    write_errors(folder, errors, recipe, empty)
    gone = {document for part in before for document in part.documents} - set(now)
    chunks = sum(part.rows for part in parts_in(folder / CHUNKS))
    wall = {"all": time.perf_counter() - began}
    return CorpusRun(folder, len(now), chunks, len(now) - kept, kept, len(gone), len(errors), wall | seconds)


def _settle(folder: Path, recipe: str, now: dict[str, str]) -> None:
    """Make the result what it is to be: each document once, as it is now, and nothing else.

    New parts come first and old ones go last: should this be cut short, nothing is lost, and the next run goes on.

    Raises:
        RuntimeError: a part that was there is not any more, or cannot be read.
        ValueError: vectors of several lengths; those of this run are removed.
    """
    result, left, taken = folder / CHUNKS, dict(now), []
    for part in (*parts_in(result), *parts_in(folder / _UNFINISHED)):
        wanted = [name for name, sha in part.documents.items() if part.recipe == recipe and left.get(name) == sha]
        for name in wanted:
            del left[name]
        if wanted:
            taken.append((part, wanted))
    if left:
        raise RuntimeError(
            f"output={folder}: chunks of {len(left)} documents are gone, as of {min(left)!r}; run it again"
        )
    if len(sizes := {part.dimensions or 0 for part, _ in taken}) > 1:
        _clear(folder / _UNFINISHED)
        raise ValueError(
            f"embeddings: vectors of {min(sizes)} numbers and of {max(sizes)} do not go together; is it another model "
            f"under the name of the one before? Then give another output than {folder}"
        )
    stays = set()
    for part, wanted in taken:
        if len(wanted) < len(part.documents):
            stays.add(without(part, wanted, result))
        else:
            part.path.replace(result / part.path.name)
            stays.add(part.path.name)
    for path in result.glob(PARTS):
        if path.name not in stays:
            path.unlink()
    _clear(folder / _UNFINISHED)


def _clear(folder: Path) -> None:
    """Remove what runs have left in a folder, and the folder if nothing of somebody else's is in it."""
    for path in chain(folder.glob(PARTS), folder.glob(f"{PARTS}.*.tmp"), folder.glob(TRIES)):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


# What is asked for.


def _check(paths: Any, chunker: Any, embeddings: Any, output: Any) -> None:
    """Raise ValueError for an argument that is not allowed, and ImportError where there is no Ray."""
    listed = [paths] if isinstance(paths, (str, Path)) else paths
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(p, (str, Path)) for p in listed):
        raise ValueError(f"paths={paths!r:.80}: must be a file or a folder, or a list of these, not empty")
    if not isinstance(chunker, Chunker):
        raise ValueError(f"chunker={chunker!r:.80}: must be a Chunker, as RecursiveChunker(500) is")
    if embeddings is not None:
        check_model(embeddings)
    name = str(output) if isinstance(output, (str, Path)) else ""
    if not name or "\0" in name or name != utf_8(name) or (os.path.exists(name) and not os.path.isdir(name)):
        raise ValueError(f"output={output!r:.80}: must be the path of a folder, which may be new, in UTF-8")
    cloudpickle = load_ray().cloudpickle
    for argument, value in (("chunker", chunker), ("embeddings", embeddings)):
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            raise ValueError(f"{argument}={value!r:.80}: cannot be sent to other processes ({error})") from None


def _listed(paths: Any, failures: list[str]) -> list[_File]:
    """The files that are meant, each with the id of its document."""
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    try:
        places = list(found(map(str, listed), None, ENDINGS, failures))
    except Problem as problem:
        raise ValueError(f"paths: {problem}") from None
    named = zip(document_ids(places), places, strict=True)
    return [_File(name, path, base, _size(path)) for name, (path, base) in named]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


# The stream.


def _done(
    files: list[_File],
    known: dict[str, set[str]],
    chunker: Chunker,
    embeddings: Embeddings | None,
    folder: Path,
    recipe: str,
) -> Iterator[dict[str, Any]]:
    """Have files read, cut, embedded and written, and give what was done with each."""
    ray = load_ray()
    with running(ray):
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        groups = list(_groups(files, known, cores))
        actors = ray.data.ActorPoolStrategy(size=min(cores, len(groups)))
        writer = {"embeddings": embeddings, "folder": os.path.abspath(folder), "recipe": recipe}
        cut = partial(cut_files, chunker=chunker, folder=Path(os.path.abspath(folder)))
        stream = (
            ray.data.from_arrow(groups)
            .map_batches(cut, batch_format="pyarrow", num_cpus=_READING)
            .map_batches(
                Writer, fn_constructor_kwargs=writer, batch_format="pyarrow", num_cpus=_EMBEDDING, compute=actors
            )
        )
        try:
            # All at once, as these are a few words a document, and a stream would have threads that outlive an error.
            done = stream.materialize()
        except BaseException as error:
            # What holds the error, as a notebook does, would hold Ray's actors by it: the next run would wait for them.
            del stream
            _forget(error)
            raise
        for batch in done.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from batch.to_pylist()


def _forget(error: BaseException) -> None:
    """Clear what an error holds on its way, and what those before it hold."""
    errors = [error]
    for one in errors:
        for frame, _ in traceback.walk_tb(one.__traceback__):
            for above, _ in traceback.walk_stack(frame):
                with suppress(RuntimeError):  # it is at work
                    above.clear()
        errors += [before for before in (one.__cause__, one.__context__) if before and before not in errors]
    gc.collect()


def _groups(files: list[_File], known: dict[str, set[str]], cores: int) -> Iterator[pa.Table]:
    """Files that one worker takes at a time; so many groups that all cores have work until the end."""
    most = min(GROUP_BYTES, sum(file.size for file in files) // (8 * cores))
    group: list[dict[str, Any]] = []
    size = 0
    for file in files:
        if group and size + file.size > most:
            yield pa.Table.from_pylist(group, _FILES)
            group, size = [], 0
        size += file.size
        group.append(
            {
                "document": file.document,
                "path": utf_8(file.path.as_posix()),
                "file": os.fsencode(os.path.abspath(file.path)),  # a worker may have another working folder
                "base": file.base and os.fsencode(os.path.abspath(file.base)),
                "known": sorted(known.get(file.document, ())),
            }
        )
    yield pa.Table.from_pylist(group, _FILES)
