"""Recursive chunking: cut at the largest separator first, and at smaller ones only where a piece is still too big.

The default of the industry (LangChain's `RecursiveCharacterTextSplitter`), and a good one: it costs next to nothing, keeps
paragraphs whole where they fit, and never exceeds its size. What it does not do is read: a cut falls where the count
runs out, at the nearest separator. These chunks are LangChain's, found by positions in the text and not by gluing
strings, which makes them exact slices with true offsets, at several times the speed. They differ where LangChain cuts a
grapheme cluster, exceeds the size, gives a blank chunk, or does not know a line end or a sentence end (CRLF, U+2028, 。).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from chunklab.chunk import BOM, Chunker, Span, check_choice, graphemes, has_joins, is_blank, is_torn, last_boundary, trim
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

Separator = str | re.Pattern
Keep = str | bool
Length = Callable[[str], int]
Places = Sequence[int]


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
        (start, end) of each chunk, without white space at its edges, in order.

    >>> recursive_spans("One two. Three four.", 9)
    [(0, 8), (9, 14), (15, 20)]
    """
    levels, given = _levels(text, separators, keep)

    def split(start: int, end: int, depth: int, careful: bool) -> Iterator[Span]:
        while depth < len(levels) and not _occurs(levels[depth][0], text, start, end):
            depth += 1
        if depth >= given and (measure := length(text[start:end])) <= size:
            yield (start, end) if measure == size else trim(text, start, end)
        elif depth == len(levels):
            yield from _windows(text, start, end, size, overlap, length)
        else:
            starts, ends = pieces(text, start, end, *levels[depth], careful)
            for first, last, fits in merge(*_measured(text, starts, ends, length), size, overlap):
                if fits:
                    yield trim(text, starts[first], ends[last])
                else:
                    yield from split(starts[first], ends[last], depth + 1, careful)

    start = int(text.startswith(BOM))
    spans = list(split(start, len(text), 0, careful=False))
    if any(is_torn(text, start, end) for start, end in spans):
        spans = list(split(start, len(text), 0, careful=True))
    return list(_checked(text, spans, size, length))


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
    lefts, rights = _find(text, start, end, separator, keep, careful)
    starts, ends = [start, *rights], [*lefts, end]
    if keep and isinstance(separator, str):  # only the first or the last can be empty
        first, last = int(starts[0] == ends[0]), len(starts) - (starts[-1] == ends[-1])
        return starts[first:last], ends[first:last]
    full = [(left, right) for left, right in zip(starts, ends, strict=True) if left < right]
    return [left for left, _ in full], [right for _, right in full]


def merge(starts: Places, ends: Places, size: int, overlap: int) -> Iterator[tuple[int, int, bool]]:
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
    first, count = 0, len(starts)
    while first < count:
        after = bisect_right(ends, starts[first] + size, first)
        if after <= first + 1 and ends[first] - starts[first] >= size:
            yield first, first, False
            first += 1
            continue
        yield first, after - 1, True
        if after == count or ends[after] - starts[after] >= size:
            first = after
        else:
            first = bisect_left(starts, max(ends[after - 1] - overlap, ends[after] - size), first)


def _levels(text: str, separators: Sequence[Separator], keep: Keep) -> tuple[list[tuple[Separator, Keep]], int]:
    """Each separator with its side, as a reader understands it, and how many of them were asked for.

    Where none is "", words and then characters are the last resort, for pieces that are still too long.
    """
    wanted = list(separators)
    if "" in wanted:
        wanted = wanted[: wanted.index("") + 1]
    many_line_ends = any(mark in text for mark in "\r\u2028\u2029")
    levels: list[tuple[Separator, Keep]] = []
    for separator in wanted:
        if separator and isinstance(separator, str) and separator in _SENTENCE_ENDS:
            levels.append((re.compile(f"{separator}[{_CLOSERS}]*"), "end"))
        elif isinstance(separator, str) and "\n" in separator and many_line_ends:
            levels.append((re.compile(re.escape(separator).replace("\\\n", _LINE_END)), keep))
        else:
            levels.append((separator, keep))
    last_resort: list[tuple[Separator, Keep]] = [] if "" in wanted else [(" ", "start"), ("", "start")]
    return levels + last_resort, len(levels)


def _occurs(separator: Separator, text: str, start: int, end: int) -> bool:
    if isinstance(separator, str):
        return text.find(separator, start, end) >= 0
    return separator.search(text[start:end]) is not None


def _find(
    text: str, start: int, end: int, separator: Separator, keep: Keep, careful: bool
) -> tuple[list[int], list[int]]:
    """Where one piece ends, and the next begins, at each separator."""
    part = text[start:end]
    if isinstance(separator, str) and len(separator) == 1:
        codes = np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32)
        found = np.flatnonzero(codes == ord(separator)) + start
        lefts = (found + (keep == "end")).tolist()
        rights = lefts if keep else (found + 1).tolist()
    else:
        pattern = re.compile(re.escape(separator)) if isinstance(separator, str) else separator
        matches = [match.span() for match in pattern.finditer(part)]
        lefts = [start + (right if keep == "end" else left) for left, right in matches]
        rights = [start + (left if keep == "start" else right) for left, right in matches]
    if not careful or not has_joins(part):
        return lefts, rights
    whole, floor = [], start
    for left, right in zip(lefts, rights, strict=True):
        if last_boundary(text, floor, left) == left and last_boundary(text, floor, right) == right:
            whole.append((left, right))
            floor = right
    return [left for left, _ in whole], [right for _, right in whole]


def _measured(text: str, starts: Places, ends: Places, length: Length) -> tuple[Places, Places]:
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


def _windows(text: str, start: int, end: int, size: int, overlap: int, length: Length) -> list[Span]:
    """Fixed windows over text[start:end]."""
    return [(start + left, start + right) for left, right in fixed_spans(text[start:end], size, overlap, length)]


def _checked(text: str, spans: list[Span], size: int, length: Length) -> Iterator[Span]:
    """The spans that hold text, each once; one that is too long after all (a sum of tokens can deceive) is cut again."""
    before = None
    for start, end in spans:
        if start == end or (start, end) == before or (end - start == size and is_blank(text[start:end])):
            continue
        before = start, end
        if length is len or length(text[start:end]) <= size:
            yield start, end
        else:
            yield from _windows(text, start, end, size, 0, length)


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
        if not isinstance(separators, Sequence) or isinstance(separators, str) or not all(isinstance(s, str) for s in separators):
            raise ValueError(f"separators={separators!r}: must be a list of strings")
        check_choice("keep_separator", keep_separator, ("start", "end", True, False))
        self._separators = [_compiled(s) if is_separator_regex and s else s for s in separators]
        self._keep = "start" if keep_separator is True else keep_separator

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        size, overlap, length = self._chunk_size, self._chunk_overlap, self._length_function
        return recursive_spans(text, size, overlap, self._separators, self._keep, length)


def _compiled(pattern: str) -> re.Pattern:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"separators: {pattern!r} is not a regular expression: {error}") from error
