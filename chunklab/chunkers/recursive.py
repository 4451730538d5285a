"""Recursive chunking: cut at the largest separator first, and at smaller ones only where a piece is still too big.

The default of the industry (LangChain's `RecursiveCharacterTextSplitter`), and a good one: it costs next to nothing,
keeps paragraphs whole where they fit, and never exceeds its size. What it does not do is read: a cut falls where the
count runs out, at the nearest separator. These chunks are LangChain's, found by positions in the text and not by gluing
strings, which makes them exact slices with true offsets, at several times the speed. They differ where LangChain cuts a
grapheme cluster, exceeds the size, gives a blank chunk, or does not know a line or sentence end (CRLF, U+2028, 。).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from chunklab.chunk import (
    BOM,
    Chunker,
    Span,
    check_choice,
    graphemes,
    has_joins,
    is_blank,
    is_torn,
    last_boundary,
    trim,
)
from chunklab.chunkers.fixed import fixed_spans

DEFAULT_SEPARATORS = ("\n\n", "\n", " ", "。", "！", "？", "")
"""LangChain's, and before the last resort the sentence ends of languages that are written without spaces."""

RAG_ME_UP_SEPARATORS = (
    "\n \n", "\n\n", "\n", ".", "!", "?", " ", ",", "\u200b", "\uff0c", "\u3001", "\uff0e", "\u3002", "",
)  # fmt: skip
"""The list that RAG Me Up gives to LangChain's splitter."""

_SENTENCE_ENDS = "。．！？｡"
_CLOSERS = _SENTENCE_ENDS + "…」』”’）】》〉］"
_LINE_END = "(?:\r\n|[\n\r\u2028\u2029])"

Separator = str | re.Pattern[str]
Keep = str | bool
Length = Callable[[str], int]
Places = Sequence[int]


class Level(NamedTuple):
    """A separator, the side that keeps it, and whether to spare grapheme clusters: what `pieces` asks for."""

    separator: Separator
    keep: Keep = "start"
    careful: bool = True


def recursive_spans(
    text: str,
    size: int,
    overlap: int = 0,
    separators: Sequence[Separator] = DEFAULT_SEPARATORS,
    keep: Keep = "start",
    length: Length = len,
) -> list[Span]:
    """Cut a text at the first separator that it holds, and what is still too big at the next ones.

    Args:
        text: the document.
        size: the longest chunk, in units of `length`.
        overlap: how much of a chunk the next one may repeat, in whole pieces.
        separators: the largest first; a str is meant literally, a compiled pattern is a regular expression, "" is
            between any two characters.
        keep: the separator opens the next piece ("start"), closes the last ("end"), or belongs to neither (False).
        length: measures a text.

    Returns:
        (start, end) of each chunk, in order. White space at the edges is left out, unless one piece fills a chunk.

    >>> recursive_spans("One two. Three four.", 9)
    [(0, 8), (9, 14), (15, 20)]
    """
    begin = int(text.startswith(BOM))
    for careful in (False, True):  # few texts hold a separator inside a character: only they pay for the care
        levels = as_levels(text, separators, keep, careful)
        spans = list(split(text, begin, len(text), levels, size, overlap, length))
        if not any(is_torn(text, start, end) for start, end in spans):
            break
    return tidy(text, spans, size, length)


def split(
    text: str, start: int, end: int, levels: Sequence[Level], size: int, overlap: int = 0, length: Length = len
) -> Iterator[Span]:
    """Cut text[start:end] at the first separator that it holds, join what fits, and cut the rest at the next ones.

    Args:
        text: the document.
        start: where to begin.
        end: where to stop.
        levels: the separators, the largest first.
        size: the longest chunk, in units of `length`.
        overlap: how much of a chunk the next one may repeat, in whole pieces.
        length: measures a text.

    Yields:
        (start, end) of each chunk, in order.

    >>> list(split("One two. Three four.", 0, 20, [Level(". ", "end"), Level(" ")], 9))
    [(0, 8), (9, 14), (15, 20)]
    """
    while levels and not occurs(text, start, end, levels[0].separator):
        levels = levels[1:]
    if not levels:
        yield from last_resort(text, start, end, size, overlap, length)
        return
    starts, ends = pieces(text, start, end, *levels[0])
    for first, last, fits in merge(*measured(text, starts, ends, length), size, overlap):
        if fits:
            yield trim(text, starts[first], ends[last])
        else:
            yield from split(text, starts[first], ends[last], levels[1:], size, overlap, length)


