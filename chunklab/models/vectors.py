"""Texts to vectors, checked, and computed once.

`embed` asks any LangChain model for vectors and looks at what comes back: as many as texts, of one length, finite. A
provider that drops an item, or gives NaN, would otherwise show up much later as a wrong chunk or a wrong score.
`Cached` puts a model behind a file on disk: it asks batch by batch, waits as long as a busy server says, and keeps each
batch when it arrives, so that a fault loses nothing and a second run asks for nothing. It serves paid models and slow
ones; cost: 0.03 ms to keep a vector, 0.01 ms to read it, 2 kB on disk; the file grows as long as nobody deletes it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.models.tokens import well_formed
from chunklab.models.weights import cache_folder

T = TypeVar("T")
ASKED: ContextVar[list[int] | None] = ContextVar("chunklab_asked", default=None)
"""While somebody counts: where `embed` notes how many texts it was asked for."""


class EmbeddingError(RuntimeError):
    """A model did not give the vectors of a batch; those of the batches before are kept.

    Attributes:
        done: places, among the texts, of those that have their vectors.
        failed: places of the texts of the batch that failed.
    """

    def __init__(self, message: str, done: Sequence[int] = (), failed: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.done, self.failed = list(done), list(failed)


def embed(model: Embeddings, texts: Iterable[str], dtype: type | None = np.float32) -> np.ndarray:
    """The vectors of texts, from any LangChain model.

    Args:
        model: has `encode(texts)`, which gives an array, or LangChain's `embed_documents(texts)`.
        texts: the texts, none of them blank.
        dtype: what the numbers are kept as; None: in the precision of the answer.

    Returns:
        `dtype` of shape (texts, dimensions); no texts: (0, model.dimensions), or (0, 0) where that is not known.

    Raises:
        ValueError: something that is not a model or not a list of texts, or an answer that is not a finite vector a
            text.
    """
    texts = check_texts(texts)
    ask = check_model(model)
    if not texts:
        known = getattr(model, "dimensions", None)
        return np.zeros((0, known if isinstance(known, int) else 0), dtype=dtype)
    if (asked := ASKED.get()) is not None:
        asked.append(len(texts))
    token = ASKED.set(None)  # a cache asks the model behind it: that is the same texts again
    try:
        return _checked(ask(texts), texts, dtype)
    finally:
        ASKED.reset(token)


def check_model(model: Any) -> Callable[[list[str]], Any]:
    """What a model gives the vectors of texts with; a ValueError says what is no model."""
    ask = getattr(model, "encode", None) or getattr(model, "embed_documents", None)
    # A str has an encode too, and a class has everything but a model in it.
    if ask is None or isinstance(model, (str, type)):
        raise ValueError(
            f"embeddings={model!r:.80}: must have embed_documents(texts), as LangChain's Embeddings and what "
            'chunklab.embeddings("minilm") gives have'
        )
    return ask


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list; a ValueError says what is none, as a single str is, whose characters would be embedded."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ValueError(f"texts={texts!r:.80}: must be a list of texts")
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts[{place}] is of type {type(text).__name__}: must be a str")
    return texts


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1 in the same directions; a zero vector stays zero, and so is like nothing.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    vectors = np.asarray(vectors, dtype=np.float32)
    # In double precision: the squares of very long and very short vectors are no float32.
    lengths = np.sqrt(np.einsum("...i,...i->...", vectors, vectors, dtype=np.float64))[..., None]
    return np.divide(vectors, np.where(lengths > 0, lengths, 1), out=np.empty_like(vectors), casting="same_kind")


def _checked(vectors: Any, texts: Sequence[str], dtype: type | None = np.float32) -> np.ndarray:
    if not hasattr(vectors, "__len__") or getattr(vectors, "shape", None) == ():
        raise ValueError(f"asked for {len(texts)} vectors, got {type(vectors).__name__}")
    if len(vectors) != len(texts):
        raise ValueError(f"asked for {len(texts)} vectors, got {len(vectors)}")
    try:
        sizes = [len(vector) for vector in vectors]
    except TypeError as error:
        raise ValueError(f"asked for {len(texts)} vectors, got something else ({error})") from None
    for text, size in zip(texts, sizes, strict=True):
        if not size:
            raise ValueError(f"the vector of {text!r:.60} is empty")
        if size != sizes[0]:
            raise ValueError(f"vectors differ in length: {sizes[0]} for {texts[0]!r:.60}, {size} for {text!r:.60}")
    return _finite(_numbers(vectors, (len(texts), sizes[0]), dtype), texts)


def _numbers(vectors: Any, shape: tuple[int, int], dtype: type | None) -> np.ndarray:
    """The vectors as floats; what is none (texts, dates, complex numbers, lists in lists) is an error."""
    try:
        array = np.asarray(vectors)
        if array.dtype.kind not in "fiubO" or array.shape != shape:
            raise TypeError(f"{array.dtype} of shape {array.shape}")
        with np.errstate(over="ignore"):
            return array.astype(dtype or (array.dtype if array.dtype.kind == "f" else np.float64), copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"asked for {shape[0]} vectors, got something else ({error})") from None


def _finite(array: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    good = np.isfinite(array).all(axis=1)
    if not good.all():
        place = int(np.argmin(good))
        raise ValueError(
            f"the vector of text {place} holds NaN or an infinite value: {texts[place]!r:.60} "
            f"({len(texts) - int(good.sum())} of {len(texts)} texts)"
        )
    return array


class Cached(Embeddings):
    """A model whose vectors are kept on disk, asked batch by batch, and again when it is busy.

    Whatever keeping does not change (max_tokens, token_vectors, ...) is the model's own.

    Args:
        model: any LangChain Embeddings.
        name: names the model and every setting that its vectors depend on; the model's `name` by default.
        folder: where the vectors are kept; the cache folder by default.
        batch_size: texts in one call of the model, and kept at once.
        sleep: waits for so many seconds.

    Raises:
        ValueError: no name, where the model has none: another model's vectors could be taken for its own; a
            `batch_size` that is not a whole number of 1 or more.
    """

    def __init__(
        self,
        model: Embeddings,
        name: str | None = None,
        folder: Path | None = None,
        batch_size: int = 32,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = model
        self.name = name or getattr(model, "name", None)
        if not isinstance(self.name, str):
            raise ValueError(f"name={name!r}: must name the model and its settings, as this model has no name itself")
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size={batch_size!r}: must be a whole number of 1 or more")
        self.key = getattr(model, "key", self.name)
        self._kept = VectorFile(folder or cache_folder())
        self._batch_size, self._sleep = batch_size, sleep

    def __getattr__(self, name: str) -> Any:
        if name == "model" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.model, name)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts: the kept ones, and new ones, kept from now on.

        Args:
            texts: the texts.

        Returns:
            float32 of shape (texts, dimensions).

        Raises:
            EmbeddingError: a batch failed; it says which, and what is done.
            ValueError: the model gave something else than a finite vector a text.
        """
        texts = [well_formed(text) for text in check_texts(texts)]
        if not texts:
            return embed(self.model, texts)
        keys = [hashlib.sha256(f"{self.key}\0{text}".encode()).digest() for text in texts]
        vectors = self._kept.read(keys)
        missing = {key: place for place, key in reversed(list(enumerate(keys))) if key not in vectors}
        places = sorted(missing.values())
        batches = [places[i : i + self._batch_size] for i in range(0, len(places), self._batch_size)]
        for number, batch in enumerate(batches, 1):
            try:
                answer = self._ask([texts[place] for place in batch])
            except ValueError:
                raise  # of what the model answered: it names the text
            except Exception as error:
                done = [place for place, key in enumerate(keys) if key in vectors]
                report = _report(error, number, len(batches), len(done), len(texts))
                raise EmbeddingError(report, done, batch) from error
            new = {keys[place]: vector for place, vector in zip(batch, answer, strict=True)}
            self._kept.write(new)
            vectors.update(new)
        return _checked([vectors[key] for key in keys], texts)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """LangChain's form of `encode`."""
        return self.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """LangChain's form of `encode`, for one text."""
        return self.encode([text])[0].tolist()

    def _ask(self, texts: list[str]) -> np.ndarray:
        """One batch, asked for again as long as the model is only busy."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return embed(self.model, texts)
            except Exception as error:
                pause = pause_after(error, attempt, (ConnectionError, TimeoutError, *getattr(self.model, "busy", ())))
                if pause is None or pause > LONGEST_PAUSE or attempt == ATTEMPTS:
                    raise
            self._sleep(pause)
        raise AssertionError("unreachable")


# Without a word from the server the pauses are 2, 4, 8, 16, 32 seconds: together more than the minute in which
# providers count requests.
ATTEMPTS = 6
LONGEST_PAUSE = 120


def pause_after(error: Exception, attempt: int, busy: tuple[type[Exception], ...]) -> float | None:
    """Seconds to wait before the next attempt; None where another would fail like this one."""
    if getattr(error, "code", None) == "insufficient_quota":
        return None
    asked = _retry_after(error)
    if asked is not None:
        return asked
    status = _status(error)
    passing = isinstance(error, busy) or status in (408, 409, 429) or (isinstance(status, int) and status >= 500)
    return 2.0**attempt if passing else None


def _status(error: BaseException) -> Any:
    return getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)


def key_advice(error: BaseException) -> str:
    """What to do where a server does not take the key; "" for any other error."""
    if _status(error) not in (401, 403):
        return ""
    return (
        " The server does not take the key (for OpenAI's models the one in OPENAI_API_KEY): correct it, or unset it to "
        "use the models of this machine, and start the kernel anew."
    )


def _retry_after(error: Exception) -> float | None:
    """The seconds that the server asks to wait, from its Retry-After header (seconds, or a date)."""
    headers = getattr(getattr(error, "response", None), "headers", None) or getattr(error, "headers", None) or {}
    said = getattr(error, "retry_after", None)
    if said is None:
        said = next((value for key, value in headers.items() if key.lower() == "retry-after"), None)
    if said is None:
        return None
    try:
        return max(0.0, float(str(said)))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(str(said)).timestamp() - time.time())
    except ValueError:
        return None


def _report(error: Exception, number: int, batches: int, done: int, total: int) -> str:
    asked = _retry_after(error)
    wait = "" if asked is None else f" The server asks to wait {asked:.0f} seconds."
    return (
        f"batch {number} of {batches} failed: {type(error).__name__}: {error}.{wait}{key_advice(error)} {done} of "
        f"{total} texts have their vectors, which are kept: run the same again, and it goes on from there"
    )


class VectorFile:
    """A file of vectors by key, for many threads and processes at once.

    It is a convenience: where it cannot be read or written (no space, no permission), a warning says so and the work
    goes on without it. A damaged file is set aside and begun again, and a damaged vector is taken for a missing one.

    Args:
        folder: the folder of the file.
    """

    def __init__(self, folder: Path) -> None:
        self.path = Path(folder) / "vectors.sqlite3"

    def read(self, keys: Sequence[bytes]) -> dict[bytes, np.ndarray]:
        """The vectors that are there, by key."""

        def work(db: sqlite3.Connection) -> dict[bytes, np.ndarray]:
            found = {}
            for i in range(0, len(keys), 500):
                some = keys[i : i + 500]
                query = f"SELECT key, vector, crc FROM vectors WHERE key IN ({','.join('?' * len(some))})"
                for key, vector, crc in db.execute(query, some):
                    if zlib.crc32(vector) == crc:
                        found[key] = np.frombuffer(vector, dtype="<f4")
            return found

        return self._with(work) or {}

    def write(self, vectors: dict[bytes, np.ndarray]) -> None:
        """Keep vectors, in one transaction."""
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        values = [(key, vector, zlib.crc32(vector)) for key, vector in rows]
        self._with(lambda db: db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", values))

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What `work` gives with an open database, or None if there can be none."""
        reason: Exception | None = None
        for _ in range(2):
            try:
                if not self.path.exists():
                    self._begin()
                # One connection a call: about 0.1 ms, and no thought of threads, forks and pickles.
                with closing(sqlite3.connect(self.path, timeout=30)) as db, db:
                    return work(db)
            except (sqlite3.DatabaseError, OSError) as error:
                reason = error
                if not _means_damage(error):
                    break
            try:
                self._set_aside()
            except OSError:
                break  # on Windows nobody may move a file that another process has open
        warnings.warn(f"vectors are not kept in {self.path}: {reason}", stacklevel=5)
        return None

    def _begin(self) -> None:
        """Make the file, whole from the moment that it has its name."""
        with self._lock():
            if self.path.exists():
                return
            new = self.path.with_suffix(".new")
            _remove(new)
            with closing(sqlite3.connect(new)) as db:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL, crc INTEGER NOT NULL)")
            os.replace(new, self.path)

    def _set_aside(self) -> None:
        with self._lock():
            if not self._is_damaged():
                return  # another process was quicker
            aside = self.path.with_suffix(".damaged.sqlite3")
            os.replace(self.path, aside)
            _remove(self.path)
        warnings.warn(f"{self.path} was damaged: set aside as {aside.name}, and begun again", stacklevel=6)

    def _is_damaged(self) -> bool:
        if not self.path.exists():
            return False
        try:
            with closing(sqlite3.connect(self.path, timeout=30)) as db:
                db.execute("SELECT key, vector, crc FROM vectors LIMIT 1").fetchone()
                return db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",)
        except sqlite3.DatabaseError as error:
            return _means_damage(error)

    def _lock(self) -> Any:
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.with_suffix(".lock"))


def _means_damage(error: Exception) -> bool:
    """Whether the file itself is bad, rather than busy, read-only or on a full disk."""
    if isinstance(error, sqlite3.OperationalError):
        return str(error).startswith("no such")  # a table or column: the file is empty, or not ours
    return isinstance(error, sqlite3.DatabaseError)


def _remove(path: Path) -> None:
    """Remove a database and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
