"""Figures of scores: methods beside one another, a parameter that is turned, two choices at once.

For whoever reads a scoreboard or a sweep as a picture: a metric with its interval where the frame has one. Each figure
says in `alt` what it shows. Cost: matplotlib is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from math import isnan, log
from typing import TYPE_CHECKING, Any

from chunklab.figures import BLUE, GREEN, ORANGE, PURPLE, VERMILLION, new_figure

if TYPE_CHECKING:
    from pandas import DataFrame

    from chunklab.figures import LessonFigure


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
        by: the column that tells the lines apart, six values at most, such as "chunk_overlap"; None: one line. A line
            is named by its value, a number with the column before it: "recursive", but "chunk overlap 10".

    Returns:
        The figure.

    Raises:
        ValueError: a column that is missing, a frame without rows, or too many lines.

    >>> import pandas as pd
    >>> plot_sweep(pd.DataFrame({"size": [100, 200], "recall": [60, 71.5]}), "size", "recall").alt
    'recall over size: 60 at 100, 71.5 at 200.'
    """
    frame = _checked(frame, [x, metric] + ([by] if by else []))
    groups = {_line_name(by, value): rows for value, rows in frame.groupby(by)} if by else {"": frame}
    if len(groups) > 6:
        raise ValueError(f"by={by!r}: {len(groups)} lines cannot be told apart: six at most")
    said = []
    with new_figure(3.8 if by else 3.6) as figure:
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
            # Above the lines, where it hides none of them; as many names in a row as have room.
            columns = max(1, 69 // (max(map(len, groups)) + 10))
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2)
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
    with new_figure(1.4 + 0.6 * len(down), " ".join([f"{metric} by {y} and {x}.", *said])) as figure:
        axes = figure.subplots()
        image: Any = axes.imshow([[value for value, _, _ in row] for row in rows], cmap="Blues", aspect="auto")
        for place, row in enumerate(rows):
            for at, (value, *ends) in enumerate(row):
                if not isnan(value):
                    dark = _luminance(image.to_rgba([value])[0]) < 0.18  # where white and black stand out alike
                    text = f"{value:.3g}" + (f"\n{ends[0]:.3g} to {ends[1]:.3g}" if intervals else "")
                    look: dict[str, Any] = {
                        "color": "white" if dark else "black",
                        "fontsize": 11 if len(across) < 6 else 9,
                    }
                    axes.text(at, place, text, ha="center", va="center", **look)
        small: dict[str, Any] = {"fontsize": 10} if len(across) > 4 else {}
        axes.set_xticks(range(len(across)), [str(column).replace(" ", "\n") for column in across], **small)
        axes.set_yticks(range(len(down)), [str(line) for line in down])
        axes.set_title(f"{metric.replace('_', ' ')}" + (" (95% interval)" if intervals else ""))
        axes.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "))
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    return figure


def _line_name(by: str, value: Any) -> str:
    """What a line is called: a name says enough alone, a number needs to be told of what."""
    return (value if isinstance(value, str) else f"{by} {value}").replace("_", " ")


def _luminance(colour: Iterable[float]) -> float:
    """How light a colour is, from 0 to 1, as the guidelines for accessible pages measure it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=False))


def _apart(values: list[float], by_ratio: bool) -> list[float]:
    """The values whose labels have room on an axis: each at least a twelfth of its length after the one before."""
    places = [log(value) for value in values] if by_ratio else values
    kept = [0]
    for number, place in enumerate(places):
        if place - places[kept[-1]] >= (places[-1] - places[0]) / 12 > 0:
            kept.append(number)
    return [values[number] for number in kept]


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
