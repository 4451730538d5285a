"""Paragraph chunking: whole paragraphs, packed, never broken.

For text whose writers put one thought into a paragraph: reports, articles, handbooks. The rule is RAG Me Up's: cut at
blank lines, and put paragraphs together as long as they fit. Here the blank lines between them are counted, so that
only a paragraph that is itself too long goes over the size: it stands alone, and its metadata say {"oversize":
"paragraph"}. Respect for the paragraph costs control of the size: a document without blank lines is one chunk. Cost:
one pass; no model.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from chunklab.chunk import BOM, Chunk, Chunker, Span, check_size, check_text, has_joins, last_boundary, trim
from chunklab.chunkers.sentence import last_that_fits

Length = Callable[[str], int]

BLANK_LINE = r"\n\s*\n"
"""The default separator: a blank line."""

_OTHER_LINE_ENDS = re.compile("\r\n|[\r\u2028\u2029]")
_WHITE = re.compile(r"\s*")
_GAP = re.compile(r"\n\s*\n\s*")
_BLOCK = 100_000  # characters


def paragraph_spans(text: str, separator: str = BLANK_LINE) -> list[Span]:
    """Where the paragraphs of a text begin and end, without white space at their edges.

    Args:
        text: the document.
        separator: a regular expression for what stands between paragraphs. It sees every line end as a line feed, be it
            LF, CRLF, CR or U+2028, and a paragraph separator (U+2029) as two.

    Returns:
        (start, end) of each paragraph that is not blank, in order.

    >>> paragraph_spans("One.\\r\\n\\r\\nTwo.")
    [(0, 4), (8, 12)]
    """
    plain, real = _with_line_feeds(text)
    spans, start, careful = [], 0, separator != BLANK_LINE and has_joins(plain)
    for match in re.finditer(separator, plain):
        left, right = match.span()
        if not careful or (last_boundary(plain, start, left) == left and last_boundary(plain, start, right) == right):
            spans.append(trim(plain, start, left))
            start = right
    spans.append(trim(plain, start, len(plain)))
    return [(real(first), real(last - 1) + 1) for first, last in spans if first < last]


def packed_paragraphs(
    text: str, paragraphs: Sequence[Span], size: int, join: str | None = None, length: Length = len
) -> Iterator[Span]:
    """Whole paragraphs, as many to a chunk as fit; one that is too long stands alone.

    Args:
        text: the document.
        paragraphs: what `paragraph_spans` gives.
        size: the longest chunk, in units of `length`.
        join: what stands between the paragraphs of a chunk; None: what stands between them in the text.
        length: measures a text.

    Yields:
        The first and the last paragraph of each chunk, by place.

    >>> list(packed_paragraphs("One.\\n\\nTwo.\\n\\nThree.", [(0, 4), (6, 10), (12, 18)], 10))
    [(0, 1), (2, 2)]
    """

    def measure(last: int) -> int:
        if join is None and length is len:
            return paragraphs[last][1] - paragraphs[first][0]
        return length(joined(text, paragraphs[first : last + 1], join))

    first = 0
    while first < len(paragraphs):
        last = last_that_fits(measure, len(paragraphs), first, size)
        yield first, last
        first = last + 1


def joined(text: str, paragraphs: Sequence[Span], join: str | None) -> str:
    """The text of a chunk of these paragraphs."""
    if join is None:
        return text[paragraphs[0][0] : paragraphs[-1][1]]
    return join.join([text[start:end] for start, end in paragraphs])


def _groups(text: str, paragraphs: list[Span], size: int, join: str | None, length: Length) -> list[list[Span]]:
    """The paragraphs of each chunk."""
    return [paragraphs[first : last + 1] for first, last in packed_paragraphs(text, paragraphs, size, join, length)]


def _texts(text: str, size: int, join: str | None) -> list[str]:
    """The chunks' texts, quickly, for the defaults and a `join`.

    Block by block: a block stays in the processor's cache, and a paragraph with other line ends or with a blank that
    carries a mark slows down its own block alone.
    """
    texts: list[str] = []
    start, stop = _WHITE.match(text).end(), _end(text)  # type: ignore[union-attr]
    start = last_boundary(text, max(0, start - 1), start)  # a blank that carries a mark stays
    stop += last_boundary(text, max(0, stop - 1), stop) < stop
    usual = block = max(_BLOCK, 4 * size)
    while start < stop:
        # A part ends with a letter, so that no blank line goes on behind it.
        part = text[start : start + block].rstrip() if start + block < stop else text[start:stop]
        found = None
        if not ("\r" in part or "\u2028" in part or "\u2029" in part or BOM in part):
            found = _slices(part, size) if join is None else _joins(part, size, join)
        if found is None:
            groups = _groups(part, paragraph_spans(part), size, join, len)
            found = [joined(part, group, join) for group in groups], groups[-1][0][0] if groups else 0
        pieces, last = found
        if start + block >= stop:
            return texts + pieces
        texts += pieces[:-1]  # the last one may go on
        start, block = start + last, usual if last else 2 * block  # a paragraph may be longer than a block
    return texts


def _end(text: str) -> int:
    """Where a text ends, white space aside; without a copy of all of it."""
    end, tail = len(text), ""
    while end and (tail := text[max(0, end - 1000) : end]).isspace():
        end -= len(tail)
    return end - len(tail) + len(tail.rstrip()) if end else 0


def _slices(text: str, size: int) -> tuple[list[str], int] | None:
    """The texts of a block's chunks, and where the last one starts; None if a blank may carry a mark.

    Most paragraphs are never looked at: from as far as a chunk may reach, this goes back to the last blank line.
    """
    pieces, start, stop, reach, wide = [], 0, len(text), min(size, len(text)), not text.isascii()
    fit = re.compile(rf"(?s).{{{reach}}}[^\S\n]+{_GAP.pattern}|.{{1,{reach}}}{_GAP.pattern}").match
    while start < stop - size:
        end = start + size
        last = text.rfind("\n", start, end + 2)
        if last > 0 and text[last - 1] == "\n" and not (text[last + 1].isspace() or text[end : end + 2].isspace()):
            end, after = last - 1, last + 1  # it is the blank line, and a plain one
        elif last > 0 and (gap := fit(text, start)):
            end = after = gap.end()
        else:
            end = text.find("\n", end, stop)
            if end < 0:
                break
            after = end + 2
            if text[end + 1] != "\n" or text[after].isspace():
                gap = _GAP.search(text, end, stop)
                if not gap:
                    break
                end, after = gap.span()
        piece = text[start:end].rstrip()
        if wide and not (edges := piece[0] + piece[-1]).isascii() and has_joins(edges):
            return None
        pieces.append(piece)
        start = after
    pieces.append(text[start:])
    return None if has_joins(text[start] + text[-1]) else (pieces, start)


def _joins(text: str, size: int, join: str) -> tuple[list[str], int] | None:
    """What `_slices` gives, with a `join`."""
    chunks: list[str] = []
    group: list[str] = []
    last: list[str] = []
    room, between = size, len(join)
    pieces = [*filter(None, map(str.strip, re.split(BLANK_LINE, text)))]
    for piece in [*pieces, ""]:
        room -= len(piece)
        if room < 0 or not piece:
            if group:
                chunks.append(join.join(group))
                last = group
            group, room = [], size - len(piece)
        group.append(piece)
        room -= between
    if not text.isascii() and has_joins("".join([piece[0] + piece[-1] for piece in pieces])):
        return None
    place = len(text)
    for piece in reversed(last):
        place = text.rindex(piece, 0, place)  # only white space stands behind it
    return chunks, place


def _with_line_feeds(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with line feeds for all line ends, and what gives the place in `text` for a place in that."""
    parts, plain_at, real_at, place = [], [0], [0], 0
    for match in _OTHER_LINE_ENDS.finditer(text):
        parts += [text[real_at[-1] : match.start()], "\n\n" if match[0] == "\u2029" else "\n"]
        place += len(parts[-2]) + len(parts[-1])
        plain_at.append(place)
        real_at.append(match.end())
    if not parts:
        return text, lambda place: place

    def real(place: int) -> int:
        k = bisect_right(plain_at, place) - 1
        return real_at[k] + place - plain_at[k]

    return "".join([*parts, text[real_at[-1] :]]), real


