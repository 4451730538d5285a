"""Chunks of one document as one text, that says nothing twice.

What a retrieval strategy hands on: a chunk and its neighbours, two that overlap, or a document put together again. For
`strategies`, and for whoever shows neighbours with a hit. Cost: none to speak of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from chunklab.chunk import Chunk, is_blank
from chunklab.metrics import merged, spans_of

Key = tuple[str, str]


@dataclass(frozen=True)
class Passage:
    """Chunks of one document that are handed on as one text."""

    main: Chunk
    pieces: tuple[Chunk, ...]
    score: float
    source: str | None = None

    def scored(self, score: float) -> Passage:
        """The same with a score, and with all that is worked out of it already."""
        other = object.__new__(Passage)
        vars(other).update(vars(self), score=score, chunk=self.chunk, keys=self.keys, span=self.span)
        return other

    @cached_property
    def chunk(self) -> Chunk:
        """The passage as one chunk, with the id of the main one."""
        return joined(self.pieces, self.main, self.source)

    @cached_property
    def keys(self) -> frozenset[Key]:
        """Which chunks it is made of."""
        return frozenset(map(key_of, self.pieces))

    @cached_property
    def span(self) -> tuple[str, int, int] | None:
        """Its place, if its text is what the document has there; None if some chunk was rewritten."""
        if self.source is None and not all(map(is_slice, self.pieces)):
            return None
        return self.main.document, min(c.start for c in self.pieces), max(c.end for c in self.pieces)

    def repeats(self, other: Passage) -> bool:
        """Whether some of the text is the same."""
        one, two = self.span, other.span
        if one is None or two is None:
            return bool(self.keys & other.keys)
        return one[0] == two[0] and one[1] < two[2] and two[1] < one[2]

    def holds(self, other: Passage) -> bool:
        """Whether all of the other's text is in it."""
        if self.span is None or other.span is None:
            return other.keys <= self.keys
        (document, start, end), (document_2, start_2, end_2) = self.span, other.span
        within = document == document_2 and start <= start_2 and end_2 <= end
        return within and (self.source is not None or all(is_blank(self._lacks(piece)) for piece in other.pieces))

    def _lacks(self, piece: Chunk) -> str:
        """What a chunk has between the places of these."""
        missing, reached = "", piece.start
        for start, end in merged(span for own in self.pieces for span in spans_of(own))[piece.document]:
            missing += piece.text[reached - piece.start : max(0, start - piece.start)]
            reached = max(reached, end)
        return missing + piece.text[reached - piece.start :]


def joined(pieces: Sequence[Chunk], main: Chunk, source: str | None = None) -> Chunk:
    """Chunks of one document as one, each character once.

    Args:
        pieces: one or more.
        main: the chunk whose id it has.
        source: the document's text, if it is at hand: the text is then what stands there, gaps included.

    Returns:
        A piece as it is where it is the only one; else a chunk with the place of all.

    Raises:
        ValueError: a source that ends before a chunk does.

    >>> chunk = joined([Chunk("one two", 0, 7), Chunk("two three", 4, 13, id="doc_1")], Chunk("two", 4, 7, id="doc_1"))
    >>> chunk.text, chunk.start, chunk.end, chunk.id, chunk.metadata
    ('one two three', 0, 13, 'doc_1', {'chunks': ['doc_0', 'doc_1']})
    """
    start, end = min(piece.start for piece in pieces), max(piece.end for piece in pieces)
    if source is not None:
        check_end(max(pieces, key=lambda piece: piece.end), source)
    if len(pieces) == 1:
        (only,) = pieces
        if source is None:
            return only
        return replace(only, text=source[start:end], metadata=_without(only.metadata, "spans"))
    pieces = sorted(pieces, key=place_of)
    parts, reached, apart = [], start, True
    for piece in pieces:
        if not is_slice(piece):
            # Words of its own: they say nothing of what others have at its place.
            parts += ["\n\n", piece.text]
            apart = True
        elif piece.end > reached:
            gap = piece.start - reached
            parts += ["\n\n"[: 2 if apart else max(0, gap)], piece.text[max(0, -gap) :]]
            reached, apart = piece.end, False
    text = "".join(parts[1:])
    # What all have in common is true of the passage: the source, the title.
    first, *others = (piece.metadata for piece in pieces)
    metadata = {key: value for key, value in first.items() if all(key in o and o[key] == value for o in others)}
    metadata = {**_without(metadata, "spans"), "chunks": [piece.id for piece in pieces]}
    places = merged(span for piece in pieces for span in spans_of(piece))[main.document]
    if source is not None:
        text = source[start:end]
    elif len(places) > 1:
        metadata["spans"] = places
    return replace(main, text=text, start=start, end=end, metadata=metadata)


def check_end(chunk: Chunk, source: str) -> None:
    """Raise ValueError for a chunk that ends after its document's text, which then is another one."""
    if chunk.end > len(source):
        raise ValueError(
            f"document {chunk.document!r} has a chunk that ends at {chunk.end}, and a text that ends at {len(source)}"
        )


def key_of(chunk: Chunk) -> Key:
    """What names a chunk: ids are unique within a document only."""
    return chunk.document, chunk.id


def is_slice(chunk: Chunk) -> bool:
    """Whether its text is what the document has at its place, as far as can be told without the document."""
    return len(chunk.text) == chunk.end - chunk.start and "spans" not in chunk.metadata


def place_of(chunk: Chunk) -> tuple[int, int, int]:
    """To sort by: what begins first, and of two the longer."""
    return chunk.start, -chunk.end, chunk.index


def _without(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != name}
