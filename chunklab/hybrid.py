"""Search by words and by meaning at once.

Names, numbers and rare words are found by the words themselves, paraphrases by their meaning; together they find more
than either. Words are compared by BM25 (Robertson and others, 1994, in Lucene's form; bm25s, Lù, 2024), stemmed by
Snowball (Porter). It is for questions in the words of the documents as well as for those that are not. Cost: words are
counted anew, in seconds for some ten thousand chunks, when an index is taken over or has changed; a search looks at all
scores.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from chunklab.chunk import Chunk, check_choice, check_size, is_number
from chunklab.queries import check_queries
from chunklab.retrieval import Hit, Where
from chunklab.retriever import Strategy
from chunklab.strategies import TopN

K1, B = 0.9, 0.4  # how much a word counts that stands there again, and how much less in a long chunk
_AT_ONCE = 64  # queries scored together
_RANKED = 60  # of reciprocal rank fusion (Cormack and others, 2009): the larger, the less the very first ranks count


class Hybrid(TopN):
    """The chunks that are nearest to a question in words and in meaning; chunks that overlap are merged.

    The other strategies take it as their index: `Window(Hybrid(index))` finds as it does, and gives windows. Where the
    index changes, its words are counted again at the next search.

    Args:
        index: a ChunkIndex; or a MultiVectorIndex, for the best sentence and the neighbours too. Of another strategy,
            the one under it.
        k: how many passages at most.
        max_tokens: the budget, as for every `Strategy`.
        min_score: pass over what scores less; these scores are no cosines.
        word_weight: how much of the score is the words', from 0 to 1; the rest is the index's.
        fusion: "score": each of the two in standard deviations from its mean over all chunks, 0 being middling. "rank":
            1 / (60 + rank) in each, which forgets by how much one is better.
        language: whose endings are left off, a name that Snowball knows; None: none are.
        options: length_function and min_share, as for every `Strategy`.

    Raises:
        ValueError: an index that is none, an option that is not allowed; as for `Strategy`.

    >>> from chunklab import ChunkIndex, SentenceChunker, embeddings
    >>> text = "Pump 7 is oiled on Mondays. Pump 8 is oiled on Fridays. Rain falls."
    >>> hybrid = Hybrid(ChunkIndex(SentenceChunker(30).chunk(text, "manual"), embeddings("static")))
    >>> hybrid.search("Who oiled pump 8?", k=1)[0].chunk.text
    'Pump 8 is oiled on Fridays.'
    """

    word_weight: Any
    fusion: Any
    language: Any

    def __init__(
        self,
        index: Any,
        k: int = 4,
        max_tokens: int | None = None,
        min_score: float | None = None,
        word_weight: float = 0.5,
        fusion: str = "score",
        language: str | None = "english",
        **options: Any,
    ) -> None:
        own: dict[str, Any] = {"word_weight": word_weight, "fusion": fusion, "language": language}
        options |= {"k": k, "max_tokens": max_tokens, "min_score": min_score}
        super().__init__(index=HybridIndex(index, **own), **own, **options)


class HybridIndex:
    """The index under a `Hybrid`: it searches as a `ChunkIndex` does, by other scores."""

    reads_words = True
    index: Any

    def __init__(self, index: Any, word_weight: float, fusion: str, language: str | None) -> None:
        while isinstance(index, (Strategy, HybridIndex)):
            index = index.index
        if isinstance(index, type) or not (hasattr(index, "scores") and hasattr(index, "chunks")):
            raise ValueError(f"index={index!r:.80}: must be a ChunkIndex or a MultiVectorIndex")
        if not is_number(word_weight) or not 0 <= word_weight <= 1:
            raise ValueError(f"word_weight={word_weight!r}: must be a number from 0 to 1")
        check_choice("fusion", fusion, ("score", "rank"))
        self.index, self.word_weight, self.language = index, float(word_weight), language
        self._comparable = _by_score if fusion == "score" else _by_rank
        self._words = WordScores([], language)  # they are counted at the first search

    def __copy__(self) -> HybridIndex:
        """The same index as it is now: what changes the one under it later does not change this."""
        now = object.__new__(HybridIndex)
        now.__dict__.update(self.__dict__)
        now.index = copy(self.index)
        now._words = self._words_of(now.chunks)
        return now

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks, in the order of the index."""
        return self.index.chunks

    def allowed(self, where: Where | None) -> np.ndarray:
        """The places of the chunks that may be found."""
        return self.index.allowed(where)

    def __len__(self) -> int:
        return len(self.chunks)

    def __repr__(self) -> str:
        return f"words and {self.index!r}"

    def search(self, query: str, k: int = 4, min_score: float | None = None, where: Where | None = None) -> list[Hit]:
        """As `ChunkIndex.search`; none where a query has neither words that are known nor a direction."""
        return self.search_many([query], k, min_score, where)[0]

    def search_many(
        self, queries: Sequence[str], k: int = 4, min_score: float | None = None, where: Where | None = None
    ) -> list[list[Hit]]:
        """As `ChunkIndex.search_many`, but for texts alone."""
        if isinstance(queries, np.ndarray):
            raise ValueError(
                f"queries is an array of shape {queries.shape}: must be texts, as their words are compared too"
            )
        queries, k = check_queries(queries), check_size("k", k)
        if min_score is not None and not (is_number(min_score) and math.isfinite(min_score)):
            raise ValueError(f"min_score={min_score!r}: must be None or a number")
        now = copy(self)  # another thread may be changing the index
        allowed = now.allowed(where)
        hits = []
        for i in range(0, len(queries), _AT_ONCE):
            block = queries[i : i + _AT_ONCE]
            meanings = now.index.scores(block) if len(allowed) else np.zeros((len(block), 0))
            for stems, meaning in zip(stemmed(block, now.language), meanings, strict=True):
                hits.append(now._hits(meaning, now._words.of_stems(stems), allowed, k, min_score))
        return hits

    def _words_of(self, chunks: list[Chunk]) -> WordScores:
        words = self._words
        if words.chunks is not chunks:
            words = self._words = WordScores(chunks, self.language)
        return words

    def _hits(
        self, meaning: np.ndarray, words: np.ndarray, places: np.ndarray, k: int, min_score: float | None
    ) -> list[Hit]:
        # What has no weight finds nothing either.
        speaks = (meaning.any() and self.word_weight < 1) or (words.any() and self.word_weight > 0)
        if not len(places) or not speaks:
            return []
        # Over all chunks, whichever may be found: a score does not change with what is asked for beside it.
        of_meaning, of_words = self._comparable(meaning, words)
        scores = ((1 - self.word_weight) * of_meaning + self.word_weight * of_words)[places]
        k = min(k, len(scores))
        best = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
        best = best[np.lexsort((best, -scores[best]))][:k]
        found = zip(places[best].tolist(), scores[best].tolist(), strict=True)
        return [
            Hit(self.chunks[place], score, rank)
            for rank, (place, score) in enumerate(found, start=1)
            if min_score is None or score >= min_score
        ]


