"""What to hand on of what a search has found: the chunks, their neighbours, their parents, or their documents.

Small chunks are found more surely, large ones explain more; a strategy searches the one and returns the other. It is
for whoever builds the prompt: passages, best first, that never say a text twice and never go over a budget of tokens.
The four are those of RAG4p; small-to-big is also known as parent-document retrieval. Each is a LangChain retriever, and
gives hits with their places as an index does, so that the scoreboard can score it. Cost: that of the search.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from chunklab.chunk import Chunk, check_size
from chunklab.passages import Key, Passage, joined, key_of, place_of
from chunklab.retrieval import ChunkIndex, Hit, Where


class Strategy(BaseRetriever):
    """The common part of all strategies: a subclass says what to hand on for a chunk that was found, in `_around`.

    Chunks are taken as they were found, best first. What shares text with a passage that is there already is merged
    into it, under the better score; what it says already, adds nothing and is passed over. A chunk that was rewritten
    has words of its own, and is compared by its id alone.

    Args:
        index: a ChunkIndex or MultiVectorIndex; or another strategy, whose index is taken: a Hybrid's finds by words
            too.
        k: how many passages at most. Those that are merged count each.
        max_tokens: the budget: tokens of all passages together, never more. Of the k, best first, each is left out that
            no longer fits.
        min_score: pass over what scores less; in the index's scores, cosines but for a Hybrid.
        length_function: measures a text for `max_tokens`; None: tokens("cl100k").

    Raises:
        ValueError: an index that is none, a k, max_tokens, min_score or length_function that is not allowed.
    """

    index: Any
    k: int
    max_tokens: int | None
    min_score: float | None
    length_function: Any
    # What a strategy looks up, and the chunks that it was made of: an index whose chunks have changed has another list.
    _looked_up: tuple = PrivateAttr((None, None))

    def __init__(
        self,
        index: Any,
        k: int = 4,
        max_tokens: int | None = None,
        min_score: float | None = None,
        length_function: Callable[[str], int] | None = None,
        **own: Any,
    ) -> None:
        index = index.index if isinstance(index, Strategy) else index
        if isinstance(index, type) or not (hasattr(index, "search_many") and hasattr(index, "chunks")):
            raise ValueError(
                f"index={index!r:.80}: must be a ChunkIndex, a MultiVectorIndex, or a strategy such as Hybrid"
            )
        k = check_size("k", k)
        max_tokens = None if max_tokens is None else check_size("max_tokens", max_tokens)
        index.search_many([], k, min_score)  # it knows which scores there are
        if length_function is not None and not callable(length_function):
            raise ValueError(f"length_function={length_function!r:.80}: must be a function from a text to its length")
        options = {"k": k, "max_tokens": max_tokens, "min_score": min_score, "length_function": length_function}
        super().__init__(index=index, **options, **own)

    @abstractmethod
    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        """What is handed on for a chunk: the chunk that gives its name, and all pieces, of one document."""

    def _joins(self, left: Chunk, right: Chunk) -> bool:
        """Whether a passage that ends with one chunk and a passage that begins with the other are one."""
        return False

    def _source(self, document: str) -> str | None:
        """The document's own text, which passages are to be cut from; None: they are put together from chunks."""
        return None

    def _lookup(self, chunks: Sequence[Chunk]) -> Any:
        """What `_around` needs to know of all chunks."""

    def _searched(self, where: Where | None) -> Where | None:
        """Which chunks are searched."""
        return where

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks that are searched."""
        return self.index.chunks

    @property
    def reads_words(self) -> bool:
        """Whether queries must be texts, as their vectors alone are not enough."""
        return getattr(self.index, "reads_words", False)

    def search(
        self, query: str, k: int | None = None, min_score: float | None = None, where: Where | None = None
    ) -> list[Hit]:
        """The passages for a query.

        Args:
            query: a question, or any text.
            k: instead of the strategy's own.
            min_score: instead of the strategy's own.
            where: search only chunks of which this is true, as in `ChunkIndex.search`.

        Returns:
            Hits, best first, equal scores in the order of the index. A passage of several chunks is a chunk with the
            place of all, and the id of the one that was found; metadata are what all have in common, and "chunks",
            their ids. Where something between them is missing, metadata["spans"] are the places that the text is from.

        Raises:
            ValueError: as for `ChunkIndex.search`.
        """
        return self.search_many([query], k, min_score, where)[0]

    def search_many(
        self,
        queries: Sequence[str] | np.ndarray,
        k: int | None = None,
        min_score: float | None = None,
        where: Where | None = None,
    ) -> list[list[Hit]]:
        """Search for many queries at once, which is faster; see `search`.

        Args:
            queries: texts; or their vectors, where the index needs no words.
            k: instead of the strategy's own.
            min_score: instead of the strategy's own.
            where: search only chunks of which this is true.

        Returns:
            One list of hits a query.

        Raises:
            ValueError: as for `ChunkIndex.search`.
        """
        k = self.k if k is None else check_size("k", k)
        min_score = self.min_score if min_score is None else min_score
        where = self._searched(where)
        queries = queries if isinstance(queries, (np.ndarray, str)) else list(queries)
        # Some hits add nothing: ask for more than k, and for all where these are not enough.
        near = self.index.search_many(queries, _MORE * k, min_score, where)
        answers = [self._passages(hits, k) for hits in near]
        short = [i for i, (_, used) in enumerate(answers) if used < k and len(near[i]) == _MORE * k]
        if short:
            some = queries[short] if isinstance(queries, np.ndarray) else [queries[i] for i in short]
            every = max(_MORE * k, len(self.chunks))
            for i, hits in zip(short, self.index.search_many(some, every, min_score, where), strict=True):
                answers[i] = self._passages(hits, k)
        return [[Hit(p.chunk, p.score, rank) for rank, p in enumerate(found, 1)] for found, _ in answers]

    def _passages(self, hits: Sequence[Hit], k: int) -> tuple[list[Passage], int]:
        """The passages, best first, and how many hits were made use of."""
        passages: list[Passage] = []
        count = cache(self._length)  # what is kept is not counted again for each that comes
        seen: set[frozenset[Key]] = set()
        for hit in hits:
            if len(seen) == k:
                break
            main, pieces = self._around(hit.chunk)
            new = Passage(main, tuple(pieces), hit.score, self._source(main.document))
            if new.keys in seen or any(old.holds(new) for old in passages):
                continue
            seen.add(new.keys)
            tried = self._with(passages, new)
            if self.max_tokens is None or sum(count(passage.chunk.text) for passage in tried) <= self.max_tokens:
                passages = tried
        return passages, len(seen)

    def _with(self, passages: Sequence[Passage], new: Passage) -> list[Passage]:
        """The passages and a new one, or with those that it joins made into one, in the place of the best of them."""
        near = [old for old in passages if old.repeats(new) or self._touch(old, new) or self._touch(new, old)]
        if not near:
            return [*passages, new]
        pieces = {key_of(c): c for old in (*near, new) for c in old.pieces}
        union = replace(near[0], pieces=tuple(sorted(pieces.values(), key=place_of)))
        return [union if old is near[0] else old for old in passages if old is near[0] or old not in near]

    def _touch(self, left: Passage, right: Passage) -> bool:
        return self._joins(left.pieces[-1], right.pieces[0])

    def _length(self, text: str) -> int:
        """What a text takes of the budget."""
        if self.length_function is None:
            from chunklab.models.tokens import tokens

            self.length_function = tokens("cl100k")
        return self.length_function(text)

    def _table(self) -> Any:
        """What `_lookup` gives, made anew where the index has changed."""
        chunks, known = self._looked_up
        if chunks is not self.chunks:
            chunks = self.chunks
            known = self._lookup(chunks)
            self._looked_up = (chunks, known)
        return known

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [as_document(hit) for hit in self.search(query)]


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

    n: int
    documents: Any = Field(repr=False)

    def __init__(
        self,
        index: Any,
        k: int = 4,
        max_tokens: int | None = None,
        min_score: float | None = None,
        n: int = 1,
        documents: Mapping[str, str] | None = None,
        length_function: Callable[[str], int] | None = None,
    ) -> None:
        super().__init__(
            index, k, max_tokens, min_score, length_function, n=check_size("n", n), documents=_checked(documents)
        )

    def _lookup(self, chunks: Sequence[Chunk]) -> dict[tuple, Chunk]:
        return {_sibling(chunk, 0): chunk for chunk in reversed(chunks)}

    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        chunk_at, pieces = self._table(), [chunk]
        for step in (-1, 1):
            for distance in range(step, step * (self.n + 1), step):
                # Where one is missing, the next is no neighbour.
                if (beside := chunk_at.get(_sibling(chunk, distance))) is None:
                    break
                pieces.insert(0 if step < 0 else len(pieces), beside)
        return chunk, pieces

    def _source(self, document: str) -> str | None:
        return None if self.documents is None else _text_of(document, self.documents)

    def _joins(self, left: Chunk, right: Chunk) -> bool:
        return _sibling(left, 1) == _sibling(right, 0)


class WholeDocument(Strategy):
    """The document of a chunk that was found, whole; each document once.

    Args:
        index: as for `Strategy`, like k, max_tokens, min_score and length_function.
        documents: id to text. Without it, a document is put together from its chunks in the index: all that they have.

    >>> from chunklab import ChunkIndex, SentenceChunker, embeddings
    >>> town = "The bell is old.  Rain falls on the harbour."
    >>> index = ChunkIndex(SentenceChunker(40).chunk(town, "town"), embeddings("static"))
    >>> [hit.chunk.text for hit in WholeDocument(index, documents={"town": town}).search("an old bell")]
    ['The bell is old.  Rain falls on the harbour.']
    """

    documents: Any = Field(repr=False)

    def __init__(
        self,
        index: Any,
        k: int = 4,
        max_tokens: int | None = None,
        min_score: float | None = None,
        documents: Mapping[str, str] | None = None,
        length_function: Callable[[str], int] | None = None,
    ) -> None:
        super().__init__(index, k, max_tokens, min_score, length_function, documents=_checked(documents))

    def _lookup(self, chunks: Sequence[Chunk]) -> dict[str, Chunk]:
        pieces: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            pieces.setdefault(chunk.document, []).append(chunk)
        wholes = {name: joined(of_document, of_document[0]) for name, of_document in pieces.items()}
        return {name: replace(c, id=name, parent_id=None, index=0, total=1) for name, c in wholes.items()}

    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        if self.documents is None:
            whole = self._table().get(chunk.document, chunk)
        else:
            text = _text_of(chunk.document, self.documents)
            whole = Chunk(text, 0, len(text), chunk.document, chunk.document)
        return whole, [whole]


class Parent(Strategy):
    """What the chunk that was found is a part of: small chunks find, large ones explain. Each parent once.

    Only the last level is searched: chunks that others are parts of are found by these. A chunk without a parent stands
    for itself.

    Args:
        index: as for `Strategy`, like k, max_tokens, min_score and length_function. It holds all levels, or the last.
        levels: how many levels to climb, of those that there are; from the top nobody climbs further.
        parents: chunks to look for parents in, beside those of the index. See `small_to_big`.

    Raises:
        ValueError: levels that is no whole number of 1 or more; chunks that have parents, of which not one is there.
    """

    levels: int
    parents: Any = Field(repr=False)

    def __init__(
        self,
        index: Any,
        k: int = 4,
        max_tokens: int | None = None,
        min_score: float | None = None,
        levels: int = 1,
        parents: Iterable[Chunk] = (),
        length_function: Callable[[str], int] | None = None,
    ) -> None:
        levels, parents = check_size("levels", levels), list(parents)
        super().__init__(index, k, max_tokens, min_score, length_function, levels=levels, parents=parents)
        known, _, _ = self._table()
        orphan = next((c for c in self.chunks if c.parent_id is not None), None)
        if orphan is not None and not any(parent_of(c, known) for c in self.chunks):
            raise ValueError(
                f"no chunk has its parent here: {orphan.id!r} of {orphan.document!r} has {orphan.parent_id!r}; index "
                "all levels, or hand them in as parents"
            )

    def _lookup(self, chunks: Sequence[Chunk]) -> tuple[dict[Key, Chunk], frozenset[Key], bool]:
        known = {key_of(chunk): chunk for chunk in (*self.parents, *chunks)}
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
        ValueError: as for `ChunkIndex` and `Parent`.

    >>> from chunklab import embeddings
    >>> page = Chunk("The bell is old. Rain falls.", 0, 28, "town", "town_0")
    >>> lines = [Chunk(page.text[:16], 0, 16, "town", "town_0_0", "town_0", 0, 2)]
    >>> lines += [Chunk(page.text[17:], 17, 28, "town", "town_0_1", "town_0", 1, 2)]
    >>> [hit.chunk.text for hit in small_to_big([page, *lines], embeddings("static")).search("rain")]
    ['The bell is old. Rain falls.']
    """
    chunks = list(chunks)
    return Parent(index(last_level(chunks), embeddings), parents=chunks, **options)


