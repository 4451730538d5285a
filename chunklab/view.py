"""Chunks coloured on the text itself, and the lessons' figures.

For everyone who asks where a method has cut: `show_chunks` prints the text with each chunk in a colour of its own and
a numbered tag where it begins, `compare_chunks` puts methods side by side; the figures are in `figures.py`. The
colours are from Okabe and Ito's set for colour-blind readers, cool and warm by turns, half transparent so that they
suit light and dark pages. The page carries its style inline and means the same without it: numbers, `<u>` for shared
text, `<b>` for gold, `<i>` for what is in no chunk. Cost: linear in the part that is shown.
"""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple

import regex

from chunklab.chunk import BOM, Chunker, Span, check_size, check_text, last_boundary
from chunklab.curves import plot_distances
from chunklab.figures import plot_hits, plot_sizes, plot_windows
from chunklab.score_figures import plot_scores, plot_sweep

__all__ = ["View", "compare_chunks", "show_chunks"]
__all__ += ["plot_distances", "plot_hits", "plot_scores", "plot_sizes", "plot_sweep", "plot_windows"]

# Neighbours differ by 26 or more (CIE 1976) at this opacity, on white and on black, for every kind of colour blindness.
_COLOURS = ((0, 114, 178), (230, 159, 0), (86, 180, 233), (213, 94, 0))
_TINT, _LIT = 0.28, 0.62
# JupyterLab cleans the styles of a notebook that was not run here yet: it lets through rgba() but not hex with alpha,
# linear-gradient but not repeating-linear-gradient, em but not ch.
_TAG = (
    "vertical-align:baseline;font:bold .7em sans-serif;padding:.25em .4em;margin:0 .15em;white-space:nowrap;"
    "user-select:none;"
)
_PRE = (
    "white-space:pre-wrap;overflow-wrap:break-word;word-break:normal;max-width:56em;margin:.3em 0;padding:0;border:0;"
    "font-size:13px;line-height:1.75;color:inherit;background:transparent"
)
_NOTE = "font-size:12px;opacity:.75;margin:.2em 0"
_GRAPHEME = regex.compile(r"\X")
_NO_SPACES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_LINE = regex.compile(r"[^\r\n]*\S[^\r\n]*")
_LONE_BREAK = regex.compile(r"\r(?!\n)|[\u2028\u2029\x85]")
_ROWS = 8


@dataclass(frozen=True, repr=False, slots=True)
class View:
    """What `show_chunks` gives: HTML in a notebook, a list of chunks in a terminal."""

    html: str
    plain: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.plain


class _Piece(NamedTuple):
    """One chunk as it is shown: its number, its true span, its id, and its rank among the hits of a question."""

    number: int
    start: int
    end: int
    id: str
    rank: int = 0


def show_chunks(
    chunks: Chunker | Iterable[Any],
    text: str,
    *,
    limit: int | None = 3000,
    around: Any = None,
    highlight: Iterable[Any] = (),
) -> View:
    """Show the text with its chunks in alternating colours.

    A filled tag opens a chunk and carries its number in the list; an outlined tag says which chunk goes on alone. Text
    that chunks share is underlined, has both colours and both numbers; text outside all chunks is grey. Hover for
    offsets, length and id.

    Args:
        chunks: a chunker, which is run on the text; or Chunks, or (start, end) pairs.
        text: the document that the chunks come from.
        limit: characters to show, 1 or more; None for all.
        around: a span, or anything with `start` and `end`, to show the neighbourhood of; default: the beginning.
        highlight: gold spans, outlined: (start, end) pairs, or anything with `start` and `end`.

    Returns:
        A view that a notebook shows as HTML and a terminal as a list.

    Raises:
        ValueError: an argument that is not of this kind, or a span that lies outside the text.

    >>> show_chunks([(0, 5), (4, 9)], "one, two.")
    2 chunks of 5 characters · 1 character repeated
      0  0–5  'one, '
      1  4–9  ' two.'
    """
    return side_by_side(text, {"": chunks}, limit, around, highlight)


def compare_chunks(
    text: str,
    methods: Mapping[str, Chunker | Iterable[Any]],
    *,
    limit: int | None = 1500,
    around: Any = None,
    highlight: Iterable[Any] = (),
) -> View:
    """Show the same part of a text as two or three methods cut it, side by side; stacked on a narrow screen.

    Args:
        text: the document.
        methods: the name of each method, and its chunker or chunks.
        limit: characters to show, 1 or more; None for all.
        around: a span to show the neighbourhood of; default: the beginning.
        highlight: gold spans, outlined.

    Returns:
        A view that a notebook shows as HTML and a terminal as lists.

    Raises:
        ValueError: as `show_chunks`; or not two or three methods.

    >>> compare_chunks("one, two.", {"words": [(0, 4), (5, 9)], "whole": [(0, 9)]})
    words: 2 chunks of 4 characters
      0  0–4  'one,'
      1  5–9  'two.'
    whole: 1 chunk of 9 characters
      0  0–9  'one, two.'
    """
    if not isinstance(methods, Mapping) or not 2 <= len(methods) <= 3:
        raise ValueError(f"methods={_short(methods)}: must be a dictionary of two or three names with their chunks")
    return side_by_side(text, methods, limit, around, highlight)


