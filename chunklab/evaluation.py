"""Measure chunking by what comes back from a search: one scoreboard for all methods.

Every method cuts the same documents, its chunks go into one index, and each gold question retrieves from it; the
measures themselves are in `metrics`. `Scoreboard` gives them a row a method, with intervals over the questions and
paired differences, which tell a gain from chance. It serves whoever has to choose a method for documents of their own.
Cost of a row: the method's own, one embedding a chunk, and a second for the scores.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunk, Chunker, check_choice, check_size, is_blank
from chunklab.corpus import Question, load_corpus, load_questions
from chunklab.counting import counted
from chunklab.metrics import Places, Scores, bootstrap, merged, precision_omega, published_spans, span_scores, spans_of
from chunklab.passages import Key, key_of
from chunklab.queries import model_name, query_vectors
from chunklab.retrieval import ChunkIndex, Hit
from chunklab.rows import METRICS, Difference, Row, as_html, shown_gain, shown_row
from chunklab.strategies import last_level

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Difference", "Row", "Scoreboard", "Scores", "precision_omega", "published_spans", "span_scores"]
_NOISE = 1e-9  # percentage points: less is the rounding of floats, no change


class Scoreboard:
    """One table for all methods: the same documents, questions, model and number of chunks retrieved.

    Args:
        embeddings: the model, for chunks and questions.
        documents: id to text; the course's corpus by default.
        questions: with gold spans in these documents; the course's by default.
        k: chunks retrieved a question, from one pool of all documents.

    Raises:
        ValueError: only one of documents and questions, or what is none; no questions, two with one id, or one without
            a gold span in the documents; a bad k.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        documents: Mapping[str, str] | None = None,
        questions: Sequence[Question] | None = None,
        k: int = 5,
    ) -> None:
        if (documents is None) != (questions is None):
            raise ValueError("documents and questions belong together: give both, or neither for the course's own")
        self.documents = load_corpus() if documents is None else _checked_documents(documents)
        self.questions = load_questions() if questions is None else _checked_questions(questions, self.documents)
        self.embeddings, self.k = embeddings, check_size("k", k)
        self.rows: dict[str, Row] = {}
        self._lengths: dict[str, int] = {}
        self._gold = [merged(s for gold in q.spans for s in spans_of(gold)) for q in self.questions]
        self._vectors = query_vectors([q.question for q in self.questions], embeddings)

    def add(
        self,
        name: str,
        chunker: Chunker | Iterable[Chunk],
        note: str = "",
        index: Callable[[list[Chunk], Embeddings], Any] = ChunkIndex,
    ) -> Row:
        """Measure a method and keep it as a row; a name that is there already is measured anew.

        Args:
            name: what to call it.
            chunker: a chunker; or the chunks of all documents, made already.
            note: a remark to stand beside it.
            index: what searches the chunks: ChunkIndex, MultiVectorIndex, small_to_big, or a function of the same two
                arguments, which gives an index or a strategy: lambda chunks, model: Window(ChunkIndex(chunks, model)).
                A strategy's passages are scored as chunks are, the board's k of them; sizes and gold cut are those of
                the chunks that it searches. Of a chain only the last level is searched, so that parents do not compete
                with their children; a strategy still gets them, to hand them on. Chunks that are made already are
                searched as they are.

        Returns:
            The row.

        Raises:
            ValueError: a name that is no text; neither a chunker nor chunks, or chunks that do not lie in the documents
                on the board; an index that cannot be called.

        Warns:
            UserWarning: chunks are longer than the model reads, which sees their beginning only.
        """
        if not isinstance(name, str):
            raise ValueError(f"name={name!r:.60}: must be a text")
        if isinstance(chunker, type) or not (hasattr(chunker, "chunk") or isinstance(chunker, Iterable)):
            raise ValueError(f"chunker={chunker!r:.60}: must be a chunker, or a list of chunks")
        if not callable(index):
            raise ValueError(f"index={index!r:.60}: must be ChunkIndex, MultiVectorIndex, or a function like these")
        begin = time.perf_counter()
        with counted() as calls:
            searched, chunks, above = self._searched(name, chunker, index)
        seconds = time.perf_counter() - begin
        options = {"where": lambda c: key_of(c) not in above} if above else {}
        # The questions' vectors are there already; a search by words needs their texts too.
        words = getattr(searched, "reads_words", False)
        queries = [q.question for q in self.questions] if words else self._vectors
        truncated = _warn_of_truncation(name, chunks, self.embeddings)
        with _no_search_for_cycles():
            hits = searched.search_many(queries, self.k, **options)
            scores, tokens, cut = self._measured(chunks, hits)
        sizes = np.array([len(c.text) for c in chunks])
        row = Row(name, note, sizes, scores, tokens, cut, hits, truncated, calls, seconds)
        self.rows[name] = row
        return row

    def _searched(self, name: str, chunker: Any, index: Callable[..., Any]) -> tuple[Any, list[Chunk], set[Key]]:
        """What searches a method's chunks; those that are searched; chunks that it holds, of which these are parts."""
        above: set[Key] = set()
        if hasattr(chunker, "chunk"):
            chunks = [chunk for doc_id, text in self.documents.items() for chunk in chunker.chunk(text, doc_id)]
            last = last_level(chunks)
            above = set(map(key_of, chunks)).difference(map(key_of, last))
            if isinstance(index, type) and issubclass(index, ChunkIndex):
                chunks = last  # an index would embed the parents, and has no use for them
        else:
            chunks = list(chunker)
        self._check_places(name, chunks)
        searched = index(chunks, self.embeddings)
        if not hasattr(searched, "search_many"):
            raise ValueError(f"index={index!r:.60}: gave {searched!r:.60}, which cannot be searched")
        chunks = list(getattr(searched, "chunks", chunks))
        above &= set(map(key_of, chunks))
        return searched, [c for c in chunks if key_of(c) not in above], above

    def _check_places(self, name: str, chunks: list[Chunk]) -> None:
        """Raise ValueError for a chunk that is not in a document of the board, which would be scored as a wrong one."""
        chunks = [chunk for chunk in chunks if isinstance(chunk, Chunk)]  # what is none, the index names
        if unknown := {chunk.document for chunk in chunks} - set(self.documents):
            raise ValueError(f"{name}: chunks of documents that are not on the board: {sorted(map(str, unknown))}")
        for chunk in chunks:
            if chunk.end > (size := len(self.documents[chunk.document])):
                raise ValueError(f"{name}: chunk {chunk.id} ends at {chunk.end}, {chunk.document} at {size}")

    def _measured(
        self, chunks: list[Chunk], hits: list[list[Hit]]
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        places = Places(chunks)
        scores, read = self._read(hits)
        scores["omega"] = np.array([places.omega(gold) for gold in self._gold])
        cut = np.array([sum(not places.hold(spans_of(gold)[0]) for gold in q.spans) for q in self.questions])
        return scores, read, cut

    def _read(self, hits: list[list[Hit]]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """What the hits of each question hold of its gold, and how many tokens they are."""
        found = [span_scores(near, q.spans) for near, q in zip(hits, self.questions, strict=True)]
        scores = {metric: np.array([getattr(s, metric) for s in found]) for metric in METRICS}
        return scores, np.array([sum(map(self._length, near)) for near in hits])

    def _length(self, hit: Hit) -> int:
        """Its tokens (cl100k), counted once."""
        from chunklab.models.tokens import tokens

        text = hit.chunk.text
        if text not in self._lengths:
            self._lengths[text] = tokens("cl100k")(text)
        return self._lengths[text]

    def within(self, max_tokens: int) -> Scoreboard:
        """The same rows at the same cost: of each question's k hits, only those are read that fit in a budget.

        Args:
            max_tokens: tokens (cl100k) a question. Hits are read in order; one that no longer fits is left out. Give
                the board a k that is large enough to spend it. A strategy makes larger passages of what lies together:
                give it the budget as its own max_tokens, before, or most will not fit.

        Returns:
            A scoreboard of its own.

        Raises:
            ValueError: a bad max_tokens.
        """
        check_size("max_tokens", max_tokens)
        board = copy(self)
        board.rows = {}
        for name, row in self.rows.items():
            kept = []
            for near in row.hits:
                left, read = max_tokens, []
                for hit in near:
                    if (length := self._length(hit)) <= left:
                        left -= length
                        read.append(hit)
                kept.append(read)
            scores, tokens = self._read(kept)
            board.rows[name] = replace(row, hits=kept, tokens=tokens, scores={**row.scores, **scores})
        return board

    def frame(self, by: str | None = None) -> pd.DataFrame:
        """The numbers, for figures and sums.

        Args:
            by: None for a row a method; "kind" or "document" for a row a method and kind of question, or document that
                holds the answer ("several" where more than one does).

        Returns:
            Shares in percent; each of recall, precision and iou with the ends of its interval (recall_low,
            recall_high). The column seconds changes from run to run: leave it out of an output that is compared.
        """
        import pandas as pd

        check_choice("by", by, (None, "kind", "document"))
        groups = self._groups(by)
        lines = []
        for row in self.rows.values():
            for group, places in groups.items():
                line: dict[str, Any] = {"method": row.name} if by is None else {"method": row.name, by: group}
                line |= {"questions": len(places)} | (self._of_chunks(row) if by is None else {})
                for metric in METRICS:
                    values = 100 * row.scores[metric][places]
                    low, high = bootstrap(values)
                    line |= {metric: values.mean(), f"{metric}_low": low, f"{metric}_high": high}
                line["omega"] = 100 * row.scores["omega"][places].mean()
                line |= {"cut": row.cut[places].sum(), "tokens": row.tokens[places].mean()}
                lines.append(line)
        index = ["method"] if by is None else ["method", by]
        return pd.DataFrame(lines).set_index(index) if lines else pd.DataFrame()

    def _of_chunks(self, row: Row) -> dict[str, Any]:
        mean, sd = (row.sizes.mean(), row.sizes.std()) if len(row.sizes) else (0.0, 0.0)
        sizes = {"chunks": len(row.sizes), "size": mean, "size_sd": sd, "truncated": row.truncated}
        return sizes | {
            "embedded": row.calls.embedded,
            "llm_calls": row.calls.llm,
            "llm_read": row.calls.tokens_in,
            "llm_written": row.calls.tokens_out,
            "seconds": row.seconds,
        }

    def _groups(self, by: str | None) -> dict[str, list[int]]:
        """Which questions belong together."""
        groups: dict[str, list[int]] = defaultdict(list)
        for place, question in enumerate(self.questions):
            documents = {document for gold in question.spans for document, _, _ in spans_of(gold)}
            of = {None: "", "kind": question.kind, "document": "several" if len(documents) > 1 else min(documents)}
            groups[of[by]].append(place)
        return groups

    def table(self, by: str | None = None, metric: str = "recall", seconds: bool = False) -> pd.DataFrame:
        """The scoreboard as a lesson shows it: rounded, and without what a second run would change.

        Args:
            by: None; or "kind" or "document", for a column a group and one measure alone.
            metric: that measure: "recall", "precision", "iou" or "omega".
            seconds: whether to show how long each row took.

        Returns:
            Texts, a row a method. Shares are in percent, with 95 % intervals in brackets; size is in characters, mean
            and standard deviation; "gold cut" counts the gold spans that no chunk contains whole; tokens (cl100k) are
            those retrieved a question; "embedded" counts texts, by the method and for the index, "LLM calls" the
            method's calls. "too long" (chunks that the model cannot read whole) and "note" stand there where needed.
        """
        import pandas as pd

        check_choice("metric", metric, (*METRICS, "omega"))
        frame = self.frame(by)
        if by is None or not self.rows:
            golds = sum(len(question.spans) for question in self.questions)
            lines = [shown_row(self.rows[name], numbers, golds, seconds) for name, numbers in frame.iterrows()]
            said = {
                "too long": any(r.truncated for r in self.rows.values()),
                "note": any(r.note for r in self.rows.values()),
            }
            unsaid = [column for column, needed in said.items() if not needed]
            table = pd.DataFrame(lines, index=frame.index).drop(columns=unsaid, errors="ignore")
            return table.rename_axis(columns=f"{len(self.questions)} questions, k = {self.k}")
        titles = {group: f"{group} ({len(places)})" for group, places in self._groups(by).items()}
        wide = frame[metric].unstack(by).loc[list(self.rows), list(titles)]
        return wide.map("{:.1f}".format).rename(columns=titles).rename_axis(columns=f"{metric} %")

    def compare(self, one: str, other: str, metric: str = "recall") -> Difference:
        """What a method gains over another, question by question.

        Args:
            one: a row's name.
            other: the row that it is held against.
            metric: "recall", "precision", "iou" or "omega".

        Returns:
            The mean of `one` minus `other` over the questions, its 95 % interval, and the questions that changed.

        Raises:
            ValueError: a row or metric that is not there.
        """
        gains = self._gains(one, other, metric)
        low, high = bootstrap(gains)
        ids = np.array([question.id for question in self.questions])
        higher, lower = tuple(ids[gains > _NOISE].tolist()), tuple(ids[gains < -_NOISE].tolist())
        return Difference(one, other, metric, float(gains.mean()), low, high, higher, lower, len(gains))

    def gains(self, pairs: Iterable[tuple[str, str]], by: str | None = None, metric: str = "recall") -> pd.DataFrame:
        """Several comparisons as numbers, for figures and sums.

        Args:
            pairs: the names of two rows each, as for `compare`.
            by: None; or "kind" or "document", for a row a pair and group of questions.
            metric: as for `compare`.

        Returns:
            A row a pair, "one minus other", and with `by` a group: how many questions it has, the mean difference in
            percentage points, and the low and high end of its 95 % interval.

        Raises:
            ValueError: a row, metric or `by` that is not there.
        """
        import pandas as pd

        check_choice("by", by, (None, "kind", "document"))
        groups, lines = self._groups(by), []
        for one, other in pairs:
            values = self._gains(one, other, metric)
            for group, places in groups.items():
                low, high = bootstrap(values[places])
                line = {"pair": f"{one} minus {other}"} | ({} if by is None else {by: group})
                lines.append(line | {"questions": len(places), "mean": values[places].mean(), "low": low, "high": high})
        return pd.DataFrame(lines).set_index(["pair"] if by is None else ["pair", by]) if lines else pd.DataFrame()

    def differences(
        self, pairs: Iterable[tuple[str, str]], by: str | None = None, metric: str = "recall"
    ) -> pd.DataFrame:
        """Several comparisons in one table, as a lesson shows them.

        Args:
            pairs: the names of two rows each, as for `compare`.
            by: None; or "kind" or "document", for a column a group of questions.
            metric: as for `compare`.

        Returns:
            Texts, a row a pair: the mean difference in percentage points, with its 95 % interval in brackets.

        Raises:
            ValueError: a row, metric or `by` that is not there.
        """
        import pandas as pd

        lines: dict[str, dict[str, str]] = {}
        for key, gain in self.gains(pairs, by, metric).iterrows():
            pair, group = (key, "all") if by is None else key
            shown = shown_gain(gain["mean"], gain["low"], gain["high"])
            lines.setdefault(pair, {})[f"{group} ({gain['questions']:.0f})"] = shown
        return pd.DataFrame(lines).T.rename_axis(columns=f"{metric}, points")

    def _gains(self, one: str, other: str, metric: str) -> np.ndarray:
        """What one row has more than another, in percentage points a question."""
        check_choice("one", one, list(self.rows))
        check_choice("other", other, list(self.rows))
        check_choice("metric", metric, (*METRICS, "omega"))
        return 100 * (self.rows[one].scores[metric] - self.rows[other].scores[metric])

    def __repr__(self) -> str:
        return self.table().to_string()

    def _repr_html_(self) -> str:
        return as_html(self.table())


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """While hits are made, by ten thousands: none is part of a cycle, and a search for one goes over all objects."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _checked_documents(documents: Any) -> dict[str, str]:
    if not isinstance(documents, Mapping) or not all(
        isinstance(part, str) for pair in documents.items() for part in pair
    ):
        raise ValueError(f"documents={documents!r:.60}: must be a dictionary of id to text")
    return dict(documents)


def _checked_questions(questions: Any, documents: Mapping[str, str]) -> list[Question]:
    questions = list(questions) if isinstance(questions, Iterable) else [questions]
    if not questions:
        raise ValueError("questions is empty: there is nothing to measure with")
    ids = set()
    for question in questions:
        if not isinstance(question, Question):
            raise ValueError(f"questions holds {question!r:.60}: must hold Question objects, as load_questions gives")
        if question.id in ids or is_blank(question.question) or not question.spans:
            raise ValueError(f"question {question.id}: must have an id of its own, words, and a gold span")
        ids.add(question.id)
        for document, start, end in (span for gold in question.spans for span in spans_of(gold)):
            if not start < end <= len(documents.get(document, "")):
                raise ValueError(f"question {question.id}: documents holds no {document!r} {start} up to {end}")
    return questions


def _warn_of_truncation(name: str, chunks: Sequence[Chunk], embeddings: Embeddings) -> int:
    """How many chunks are longer than the model reads; a warning if any is."""
    from chunklab.models.embeddings import truncated

    cut = len(truncated(embeddings, [chunk.text for chunk in chunks]))
    if cut:
        warnings.warn(
            f"{name}: {cut} of {len(chunks)} chunks are longer than {model_name(embeddings)} reads; it saw their "
            "beginning only, and what stands after it cannot be found",
            stacklevel=3,
        )
    return cut
