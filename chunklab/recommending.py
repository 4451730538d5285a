"""Your own documents: point it at a folder, get a test set, a sweep, a recommendation, and a report as one HTML file.

For whoever must choose a chunker for files of their own and has half an hour. The files are read, questions about them
are written by a language model, chunkers are swept on one half of the questions at one budget of tokens, and the best
is held against the plain default (recursive chunks of 1,000 characters, searched by meaning) on the other half. The
default stays unless the interval of that difference lies above 0: a few questions cannot tell methods apart, and the
report says how many would be needed. A small model writes few questions that can be used; where there are too few,
known-item queries stand in, never both at once; these choose nothing, and the default stays. Cost: the questions, and
the sweep, some ten seconds a hundred pages.
"""

from __future__ import annotations

import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.choosing import halves
from chunklab.chunk import Chunk, Chunker, check_size, is_number
from chunklab.chunkers.asking import LLMError, check_llm
from chunklab.chunkers.heading import HeadingChunker
from chunklab.chunkers.paragraph import ParagraphChunker
from chunklab.chunkers.recursive import RecursiveChunker
from chunklab.chunkers.semantic import SemanticChunker
from chunklab.chunkers.sentence import SentenceChunker
from chunklab.corpus import Question
from chunklab.evaluation import Scoreboard
from chunklab.hybrid import Hybrid
from chunklab.known_items import known_items
from chunklab.models.vectors import check_model
from chunklab.own_documents import OwnDocuments, read_documents
from chunklab.queries import model_name
from chunklab.question_file import read_questions
from chunklab.recommendation import DEFAULT, HALVED, LEAST, Recommendation, run_name
from chunklab.retrieval import ChunkIndex
from chunklab.sweeping import Strategies, sweep
from chunklab.testset import QuestionSet, make_testset, places_of

if TYPE_CHECKING:
    import pandas as pd
    from langchain_core.language_models import BaseChatModel

BUDGET = 1000
"""Tokens (cl100k) that a question may read: four or five chunks of the default."""

KNOWN_ITEMS = 60
SIZES = [300, 600, 1000]
_REPLY = 300  # tokens: a question and its answer have 100 characters each
_PIECE = 400  # characters: a size that no chunker here uses
_HITS = 60  # enough of the smallest chunks to spend the budget
_NEEDED = 1.96 + 0.84  # standard errors: found in four of five trials, by a 95 % interval


def paragraph(chunk_size: int) -> ParagraphChunker:
    """Whole paragraphs."""
    return ParagraphChunker(chunk_size)