def last_level(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The chunks that no other one is a part of.

    >>> [chunk.id for chunk in last_level([Chunk("ab", 0, 2), Chunk("a", 0, 1, id="doc_0_0", parent_id="doc_0")])]
    ['doc_0_0']
    """
    chunks = list(chunks)
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


def as_document(hit: Hit) -> Document:
    """A hit as LangChain's retrievers give it."""
    chunk = hit.chunk
    place = {"id": chunk.id, "document": chunk.document, "start": chunk.start, "end": chunk.end}
    metadata = {**chunk.metadata, **place, "start_index": chunk.start, "score": hit.score}
    return Document(page_content=chunk.text, metadata=metadata, id=chunk.id)


_MORE = 4  # hits asked for, for each passage that is wanted


def _sibling(chunk: Chunk, distance: int) -> tuple[str, str | None, int]:
    """The place of a sibling, so many places on."""
    return chunk.document, chunk.parent_id, chunk.index + distance


def _checked(documents: Any) -> Mapping[str, str] | None:
    if documents is not None and not isinstance(documents, Mapping):
        raise ValueError(f"documents={documents!r:.60}: must be a dictionary of id to text")
    return documents


def _text_of(name: str, documents: Mapping[str, str]) -> str:
    if not isinstance(text := documents.get(name), str):
        raise ValueError(f"documents has no text of {name!r}, of which the index has chunks")
    return text