def side_by_side(
    text: str,
    methods: Mapping[str, Chunker | Iterable[Any] | Exception],
    limit: int | None,
    around: Any,
    highlight: Iterable[Any],
    ranks: Mapping[str, Mapping[int, int]] | None = None,
) -> View:
    """What `show_chunks` and `compare_chunks` give, and `explore` draws: any number of methods.

    Args:
        text: the document.
        methods: the name of each, and its chunker or chunks; or what kept it from cutting, which is said instead.
        limit: characters to show.
        around: a span to show the neighbourhood of.
        highlight: gold spans.
        ranks: for a method, the chunks that a question found, by number, each with its rank, from 1: these are lit.

    >>> side_by_side("one, two.", {"": [(0, 4), (5, 9)]}, 9, None, [], {"": {1: 1}})
    2 chunks of 4 characters · 1 hit
      0  0–4  'one,'
      1  5–9  'two.' (hit 1)
    """
    check_text(text)
    if limit is not None:
        check_size("limit", limit)
    around = None if around is None else _span("around", around, text)
    gold = [_span("highlight", item, text) for item in _listed("highlight", highlight)]
    ranks = ranks or {}
    listed = {
        str(name): chunks if isinstance(chunks, Exception) else _pieces(chunks, text, ranks.get(name, {}))
        for name, chunks in methods.items()
    }
    first, last = _part(text, limit, around)
    ends = [first, *(m.end() for m in _GRAPHEME.finditer(text, first, last))]
    columns, plain = [], []
    for name, pieces in listed.items():
        if isinstance(pieces, Exception):
            summary, listing = "nothing was cut", f"nothing was cut: {pieces}"
            body = f"<i>{escape(str(pieces))}</i>"
        else:
            summary = _summary(pieces, text, ends)
            body, listing = _body(text, pieces, gold, ends), _plain(text, pieces, summary, first, last)
        heading = f"<b>{escape(name)}</b> · " if name else ""
        columns.append(f'<div style="{_NOTE}">{heading}{summary}</div><pre dir="auto" style="{_PRE}">{body}</pre>')
        plain.append((f"{name}: " if name else "") + listing)
    if len(columns) > 1:
        columns = [f'<div style="flex:1 1 300px;min-width:0">{column}</div>' for column in columns]
        columns = ['<div style="display:flex;flex-wrap:wrap;gap:1.5em">', *columns, "</div>"]
    left_out = _left_out(text, first, last)
    note = f'<div style="{_NOTE}"><i>{left_out}</i></div>' if left_out else ""
    page = f'<div class="tex2jax_ignore mathjax_ignore">{"".join(columns)}{note}</div>'
    return View(page, "\n".join(plain + ([left_out] if left_out else [])))


def _listed(name: str, items: Any) -> list[Any]:
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise ValueError(f"{name}={_short(items)}: must be a list of chunks or of (start, end) pairs")
    return list(items)


def _span(name: str, item: Any, text: str) -> Span:
    """The (start, end) of a chunk, a gold span or a pair; checked against the text."""
    try:
        start, end = map(index, (item.start, item.end) if hasattr(item, "end") else item)
    except (TypeError, ValueError):
        allowed = "a chunk or a (start, end) pair of whole numbers"
        raise ValueError(f"{name}: {_short(item)} is of type {type(item).__name__}: must be {allowed}") from None
    if not 0 <= start <= end <= len(text):
        raise ValueError(
            f"{name}: ({start}, {end}) does not fit a text of {len(text):,} characters: is it the text that was cut?"
        )
    return start, end


def _pieces(chunks: Any, text: str, ranks: Mapping[int, int]) -> list[_Piece]:
    found = chunks.chunk(text) if isinstance(chunks, Chunker) else _listed("chunks", chunks)
    if len({c.document for c in found if hasattr(c, "document")}) > 1:
        raise ValueError("chunks: they come from more than one document: choose those of the text that you show")
    return [
        _Piece(n, *_span("chunks", c, text), str(getattr(c, "id", "")), ranks.get(n, 0)) for n, c in enumerate(found)
    ]