def heading(chunk_size: int) -> HeadingChunker:
    """Markdown by topic, its sizes in words of about six characters."""
    words = max(3, chunk_size // 6)
    return HeadingChunker(max(1, words * 80 // 250), words, words * 400 // 250)


def semantic(embeddings: Embeddings, chunk_size: int) -> SemanticChunker:
    """Cut where the meaning changes, and where a chunk would be too long."""
    return SemanticChunker(embeddings, max_chunk_size=chunk_size)


def by_words_too(chunks: list[Chunk], embeddings: Embeddings) -> Hybrid:
    """Chunks by their words and their meaning."""
    return Hybrid(ChunkIndex(chunks, embeddings))


STRATEGIES: Strategies = {"meaning": ChunkIndex, "words too": by_words_too}


def recommend(
    paths: str | Path | Iterable[str | Path],
    llm: BaseChatModel | None = None,
    embeddings: Embeddings | None = None,
    questions: int = 40,
    output: str | Path | None = None,
    better: Embeddings | None = None,
    max_tokens: int = BUDGET,
    seconds: float = 60,
) -> Recommendation:
    """Measure chunkers on documents of your own, and say which to take.

    Args:
        paths: a file, a folder, a pattern, or a list of these: text, Markdown, HTML, PDF, Word and source files.
        llm: what writes the questions; `chat()` by default: with OPENAI_API_KEY or OPENAI_BASE_URL that server, else
            SmolLM2 on this machine, few of whose questions can be used.
        embeddings: the model for the sweep; `embeddings("static")` by default.
        questions: how many to ask for; 0 asks no model.
        output: where the report goes, "report.html". The questions are kept beside it ("report.questions.jsonl", which
            may be edited, see `make_testset`), and what was measured ("report.sweep.jsonl"): after a fault or an edit,
            the same call asks and measures only what is new.
        better: another model, which measures the best five again.
        max_tokens: the budget a question, in tokens (cl100k): each method may read as much text.
        seconds: how long the model may be asked, and how long a reply of the local model may take. What is left is
            asked by the same call again, with an output.

    Returns:
        The recommendation. Its `text()` says what, why, and how sure; `chunker` and `strategy` are ready to use.

    Raises:
        ValueError: an argument that is not allowed, nothing that can be read, or so little text that a few questions'
            budget holds all of it, before any work.
        LLMError: a model that was given, or asked with a key, did not answer. What it has said is kept.

    >>> from tempfile import TemporaryDirectory
    >>> names, goods = "Ada Bela Cora Dora Edda Fred".split(), "salt rope fish wool wine iron".split()
    >>> text = " ".join(f"{name} sold {good} at the market of the village." for name in names for good in goods)
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trade.txt").write_text(text)
    ...     made = recommend(folder, questions=0, max_tokens=100)
    >>> made.name, made.with_known_items
    ('recursive 1000 by meaning', True)
    """
    import chunklab

    questions = 0 if type(questions) is int and not questions else check_size("questions", questions)
    max_tokens = check_size("max_tokens", max_tokens)
    if not is_number(seconds) or not seconds >= 0:
        raise ValueError(f"seconds={seconds!r:.60}: must be a number of 0 or more")
    own_model = llm is None and not any(os.environ.get(name, "").strip() for name in _KEYS)
    if llm is not None:
        check_llm(llm)
    embeddings = chunklab.embeddings("static") if embeddings is None else embeddings
    for argument, model in (("embeddings", embeddings), ("better", better)):
        if model is not None:
            try:
                check_model(model)
            except ValueError as error:
                raise ValueError(str(error).replace("embeddings=", f"{argument}=", 1)) from None
    output = None if output is None else _checked_output(output)
    beside = {kind: None if output is None else output.with_suffix(f".{kind}.jsonl") for kind in ("questions", "sweep")}
    own = read_documents(paths, output)
    _check_enough(own.texts, max_tokens)

    asked, problem = _asked(own.texts, llm, questions, beside["questions"], seconds, own_model)
    stands_in = len(asked) < LEAST
    measured = QuestionSet(own.texts, known_items(own.texts, KNOWN_ITEMS), [], "") if stands_in else asked
    if len(measured) < 2:
        raise ValueError("paths: there are no sentences to ask for, and no questions; write some by hand")
    halved = len(measured) >= HALVED
    tuning, reporting = halves(measured.questions) if halved else (measured.questions, measured.questions)
    chunkers = _chunkers(own)
    # Known-item queries hold the words of their answer: a search by words would find each.
    strategies = {"meaning": ChunkIndex} if stands_in else STRATEGIES
    frame = _swept(chunkers, strategies, embeddings, better, own.texts, tuning, max_tokens, beside["sweep"])

    model = better or embeddings
    ranked = _ranked(frame, model)
    default = DEFAULT  # also where it is not among the finalists
    names = [ranked[0], ranked[1] if ranked[0] == default else default]
    # Beside the next best, the default's cut in the same size and search: how much of a gain is the cut's?
    names += [run for run in (*ranked[1:2], ("recursive", *ranked[0][1:])) if run not in names]
    made = {run: _made(chunkers, run, model) for run in [*names, default]}
    board = _reported(made, model, own.texts, reporting, max_tokens)
    differences = [board.compare(run_name(names[0]), run_name(name)) for name in names[1:]]
    gain = differences[0]
    sure = halved and not stands_in and ranked[0] != default and gain.low > 0
    chosen = ranked[0] if sure else default
    gains = board.rows[gain.one].scores["recall"] - board.rows[gain.other].scores["recall"]
    result = Recommendation(
        own,
        measured,
        asked,
        frame,
        run_name(chosen),
        made[chosen],
        STRATEGIES[chosen[2]],
        run_name(ranked[0]),
        board.rows,
        differences,
        questions_needed(gains),
        halved,
        max_tokens,
        model_name(model),
        problem,
        beside["questions"],
    )
    if output is not None:
        result.save(output)
    return result


def questions_needed(gains: np.ndarray) -> int | None:
    """How many questions it takes to see a gain like this one: a 95 % interval above 0, in four of five trials.

    Args:
        gains: what one method has more than another, one number a question.

    Returns:
        The number; None where there is no gain, or nothing to judge its spread by.

    >>> questions_needed(np.array([0, 0, 0, 1, 0, 0, 1, -1, 0, 0.0]))
    253
    """
    gains = np.asarray(gains, dtype=np.float64)
    mean, spread = (float(gains.mean()), float(gains.std(ddof=1))) if len(gains) > 1 else (0.0, 0.0)
    return math.ceil((_NEEDED * spread / mean) ** 2) if mean > 1e-9 and spread > 1e-9 else None


_KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE")


def _checked_output(output: Any) -> Path:
    if not isinstance(output, (str, Path)) or not str(output):
        raise ValueError(f"output={output!r:.80}: must be the name of a file")
    path = Path(output)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"output={str(output)!r:.200}: must end in .html")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"output={str(output)!r:.200}: must be a file, in a folder that is there")
    return path


def _check_enough(texts: dict[str, str], max_tokens: int) -> None:
    """Raise ValueError where two questions' budget holds all text: whatever is cut, nearly all of it is found."""
    size, least = sum(map(len, texts.values())), 8 * max_tokens
    if size < least:
        raise ValueError(
            f"paths: {size:,} characters in {len(texts)} documents are too little to choose by: must be {least:,} or "
            f"more, as a question may read {max_tokens:,} tokens. So short a text needs no chunks: "
            "give the model all of it"
        )


def _asked(
    texts: dict[str, str], llm: Any, count: int, path: Path | None, seconds: float, own_model: bool
) -> tuple[QuestionSet, str]:
    """The questions that there are, and why there are no more."""
    if not count:
        return _there(texts, path), ""
    if llm is None:
        from chunklab.models.llm import TIMEOUT, chat

        # On a machine that is busy with other things one reply of the local model can take minutes.
        llm = chat(max_tokens=_REPLY, timeout=max(1, seconds) if own_model else TIMEOUT)
    most = sum(len(places_of(name, text, _PIECE)) for name, text in texts.items())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*got no answer that could be used")  # counted as dropped
        end = time.monotonic() + seconds
        try:
            asked = make_testset(texts, llm, min(count, most), _PIECE, path, seconds)
            late = len(asked) < count and time.monotonic() >= end
            goes_on = "the same again goes on from there" if path else "give an output, and the same again goes on"
            return asked, f"The time for questions, {seconds:g} s, was over: {goes_on}" if late else ""
        except LLMError as error:
            if not own_model:
                raise
            return _there(texts, path), str(error)


def _there(texts: dict[str, str], path: Path | None) -> QuestionSet:
    """The questions of the file alone."""
    there = read_questions(path, texts) if path is not None and path.exists() else []
    return QuestionSet(texts, there, [], "")


def _chunkers(own: OwnDocuments) -> dict[str, Callable[..., Chunker]]:
    chunkers: dict[str, Callable[..., Chunker]] = {
        "recursive": RecursiveChunker,
        "sentence": SentenceChunker,
        "paragraph": paragraph,
    }
    if any(
        _has_headings(text) for name, text in own.texts.items() if own.formats[name] in ("markdown", "html", "docx")
    ):
        chunkers["heading"] = heading
    return chunkers | {"semantic": semantic}


def _has_headings(text: str) -> bool:
    return len(re.findall(r"^#{1,6} \S", text, re.MULTILINE)) > 1


def _swept(
    chunkers: dict[Any, Any],
    strategies: Strategies,
    embeddings: Any,
    better: Any,
    texts: dict[str, str],
    tuning: list[Question],
    max_tokens: int,
    path: Path | None,
) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "rows are measured anew")  # a question was edited, as it should be
        return sweep(
            chunkers,
            {"chunk_size": SIZES},
            embeddings,
            texts,
            tuning,
            _HITS,
            strategies,
            better=better,
            max_tokens=max_tokens,
            path=path,
        )


def _ranked(frame: pd.DataFrame, model: Embeddings) -> list[tuple[str, int, str]]:
    """The runs of a model, best first: by recall, then by precision, which favours less text."""
    rows = frame[frame["embedder"] == model_name(model)]
    rows = rows[~rows.duplicated(["chunker", "chunk_size", "strategy"], keep="last")]
    rows = rows.sort_values(["recall", "precision"], ascending=False, kind="stable")
    return [(r.chunker, int(r.chunk_size), r.strategy) for r in rows.itertuples()]


def _made(chunkers: dict[str, Callable[..., Chunker]], run: tuple[str, int, str], model: Embeddings) -> Chunker:
    chunker, size, _ = run
    own = {"embeddings": model} if chunker == "semantic" else {}
    return chunkers[chunker](chunk_size=size, **own)


def _reported(
    made: dict[tuple[Any, ...], Chunker],
    model: Embeddings,
    texts: dict[str, str],
    questions: list[Question],
    max_tokens: int,
) -> Scoreboard:
    board = Scoreboard(model, texts, questions, _HITS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*chunks are longer than")  # the sweep has said so
        for run, chunker in made.items():
            board.add(run_name(run), chunker, index=STRATEGIES[run[2]])
    return board.within(max_tokens)
