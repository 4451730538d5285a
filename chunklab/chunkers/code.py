"""Code chunking: whole functions and classes where they fit.

For source files, where a cut in the middle of a function leaves two halves that say little. Small neighbours share a
chunk; a class that is too big is cut between its methods, a function between its statements, a statement between its
lines, a line between its words. The chunks are slices, with their indentation and the blank lines: put together, they
are the file again. The first lines of the classes and functions that a chunk stands in are in its metadata. After the
code splitters that build on tree-sitter (LlamaIndex, semantic-text-splitter). Cost: one parse; no model, no download.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chunklab.chunk import BOM, Chunk, Chunker, Span, check_choice, check_id, check_text, hard_cut, is_blank, trim
from chunklab.chunkers.fixed import fixed_spans
from chunklab.chunkers.sentence import last_that_fits
from chunklab.chunkers.syntax import GRAMMARS, Part, Source

Length = Callable[[str], int]
Fits = Callable[[int, int], bool]


def code_spans(text: str, size: int, language: str = "python", length: Length = len) -> list[Span]:
    """Cut source code between functions, statements, lines: the largest parts that fit.

    Args:
        text: the source code.
        size: the longest chunk, in units of `length`.
        language: "python" or "javascript".
        length: measures a text.

    Returns:
        (start, end) of each chunk, in order. One starts where the last ended, unless white space fits into neither.

    >>> text = "def f():\\n    return 1\\n\\n\\ndef g():\\n    return 2\\n"
    >>> [text[start:end] for start, end in code_spans(text, 30)]
    ['def f():\\n    return 1\\n\\n\\n', 'def g():\\n    return 2\\n']
    """
    return [(piece.start, piece.end) for piece in code_pieces(text, size, language, length)]


@dataclass
class Piece:
    """A chunk to be: its place, and the first lines of the classes and functions that it stands in."""

    start: int
    end: int
    context: tuple[str, ...]


def code_pieces(text: str, size: int, language: str, length: Length = len) -> list[Piece]:
    """What `code_spans` gives, each with its context."""
    if is_blank(text):
        return []
    packing = Packing(Source(text, language), size, length)
    packing.pack(packing.source.whole)
    packing.fill(len(text))
    return packing.pieces


class Packing:
    """Divides a source until its parts fit, and puts neighbours together that fit together.

    White space goes to the chunk before it, and only what does not fit to the chunk after. It is left out where it fits
    into neither: a whole function is worth more than the blank line below.

    Args:
        source: the source code.
        size: the longest chunk, in units of `length`.
        length: measures a text.
    """

    def __init__(self, source: Source, size: int, length: Length) -> None:
        self.source, self.size, self.length = source, size, length
        self.fits = fitting(source.text, size, length)
        self.pieces: list[Piece] = []

    def pack(self, part: Part) -> None:
        """Make chunks of a part, in order."""
        if self.fits(part.start, part.end) and self.fits(part.start, self.source.next_start(part.end)):
            self._group([part])
        elif part.how:
            self._group(joined(self.source.parts(part), self.fits))
        else:
            self._cut_word(part)

    def _group(self, parts: list[Part]) -> None:
        """Make chunks of parts, those that are too long apart, the others together with the white space behind them."""
        stops = [*(part.start for part in parts[1:]), self.source.next_start(parts[-1].end)]
        first = 0
        while first < len(parts):
            part, last = parts[first], first
            if self.fits(part.start, part.end):
                place = self.fill(part.start)
                start = place if self.fits(place, part.end) else part.start
                last = last_that_fits(lambda k: not self.fits(start, stops[k]), len(parts), first, 0)  # noqa: B023
                self.pieces.append(Piece(start, parts[last].end, part.context))
            else:
                self.pack(part)
            first = last + 1

    def fill(self, stop: int) -> int:
        """Give the white space up to `stop` to the last chunk, as much as fits; says where the rest of it begins."""
        if not self.pieces:
            return int(self.source.text.startswith(BOM))
        last = self.pieces[-1]
        room = stop if self.fits(last.start, stop) else hard_cut(self.source.text, last.start, self.size, self.length)
        last.end = max(last.end, min(room, stop))
        return last.end

    def _cut_word(self, part: Part) -> None:
        """A word that is too long, cut at characters; if only its indentation makes it so, without that."""
        text, first = self.source.text, trim(self.source.text, part.start, part.end)[0]
        if self.fits(first, part.end):
            return self._group([part._replace(start=first)])
        start = self.fill(part.start)
        for left, right in fixed_spans(text[start : part.end], self.size, 0, self.length):
            self.pieces.append(Piece(start + left, start + right, part.context))


def joined(parts: list[Part], fits: Fits) -> list[Part]:
    """The parts, each header and comment with the part that it opens, and each bracket with the part that it closes.

    They stand apart only where they do not fit together, and that keeps a function whole.
    """
    together: list[Part] = []
    for part in parts:
        if together and (part.closes or together[-1].opens):
            last = together[-1]
            main = last if part.closes else part
            apart = part.closes or part.defines or last.opens == "comment"
            if fits(last.start, part.end) or not (apart and fits(main.start, main.end)):
                together[-1] = main._replace(start=last.start, end=part.end, context=last.context, closes=False)
                continue
        together.append(part)
    return together


def fitting(text: str, size: int, length: Length) -> Fits:
    """What says whether text[start:end] measures at most `size`; of a text that is far too long, it reads the start."""
    if length is len:
        return lambda start, end: end - start <= size

    def fits(start: int, end: int) -> bool:
        reach = 8 * size
        while start + reach < end:
            if length(text[start : start + reach]) > size:
                return False
            reach *= 2
        return length(text[start:end]) <= size

    return fits


class CodeChunker(Chunker):
    """Whole functions and classes where they fit, with their decorators and the comments above them.

    Where a chunk is a part of a class or a function, and does not begin with it, metadata["context"] lists the first
    lines of those, the outermost first: ["class Tide:", "def at(self, hour):"].

    Args:
        language: "python" or "javascript".
        chunk_size: the longest chunk, in units of `length_function`.
        length_function: what the size counts; characters by default.

    Raises:
        ValueError: a language or size that is not allowed.

    >>> text = "class Bell:\\n    def ring(self):\\n        return 1\\n\\n    def rest(self):\\n        return 0\\n"
    >>> for chunk in CodeChunker("python", 50).chunk(text):
    ...     print(chunk.metadata, repr(chunk.text))
    {} 'class Bell:\\n    def ring(self):\\n        return 1\\n\\n'
    {'context': ['class Bell:']} '    def rest(self):\\n        return 0\\n'
    """

    def __init__(self, language: str, chunk_size: int = 1000, length_function: Length = len) -> None:
        check_choice("language", language, tuple(GRAMMARS))
        super().__init__(chunk_size, 0, length_function)
        self._language = language

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        return code_spans(text, self._chunk_size, self._language, self._length_function)

    def chunk(self, text: str, doc_id: str = "doc") -> list[Chunk]:
        """Cut one text.

        Args:
            text: the source code.
            doc_id: its id, kept in every chunk.

        Returns:
            The chunks, in the order of the text; none for a blank text.

        Raises:
            ValueError: a text or an id that is not a str.
        """
        check_id(doc_id)
        pieces = code_pieces(check_text(text), self._chunk_size, self._language, self._length_function)
        chunks = []
        for index, piece in enumerate(pieces):
            metadata = {"context": list(piece.context)} if piece.context else {}
            place = (text[piece.start : piece.end], piece.start, piece.end)
            chunks.append(Chunk(*place, doc_id, f"{doc_id}_{index}", None, index, len(pieces), metadata))
        return chunks
