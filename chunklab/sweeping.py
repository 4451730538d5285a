"""Try chunkers over a grid of parameters, and see what each combination finds.

For whoever has to choose for documents of their own. Everything is measured with a cheap model first, and the best few
again with a better one: most combinations are out of the race long before they are worth its time. Each run is a row of
the scoreboard, and one that was measured is kept, so that a second sweep over a larger grid measures only what is new.
The best of many is best by luck too: choose on one half of the questions, report on the other (`halves`). Cost: that of
the scoreboard's rows, combinations times strategies of them.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.embeddings import Embeddings

from chunklab.chunk import Chunk, Chunker, check_choice, check_size, is_number
from chunklab.corpus import Question
from chunklab.evaluation import Scoreboard
from chunklab.kept_rows import KeptRows, digest
from chunklab.metrics import spans_of
from chunklab.models.vectors import check_model
from chunklab.queries import model_name, query_vectors
from chunklab.retrieval import ChunkIndex
from chunklab.rows import METRICS

if TYPE_CHECKING:
    import pandas as pd

Strategies = Mapping[str, Callable[[list[Chunk], Embeddings], Any]]
_SLOW = 3  # seconds, after which a bar shows how far it is
_RENAMED = {"size": "mean_size", "size_sd": "mean_size_sd"}  # a chunker's parameter may be called size
_MEASURED = {"questions", "mean_size", "mean_size_sd", "chunks", "truncated", "embedded", "llm_calls", "llm_read"}
_MEASURED |= {"llm_written", "seconds", "omega", "cut", "tokens", "run", "chunker", "strategy", "embedder"}
_MEASURED |= {f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high", "_each")}


class _Run(NamedTuple):
    """A chunker with its parameters, and what searches its chunks."""

    name: str
    chunker: str
    parameters: dict[str, Any]
    made: Chunker
    strategy: str
    searched: Callable[[list[Chunk], Embeddings], Any]


def sweep(
    chunkers: Mapping[str, Callable[..., Chunker]],
    grid: Mapping[str, Any],
    embeddings: Embeddings,
    documents: Mapping[str, str] | None = None,
    questions: Sequence[Question] | None = None,
    k: int = 5,
    strategies: Strategies | None = None,
    better: Embeddings | None = None,
    finalists: int = 5,
    metric: str = "recall",
    max_tokens: int | None = None,
    path: str | Path | None = None,
) -> pd.DataFrame:
    """Measure every chunker with every combination of its parameters, and every strategy.

    Args:
        chunkers: name to class, {"recursive": RecursiveChunker}, or to a function of parameters that makes a chunker.
            One that takes `embeddings` gets the model that is being measured with.
        grid: parameter to the values to try, {"chunk_size": [200, 400], "chunk_overlap": [0, 100]}, for all chunkers;
            or a grid for each, by its name, {"recursive": {"chunk_size": [200, 400]}}. Values are texts, numbers,
            True, False or None; set others in the chunker, with functools.partial.
        embeddings: the model for all combinations, a cheap one.
        documents: id to text; the course's corpus by default.
        questions: with gold spans in these documents; the course's by default.
        k: passages retrieved a question.
        strategies: name to what searches the chunks, as `Scoreboard.add` takes it: ChunkIndex, MultiVectorIndex, or a
            function of chunks and model: {"window": lambda chunks, model: Window(ChunkIndex(chunks, model))}. Chunks by
            their cosines, by default.
        better: another model, for the finalists alone.
        finalists: how many of the runs it measures again: those with the highest `metric`; of equals, those that read
            fewer tokens.
        metric: "recall", "precision" or "iou".
        max_tokens: a budget a question, in tokens (cl100k): of the k passages, in order, only those count that fit. So
            long and short chunks compete with equal text; give a k that is large enough to spend it. A strategy that
            has no budget of its own gets this one, before it merges what lies together.
        path: a file to keep what was measured: after a fault, or with a larger grid, only what is new is measured.

    Returns:
        A row a run, in the order of the grid, then the finalists': the chunker, its parameters (None where it has no
        such one), strategy and embedder, and the columns of `Scoreboard.frame`, the size of chunks as mean_size and
        mean_size_sd; last recall_each, precision_each and iou_each, a list of one number a question, in their order.
        For `plot_sweep`, `plot_heatmap` and `variance_explained`.

    Raises:
        ValueError: an argument that is not allowed, a parameter that a chunker does not have, or a grid of which the
            chunkers refuse everything, before any work.

    Warns:
        UserWarning: combinations are left out, as their chunker refuses them; rows in `path` were measured with
            something else, and are measured anew; or chunks are longer than the model reads.

    >>> from chunklab import RecursiveChunker, embeddings
    >>> text = "The bell is old. Its founder was a smith. Rain falls on the harbour."
    >>> question = Question("q1", "Who made the bell?", "", "town", (("town", 17, 41),))
    >>> sizes = {"chunk_size": [20, 60]}
    >>> frame = sweep({"recursive": RecursiveChunker}, sizes, embeddings("static"), {"town": text}, [question], k=1)
    >>> frame[["chunk_size", "recall", "tokens"]].to_dict("list")
    {'chunk_size': [20, 60], 'recall': [12.5, 100.0], 'tokens': [6.0, 15.0]}
    """
    strategies = {"chunks": ChunkIndex} if strategies is None else strategies
    k, finalists = check_size("k", k), check_size("finalists", finalists)
    check_choice("metric", metric, METRICS)
    max_tokens = None if max_tokens is None else check_size("max_tokens", max_tokens)
    check_model(embeddings)
    if better is not None:
        try:
            check_model(better)
        except ValueError as error:
            raise ValueError(str(error).replace("embeddings=", "better=", 1)) from None
    _check_named("strategies", strategies)
    grids = _grids(chunkers, grid)
    runs, refused = _runs(chunkers, grids, strategies, embeddings)
    kept = KeptRows(path)
    if refused:
        warnings.warn(
            f"{len(refused)} of {len(refused) + len(runs) // len(strategies)} combinations are left out, as their "
            f"chunker refuses them, such as {refused[0]}",
            stacklevel=2,
        )
    lines = _measured(runs, embeddings, documents, questions, k, max_tokens, kept)
    if better is not None:
        best = sorted(range(len(runs)), key=lambda i: (-lines[i][metric], lines[i]["tokens"]))[:finalists]
        names = {runs[i].name for i in best}
        again, _ = _runs(chunkers, grids, strategies, better)  # chunkers with a model have the better one now
        lines += _measured([r for r in again if r.name in names], better, documents, questions, k, max_tokens, kept)
    return _frame(lines, list(dict.fromkeys(name for grid in grids.values() for name in grid)))


def _check_named(argument: str, named: Any) -> None:
    """Raise ValueError unless it is a dictionary of name to something that can be called."""
    if (
        not isinstance(named, Mapping)
        or not named
        or not all(isinstance(n, str) and callable(f) for n, f in named.items())
    ):
        raise ValueError(f"{argument}={named!r:.80}: must be a dictionary of name to class or function, not empty")


def _grids(chunkers: Any, grid: Any) -> dict[str, dict[str, list[Any]]]:
    """The grid of each chunker; a ValueError says what is wrong with one."""
    _check_named("chunkers", chunkers)
    if not isinstance(grid, Mapping):
        raise ValueError(f"grid={grid!r:.80}: must be a dictionary of parameter to values, or of chunker to such a one")
    apart = any(isinstance(values, Mapping) for values in grid.values())
    if apart and (unknown := grid.keys() - chunkers.keys()):
        raise ValueError(f"grid has {min(map(str, unknown))!r}: must be one of the chunkers, {', '.join(chunkers)}")
    grids = {}
    for name, chunker in chunkers.items():
        own = grid.get(name, {}) if apart else grid
        if not isinstance(own, Mapping):
            raise ValueError(f"grid[{name!r}]={own!r:.80}: must be a dictionary of parameter to values")
        grids[name] = {key: _values(key, values) for key, values in own.items()}
        _check_parameters(name, chunker, grids[name])
    return grids


def _values(parameter: Any, values: Any) -> list[Any]:
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise ValueError(f"grid has {parameter!r}: {values!r:.60}: must be a list of values to try")
    # What numpy counts, JSON cannot hold.
    values = [value.item() if hasattr(value, "item") else value for value in values]
    for value in values:
        if value is not None and not isinstance(value, (str, bool)) and not is_number(value):
            raise ValueError(
                f"grid has {parameter!r} with {value!r:.60}: must be texts, numbers, True, False or None; set anything "
                "else in the chunker, with functools.partial"
            )
    if not values:
        raise ValueError(f"grid has {parameter!r} without values: must have one or more")
    return list({repr(value): value for value in values}.values())


def _check_parameters(name: str, chunker: Callable[..., Chunker], grid: Mapping[str, Any]) -> None:
    """Raise ValueError for a parameter that the chunker does not have, or that is missing."""
    known = inspect.signature(chunker).parameters
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for parameter in grid:
        if parameter in _MEASURED or parameter == "embeddings":
            raise ValueError(f"grid has {parameter!r}: the sweep's own columns have this name; call it something else")
        if parameter not in known and not any_name:
            raise ValueError(f"grid has {parameter!r}: {name} must have it, and has {', '.join(known) or 'none'}")
    for own in known.values():
        single = own.kind not in (own.VAR_POSITIONAL, own.VAR_KEYWORD)
        if single and own.default is own.empty and own.name not in {*grid, "embeddings"}:
            raise ValueError(
                f"chunkers has {name!r}, which needs {own.name!r}: put values for it into the grid, or set it "
                "with functools.partial"
            )


def _runs(
    chunkers: Mapping[str, Callable[..., Chunker]],
    grids: Mapping[str, Mapping[str, list[Any]]],
    strategies: Strategies,
    model: Embeddings,
) -> tuple[list[_Run], list[str]]:
    """Every combination with every strategy, and what the chunkers said of those that they refuse."""
    runs, refused = [], []
    for name, chunker in chunkers.items():
        needed = inspect.signature(chunker).parameters.get("embeddings")
        own = {"embeddings": model} if needed is not None and needed.default is needed.empty else {}
        for values in product(*grids[name].values()):
            parameters = dict(zip(grids[name], values, strict=True))
            shown = " ".join([name, *(f"{key}={value}" for key, value in parameters.items())])
            try:
                made = chunker(**own, **parameters)
            except ValueError as error:
                refused.append(f"{shown}: {error}")
                continue
            if not hasattr(made, "chunk") or isinstance(made, type):
                raise ValueError(f"chunkers has {name!r}, which gave {made!r:.60}: must give a chunker")
            runs += [_Run(f"{shown}, {s}", name, parameters, made, s, searched) for s, searched in strategies.items()]
    if not runs:
        raise ValueError(f"grid: its chunkers refuse all of it, such as {refused[0]}")
    return runs, refused


def _with_budget(searched: Callable[..., Any], max_tokens: int | None) -> Callable[..., Any]:
    """What searches the chunks; a strategy knows the budget before it makes passages that are larger than it."""

    def made(chunks: list[Chunk], model: Embeddings) -> Any:
        found = searched(chunks, model)
        if max_tokens is None or getattr(found, "max_tokens", max_tokens) is not None:
            return found
        return found.model_copy(update={"max_tokens": max_tokens})

    return made


def _measured(
    runs: Sequence[_Run],
    model: Embeddings,
    documents: Mapping[str, str] | None,
    questions: Sequence[Question] | None,
    k: int,
    max_tokens: int | None,
    kept: KeptRows,
) -> list[dict[str, Any]]:
    """A line a run: a kept one, or one that is measured now, and kept."""
    from tqdm import tqdm

    board = Scoreboard(model, documents, questions, k)
    asked = [(q.id, q.question, q.kind, [spans_of(gold) for gold in q.spans]) for q in board.questions]
    same = {"documents": digest(board.documents), "questions": digest(asked), "k": k, "max_tokens": max_tokens}
    # Its name, and the vector of a question: whatever else changes a model, changes that.
    probe = query_vectors([board.questions[0].question], model).round(3).tolist()
    same["model"] = digest([model, probe])
    same["version"] = _code()
    names = [f"{run.name}, {model_name(model)}" for run in runs]
    made = [same | {"chunker": digest(run.made), "strategy": digest(run.searched)} for run in runs]
    rows: list[Any] = [kept.get(name, made_with) for name, made_with in zip(names, made, strict=True)]
    todo = [place for place, row in enumerate(rows) if row is None]
    if changed := set().union(*(kept.changed(names[place], made[place]) for place in todo)):
        warnings.warn(f"rows are measured anew: those in the file had other {', '.join(sorted(changed))}", stacklevel=3)
    for place in tqdm(todo, desc="sweep", unit=" runs", delay=_SLOW, file=sys.stderr, leave=False):
        board.rows.clear()  # what they found takes memory
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*chunks are longer than")  # said once, below
                board.add(names[place], runs[place].made, index=_with_budget(runs[place].searched, max_tokens))
        except Exception as error:
            error.add_note(f"in the sweep's run {names[place]!r}; with a path, the runs before it are kept")
            raise
        read = board if max_tokens is None else board.within(max_tokens)
        (rows[place],) = read.frame().rename(columns=_RENAMED).to_dict("records")
        (row,) = read.rows.values()
        rows[place] |= {f"{metric}_each": (100 * row.scores[metric]).tolist() for metric in METRICS}
        kept.put(names[place], made[place], rows[place])
    if cut := sum(rows[place]["truncated"] > 0 for place in todo):
        warnings.warn(
            f"in {cut} runs some chunks are longer than {model_name(model)} reads, which saw their beginning only: the "
            "column truncated says how many",
            stacklevel=3,
        )
    return [
        {"run": name, "chunker": run.chunker, **run.parameters, "strategy": run.strategy, "embedder": model_name(model)}
        | row
        for name, run, row in zip(names, runs, rows, strict=True)
    ]


@cache
def _code() -> str:
    """What the package's own code is: a row that another one measured does not count."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _frame(lines: list[dict[str, Any]], parameters: list[str]) -> pd.DataFrame:
    """The lines as a frame; a parameter that a chunker does not have is None, and turns no number into a float."""
    import pandas as pd

    first = ["run", "chunker", *parameters, "strategy", "embedder"]
    frame = pd.DataFrame(lines)
    for name in parameters:
        values = [line.get(name) for line in lines]
        frame[name] = pd.Series(values, dtype=object if None in values else None)
    return frame[[*first, *(name for name in frame.columns if name not in first)]].set_index("run")
