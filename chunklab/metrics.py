"""Score chunks by the text that they hold: how much of a gold answer they cover, and how much else.

Gold answers are spans of documents, and so are chunks: every method is measured in the same characters, whatever it
calls a chunk. The measures are those of Chroma's "Evaluating Chunking Strategies for Retrieval" (Smith and Troynikov,
2024); beside them stands the bootstrap (Efron, 1979), because a mean over questions is worth as much as its interval.
It serves the scoreboard, and whoever has spans to score. Cost: microseconds a question; no model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np

from chunklab.chunk import Chunk

Span = tuple[str, int, int]
Merged = dict[str, list[tuple[int, int]]]
RESAMPLES = 5000


class Scores(NamedTuple):
    """How well the retrieved text covers the gold text; each from 0 to 1."""

    recall: float
    precision: float
    iou: float


def span_scores(retrieved: Iterable[Any], gold: Iterable[Any]) -> Scores:
    """Compare what came back with what should have, character by character.

    Spans are half-open: two that touch do not overlap. Gold spans that overlap are merged, so that recall can reach 1.
    Retrieved spans are counted each time, in precision and IoU: text that comes back twice, by overlap or as the same
    chunk again, costs the reader twice, and finds nothing new.

    Args:
        retrieved: (document, start, end), or chunks, or hits.
        gold: (document, start, end), or gold spans.

    Returns:
        recall, hit / gold; precision, hit / retrieved; IoU, hit / (retrieved + gold - hit), where hit is the gold text
        that came back. A share of nothing is 0: recall without gold, precision with nothing retrieved.

    Raises:
        ValueError: a span that ends before it starts, or is none of these.

    >>> span_scores([("a", 0, 10), ("a", 5, 15)], [("a", 8, 12)])
    Scores(recall=1.0, precision=0.2, iou=0.2)
    """
    read = [span for place in retrieved for span in spans_of(place)]
    wanted = merged(span for place in gold for span in spans_of(place))
    hit, size = _common(merged(read), wanted), _size(wanted)
    total = sum(end - start for _, start, end in read)
    return Scores(_share(hit, size), _share(hit, total), _share(hit, total + size - hit))


def precision_omega(chunk_spans: Iterable[Any], gold: Iterable[Any], quirks: bool = False) -> float:
    """The precision of a perfect retriever: of all chunks that overlap the gold, how much of their text is gold.

    It judges the cuts alone, without embeddings. Text that several of these chunks share counts once.

    Args:
        chunk_spans: all chunks there are: (document, start, end), or chunks.
        gold: (document, start, end), or gold spans.
        quirks: count as the benchmark's published code does: a chunk that only touches a gold span is retrieved too,
            and gold that no chunk covers counts as text retrieved. With the places that `published_spans` gives, this
            is the published figure to the digit.

    Returns:
        From 0 to 1; 0 where no chunk overlaps the gold.

    >>> chunks = [("a", 0, 10), ("a", 10, 20)]
    >>> precision_omega(chunks, [("a", 10, 15)]), precision_omega(chunks, [("a", 10, 15)], quirks=True)
    (0.5, 0.25)
    """
    wanted = merged(span for place in gold for span in spans_of(place))
    return Places(chunk_spans).omega(wanted, quirks)


def published_spans(chunks: Iterable[Chunk], documents: Mapping[str, str]) -> list[Span]:
    """Where the benchmark's published code thinks that chunks stand; for `precision_omega` with quirks.

    It drops a full stop at the end of a chunk, and searches for what is left: so a chunk whose text stands in the
    document more than once is placed where it stands first.

    Args:
        chunks: chunks that are slices of the documents.
        documents: id to text.

    Returns:
        One (document, start, end) a chunk.
    """
    spans = []
    for chunk in chunks:
        text = chunk.text.removesuffix(".")
        start = documents[chunk.document].find(text)
        spans.append((chunk.document, start, start + len(text)) if start >= 0 else spans_of(chunk)[0])
    return spans


def spans_of(place: Any) -> list[Span]:
    """Where something stands: one (document, start, end), or several for a chunk that was written from several places.

    >>> spans_of(Chunk("b c", 2, 5, "a"))
    [('a', 2, 5)]
    """
    place = getattr(place, "chunk", place)
    try:
        if isinstance(place, (tuple, list)):
            spans = [tuple(place)]
        else:
            parts = getattr(place, "metadata", {}).get("spans") or [(place.start, place.end)]
            spans = [(place.document, start, end) for start, end in parts]
        right = all(isinstance(document, str) and 0 <= index(start) <= index(end) for document, start, end in spans)
    except (AttributeError, TypeError, ValueError):
        right = False
    if not right:
        raise ValueError(f"{place!r:.80} has no span: must be (document, start, end), 0 <= start <= end, or hold these")
    return spans


class Places:
    """All chunks of a collection by place, so that those at a gold span are found without looking at every one."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self._spans = [spans_of(chunk) for chunk in chunks]
        rows = defaultdict(list)
        for owner, spans in enumerate(self._spans):
            for document, start, end in spans:
                rows[document].append((start, end, owner))
        # By start; and how far the chunks up to each one reach, which tells whether one of them holds a span whole.
        self._rows = {document: np.array(sorted(found)).T for document, found in rows.items()}
        self._reach = {document: np.maximum.accumulate(ends) for document, (_, ends, _) in self._rows.items()}

    def omega(self, wanted: Merged, quirks: bool = False) -> float:
        """`precision_omega` for gold spans that are merged already."""
        owners: set[int] = set()
        for document, parts in wanted.items():
            if document in self._rows:
                starts, ends, owner = self._rows[document]
                for start, end in parts:
                    found = (starts <= end) & (ends >= start) if quirks else (starts < end) & (ends > start)
                    owners.update(owner[found].tolist())
        read = merged(span for owner in owners for span in self._spans[owner])
        hit = _common(read, wanted)
        return _share(hit, _size(read) + (_size(wanted) - hit if quirks else 0))

    def hold(self, span: Span) -> bool:
        """Whether a chunk contains the span whole."""
        document, start, end = span
        if document not in self._rows:
            return False
        place = bisect_right(self._rows[document][0], start)
        return place > 0 and bool(self._reach[document][place - 1] >= end)