class WordScores:
    """How much each chunk has of the words of a query: BM25."""

    def __init__(self, chunks: list[Chunk], language: str | None) -> None:
        import bm25s

        self.chunks, self._language = chunks, language
        stems = stemmed((chunk.text for chunk in chunks), language)
        number: dict[str, int] = {}
        ids = [[number.setdefault(stem, len(number)) for stem in of_chunk] for of_chunk in stems]
        self._bm25 = bm25s.BM25(k1=K1, b=B, backend="numpy") if number else None
        if self._bm25 is not None:
            self._bm25.index((ids, number), create_empty_token=False, show_progress=False)

    def scores(self, query: str) -> np.ndarray:
        """float64 (chunks,), 0 where a chunk has none of the words."""
        (stems,) = stemmed([query], self._language)
        return self.of_stems(stems)

    def of_stems(self, stems: list[str]) -> np.ndarray:
        """The same for a query that is words without their endings already."""
        if self._bm25 is None or not stems:
            return np.zeros(len(self.chunks))
        return self._bm25.get_scores(stems).astype(np.float64)


def stemmed(texts: Iterable[str], language: str | None = "english") -> list[list[str]]:
    """The words of each text, without their endings.

    Args:
        texts: the texts.
        language: whose endings, a name that Snowball knows; None: words stay as they are.

    Returns:
        A list of stems a text, in order.

    Raises:
        ValueError: a language that Snowball does not know.

    >>> stemmed(["The bells were ringing.", "It rings!"])
    [['the', 'bell', 'were', 'ring'], ['it', 'ring']]
    """
    stemmer = None if language is None else _stemmer(language)
    found = [words_of(text) for text in texts]
    if stemmer is None:
        return found
    vocabulary = list({word: None for words in found for word in words})
    stem = dict(zip(vocabulary, stemmer.stemWords(vocabulary), strict=True))
    return [[stem[word] for word in words] for words in found]


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case and in one form of each letter.

    Chinese, Japanese, Thai, Lao, Khmer and Burmese put no spaces between words: there, each character is one, and each
    two neighbours are another.

    >>> words_of("Pump 8: CAFÉ"), words_of("古い鐘")
    (['pump', '8', 'café'], ['古', 'い', '鐘', '古い', 'い鐘'])
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    if text.isascii():
        return _ASCII.findall(text)
    words, unspaced = _patterns()
    found: list[str] = []
    for run in words.findall(text):
        apart = unspaced.match(run) is not None
        found += [*run, *map("".join, pairwise(run))] if apart else [run]
    return found


_ASCII = re.compile(r"\w+")


@cache
def _patterns() -> tuple[Any, Any]:
    """Runs of letters, of one kind of script each; and what is of a script without spaces."""
    import regex

    scripts = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    return regex.compile(rf"[{scripts}]+|[\w--[{scripts}]]+", regex.V1), regex.compile(rf"[{scripts}]", regex.V1)


def _stemmer(language: str) -> Any:
    import Stemmer

    check_choice("language", language, (None, *Stemmer.algorithms()))
    return Stemmer.Stemmer(language)


def _by_score(meaning: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in standard deviations from their means."""
    return standardised(meaning), standardised(words)


def standardised(scores: np.ndarray) -> np.ndarray:
    """In standard deviations from the mean; zeros where all are alike."""
    spread = scores.std()
    return (scores - scores.mean()) / spread if spread > 1e-9 else np.zeros(len(scores))


def _by_rank(meaning: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as 1 / (60 + rank); 0 for the words of a chunk that has none, which is no rank at all."""
    return 1 / (_RANKED + _ranks(meaning)), np.where(words > 0, 1 / (_RANKED + _ranks(words)), 0.0)


def _ranks(scores: np.ndarray) -> np.ndarray:
    """From 1, best first; equal scores have one rank."""
    return 1 + np.searchsorted(np.sort(-scores), -scores)
