"""What the explorer shows: two methods as they are set, on the same passage of a text, in colours and in numbers.

The part of the explorer without widgets: a state goes in, HTML comes out. METHODS is the table that its sliders are
made from. Methods that ask a language model are not in it: they would ask at every step of a slider. Cost: that of the
method, and some 10 ms; only the passage that is shown is drawn, all of the text is counted. A text is embedded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from statistics import fmean, pstdev
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

import chunklab
from chunklab.chunk import Chunk, Chunker, Span, is_blank
from chunklab.metrics import merged
from chunklab.models.vectors import embed
from chunklab.retrieval import ChunkIndex, Hit
from chunklab.view import View, escape, many, rgba, side_by_side

# Each method's class and settings: a slider from, to, in steps of, and where it begins; or names, the default first.
_SIZE, _OVERLAP, _TOKENS = (20, 2000, 10, 500), (0, 500, 10, 0), (5, 500, 5, 100)
_MODELS, _TOKENIZERS, _TYPES = ("static", "minilm"), ("cl100k", "minilm"), ("percentile", "gradient")
_WORDS = {"min_words": (1, 300, 1, 80), "max_words": (10, 600, 10, 250), "extended_words": (10, 1000, 10, 400)}
_MEANING = {
    "embeddings": _MODELS,
    "breakpoint_threshold_type": _TYPES,
    "breakpoint_threshold_amount": (0, 100, 1, 95),
    "buffer_size": (0, 5, 1, 1),
    "max_chunk_size": (50, 5000, 50, 1000),
}
_TOKENWISE = {"chunk_size": _TOKENS, "chunk_overlap": (0, 200, 5, 0), "tokenizer": _TOKENIZERS}
_WINDOWS = {"embeddings": _MODELS, "size": (1, 30, 1, 5), "threshold": (0.0, 1.0, 0.01, 0.3)}
_BLOCKS = {"embeddings": _MODELS, "max_chunk_size": _TOKENS, "piece_size": (5, 200, 5, 50)}
METHODS: dict[str, tuple[str, dict[str, tuple[Any, ...]]]] = {
    "fixed characters": ("FixedSizeChunker", {"chunk_size": _SIZE, "chunk_overlap": _OVERLAP}),
    "fixed tokens": ("FixedSizeChunker", _TOKENWISE),
    "sliding window": ("SlidingWindowChunker", {"size": _SIZE, "overlap": (0, 500, 10, 100)}),
    "sentences": ("SentenceChunker", {"chunk_size": _SIZE, "chunk_overlap": _OVERLAP}),
    "snapping window": ("SnappingWindowChunker", {"size": _SIZE, "overlap": (0, 10, 1, 1)}),
    "recursive": ("RecursiveChunker", {"chunk_size": _SIZE, "chunk_overlap": _OVERLAP}),
    "paragraphs": ("ParagraphChunker", {"max_chunk_size": _SIZE}),
    "headings": ("HeadingChunker", _WORDS),
    "code": ("CodeChunker", {"language": ("python", "javascript"), "chunk_size": _SIZE}),
    "semantic": ("SemanticChunker", _MEANING),
    "semantic window": ("SemanticWindowChunker", _WINDOWS),
    "cluster": ("ClusterChunker", _BLOCKS),
}
SHOWN = 2000  # characters of the passage
_BARS = 30
_KEPT = 50_000  # vectors


class Choice(NamedTuple):
    """A method, and how it is set."""

    method: str
    settings: tuple[tuple[str, Any], ...]


class Picture(NamedTuple):
    """What is shown: a table of numbers, the coloured passage, and where each method's hits begin, best first."""

    numbers: str
    view: View
    hits: dict[str, int]


