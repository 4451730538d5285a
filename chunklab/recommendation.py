"""What `recommend` gives: what to take, why, how sure that is and what it costs, in words and as a page.

For whoever has to decide, and for whoever must be convinced. It says no more than its numbers: the plain default stays
unless the interval of the difference lies above 0, and what was measured with known-item queries chooses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunk, Chunker
from chunklab.own_documents import MARK, OwnDocuments
from chunklab.question_file import write_whole
from chunklab.recommendation_page import page
from chunklab.rows import Difference, Row, shown_gain
from chunklab.testset import QuestionSet

if TYPE_CHECKING:
    import pandas as pd

LEAST = 5
"""Questions, fewer than which measure nothing: known-item queries stand in."""

HALVED = 20
"""Questions from which on one half chooses and the other reports."""

DEFAULT = ("recursive", 1000, "meaning")
_FLATTERED = "sentence 300 gains 33 points so, and with its 220 real questions loses 2"  # which a test computes


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    """What `recommend` gives.

    Attributes:
        own: the documents, and what was not read or is left out.
        questions: those that were measured with.
        asked: what the language model and a person wrote; the same as `questions`, unless known-item queries stand in.
        frame: the sweep, a row a run.
        name: what is recommended: method, size, and "meaning" or "words too".
        chunker: that method, ready to use.
        strategy: what searches its chunks: a function of chunks and a model.
        best: the name of the run that was best in the sweep.
        rows: name to row, of those that were held against each other at the end.
        differences: between these, the best minus the default first.
        needed: questions that would be needed to see a difference of the size that was seen; None where there is none.
        halved: whether the differences are from other questions than those that chose.
        max_tokens: the budget a question.
        embedder: the model's name.
        problem: why the language model wrote no more; "" where nothing went wrong.
        path: the file of questions; None where none is kept.
    """

    own: OwnDocuments
    questions: QuestionSet
    asked: QuestionSet
    frame: pd.DataFrame
    name: str
    chunker: Chunker
    strategy: Callable[[list[Chunk], Embeddings], Any]
    best: str
    rows: dict[str, Row]
    differences: list[Difference]
    needed: int | None
    halved: bool
    max_tokens: int
    embedder: str
    problem: str
    path: Path | None

    @property
    def with_known_items(self) -> bool:
        """Whether known-item queries stand in for questions."""
        return self.questions is not self.asked

    @property
    def what(self) -> str:
        """What was measured with, in words."""
        return "known-item queries (no questions)" if self.with_known_items else "questions"

    def text(self) -> str:
        """What is recommended, why, how sure that is, and what it costs: a line each."""
        default, count = run_name(DEFAULT), len(self.questions)
        said = [f"Recommended: {self.name}."]
        if self.with_known_items:
            said.append(
                f"Measured with {count} known-item queries, no questions: sentences of the documents, asked for by "
                f"their rarest words, as there were {len(self.asked)} usable questions, and {LEAST} are needed."
                + (f" ({self.problem[:300]}.)" if self.problem else "")
            )
        else:
            by = f" ({self.asked.model})" if self.asked.model else ""
            said.append(f"Measured with {count} questions{by}.")
        gain = self.differences[0]
        seen = f"recall {shown_gain(gain.mean, gain.low, gain.high)} points"
        if self.with_known_items:
            said.append(
                "That is the plain default, as such queries choose nothing: by their making they favour short chunks "
                f"and words. With them, {gain.one} minus {gain.other} is {seen}; but on the course's corpus "
                f"{_FLATTERED}. Write {HALVED} questions, or have a larger model write them, to learn more."
            )
        elif not self.halved:
            said.append(
                f"That is the plain default: {count} are too few to choose by, {HALVED} are the least. On these, "
                f"{self.best} was best, {gain.one} minus {gain.other}: {seen}, which looks better than it "
                "is, as the same ones chose it."
            )
        elif self.best == default:
            said.append(
                f"That is the plain default, and it was the best in the half that chose, too. On the other half, it "
                f"minus the next-best, {gain.other}: {seen}."
            )
        elif self.name == default:
            said.append(
                f"That is the plain default. In the half that chose, {self.best} was best; on the other half, it minus "
                f"the default: {seen}, an interval that does not lie above 0: no gain is shown."
            )
        else:
            said.append(f"On the half that did not choose it, it minus the default, {default}: {seen}, above 0.")
        said += [
            f"{d.one} minus {d.other}: {shown_gain(d.mean, d.low, d.high)} points"
            + (", which cannot be told apart." if d.low <= 0 <= d.high else ".")
            for d in self.differences[1:]
        ]
        if not self.with_known_items and gain.low <= 0 <= gain.high:
            said.append(
                f"About {self.needed:,} {self.what} would be needed to be sure of a difference of this size."
                if self.needed
                else "There is no gain whose size could be confirmed by more of them."
            )
        row = self.rows[self.name]
        size = row.sizes.mean() if len(row.sizes) else 0
        said.append(
            f"Cost: {len(row.sizes):,} chunks of {size:,.0f} characters on average, {row.tokens.mean():,.0f} tokens "
            f"read a question (of {self.max_tokens:,} allowed), {row.calls.embedded:,} texts embedded "
            f"by {self.embedder}, no call of a language model."
        )
        return "\n".join(said)

    def html(self) -> str:
        """The report: one page that needs nothing else."""
        return page(self, MARK)

    def save(self, path: str | Path) -> None:
        """Write the report to a file."""
        write_whole(Path(path), self.html())

    def __repr__(self) -> str:
        return self.text()


def run_name(run: tuple[str, int, str]) -> str:
    """What a run is called.

    >>> run_name(DEFAULT)
    'recursive 1000 by meaning'
    """
    chunker, size, strategy = run
    return f"{chunker} {size} by {'words and meaning' if strategy == 'words too' else strategy}"
