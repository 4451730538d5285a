"""Sentence chunking: whole sentences, packed into chunks.

For prose, transcripts and answers, where half a sentence misleads a reader and an embedding alike. `sentence_spans`
finds the sentences, `SentenceChunker` packs them up to a size, and `SnappingWindowChunker` (after the Ragu project)
adds sentences of context on both sides. Where a text has no sentences to speak of, a chunk ends at a line, else at a
word. Cost: one pass over the text; no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from chunklab.chunk import Chunker, Span, check_overlap, check_size, last_boundary, trim
from chunklab.chunkers.boundaries import CLOSERS, STOPS, WHITE, sentence_spans
from chunklab.chunkers.recursive import recursive_spans

Length = Callable[[str], int]

SKIP_BACK = ("www", "etc", "e.g", "E.g", "i.e", "I.e", "vs", "Mr", "Mrs", "Ms", "Dr", "Prof", "St")
"""What a given delimiter does not end a sentence after, unless told otherwise."""

SKIP_FORWARD = ("com", "org", "net", "co", "uk", "io", "rs", "js", "py", "html", "pdf")
"""What a given delimiter does not end a sentence before, unless told otherwise."""

_SPACES = re.compile(r"\s+")


def packed_spans(text: str, sentences: Sequence[Span], size: int, overlap: int = 0, length: Length = len) -> list[Span]:
    """Whole sentences, as many to a chunk as fit.

    Args:
        text: the document.
        sentences: what `sentence_spans` gives, or any other spans that tile the text.
        size: the longest chunk, in units of `length`; a longer sentence is cut at words, a longer word at characters.
        overlap: how much of a chunk the next one may repeat: whole sentences, so often less.
        length: measures a text.

    Returns:
        (start, end) of each chunk, without white space at its edges, in order.

    >>> packed_spans("One two. Three. Four.", [(0, 9), (9, 16), (16, 21)], 14)
    [(0, 8), (9, 21)]
    """
    pieces = fitting_pieces(text, sentences, size, length)
    return [(pieces[first][0], pieces[last][1]) for first, last in pack(text, pieces, size, overlap, length)]


def snapping_spans(text: str, sentences: Sequence[Span], size: int, overlap: int, length: Length = len) -> list[Span]:
    """Whole sentences up to `size`, and up to `overlap` more before and after, those on a side at most half of `size`.

    Args:
        text: the document.
        sentences: spans that tile the text.
        size: the longest chunk before it is widened, in units of `length`; a longer sentence is cut at words.
        overlap: sentences added on each side at most.
        length: measures a text.

    Returns:
        (start, end) of each chunk, in order; what the one before holds whole is left out.

    >>> snapping_spans("A b. C d. E f. G h.", [(0, 5), (5, 10), (10, 15), (15, 19)], 10, 1)
    [(0, 14), (5, 19)]
    """
    pieces = fitting_pieces(text, sentences, size, length)
    pieces = mend_torn(text, pieces, 2 * size if overlap else size, length)
    spans, lowest, highest = [], 0, -1
    for first, last in pack(text, pieces, size, 0, length):
        reach = max(lowest, first - overlap), min(len(pieces) - 1, last + overlap)
        left, right = widen(text, pieces, (first, last), reach, size, length)
        if right > highest:
            spans.append((pieces[left][0], pieces[right][1]))
            lowest, highest = left + 1, right
    return spans


def widen(text: str, pieces: Sequence[Span], base: Span, reach: Span, size: int, length: Length) -> Span:
    """The first and the last piece of a chunk with its context, which measures at most half of `size` on each side."""
    (first, last), (left, right) = base, base
    while left > reach[0] and length(text[pieces[left - 1][0] : pieces[first][0]]) <= size // 2:
        left -= 1
    while right < reach[1] and length(text[pieces[last][1] : pieces[right + 1][1]]) <= size // 2:
        right += 1
    while (left, right) != base and length(text[pieces[left][0] : pieces[right][1]]) > 2 * size:
        left, right = (left, right - 1) if right > last else (left + 1, right)  # tokens may not quite add up
    return left, right


def mend_torn(text: str, pieces: Sequence[Span], most: int, length: Length) -> list[Span]:
    """The pieces, those that divide a grapheme cluster put together again if they measure at most `most`."""
    mended: list[Span] = []
    for start, end in pieces:
        torn = mended and mended[-1][1] == start and last_boundary(text, mended[-1][0], start) < start
        if torn and length(text[mended[-1][0] : end]) <= most:
            mended[-1] = mended[-1][0], end
        else:
            mended.append((start, end))
    return mended


def fitting_pieces(text: str, sentences: Sequence[Span], size: int, length: Length) -> list[Span]:
    """The sentences without white space at their edges; those longer than `size` in pieces."""
    pieces = []
    for start, end in sentences:
        left, right = trim(text, start, end)
        if (right - left if length is len else length(text[left:right])) <= size:
            pieces += [(left, right)] if left < right else []
        else:
            parts = recursive_spans(text[left:right], size, 0, (_SPACES, ""), "start", length)
            pieces += [(left + first, left + last) for first, last in parts]
    return pieces


def pack(text: str, pieces: Sequence[Span], size: int, overlap: int = 0, length: Length = len) -> Iterator[Span]:
    """The first and the last piece of each chunk: as many as measure at most `size` together, or one alone."""

    def measure(first: int, last: int) -> int:
        start, end = pieces[first][0], pieces[last][1]
        return end - start if length is len else length(text[start:end])

    first = 0
    while first < len(pieces):
        last = last_that_fits(lambda k: measure(first, k), len(pieces), first, size)  # noqa: B023
        yield first, last
        after = last + 1
        while first + 1 < after < len(pieces) and measure(after - 1, last) <= overlap:
            if measure(after - 1, last + 1) > size:
                break
            after -= 1
        first = after


def last_that_fits(measure: Callable[[int], int], count: int, first: int, size: int) -> int:
    """The last of `count` pieces up to which those from `first` on measure at most `size`; `first` itself if none is.

    Asks `measure` O(log n) times.

    >>> last_that_fits(lambda last: 10 * last, 9, 2, 65)
    6
    """

    def fits(last: int) -> bool:
        return last < count and measure(last) <= size

    last, step = first, 1
    while fits(last + step):
        last, step = last + step, step * 2
    while step > 1:
        step //= 2
        last += step if fits(last + step) else 0
    return last


def delimited_spans(text: str, delimiter: str, skip_back: Sequence[str], skip_forward: Sequence[str]) -> list[Span]:
    """Sentences that end with a delimiter, and stops, quotes and brackets after it; they tile the text.

    Args:
        text: the document.
        delimiter: what ends a sentence, except between two digits.
        skip_back: words that it does not end one after.
        skip_forward: words that it does not end one before, where they follow it at once.

    Returns:
        (start, end) of each sentence, in order; none for a blank text.

    >>> delimited_spans("Dr. A and B.com. C.", ".", ["Dr"], ["com"])
    [(0, 17), (17, 19)]
    """
    mark = re.escape(delimiter)
    candidate = re.compile(
        rf"(?<!\w){_any_of(skip_back)}{mark}|{mark}(?={_any_of(skip_forward)}(?!\w))|(?<=\d){mark}(?=\d)"
        rf"|((?:{mark})++){CLOSERS}{WHITE.pattern}"
    )
    first, edges = WHITE.match(text).end(), [0]  # type: ignore[union-attr]
    for match in candidate.finditer(text, first):
        if match[1] and match.end() < len(text):
            edges.append(last_boundary(text, edges[-1], match.end()))
    return [(a, b) for a, b in pairwise([*edges, len(text)]) if a < b] if first < len(text) else []


def _any_of(words: Sequence[str]) -> str:
    """A pattern that matches any of the words; none at all if there are none."""
    return f"(?:{'|'.join(map(re.escape, words))})" if words else r"(?!)"


def _unskipped(
    text: str, sentences: Sequence[Span], skip_back: Sequence[str], skip_forward: Sequence[str]
) -> list[Span]:
    """The sentences, joined where one ends with a word of `skip_back` or the next begins with one of `skip_forward`."""
    back = re.compile(rf"(?<!\w){_any_of(skip_back)}[{STOPS}]+\Z")
    forward = re.compile(rf"{_any_of(skip_forward)}(?!\w)")
    longest = max(map(len, skip_back), default=0) + 20
    joined: list[Span] = []
    for start, end in sentences:
        before = text[max(0, start - longest) : start].rstrip()
        if joined and (back.search(before) or forward.match(text, start)):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


class SentenceChunker(Chunker):
    """Whole sentences, packed.

    Args:
        chunk_size: the longest chunk, in units of `length_function`. A longer sentence is cut at words, a longer word
            at characters.
        chunk_overlap: how much of a chunk the next may repeat: whole sentences, so often less, and often nothing.
        length_function: what sizes count; characters by default.

    Raises:
        ValueError: a size or overlap that is not allowed.

    >>> SentenceChunker(20).split_text("Dr. Lind came. He sat. He left.")
    ['Dr. Lind came.', 'He sat. He left.']
    """

    def __init__(self, chunk_size: int = 1000, chunk_overlap: int = 0, length_function: Length = len) -> None:
        super().__init__(chunk_size, chunk_overlap, length_function)

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        return packed_spans(text, sentence_spans(text), self._chunk_size, self._chunk_overlap, self._length_function)


class SnappingWindowChunker(Chunker):
    """Whole sentences up to a size, with whole sentences of context on both sides.

    Args:
        size: the longest chunk without its context, in units of `length_function`. A longer sentence is cut at words.
        overlap: sentences of context on each side, fewer where they would measure more than half of `size`.
        delimiter: what ends a sentence; None: whatever `sentence_spans` knows to end one.
        skip_forward: words that the end of a sentence does not come before; by default `SKIP_FORWARD` with a delimiter,
            and none without.
        skip_back: words that it does not come after; by default `SKIP_BACK` with a delimiter, and none without.
        length_function: what `size` counts; characters by default.

    Attributes:
        limit: the longest chunk with its context: `size` without overlap, twice that with any.

    Raises:
        ValueError: a size, overlap, delimiter or list that is not allowed.

    >>> SnappingWindowChunker(20, 1).split_text("Ann ran. Bob sat. Cy hid. Di won.")
    ['Ann ran. Bob sat. Cy hid.', 'Bob sat. Cy hid. Di won.']
    """

    def __init__(
        self,
        size: int = 2000,
        overlap: int = 5,
        delimiter: str | None = None,
        skip_forward: Sequence[str] | None = None,
        skip_back: Sequence[str] | None = None,
        length_function: Length = len,
    ) -> None:
        size = check_size("size", size)
        overlap = check_overlap("overlap", overlap, "size", size)
        if delimiter is not None and (not isinstance(delimiter, str) or not delimiter.strip()):
            raise ValueError(f"delimiter={delimiter!r}: must be None or a text that is not blank")
        for name, words in {"skip_forward": skip_forward, "skip_back": skip_back}.items():
            listed = words is None or (isinstance(words, Sequence) and not isinstance(words, str))
            if not listed or not all(isinstance(word, str) and word for word in words or ()):
                raise ValueError(f"{name}={words!r}: must be None or a list of words")
        self.limit = 2 * size if overlap else size
        super().__init__(self.limit, 0, length_function)
        self._size, self._overlap, self._delimiter = size, overlap, delimiter
        self._forward = tuple((SKIP_FORWARD if delimiter else ()) if skip_forward is None else skip_forward)
        self._back = tuple((SKIP_BACK if delimiter else ()) if skip_back is None else skip_back)

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        if self._delimiter:
            sentences = delimited_spans(text, self._delimiter, self._back, self._forward)
        else:
            sentences = sentence_spans(text)
            if self._back or self._forward:
                sentences = _unskipped(text, sentences, self._back, self._forward)
        return snapping_spans(text, sentences, self._size, self._overlap, self._length_function)