class _Once(Embeddings):
    """A model that embeds a text once: a slider asks for most sentences again at every step."""

    def __init__(self, model: Embeddings) -> None:
        self._model, self._vectors = model, dict[str, np.ndarray]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encode(texts).tolist()

    def encode(self, texts: list[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if len(self._vectors) + len(new) > _KEPT:
            self._vectors.clear()
            new = list(dict.fromkeys(texts))
        self._vectors.update(zip(new, embed(self._model, new), strict=True))
        return np.array([self._vectors[text] for text in texts])


@lru_cache
def _model(name: str) -> _Once:
    return _Once(chunklab.embeddings(name))


def make(choice: Choice) -> Chunker:
    """The chunker that is so set; it raises what that raises."""
    settings = dict(choice.settings)
    if "embeddings" in settings:
        settings["embeddings"] = _model(settings["embeddings"])
    return getattr(chunklab, METHODS[choice.method][0])(**settings)


# Two methods are shown: when a slider of one moves, the other is not cut again.
@lru_cache(maxsize=2)
def cut(text: str, choice: Choice) -> tuple[list[Chunk], float]:
    """The chunks, and the milliseconds that they took."""
    chunker, begun = make(choice), perf_counter()
    return chunker.chunk(text), (perf_counter() - begun) * 1000


@lru_cache(maxsize=2)
def _index(text: str, choice: Choice) -> ChunkIndex:
    return ChunkIndex(cut(text, choice)[0], _model("static"))


def found(text: str, choice: Choice, question: str, k: int) -> list[Hit]:
    """The k chunks that the static model finds for a question; none for a blank one."""
    return [] if is_blank(question) else _index(text, choice).search(question, k)


def picture(
    text: str,
    choices: Mapping[str, Choice],
    place: int = 0,
    question: str = "",
    k: int = 3,
    gold: tuple[Span, ...] = (),
    times: bool = True,
) -> Picture:
    """Cut a text, ask the question, and draw both.

    Args:
        text: the document.
        choices: what to call each method, and how it is set.
        place: the first character that is shown.
        question: lights the chunks that it finds; may be blank.
        k: how many.
        gold: where the answer is known to stand, outlined.
        times: whether to say how long the cutting took, which differs from run to run.

    Returns:
        The picture. A method that cannot be so set, or fails, has its reason in the place of its chunks.

    >>> made = picture("One. Two.", {"A": Choice("sentences", (("chunk_size", 5),))}, question="two", k=1)
    >>> made.view
    A: 2 chunks of 4 characters · 1 hit
      0  0–4  'One.'
      1  5–9  'Two.' (hit 1)
    >>> made.hits
    {'A, hit 1': 5}
    """
    shown: dict[str, list[Chunk] | Exception] = {}
    took: dict[str, float] = {}
    hits: dict[str, list[Hit]] = {}
    for name, choice in choices.items():
        try:
            shown[name], took[name] = cut(text, choice)
            hits[name] = found(text, choice, question, k)
        except Exception as error:  # a learner who moves a slider gets a reason, and never a traceback
            said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            shown[name] = ValueError(said)
    ranks = {name: {hit.chunk.index: hit.rank for hit in best} for name, best in hits.items()}
    passage = (min(place, len(text)), min(place + SHOWN, len(text)))
    view = side_by_side(text, shown, SHOWN, passage, gold, ranks)
    places = {f"{name}, hit {hit.rank}": hit.chunk.start for name, best in hits.items() for hit in best}
    return Picture(_table(shown, took if times else {}, hits), view, places)


def _table(
    shown: Mapping[str, list[Chunk] | Exception], took: Mapping[str, float], hits: Mapping[str, list[Hit]]
) -> str:
    """A row of numbers a method, and the sizes of its chunks as bars, all on one axis."""
    cuts = {name: chunks for name, chunks in shown.items() if isinstance(chunks, list)}
    top = max((c.end - c.start for chunks in cuts.values() for c in chunks), default=1)
    heads = ["method", f"sizes, 1 to {top:,}", "chunks", "mean ± sd", "longest", "overlap"]
    heads += ["ms"] * bool(took) + ["hits (chunk numbers)"] * any(hits.values())
    rows = [_line(f'<th scope="col" style="{_CELL};opacity:.75">{head}</th>' for head in heads)]
    for name, chunks in shown.items():
        cells = [f'<th scope="row" style="{_CELL}">{escape(name)}</th>']
        if isinstance(chunks, Exception):
            cells.append(f'<td style="{_CELL}" colspan="{len(heads) - 1}">{escape(str(chunks))}</td>')
        else:
            values = _numbers(chunks, top)
            values += [f"{took[name]:,.1f}"] if took else []
            values += [", ".join(str(hit.chunk.index) for hit in hits[name])] if any(hits.values()) else []
            cells += [f'<td style="{_CELL}">{value}</td>' for value in values]
        rows.append(_line(cells))
    style = "border-collapse:collapse;font-size:13px;line-height:1.4"
    return f'<div style="overflow-x:auto"><table style="{style}">{"".join(rows)}</table></div>'


_CELL = "padding:.15em .8em .15em 0;text-align:left;vertical-align:bottom;font-weight:normal"


def _line(cells: Iterable[str]) -> str:
    return f'<tr style="background:transparent">{"".join(cells)}</tr>'


def _numbers(chunks: list[Chunk], top: int) -> list[str]:
    """The cells of a method that has cut; its overlap is what chunks repeat, in % of what they cover."""
    sizes = [c.end - c.start for c in chunks]
    if not sizes:
        return ["", "0", "–", "–", "–"]
    covered = sum(end - start for start, end in merged(("", c.start, c.end) for c in chunks)[""])
    repeated = 100 * (sum(sizes) - covered) / covered
    spread = f"{fmean(sizes):,.0f} ± {pstdev(sizes):,.0f}"
    return [_bars(sizes, top), f"{len(sizes):,}", spread, f"{max(sizes):,}", f"{repeated:.0f} %"]


def _bars(sizes: list[int], top: int) -> str:
    """A histogram of sizes from 1 to `top`, whose highest bar is as high in every method."""
    counts = [0] * min(_BARS, top)
    for size in sizes:
        counts[(size - 1) * len(counts) // top] += 1
    most = max(counts)
    ends = [-(-n * top // len(counts)) for n in range(len(counts) + 1)]
    bars = "".join(
        f'<span title="{low + 1:,} to {high:,} characters: {many(number, "chunk")}" '
        f'style="display:inline-block;width:{4 * _BARS // len(counts)}px;background:{rgba(0)};vertical-align:bottom;'
        f'height:{max(number > 0, round(36 * number / most))}px"></span>'
        for number, (low, high) in zip(counts, pairwise(ends), strict=True)
    )
    alt = f"histogram; the highest bar is {many(most, 'chunk')}"
    style = "display:inline-block;white-space:nowrap;line-height:0;height:36px;border-bottom:1px solid"
    return f'<span role="img" aria-label="{alt}" style="{style}">{bars}</span>'
