"""Read an HTML page into Markdown elements, as a reader of the page would see it.

Headings, paragraphs, nested lists, tables and preformatted text are kept; scripts, styles and what is hidden are left
out; links give their words. It serves whoever chunks pages saved from the web. The parser is libxml2's, through lxml:
it mends what is badly nested as browsers do, reads as a stream (so that no depth of nesting costs more than its
length), fetches nothing and knows no entities but HTML's own. Some million characters a second.
"""

from __future__ import annotations

import re
import time
from typing import Any

from chunklab.formats.elements import Cell, DocumentError, Element, check_amount, code, heading, item, paragraph, table

_BLOCKS = set(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre search section summary table "
    "tbody td tfoot th thead tr ul".split()
)
_UNSEEN = set("canvas datalist iframe noscript object rp rt script select style svg template".split())
# Elements without content: the parser takes some for open ones, and what follows for their content.
_EMPTY = set("area base br col embed hr img input link meta param source track wbr".split())
_LISTS = {"ul", "ol", "menu", "dir"}
_DEEPEST_TABLE = 10  # of tables within tables; deeper ones are read as if they were not there
_PIECE = 20_000
_DEEPEST = 500_000  # the parser compares each end tag with all elements that are open
MAX_SECONDS = 60.0
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_WHITE = re.compile(r"[ \t\n\r\f]+")


def read_html(text: str) -> tuple[list[Element], str]:
    """Read a page.

    Args:
        text: the page's source.

    Returns:
        Its elements in reading order, and its title ("" if it has none).

    Raises:
        DocumentError: too much text, too large a table, too deep, or too slow.

    >>> elements, title = read_html("<title>T</title><h2>Bells</h2><ul><li>low<li>high</ul><p hidden>x")
    >>> [element.text for element in elements], title
    (['## Bells', '- low', '- high'], 'T')
    """
    from lxml import etree

    page = _Page()
    # The encoding is said, or the page's own meta element would be believed. The tree is as huge as the text allows.
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    source = text.encode("utf-8")
    deadline = time.monotonic() + MAX_SECONDS
    for place in range(0, len(source), _PIECE):  # in pieces, since an error ends the reading at the end of one
        parser.feed(source[place : place + _PIECE])
        if page.depth > _DEEPEST or time.monotonic() > deadline:
            raise DocumentError(f"is too deeply nested, or takes more than {MAX_SECONDS:.0f} s to read: split it")
    parser.close()
    return page.frames[0], " ".join("".join(page.title).split())


class _Page:
    """Takes the parser's events, and builds the elements from them."""

    def __init__(self) -> None:
        self.frames: list[list[Element]] = [[]]  # the elements of the page, then of each open cell
        self.tables: list[list[list[Cell]]] = []
        self.spans: list[tuple[int, int]] = []
        self.lists: list[int | None] = []  # the next number of each open list; None where it has bullets
        self.marker = ""  # of the item that was opened and has no text so far
        self.texts: list[str] = []
        self.title: list[str] = []
        self.level = self.preformatted = self.unseen = self.size = self.count = self.deep = self.depth = 0
        self.in_title = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.unseen or tag in _UNSEEN or (tag not in _EMPTY and _is_hidden(attributes)):
            self.unseen += 1
            return
        if tag == "br":
            self.texts.append("\n")
        elif tag == "title":
            self.in_title = True
        elif tag in _BLOCKS:
            self.flush()
            self.open(tag, attributes)

    def open(self, tag: str, attributes: dict[str, str]) -> None:
        """A block begins."""
        if tag in _LISTS:
            self.lists.append(_whole(attributes.get("start"), 1) if tag == "ol" else None)
        elif tag == "li":
            number = self.lists[-1] if self.lists else None
            if number is not None:
                number = _whole(attributes.get("value"), number)
                self.lists[-1] = number + 1
            self.marker = "-" if number is None else f"{number}."
        elif tag == "pre":
            self.preformatted += 1
        elif tag == "table":
            if self.deep or len(self.tables) == _DEEPEST_TABLE:
                self.deep += 1
            else:
                self.tables.append([])
        elif tag == "tr" and self.tables and not self.deep:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and not self.deep:
            self.frames.append([])
            self.spans.append((_whole(attributes.get("colspan"), 1), _whole(attributes.get("rowspan"), 1)))
        elif tag[0] == "h" and tag[1:].isdigit():
            self.level = int(tag[1:])

    def end(self, tag: str) -> None:
        self.depth -= 1
        if self.unseen:
            self.unseen -= 1
        elif tag == "title":
            self.in_title = False
        elif tag in _BLOCKS:
            self.flush()
            self.shut(tag)

    def shut(self, tag: str) -> None:
        """A block ends."""
        if tag in _LISTS and self.lists:
            self.lists.pop()
        elif tag == "li":
            self.marker = ""
        elif tag == "pre":
            self.preformatted -= 1
        elif tag == "table" and self.deep:
            self.deep -= 1
        elif tag == "table" and self.tables:
            found = table(self.tables.pop())
            self.frames[-1] += found
            self.weigh(sum(len(element.text) for element in found[:1]))
        elif tag in ("td", "th") and self.spans and not self.deep:
            rows = self.tables[-1]
            if not rows:
                rows.append([])
            rows[-1].append(Cell(self.frames.pop(), *self.spans.pop()))
        elif tag[0] == "h" and tag[1:].isdigit():
            self.level = 0

    def data(self, text: str) -> None:
        if self.in_title:
            self.title.append(text)
        elif not self.unseen:
            self.texts.append(text if self.preformatted else _WHITE.sub(" ", text))

    def flush(self) -> None:
        """What was read since the last block began or ended is an element."""
        text = "".join(self.texts)
        self.texts.clear()
        if self.preformatted:
            if text.strip():
                self.add(code(text.strip("\r\n")))
            return
        text = re.sub(r" *\n *", "\n", re.sub(" {2,}", " ", text)).strip()
        if not text:
            return
        if self.level:
            self.add(heading(text, self.level))
        elif self.marker:
            self.add(item(text, self.marker, max(len(self.lists), 1)))
            self.marker = ""
        else:
            self.add(paragraph(text, len(self.lists)))

    def add(self, element: Element) -> None:
        self.weigh(len(element.text))
        self.frames[-1].append(element)

    def weigh(self, characters: int) -> None:
        self.size += characters
        self.count += 1
        check_amount(self.size, self.count)

    def close(self) -> None:
        self.flush()


def _is_hidden(attributes: Any) -> bool:
    return "hidden" in attributes or bool(_HIDING.search(attributes.get("style", "")))


def _whole(text: str | None, default: int) -> int:
    """The number that an attribute gives."""
    found = re.match(r"\s*(\d{1,6})", text or "")
    return int(found.group(1)) if found else default
