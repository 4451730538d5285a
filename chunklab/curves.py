"""The figure of semantic chunking: the curve of distances, the threshold, and the cuts where the curve stands out.

For whoever wants to see why a text was cut where it was. Made as the figures of `figures.py` are, and with their cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chunklab.figures import BLUE, GREY, VERMILLION, new_figure

if TYPE_CHECKING:
    from chunklab.figures import LessonFigure


def plot_distances(
    curves: Mapping[str, tuple[Sequence[Any], Any, Sequence[Any]]], mark: int | None = None
) -> LessonFigure:
    """Draw how far each sentence is from the next, and where that makes a cut: a panel a curve.

    Args:
        curves: what the curve is called, and: its values, one a place between two sentences; the threshold, or None;
            the places at which a chunk ends.
        mark: a place to point at, in every panel.

    Returns:
        The figure.

    Raises:
        ValueError: no curve, or one without values; a cut or a mark that is no place of it.

    >>> plot_distances({"percentile": ([0.1, 0.7, 0.2], 0.65, [1])}, mark=1).alt
    'Curves of distances. percentile: 3 places, threshold 0.65, 1 cut, one of them at place 1.'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError("curves: must be a dictionary of names with (values, threshold, breaks), one or more")
    said = {}
    for name, (values, threshold, breaks) in curves.items():
        places = [*breaks] if mark is None else [*breaks, mark]
        if not len(values) or not all(0 <= place < len(values) for place in places):
            raise ValueError(f"curves: {name!r} has {len(values)} places, and no such cut or mark: {places}")
        over = "" if threshold is None else f"threshold {threshold:.3g}, "
        said[str(name)] = f"{over}{len(breaks)} cut{'' if len(breaks) == 1 else 's'}"
    counts = {str(name): len(values) for name, (values, _, _) in curves.items()}
    hits = {str(name): mark in [*breaks] for name, (_, _, breaks) in curves.items()}
    alt = "Curves of distances."
    for name, fact in said.items():
        at = "" if mark is None else f", {'one' if hits[name] else 'none'} of them at place {mark:,}"
        alt += f" {name}: {counts[name]:,} places, {fact}{at}."
    with new_figure(0.6 + 1.45 * len(curves), alt) as figure:
        panels = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, (values, threshold, breaks)) in zip(panels, curves.items(), strict=True):
            axes.plot(range(len(values)), values, color=BLUE, linewidth=1)
            axes.plot(breaks, [values[place] for place in breaks], "o", color=VERMILLION, markersize=5)
            if threshold is not None:
                axes.axhline(threshold, color="black", linestyle="--", linewidth=1.2)
            if mark is not None:
                axes.axvline(mark, color=GREY, linestyle=":", linewidth=1.5)
            axes.set(title=f"{name}: {said[str(name)]}", xlim=(0, max(1, len(values) - 1)))
            axes.grid(axis="y")
        panels[-1].set_xlabel("place between two sentences" + ("" if mark is None else f" (dotted: place {mark:,})"))
    return figure
