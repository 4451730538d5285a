"""What to hand on of what a search has found: the chunks, their neighbours, their parents, or their documents.

Small chunks are found more surely, large ones explain more; a strategy searches the one and returns the other. It is
for whoever builds the prompt: passages, best first, that never say a text twice and never go over a budget of tokens.
The four are those of RAG4p; small-to-big is also known as parent-document retrieval. Each is a LangChain retriever, and
gives hits with their places as an index does, so that the scoreboard can score it. Cost: that of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from langchain_core.embeddings import Embeddings
from pydantic import Field

from chunklab.chunk import Chunk, check_size
from chunklab.passages import Key, check_end, is_slice, joined, key_of
from chunklab.retrieval import ChunkIndex, Where, check_chunks
from chunklab.retriever import Strategy


class TopN(Strategy):
    """The chunks that were found, as they are; chunks that overlap are merged.

    >>> from chunklab import ChunkIndex, SentenceChunker, embeddings
    >>> chunks = SentenceChunker(40).chunk("The bell is old. Rain falls on the harbour. The ferry is blue.", "town")
    >>> [d.page_content for d in TopN(ChunkIndex(chunks, embeddings("static")), k=1).invoke("Is it raining?")]
    ['Rain falls on the harbour.']
    """

    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        return chunk, [chunk]


class Window(Strategy):
    """The chunk that was found and its neighbours: those of its own level, with the same parent.

    Windows that overlap, or of which one follows the other, are one passage.

    Args:
        index: as for `Strategy`, like k, max_tokens, min_score and length_function.
        n: how many neighbours on either side; where there are fewer, the window is smaller.
        documents: id to text; what stands between chunks, white space as a rule, is then the document's own. Without
            it, a line end, or two for more than one character.

    >>> from chunklab import ChunkIndex, SentenceChunker, embeddings
    >>> chunks = SentenceChunker(40).chunk("The bell is old. Rain falls on the harbour. The ferry is blue.", "town")
    >>> (hit,) = Window(ChunkIndex(chunks, embeddings("static")), k=1).search("an old bell")
    >>> hit.chunk.text, hit.chunk.id, hit.chunk.metadata["chunks"]
    ('The bell is old.\\nRain falls on the harbour.', 'town_0', ['town_0', 'town_1'])
    """

    n: Any = 1
    documents: Any = Field(None, repr=False)

    def _check(self) -> None:
        check_size("n", self.n)
        _check_documents(self.documents)

    def _lookup(self, chunks: Sequence[Chunk]) -> dict[tuple[Any, ...], Chunk]:
        return {_sibling(chunk, 0): chunk for chunk in reversed(chunks)}

    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        chunk_at = self._table()
        before, after = (
            # Where one is missing, the next is no neighbour.
            list(takewhile(bool, (chunk_at.get(_sibling(chunk, step * far)) for far in range(1, self.n + 1))))
            for step in (-1, 1)
        )
        return chunk, [*reversed(before), chunk, *after]

    def _source(self, document: str) -> str | None:
        return None if self.documents is None else _text_of(document, self.documents)

    def _beside(self, pieces: Sequence[Chunk]) -> set[Key]:
        chunk_at = self._table()
        ends = (_sibling(pieces[0], -1), _sibling(pieces[-1], 1))
        return {key_of(chunk_at[end]) for end in ends if end in chunk_at}


class WholeDocument(Strategy):
    """The document of a chunk that was found, whole; each document once.

    Args:
        index: as for `Strategy`, like k, max_tokens, min_score and length_function.
        documents: id to text. Without it, a document is put together from its chunks in the index; where some are parts
            of others, from these others.

    >>> from chunklab import ChunkIndex, SentenceChunker, embeddings
    >>> town = "The bell is old.  Rain falls on the harbour."
    >>> index = ChunkIndex(SentenceChunker(40).chunk(town, "town"), embeddings("static"))
    >>> [hit.chunk.text for hit in WholeDocument(index, documents={"town": town}).search("an old bell")]
    ['The bell is old.  Rain falls on the harbour.']
    """

    documents: Any = Field(None, repr=False)

    def _check(self) -> None:
        _check_documents(self.documents)

    def _lookup(self, chunks: Sequence[Chunk]) -> dict[str, Chunk]:
        if self.documents is not None:
            return {chunk.document: chunk for chunk in chunks}
        known = {key_of(chunk): chunk for chunk in chunks}
        pieces: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            if parent_of(chunk, known) is None:
                pieces.setdefault(chunk.document, []).append(chunk)
        wholes = {name: joined(of_document, of_document[0]) for name, of_document in pieces.items()}
        return {name: replace(c, id=name, parent_id=None, index=0, total=1) for name, c in wholes.items()}

    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        if self.documents is None:
            whole = self._table().get(chunk.document, chunk)
        else:
            text = _text_of(chunk.document, self.documents)
            check_end(chunk, text)
            whole = Chunk(text, 0, len(text), chunk.document, chunk.document)
        return whole, [whole]

    def _most(self) -> int:
        return len(self._table())


class Parent(Strategy):
    """What the chunk that was found is a part of: small chunks find, large ones explain. Each parent once.

    Only the last level is searched: chunks that others are parts of are found by these. A chunk without a parent stands
    for itself.

    Args:
        index: as for `Strategy`, like k, max_tokens, min_score and length_function. It holds all levels, or the last.
        levels: how many levels to climb, of those that there are; from the top nobody climbs further.
        parents: chunks to look for parents in, beside those of the index. See `small_to_big`. Where a document changes,
            make a new Parent, of the index and the chunks as they are then.

    Raises:
        ValueError: levels that is no whole number of 1 or more; parents that are no chunks; chunks that have parents,
            of which not one is there; in a search, parents that are of a document before it changed.
    """

    levels: Any = 1
    parents: Any = Field((), repr=False)

    def _check(self) -> None:
        check_size("levels", self.levels)
        self.parents = check_chunks(self.parents, "parents")
        known, _, _ = self._table()
        orphan = next((c for c in self.chunks if c.parent_id is not None), None)
        if orphan is not None and not any(parent_of(c, known) for c in self.chunks):
            raise ValueError(
                f"no chunk has its parent here: {orphan.id!r} of {orphan.document!r} has {orphan.parent_id!r}; index "
                "all levels, or hand them in as parents"
            )

    def _lookup(self, chunks: Sequence[Chunk]) -> tuple[dict[Key, Chunk], frozenset[Key], bool]:
        known = {key_of(chunk): chunk for chunk in self.parents}
        if changed := next((c for c in chunks if _has_changed(known.get(key_of(c), c), c)), None):
            raise ValueError(
                f"parents holds another {changed.id!r} of {changed.document!r} than the index, where the document has "
                "changed: make a new Parent, of the chunks as they are now"
            )
        known |= {key_of(chunk): chunk for chunk in chunks}
        last = frozenset(map(key_of, last_level(known.values())))
        return known, last, last.issuperset(map(key_of, chunks))

    def _searched(self, where: Where | None) -> Where | None:
        _, last, all_are_last = self._table()
        if all_are_last:
            return where
        if where is not None:
            last = last & {key_of(self.chunks[place]) for place in self.index.allowed(where)}
        return lambda chunk: key_of(chunk) in last

    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        known, _, _ = self._table()
        for _ in range(self.levels):
            if (parent := parent_of(chunk, known)) is None:
                break
            chunk = parent
        return chunk, [chunk]


def small_to_big(
    chunks: Iterable[Chunk],
    embeddings: Embeddings,
    index: Callable[[list[Chunk], Embeddings], Any] = ChunkIndex,
    **options: Any,
) -> Parent:
    """Search the last level of a chain's chunks, and return their parents; only the last level is embedded.

    Args:
        chunks: all that a `SplitterChain` gave, of all documents.
        embeddings: the model.
        index: what searches the last level: ChunkIndex, MultiVectorIndex, or a function of the same two arguments.
        options: those of `Parent`: k, levels, max_tokens, ….

    Returns:
        The strategy.

    Raises:
        ValueError: an index that cannot be called; as for `ChunkIndex` and `Parent`.

    >>> from chunklab import embeddings
    >>> page = Chunk("The bell is old. Rain falls.", 0, 28, "town", "town_0")
    >>> lines = [Chunk(page.text[:16], 0, 16, "town", "town_0_0", "town_0", 0, 2)]
    >>> lines += [Chunk(page.text[17:], 17, 28, "town", "town_0_1", "town_0", 1, 2)]
    >>> [hit.chunk.text for hit in small_to_big([page, *lines], embeddings("static")).search("rain")]
    ['The bell is old. Rain falls.']
    """
    if not callable(index):
        raise ValueError(f"index={index!r:.60}: must be ChunkIndex, MultiVectorIndex, or a function like these")
    chunks = check_chunks(chunks)
    return Parent(index=index(last_level(chunks), embeddings), parents=chunks, **options)


def last_level(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The chunks that no other one is a part of; a ValueError says what is no chunk, or there twice.

    >>> [chunk.id for chunk in last_level([Chunk("ab", 0, 2), Chunk("a", 0, 1, id="doc_0_0", parent_id="doc_0")])]
    ['doc_0_0']
    """
    chunks = check_chunks(chunks)
    known = {key_of(chunk): chunk for chunk in chunks}
    inner = {key_of(parent) for chunk in chunks if (parent := parent_of(chunk, known)) is not None}
    return [chunk for chunk in chunks if key_of(chunk) not in inner]


