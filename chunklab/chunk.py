"""What every chunking method gives and keeps.

A chunk is a span of a document: two character offsets, and the text between them. A chunker is a LangChain
`TextSplitter` whose own verb is `chunk(text, doc_id)`. Everything else here is what all methods need to keep the same
promises: checks of arguments that speak plainly, trimming, and cuts that never fall inside a grapheme cluster (what a
reader sees as one character: an emoji with its joiners, a letter with its accents).
"""

from __future__ import annotations

import copy
import operator
import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import regex
from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

BOM = "\ufeff"
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document, and where it came from.

    Attributes:
        text: the chunk's text; `document_text[start:end]` unless the method rewrites.
        start: offset of its first character in the document.
        end: offset just after its last character.
        document: the document's id.
        id: the chunk's id, unique with `document`: "manual_3"; a chunk of a chunk is "manual_3_0".
        parent_id: the id of the chunk that it is a part of, or None.
        index: its place among the chunks of one split, from 0.
        total: how many chunks that split gave.
        metadata: anything else; left out of equality and hash.

    >>> Chunk("whole", 4, 9, "manual", "manual_1", None, 1, 2).id
    'manual_1'
    """

    text: str
    start: int
    end: int
    document: str = "doc"
    id: str = "doc_0"
    parent_id: str | None = None
    index: int = 0
    total: int = 1
    metadata: dict[str, Any] = field(default_factory=dict, compare=False)


class Chunker(TextSplitter):
    """The common part of all chunkers: a subclass says where to cut, in `spans`.

    Args:
        chunk_size: the longest chunk, in units of `length_function`.
        chunk_overlap: how much neighbours may share, in the same units; smaller than `chunk_size`.
        length_function: measures a text; counts characters by default.

    Raises:
        ValueError: a size or an overlap that is not allowed, before any text is read.
    """

    def __init__(
        self, chunk_size: int = 1000, chunk_overlap: int = 0, length_function: Callable[[str], int] = len
    ) -> None:
        chunk_size = check_size("chunk_size", chunk_size)
        chunk_overlap = check_overlap("chunk_overlap", chunk_overlap, "chunk_size", chunk_size)
        # A function that forgets its return would fail only later, and deep inside.
        if not callable(length_function) or not isinstance(length_function("a word"), Real):
            raise ValueError(f"length_function={length_function!r}: must be a function from a text to its length")
        super().__init__(chunk_size, chunk_overlap, length_function, add_start_index=True)

    @abstractmethod
    def spans(self, text: str) -> list[Span]:
        """Where the chunks of `text` start and end, in order."""

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
        check_id(doc_id)
        spans = self.spans(check_text(text))
        total = len(spans)
        return [
            Chunk(text[start:end], start, end, doc_id, f"{doc_id}_{index}", None, index, total)
            for index, (start, end) in enumerate(spans)
        ]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts alone, as LangChain asks for them."""
        return [text[start:end] for start, end in self.spans(check_text(text))]

    def create_documents(
        self, texts: Iterable[str], metadatas: Sequence[dict[str, Any]] | None = None
    ) -> list[Document]:
        """LangChain documents, with true offsets.

        Args:
            texts: the documents; or what such a call gave, to be split further.
            metadatas: one dictionary a text; its "id" or "source", else the text's place, names the document. Where an
                earlier text has that name (the pages of a PDF share their source), "#" and the place are added. A chunk
                that is split further keeps its document, and its chunks have their places there.

        Returns:
            A document a chunk; its metadata are the text's and `document`, `chunk_id`, `start_index`, `end_index`,
            `parent_id`, `index` and `total`. Its `id`, under which a vector store keeps it in the place of an earlier
            one, is the chunk's where metadata["id"] named the document; else None, as a name such as "source" may come
            again in another call.

        Raises:
            ValueError: texts that are no list of str, or metadatas that are no list of a dictionary a text.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise ValueError(f"texts={texts!r:.80}: must be a list of texts")
        texts = list(texts)
        metadatas = list(metadatas) if metadatas else [{} for _ in texts]
        if len(metadatas) != len(texts):
            raise ValueError(f"metadatas has {len(metadatas)} entries for {len(texts)} texts: give one a text")
        documents, taken = [], set()
        for place, (text, metadata) in enumerate(zip(texts, metadatas, strict=True)):
            if not isinstance(metadata, Mapping):
                raise ValueError(f"metadatas[{place}]={metadata!r:.80}: must be a dictionary")
            named = {key: metadata[key] for key in ("chunk_id", "id", "source") if metadata.get(key) not in (None, "")}
            doc_id = str(next(iter(named.values()), place))
            while doc_id in taken:
                doc_id += f"#{place}"
            taken.add(doc_id)
            above = _place_of(text, metadata)
            document, first = above or (doc_id, 0)
            for c in self._embedded(text, doc_id):
                place_of = {"document": document, "start_index": first + c.start, "end_index": first + c.end}
                parent_id = c.parent_id or (doc_id if above else None)
                family = {"chunk_id": c.id, "parent_id": parent_id, "index": c.index, "total": c.total}
                everything = {**copy.deepcopy(dict(metadata)), **c.metadata, **place_of, **family}
                documents.append(Document(page_content=c.text, metadata=everything, id=c.id if "id" in named else None))
        return documents

    def _embedded(self, text: str, doc_id: str) -> list[Chunk]:
        """The chunks that LangChain is to have: all, unless there are several levels."""
        return self.chunk(text, doc_id)


def _place_of(text: Any, metadata: Mapping[str, Any]) -> tuple[str, int] | None:
    """The document, and where in it, of a text that is itself a chunk cut from it; None where it is not."""
    document, start, end = (metadata.get(key) for key in ("document", "start_index", "end_index"))
    if metadata.get("chunk_id") in (None, "") or "spans" in metadata or not isinstance(document, str):
        return None
    if not (isinstance(start, int) and isinstance(end, int) and end - start == len(text)):
        return None
    return document, start


def check_size(name: str, value: Any) -> int:
    """The value as an int; ValueError unless it is a whole number of 1 or more (of Python, or of numpy)."""
    size = _whole(value)
    if size is None or size < 1:
        raise ValueError(f"{name}={value!r}: must be a whole number of 1 or more")
    return size


def check_overlap(name: str, value: Any, size_name: str, size: int) -> int:
    """The value as an int; ValueError unless it is a whole number from 0 to less than `size`."""
    overlap = _whole(value)
    if overlap is None or not 0 <= overlap < size:
        raise ValueError(f"{name}={value!r}: must be a whole number from 0 to less than {size_name}={size}")
    return overlap


def _whole(value: Any) -> int | None:
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def is_number(value: Any) -> bool:
    """Whether a value is a real number, of Python or of numpy; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(repr, allowed))}")


