"""Late chunking: embed the text first, cut afterwards.

A chunk that says "she" or "the town" has lost who and which. Here the model reads the whole text, as far as it reads at
once, and the vectors of its tokens, which know what stands around them, are averaged over each chunk (Jina AI, "Late
Chunking", 2024). For chunks that lean on their neighbours. Cost: about twice that of embedding the text once, as a text
that is longer than the model reads goes through it in stretches that overlap by half.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from chunklab.models.tokens import tokens
from chunklab.models.vectors import unit


def late_embeddings(text: str, spans: Iterable[Any], embeddings: Any) -> np.ndarray:
    """The vectors of chunks in the light of what stands around them.

    Args:
        text: the document.
        spans: the chunks, or (start, end) of each.
        embeddings: a model that gives token vectors, as `chunklab.embeddings("minilm")` does.

    Returns:
        float32 of shape (spans, dimensions), unit length; zeros for a span that holds no token.

    Raises:
        ValueError: a model without token vectors, a text that is no str, a span outside it.

    >>> from chunklab import embeddings
    >>> late_embeddings("Anna is a smith. She lives in Tarn.", [(0, 16), (17, 35)], embeddings("minilm")).shape
    (2, 384)
    """
    if not all(getattr(embeddings, name, None) for name in ("token_vectors", "max_tokens", "dimensions")):
        raise ValueError(
            f"embeddings={embeddings!r:.80}: must give the vectors of single tokens (token_vectors, with max_tokens "
            'and dimensions), as chunklab.embeddings("minilm") does'
        )
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}: must be a str")
    if isinstance(spans, str) or not isinstance(spans, Iterable):
        raise ValueError(f"spans={spans!r:.80}: must be a list of chunks, or of the start and end of each")
    places = np.array([_place(span, len(text)) for span in spans], dtype=np.int64).reshape(-1, 2)
    sums = np.zeros((len(places), embeddings.dimensions), dtype=np.float64)
    order = np.argsort(places[:, 0], kind="stable")
    starts, longest = places[order, 0], int((places[:, 1] - places[:, 0]).max(initial=0))
    for begins, vectors in _tokens_in_context(text, embeddings):
        first, last = np.searchsorted(starts, [begins[0] - longest, begins[-1] + 1])
        for row in order[first:last]:
            a, b = np.searchsorted(begins, places[row])
            sums[row] += vectors[a:b].sum(axis=0)
    return unit(sums)


def _place(span: Any, length: int) -> tuple[int, int]:
    try:
        start, end = map(operator.index, (span.start, span.end) if hasattr(span, "start") else span)
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"spans holds {span!r:.80}: must hold chunks, or the start and end of each") from None
    if not 0 <= start <= end <= length:
        raise ValueError(f"spans holds ({start}, {end}): must lie in the text, which has {length} characters")
    return start, end


def _tokens_in_context(text: str, model: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Where tokens begin, and their vectors, stretch by stretch: each token once, where it has the most around it."""
    begins = _stretches(text, model.max_tokens - 2)
    low = 0
    for number, (start, end) in enumerate(begins):
        vectors, spans = model.token_vectors(text[start:end])
        places = spans[:, 0] + start
        # The part that the next stretch reads too is shared out in the middle.
        high = (begins[number + 1][0] + end) // 2 if number + 1 < len(begins) else len(text)
        mine = (places >= low) & (places < high)
        if mine.any():
            yield places[mine], vectors[mine]
        low = high


def _stretches(text: str, most: int) -> list[tuple[int, int]]:
    """Where the stretches that the model reads at once start and end: `most` tokens each, the half of it shared."""
    count = tokens("minilm")
    offsets = count.offsets(text)
    edges = [*offsets, len(text)]
    # A stretch begins with a word: a piece of one, on its own, would be read as another.
    heads = [
        i for i, place in enumerate(offsets) if not place or not (text[place - 1].isalnum() and text[place].isalnum())
    ]
    stretches, first = [], 0
    while first < len(offsets):
        last = min(first + most, len(offsets))
        stretches.append((edges[first], edges[last]))
        if last == len(offsets):
            break
        # The next one: the head nearest to the middle of this one, before it; without one, the middle itself.
        head = heads[np.searchsorted(heads, first + most // 2, side="right") - 1]
        first = head if head > first else first + max(1, most // 2)
    return stretches
