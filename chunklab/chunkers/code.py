"""Code chunking: whole functions and classes where they fit.

For source files, where a cut in the middle of a function leaves two halves that say little. Small neighbours share a chunk;
a class that is too big is cut between its methods, a function between its statements, a statement between its lines, a line
between its words. The chunks are slices, with their indentation and all blank lines: put together, they are the file again.
What they stand in, the first lines of classes and functions around them, is in their metadata. After the code splitters of
tree-sitter's users (LlamaIndex, semantic-text-splitter). Cost: one parse; no model, nothing to fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chunklab.chunk import BOM, Chunk, Chunker, Span, check_choice, check_text, hard_cut, is_blank
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
    return [(start, end) for start, end, _ in code_pieces(text, size, language, length)]


def code_pieces(
    text: str, size: int, language: str, length: Length = len
) -> list[tuple[int, int, tuple[str, ...]]]:
    """What `code_spans` gives, each span with its context: the first lines of the classes and functions around it."""
    if is_blank(text):
        return []
    fits = fitting(text, size, length)
    source = Source(text, language)
    parts = list(packed(source, source.whole, size, length, fits))
    spans = with_white_space(text, [(part.start, part.end) for part in parts], size, length, fits)
    return [(start, end, part.context) for (start, end), part in zip(spans, parts, strict=True)]


def packed(source: Source, part: Part, size: int, length: Length, fits: Fits) -> Iterator[Part]:
    """Divide a part until its parts fit, and put neighbours together that fit together.

    Args:
        source: the source code.
        part: what to divide.
        size: the longest chunk, in units of `length`.
        length: measures a text.
        fits: whether the text from one place to another is short enough.

    Yields:
        The chunks to be, in order, without blank lines at their edges.
    """
    if fits(part.start, part.end):
        yield part
    elif not part.how:
        yield from _cut_word(source.text, part, size, length, fits)
    else:
        parts = joined(source.parts(part), fits)
        first = 0
        while first < len(parts):
            start = parts[first].start
            last = last_that_fits(lambda k: not fits(start, parts[k].end), len(parts), first, 0)  # noqa: B023
            if last > first:
                yield parts[first]._replace(end=parts[last].end)
            else:
                yield from packed(source, parts[first], size, length, fits)
            first = last + 1


def joined(parts: list[Part], fits: Fits) -> list[Part]:
    """The parts, each header and comment with the part that it opens, and each bracket with the part that it closes.

    They stand apart only where a part fits without them, and not with them: a whole function is worth more.
    """
    together: list[Part] = []
    for part in parts:
        if together and (part.closes or together[-1].opens):
            last = together[-1]
            main = last if part.closes else part
            if fits(last.start, part.end) or not fits(main.start, main.end):
                together[-1] = main._replace(start=last.start, end=part.end, context=last.context, closes=False)
                continue
        together.append(part)
    return together


def with_white_space(text: str, spans: list[Span], size: int, length: Length, fits: Fits) -> list[Span]:
    """The spans, with the white space between them: it goes to the one before, and what does not fit, to the one after."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    begin = int(text.startswith(BOM))
    for k in range(len(spans) + 1):
        left, right = ends[k - 1] if k else begin, starts[k] if k < len(spans) else len(text)
        if left < right and k:
            left = right if fits(starts[k - 1], right) else min(right, hard_cut(text, starts[k - 1], size, length))
            left = ends[k - 1] = max(left, ends[k - 1])
        if left < right and k < len(spans) and fits(left, ends[k]):
            starts[k] = left
    return list(zip(starts, ends, strict=True))


def fitting(text: str, size: int, length: Length) -> Fits:
    """What says whether text[start:end] measures at most `size`; of a text that is far too long, it looks at the start."""
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


def _cut_word(text: str, part: Part, size: int, length: Length, fits: Fits) -> Iterator[Part]:
    """A word that is too long, cut at characters; if only its indentation makes it so, without that."""
    first = part.end - len(text[part.start : part.end].lstrip())
    if part.start < first and fits(first, part.end):
        yield part._replace(start=first)
        return
    for start, end in fixed_spans(text[part.start : part.end], size, 0, length):
        yield part._replace(start=part.start + start, end=part.start + end)


class CodeChunker(Chunker):
    """Whole functions and classes where they fit, with their decorators and the comments above them.

    Where a chunk is a part of a class or a function, and does not begin with it, metadata["context"] lists the first lines
    of those, the outermost first: ["class Tide:", "def at(self, hour):"].

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
        if not isinstance(doc_id, str):
            raise ValueError(f"doc_id={doc_id!r:.80}: must be a str")
        pieces = code_pieces(check_text(text), self._chunk_size, self._language, self._length_function)
        total = len(pieces)
        return [
            Chunk(text[start:end], start, end, doc_id, f"{doc_id}_{k}", None, k, total, {"context": list(context)} if context else {})
            for k, (start, end, context) in enumerate(pieces)
        ]