def check_text(text: Any) -> str:
    """The text itself; anything but a str is a ValueError that says what to do."""
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}: must be a str (for a file, use read_document)")
    return text


def check_id(doc_id: Any) -> None:
    """Raise ValueError unless a document's id is a str."""
    if not isinstance(doc_id, str):
        raise ValueError(f"doc_id={doc_id!r:.80}: must be a str")


def is_blank(text: str) -> bool:
    """Whether a text holds nothing but white space and byte order marks."""
    return not text or text.isspace() or (BOM in text and not text.replace(BOM, " ").strip())


def trim(text: str, start: int, end: int) -> Span:
    """The span without white space and byte order marks at its edges; empty if nothing is left.

    A blank that carries a combining mark stays: the two are one character to a reader.

    >>> trim("  a b ", 0, 6)
    (2, 5)
    """
    piece = text[start:end]
    bare = piece.strip()
    if BOM in bare:
        bare = piece.strip(_WHITE)
    if len(bare) == len(piece) or not bare:
        return start, start + len(bare)
    first = start + piece.index(bare[0])
    last = first + len(bare)
    if first > start and not _is_boundary_beside_blank(text, first):
        first -= 1
    if last < end and not _is_boundary_beside_blank(text, last):
        last += 1
    return first, last


def last_boundary(text: str, start: int, cut: int) -> int:
    """The last place from `start` to `cut` that is not inside a grapheme cluster.

    `start` counts as one. Costs next to nothing in plain text; elsewhere a look back, at most to `start`.

    >>> last_boundary("ab👩‍🔬", 0, 4), last_boundary("ab👩‍🔬", 0, 5)
    (2, 5)
    """
    if not start < cut < len(text) or _are_apart(text[cut - 1], text[cut]):
        return max(start, cut)
    anchor = cut - 1
    while anchor > start and not _are_apart(text[anchor - 1], text[anchor]):
        anchor -= 1
    return max(anchor + cluster.start() for cluster in _CLUSTER.finditer(text[anchor : cut + 1]))


def next_boundary(text: str, start: int, cut: int, stop: int) -> int:
    """The first place from `cut` to `stop` that is not inside a grapheme cluster; `start` is one before them.

    >>> next_boundary("ab👩‍🔬cd", 0, 4, 7)
    5
    """
    before = last_boundary(text, start, cut)
    return before if before >= cut else _CLUSTER.match(text, before, stop).end()  # type: ignore[union-attr]


def is_torn(text: str, start: int, end: int) -> bool:
    """Whether a span may begin or end inside a grapheme cluster; sure where it says no.

    >>> is_torn("ab👩‍🔬", 0, 4), is_torn("ab👩‍🔬", 0, 5)
    (True, False)
    """
    return any(0 < place < len(text) and not _are_apart(text[place - 1], text[place]) for place in (start, end))


