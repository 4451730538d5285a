"""Read the text layer of a PDF, page by page.

A PDF knows no words, lines or paragraphs, only glyphs at places; pypdf guesses the rest from the gaps, in the order in
which the file draws them. So the text is what can be had, not what was written: headings and tables are lines like any
other, and what looks wrong is said in a list of warnings. It serves whoever chunks PDFs of unknown origin: pages, text,
work and time are bounded, and scripts, links and attached files are never touched. About 50 to 100 pages a second.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from chunklab.formats.elements import DocumentError, check_amount
from chunklab.formats.text import other_kind

MAX_PAGES = 5_000
MAX_SECONDS = 120.0
# pypdf's own bounds, in bytes, made tighter: a page of text takes some thousands.
_BOUNDS: dict[str, Any] = {
    "array_based_stream_maximum_output_length": 20_000_000,
    "zlib_maximum_output_length": 20_000_000,
    "lzw_maximum_output_length": 20_000_000,
    "run_length_maximum_output_length": 20_000_000,
    "xform_maximum_invocations_per_extraction": 500,
}
# One glyph for several letters: print has it, a search has not.
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_LONG_WORD = re.compile(r"[a-zA-ZÀ-ɏ]{26,}")
_UNKNOWN = re.compile(r"[\x00-\x08\x0e-\x1f\ue000-\uf8ff\ufffd]")
_LETTERS = re.compile(rb"[A-Za-z]{2,}")
_LOCK = threading.Lock()
_PROPAGATE: list[bool] = []  # for each PDF that is being read, whether pypdf's log went on to others before them all


def read_pdf(data: bytes, wanted: Callable[[int], range]) -> tuple[list[str], int, list[str]]:
    """Read pages of a PDF.

    Args:
        data: the bytes of the file.
        wanted: gives the places of the pages to read, from 0, when told how many there are.

    Returns:
        The text of each page wanted; how many pages the file has; warnings.

    Raises:
        DocumentError: encrypted, damaged, without text (scanned, say), too many pages, too much text, or too slow.
    """
    from pypdf import PdfReader, apply_configuration
    from pypdf.errors import DependencyError

    if b"%PDF-" not in data[:1024]:
        what = other_kind(data)
        raise DocumentError(f"is no PDF: it {f'is {what}' if what else 'does not begin as one'}")
    deadline = time.monotonic() + MAX_SECONDS
    with apply_configuration(**_BOUNDS), _heard() as warnings:
        try:
            reader = PdfReader(_Timed(data, deadline))
            if reader.is_encrypted and not reader.decrypt(""):
                raise DocumentError("is encrypted, and opens with a password only: save it without one")
            count = len(reader.pages)
            if count > MAX_PAGES:
                raise DocumentError(f"has {count:,} pages, and at most {MAX_PAGES:,} are read: split it")
            if not count:
                raise DocumentError("has no pages")
            texts = _pages(reader, wanted(count), deadline, warnings)
        except (DocumentError, MemoryError):
            raise
        except _TooSlow:
            advice = "take fewer pages at once, with start and end"
            raise DocumentError(f"takes more than {MAX_SECONDS:.0f} s to read: {advice}") from None
        except DependencyError:
            advice = "save it without encryption, or pip install cryptography"
            raise DocumentError(f"is encrypted with AES: {advice}") from None
        except RecursionError:
            raise DocumentError("is damaged: its objects are nested too deeply") from None
        except Exception as error:  # a hostile file can make a parser raise anything
            raise DocumentError(f"is damaged ({type(error).__name__}: {str(error)[:100]})") from error
    if not any(map(str.strip, texts)):
        raise DocumentError("holds no text: its pages are scanned or blank. Run OCR on it first (ocrmypdf, say)")
    return texts, count, warnings + _doubts(texts)


class _Timed(BytesIO):
    """A file that cannot be read after the deadline, which ends whatever loop a damaged file leads the parser into."""

    def __init__(self, data: bytes, deadline: float) -> None:
        super().__init__(data)
        self.deadline = deadline

    def read(self, size: int | None = -1) -> bytes:
        _check_time(self.deadline)
        return super().read(size)


class _TooSlow(BaseException):
    """The time is over. No Exception, since pypdf goes on after many of those."""


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise _TooSlow


def _pages(reader: Any, wanted: range, deadline: float, warnings: list[str]) -> list[str]:
    texts, blank, doubtful, size, problem = [], [], [], 0, None
    for place in wanted:
        try:
            text, glued = _page(reader.pages[place], deadline)
        except (DocumentError, MemoryError):
            raise
        except Exception as error:  # one damaged page need not cost the others
            text, glued, problem = "", [], error
            warnings.append(f"page {place + 1} is damaged, and left out ({type(error).__name__}: {str(error)[:100]})")
        _check_time(deadline)
        size += len(text)
        check_amount(size)
        texts.append(text)
        if not text.strip():
            blank.append(place + 1)
        if glued:
            doubtful.append(f"{glued[0]!r} on page {place + 1}")
    if problem is not None and len(blank) == len(texts):
        raise problem
    if blank:
        warnings.append(f"no text on {len(blank)} of the pages: scanned or blank ({_listed(blank)})")
    if doubtful:
        warnings.append(f"words may be glued together on {len(doubtful)} of the pages ({_listed(doubtful)})")
    return texts


def _page(page: Any, deadline: float) -> tuple[str, list[str]]:
    """The text of a page, and what may be words that are glued together."""
    glued = _Glued()

    def visit(operator: bytes, operands: Any, *_: Any) -> None:
        _check_time(deadline)
        glued.see(operator, operands)

    text = page.extract_text(visitor_operand_before=visit).translate(_LIGATURES)
    return "\n".join(line.strip() for line in text.splitlines()).strip("\n"), glued.found_in(text)


class _Glued:
    """Watches for words that a page places one by one, too close together for pypdf to see a gap."""

    def __init__(self) -> None:
        self.last = self.moved = b""
        self.pairs: set[tuple[str, str]] = set()

    def see(self, operator: bytes, operands: Any) -> None:
        if operator == b"Tj":
            shown = getattr(operands[0], "original_bytes", b"") if operands else b""
            word = shown if len(shown) < 100 and _LETTERS.fullmatch(shown) else b""
            if self.last and self.moved and word and len(self.pairs) < 1000:
                self.pairs.add((self.last.decode(), word.decode()))
            self.last, self.moved = word, b""
        elif operator in (b"Td", b"TD", b"Tm"):
            self.moved = operator
        elif operator in (b"TJ", b"'", b'"', b"T*", b"ET"):
            self.last = b""

    def found_in(self, text: str) -> list[str]:
        return sorted(left + right for left, right in self.pairs if left + right in text)


def _doubts(texts: list[str]) -> list[str]:
    """What shows in the text itself that the glyphs were not understood."""
    size = sum(map(len, texts))
    doubts = []
    if sum(len(found.group()) for text in texts for found in _LONG_WORD.finditer(text)) > 0.05 * size:
        doubts.append("many very long words: the spaces between words are lost")
    if sum(len(_UNKNOWN.findall(text)) for text in texts) > 0.02 * size:
        doubts.append("many unknown characters: the fonts do not say which letters they draw. OCR may do better")
    return doubts


def _listed(things: list[Any]) -> str:
    return ", ".join(map(str, things[:10])) + (", …" if len(things) > 10 else "")


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect what pypdf logs in this thread, which would else be printed into a notebook."""
    heard: list[str] = []
    thread = threading.get_ident()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = f"pypdf: {record.getMessage()[:200]}"
            if threading.get_ident() == thread and message not in heard and len(heard) < 10:
                heard.append(message)

    logger, listener = logging.getLogger("pypdf"), Listener(logging.WARNING)
    with _LOCK:
        _PROPAGATE.append(_PROPAGATE[0] if _PROPAGATE else logger.propagate)
        logger.propagate = False
        logger.addHandler(listener)
    try:
        yield heard
    finally:
        with _LOCK:
            logger.removeHandler(listener)
            before = _PROPAGATE.pop()
            if not _PROPAGATE:
                logger.propagate = before
