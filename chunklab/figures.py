"""The lessons' figures: sizes, windows, hits; and what all figures of the course are drawn with.

Each function returns one matplotlib `Figure`, which a notebook shows once, as the last line of a cell, without pyplot:
no backend is chosen and no setting of yours is changed. The face is white, so that a dark page can show it too; marks
differ in place or shape and not in colour alone. `figure.alt` says in words what the picture shows: it is the text of
the output where there are no pictures, and the picture's `alt` where the page supports one. The same input gives the
same bytes. Cost: half a second for the first figure, then about a tenth.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from chunklab.chunk import Span, check_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    class LessonFigure(Figure):
        """A Figure that a notebook shows without pyplot; `alt` says in words what it shows. Made by `_figure_type`."""

        alt: str


# Okabe and Ito: distinct for colour-blind readers.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#666666"
_WIDTH = 6.4
_DPI = 144
_STYLE = {
    "font.size": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.axisbelow": True,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "grid.color": "#dddddd",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "text.parse_math": False,
    "figure.facecolor": "white",
}


def plot_sizes(methods: Mapping[str, Iterable[Any]], limit: int | None = None) -> LessonFigure:
    """Draw how long the chunks of each method are: a histogram a method, on one scale.

    Args:
        methods: the name of each method, and its chunks or (start, end) pairs.
        limit: the longest that a chunk may be, drawn as a line, in characters.

    Returns:
        The figure.

    Raises:
        ValueError: no method, or a limit that is not a whole number of 1 or more.

    >>> plot_sizes({"fixed": [(0, 200), (200, 400), (400, 480)]}, limit=200).alt
    'Sizes of chunks in characters, at most 200 allowed. fixed: 3 chunks, 80 to 200, mean 160.'
    """
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError("methods: must be a dictionary of names with their chunks, one or more")
    if limit is not None:
        check_size("limit", limit)
    sizes = {str(name): [end - start for start, end in map(_span, chunks)] for name, chunks in methods.items()}
    facts = {name: _size_facts(row) for name, row in sizes.items()}
    allowed = f", at most {limit:,} allowed" if limit else ""
    alt = f"Sizes of chunks in characters{allowed}. " + " ".join(f"{name}: {fact}." for name, fact in facts.items())
    edges = _bins(max([limit or 1, *(size for row in sizes.values() for size in row)]), limit)
    with new_figure(0.7 + 1.15 * len(sizes), alt) as figure:
        rows = figure.subplots(len(sizes), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, row) in zip(rows, sizes.items(), strict=True):
            for edge, bar in zip(edges, axes.hist(row, edges, color=BLUE)[2], strict=False):
                bar.set_color(VERMILLION if limit and edge > limit else BLUE)
            axes.set(title=f"{name}: {facts[name]}", yticks=[], xlim=(0, edges[-1] * 1.01))
            axes.spines["left"].set_visible(False)
            if limit:
                axes.axvline(limit + 0.5, color=VERMILLION, linestyle="--", linewidth=1.5)
        rows[-1].xaxis.set_major_formatter("{x:,.0f}")
        rows[-1].set_xlabel("characters in a chunk" + (f" (dashed: the limit, {limit:,})" if limit else ""))
    return figure


def plot_windows(spans: Iterable[Any], length: int) -> LessonFigure:
    """Draw windows as bars over the text: what they share, what they miss, and which are of no use.

    Args:
        spans: up to 40 chunks or (start, end) pairs.
        length: characters of the text, 1 or more.

    Returns:
        The figure: shared text dark, gaps and useless windows red and named.

    Raises:
        ValueError: more than 40 spans or none, or a length that is not a whole number of 1 or more.

    >>> plot_windows([(0, 6), (4, 10), (8, 10)], 10).alt
    '3 windows over a text of 10 characters; 4 characters are in more than one; window 2 adds nothing.'
    """
    check_size("length", length)
    windows = [_span(item) for item in spans]
    if not 1 <= len(windows) <= 40:
        raise ValueError(f"spans: {len(windows)} of them: must be from 1 to 40, so that each can be seen")
    shared, gaps = _depths(windows, length)
    faults = _faults(windows, length)
    said = [f"window {number} {fault}" for number, fault in faults.items()]
    said += [f"characters {start:,} to {end:,} are in none" for start, end in gaps]
    twice = f"{sum(end - start for start, end in shared):,} characters are in more than one"
    alt = "; ".join([f"{len(windows)} windows over a text of {length:,} characters", twice, *said]) + "."
    with new_figure(1.2 + 0.3 * len(windows), alt) as figure:
        axes = figure.subplots()
        for start, end in gaps:
            axes.axvspan(start, end, color=VERMILLION, alpha=0.25, linewidth=0)
            axes.text((start + end) / 2, -0.6, "in none", ha="center", va="bottom", color=VERMILLION)
        for number, (start, end) in enumerate(windows):
            _window(axes, number, start, end, shared, faults.get(number, ""))
        axes.axvline(length, color=GREY, linestyle=":")
        axes.set(ylim=(len(windows) - 0.4, -0.6 if not gaps else -1.4), xlim=(0, 1.02 * max(length, *sum(windows, ()))))
        axes.set_yticks(range(len(windows)))
        axes.set_ylabel("window")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("character of the text (dark: also in another window)")
    return figure


def plot_hits(hits: Iterable[Any], gold: Iterable[Any] = (), whole: float | None = None) -> LessonFigure:
    """Draw how near each chunk of a document is to a question, over the chunk's place in the text.

    Args:
        hits: what a search has found in one document, one or more; all its chunks, for the whole picture.
        gold: where the answer stands; the chunks that hold some of it are drawn thick and named.
        whole: the cosine of the document as one piece, drawn as a line.

    Returns:
        The figure.

    Raises:
        ValueError: no hits, or hits from more than one document.

    >>> from chunklab.chunk import Chunk
    >>> from chunklab.retrieval import Hit
    >>> plot_hits([Hit(Chunk("one", 0, 3, "a"), 0.5, 1), Hit(Chunk("two", 3, 6, "a"), 0.2, 2)], [("a", 4, 5)], 0.1).alt
    'How near 2 chunks are to the question: cosine 0.200 to 0.500. With the answer: 0.200 at 3. In one piece: 0.100.'
    """
    found = sorted(hits, key=lambda hit: hit.chunk.start)
    if len({hit.chunk.document for hit in found}) != 1:
        raise ValueError("hits: must be one or more, from one document")
    wanted = [(span.document, span.start, span.end) if hasattr(span, "end") else tuple(span) for span in gold]
    wanted = [(start, end) for document, start, end in wanted if document == found[0].chunk.document]
    right = [h for h in found if any(h.chunk.start < end and h.chunk.end > start for start, end in wanted)]
    scores = [hit.score for hit in found]
    alt = f"How near {len(found)} chunks are to the question: cosine {min(scores):.3f} to {max(scores):.3f}."
    if right:
        alt += f" With the answer: {', '.join(f'{hit.score:.3f} at {hit.chunk.start:,}' for hit in right)}."
    alt += "" if whole is None else f" In one piece: {whole:.3f}."
    with new_figure(3, alt) as figure:
        axes = figure.subplots()
        starts, ends = [h.chunk.start for h in found], [h.chunk.end for h in found]
        axes.hlines(scores, starts, ends, color=BLUE, linewidth=2.5, label="a chunk")
        for hit in right:
            axes.hlines(hit.score, hit.chunk.start, hit.chunk.end, color=VERMILLION, linewidth=6)
            axes.annotate(
                "holds the answer", (hit.chunk.end, hit.score), xytext=(6, 0), textcoords="offset points", va="center"
            )
        if whole is not None:
            axes.axhline(whole, color="black", linestyle="--", linewidth=1.2, label="the document in one piece")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=2, frameon=False)
        end = found[-1].chunk.end
        axes.set(xlim=(-0.01 * end, 1.01 * end), xlabel="character of the document", ylabel="cosine")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y")
    return figure


def _span(item: Any) -> Span:
    return (item.start, item.end) if hasattr(item, "start") else tuple(item)


def _size_facts(sizes: list[int]) -> str:
    if not sizes:
        return "no chunks"
    low, high = min(sizes), max(sizes)
    mean = f"all {low:,}" if low == high else f"{low:,} to {high:,}, mean {sum(sizes) / len(sizes):,.0f}"
    return f"{len(sizes):,} chunk{'s' if len(sizes) > 1 else ''}, {mean}"


def _bins(top: int, limit: int | None) -> list[float]:
    """Edges for a histogram, half a character off, with the limit on one of them: what it allows stays left of it."""
    if not limit:
        return [0.5 + bar * max(1, top / 40) for bar in range(42)]
    width = next((limit / parts for parts in (20, 10, 5, 2) if top <= 80 * limit / parts and parts <= limit), None)
    width = width or max(limit, top / 80)
    return [0.5 + bar * width for bar in range(int(top / width) + 2)]


def _depths(windows: list[Span], length: int) -> tuple[list[Span], list[Span]]:
    """The stretches that two or more windows hold, and those that none does."""
    edges = sorted({0, length, *(edge for window in windows for edge in window)})
    shared, gaps = [], []
    for start, end in pairwise(edges):
        depth = sum(a <= start and end <= b for a, b in windows)
        if depth > 1:
            shared.append((start, end))
        elif not depth and end <= length:
            gaps.append((start, end))
    return shared, gaps


def _faults(windows: list[Span], length: int) -> dict[int, str]:
    faults = {}
    for number, (start, end) in enumerate(windows):
        if start >= end:
            faults[number] = "is empty"
        elif end > length:
            faults[number] = "runs past the end"
        elif any(a <= start and end <= b for a, b in windows[:number]):
            faults[number] = "adds nothing"
    return faults


def _window(axes: Axes, number: int, start: int, end: int, shared: list[Span], fault: str) -> None:
    axes.broken_barh([(start, end - start)], (number - 0.36, 0.72), color=VERMILLION if fault else "#9ecae1")
    dark = [(max(a, start), min(b, end) - max(a, start)) for a, b in shared if a < end and b > start]
    axes.broken_barh(dark, (number - 0.36, 0.72), color=VERMILLION if fault else BLUE)
    if fault:
        axes.annotate(fault, (start, number), xytext=(-5, 0), textcoords="offset points", ha="right", va="center")


@contextmanager
def _styled() -> Iterator[None]:
    """matplotlib's own defaults and ours, whatever the reader has set; theirs again afterwards."""
    from matplotlib import style

    with style.context(["default", _STYLE]):
        yield


@contextmanager
def new_figure(height: float, alt: str = "") -> Iterator[LessonFigure]:
    """A figure to draw on, laid out once: laid out again at each showing, it would shift by a pixel or two."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with _styled():
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        figure = _figure_type()(figsize=(_WIDTH, height), dpi=_DPI, layout=layout)
        figure.alt = alt
        yield figure
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


@cache
def _figure_type() -> Any:
    from matplotlib.figure import Figure

    class LessonFigure(Figure):
        alt = ""

        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
            # IPython itself can show a Figure only once pyplot has been imported.
            data = {"image/png": b64encode(_png(self)).decode(), "text/plain": self.alt}
            return data, {"image/png": {"alt": self.alt, "width": round(_WIDTH * 96)}}

    return LessonFigure


def _png(figure: Figure) -> bytes:
    """The same bytes every time: no date, no version."""
    file = BytesIO()
    with _styled():
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()
