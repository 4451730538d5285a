"""From hits to passages: what all retrieval strategies share.

For `strategies` and `hybrid`, and for whoever adds a strategy of their own. Hits come best first; a strategy says what
is handed on for each, and here these become passages that never say a text twice and never go over a budget of tokens.
A strategy is a LangChain retriever, and searches as an index does, so that the scoreboard can score it. Cost: that of
the search; each passage is compared with those before it, which takes 0.2 s for a thousand and seconds for several.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import PrivateAttr

from chunklab.chunk import Chunk, check_size, is_number
from chunklab.chunkers.distances import NOISE
from chunklab.passages import Key, Passage, key_of, place_of
from chunklab.queries import check_queries, check_vectors
from chunklab.retrieval import Hit, Where

_MORE = 4  # hits asked for, for each passage that is wanted
_REMEMBERED = 20_000  # passages that are not made, and texts that are not counted, again: many queries find the same


class Strategy(BaseRetriever):
    """The common part of all strategies: a subclass says what to hand on for a chunk that was found, in `_around`.

    Chunks are taken as they were found, best first. What shares text with a passage that is there already is merged
    into it, under the better score; what it says already, adds nothing and is passed over. A chunk that was rewritten
    has words of its own, and is compared by its id alone. While one thread changes the index, others may search: what
    they get is all of one moment.

    Args:
        index: a ChunkIndex or MultiVectorIndex; or another strategy, whose index is taken: a Hybrid's finds by words
            too.
        k: how many passages at most. Those that are merged count each.
        max_tokens: the budget: tokens of all passages together, never more. Of the k, best first, each is left out that
            no longer fits.
        min_score: pass over what scores less; in the index's scores, cosines but for a Hybrid.
        length_function: measures a text for `max_tokens`; None: tokens("cl100k").
        min_share: pass over what scores less than this share of the best score, from 0 to 1; None: nothing. Where one
            chunk answers, the next are seldom worth their tokens: for a Hybrid, 0.6 is a good beginning.

    Raises:
        ValueError: an index that is none, a k, max_tokens, min_score, length_function or min_share that is not allowed.
    """

    index: Any
    k: int
    max_tokens: int | None
    min_score: float | None
    length_function: Any
    min_share: float | None
    # What a strategy looks up, and the chunks that it was made of: an index whose chunks have changed has another list.
    _looked_up: tuple[Any, ...] = PrivateAttr((None, None))

    def __init__(
        self,
        index: Any,
        k: int = 4,
        max_tokens: int | None = None,
        min_score: float | None = None,
        length_function: Callable[[str], int] | None = None,
        min_share: float | None = None,
        **own: Any,
    ) -> None:
        if unknown := own.keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no option {min(unknown)!r}")
        index = index.index if isinstance(index, Strategy) else index
        if isinstance(index, type) or not (hasattr(index, "search_many") and hasattr(index, "chunks")):
            raise ValueError(
                f"index={index!r:.80}: must be a ChunkIndex, a MultiVectorIndex, or a strategy such as Hybrid"
            )
        k = check_size("k", k)
        max_tokens = None if max_tokens is None else check_size("max_tokens", max_tokens)
        if length_function is not None and not (
            callable(length_function) and isinstance(length_function("a word"), Real)
        ):
            raise ValueError(f"length_function={length_function!r:.80}: must be a function from a text to its length")
        if min_share is not None and not (is_number(min_share) and 0 <= min_share <= 1):
            raise ValueError(f"min_share={min_share!r}: must be None or a number from 0 to 1")
        index.search_many([], k, min_score)  # it knows which scores there are
        options: dict[str, Any] = {"index": index, "k": k, "max_tokens": max_tokens, "min_score": min_score}
        options |= {"length_function": length_function, "min_share": min_share}
        super().__init__(**options, **own)
        self._check()

    def _check(self) -> None:
        """Raise ValueError for an option that a subclass adds and that is not allowed."""

    @abstractmethod
    def _around(self, chunk: Chunk) -> tuple[Chunk, Sequence[Chunk]]:
        """What is handed on for a chunk: the chunk that gives its name, and all pieces, of one document."""

    def _beside(self, pieces: Sequence[Chunk]) -> set[Key]:
        """Chunks that go on with a passage of these pieces: with a passage that has one of them, it is one."""
        return set()

    def _source(self, document: str) -> str | None:
        """The document's own text, which passages are to be cut from; None: they are put together from chunks."""
        return None

    def _lookup(self, chunks: Sequence[Chunk]) -> Any:
        """What `_around` needs to know of all chunks."""

    def _searched(self, where: Where | None) -> Where | None:
        """Which chunks are searched."""
        return where

    def _most(self) -> int:
        """How many passages there can be."""
        return len(self.chunks)

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks of the index."""
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
        queries = check_vectors(queries) if isinstance(queries, np.ndarray) else check_queries(queries)
        k = self.k if k is None else check_size("k", k)
        min_score = self.min_score if min_score is None else min_score
        now = self._now()
        count, passage_of = lru_cache(_REMEMBERED)(now._length), lru_cache(_REMEMBERED)(now._passage_of)
        where = now._searched(where)
        if not len(queries):
            return now.index.search_many(queries, k, min_score, where)  # which checks the rest
        answers: dict[int, list[Passage]] = {}
        pending = list(range(len(queries)))
        # Some hits add nothing: where k are not enough, ask for more, and where these are not, for all; that a query at
        # a time, as all hits of many would not fit in memory.
        for wanted, at_once in ((k, len(queries)), (_MORE * k, len(queries)), (len(now.chunks), 1)):
            short = []
            for places in (pending[start : start + at_once] for start in range(0, len(pending), at_once)):
                some = queries[places] if isinstance(queries, np.ndarray) else [queries[place] for place in places]
                for place, hits in zip(places, now.index.search_many(some, wanted, min_score, where), strict=True):
                    worth = now._worth(hits)
                    answers[place], used = now._passages(worth, k, count, passage_of)
                    if used < min(k, now._most()) and len(worth) == wanted < len(now.chunks):
                        short.append(place)
            pending = short
        return [[Hit(p.chunk, p.score, rank) for rank, p in enumerate(answers[i], 1)] for i in range(len(queries))]

    def _worth(self, hits: list[Hit]) -> list[Hit]:
        """The hits that score the share of the best one, or more; of a score below 0 there is no share."""
        if self.min_share is None or not hits:
            return hits
        least = hits[0].score * (self.min_share if hits[0].score > 0 else 1)
        return [hit for hit in hits if hit.score >= least - NOISE]

    def _passage_of(self, chunk: Chunk) -> Passage:
        """What is handed on for a chunk, whoever asks."""
        main, pieces = self._around(chunk)
        return Passage(main, tuple(pieces), 0.0, self._source(main.document))

    def _passages(
        self,
        hits: Sequence[Hit],
        k: int,
        count: Callable[[str], int],
        passage_of: Callable[[Chunk], Passage],
    ) -> tuple[list[Passage], int]:
        """The passages, best first, and how many hits were made use of."""
        passages: list[Passage] = []
        spent = 0
        seen: set[frozenset[Key]] = set()
        for hit in hits:
            if len(seen) == k:
                break
            new = passage_of(hit.chunk).scored(hit.score)
            tried = passages if new.keys in seen else self._with(passages, new)
            if tried is passages:
                continue
            seen.add(new.keys)
            if self.max_tokens is not None:
                merged = len(tried) <= len(passages)  # else the new one stands at the end, and the others are as before
                changed = tried if merged else tried[-1:]
                total = (0 if merged else spent) + sum(count(passage.chunk.text) for passage in changed)
                if total > self.max_tokens:
                    continue
                spent = total
            passages = tried
        return passages, len(seen)

    def _with(self, passages: list[Passage], new: Passage) -> list[Passage]:
        """The passages and a new one, or with those that it joins made into one, in the place of the best of them.

        The same list where one of them says all of it already.
        """
        near: list[Passage] = []
        union = new
        while True:
            beside = self._beside(union.pieces)
            found = [old for old in passages if old.repeats(union) or (beside and not beside.isdisjoint(old.keys))]
            if any(old.holds(new) for old in found):
                return passages
            if len(found) <= len(near):
                break
            # What joins two may reach over a third, which stands between them.
            near = found
            pieces = {key_of(c): c for old in (*near, new) for c in old.pieces}
            union = replace(near[0], pieces=tuple(sorted(pieces.values(), key=place_of)))
        if not near:
            return [*passages, new]
        return [union if old is near[0] else old for old in passages if old is near[0] or old not in near]

    def _length(self, text: str) -> int:
        """What a text takes of the budget."""
        if self.length_function is None:
            from chunklab.models.tokens import tokens

            return tokens("cl100k")(text)
        return self.length_function(text)

    def _now(self) -> Strategy:
        """The same strategy with the index as it is now, which another thread may be changing."""
        now = copy(self)
        now.index = copy(self.index)
        now._table()
        self._looked_up = now._looked_up
        return now

    def _table(self) -> Any:
        """What `_lookup` gives, made anew where the index has changed."""
        chunks, known = self._looked_up
        if chunks is not self.chunks:
            chunks = self.chunks
            known = self._lookup(chunks)
            self._looked_up = (chunks, known)
        return known

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return [as_document(hit) for hit in self.search(query, **options)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        # LangChain's own hands no options on.
        manager = run_manager.get_sync()
        return await run_in_executor(None, self._get_relevant_documents, query, run_manager=manager, **options)


def as_document(hit: Hit) -> Document:
    """A hit as LangChain's retrievers give it; what becomes of its metadata does not reach the index."""
    chunk = hit.chunk
    place = {"id": chunk.id, "document": chunk.document, "start": chunk.start, "end": chunk.end}
    metadata = {**deepcopy(chunk.metadata), **place, "start_index": chunk.start, "score": hit.score}
    return Document(page_content=chunk.text, metadata=metadata, id=chunk.id)