def pieces(
    text: str, start: int, end: int, separator: Separator, keep: Keep, careful: bool = True
) -> tuple[Places, Places]:
    """Where the pieces of text[start:end] between separators start, and where they end.

    Careful: no piece begins or ends inside a grapheme cluster.

    >>> pieces("a b c", 0, 5, " ", "start"), pieces("a b c", 0, 5, " ", False)
    (([0, 1, 3], [1, 3, 5]), ([0, 2, 4], [1, 3, 5]))
    """
    if separator == "":
        edges = graphemes(text, start, end)
        return edges[:-1], edges[1:]
    lefts, rights = gaps(text, start, end, separator, keep)
    if careful and has_joins(text[start:end]):
        lefts, rights = _spared(text, start, lefts, rights)
    starts, ends = [start, *rights], [*lefts, end]
    if keep and isinstance(separator, str):  # only the first or the last can be empty
        first, last = int(starts[0] == ends[0]), len(starts) - (starts[-1] == ends[-1])
        return starts[first:last], ends[first:last]
    full = [(left, right) for left, right in zip(starts, ends, strict=True) if left < right]
    return [left for left, _ in full], [right for _, right in full]


def merge(starts: Places, ends: Places, size: int, overlap: int = 0) -> Iterator[tuple[int, int, bool]]:
    """Join neighbouring pieces for as long as they fit; a piece of `size` or more stands alone, to be cut further.

    Args:
        starts: where each piece starts, measured from anywhere.
        ends: where each piece ends, measured from the same place.
        size: the most that a chunk may measure.
        overlap: the most that a chunk may share with the one before.

    Yields:
        (first piece, last piece, whether they make a chunk), in order.

    >>> list(merge([0, 3, 6, 20], [3, 6, 20, 22], 8, 3))
    [(0, 1, True), (2, 2, False), (3, 3, True)]
    """
    first = 0
    while first < len(starts):
        if ends[first] - starts[first] >= size:
            yield first, first, False
            first += 1
            continue
        after = bisect_right(ends, starts[first] + size, first)
        yield first, after - 1, True
        if after < len(starts) and ends[after] - starts[after] < size:
            first = bisect_left(starts, max(ends[after - 1] - overlap, ends[after] - size), first)
        else:
            first = after


def as_levels(text: str, separators: Sequence[Separator], keep: Keep, careful: bool) -> list[Level]:
    """The separators as a reader of this text understands them: any line end is a "\\n", and 。 closes its sentence."""
    many_line_ends = any(mark in text for mark in "\r\u2028\u2029")
    levels = []
    for separator in separators:
        if separator and isinstance(separator, str) and separator in _SENTENCE_ENDS:
            levels.append(Level(re.compile(f"{separator}[{_CLOSERS}]*"), "end", careful))
        elif isinstance(separator, str) and "\n" in separator and many_line_ends:
            levels.append(Level(re.compile(re.escape(separator).replace("\\\n", _LINE_END)), keep, careful))
        else:
            levels.append(Level(separator, keep, careful))
    return levels


def occurs(text: str, start: int, end: int, separator: Separator) -> bool:
    """Whether text[start:end] holds a separator; "" is everywhere."""
    if isinstance(separator, str):
        return text.find(separator, start, end) >= 0
    return separator.search(text[start:end]) is not None


def gaps(text: str, start: int, end: int, separator: Separator, keep: Keep) -> tuple[list[int], list[int]]:
    """Where one piece ends, and the next begins, at each separator."""
    part = text[start:end]
    if isinstance(separator, str) and len(separator) == 1:  # spaces are many: numpy finds them three times as quickly
        codes = np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32)
        found = (codes == ord(separator)).nonzero()[0] + (start + (keep == "end"))
        return found.tolist(), (found if keep else found + 1).tolist()
    pattern = re.compile(re.escape(separator)) if isinstance(separator, str) else separator
    matches = [match.span() for match in pattern.finditer(part)]
    lefts = [start + (right if keep == "end" else left) for left, right in matches]
    rights = [start + (left if keep == "start" else right) for left, right in matches]
    return lefts, rights


