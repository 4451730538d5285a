"""What a Word file says of its paragraphs elsewhere: in the styles part, and in the numbering part.

A paragraph names a style, the style may be based on another, and its number is not in the file at all: Word counts it
anew whenever it shows the file. It serves `docx.py` beside it, and costs a look-up a paragraph.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from lxml.etree import _Element

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")]
_ROMAN += [(10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]
_LONGEST_CHAIN = 20  # of styles based on one another; a hostile file may make a circle of them
_LONGEST_LABEL = 40
_LEVELS = 9


class Style(NamedTuple):
    """What the style of a paragraph, and the paragraph itself, say of it."""

    heading: int  # 1 to 9; 0 for none
    number: str  # the id of the numbering that it is part of; "" for none
    level: int  # its level there, from 0
    depth: int  # how deep its list is nested at least, by the name of the style


class Styles:
    """The paragraph styles; one takes from the style that it is based on what it does not say itself."""

    def __init__(self, element: _Element) -> None:
        self.elements = {style.get(W + "styleId"): style for style in element.iterchildren(W + "style")}
        self.known: dict[str | None, Style] = {}

    def of(self, element: _Element) -> Style:
        properties = element.find(W + "pPr")
        if properties is None:
            return Style(0, "", 0, 0)
        name = value(properties.find(W + "pStyle"))
        if name not in self.known:
            self.known[name] = self.named(name)
        return _own(properties, self.known[name])

    def named(self, name: str | None) -> Style:
        chain: list[Any] = []
        while name in self.elements and len(chain) < _LONGEST_CHAIN:
            chain.append(self.elements[name])
            name = value(chain[-1].find(W + "basedOn"))
        found = Style(0, "", 0, 0)
        for style in reversed(chain):
            label = (value(style.find(W + "name")) or "").lower()
            if built_in := re.fullmatch(r"(?:heading|list (?:bullet|number)) ([1-9])", label):
                level = int(built_in.group(1))
                found = found._replace(heading=level) if label[0] == "h" else found._replace(depth=level - 1)
            elif label == "title":
                found = found._replace(heading=1)
            if (properties := style.find(W + "pPr")) is not None:
                found = _own(properties, found)
        return found


def _own(properties: _Element, inherited: Style) -> Style:
    """What the properties say, else what was inherited."""
    outline = properties.find(W + "outlineLvl")
    heading = inherited.heading if outline is None else (whole(outline, 9) + 1) % 10
    numbered = properties.find(W + "numPr")
    if numbered is None:
        return inherited._replace(heading=heading)
    number = value(numbered.find(W + "numId"))
    number = inherited.number if number is None else "" if number == "0" else number
    level = whole(numbered.find(W + "ilvl"), inherited.level)
    return Style(heading, number, level, inherited.depth)


class Numbering:
    """The labels of numbered paragraphs, which Word counts anew whenever it shows a file."""

    def __init__(self, element: _Element | None) -> None:
        self.levels: dict[str, dict[int, tuple[str, str, int]]] = {}  # numbering: level: format, text, first number
        self.list_of: dict[str, str] = {}  # numberings of one list count on together
        self.counts: dict[str, dict[int, int]] = {}
        self.restarts: dict[str, set[int]] = {}
        if element is None:
            return
        lists = {e.get(W + "abstractNumId"): e for e in element.iterchildren(W + "abstractNum")}
        for number in element.iterchildren(W + "num"):
            name, of = number.get(W + "numId"), value(number.find(W + "abstractNumId"))
            levels = dict(map(_level, lists[of].findall(W + "lvl")[:_LEVELS])) if of in lists else {}
            self.restarts[name] = set()
            for override in number.findall(W + "lvlOverride")[:_LEVELS]:
                level, start = attribute(override, "ilvl", 0), override.find(W + "startOverride")
                levels |= dict(map(_level, override.findall(W + "lvl")[:1]))
                if start is not None and level in levels:
                    levels[level] = (*levels[level][:2], whole(start, 1))
                    self.restarts[name].add(level)
            self.levels[name], self.list_of[name] = levels, of or name

    def label(self, number: str, level: int) -> str:
        """Count one paragraph of the numbering; "-" for a bullet, "" where nothing is shown."""
        levels = self.levels.get(number, {})
        if not number or not levels:
            return "-" if number else ""
        level = level if level in levels else 0
        kind, pattern, _ = levels.get(level, ("bullet", "", 1))
        counts = self.counts.setdefault(self.list_of[number], {})
        for restarted in self.restarts[number]:
            counts.pop(restarted, None)
        self.restarts[number] = set()
        counts[level] = counts.get(level, levels[level][2] - 1 if level in levels else 0) + 1
        for deeper in [other for other in counts if other > level]:
            del counts[deeper]
        if kind in ("bullet", "none"):
            return "-" if kind == "bullet" else ""

        def shown(found: re.Match[str]) -> str:
            other = int(found.group(1)) - 1
            form, _, first = levels.get(other, ("decimal", "", 1))
            return _numeral(counts.get(other, first), form)

        return re.sub(r"%([1-9])", shown, pattern[:_LONGEST_LABEL]).strip()


def _level(element: _Element) -> tuple[int, tuple[str, str, int]]:
    kind = value(element.find(W + "numFmt")) or "decimal"
    text = value(element.find(W + "lvlText")) or ""
    return attribute(element, "ilvl", 0), (kind, text, whole(element.find(W + "start"), 1))


def _numeral(number: int, form: str) -> str:
    """A number as the form writes it; in digits where the form is another or cannot.

    >>> [_numeral(n, form) for n, form in ((4, "lowerRoman"), (28, "upperLetter"), (3, "decimalZero"))]
    ['iv', 'BB', '03']
    """
    if form == "decimalZero":
        return f"{number:02}"
    text = str(number)
    if form.endswith("Letter") and 0 < number < 200:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif form.endswith("Roman") and 0 < number < 4000:
        text = ""
        for value, sign in _ROMAN:
            text += sign * (number // value)
            number %= value
    return text.upper() if form.startswith("upper") else text


def is_on(switch: _Element | None) -> bool:
    """Whether a switch, such as bold, is there and not turned off."""
    return switch is not None and switch.get(W + "val", "1") not in ("0", "false", "off")


def value(element: _Element | None) -> str | None:
    """An element's `val`; None where either is missing."""
    return None if element is None else element.get(W + "val")


def whole(element: _Element | None, default: int) -> int:
    """An element's `val` as a whole number."""
    return default if element is None else attribute(element, "val", default)


def attribute(element: _Element, name: str, default: int) -> int:
    """An attribute as a whole number; the default where it is none."""
    text = element.get(W + name, "")
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else default
