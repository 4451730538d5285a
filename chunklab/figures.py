"""The lessons' figures: sizes, windows, hits, scores, sweeps, tables of colour.

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
from itertools import cycle, pairwise
from math import isnan, log
from typing import TYPE_CHECKING, Any

from chunklab.chunk import Span, check_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

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


def plot_sizes(methods: Mapping[str, Iterable], limit: int | None = None) -> LessonFigure:
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
        rows[-1].set_xlabel("characters in a chunk" + (f" (dashed: the limit, {limit:,})" if limit else ""))
    return figure


def plot_windows(spans: Iterable, length: int) -> LessonFigure:
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
        axes.set_xlabel("character of the text (dark: also in another window)")
    return figure


def plot_hits(hits: Iterable, gold: Iterable = (), whole: float | None = None) -> LessonFigure:
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
        axes.hlines(scores, [h.chunk.start for h in found], [h.chunk.end for h in found], color=BLUE, linewidth=2.5)
        for hit in right:
            axes.hlines(hit.score, hit.chunk.start, hit.chunk.end, color=VERMILLION, linewidth=6)
            axes.annotate(
                "the answer", (hit.chunk.end, hit.score), xytext=(6, 0), textcoords="offset points", va="center"
            )
        if whole is not None:
            axes.axhline(whole, color="black", linestyle="--", linewidth=1.2, label="the document in one piece")
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
        axes.set(xlim=(0, found[-1].chunk.end), xlabel="character of the document", ylabel="cosine")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y")
    return figure


def plot_scores(scores: Any, metric: str = "recall") -> LessonFigure:
    """Draw a metric of each method as a dot, with its 95% interval.

    Args:
        scores: a Scoreboard; or its frame: a row a method, with columns `metric`, `metric`_low and `metric`_high.
        metric: the column to draw: "recall", "precision" or "iou", in percent.

    Returns:
        The figure.

    Raises:
        ValueError: a column that is missing, or a frame without rows.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"recall": [60, 71.5], "recall_low": 55, "recall_high": 80}, index=["fixed", "recursive"])
    >>> plot_scores(frame).alt
    'recall in percent, with 95% intervals. fixed: 60 (55 to 80). recursive: 71.5 (55 to 80).'
    """
    frame = _checked(scores, [metric])
    names = [" · ".join(name) if isinstance(name, tuple) else str(name) for name in frame.index]
    ends = [(name, *row) for name, row in zip(names, _intervals(frame, metric), strict=True)]
    rows = [f"{name}: {value:.3g} ({low:.3g} to {high:.3g})." for name, value, low, high in ends]
    with new_figure(0.8 + 0.42 * len(names), " ".join([f"{metric} in percent, with 95% intervals.", *rows])) as figure:
        axes = figure.subplots()
        for place, (_, value, low, high) in enumerate(ends):
            axes.plot([low, high], [place, place], color=BLUE, linewidth=2, alpha=0.55)
            axes.plot(value, place, "o", color=BLUE, markersize=8)
            axes.annotate(f"{value:.3g}", (value, place), xytext=(0, 6), textcoords="offset points", ha="center")
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.8), xlabel=f"{metric} in percent (line: 95% interval)")
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    return figure


def plot_sweep(frame: DataFrame, x: str, metric: str, by: str | None = None) -> LessonFigure:
    """Draw a metric over a parameter: a line for each value of `by`, in a band where the frame has an interval.

    Args:
        frame: a row a run, with columns `x`, `metric`, `by`, and perhaps `metric`_low and `metric`_high.
        x: the column of the parameter, such as "chunk_size".
        metric: the column to draw.
        by: the column that tells the lines apart, six values at most, such as "chunk_overlap"; None: one line.

    Returns:
        The figure.

    Raises:
        ValueError: a column that is missing, a frame without rows, or too many lines.

    >>> import pandas as pd
    >>> plot_sweep(pd.DataFrame({"size": [100, 200], "recall": [60, 71.5]}), "size", "recall").alt
    'recall over size: 60 at 100, 71.5 at 200.'
    """
    frame = _checked(frame, [x, metric] + ([by] if by else []))
    groups = {f"{by} {value}".replace("_", " "): rows for value, rows in frame.groupby(by)} if by else {"": frame}
    if len(groups) > 6:
        raise ValueError(f"by={by!r}: {len(groups)} lines cannot be told apart: six at most")
    said = []
    with new_figure(3.6) as figure:
        axes = figure.subplots()
        looks = zip((BLUE, VERMILLION, GREEN, ORANGE, PURPLE, "black"), "os^Dv*", cycle(("-", "--")))
        for (name, rows), (colour, marker, line) in zip(groups.items(), looks, strict=False):
            rows = rows.sort_values(x)
            across, (up, low, high) = list(rows[x]), zip(*_intervals(rows, metric), strict=True)
            axes.plot(across, up, color=colour, marker=marker, linestyle=line, linewidth=2, markersize=7, label=name)
            axes.fill_between(across, low, high, color=colour, alpha=0.12, linewidth=0)
            points = ", ".join(f"{b:.3g} at {a:,}" for a, b in zip(across, up, strict=True))
            said.append(f"{name}: {points}" if name else points)
        values = sorted(set(frame[x]))
        if values[0] > 0 and values[-1] >= 8 * values[0]:
            axes.set_xscale("log")  # sizes are tried by doubling: they would crowd at the left
        axes.set(xlabel=x.replace("_", " "), ylabel=metric.replace("_", " "))
        axes.set_xticks([], minor=True)
        ticks = _apart(values, axes.get_xscale() == "log")
        axes.set_xticks(ticks, [f"{value:,}" for value in ticks])
        axes.grid()
        if by:
            axes.legend()
    figure.alt = f"{metric} over {x}: {'; '.join(said)}."
    return figure


def plot_heatmap(frame: DataFrame, x: str, y: str, metric: str) -> LessonFigure:
    """Draw a metric of two choices at once, such as chunker and strategy: the darker a cell, the higher.

    Args:
        frame: a row a combination, with columns `x`, `y`, `metric`, and perhaps `metric`_low and `metric`_high.
        x: the column whose values stand side by side, eight at most.
        y: the column whose values stand one above another.
        metric: the column to draw.

    Returns:
        The figure: the number in each cell, its interval below it; a cell without a row is left white.

    Raises:
        ValueError: a column that is missing, a frame without rows, two rows of one combination, or too many columns.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"strategy": ["top", "window"], "chunker": "fixed", "recall": [60, 71.5]})
    >>> plot_heatmap(frame, "strategy", "chunker", "recall").alt
    'recall by chunker and strategy. fixed: top 60, window 71.5.'
    """
    frame = _checked(frame, [x, y, metric])
    across, down = list(dict.fromkeys(frame[x])), list(dict.fromkeys(frame[y]))
    if len(across) > 8:
        raise ValueError(f"x={x!r}: {len(across)} columns are too narrow to be read: eight at most")
    if (twice := frame.duplicated([x, y])).any():
        raise ValueError(f"frame: more than one row of {' and '.join(map(str, frame.loc[twice, [x, y]].iloc[0]))}")
    cells = dict(zip(zip(frame[y], frame[x], strict=True), _intervals(frame, metric), strict=True))
    rows = [[cells.get((line, column), (float("nan"),) * 3) for column in across] for line in down]
    said = []
    for line, row in zip(down, rows, strict=True):
        shown = [f"{column} {value:.3g}" for column, (value, _, _) in zip(across, row, strict=True) if not isnan(value)]
        said.append(f"{line}: {', '.join(shown)}.")
    intervals = f"{metric}_low" in frame.columns
    with new_figure(1.1 + 0.6 * len(down), " ".join([f"{metric} by {y} and {x}.", *said])) as figure:
        axes = figure.subplots()
        image = axes.imshow([[value for value, _, _ in row] for row in rows], cmap="Blues", aspect="auto")
        low, high = image.get_clim()
        for place, row in enumerate(rows):
            for at, (value, *ends) in enumerate(row):
                if not isnan(value):
                    dark = high > low and (value - low) / (high - low) > 0.55
                    text = f"{value:.3g}" + (f"\n{ends[0]:.3g} to {ends[1]:.3g}" if intervals else "")
                    look = {"color": "white" if dark else "black", "fontsize": 11 if len(across) < 6 else 9}
                    axes.text(at, place, text, ha="center", va="center", **look)
        small = {"fontsize": 10} if len(across) > 4 else {}
        axes.set_xticks(range(len(across)), [str(column).replace(" ", "\n") for column in across], **small)
        axes.set_yticks(range(len(down)), [str(line) for line in down])
        axes.set_title(f"{metric.replace('_', ' ')}" + (" (95% interval)" if intervals else ""))
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    return figure


def _apart(values: list[float], by_ratio: bool) -> list[float]:
    """The values whose labels have room on an axis: each at least a twelfth of its length after the one before."""
    places = [log(value) for value in values] if by_ratio else values
    kept = [0]
    for number, place in enumerate(places):
        if place - places[kept[-1]] >= (places[-1] - places[0]) / 12 > 0:
            kept.append(number)
    return [values[number] for number in kept]


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


def _checked(scores: Any, columns: list[str]) -> DataFrame:
    frame = scores.frame() if hasattr(scores, "frame") else scores
    if not len(frame):
        raise ValueError("scores: no rows: add a method to the scoreboard first")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"scores: no column {missing[0]!r}: there are {', '.join(map(str, frame.columns))}")
    return frame


def _intervals(frame: DataFrame, metric: str) -> list[tuple[float, float, float]]:
    """Value, low end, high end of each row; the value itself where there is no interval."""
    columns = [name if name in frame.columns else metric for name in (metric, f"{metric}_low", f"{metric}_high")]
    values = zip(*(frame[name] for name in columns), strict=True)
    return [(float(value), float(low), float(high)) for value, low, high in values]


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

        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
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