def merged(spans: Iterable[Span]) -> Merged:
    """The union of spans, a document at a time, in order."""
    union: Merged = defaultdict(list)
    for document, start, end in sorted(spans):
        parts = union[document]
        if parts and start <= parts[-1][1]:
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        elif start < end:
            parts.append((start, end))
    return union


def _common(one: Merged, other: Merged) -> int:
    """How many characters two unions share."""
    pairs = ((a, b) for document in one.keys() & other.keys() for a in one[document] for b in other[document])
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)


def _size(union: Merged) -> int:
    return sum(end - start for parts in union.values() for start, end in parts)


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def bootstrap(values: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of a mean over questions, by resampling them: the same questions, the same interval.

    Args:
        values: one a question.

    Returns:
        Its low and high end: the percentiles 2.5 and 97.5 of the means of 5,000 resamples.

    Raises:
        ValueError: no values, or one that is not finite.

    >>> low, high = bootstrap(np.array([0.0, 1.0] * 50))
    >>> 0.39 < low < 0.42 < 0.58 < high < 0.61
    True
    """
    values = np.asarray(values, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise ValueError(f"values={values!r:.80}: must be one or more numbers, all finite")
    low, high = np.quantile(resamples(len(values)) @ values / len(values), [0.025, 0.975])
    return float(low), float(high)


@lru_cache(maxsize=8)
def resamples(count: int) -> np.ndarray:
    """How often each of `count` questions is drawn: (5,000, count), a resample a row; always the same ones."""
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    flat = drawn + count * np.arange(RESAMPLES)[:, None]
    return np.bincount(flat.ravel(), minlength=RESAMPLES * count).reshape(RESAMPLES, count).astype(np.float64)