def parent_of(chunk: Chunk, known: Mapping[Key, Chunk]) -> Chunk | None:
    """The nearest chunk above that is there: a chain may leave levels out, and ids say what is above these.

    >>> top = Chunk("ab", 0, 2, id="doc_0")
    >>> parent_of(Chunk("a", 0, 1, id="doc_0_3_5", parent_id="doc_0_3"), {("doc", "doc_0"): top}) is top
    True
    """
    name, document = chunk.parent_id, chunk.document
    while name:
        if (document, name) in known:
            return known[document, name]
        name = name.rpartition("_")[0] if name.startswith(f"{document}_") else ""
    return None


def _sibling(chunk: Chunk, distance: int) -> tuple[str, str | None, int]:
    """The place of a sibling, so many places on."""
    return chunk.document, chunk.parent_id, chunk.index + distance


def _has_changed(old: Chunk, new: Chunk) -> bool:
    """Whether a chunk is another one than it was, though it has its id: one that was rewritten keeps its place."""
    if (old.start, old.end, old.total) != (new.start, new.end, new.total):
        return True
    return old.text != new.text and is_slice(old) and is_slice(new)


def _check_documents(documents: Any) -> None:
    if documents is not None and not isinstance(documents, Mapping):
        raise ValueError(f"documents={documents!r:.60}: must be a dictionary of id to text")


def _text_of(name: str, documents: Mapping[str, str]) -> str:
    if not isinstance(text := documents.get(name), str):
        raise ValueError(f"documents has no text of {name!r}, of which the index has chunks")
    return text