def _spared(text: str, start: int, lefts: list[int], rights: list[int]) -> tuple[list[int], list[int]]:
    """The gaps that leave every grapheme cluster whole."""
    spared = []
    for left, right in zip(lefts, rights, strict=True):
        if last_boundary(text, start, left) == left and last_boundary(text, start, right) == right:
            spared.append((left, right))
            start = right
    return [left for left, _ in spared], [right for _, right in spared]


def measured(text: str, starts: Places, ends: Places, length: Length) -> tuple[Places, Places]:
    """Starts and ends of the pieces on the scale of `length`: as LangChain does, the sum of the pieces' lengths."""
    if length is len:
        return starts, ends
    remembered = cache(length)  # single characters come again and again; whole pieces would only fill memory
    lefts, rights, total, before = [], [], 0, starts[0] if starts else 0
    for start, end in zip(starts, ends, strict=True):
        measure = remembered if end - before < 20 else length
        total += measure(text[before:end])
        lefts.append(total - (measure(text[start:end]) if start > before else measure(text[before:end])))
        rights.append(total)
        before = end
    return lefts, rights


def last_resort(text: str, start: int, end: int, size: int, overlap: int, length: Length) -> Iterator[Span]:
    """What no separator divides: left whole where it fits, else cut at words, a word at graphemes, a grapheme anywhere.

    LangChain does not strip a piece that fills a chunk by itself.
    """
    measure = length(text[start:end])
    if measure <= size:
        yield (start, end) if measure == size and not is_blank(text[start:end]) else trim(text, start, end)
        return
    for separator in " ", "":
        if len(pieces(text, start, end, separator, "start")[0]) > 1:
            for left, right in split(text, start, end, [Level(separator)], size, overlap, length):
                yield trim(text, left, right)
            return
    yield from _windows(text, start, end, size, overlap, length)


def tidy(text: str, spans: Sequence[Span], size: int, length: Length) -> list[Span]:
    """The spans that hold text, each once; one that is too long after all (sums of tokens can deceive) is cut again."""
    kept: list[Span] = []
    before = None
    for start, end in spans:
        if start == end or (start, end) == before:
            continue
        before = start, end
        if length is len or length(text[start:end]) <= size:
            kept.append((start, end))
        else:
            kept += _windows(text, start, end, size, 0, length)
    return kept


def _windows(text: str, start: int, end: int, size: int, overlap: int, length: Length) -> list[Span]:
    """Fixed windows over text[start:end]."""
    return [(start + left, start + right) for left, right in fixed_spans(text[start:end], size, overlap, length)]


class RecursiveChunker(Chunker):
    """LangChain's recursive splitter, with exact spans.

    Args:
        chunk_size: the longest chunk, in units of `length_function`.
        chunk_overlap: how much of a chunk the next may repeat: whole pieces, so often less, and often nothing.
        separators: the largest first, `DEFAULT_SEPARATORS` by default.
        keep_separator: "start" (or True), "end", or False: a separator between two chunks belongs to neither.
        is_separator_regex: whether separators are regular expressions.
        length_function: what sizes count; characters by default.

    Raises:
        ValueError: a size, overlap, separator or choice that is not allowed.

    >>> RecursiveChunker(9).split_text("One two. Three four.")
    ['One two.', 'Three', 'four.']
    """

    def __init__(
        self,
        chunk_size: int = 1000,
        chunk_overlap: int = 0,
        separators: Sequence[str] = DEFAULT_SEPARATORS,
        keep_separator: bool | str = "start",
        is_separator_regex: bool = False,
        length_function: Length = len,
    ) -> None:
        super().__init__(chunk_size, chunk_overlap, length_function)
        if (
            not isinstance(separators, Sequence)
            or isinstance(separators, str)
            or not all(isinstance(s, str) for s in separators)
        ):
            raise ValueError(f"separators={separators!r}: must be a list of strings")
        check_choice("keep_separator", keep_separator, ("start", "end", True, False))
        self._separators = [_compiled(s) if is_separator_regex and s else s for s in separators]
        self._keep = "start" if keep_separator is True else keep_separator

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        size, overlap, length = self._chunk_size, self._chunk_overlap, self._length_function
        return recursive_spans(text, size, overlap, self._separators, self._keep, length)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"separators: {pattern!r} is not a regular expression: {error}") from error
