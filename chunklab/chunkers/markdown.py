"""Markdown, read once: its blocks, and the sections that its headings make, with their places in the text.

What is a heading is CommonMark's to say (commonmark.org), and no regular expression can: a "#" in code, in a comment or
in front matter is none, a line of dashes under a text makes it one. So a parser that keeps to the specification reads
the text: pulldown-cmark, through pyromark. It gives places in bytes; here they are in characters. Cost: one pass, and
its time grows linearly on hostile text too.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from pyromark import Options, events_with_range

from chunklab.chunk import BOM, check_text, last_boundary
from chunklab.chunkers.words import Words

_KINDS = {
    "Paragraph": "paragraph", "Heading": "heading", "BlockQuote": "quote", "List": "list", "Item": "item",
    "CodeBlock": "code", "HtmlBlock": "html", "Table": "table", "TableRow": "row",
}  # fmt: skip
_CONTAINERS = {"quote", "list", "item"}
_DEEPEST = 100  # quotes and lists inside more than this are not told apart: a text of ">" alone would fill the memory
_LONGEST_TITLE = 300  # characters of a title in a path: each chunk of its topic repeats it
_LINE_END = re.compile("\r\n|[\n\r\u2028\u2029]")
_OTHER_LINE_END = re.compile("\r(?!\n)|[\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_YAML_END = r"(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
_YAML_LINE = r"(?:[ \t#\]}-].*|[\w\"'.][^:\n]*:.*|[ \t\r]*)\n"
_FRONT_MATTER = re.compile(
    rf"---[ \t]*\r?\n(?=(?>#.*\s+)*+(?:[\w\"'.][^:\n]*:\s|---))(?>(?!{_YAML_END}){_YAML_LINE})*+{_YAML_END}"
    r"|\+\+\+[ \t]*\r?\n(?>(?!\+\+\+).*\n)*+\+\+\+[ \t]*(?:\r?\n|\Z)"
)
_LITERAL = r"pre|script|style|textarea"
_LITERAL_TAG = re.compile(rf"^[ \t>*+\d.)-]*<({_LITERAL})(?=[ \t\r>]|$)|</({_LITERAL})>", re.MULTILINE | re.IGNORECASE)
_CLOSING_MARKS = re.compile(r"(?:\A|(?<=[ \t]))#+\Z")


class Block(NamedTuple):
    """A block of Markdown.

    Attributes:
        kind: paragraph, heading, quote, list, item, code, html, table or row.
        start: where it starts.
        end: where it ends.
        line: where the line starts that it starts on.
        after: the index of the first block after it that is not inside it.
        level: of a heading, from 1 to 6; of a code block, 1 if it has fences.
        title: of a heading, its plain text.
    """

    kind: str
    start: int
    end: int
    line: int
    after: int
    level: int = 0
    title: str = ""


class Section(NamedTuple):
    """A heading with the text up to the next one; what stands before the first heading has level 0.

    Attributes:
        level: of its heading.
        start: where it starts.
        body: where its heading ends.
        block: the index of its first block, the heading.
        path: the titles of the headings above it, and its own; of a long one, the beginning.
        after: the index of the first section that is not below this one.
    """

    level: int
    start: int
    body: int
    block: int
    path: list[str]
    after: int


class Outline(NamedTuple):
    """A text that was read: its blocks, its sections and where they start (and where the text ends), its words."""

    text: str
    blocks: list[Block]
    sections: list[Section]
    starts: list[int]
    words: Words


def parse(text: str) -> list[Block]:
    """The blocks of a Markdown text: CommonMark's, and GitHub's tables.

    Any line end of Unicode ends a line. A byte order mark and front matter at the beginning are passed over.

    Args:
        text: the document.

    Returns:
        Its blocks in order, each before those inside it.

    >>> [(block.kind, block.start, block.end) for block in parse("# One\\n\\n> two")]
    [('heading', 0, 6), ('quote', 7, 12), ('paragraph', 9, 12)]
    """
    source, begin = _source(text)
    found: list[tuple[str, int, int, int]] = []  # kind, start, end, level
    titles: dict[int, list[str]] = {}
    around: list[int] = []  # where the containers end that the next block may be inside of
    title_end = 0
    event: Any  # of some twenty types
    for event, place in events_with_range(source, options=Options.ENABLE_TABLES):
        if "Start" in event:
            tag = event["Start"]
            kind = _KINDS.get(tag if tag.__class__ is str else next(iter(tag)))
            if kind:
                start, end, level = place["start"], place["end"], 0
                if kind in _CONTAINERS:
                    while around and start >= around[-1]:
                        around.pop()
                    if len(around) == _DEEPEST:
                        continue
                    around.append(end)
                elif kind == "heading":
                    level, title_end = int(tag["Heading"]["level"][1]), end
                elif kind == "code":
                    level = int(tag["CodeBlock"] != "Indented")
                found.append((kind, start, end, level))
        elif title_end and place["start"] < title_end:
            titles.setdefault(len(found) - 1, []).append(_spoken(event))
    return _blocks(text, source, begin, found, titles)


def _spoken(event: str | dict[str, Any]) -> str:
    """What an event inside a heading adds to its plain text."""
    if isinstance(event, dict):
        return event.get("Text") or event.get("Code") or ""
    return " " if event in ("SoftBreak", "HardBreak") else ""


def _source(text: str) -> tuple[str, int]:
    """What the parser is given, character for character, and where that begins: after BOM and front matter."""
    begin = len(text) - len(text.lstrip(BOM))
    source = text[begin:]
    if any(mark in source for mark in "\r\u2028\u2029"):
        source = _OTHER_LINE_END.sub("\n", source)
    try:
        source.encode()
    except UnicodeEncodeError:
        source = _SURROGATE.sub("\ufffd", source)
    front = _FRONT_MATTER.match(source)
    if front:
        begin += front.end()
        source = source[front.end() :]
    return (_with_one_literal_tag(source) if "</" in source else source), begin


def _with_one_literal_tag(source: str) -> str:
    """The text, if it has HTML blocks of several such tags, or in capitals, with one tag for all of them.

    `<pre>` may end at `</SCRIPT>`, says CommonMark; the parser waits for `</pre>`. So it is given `</pre>   `.
    """
    names = {tag[1] or tag[2] for tag in _LITERAL_TAG.finditer(source)}
    alike = len(names) < 2 and all(name.islower() for name in names)
    return source if alike else _LITERAL_TAG.sub(_as_pre, source)


def _as_pre(tag: re.Match[str]) -> str:
    renamed = tag[0].replace(tag[1] or tag[2], "pre")
    return renamed + " " * (len(tag[0]) - len(renamed))


def _blocks(
    text: str, source: str, begin: int, found: list[tuple[str, int, int, int]], titles: dict[int, list[str]]
) -> list[Block]:
    """The blocks that were found, with their places in characters of the text; the parser gave bytes of UTF-8."""
    data = np.frombuffer(source.encode(), np.uint8)
    starts, ends = (np.fromiter((row[k] for row in found), np.int64, len(found)) for k in (1, 2))
    after = np.maximum(np.searchsorted(starts, ends), np.arange(1, len(found) + 1))
    line_starts = np.concatenate(([0], np.flatnonzero(data == ord("\n")) + 1))
    columns = [starts, ends, line_starts[np.searchsorted(line_starts, starts, "right") - 1]]
    if not source.isascii():
        later_bytes = np.flatnonzero((data & 0xC0) == 0x80)  # all but the first of a character
        columns = [column - np.searchsorted(later_bytes, column) for column in columns]
    places = ((column + begin).tolist() for column in columns)
    kinds, levels = [row[0] for row in found], [row[3] for row in found]
    blocks = list(map(Block, kinds, *places, after.tolist(), levels))
    for index, pieces in titles.items():
        title = "".join(pieces)
        title = raw_title(text, blocks[index]) if "</pre>" in title else " ".join(title.split())
        blocks[index] = blocks[index]._replace(title=title)
    return blocks


def headings(text: str) -> list[Block]:
    """All headings of a Markdown text, also those in block quotes and lists.

    Args:
        text: the document.

    Returns:
        The headings in order, with `level` and `title`.

    Raises:
        ValueError: a text that is no str.

    >>> [(heading.level, heading.title) for heading in headings("# One #\\n> ## *Two*\\n\\nThree\\n---\\n")]
    [(1, 'One'), (2, 'Two'), (2, 'Three')]
    """
    return [block for block in parse(check_text(text)) if block.kind == "heading"]


def sections(text: str, blocks: list[Block]) -> list[Section]:
    """The sections that the headings of a text make; headings inside quotes and lists make none.

    Args:
        text: the document.
        blocks: what `parse` gives for it.

    Returns:
        The sections in order; together they are the text. The first is what stands before the first heading: often
        nothing.

    >>> text = "# One\\n## Two\\n- # item\\n\\n# Three"
    >>> [section.path for section in sections(text, parse(text))]
    [[], ['One'], ['One', 'Two'], ['Three']]
    """
    begin = len(text) - len(text.lstrip(BOM))
    rows: list[list[Any]] = [[0, begin, begin, 0, [], 0]]
    above, index = [0], 0
    while index < len(blocks):
        block = blocks[index]
        if block.kind == "heading":
            while rows[above[-1]][0] >= block.level:
                rows[above.pop()][-1] = len(rows)
            title = block.title or raw_title(text, block)
            if len(title) > _LONGEST_TITLE:
                title = title[: last_boundary(title, 0, _LONGEST_TITLE - 1)] + "…"
            path = [*rows[above[-1]][4], title]
            above.append(len(rows))
            rows.append([block.level, block.line, block.end, index, path, 0])
        index = block.after
    for row in above:
        rows[row][-1] = len(rows)
    return [Section(*row) for row in rows]


def raw_title(text: str, heading: Block) -> str:
    """A heading's text as it is written, without its marks and on one line.

    >>> text = "## *One* `two` ##"
    >>> raw_title(text, parse(text)[0])
    '*One* `two`'
    """
    lines = _LINE_END.split(text[heading.start : heading.end].strip())
    if len(lines) == 1:
        return _CLOSING_MARKS.sub("", lines[0].lstrip("#").strip()).strip()
    return " ".join(" ".join(lines[:-1]).split())


def outline(text: str) -> Outline:
    """Read a text, once: all that is known of it before it is cut."""
    blocks = parse(text)
    found = sections(text, blocks)
    return Outline(text, blocks, found, [*(section.start for section in found), len(text)], Words(text))
