"""Groups of sentences kept within sizes: what a method that cuts by meaning needs, as meaning has no size.

What is too long is cut at its own largest distances, and what is too short is divided anew with its neighbours. For the
chunkers that give each place between two sentences a number, the higher the better to cut there. Cost: about n log n
measurements of a text with n sentences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from chunklab.chunk import Span


def largest_first(distances: np.ndarray) -> np.ndarray:
    """Places in the order in which to cut there: the largest distance first, equal ones spread over the text.

    >>> largest_first(np.array([0.1, 0.3, 0.2])).tolist()
    [1, 2, 0]
    """
    # Multiples of the golden ratio, their whole part left out, fill an interval evenly: places far apart come first.
    spread = np.arange(len(distances)) * 0.6180339887498949 % 1
    return np.lexsort((spread, -np.round(distances, 6)))


def cut_at_largest(
    edges: list[int], order: Sequence[int], too_long: Callable[[int, int], bool], too_short: Callable[[int, int], bool]
) -> None:
    """Cut what is too long at its largest distance, then the parts at theirs, as long as no part is too short.

    Args:
        edges: the first sentence of each group, in order, and the one after the last: new edges are put in here.
        order: places in the order in which to cut there.
        too_long: of a group from one sentence to another.
        too_short: the same.

    >>> edges = [0, 4]
    >>> cut_at_largest(edges, [1, 2, 0], lambda first, last: last - first > 1, lambda first, last: False)
    >>> edges
    [0, 2, 4]
    """
    for place in order:
        here = bisect_right(edges, place)
        first, last = edges[here - 1], edges[here] - 1
        if place < last and too_long(first, last) and not (too_short(first, place) or too_short(place + 1, last)):
            edges.insert(here, place + 1)


def fits(measure: Callable[[int, int], int], first: int, last: int, size: int) -> bool:
    """Whether the group from one sentence to another measures at most `size`.

    A long group is measured from its beginning, as far as it takes to see that it is too long.
    """
    ends = (min(last, first + 2**k - 1) for k in range((last - first).bit_length() + 1))
    return all(measure(first, end) <= size for end in ends)


def tame(
    groups: Sequence[Span], distances: np.ndarray, most: int, measure: Callable[[int, int], int], least: int = 0
) -> list[Span]:
    """Groups of at most a size: those that are longer are cut at their largest distances.

    Args:
        groups: (first, last) sentence of each group, in order.
        distances: from each sentence to the next.
        most: the longest group.
        measure: how long the group from one sentence to another is; a single sentence at most `most`.
        least: a part is no shorter, if there is another way.

    Returns:
        (first, last) sentence of each group, in order.

    >>> tame([(0, 3)], np.array([0.1, 0.9, 0.3]), 2, lambda first, last: last - first + 1)
    [(0, 1), (2, 3)]
    """

    def too_long(first: int, last: int) -> bool:
        return not fits(measure, first, last, most)

    tamed: list[Span] = []
    for first, last in groups:
        edges = [first, last + 1]
        if too_long(first, last):
            order = (first + largest_first(distances[first:last])).tolist()
            cut_at_largest(edges, order, too_long, lambda a, b: fits(measure, a, b, least - 1))
            if least:  # what is too long still, is so at any price
                cut_at_largest(edges, order, too_long, lambda a, b: False)
        tamed += ((start, after - 1) for start, after in pairwise(edges))
    return tamed


def shared_out(
    groups: Sequence[Span], distances: np.ndarray, least: int, most: int, measure: Callable[[int, int], int]
) -> list[Span]:
    """Groups that are too short divided anew together with their neighbours, where that leaves none too short.

    >>> shared_out([(0, 3), (4, 4)], np.array([0.9, 0.1, 0.5, 0.1]), 2, 4, lambda first, last: last - first + 1)
    [(0, 2), (3, 4)]
    """
    shared = list(groups)
    for i in reversed(range(len(groups))):
        if i < len(shared) and measure(*shared[i]) < least:
            for before, after in ((1, 1), (0, 2), (1, 2), (2, 3), (4, 5)):
                begin = max(0, i - before)
                near = shared[begin : i + after]
                parts = best_parts((near[0][0], near[-1][1]), distances, least, most, measure)
                if parts:
                    shared[begin : i + after] = parts
                    break
    return shared


def best_parts(
    group: Span, distances: np.ndarray, least: int, most: int, measure: Callable[[int, int], int]
) -> list[Span]:
    """The division of a group into parts from `least` to `most` at the largest distances; none if there is none."""
    first, last = group
    best = {first: (0.0, first)}  # where a part may begin: the distances cut at so far, and where the part before began
    for end in range(first, last + 1):
        for start in range(end, first - 1, -1):
            size = measure(start, end)
            if size > most:
                break
            if size >= least and start in best:
                worth = best[start][0] + (distances[end] if end < last else 0)
                best[end + 1] = max(best.get(end + 1, (-np.inf, 0)), (worth, start))
    parts, after = [], last + 1
    while after > first:
        if after not in best:
            return []
        parts.append((best[after][1], after - 1))
        after = best[after][1]
    return parts[::-1]