class ParagraphChunker(Chunker):
    """Whole paragraphs, packed.

    Args:
        max_chunk_size: the longest chunk, in units of `length_function`. A paragraph that is longer by itself is a
            chunk all the same, and its metadata say {"oversize": "paragraph"}.
        paragraph_separator: a regular expression for what stands between paragraphs; it sees every line end as a line
            feed.
        join: None: a chunk is a slice of the document, with all that stands between its paragraphs. A text: the
            paragraphs are joined with it ("\\n\\n" is what RAG Me Up does), and where there are several, their places
            are in the metadata, as "spans".
        length_function: what the size counts; characters by default.

    Raises:
        ValueError: a size, separator or join that is not allowed.

    >>> [(c.text, c.metadata) for c in ParagraphChunker(9).chunk("One.\\n\\nTwo is long.\\n\\nOne.\\n\\nA.")]
    [('One.', {}), ('Two is long.', {'oversize': 'paragraph'}), ('One.\\n\\nA.', {})]
    """

    def __init__(
        self,
        max_chunk_size: int = 512,
        paragraph_separator: str = BLANK_LINE,
        join: str | None = None,
        length_function: Length = len,
    ) -> None:
        max_chunk_size = check_size("max_chunk_size", max_chunk_size)
        check_separator(paragraph_separator)
        if join is not None and not isinstance(join, str):
            raise ValueError(f"join={join!r}: must be None or a text")
        super().__init__(max_chunk_size, 0, length_function)
        self._separator, self._join = paragraph_separator, join
        self._is_usual = paragraph_separator == BLANK_LINE and length_function is len

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        if not self._is_usual or self._join is not None:
            return [(within[0][0], within[-1][1]) for within in self._groups(text)]
        spans, end = [], 0
        for piece in _texts(text, self._chunk_size, None):
            start = text.index(piece, end)  # only white space and byte order marks come before it
            end = start + len(piece)
            spans.append((start, end))
        return spans

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts alone, as LangChain asks for them."""
        if self._is_usual:
            return _texts(check_text(text), self._chunk_size, self._join)
        return [joined(text, within, self._join) for within in self._groups(check_text(text))]

    def chunk(self, text: str, doc_id: str = "doc") -> list[Chunk]:
        """Cut one text.

        Args:
            text: the document.
            doc_id: its id, kept in every chunk.

        Returns:
            The chunks, in the order of the text; none for a blank text.

        Raises:
            ValueError: a text or an id that is not a str.
        """
        chunks = super().chunk(text, doc_id)
        if self._join is not None:
            groups = self._groups(text)
            chunks = [replace(c, text=joined(text, group, self._join)) for c, group in zip(chunks, groups, strict=True)]
            for c, group in zip(chunks, groups, strict=True):
                c.metadata.update({"spans": group} if len(group) > 1 else {})
        for c in chunks:
            if self._length_function(c.text) > self._chunk_size:
                c.metadata["oversize"] = "paragraph"
        return chunks

    def _groups(self, text: str) -> list[list[Span]]:
        """The paragraphs of each chunk."""
        paragraphs = paragraph_spans(text, self._separator)
        return _groups(text, paragraphs, self._chunk_size, self._join, self._length_function)


def check_separator(separator: str) -> None:
    """Raise ValueError unless `separator` is a regular expression that matches something."""
    rule = "must be a regular expression that does not match the empty text"
    try:
        empty = re.compile(separator).match("")
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"paragraph_separator={separator!r}: {rule}: {error}") from error
    if empty or not isinstance(separator, str):
        raise ValueError(f"paragraph_separator={separator!r}: {rule}")
