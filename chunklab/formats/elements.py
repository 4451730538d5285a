"""What every format is read into: elements in reading order, written as Markdown.

An HTML page and a Word file say what is a heading, a list or a table, and a chunker that goes by headings needs to see
it. So their elements are written as Markdown: `## Heading`, `- item`, `| cell | cell |`. It serves the readers beside
it; tables follow GitHub Flavored Markdown, the rest CommonMark. All of it is linear, and bounded by the
limits here, whatever a file declares.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CHARACTERS = 20_000_000
MAX_ELEMENTS = 1_000_000
MAX_CELLS = 1_000_000
_MAX_SPAN = 100
_MAX_INDENT = 8
_LONG_CELL = 1_000

# What would make a heading, a code block or an HTML block that runs on of a line that is none of these.
_MISREAD = re.compile(
    r"^(?=\#{1,6}(?:\s|\Z) | ``` | ~~~ | <(?:[!?]|(?i:script|pre|style|textarea)\b)) | (?<=\n)(?=(?:=+|-+)[ \t]*$)",
    re.MULTILINE | re.VERBOSE,
)


class DocumentError(OSError, ValueError):
    """A file that cannot be read as a document; the message says why, and what can be done."""


class Element(NamedTuple):
    """One element: a line, a page, or a block of a page or Word file.

    Attributes:
        text: as it stands in the document.
        plain: as it stands in the cell of a table, without the signs of Markdown.
        in_list: an item, which the next item follows without a blank line between.
        is_heading: a heading.
    """

    text: str
    plain: str = ""
    in_list: bool = False
    is_heading: bool = False


class Cell(NamedTuple):
    """One cell of a table: its elements, and how many columns and rows it spans."""

    elements: list[Element]
    columns: int = 1
    rows: int = 1


def check_amount(characters: int, elements: int = 0) -> None:
    """Raise DocumentError if a document has more characters, or more elements, than one may have."""
    if characters > MAX_CHARACTERS:
        raise DocumentError(f"holds more text than can be read at once: at most {MAX_CHARACTERS:,} characters")
    if elements > MAX_ELEMENTS:
        raise DocumentError(f"holds more elements than can be read at once: at most {MAX_ELEMENTS:,}")


def heading(text: str, level: int) -> Element:
    """A heading; Markdown has six levels.

    >>> heading("Watches\\nat night", 2).text
    '## Watches at night'
    """
    text = " ".join(text.split())
    return Element(f"{'#' * min(level, 6)} {text}", text, is_heading=True)


def paragraph(text: str, depth: int = 0) -> Element:
    """A paragraph; `depth` lists around it indent it, so that it stays part of its item.

    >>> paragraph("# no heading").text
    '\\\\# no heading'
    """
    return Element(_indented(_MISREAD.sub(r"\\", text), _indent(depth)), text)


def item(text: str, marker: str, depth: int = 1) -> Element:
    """An item of a list that has `depth - 1` lists around it.

    >>> item("lamps", "-", depth=2).text
    '    - lamps'
    """
    lead = _indent(depth - 1)
    body = _indented(_MISREAD.sub(r"\\", text), lead + " " * (len(marker) + 1))
    return Element(f"{lead}{marker} {body.lstrip()}", text if marker == "-" else f"{marker} {text}", in_list=True)


def code(text: str) -> Element:
    """A block of code, in a fence that nothing in it can close."""
    runs = re.findall(r"^ {0,3}(`{3,})", text, re.MULTILINE)
    fence = "`" * max([3, *(len(run) + 1 for run in runs)])
    return Element(f"{fence}\n{text}\n{fence}", text)


def table(rows: list[list[Cell]]) -> list[Element]:
    """The elements that a table gives.

    One element, as a rule: a Markdown table, whose first row is its header, and where a merged cell's text stands once.
    But a table of one column, or one whose cells hold headings or a thousand characters, only lays out a page: then the
    elements of its cells, in order.

    Args:
        rows: the rows, each a list of its cells.

    Raises:
        DocumentError: more than `MAX_CELLS` cells once merged cells are spread.

    >>> print(table([[Cell([Element("", "KEY")]), Cell([Element("", "a|b")])]])[0].text)
    | KEY | a\\|b |
    | --- | --- |
    """
    rows = [row for row in rows if row]
    cells = [cell for row in rows for cell in row]
    if max(map(_width, rows), default=0) < 2 or any(map(_is_layout, cells)):
        return [element for cell in cells for element in cell.elements]
    grid = _grid(rows)
    if not any(map(any, grid)):
        return []
    width = max(map(len, grid))
    lines = [_line(grid[0] + [""] * (width - len(grid[0]))), _line(["---"] * width), *map(_line, grid[1:])]
    return [Element("\n".join(lines), " ".join(text for row in grid for text in row if text))]


def joint(previous: Element, following: Element) -> str:
    """What stands between two elements: a blank line, but not between items.

    A list inside an item needs the blank line all the same where its first number is not 1: CommonMark asks for it.
    """
    if not (previous.in_list and following.in_list):
        return "\n\n"
    deeper = _depth(following.text) > _depth(previous.text)
    return "\n\n" if deeper and re.match(r" *(?!1[.)])\d", following.text) else "\n"


def _indent(depth: int) -> str:
    # Four spaces nest under "- " and under "12. "; an end to it, or deep nesting would make a text's size its square.
    return "    " * min(depth, _MAX_INDENT)


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _indented(text: str, indent: str) -> str:
    return indent + text.replace("\n", "\n" + indent) if indent else text


def _width(row: list[Cell]) -> int:
    return sum(_bounded(cell.columns) for cell in row)


def _bounded(span: int) -> int:
    return max(1, min(span, _MAX_SPAN))


def _is_layout(cell: Cell) -> bool:
    return any(e.is_heading for e in cell.elements) or sum(len(e.plain) for e in cell.elements) > _LONG_CELL


def _grid(rows: list[list[Cell]]) -> list[list[str]]:
    """The texts of the cells in their columns; "" for what a merged cell covers."""
    grid: list[list[str]] = []
    covered: dict[int, int] = {}  # column: how many more rows a cell above reaches down
    count = 0
    for row in rows:
        texts: list[str] = []
        for cell in row:
            _cover(texts, covered)
            width = _bounded(cell.columns)
            if cell.rows > 1:
                covered |= dict.fromkeys(range(len(texts), len(texts) + width), cell.rows - 1)
            texts += [" ".join(element.plain for element in cell.elements), *[""] * (width - 1)]
        _cover(texts, covered)
        grid.append(texts)
        count += len(texts)
        if count > MAX_CELLS:
            raise DocumentError(f"holds a table of more than {MAX_CELLS:,} cells")
    return grid


def _cover(texts: list[str], covered: dict[int, int]) -> None:
    """Add an empty text for each column from here on that a cell above reaches into."""
    while covered.get(len(texts), 0) and len(texts) < MAX_CELLS:
        covered[len(texts)] -= 1
        texts.append("")


def _line(texts: list[str]) -> str:
    cells = [" ".join(text.split()).replace("|", "\\|") for text in texts]
    return f"| {' | '.join(cells)} |"