def _part(text: str, limit: int | None, around: Span | None) -> Span:
    """The part to show: whole words where it can, whole grapheme clusters always, and all of `around`."""
    start, end = around or (0, 0)
    if limit is None or limit >= len(text):
        return 0, len(text)
    spare = max(0, limit - (end - start)) // 2 if around else 0
    first = max(0, min(start - spare, len(text) - limit))
    last = min(len(text), max(end, first + limit))
    if first > 0:
        gap = text.rfind(" ", max(0, first - 30), first) + 1
        first = last_boundary(text, 0, gap or first)
    if last < len(text):
        gap = text.rfind(" ", max(first + 1, end, last - 30), last) + 1
        last = last_boundary(text, first, gap or last)
    whole = _GRAPHEME.match(text, first)
    return first, max(last, whole.end() if whole else last)


def _left_out(text: str, first: int, last: int) -> str:
    sides = [(first, "before"), (len(text) - last, "after")]
    parts = [f"{many(number, 'character')} {side}" for number, side in sides if number]
    return f"Not shown: {' and '.join(parts)}" if parts else ""


def _summary(pieces: list[_Piece], text: str, ends: list[int]) -> str:
    """How many chunks, their sizes, and what is amiss with their edges."""
    sizes = [p.end - p.start for p in pieces]
    parts = [many(len(pieces), "chunk")]
    if sizes:
        low, high = min(sizes), max(sizes)
        mean = f"{low:,} to {high:,} characters, mean {sum(sizes) / len(sizes):,.0f}"
        parts[0] += f" of {many(low, 'character')}" if low == high else f" of {mean}"
    covered = reach = lost = 0
    for start, end in [*sorted((p.start, p.end) for p in pieces), (len(text), len(text))]:
        lost += sum(map(len, text[reach:start].replace(BOM, " ").split()))
        covered += max(0, end - max(start, reach))
        reach = max(reach, end)
    if sum(sizes) > covered:
        parts.append(f"{many(sum(sizes) - covered, 'character')} repeated")
    parts += [f"{many(lost, 'character')} in no chunk"] if lost else []
    cuts = {cut for p in pieces for cut in (p.start, p.end)}
    words = sum(_inside_word(text, cut) for cut in cuts)
    characters = sum(ends[0] < cut < ends[-1] and ends[bisect_left(ends, cut)] != cut for cut in cuts)
    parts += [f"{many(words, 'cut')} inside a word"] if words else []
    parts += [f"{many(characters, 'cut')} inside a character"] if characters else []
    hits = sum(p.rank > 0 for p in pieces)
    parts += [many(hits, "hit")] if hits else []
    return " · ".join(parts)


def _inside_word(text: str, cut: int) -> bool:
    around = text[cut - 1 : cut + 1] if 0 < cut < len(text) else ""
    return len(around) == 2 and around[0].isalnum() and around[1].isalnum() and not _NO_SPACES.search(around)


def _body(text: str, pieces: list[_Piece], gold: list[Span], ends: list[int]) -> str:
    """The part's HTML: one element for every stretch that the same chunks cover, gold around them."""
    if len(ends) == 1:
        return f'<i style="opacity:.6">(an empty text, {many(len(pieces), "chunk")})</i>'
    first, last = ends[0], ends[-1]

    def snap(cut: int) -> int:
        # A cut inside a grapheme cluster is drawn after it: an emoji or an accented letter is never torn.
        return ends[bisect_left(ends, min(max(cut, first), last))]

    seen = [p for p in pieces if p.end > first and p.start < last or first <= p.start == p.end <= last]
    opening: dict[int, list[_Piece]] = {}
    closing: dict[int, list[_Piece]] = {}
    for p in seen:
        opening.setdefault(snap(p.start), []).append(p)
        closing.setdefault(snap(p.end), []).append(p)
    gold_spans = _lines(text, [(snap(start), snap(end)) for start, end in gold])
    gold_open, gold_close = {start for start, _ in gold_spans}, {end for _, end in gold_spans}
    stops = sorted({first, last, *opening, *closing, *gold_open, *gold_close})
    out: list[str] = []
    cover: dict[int, _Piece] = {}
    for at, to in zip(stops, [*stops[1:], last], strict=True):
        for p in closing.get(at, ()):
            cover.pop(p.number, None)
        new = opening.get(at, [])
        cover.update((p.number, p) for p in new if snap(p.end) > at)
        out.append("</b>" if at in gold_close else "")
        out.append('<b style="outline:2px solid">' if at in gold_open else "")
        # A chunk that holds no whole character still shows its tag.
        out += [_tag([p], True) for p in new if snap(p.end) == at]
        if to > at:
            opens = any(p.start >= first for p in new)
            changed = at == first or bool(new) or at in closing
            out.append(_stretch(text[at:to], [cover[n] for n in sorted(cover)], opens, changed))
    return "".join(out)


