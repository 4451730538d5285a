"""An index on disk: the chunks as JSON beside a FAISS file, named by what it holds.

For `ChunkIndex.save` and `load`. No pickle: reading one runs no code, and opens nothing outside its folder. Whatever
stops a save half-way, the index that was there is still whole. Cost: the size of the vectors, and one fsync a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from chunklab.chunk import Chunk

FIELDS = [field.name for field in fields(Chunk)]  # metadata is the last
_FORMAT = 1
_OURS = re.compile(r"[0-9a-f]{64}\.faiss")
_HALF = re.compile(r"(index\.json|[0-9a-f]{64}\.faiss)\.\d+\.tmp")
_KEYS = {"format": int, "model": str, "dimension": int, "count": int, "vectors": str, "chunks": list}


def write_index(folder: str | Path, content: dict[str, Any], index: Any) -> None:
    """Write an index into a folder, whole or not at all.

    Args:
        folder: made if it is not there.
        content: its model, dimension and chunks, these as dictionaries.
        index: the FAISS index of their vectors.

    Raises:
        ValueError: a folder that is no path, metadata that JSON cannot hold.
    """
    import faiss
    from filelock import FileLock

    folder = _checked_folder(folder)
    data = faiss.serialize_index(index).tobytes()
    content = {"format": _FORMAT, "count": len(content["chunks"]), "vectors": f"{_sha(data)}.faiss", **content}
    content["sha256"] = _sha(_as_json(content))
    if any(_has_other_keys(chunk["metadata"]) for chunk in content["chunks"]):
        raise ValueError("the chunks' metadata cannot be saved as JSON (a key is no text): use texts as keys")
    folder.mkdir(parents=True, exist_ok=True)
    # The vectors' file is named after what it holds, so the old pair stays whole until index.json is replaced. Of two
    # that save at once, one waits: it would take the other's vectors for old ones.
    with FileLock(folder / ".lock"):
        for path in folder.glob("*.tmp"):
            if _HALF.fullmatch(path.name):  # of a process that was killed
                path.unlink(missing_ok=True)
        _write(folder / content["vectors"], data)
        _write(folder / "index.json", _as_json(content))
        for path in folder.glob("*.faiss"):
            if _OURS.fullmatch(path.name) and path.name != content["vectors"]:
                path.unlink(missing_ok=True)


def _checked_folder(folder: Any) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"folder={folder!r:.80}: must be a path")
    return Path(folder)


def _has_other_keys(value: Any) -> bool:
    """Whether a dictionary in it has a key that is no text: JSON would make it one, and of 1 and "1" the same."""
    ahead = [value]
    while ahead:
        value = ahead.pop()
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                return True
            ahead += value.values()
        elif isinstance(value, (list, tuple)):
            ahead += value
    return False


def _as_json(content: dict[str, Any]) -> bytes:
    try:
        # Half of a surrogate pair is kept as it is; JSON's own way to write one would join two halves.
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
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


def read_index(folder: str | Path) -> tuple[dict[str, Any], np.ndarray]:
    """What index.json holds, and the vectors; read again where somebody has just saved another index there."""
    folder = _checked_folder(folder)
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
        content = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
        if content["format"] != _FORMAT:
            raise ValueError(f"it has format {content['format']!r}, and this version reads {_FORMAT}")
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
        try:
            stored = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8))
        except (RuntimeError, MemoryError):
            stored = None
        # Without dimensions, of blank chunks alone, FAISS holds nothing.
        if isinstance(stored, faiss.IndexFlatIP) and (stored.ntotal, stored.d) == (shape if shape[1] else (0, 0)):
            return stored.reconstruct_n(0, stored.ntotal) if stored.ntotal else np.zeros(shape, np.float32)
    raise ValueError(f"{path} is damaged (it is not what was saved): build the index anew")
