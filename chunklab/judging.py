"""RAGAS: answers scored by a judge, with the count of what it could not score.

Where gold spans say whether the right text was found, RAGAS (Es et al., 2023) says what became of it: whether an answer
keeps to its contexts (faithfulness) and to the question (answer relevancy), whether the useful contexts come first
(context precision) and hold what the reference says (context recall). The metrics are RAGAS's own, prompts and all; the
judge is any chat model of LangChain, asked as the chunkers ask it: replies are checked, asked for again, kept. For
whoever compares whole pipelines. A judge fails, and a mean over the rows that are left would hide it, so each mean
stands with its count. Cost: four questions a row and one more for each context. Of each, 320 to 1,220 tokens are
RAGAS's instruction and examples, always the same, so that a server that keeps beginnings reads them once.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import check_choice, is_blank
from chunklab.chunkers.asking import TRIES, Asker, Plan, check_llm, unfinished
from chunklab.chunkers.questions import Question, Reply, Unusable, as_json
from chunklab.metrics import bootstrap
from chunklab.models.tokens import well_formed
from chunklab.models.vectors import check_model
from chunklab.rows import Difference, as_html

if TYPE_CHECKING:
    import pandas as pd
    from langchain_core.language_models import BaseChatModel

JUDGED = ("faithfulness", "answer_relevancy", "context_precision", "context_recall")
"""The metrics that a judge gives."""

_NEEDS = {  # a metric: the fields of a row that it reads
    "faithfulness": ("user_input", "response", "retrieved_contexts"),
    "answer_relevancy": ("user_input", "response"),
    "context_precision": ("user_input", "reference", "retrieved_contexts"),
    "context_recall": ("user_input", "retrieved_contexts", "reference"),
    "semantic_similarity": ("reference", "response"),
    "non_llm_string_similarity": ("reference", "response"),
    "non_llm_context_precision_with_reference": ("retrieved_contexts", "reference_contexts"),
    "non_llm_context_recall": ("retrieved_contexts", "reference_contexts"),
}
_EMBEDDED = {"answer_relevancy", "semantic_similarity"}
_LISTS = {"retrieved_contexts", "reference_contexts"}
_ONE_ARM = "samples"
_NOISE = 1e-9  # less is the rounding of floats


class NoAnswer(NamedTuple):
    """What stands for an answer that could not be used, however often it was asked for; it says why."""

    why: str


class _Lasting(Question):
    """A question whose answer, where none can be used, is a `NoAnswer`."""

    def judge(self, messages: list[tuple[str, str]], reply: Reply) -> tuple[Any, list[tuple[str, str]]]:
        """As for any question; each time that it is asked again, two messages are added."""
        answer, again = super().judge(messages, reply)
        tries = (len(messages) - len(self.messages)) // 2 + 1
        return (NoAnswer(str(answer)) if isinstance(answer, Unusable) and tries >= TRIES else answer), again


def lasting(question: Question) -> Question:
    """The question, for a plan that counts unusable answers itself: in the place of one stands a `NoAnswer`."""
    return _Lasting(question.messages, question.read, question.options)


@dataclass(frozen=True, eq=False, repr=False)
class RagasScores:
    """What `ragas_scores` gives: shown in a notebook, it is a table.

    Attributes:
        samples: the rows of each arm.
        scores: for each arm and metric, one number a row, from 0 to 1 (those of vectors from -1); NaN where there is
            none.
        missing: for each (arm, metric, place of the row) without a number, why.
        judge: the names of the models that answered, "" where they have none.
    """

    samples: dict[str, list[dict[str, Any]]]
    scores: dict[str, dict[str, np.ndarray]]
    missing: dict[tuple[str, str, int], str]
    judge: str

    def frame(self) -> pd.DataFrame:
        """Every number: a row for each arm and sample, a column a metric; NaN where there is none."""
        import pandas as pd

        parts = []
        for arm, rows in self.samples.items():
            asked = [row.get("user_input", "") for row in rows]
            index = pd.MultiIndex.from_product([[arm], range(len(rows))], names=["arm", "row"])
            parts.append(pd.DataFrame({"user_input": asked, **self.scores[arm]}, index=index))
        return pd.concat(parts)

    def summary(self) -> pd.DataFrame:
        """The means: a row for each arm and metric, with the 95 % interval over its rows, how many of them have a
        number (scored) and how many there are (rows)."""
        import pandas as pd

        lines = []
        for arm, metrics in self.scores.items():
            for metric, values in metrics.items():
                found = values[~np.isnan(values)]
                low, high = bootstrap(found) if len(found) > 1 else (math.nan, math.nan)
                mean = float(found.mean()) if len(found) else math.nan
                line = {"arm": arm, "metric": metric, "mean": mean, "low": low, "high": high}
                lines.append(line | {"scored": len(found), "rows": len(values)})
        return pd.DataFrame(lines).set_index(["arm", "metric"])

    def table(self) -> pd.DataFrame:
        """The means as a lesson shows them: texts, a row an arm, such as "0.81 [0.70, 0.92] (11 of 12 rows)"."""
        wide = self.summary().apply(_shown, axis=1).unstack("metric")
        metrics = list(next(iter(self.scores.values())))
        said = f"judge: {self.judge}" if self.judge else "means over rows"
        return wide.loc[list(self.scores), metrics].rename_axis(index=None, columns=said)

    @property
    def notes(self) -> list[str]:
        """What a reader of the means must know: rows without a number, and a judge that always says the same."""
        notes = []
        for metric in next(iter(self.scores.values())):
            why = Counter(reason for (_, of, _), reason in self.missing.items() if of == metric)
            values = np.concatenate([metrics[metric] for metrics in self.scores.values()])
            if why:
                reasons = "; ".join(f"{count} × {reason}" for reason, count in why.most_common(3))
                notes.append(f"{metric}: {sum(why.values())} of {len(values)} rows gave no number ({reasons})")
            found = values[~np.isnan(values)]
            if metric in JUDGED and len(found) > 2 and np.ptp(found) < _NOISE:
                notes.append(
                    f"{metric}: {found[0]:.2f} in each of {len(found)} rows, as with a judge that always says the same"
                )
        return notes

    def compare(self, one: str, other: str, metric: str) -> Difference:
        """What an arm gains over another, on the rows that have a number in both.

        Args:
            one: an arm's name.
            other: the arm that it is held against.
            metric: one of those that were asked for.

        Returns:
            The mean of `one` minus `other` in points (hundredths), with its 95 % interval. Where a row has no number in
            one of them, the metric's name says how many are left.

        Raises:
            ValueError: an arm or metric that is not there; no row with a number in both.
        """
        check_choice("one", one, list(self.scores))
        check_choice("other", other, list(self.scores))
        check_choice("metric", metric, list(self.scores[one]))
        gains = 100 * (self.scores[one][metric] - self.scores[other][metric])
        both = np.flatnonzero(~np.isnan(gains))
        if not len(both):
            raise ValueError(f"metric={metric!r}: no row has a number in both {one} and {other}")
        low, high = bootstrap(gains[both])
        asked = [str(row.get("user_input", place)) for place, row in enumerate(self.samples[one])]
        higher = tuple(asked[place] for place in both if gains[place] > 100 * _NOISE)
        lower = tuple(asked[place] for place in both if gains[place] < -100 * _NOISE)
        name = metric if len(both) == len(gains) else f"{metric} ({len(both)} of {len(gains)} rows)"
        return Difference(one, other, name, float(gains[both].mean()), low, high, higher, lower, len(both))

    def __repr__(self) -> str:
        table = self.table()
        return "\n".join([table.to_string(), *filter(None, [self.judge and table.columns.name]), *self.notes])

    def _repr_html_(self) -> str:
        from html import escape

        return as_html(self.table()) + "".join(f"<p>{escape(note)}</p>" for note in self.notes)


def ragas_scores(
    samples: Sequence[Any] | Mapping[str, Sequence[Any]],
    llm: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    metrics: Sequence[str] = JUDGED,
) -> RagasScores:
    """Score answers and their contexts with RAGAS.

    Args:
        samples: one row a question, with RAGAS's names: dicts (or RAGAS's own samples) of user_input (the question),
            response (the answer), retrieved_contexts (texts, as they were retrieved), reference (the right answer) and,
            for two of the metrics without a judge, reference_contexts (the gold quotes); those that the metrics read.
            To compare pipelines: a dict of a name and such rows each, which must ask the same questions.
        llm: the judge, a chat model of LangChain. At temperature 0, so that answer relevancy asks for one question to
            an answer, where RAGAS's default asks for three that would then be the same.
        embeddings: for answer_relevancy and semantic_similarity.
        metrics: of "faithfulness", "answer_relevancy", "context_precision" and "context_recall", which need the judge;
            "semantic_similarity" of answer and reference, which needs embeddings; and "non_llm_string_similarity" of
            the two, "non_llm_context_precision_with_reference" and "non_llm_context_recall" by the letters that
            contexts and gold quotes share, which need nothing.

    Returns:
        The scores, and why rows have none.

    Raises:
        ValueError: an argument that is not allowed, before the judge is asked.
        LLMError: the judge did not answer. Its replies are kept as long as there is this model, so that the same call
            again asks only for the rest.

    Warns:
        UserWarning: rows have no number.

    >>> rows = [{"reference": "In 1923.", "response": said} for said in ("In 1923.", "In 1932.")]
    >>> ragas_scores(rows, metrics=["non_llm_string_similarity"]).table().iloc[0, 0]
    '0.88 [0.75, 1.00] (2 of 2 rows)'
    """
    arms, metrics = _checked(samples, llm, embeddings, metrics)
    with _asker(llm, arms) as asker, _Rows(arms, metrics, embeddings) as rows:
        return rows.scored(asker.run(rows.plan()) if asker else _unasked(rows.plan()), asker)


async def aragas_scores(
    samples: Sequence[Any] | Mapping[str, Sequence[Any]],
    llm: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    metrics: Sequence[str] = JUDGED,
) -> RagasScores:
    """The same as `ragas_scores`, with several questions on their way at once."""
    arms, metrics = _checked(samples, llm, embeddings, metrics)
    with _asker(llm, arms) as asker, _Rows(arms, metrics, embeddings) as rows:
        return rows.scored(await asker.arun(rows.plan()) if asker else _unasked(rows.plan()), asker)


@contextmanager
def _asker(llm: BaseChatModel | None, arms: dict[str, list[dict[str, Any]]]) -> Iterator[Asker | None]:
    if llm is None:
        yield None
        return
    with unfinished("ragas", llm, as_json(arms)) as kept:
        yield Asker(llm, kept)


def _unasked(plan: Plan) -> Any:
    """What a plan returns that has nothing to ask."""
    try:
        next(plan)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a metric without a judge asks none")


class _Rows:
    """The work on all rows: RAGAS's coroutines, each carried on with the answers to what it asks.

    A metric of RAGAS awaits nothing but its judge and its embedder. Both are ours, and a judge that is awaited only
    hands out its question: so no event loop is needed, and none is in the way where one is running, as in a notebook.
    """

    def __init__(
        self, arms: dict[str, list[dict[str, Any]]], metrics: list[str], embeddings: Embeddings | None
    ) -> None:
        self._arms, self._metrics = arms, metrics
        from chunklab.ragas_metrics import metric_of  # it loads RAGAS, which takes seconds

        made = {name: metric_of(name, embeddings) for name in metrics}
        self._missing: dict[tuple[str, str, int], str] = {}
        self._work: dict[tuple[str, str, int], Coroutine[Any, Any, Any]] = {}
        # A metric after another, as all its prompts begin alike: a server that keeps beginnings reads them once.
        for metric in metrics:
            for arm, rows in arms.items():
                for place, row in enumerate(rows):
                    fields = {name: row[name] for name in _NEEDS[metric]}
                    if blank := [name for name, value in fields.items() if _has_nothing(value)]:
                        self._missing[arm, metric, place] = f"{blank[0]} is empty"
                    else:
                        self._work[arm, metric, place] = made[metric].ascore(**fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for coroutine in self._work.values():
            coroutine.close()

    def plan(self) -> Plan:
        """Asks what all rows ask next, until all have their numbers."""
        found: dict[tuple[str, str, int], float | NoAnswer] = {}
        answers: dict[tuple[str, str, int], Any] = dict.fromkeys(self._work)
        while answers:
            asked = {}
            for key, answer in answers.items():
                try:
                    asked[key] = lasting(self._carried_on(key, answer))
                except StopIteration as stop:
                    found[key] = float(stop.value.value)
                except Unusable as problem:
                    found[key] = NoAnswer(str(problem))
            given = (yield list(asked.values())) if asked else []
            answers = dict(zip(asked, given, strict=True))
        return found

    def _carried_on(self, key: tuple[str, str, int], answer: Any) -> Question:
        coroutine = self._work[key]
        with np.errstate(all="ignore"):  # the vector of a text without words has no direction
            return coroutine.throw(Unusable(answer.why)) if isinstance(answer, NoAnswer) else coroutine.send(answer)

    def scored(self, found: dict[tuple[str, str, int], float | NoAnswer], asker: Asker | None) -> RagasScores:
        """The result, and a warning where numbers are missing."""
        scores = {
            arm: {metric: np.full(len(rows), np.nan) for metric in self._metrics} for arm, rows in self._arms.items()
        }
        for (arm, metric, place), value in found.items():
            if isinstance(value, NoAnswer):
                self._missing[arm, metric, place] = value.why
            elif not math.isfinite(value):
                self._missing[arm, metric, place] = "RAGAS gave no number"
            else:
                scores[arm][metric][place] = value
        result = RagasScores(self._arms, scores, self._missing, asker.signature.get("model", "") if asker else "")
        if self._missing:
            cells = sum(map(len, self._arms.values())) * len(self._metrics)
            why = next(iter(self._missing.values()))
            warnings.warn(
                f"{len(self._missing)} of {cells} scores are missing, and no mean counts them (such as: {why})",
                stacklevel=3,
            )
        return result


def _shown(line: pd.Series) -> str:
    """A mean that is never bare."""
    count = f"({line['scored']:.0f} of {line['rows']:.0f} rows)"
    if not line["scored"]:
        return f"no number {count}"
    between = f" [{line['low']:.2f}, {line['high']:.2f}]" if line["scored"] > 1 else ""
    return f"{line['mean']:.2f}{between} {count}"


def _has_nothing(value: Any) -> bool:
    return is_blank(value) if isinstance(value, str) else all(map(is_blank, value))


def _checked(
    samples: Any, llm: Any, embeddings: Any, metrics: Any
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """The rows of each arm, as plain dicts, and the metrics; a ValueError for what cannot be scored."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise ValueError(f"metrics={metrics!r:.80}: must be a list of one or more names of metrics")
    for metric in metrics:
        check_choice("metrics", metric, tuple(_NEEDS))
    if llm is not None or any(metric in JUDGED for metric in metrics):
        check_llm(llm)
    if _EMBEDDED & set(metrics):
        check_model(embeddings)
    needed = dict.fromkeys(field for metric in metrics for field in _NEEDS[metric])
    if isinstance(samples, Mapping) and "user_input" not in samples:
        arms = {str(name): _rows(f"samples[{name!r}]", rows, needed) for name, rows in samples.items()}
    else:
        arms = {_ONE_ARM: _rows("samples", samples, needed)}
    if not arms:
        raise ValueError("samples is empty: must hold one or more rows")
    (first, rows), *others = arms.items()
    for name, more in others:
        if [row.get("user_input") for row in rows] != [row.get("user_input") for row in more]:
            raise ValueError(f"samples: {first!r} and {name!r} must ask the same questions, in the same order")
    return arms, list(dict.fromkeys(metrics))


def _rows(name: str, rows: Any, needed: Mapping[str, None]) -> list[dict[str, Any]]:
    if isinstance(rows, (str, Mapping)) or not isinstance(rows, Sequence) or not rows:
        raise ValueError(f"{name}={rows!r:.60}: must be a list of one or more rows")
    found = []
    for place, row in enumerate(rows):
        row = row.model_dump(exclude_none=True) if hasattr(row, "model_dump") else row
        if not isinstance(row, Mapping):
            raise ValueError(f"{name}[{place}]={row!r:.60}: must be a dict of {', '.join(needed)}")
        clean = {"user_input": row["user_input"]} if isinstance(row.get("user_input"), str) else {}
        for field in needed:
            value: Any = row.get(field)
            texts = value if field in _LISTS and isinstance(value, (list, tuple)) else [value]
            if (field in _LISTS and texts is not value) or not all(isinstance(text, str) for text in texts):
                kind = "a list of texts" if field in _LISTS else "a text"
                raise ValueError(f"{name}[{place}]: {field}={value!r:.60}: must be {kind}")
            # What a network cannot carry is no part of a text.
            clean[field] = [well_formed(text) for text in texts] if field in _LISTS else well_formed(value)
        found.append(clean)
    return found