def _lines(text: str, spans: list[Span]) -> list[Span]:
    """The spans, merged, then cut into their lines: an outline around an empty line would be a blot."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return [m.span() for start, end in merged for m in _LINE.finditer(text, start, end)]


def _stretch(text: str, cover: list[_Piece], opens: bool, changed: bool) -> str:
    """A stretch of text and the chunks that hold it; a tag if those are others than before."""
    if not cover:
        return f'<i title="in no chunk" style="opacity:.65">{escape(text)}</i>'
    shown = [rgba(p.number, _LIT if p.rank else _TINT) for p in cover[:4]]
    share = 100 / len(shown)
    bands = ",".join(f"{c} {round(i * share)}% {round((i + 1) * share)}%" for i, c in enumerate(shown))
    style = f"linear-gradient({bands})" if len(shown) > 1 else shown[0]
    title = "&#10;".join(escape(_hover(p), attribute=True) for p in cover[:4])
    title += f"&#10;and {len(cover) - 4} more" if len(cover) > 4 else ""
    tag = _tag(cover, opens) if changed else ""
    words = f"<u>{escape(text)}</u>" if len(cover) > 1 else escape(text)
    return f'<span title="{title}" style="background:{style}">{tag}{words}</span>'


def _tag(cover: list[_Piece], opens: bool) -> str:
    """The numbers of the chunks that hold what follows: filled where a chunk begins, outlined where one goes on."""
    last = cover[-1].number
    numbers = "+".join(str(p.number) for p in cover) if len(cover) < 4 else f"{cover[0].number}…{last}"
    numbers += "".join(f" · hit {p.rank}" for p in cover[-1:] if p.rank)
    if opens:
        style = f"background:{rgba(last)};color:{'#fff' if last % 4 == 0 else '#000'}"
    else:
        style = f"border:1px solid {rgba(last)}"
    return f'<sup dir="ltr" style="{_TAG}{style}">{numbers}</sup>'


def rgba(number: int, opacity: float | None = None) -> str:
    """The colour of a chunk of this number, for CSS; with an opacity, from 0 to 1, as a background."""
    numbers = ",".join(map(str, _COLOURS[number % len(_COLOURS)]))
    return f"rgba({numbers},{opacity:.2f})".replace("0.", ".") if opacity else f"rgb({numbers})"


def _hover(p: _Piece) -> str:
    hover = f"chunk {p.number}: {p.start:,}–{p.end:,}, {many(p.end - p.start, 'character')}" + (p.id and f", {p.id}")
    return hover + (f", hit {p.rank}" if p.rank else "")


def escape(text: str, attribute: bool = False) -> str:
    """HTML that shows the text as it is: no mark-up, no mathematics, nothing that a page cannot carry."""
    safe = html.escape(text.translate(_VISIBLE), quote=attribute)
    if attribute:
        return safe.replace("\r", "&#13;").replace("\n", "&#10;")
    if "\r" in safe or not safe.isascii():
        # A page reads a return of its own as a line feed or as a space: it is shown as a sign and a break.
        safe = _LONE_BREAK.sub(lambda m: ("\u240d" if m[0] == "\r" else m[0]) + "<br>", safe)
    return safe.replace("\r", "&#13;").replace("$", "<span>$</span>")


# HTML has no NUL and no surrogates; other control characters would be invisible. Tab, line feed and return stay.
_VISIBLE = {code: 0x2400 + code for code in range(32) if code not in (9, 10, 13)}
_VISIBLE |= {127: 0x2421} | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)


def many(number: int, noun: str) -> str:
    """So many of something, in words.

    >>> many(1, "chunk"), many(1200, "chunk")
    ('1 chunk', '1,200 chunks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _plain(text: str, pieces: list[_Piece], summary: str, first: int, last: int) -> str:
    """The summary, and a line for each of the first chunks of the part."""
    seen = [p for p in pieces if p.end > first and p.start < last]
    texts = [repr(text[p.start : p.end][:60]) + (f" (hit {p.rank})" if p.rank else "") for p in seen[:_ROWS]]
    rows = [(str(p.number), f"{p.start}–{p.end}", t) for p, t in zip(seen, texts, strict=False)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"  {number:>{widths[0]}}  {span:<{widths[1]}}  {start}" for number, span, start in rows]
    more = [f"  … {many(len(seen) - _ROWS, 'chunk')} more"] if len(seen) > _ROWS else []
    return "\n".join([summary, *lines, *more])
