"""The report of a recommendation: one HTML file that needs nothing else, and can be handed on.

For whoever has to show why a chunker was chosen. Figures are in the page, with words that say what they show; it is
legible on a light and on a dark screen, without a script and without anything from elsewhere, which a policy in its
head forbids besides. Texts and names of files come from documents of strangers: all of it is shown, none of it is
mark-up. Cost: two figures, about a second.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from chunklab.choosing import REST, variance_explained
from chunklab.figures import _png
from chunklab.rows import METRICS, shown_gain
from chunklab.score_figures import plot_scores, plot_sweep
from chunklab.view import _VISIBLE

if TYPE_CHECKING:
    import pandas as pd

_DRAWN = 12  # runs in the figure
_LISTED = 200  # questions, and of what was dropped
_ILLEGAL = _VISIBLE | dict.fromkeys((0xFFFE, 0xFFFF), 0xFFFD)
_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 62em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 system-ui, sans-serif; background: Canvas;
  color: CanvasText; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border-bottom: 1px solid GrayText; padding: .3em .6em; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
tr.best { font-weight: bold; }
div.wide { overflow-x: auto; }
.words { overflow-wrap: anywhere; }
img { max-width: min(100%, 44em); height: auto; background: white; border-radius: 4px; }
p.verdict { border-left: 4px solid; padding-left: 1em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid GrayText; padding: .6em; }
"""


def page(made: Any, mark: str) -> str:
    """The whole page.

    Args:
        made: what is reported, a `Recommendation`.
        mark: a line for its head that says what wrote it.
    """
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8" />',
            mark,
            f'<meta http-equiv="Content-Security-Policy" content="{policy}" />',
            '<meta name="viewport" content="width=device-width" />',
            f"<title>Chunking: {escaped(made.name)}</title><style>{_STYLE}</style></head>",
            "<body><main>",
            "<h1>How to chunk these documents</h1>",
            f'<p class="verdict words">{escaped(made.text())}</p>',
            *_held_against(made),
            *_sweep(made),
            *_documents(made),
            *_questions(made),
            *_going_on(made),
            "</main></body></html>\n",
        ]
    )


def escaped(text: Any) -> str:
    """A text as it is, whatever it holds: no mark-up, no character that a page cannot carry, its direction its own.

    >>> escaped("<b>&'")
    '<bdi>&lt;b&gt;&amp;&#x27;</bdi>'
    """
    return f"<bdi>{html.escape(str(text).translate(_ILLEGAL)).replace(chr(13), '&#13;')}</bdi>"


def _table(titles: Sequence[str], lines: Iterable[Sequence[Any]], numbers: int, best: int = -1) -> str:
    """A table whose last so many columns are numbers."""
    kinds = ["words"] * (len(titles) - numbers) + ["n"] * numbers
    head = "".join(
        f'<th class="{kind}" scope="col">{escaped(title)}</th>' for kind, title in zip(kinds, titles, strict=True)
    )
    body = []
    for place, line in enumerate(lines):
        cells = "".join(f'<td class="{kind}">{escaped(cell)}</td>' for kind, cell in zip(kinds, line, strict=True))
        body.append(f'<tr class="best">{cells}</tr>' if place == best else f"<tr>{cells}</tr>")
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _picture(figure: Any) -> str:
    alt = html.escape(figure.alt.translate(_ILLEGAL))
    return f'<p><img alt="{alt}" src="data:image/png;base64,{b64encode(_png(figure)).decode()}" /></p>'


def _held_against(made: Any) -> list[str]:
    from chunklab.metrics import bootstrap

    lines = []
    for name, row in made.rows.items():
        shares = []
        for metric in METRICS:
            values = 100 * row.scores[metric]
            low, high = bootstrap(values)
            shares.append(f"{values.mean():.1f} [{low:.1f}, {high:.1f}]")
        lines.append([name, f"{len(row.sizes):,}", f"{row.sizes.mean():,.0f}", *shares, f"{row.tokens.mean():,.0f}"])
    gains = [[d.one, d.other, shown_gain(d.mean, d.low, d.high), len(d.higher), len(d.lower)] for d in made.differences]
    count = made.differences[0].questions
    which = "the half of them that chose nothing" if made.halved else "all of them, which chose as well"
    titles = ["method", "chunks", "characters", "recall %", "precision %", "IoU %", "tokens read"]
    return [
        "<h2>The best held against the rest</h2>",
        (
            f"<p>On {count} {made.what}, {which}; {made.max_tokens:,} tokens a question at most; the model is "
            f"{escaped(made.embedder)}. In brackets: 95 % intervals over the questions.</p>"
        ),
        _table(titles, lines, 6, list(made.rows).index(made.name)),
        "<p>Differences in recall, in percentage points, on the same questions:</p>",
        _table(["method", "minus", "points", "higher in", "lower in"], gains, 3),
    ]


