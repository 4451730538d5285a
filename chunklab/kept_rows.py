"""Rows that a search has measured, kept in a file, so that a second run measures only what is new.

For `sweep`. A row is kept together with what it was measured with, as short digests: documents, questions, model,
method. Where one of these has changed, the row does not count any more, and the caller learns which it was. The file is
JSON, a line a row, written as soon as it is there: a fault loses the row that was being measured and no other. No cost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from chunklab.queries import model_name


class KeptRows:
    """The rows in a file; without a path, those of this run alone.

    Args:
        path: the file, made if it is not there.

    Raises:
        ValueError: a path that is none, that has no folder, or a file that holds something else.

    >>> rows = KeptRows(None)
    >>> rows.put("recursive", {"questions": "1f"}, {"recall": 71.5})
    >>> rows.get("recursive", {"questions": "1f"}), rows.get("recursive", {"questions": "2a"})
    ({'recall': 71.5}, None)
    >>> rows.changed("recursive", {"questions": "2a"})
    {'questions'}
    """

    def __init__(self, path: str | Path | None) -> None:
        self._rows: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        self._path = None if path is None else _checked_path(path)
        for name, made_with, row in _read(self._path) if self._path and self._path.exists() else ():
            self._rows.setdefault(name, []).append((made_with, row))

    def get(self, name: str, made_with: Mapping[str, Any]) -> dict[str, Any] | None:
        """The row of this name that was measured with these; None if there is none."""
        return next((row for had, row in self._rows.get(name, []) if had == made_with), None)

    def changed(self, name: str, made_with: Mapping[str, Any]) -> set[str]:
        """In what the last row of this name was measured with something else; nothing where there is no such row."""
        had = self._rows[name][-1][0] if name in self._rows else made_with
        return {part for part in {*had, *made_with} if had.get(part) != made_with.get(part)}

    def put(self, name: str, made_with: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        """Keep a row, from now on and in the file."""
        self._rows.setdefault(name, []).append((dict(made_with), dict(row)))
        if self._path is None:
            return
        line = json.dumps({"run": name, "made_with": made_with, "row": row}, ensure_ascii=False)
        with self._path.open("a+b") as file:
            file.seek(max(0, file.seek(0, 2) - 1))
            torn = file.read(1) not in (b"", b"\n")  # a fault in the middle of a line
            file.write(b"\n" * torn + line.encode() + b"\n")


def _checked_path(path: Any) -> Path:
    if not isinstance(path, (str, Path)) or not str(path):
        raise ValueError(f"path={path!r:.80}: must be None or the name of a file")
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"path={str(path)!r:.200}: must be a file, in a folder that is there")
    return path


def _read(path: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The rows of a file; a line that was not written to its end is passed over."""
    lines = path.read_bytes().splitlines()
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            name, made_with, row = found["run"], found["made_with"], found["row"]
            if not (isinstance(name, str) and isinstance(made_with, dict) and isinstance(row, dict)):
                raise TypeError
        except (ValueError, TypeError, KeyError, RecursionError):
            if number == 1 and not line.startswith(b'{"run": '):
                raise ValueError(f"path={str(path)!r:.200}: must be a new file, or one that sweep has made") from None
            continue
        yield name, made_with, row


def digest(value: Any) -> str:
    """A short name for what a value is: the same in every process, another one where it has changed.

    Models count by their names. Functions of a notebook count by what they do and by the values that they use, so that
    an edited lambda is noticed; what is imported counts by its name.

    >>> digest([1, "a"]) == digest([1, "a"]) != digest([1, "b"])
    True
    """
    return hashlib.sha256(json.dumps(_described(value, {}), sort_keys=True).encode()).hexdigest()[:16]


def _described(value: Any, seen: dict[int, Any]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
        return repr(value)
    inner = partial(_described, seen=seen)
    if isinstance(value, Mapping):
        return [[inner(key), inner(item)] for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(inner(item)) for item in value)
    if isinstance(value, (list, tuple)):
        return [inner(item) for item in value]
    if id(value) in seen:  # a function that uses itself
        return "…"
    seen[id(value)] = value  # kept, so that nothing else gets its number
    kind = type(value)
    if isinstance(value, (FunctionType, type)):
        return [value.__module__, value.__qualname__, *_own_code(value, inner)]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, MethodType):
        return [inner(value.__func__), inner(value.__self__)]
    if isinstance(value, partial):
        return [inner(value.func), inner(value.args), inner(value.keywords)]
    if isinstance(value, CodeType):
        return [value.co_code.hex(), inner(value.co_consts), list(value.co_names)]
    about = [kind.__module__, kind.__qualname__, *_own_code(kind, inner)]
    if hasattr(value, "embed_documents") or hasattr(value, "ainvoke"):  # a model: its name says what it is
        return [*about, str(getattr(value, "key", "") or model_name(value))]
    if kind.__module__.split(".")[0] == "chunklab" or len(about) > 2:
        slots = [name for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
        return [*about, inner(getattr(value, "__dict__", {})), [[name, inner(getattr(value, name))] for name in slots]]
    return [*about, str(getattr(value, "pattern", ""))]


def _own_code(value: Any, inner: Any) -> list[Any]:
    """What a function or class of a notebook does; nothing for what can be imported, which its name says."""
    if value.__module__ != "__main__" and "<" not in value.__qualname__:
        return []
    if isinstance(value, type):
        return [inner({name: part for name, part in vars(value).items() if isinstance(part, FunctionType)})]
    code = value.__code__
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    used = {name: value.__globals__[name] for name in _names(code) if name in value.__globals__}
    return [inner(part) for part in (code, value.__defaults__, value.__kwdefaults__, cells, used)]


def _names(code: CodeType) -> list[str]:
    """The names that a function and those in it use, in order."""
    deeper = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)]
    return list(dict.fromkeys([*code.co_names, *deeper]))
