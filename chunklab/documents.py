"""Read a file into a document: text, Markdown, HTML, PDF or Word, to the text that a chunker gets.

Every promise about offsets begins here: a chunk is a span of `Document.text`. What the file says of its structure
(headings, lists, tables) becomes Markdown, pages of a PDF keep their offsets, parts can be skipped or filtered out, and
the text cleaned. It serves whoever builds an index from files, also from files of strangers: nothing but the file is
opened, nothing is fetched, size and work are bounded, and what cannot be read is an error that says why. Text and Word
files take milliseconds, a PDF 10 to 20 ms a page. The formats are in `chunklab/formats`, one a file.
"""

from __future__ import annotations

import os
import re
import stat
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import regex

from chunklab.formats.elements import DocumentError, Element, check_amount, joint

__all__ = ["Document", "DocumentError", "read_document"]

MAX_BYTES = 100_000_000
MAX_FILTER_SECONDS = 60.0
CLEANING = ("headers", "hyphens", "spaces")
_ENDINGS = {"text": ".txt .text", "markdown": ".md .markdown", "code": ".py .js", "html": ".html .htm .xhtml"}
_ENDINGS |= {"pdf": ".pdf", "docx": ".docx"}
_FORMATS = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
_LINE = re.compile(r"[^\n\r\u2028\u2029]*(?:\r\n|[\n\r\u2028\u2029])|[^\n\r\u2028\u2029]+")
_LINE_ENDS = "\n\r\u2028\u2029"
_UNITS = {"pdf": "pages", "html": "elements", "docx": "elements"}


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text, and where it came from.

    Attributes:
        id: the file's path relative to the folder that was given as its base, with "/", else its name.
        text: what was read.
        metadata: left out of equality and hash, as that of a chunk. "source": the id; "format"; "elements": how many
            the file has; "taken": the first and the last of them that were taken, from 1; "warnings": what to doubt;
            of a PDF "page_starts": the offset at which each page taken starts; of texts and HTML "encoding" and
            "encoding_guessed"; of HTML "title".

    >>> Document("a.txt", "The bell.").text
    'The bell.'
    """

    id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict, compare=False)


def read_document(
    path: str | os.PathLike[str],
    start: int = 0,
    end: int = 0,
    as_range: bool = False,
    filters: Iterable[str | re.Pattern[str]] = (),
    clean: Iterable[str] = (),
    base: str | os.PathLike[str] | None = None,
) -> Document:
    """Read one file.

    What counts as one element depends on the format: a line (.txt .md .py .js), a page (.pdf), a heading, paragraph,
    list item, table or code block (.html .docx). Lines keep their line ends; HTML and Word become Markdown, their
    elements a blank line apart (the items of a list on lines that follow); pages are a blank line apart, or a space
    where a sentence goes on.

    Args:
        path: the file.
        start: how many elements to skip at the beginning; with `as_range`, the first to take, from 1.
        end: how many elements to skip at the end; with `as_range`, the last to take, itself included (a document that
            has fewer ends sooner).
        as_range: whether `start` and `end` are a range.
        filters: regular expressions of Python's `re`; every line in which one finds something is left out.
        clean: steps of cleaning, done in this order whatever order they are given in: "headers" (running headers,
            footers and page numbers of a PDF go), "hyphens" (words broken at line ends are joined), "spaces" (runs of
            spaces and of blank lines become one).
        base: a folder. Nothing outside of it is read, be it by "..", an absolute path or a link. A relative `path` may
            start from it or from the working folder.

    Returns:
        The document. After filters its text may be empty.

    Raises:
        ValueError: an argument that is not allowed, before the file is touched.
        DocumentError: the file cannot be read; it is a ValueError and an OSError both. It is missing, outside the
            base, no regular file, of another type, too large, empty, damaged, encrypted, without text (scanned), too
            large when unpacked, too slow (a filter can be the reason), or has no element in the range.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "page.html").write_text("<h2>Bells</h2><p>Low.<p>High.<p>Page 1")
    ...     document = read_document("page.html", filters=["^Page"], base=folder)
    >>> document.id, document.text
    ('page.html', '## Bells\\n\\nLow.\\n\\nHigh.')
    """
    stays = _Filter(_patterns(filters))
    steps = _steps(clean)
    _check_range(start, end, as_range)
    name, file = _located(path, base)
    try:
        kind = _format(file, Path(path).suffix.lower())
        taken = partial(_taken, start=start, end=end, as_range=as_range, unit=_UNITS.get(kind, "lines"))
        text, metadata = _READERS[kind](_bytes(file), taken, stays, steps)
    except DocumentError as error:
        raise DocumentError(f"{name} {error}") from error.__cause__
    return Document(name, text, {"source": name, "format": kind} | metadata)


def _taken(count: int, start: int, end: int, as_range: bool, unit: str) -> range:
    """Which of so many elements are taken."""
    places = range(start - 1, min(end, count)) if as_range else range(start, count - end)
    if count and not places:
        raise DocumentError(f"has {count:,} {unit}, and start={start}, end={end} leaves none of them")
    return places


# Arguments.


def _patterns(filters: Any) -> list[regex.Pattern[str]]:
    """The filters, checked by `re`, whose rules they follow, and compiled by `regex`, which can be stopped."""
    if isinstance(filters, (str, bytes, re.Pattern)) or not isinstance(filters, Iterable):
        raise ValueError(f"filters={filters!r}: must be a list of regular expressions")
    patterns = []
    for pattern in filters:
        if not isinstance(pattern, str) and not (isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str)):
            raise ValueError(f"filters holds {pattern!r}: must be regular expressions for text")
        try:
            known = re.compile(pattern)
            ascii_only = regex.ASCII if known.flags & re.ASCII else 0  # the one flag that has another value there
            patterns.append(regex.compile(known.pattern, known.flags & ~re.ASCII | ascii_only | regex.VERSION0))
        except (re.error, regex.error, RecursionError, OverflowError) as error:
            raise ValueError(f"filters holds {pattern!r}: not a regular expression ({error})") from None
    return patterns


class _Filter:
    """Tells which lines stay, in bounded time: a pattern can be such that it takes years for one line."""

    def __init__(self, patterns: list[regex.Pattern[str]]) -> None:
        self.patterns = patterns
        self.seconds = MAX_FILTER_SECONDS

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def __call__(self, line: str) -> bool:
        began = time.monotonic()
        try:
            for pattern in self.patterns:  # noqa: SIM110 - an error names the pattern
                if pattern.search(line, timeout=max(self.seconds, 0.001)):
                    return False
            return True
        except TimeoutError:
            slow = f"the filter {pattern.pattern!r:.80} takes more than {MAX_FILTER_SECONDS:.0f} s: make it simpler"
            raise DocumentError(f"is not filtered: {slow}") from None
        finally:
            self.seconds -= time.monotonic() - began


def _steps(clean: Any) -> set[str]:
    steps = list(clean) if isinstance(clean, Iterable) and not isinstance(clean, str) else [clean]
    if isinstance(clean, str) or any(step not in CLEANING for step in steps):
        raise ValueError(f"clean={clean!r}: must be a list of some of {', '.join(map(repr, CLEANING))}")
    return set(steps)


def _check_range(start: Any, end: Any, as_range: Any) -> None:
    if not isinstance(as_range, bool):
        raise ValueError(f"as_range={as_range!r}: must be True or False")
    least = 1 if as_range else 0
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            what = "a range" if as_range else "a number to skip"
            raise ValueError(f"{name}={value!r}: must be a whole number of {least} or more, as part of {what}")
    if as_range and end < start:
        raise ValueError(f"end={end}: must be start={start} or more, since a range includes both")


# The file.


def _located(path: Any, base: Any) -> tuple[str, Path]:
    """The document's id, and the file with every link followed; DocumentError if that is outside the base."""
    given = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(given, str) or not given:
        raise ValueError(f"path={path!r}: must be the path of a file")
    if base is not None and (not isinstance(base, (str, os.PathLike)) or not os.fspath(base)):
        raise ValueError(f"base={base!r}: must be the path of a folder")
    if "\0" in given:
        raise DocumentError(f"{given!r} is refused: a path holds no NUL")
    try:
        if base is None:
            return utf_8(Path(given).name or given), Path(given).resolve()
        if os.sep == "/" and "\\" in given:
            raise DocumentError(f"{given!r} is refused: a path below a base holds no backslash")
        folder = Path(base).resolve()
        places = ((folder / given).resolve(), Path(given).resolve())
        inside = [place for place in places if place.is_relative_to(folder)]
    except (RuntimeError, OSError, ValueError) as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError(f"{given!r} cannot be followed to a file: {error}") from None
    if not folder.is_dir():
        raise DocumentError(f"base={os.fspath(base)!r} is no folder")
    if not inside:
        raise DocumentError(f"{given!r} is refused: it is outside {os.fspath(base)!r}")
    file = next(filter(os.path.exists, inside), inside[0])
    return utf_8(file.relative_to(folder).as_posix()), file