def _sweep(made: Any) -> list[str]:
    frame = made.frame.copy()
    words = ["words and meaning" if strategy == "words too" else "meaning" for strategy in frame["strategy"]]
    names = [f"{c} {s} by {w}" for c, s, w in zip(frame["chunker"], frame["chunk_size"], words, strict=True)]
    again = frame["embedder"].nunique() > 1
    frame.index = [f"{n}, {e}" for n, e in zip(names, frame["embedder"], strict=True)] if again else names
    frame = frame.sort_values(["recall", "precision"], ascending=False, kind="stable")
    by_meaning = made.frame[(made.frame["strategy"] == "meaning")].drop_duplicates(["chunker", "chunk_size"])
    lines = [
        [name, *(_share(row, m) for m in METRICS), f"{row['chunks']:,.0f}", f"{row['tokens']:,.0f}"]
        for name, row in frame.iterrows()
    ]
    asked = int(frame["questions"].iloc[0])
    return [
        "<h2>The sweep</h2>",
        f"<p>Every method and size, measured on {asked} {made.what}"
        + (", the half that chose.</p>" if made.halved else ".</p>"),
        "<p>With known-item queries, a search by words too is not tried: their words are those of the text.</p>"
        if made.with_known_items
        else "",
        _picture(plot_scores(frame.head(_DRAWN))),
        _picture(plot_sweep(by_meaning, "chunk_size", "recall", "chunker")),
        f"<p>First the best {min(_DRAWN, len(frame))} runs; then recall over the size, in a search by meaning.</p>",
        _what_moved(made),
        _table(["method", "recall %", "precision %", "IoU %", "chunks", "tokens read"], lines, 5),
    ]


def _what_moved(made: Any) -> str:
    """How much of the variance between the runs goes with each choice; "" where nothing moved."""
    words = {"chunker": "the method", "chunk_size": "the size", "strategy": "the search", REST: "what they do together"}
    frame = made.frame[made.frame["embedder"] == made.frame["embedder"].iloc[0]]
    try:
        shares = variance_explained(frame, [name for name in words if name != REST and frame[name].nunique() > 1])
    except ValueError:  # all runs alike, or one method alone
        return ""
    ends = shares.round().astype(int).itertuples()
    said = [f"{words[name]} {share} % [{low}, {high}]" for name, share, low, high in ends]
    return f"<p>Of the variance between the runs' recall go with {'; with '.join(said)}.</p>"


def _share(row: pd.Series, metric: str) -> str:
    return f"{row[metric]:.1f} [{row[f'{metric}_low']:.1f}, {row[f'{metric}_high']:.1f}]"


def _documents(made: Any) -> list[str]:
    own = made.own
    parts = ["<h2>The documents</h2>"]
    parts.append(
        _table(
            ["document", "format", "characters"], [[n, own.formats[n], f"{len(t):,}"] for n, t in own.texts.items()], 1
        )
    )
    if own.doubled:
        parts.append("<p>Left out, as half or more of it stands in another, and both would answer a question:</p>")
        parts.append(_table(["left out", "stands in"], own.doubled.items(), 0))
    if own.unread:
        parts.append("<p>Could not be read:</p>")
        parts.append(f'<ul class="words">{"".join(f"<li>{escaped(line)}</li>" for line in own.unread)}</ul>')
    return parts


def _questions(made: Any) -> list[str]:
    parts = [f"<h2>The {made.what}</h2>"]
    if made.with_known_items:
        parts.append(
            "<p>Each is a sentence of the documents, asked for by its four rarest words. They are no questions: they "
            "hold the words of their answer, and say nothing of how people ask.</p>"
        )
    parts.append(_listed(made.questions, made.with_known_items))
    if made.with_known_items and len(made.asked):
        parts.append("<h3>Questions that there are, too few to measure with</h3>")
        parts.append(_listed(made.asked))
    if made.problem:
        parts.append(f'<p class="words">Why there are no more: {escaped(made.problem)}</p>')
    if dropped := made.asked.dropped:
        parts.append(f"<h3>Dropped: {len(dropped)}</h3>")
        parts.append(_table(["why", "how many"], made.asked.reasons.items(), 1))
        parts.append("<details><summary>One by one</summary>")
        parts.append(
            _table(["why", "question", "answer"], [[d.reason, d.question, d.answer] for d in dropped[:_LISTED]], 0)
        )
        parts.append("</details>")
    return parts


def _listed(questions: Iterable[Any], known_items: bool = False) -> str:
    lines = []
    for one in list(questions)[:_LISTED]:
        gold = " … ".join(span.quote for span in one.spans)
        where = ", ".join(dict.fromkeys(span.document for span in one.spans))
        lines.append([one.question, *([] if known_items else [one.answer]), gold, where])
    titles = ["query", "gold quote", "document"] if known_items else ["question", "answer", "gold quote", "document"]
    return _table(titles, lines, 0)


def _going_on(made: Any) -> list[str]:
    document, text = next(iter(made.own.texts.items()))
    quote = " ".join(text.split()[:8])
    line = {"question": "…?", "answer": "…", "spans": [{"document": document, "quote": quote}]}
    where = "the questions file; give an output, so that there is one" if made.path is None else escaped(made.path)
    return [
        "<h2>How to go on</h2>",
        (
            '<p class="words">Read the questions: what is wrong, ambiguous or trivial costs more than a missing one. '
            f"Correct or delete lines in {where}, add your own, and run the same again: what you wrote stays, and "
            "nothing is asked twice. A question of your own is a line such as</p>"
        ),
        f"<pre>{escaped(json.dumps(line, ensure_ascii=False))}</pre>",
        (
            "<p>where the quote is the text that holds the answer. Questions that people really ask are worth more "
            "than any that a model writes.</p>"
        ),
    ]