def hard_cut(text: str, start: int, size: int, length: Callable[[str], int] = len, most: int = 0) -> int:
    """Where the longest piece from `start` that measures at most `size` ends: at a boundary, if there is one.

    If there is none, one grapheme cluster is longer than `size`: it stays whole where it measures at most `most`. The
    piece has one character at least. A `length` other than len is asked O(log size) times, and taken to grow with the
    text.

    >>> hard_cut("ab👩‍🔬", 0, 4), hard_cut("ab👩‍🔬", 2, 2), hard_cut("ab👩‍🔬", 2, 2, most=3)
    (2, 4, 5)
    """
    if start >= len(text):
        return len(text)
    cut = min(start + size, len(text)) if length is len else _longest(text, start, size, length)
    boundary = last_boundary(text, start, cut)
    if boundary == start and most > size:
        whole = next_boundary(text, start, cut, min(len(text), cut + 16 * most))
        return whole if length(text[start:whole]) <= most else cut
    if boundary > start:
        return boundary
    # A flag is two letters that pair from the left. Cut between them, every flag that follows would pair wrongly.
    inside_flag = cut - 1 > start and cut < len(text) and _FLAG.match(text, cut - 1) is not None
    return cut - 1 if inside_flag else cut


def reach(text: str, start: int, size: int, length: Callable[[str], int] = len) -> int:
    """The last boundary up to which a piece from `start` measures at most `size`; `start` itself if none does.

    >>> reach("ab👩‍🔬", 0, 4), reach("ab👩‍🔬", 2, 2)
    (2, 2)
    """
    if size < 1 or start >= len(text):
        return start
    cut = min(start + size, len(text)) if length is len else _longest(text, start, size, length)
    boundary = last_boundary(text, start, cut)
    return boundary if length(text[start:boundary]) <= size else start


def overlap_start(text: str, start: int, end: int, overlap: int, length: Callable[[str], int] = len) -> int:
    """Where the chunk after text[start:end] begins, to share at most `overlap` with it: after `start`, at a boundary.

    >>> overlap_start("abcdefgh", 0, 6, 2)
    4
    """
    if not overlap or end >= len(text):
        return end
    if length is len:
        earliest = max(start + 1, end - overlap)
    else:
        places = range(start + 1, end)
        earliest = start + 1 + bisect_left(places, True, key=lambda place: length(text[place:end]) <= overlap)
    return next_boundary(text, start, earliest, end)


def _longest(text: str, start: int, size: int, length: Callable[[str], int]) -> int:
    """The end of the longest piece from `start` that measures at most `size`; one character at least."""
    reach = size
    while start + reach < len(text) and length(text[start : start + reach]) <= size:
        reach *= 2
    places = range(start + 2, min(start + reach, len(text)) + 1)
    return start + 1 + bisect_left(places, True, key=lambda place: length(text[start:place]) > size)


def graphemes(text: str, start: int, end: int) -> Sequence[int]:
    """Where the grapheme clusters of text[start:end] start, and `end`.

    >>> list(graphemes("ab👩‍🔬c", 1, 6))
    [1, 2, 5, 6]
    """
    part = text[start:end]
    if not has_joins(part):
        return range(start, end + 1)
    return [*(start + cluster.start() for cluster in _CLUSTER.finditer(part)), end]


def has_joins(text: str) -> bool:
    """Whether some grapheme cluster of the text may have more than one character."""
    return "\r\n" in text or not (text.isascii() or _JOINING.search(text) is None)


_WHITE = "".join(chr(c) for c in range(0x3001) if chr(c).isspace()) + BOM
# Flags first: \X looks back over all of a run of their letters, at each of them.
_CLUSTER = regex.compile("[\U0001f1e6-\U0001f1ff]{2}" + r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]{2}")
# Characters that never join one before them nor draw in one after them. What is left out: marks and joiners, Brahmic
# letters, Hangul jamo, a few Arabic signs, and all beyond the basic plane (emoji), to keep the list short and the
# search quick.
_PLAIN = (
    "\\0-\u02ff\u0370-\u0482\u048a-\u0590\u05ca-\u05ff\u0606-\u060f\u061b-\u064a\u0660-\u066f\u0671-\u06d5"
    "\u06ee-\u070e\u0710\u0712-\u072f\u074b-\u07a5\u1e00-\u200b\u200e-\u20cf\u2100-\u2cee\u2cf2-\u2d7e"
    "\u2d80-\u2ddf\u2e00-\u3029\u3030-\u3098\u309b-\ua66e\ua6a0-\ua6ef\ua6f2-\ua801\uac00-\ud7af\ue000-\ufb1d"
    "\ufb1f-\ufdff\ufe30-\uff9d\uffa0-\uffff"
)
_JOINING = re.compile(f"[^{_PLAIN}]")


def _are_apart(left: str, right: str) -> bool:
    """Whether two neighbours are two graphemes beyond doubt; most are, and this is quick to see."""
    if right == "\n":
        return left != "\r"
    return left < "\u0300" > right or _JOINING.search(left + right) is None


def may_join(left: str, right: str) -> bool:
    """Whether some character of `left` may be one grapheme with its neighbour, at the same place in `right`."""
    return ("\r" in left and "\n" in right) or _JOINING.search(left + right) is not None


def _is_boundary_beside_blank(text: str, place: int) -> bool:
    """Whether a cut between a blank and its neighbour, in either order, leaves a grapheme cluster whole."""
    left, right = text[place - 1], text[place]
    return left < "\u0300" > right or len(_CLUSTER.findall(left + right)) == 2