def utf_8(name: str) -> str:
    """A name that UTF-8 can hold, also where the file system's could not be decoded."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _format(file: Path, ending: str) -> str:
    """The format by the ending (of the link, where it is one), once it is clear that there is a regular file."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise DocumentError("is missing: there is no such file") from None
    except OSError as error:
        raise DocumentError(f"cannot be opened ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        raise DocumentError("is a folder: read the files in it one by one")
    if not stat.S_ISREG(mode):
        raise DocumentError("is a device, a pipe or a socket, not a file")
    if ending not in _FORMATS:
        known = f"{ending!r} is none of {', '.join(_FORMATS)}"
        raise DocumentError(f"is of a type that is not read: {known}. Save it as one of these")
    return _FORMATS[ending]


def _bytes(file: Path) -> bytes:
    """The bytes of a regular file; should the path have become something else meanwhile, it is not waited for."""
    flags = os.O_RDONLY
    for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        with open(os.open(file, flags), "rb") as opened:
            state = os.fstat(opened.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise DocumentError("is no file any more")
            data = opened.read(MAX_BYTES + 1) if state.st_size <= MAX_BYTES else b""
    except DocumentError:
        raise
    except OSError as error:
        raise DocumentError(f"cannot be opened ({error.strerror})") from None
    size = max(state.st_size, len(data))
    if size > MAX_BYTES:
        raise DocumentError(f"is too large: {size:,} bytes, and at most {MAX_BYTES:,} are read")
    if not data:
        raise DocumentError("is empty")
    return data


# From bytes to text. Each takes the bytes, the places to take by their count, the filter and the steps of cleaning.

Taken = Callable[[int], range]


def _read_lines(data: bytes, taken: Taken, stays: _Filter, steps: set[str]) -> tuple[str, dict[str, Any]]:
    text, metadata = _decoded(data, web=False)
    check_amount(len(text))
    # Offsets, not lines: a text may have ten million of them.
    ends = array("Q", (found.end() for found in _LINE.finditer(text)))
    places = taken(len(ends))
    text = text[ends[places.start - 1] if places.start else 0 : ends[places.stop - 1]]
    if stays:
        lines = (found.group() for found in _LINE.finditer(text))
        text = "".join(line for line in lines if stays(line.rstrip(_LINE_ENDS)))
    return _cleaned(text, [], steps)[0], _counted(len(ends), places) | metadata


def _read_html(data: bytes, taken: Taken, stays: _Filter, steps: set[str]) -> tuple[str, dict[str, Any]]:
    from chunklab.formats.html import read_html

    source, metadata = _decoded(data, web=True)
    elements, title = read_html(source)
    text, more = _from_blocks(elements, taken, stays, steps)
    return text, more | metadata | {"title": title}


def _read_docx(data: bytes, taken: Taken, stays: _Filter, steps: set[str]) -> tuple[str, dict[str, Any]]:
    from chunklab.formats.docx import read_docx

    text, more = _from_blocks(read_docx(data), taken, stays, steps)
    return text, more | {"warnings": []}


def _read_pdf(data: bytes, taken: Taken, stays: _Filter, steps: set[str]) -> tuple[str, dict[str, Any]]:
    from chunklab.formats.cleaning import page_joint, without_running_lines
    from chunklab.formats.pdf import read_pdf

    def wanted(count: int) -> range:
        # What runs through the pages shows on all of them, so all are read, even if few are taken.
        return range(count) if taken(count) and "headers" in steps else taken(count)

    pages, count, warnings = read_pdf(data, wanted)
    places = taken(count)
    if "headers" in steps:
        pages = without_running_lines(pages)[places.start : places.stop]
    pages = [_filtered(page, stays) for page in pages]
    text, starts = _joined(pages, lambda last, place: page_joint(pages[last], pages[place]))
    text, starts = _cleaned(text, starts, steps)
    return text, _counted(count, places) | {"page_starts": starts, "warnings": warnings}


def _decoded(data: bytes, web: bool) -> tuple[str, dict[str, Any]]:
    from chunklab.formats.text import decode, repair

    decoded = decode(data, web)
    text = repair(decoded.text).lstrip("\ufeff")  # one that is joined from files may begin with two
    if not text.replace("\ufeff", " ").strip():
        raise DocumentError("holds no text, only white space")
    warnings = [f"the encoding was guessed: {decoded.encoding}"] if decoded.guessed else []
    if count := text.count("\ufffd"):
        warnings.append(f"{count:,} characters could not be decoded, and are U+FFFD")
    return text, {"encoding": decoded.encoding, "encoding_guessed": decoded.guessed, "warnings": warnings}


def _from_blocks(elements: list[Element], taken: Taken, stays: _Filter, steps: set[str]) -> tuple[str, dict[str, Any]]:
    if not elements:
        raise DocumentError("holds no text")
    places = taken(len(elements))
    blocks = [e._replace(text=_filtered(e.text, stays)) for e in elements[places.start : places.stop]]
    text, _ = _joined([block.text for block in blocks], lambda last, place: joint(blocks[last], blocks[place]))
    return _cleaned(text, [], steps)[0], _counted(len(elements), places)


def _counted(count: int, places: range) -> dict[str, Any]:
    return {"elements": count, "taken": (places.start + 1, places.stop)}


def _filtered(text: str, stays: _Filter) -> str:
    """The text in a form that UTF-8 can hold, without the lines that a filter leaves out."""
    from chunklab.formats.text import repair

    text = repair(text)
    return "\n".join(line for line in text.split("\n") if stays(line)) if stays else text


def _joined(texts: Sequence[str], between: Callable[[int, int], str]) -> tuple[str, list[int]]:
    """The texts joined, blank ones left out, and where each starts; `between` tells what stands between two places."""
    pieces: list[str] = []
    starts: list[int] = []
    size, last = 0, -1
    for place, text in enumerate(texts):
        gap = between(last, place) if last >= 0 and text.strip() else ""
        starts.append(size + len(gap))
        if text.strip():
            pieces += (gap, text)
            size += len(gap) + len(text)
            last = place
    return "".join(pieces), starts


def _cleaned(text: str, starts: list[int], steps: set[str]) -> tuple[str, list[int]]:
    from chunklab.formats.cleaning import join_hyphens, single_spaces

    if "hyphens" in steps:
        text, starts = join_hyphens(text, starts)
    if "spaces" in steps:
        text, starts = single_spaces(text, starts)
    return text, starts


_READERS = {"text": _read_lines, "markdown": _read_lines, "code": _read_lines}
_READERS |= {"html": _read_html, "docx": _read_docx, "pdf": _read_pdf}
