"""What a sweep says, and what it does not: which knob moved the numbers, and how good the best of many runs is.

For whoever has swept and must choose. `variance_explained` is the share of the variance between runs that goes with one
parameter (eta squared, of the analysis of variance: Fisher, 1925), with an interval over the questions; a share is one
of *these* values: try a wider range of sizes, and size explains more. Whatever is best of many runs is best by luck
too: `halves` deals the questions out, one half to choose by, the other to report on. Cost: milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chunklab.chunk import check_choice
from chunklab.corpus import Question
from chunklab.metrics import resamples, spans_of
from chunklab.rows import METRICS

if TYPE_CHECKING:
    import pandas as pd

REST = "together"
"""What no parameter explains by itself: what one of them does depends on another."""
_NOISE = 1e-9  # less than this between runs is the rounding of floats


def variance_explained(
    scores: Any, knobs: Mapping[str, Sequence[Any]] | Sequence[str], metric: str = "recall"
) -> pd.DataFrame:
    """How much of what differs between the runs of a sweep goes with each parameter.

    Args:
        scores: what `sweep` gives; or an array: (runs, questions), such as the recall of each run for each question, or
            (runs,), their means, which give no interval.
        knobs: of a sweep the names of its columns, ["chunker", "chunk_size", "strategy"]; with an array, parameter to
            its value in each run, {"size": [300, 600, 300, 600], "search": [...]}. Every combination of the values must
            be there, each as often: else shares would overlap.
        metric: of a sweep, "recall", "precision" or "iou".

    Returns:
        A row a parameter, the largest first, and the row "together" for the rest; columns share, share_low and
        share_high: percent of the variance between the runs' means, with its 95 % interval over the questions. For
        `plot_scores(frame, "share")`. The interval's ends are the share itself where there are no questions.

    Raises:
        ValueError: scores that are no such array, or all the same; a column that is missing; parameters of another
            number of runs, without two values, or of which a combination is missing.

    >>> knobs = {"size": [300, 300, 600, 600], "overlap": [0, 60, 0, 60]}
    >>> variance_explained([50, 52, 60, 62], knobs)["share"].round(1).to_dict()
    {'size': 96.2, 'overlap': 3.8, 'together': 0.0}
    """
    import pandas as pd

    if isinstance(scores, pd.DataFrame) and not isinstance(knobs, Mapping):
        check_choice("metric", metric, METRICS)
        if missing := [name for name in (*knobs, f"{metric}_each") if name not in scores.columns]:
            raise ValueError(f"scores: no column {missing[0]!r}: must be what sweep gives, and knobs columns of it")
        knobs = {name: scores[name].tolist() for name in knobs}
        scores = np.array(scores[f"{metric}_each"].tolist())
    if isinstance(knobs, Sequence):
        raise ValueError(f"knobs={knobs!r:.80}: must name the values of each, as scores are not what sweep gives")
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim not in (1, 2) or not scores.size or not np.isfinite(scores).all():
        raise ValueError(f"scores of shape {scores.shape}: must be finite numbers, (runs, questions) or (runs,)")
    columns = {str(name): _levels(name, knobs[name], len(scores)) for name in knobs}
    _check_balanced(columns, len(scores))
    means = scores.mean(axis=1) if scores.ndim == 2 else scores
    if np.ptp(means) < _NOISE:
        raise ValueError("scores: all runs have the same mean, so there is nothing to explain")
    drawn = means[:, None]
    if scores.ndim == 2:
        drawn = np.column_stack([means, scores @ resamples(scores.shape[1]).T / scores.shape[1]])
    with np.errstate(invalid="ignore"):  # resamples in which all runs are equal
        shares: dict[str, Any] = {name: 100 * explained(drawn, levels) for name, levels in columns.items()}
    shares = dict(sorted(shares.items(), key=lambda pair: -pair[1][0])) | {REST: 100 - sum(shares.values())}
    lines = []
    for share in shares.values():
        low, high = np.nanquantile(share[1:], [0.025, 0.975]) if scores.ndim == 2 else (share[0], share[0])
        lines.append({"share": share[0], "share_low": low, "share_high": high})
    return pd.DataFrame(lines, index=pd.Index(shares, name="knob")).clip(lower=0)


def explained(values: np.ndarray, knob: np.ndarray) -> np.ndarray:
    """The share of the variance between runs that is a variance between a knob's values.

    Args:
        values: a row a run; (runs,) or (runs, resamples).
        knob: its value in each run.

    Returns:
        From 0 to 1, a number a resample; NaN where all runs are equal.
    """
    means = np.zeros_like(values, dtype=float)
    for value in np.unique(knob):
        means[knob == value] = values[knob == value].mean(axis=0)
    return means.var(axis=0) / values.var(axis=0)


def halves(questions: Iterable[Question], by: str = "document") -> tuple[list[Question], list[Question]]:
    """Deal questions out into two halves: one to choose a method by, one to report what it is worth.

    Whatever is best of many on the questions that chose it looks better than it is. Those of each group are dealt out
    in turn, so that both halves have as many of it, but for one; the same questions, the same halves.

    Args:
        questions: in a fixed order, as `load_questions` gives them.
        by: "document", the one that holds the answer ("several" are a group of their own); or "kind".

    Returns:
        Two lists, in the order given; the first has one more where the number is odd.

    Raises:
        ValueError: what is no question; another `by`.

    >>> asked = [Question(f"q{i}", "Why?", "", kind, (("town", 0, 1),)) for i, kind in enumerate("aaabbb")]
    >>> [[question.id for question in half] for half in halves(asked, by="kind")]
    [['q0', 'q2', 'q4'], ['q1', 'q3', 'q5']]
    """
    check_choice("by", by, ("document", "kind"))
    questions = list(questions) if isinstance(questions, Iterable) else [questions]
    for question in questions:
        if not isinstance(question, Question):
            raise ValueError(f"questions holds {question!r:.60}: must hold Question objects, as load_questions gives")
    groups: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        documents = {document for gold in question.spans for document, _, _ in spans_of(gold)}
        document = documents.pop() if len(documents) == 1 else "several"
        groups.setdefault(question.kind if by == "kind" else document, []).append(place)
    dealt = [place for name in sorted(groups) for place in groups[name]]
    one, other = sorted(dealt[::2]), sorted(dealt[1::2])
    return [questions[place] for place in one], [questions[place] for place in other]


def _levels(name: Any, values: Any, runs: int) -> np.ndarray:
    """A parameter's values as numbers from 0."""
    values = list(values)
    if len(values) != runs:
        raise ValueError(f"knobs has {name!r} with {len(values)} values: must have one a run, {runs}")
    number = {value: place for place, value in enumerate(dict.fromkeys(values))}
    if len(number) < 2:
        raise ValueError(f"knobs has {name!r}, which is {values[0]!r:.60} in all runs: must have two values or more")
    return np.array([number[value] for value in values])


def _check_balanced(columns: Mapping[str, np.ndarray], runs: int) -> None:
    """Raise ValueError unless every combination of values is there, each as often."""
    if not columns:
        raise ValueError("knobs is empty: must name a parameter or more")
    _, counts = np.unique(np.stack(list(columns.values())), axis=1, return_counts=True)
    combinations = int(np.prod([levels.max() + 1 for levels in columns.values()]))
    if len(counts) != combinations or len(set(counts.tolist())) > 1:
        raise ValueError(
            f"knobs: of {combinations} combinations {len(counts)} are there, each {counts.min()} to {counts.max()} "
            f"times in {runs} runs: all must be there, each as often; leave out the runs, or the parameter, that "
            "break this"
        )
