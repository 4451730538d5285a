"""Semantic chunking: cut where neighbouring sentences are least alike in meaning.

For text whose topics change without a mark: transcripts, essays, long answers. Sentences (where there are no stops,
pieces of a sentence's length) become vectors, each vector is blended with its neighbours', and the distance from one
place to the next is a curve; a chunk ends where the curve stands out (Greg Kamradt's "5 levels of text splitting",
2024; LangChain's SemanticChunker, to which `compatible=True` is equal cut for cut). Cost: one embedding a sentence,
then one pass. What it does not know is a size: `max_chunk_size` does.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunker, Span, check_choice, check_size, is_number
from chunklab.chunkers.boundaries import sentence_spans
from chunklab.chunkers.distances import (
    NOISE,
    Distance,
    check_distance,
    embed_in_blocks,
    readable,
    row_distances,
    units,
)
from chunklab.chunkers.langchain_semantic import (
    langchain_breaks,
    langchain_distances,
    langchain_groups,
    langchain_sentences,
    langchain_texts,
)
from chunklab.chunkers.sentence import fitting_pieces, last_that_fits
from chunklab.chunkers.sizes import cut_at_largest, fits, largest_first, shared_out, tame
from chunklab.models.vectors import check_model

Length = Callable[[str], int]

AMOUNTS = {"percentile": 95.0, "standard_deviation": 3.0, "interquartile": 1.5, "gradient": 95.0}
"""The types of threshold, and how much each takes unless told otherwise."""

PERCENTILES = ("percentile", "gradient")
"""Those whose amount is from 0 to 100."""

WINDOWS = ("mean", "sides", "text")
_AT_ONCE = 8192  # sentences whose windows are in memory


def window_means(vectors: np.ndarray, before: int, after: int) -> np.ndarray:
    """Each vector blended with its neighbours': the nearer a neighbour, the more it counts, and itself the most.

    Args:
        vectors: (sentences, dimensions).
        before: how many neighbours before it, fewer at the beginning.
        after: how many after it, fewer at the end.

    Returns:
        (sentences, dimensions): weighted means; with one neighbour on each side, the weights are 1, 2, 1.

    >>> window_means(np.array([[0.0], [4.0], [8.0]]), 1, 1).tolist()
    [[1.3333333333333333], [4.0], [6.666666666666667]]
    """
    most = 1 + max(before, after)
    pull, weights = np.zeros_like(vectors), np.full((len(vectors), 1), most, dtype=vectors.dtype)
    for k in range(1, min(most, len(vectors))):
        # How far each is from the one k before it: exactly 0 where a sentence is repeated, and so is the pull.
        step = vectors[k:] - vectors[:-k]
        step *= most - k
        if k <= before:
            pull[k:] -= step
            weights[k:] += most - k
        if k <= after:
            pull[:-k] += step
            weights[:-k] += most - k
    pull /= weights
    pull += vectors
    return pull


def sentence_distances(
    vectors: np.ndarray, buffer_size: int = 1, window: str = "mean", distance: str | Distance = "cosine"
) -> np.ndarray:
    """How far each sentence is from the next, in the light of its neighbours.

    Args:
        vectors: (sentences, dimensions).
        buffer_size: neighbours that each sentence is blended with, on either side.
        window: "mean": a sentence with its neighbours on both sides, so that two windows in a row share sentences;
            "sides": only neighbours on the same side of the place between the two.
        distance: as for `row_distances`.

    Returns:
        (sentences - 1,): item i is the distance between sentences i and i + 1.

    >>> sentence_distances(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 0).tolist()
    [0.0, 1.0]
    """
    if window == "sides":
        left, right = window_means(vectors, buffer_size, 0), window_means(vectors, 0, buffer_size)
    else:
        left = right = window_means(vectors, buffer_size, buffer_size)
    return row_distances(left[:-1], right[1:], distance)


def breakpoint_threshold(distances: np.ndarray, kind: str, amount: float) -> tuple[np.ndarray, float]:
    """What is compared with what: a chunk ends at each place whose value is above the threshold.

    Args:
        distances: (places,), one at least.
        kind: "percentile": `amount` percent of the distances are below; "standard_deviation": the middle distance and
            `amount` deviations, estimated from the middle too (1.4826 times the median absolute deviation), so that the
            breaks sought do not raise the bar; "interquartile": the mean and `amount` interquartile ranges; "gradient":
            a percentile of the rises from one distance to the next, the first from the middle one.
        amount: as `kind` says.

    Returns:
        Values (places,), and the threshold in their unit.

    >>> values, threshold = breakpoint_threshold(np.array([0.1, 0.11, 0.5, 0.12, 0.1]), "gradient", 95)
    >>> np.flatnonzero(values > threshold).tolist()
    [2]
    """
    middle = np.median(distances)
    if kind == "percentile":
        return distances, np.percentile(distances, amount)
    if kind == "standard_deviation":
        return distances, middle + amount * 1.4826 * np.median(np.abs(distances - middle))
    if kind == "interquartile":
        return distances, distances.mean() + amount * np.subtract(*np.percentile(distances, [75, 25]))
    rises = np.diff(distances, prepend=middle)
    return rises, np.percentile(rises, amount)


class SemanticChunker(Chunker):
    """Groups of sentences of one meaning.

    Args:
        embeddings: the model that gives a sentence its vector.
        buffer_size: neighbours that each sentence is blended with, on either side.
        breakpoint_threshold_type: "percentile", "standard_deviation", "interquartile" or "gradient": see
            `breakpoint_threshold`.
        breakpoint_threshold_amount: from 0 to 100 for the first and the last, 0 or more for the others; `AMOUNTS` has
            the defaults.
        number_of_chunks: instead of a threshold: cut at the largest distances, into so many chunks; fewer where there
            are fewer sentences.
        min_chunk_size: leave out a break that would make a shorter chunk, in units of `length_function`, if there is
            another way.
        max_chunk_size: the longest chunk; a longer group is cut at its own largest distances, a longer sentence at
            words, a longer word at characters. None: no limit.
        distance: "cosine", "euclidean", "manhattan", or a function of two vectors, such as those of
            scipy.spatial.distance: the larger, the less alike.
        window: what a sentence's neighbours do: "mean", their vectors are blended with its own; "sides", the same, but
            only with those on its side of the place that is judged, which shows a change more sharply; "text", the
            sentences are joined and embedded together, at 2 * buffer_size + 1 times the cost.
        compatible: cut exactly where LangChain's SemanticChunker does. Then sentences end where its pattern says, and
            windows are joined texts.
        length_function: what sizes count; characters by default.

    Raises:
        ValueError: an argument that is not allowed; later, from the model, an answer that is not a finite vector a
            text.

    >>> from chunklab import embeddings
    >>> text = "The cat sleeps. The cat purrs. The dog sees the cat. Interest rates rose. Banks raised interest rates."
    >>> SemanticChunker(embeddings("static"), number_of_chunks=2).split_text(text)
    ['The cat sleeps. The cat purrs. The dog sees the cat.', 'Interest rates rose. Banks raised interest rates.']
    """

    def __init__(
        self,
        embeddings: Embeddings,
        buffer_size: int = 1,
        breakpoint_threshold_type: str = "percentile",
        breakpoint_threshold_amount: float | None = None,
        number_of_chunks: int | None = None,
        min_chunk_size: int | None = None,
        max_chunk_size: int | None = None,
        distance: str | Distance = "cosine",
        window: str = "mean",
        compatible: bool = False,
        length_function: Length = len,
    ) -> None:
        check_model(embeddings)
        buffer_size = _check_buffer(buffer_size)
        amount = _check_amount(breakpoint_threshold_type, breakpoint_threshold_amount)
        sizes = {
            "number_of_chunks": number_of_chunks,
            "min_chunk_size": min_chunk_size,
            "max_chunk_size": max_chunk_size,
        }
        count, least, most = (None if size is None else check_size(name, size) for name, size in sizes.items())
        if least and most and least > most:
            raise ValueError(f"min_chunk_size={least}: must be at most max_chunk_size={most}")
        check_distance(distance)
        check_choice("window", window, WINDOWS)
        if compatible and (most or distance != "cosine" or window == "sides" or length_function is not len):
            raise ValueError(
                f"compatible={compatible!r}: not with max_chunk_size={most!r}, distance={distance!r:.80}, "
                f"window={window!r} and length_function={length_function!r}: LangChain's chunker has no maximum, "
                'cosine distance, the window "text", and counts characters'
            )
        super().__init__(most or sys.maxsize, 0, length_function)
        self._embeddings, self._buffer = embeddings, buffer_size
        self._kind, self._amount = breakpoint_threshold_type, amount
        self._count, self._least, self._most = count, least, most
        self._distance, self._window, self._compatible = distance, window, bool(compatible)

    def sentences(self, text: str) -> list[Span]:
        """What is grouped: sentences, or pieces where one is too long; without white space at their edges."""
        if self._compatible:
            return langchain_sentences(text)
        pieces = fitting_pieces(text, units(text, sentence_spans(text)), self._chunk_size, self._length_function)
        return readable(text, pieces, self._embeddings)

    def distances(self, text: str, sentences: Sequence[Span]) -> np.ndarray:
        """The curve: the distance from each sentence to the next, (sentences - 1,)."""
        if len(sentences) < 2:
            return np.zeros(0)
        if self._compatible:
            return langchain_distances(langchain_texts(text), self._embeddings, self._buffer)
        if self._window == "text":
            windows = embed_in_blocks(self._embeddings, [text[a:b] for a, b in self._windows(text, sentences)])
            return row_distances(windows[:-1], windows[1:], self._distance)
        vectors = embed_in_blocks(self._embeddings, [text[a:b] for a, b in sentences])
        # Block by block, each with the neighbours of its edges, so that windows do not fill the memory.
        reach, found = self._buffer, [np.zeros(0)]
        at_once = max(_AT_ONCE, 2 * reach)
        for i in range(0, len(vectors) - 1, at_once):
            low = max(0, i - reach)
            part = vectors[low : i + at_once + 1 + reach]
            part = sentence_distances(part, reach, self._window, self._distance)
            found.append(part[i - low :][:at_once])
        return np.concatenate(found)

    def breaks(self, distances: np.ndarray) -> list[int]:
        """The places after which a chunk ends, before sizes have their say: places of distances, in order."""
        if not len(distances):
            return []
        if self._compatible:
            return langchain_breaks(distances, self._kind, self._amount, self._count)
        if self._count:
            return sorted(largest_first(distances)[: self._count - 1].tolist())
        values, threshold = breakpoint_threshold(distances, self._kind, self._amount)
        return np.flatnonzero(values > threshold + NOISE * max(1, abs(threshold))).tolist()

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        sentences = self.sentences(text)
        if not sentences:
            return []
        distances = self.distances(text, sentences)
        breaks = self.breaks(distances)
        if self._compatible:
            groups = langchain_groups(langchain_texts(text), breaks, self._kind, self._least)
            return [(sentences[first][0], sentences[last][1]) for first, last in groups]

        def measure(first: int, last: int) -> int:
            start, end = sentences[first][0], sentences[last][1]
            return end - start if self._length_function is len else self._length_function(text[start:end])

        if self._length_function is not len:
            measure = lru_cache(maxsize=2**18)(measure)  # the same groups are asked for again and again
        groups = self._groups(distances, breaks, measure)
        if self._most:
            groups = tame(groups, distances, self._most, measure, self._least or 0)
        if self._most and self._least:
            groups = shared_out(groups, distances, self._least, self._most, measure)
        return [(sentences[first][0], sentences[last][1]) for first, last in groups]

    def _groups(self, distances: np.ndarray, breaks: Sequence[int], measure: Callable[[int, int], int]) -> list[Span]:
        """The first and the last sentence of each chunk, none of them too short if there is another way."""
        least, ends = self._least or 0, [*breaks, len(distances)]
        if least and self._count:
            edges = [0, len(distances) + 1]
            order, few = largest_first(distances).tolist(), self._count
            cut_at_largest(edges, order, lambda a, b: len(edges) <= few, lambda a, b: fits(measure, a, b, least - 1))
            ends = [edge - 1 for edge in edges[1:]]
        groups, first, k = [], 0, 0
        while k < len(ends):
            if least and measure(first, ends[k]) < least:
                # Then the first break that leaves it long enough, or the end of the text.
                short = last_that_fits(lambda i: measure(first, ends[i]), len(ends), k, least - 1)  # noqa: B023
                k = min(short + 1, len(ends) - 1)
            groups.append((first, ends[k]))
            first, k = ends[k] + 1, k + 1
        if least and len(groups) > 1 and measure(*groups[-1]) < least:
            groups[-2:] = [(groups[-2][0], groups[-1][1])]
        return groups

    def _windows(self, text: str, sentences: Sequence[Span]) -> list[Span]:
        """Each sentence with its neighbours, fewer of them where the window would be longer than allowed, or read."""
        limit, count = getattr(self._embeddings, "max_tokens", None), getattr(self._embeddings, "count_tokens", None)

        def window(i: int, reach: int) -> Span:
            return sentences[max(0, i - reach)][0], sentences[min(i + reach, len(sentences) - 1)][1]

        def too_long(i: int, reach: int) -> bool:
            start, end = window(i, reach)
            words = text[start:end]
            return self._length_function(words) > self._chunk_size or bool(limit and count and count(words) > limit)

        most = min(self._buffer, len(sentences))
        return [
            window(i, last_that_fits(lambda reach: too_long(i, reach), most + 1, 0, 0))  # noqa: B023
            for i in range(len(sentences))
        ]


def _check_buffer(value: Any) -> int:
    try:
        buffer_size = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        buffer_size = -1
    if buffer_size < 0:
        raise ValueError(f"buffer_size={value!r}: must be a whole number of 0 or more")
    return buffer_size


def _check_amount(kind: Any, amount: Any) -> float:
    """The amount, or the type's default."""
    check_choice("breakpoint_threshold_type", kind, tuple(AMOUNTS))
    if amount is None:
        return AMOUNTS[kind]
    most = 100 if kind in PERCENTILES else sys.float_info.max
    if not is_number(amount) or not 0 <= amount <= most:
        rule = "from 0 to 100" if most == 100 else "of 0 or more"
        raise ValueError(f"breakpoint_threshold_amount={amount!r}: must be None or a number {rule} for {kind!r}")
    return float(amount)
