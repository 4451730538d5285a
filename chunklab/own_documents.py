"""Files of your own, as the documents of a measurement: read, and what says the same twice left out.

For `recommend`. Folders are walked as `python -m chunklab chunk` walks them; a file that cannot be read is named on
stderr and listed, and the others go on. The same text in two files, such as a report as Word file and as PDF, would
make every score wrong: a question is asked of one of them, and finding the other would count as a miss. So one of the
two is left out, and named. Cost: that of reading, and a second for some million characters.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from chunklab.chunk_files import ENDINGS, Problem, document_ids, found, report
from chunklab.documents import read_document
from chunklab.hybrid import words_of

MARK = '<meta name="generator" content="chunklab recommend" />'
"""What a report says of itself, so that it is not read as a document."""

TWICE = 0.5
"""The share of its runs of words from which on a document counts as another one's text."""

_RUN, _SAMPLE = 6, 8  # words in a run; one in so many runs is compared


class OwnDocuments(NamedTuple):
    """What was read, and what was not.

    Attributes:
        texts: id to text, in the order of the paths.
        formats: id to format: "text", "markdown", "html", "pdf", "docx" or "code".
        unread: what cannot be read, and why.
        doubled: id of a document that is left out, to that of the one that says the same.
    """

    texts: dict[str, str]
    formats: dict[str, str]
    unread: list[str]
    doubled: dict[str, str]


def read_documents(paths: Any, output: str | Path | None = None) -> OwnDocuments:
    """Read files and folders.

    Args:
        paths: a file, a folder or a pattern such as "notes/*.md"; or a list of these.
        output: a file that is to be written, and so is not read.

    Returns:
        The documents. Their ids are their paths in the folder given, or the names of files given, with "/"; where two
        would be the same, the second keeps its whole path.

    Raises:
        ValueError: paths that are none, or of which nothing can be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bell.md").write_text("The bell is old."), Path(folder, "empty.txt").touch()
    ...     own = read_documents(folder)
    >>> list(own.texts.values()), [line.rpartition("/")[2] for line in own.unread]
    (['The bell is old.'], ['empty.txt: is empty'])
    """
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths) if isinstance(paths, Iterable) else []
    if not listed or not all(isinstance(path, (str, Path)) and str(path) for path in listed):
        raise ValueError(f"paths={paths!r:.80}: must be a file or a folder, or a list of these, not empty")
    unread: list[str] = []
    texts, formats = {}, {}
    try:
        files = list(found(map(str, listed), None if output is None else Path(output), ENDINGS, unread))
    except Problem as problem:
        raise ValueError(f"paths: {problem}") from None
    for (path, base), name in zip(files, document_ids(files), strict=True):
        try:
            if _is_report(path):
                continue
            document = read_document(path.relative_to(base) if base else path, base=base)
        except Exception as error:  # one file must not cost what the others give
            said = str(error).partition(f"{path.name} ")[2] or f"{type(error).__name__}: {error}"
            report(f"{path}: {said}", unread)
            continue
        if document.text.strip():
            texts[name], formats[name] = document.text, document.metadata["format"]
    if not texts:
        why = f": {'; '.join(unread[:5])}" if unread else ""
        raise ValueError(f"paths={paths!r:.80}: nothing there can be read{why}")
    doubled = _doubled(texts)
    return OwnDocuments({n: text for n, text in texts.items() if n not in doubled}, formats, unread, doubled)


def _is_report(path: Path) -> bool:
    if path.suffix.lower() not in (".html", ".htm") or not path.is_file():
        return False
    with path.open("rb") as file:
        return MARK.encode() in file.read(1000)


def _doubled(texts: dict[str, str]) -> dict[str, str]:
    """The documents of which half or more stands in another: the shorter of the two, of equals the later."""
    runs = {name: _runs(text) for name, text in texts.items()}
    order = sorted(texts, key=lambda name: -len(runs[name]))  # stable: of equals, the first stays
    doubled: dict[str, str] = {}
    for place, name in enumerate(order):
        for other in order[:place]:
            if other not in doubled and runs[name] and len(runs[name] & runs[other]) >= TWICE * len(runs[name]):
                doubled[name] = other
                break
    return doubled


def _runs(text: str) -> set[int]:
    """Some of the runs of words in a text, as numbers: the same ones wherever the run stands."""
    words = words_of(text)
    runs = (" ".join(words[n : n + _RUN]) for n in range(max(1, len(words) - _RUN + 1)))
    numbers = {zlib.crc32(run.encode("utf-8", "replace")) for run in runs}
    return {number for number in numbers if number % _SAMPLE == 0} or numbers
