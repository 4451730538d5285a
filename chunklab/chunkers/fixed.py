"""Fixed-size chunking: windows of equal length, by characters or by tokens.

The simplest method and the fastest: it reads nothing, so it cuts words and sentences wherever the count runs out. It is
the baseline that every other method has to beat, and the right choice for text without structure. A window may overlap
the one before, so that what a cut divides stands whole in one of the two. `SlidingWindowChunker` gives every window its
overlap on both sides, as the Ragu project does. Cost: one pass; no model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from chunklab.chunk import (
    BOM,
    Chunker,
    Span,
    check_overlap,
    check_size,
    graphemes,
    hard_cut,
    has_joins,
    is_blank,
    may_join,
    overlap_start,
    reach,
)
from chunklab.models.tokens import Tokens, tokens


def fixed_spans(text: str, size: int, overlap: int = 0, length: Callable[[str], int] = len) -> list[Span]:
    """Windows of `size` characters, each starting `overlap` before the end of the last.

    A window ends early rather than inside a grapheme cluster, unless one cluster is longer than `size`.

    Args:
        text: the document.
        size: characters in a window, 1 or more.
        overlap: characters shared by neighbours at most, from 0 to less than `size`.
        length: measures a piece, where size and overlap count something else than characters.

    Returns:
        (start, end) of each window that is not blank, in order.

    >>> fixed_spans("abcdefgh", 4, 1)
    [(0, 4), (3, 7), (6, 8)]
    """
    spans = []
    start, end = int(text.startswith(BOM)), 0
    while end < len(text):
        end = hard_cut(text, start, size, length)
        if not is_blank(text[start:end]):
            spans.append((start, end))
        start = overlap_start(text, start, end, overlap, length)
    return spans


def sliding_spans(text: str, size: int, overlap: int, length: Callable[[str], int] = len) -> list[Span]:
    """Windows of `size` characters, each widened by `overlap` on both sides, so that neighbours share twice as much.

    A text of at most `size + 2 * overlap` characters is one window. No window ends where the one before has ended.

    Args:
        text: the document.
        size: characters in a window before it is widened, 1 or more.
        overlap: characters added at each side at most, from 0 to less than `size`.
        length: measures a piece, where size and overlap count something else than characters.

    Returns:
        (start, end) of each window that is not blank, in order.

    >>> sliding_spans("abcdefghij", 4, 1)
    [(0, 5), (3, 9), (7, 10)]
    """
    most = size + 2 * overlap
    if length(text) <= most:
        return fixed_spans(text, most, 0, length)
    spans, previous, start, right = [], 0, int(text.startswith(BOM)), 0
    while right < len(text):
        end = hard_cut(text, start, size, length, most)
        room = max(0, min(overlap, (most - length(text[start:end])) // 2))
        left = overlap_start(text, previous, start, room, length) if start > previous else start
        right = reach(text, end, room, length)
        left, right = (start, end) if length(text[left:right]) > most else (left, right)  # tokens do not add up
        if not is_blank(text[left:right]):
            spans.append((left, right))
        previous, start = start, end
    return spans


def token_spans(text: str, offsets: list[int], size: int, overlap: int, count: Callable[[str], int]) -> list[Span]:
    """Windows of `size` tokens, cut at token offsets.

    Args:
        text: the document.
        offsets: where each token of `text` begins, in characters; never decreasing.
        size: tokens in a window, 1 or more.
        overlap: tokens shared by neighbours, from 0 to less than `size`.
        count: counts the tokens of a piece on its own, which can be more than it had inside the text.

    Returns:
        (start, end) of each window that is not blank, in order. Only one character, or one token, that is more than
        `size` tokens by itself makes a longer one.
    """
    edges, places = _token_edges(text, offsets, count)
    spans, first, last = [], 0, 0
    while last < len(edges) - 1:
        last = _last_edge(edges, places, first, first + size)
        while count(text[places[first] : places[last]]) > size:
            shorter = _last_edge(edges, places, first, last - 1)
            if shorter >= last:
                break
            last = shorter
        if not is_blank(text[places[first] : places[last]]):
            spans.append((places[first], places[last]))
        legal = (k for k in range(max(first + 1, last - overlap), last) if edges[k] > edges[k - 1])
        first = next(legal, last) if last < len(edges) - 1 else last
    return spans


def _token_edges(text: str, offsets: list[int], count: Callable[[str], int]) -> tuple[list[int], list[int]]:
    """Where to cut before each token, and at the end of the text.

    Gives two lists. In the first, an edge that must not be used repeats the one before it: it is inside a character or
    inside a grapheme cluster. (A cluster that begins with characters that are no token is cut before those.) The second
    has the same edges, but the token's own offset where an edge must not be used: for want of anything better.
    """
    first = int(text.startswith(BOM))
    if not has_joins(text):
        edges = [first, *(max(first, offset) for offset in offsets[1:]), len(text)]
        return edges, edges
    boundaries = graphemes(text, 0, len(text))
    edges, places = [first], [first]
    for offset in [*offsets[1:], len(text)] if offsets else [len(text)]:
        edge = boundaries[bisect_right(boundaries, offset) - 1]
        if edge != offset and (edge <= edges[-1] or count(text[edge:offset])):
            edge = edges[-1]
        places.append(edge if edge > edges[-1] else max(offset, places[-1]))
        edges.append(edge)
    return edges, places


def _last_edge(edges: list[int], places: list[int], first: int, last: int) -> int:
    """The last edge after `first` and up to `last` that may be used; if none may, the last between two characters."""
    last = min(last, len(edges) - 1)
    for candidates in (edges, places):
        for k in range(last, first, -1):
            if candidates[k] > candidates[k - 1] and places[k] > places[first]:
                return k
    return next((k for k in range(last + 1, len(edges)) if places[k] > places[first]), len(edges) - 1)


def _even_spans(text: str, size: int, overlap: int) -> list[Span]:
    """What `fixed_spans` gives, much quicker, where no window has to end early; else nothing."""
    first, step = int(text.startswith(BOM)), size - overlap
    if _may_tear(text, (first + size, first + step), step):
        return []
    starts = range(first, max(len(text) - overlap, first + 1), step)
    return _not_blank(text, [(start, start + size) for start in starts[:-1]] + [(starts[-1], len(text))])


def _even_sliding_spans(text: str, size: int, overlap: int) -> list[Span]:
    """What `sliding_spans` gives, much quicker, where no window has to end early; else nothing."""
    first, last = int(text.startswith(BOM)), len(text)
    cuts = (first + size - overlap, first + size, first + size + overlap)
    if last <= size + 2 * overlap or _may_tear(text, cuts, size):
        return []
    starts = range(first, last - overlap, size)
    return _not_blank(text, [(max(first, start - overlap), min(last, start + size + overlap)) for start in starts])


def _may_tear(text: str, cuts: tuple[int, ...], step: int) -> bool:
    """Whether a cut at one of these places, or whole steps after it, may be inside a grapheme cluster."""
    return any(may_join(text[cut - 1 : -1 : step], text[cut::step]) for cut in cuts)


def _not_blank(text: str, spans: list[Span]) -> list[Span]:
    return [(a, b) for a, b in spans if text[a : a + 1].isalnum() or not is_blank(text[a:b])]


class FixedSizeChunker(Chunker):
    """Windows of equal length.

    Args:
        chunk_size: characters in a chunk, or tokens if there is a tokenizer.
        chunk_overlap: characters, or tokens, shared by neighbours.
        tokenizer: "minilm", "cl100k", "o200k", or what `chunklab.tokens` gives: cuts at its token offsets.
        length_function: without a tokenizer, what size and overlap count; characters by default.

    Raises:
        ValueError: a size, overlap or tokenizer that is not allowed.

    >>> FixedSizeChunker(4, 1).split_text("abcdefgh")
    ['abcd', 'defg', 'gh']
    """

    def __init__(
        self,
        chunk_size: int = 1000,
        chunk_overlap: int = 0,
        tokenizer: str | Tokens | None = None,
        length_function: Callable[[str], int] = len,
    ) -> None:
        counter = tokens(tokenizer) if isinstance(tokenizer, str) else tokenizer
        if counter is not None and not hasattr(counter, "offsets"):
            allowed = "None, 'minilm', 'cl100k', 'o200k', or what chunklab.tokens gives"
            raise ValueError(f"tokenizer={tokenizer!r}: must be {allowed}")
        super().__init__(chunk_size, chunk_overlap, counter or length_function)
        self._counter = counter

    def spans(self, text: str) -> list[Span]:
        """Where the windows start and end, in order."""
        if self._counter is None:
            even = _even_spans(text, self._chunk_size, self._chunk_overlap) if self._length_function is len else None
            return even or fixed_spans(text, self._chunk_size, self._chunk_overlap, self._length_function)
        offsets = self._counter.offsets(text)
        return token_spans(text, offsets, self._chunk_size, self._chunk_overlap, self._counter)


class SlidingWindowChunker(Chunker):
    """Windows with overlap on both sides; a chunk is at most `size + 2 * overlap` characters.

    Args:
        size: characters in a window before it is widened.
        overlap: characters added at each side.
        length_function: what size and overlap count; characters by default.

    Raises:
        ValueError: a size or overlap that is not allowed.

    >>> SlidingWindowChunker(4, 1).split_text("abcdefghij")
    ['abcde', 'defghi', 'hij']
    """

    def __init__(self, size: int = 1000, overlap: int = 200, length_function: Callable[[str], int] = len) -> None:
        size = check_size("size", size)
        overlap = check_overlap("overlap", overlap, "size", size)
        super().__init__(size + 2 * overlap, 0, length_function)
        self._size, self._overlap = size, overlap

    def spans(self, text: str) -> list[Span]:
        """Where the windows start and end, in order."""
        even = _even_sliding_spans(text, self._size, self._overlap) if self._length_function is len else None
        return even or sliding_spans(text, self._size, self._overlap, self._length_function)
