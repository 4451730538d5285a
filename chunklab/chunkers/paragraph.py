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


def _slices(text: str, size: int) -> list[str] | None:
    """The chunks' texts, quickly, for the defaults; None if a piece is not plain.

    Most paragraphs are never looked at: from as far as a chunk may reach, this goes back to the last blank line.
    """
    if (ascii_only := text.isascii()) and "\r" in text:
        return None
    pieces, start, stop = [], _WHITE.match(text).end(), len(text) if text[-1:].strip() else len(text.rstrip())
    reach = min(size, len(text) or 1)
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
        # Looked at now, while it is in the processor's cache: that is quicker than to search all of a wide text.
        if not ascii_only and ("\r" in piece or not (piece.isascii() or _is_plain(piece, piece[0] + piece[-1]))):
            return None
        pieces.append(piece)
        start = after
    if start < stop:
        pieces.append(text[start:stop])
    return pieces if all(_is_plain(rest, rest[0] + rest[-1]) for rest in pieces[-1:]) else None


def _joins(text: str, size: int, join: str) -> list[str] | None:
    """What `_slices` gives, with a `join`."""
    chunks, group, room, between = [], [], size, len(join)
    for piece in [*filter(None, map(str.strip, re.split(BLANK_LINE, text))), ""]:
        room -= len(piece)
        if room < 0 or not piece:
            chunk = join.join(group)
            if "\r" in chunk or not (chunk.isascii() or _is_plain(chunk, "".join([p[0] + p[-1] for p in group]))):
                return None
            chunks.append(chunk)
            group, room = [], size - len(piece)
        group.append(piece)
        room -= between
    return list(filter(None, chunks))


def _is_plain(chunk: str, edges: str) -> bool:
    """Whether a chunk has no line end but the line feed, and no edge of its pieces is one character with a blank."""
    joins = not edges.isascii() and (BOM in edges or has_joins(edges))
    return not (joins or "\r" in chunk or "\u2028" in chunk or "\u2029" in chunk)


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

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        pieces = self._quick(text) if self._join is None else None
        if pieces is None:
            return [(within[0][0], within[-1][1]) for within in self._groups(text)]
        spans, end = [], 0
        for piece in pieces:
            start = text.index(piece, end)  # only white space comes before it
            end = start + len(piece)
            spans.append((start, end))
        return spans

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts alone, as LangChain asks for them."""
        pieces = self._quick(check_text(text))
        return [joined(text, within, self._join) for within in self._groups(text)] if pieces is None else pieces

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
            chunks = [
                replace(c, text=joined(text, group, self._join)) for c, group in zip(chunks, groups, strict=True)
            ]
            for c, group in zip(chunks, groups, strict=True):
                c.metadata.update({"spans": group} if len(group) > 1 else {})
        for c in chunks:
            if self._length_function(c.text) > self._chunk_size:
                c.metadata["oversize"] = "paragraph"
        return chunks

    def _groups(self, text: str) -> list[list[Span]]:
        """The paragraphs of each chunk."""
        paragraphs = paragraph_spans(text, self._separator)
        packed = packed_paragraphs(text, paragraphs, self._chunk_size, self._join, self._length_function)
        return [paragraphs[first : last + 1] for first, last in packed]

    def _quick(self, text: str) -> list[str] | None:
        """The chunks' texts, where a quick way gives the same; else None."""
        if self._separator != BLANK_LINE or self._length_function is not len or text.startswith(BOM):
            return None
        return _slices(text, self._chunk_size) if self._join is None else _joins(text, self._chunk_size, self._join)


def check_separator(separator: str) -> None:
    """Raise ValueError unless `separator` is a regular expression that matches something."""
    rule = "must be a regular expression that does not match the empty text"
    try:
        empty = re.compile(separator).match("")
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"paragraph_separator={separator!r}: {rule}: {error}") from error
    if empty or not isinstance(separator, str):
        raise ValueError(f"paragraph_separator={separator!r}: {rule}")
