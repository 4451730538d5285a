"""A row of the scoreboard: what was measured of one method, what it gains over another, and how a lesson shows both.

For `Scoreboard`, whose tables are made of these. Shares are kept from 0 to 1, one number a question, and shown in
percent. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chunklab.counting import Calls
from chunklab.retrieval import Hit

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("recall", "precision", "iou")
_CELL = "white-space:nowrap;padding:.3em .4em;font-size:12px"


@dataclass(frozen=True, eq=False, repr=False)
class Row:
    """One method on the scoreboard.

    Attributes:
        name: the method, as the lesson calls it.
        note: a remark beside it, or "".
        sizes: characters of each chunk.
        scores: for recall, precision, iou and omega, one number a question, from 0 to 1.
        tokens: tokens (cl100k) retrieved, one number a question.
        cut: gold spans that no chunk contains whole, one number a question.
        hits: what was retrieved, one list a question.
        truncated: chunks that are longer than the model reads.
        calls: what was asked of models: texts embedded, by the method and for the index, and what the method asked of a
            language model.
        seconds: time for chunking, embedding and indexing; little where the cache has the vectors.
    """

    name: str
    note: str
    sizes: np.ndarray
    scores: dict[str, np.ndarray]
    tokens: np.ndarray
    cut: np.ndarray
    hits: list[list[Hit]]
    truncated: int
    calls: Calls
    seconds: float

    def __repr__(self) -> str:
        shares = ", ".join(f"{metric} {100 * self.scores[metric].mean():.1f}" for metric in (*METRICS, "omega"))
        return f"{self.name}: {len(self.sizes)} chunks, {shares} %"


@dataclass(frozen=True, slots=True)
class Difference:
    """What one method gains over another on the same questions, in percentage points, with its 95 % interval."""

    one: str
    other: str
    metric: str
    mean: float
    low: float
    high: float
    higher: tuple[str, ...]
    lower: tuple[str, ...]
    questions: int

    def __repr__(self) -> str:
        verdict = "" if self.low <= 0 <= self.high else "; the interval leaves out 0"
        return (
            f"{self.metric}, {self.one} minus {self.other}: {self.mean:+.1f} points "
            f"[{self.low:+.1f}, {self.high:+.1f}]; higher in {len(self.higher)} of {self.questions} questions, "
            f"lower in {len(self.lower)}{verdict}"
        )


def shown_row(row: Row, numbers: pd.Series, golds: int, seconds: bool) -> dict[str, str]:
    """One row's numbers as a lesson shows them.

    Args:
        row: the method.
        numbers: its line of `Scoreboard.frame`.
        golds: gold spans of all questions.
        seconds: whether to show how long it took.

    Returns:
        The text of each column.
    """
    line = {"chunks": f"{numbers['chunks']:.0f}", "size": f"{numbers['size']:.0f} ± {numbers['size_sd']:.0f}"}
    for metric, title in zip(METRICS, ("recall", "precision", "IoU"), strict=True):
        low, high = numbers[f"{metric}_low"], numbers[f"{metric}_high"]
        line[f"{title} %"] = f"{numbers[metric]:.1f} [{low:.1f}, {high:.1f}]"
    line["omega %"] = f"{numbers['omega']:.1f}"
    line["gold cut"] = f"{numbers['cut']:.0f} of {golds}"
    line["tokens"] = f"{numbers['tokens']:.0f}"
    line |= {"embedded": f"{row.calls.embedded}", "LLM calls": f"{row.calls.llm}"}
    if seconds:
        line["seconds"] = f"{row.seconds:.1f}"
    return line | {"too long": f"{row.truncated}", "note": row.note}


def shown_gain(mean: float, low: float, high: float) -> str:
    """A difference in points and its interval.

    >>> shown_gain(1.04, -0.04, 2)
    '+1.0 [+0.0, +2.0]'
    """
    # No "-0.0", which rounding would give.
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(round(value, 1) + 0.0 for value in (mean, low, high)))


def as_html(table: pd.DataFrame) -> str:
    """A table of the scoreboard as HTML, its title below it."""
    page = table.rename_axis(index=None, columns=None).to_html(border=0)
    # On one line each: an interval that breaks is hard to read.
    page = page.replace("<td>", f'<td style="{_CELL}">').replace("<th>", f'<th style="{_CELL}">')
    caption = f'<caption style="caption-side:bottom;text-align:left">{table.columns.name}</caption>'
    return f'<div style="overflow-x:auto">{page.replace("<thead>", caption + "<thead>")}</div>'
