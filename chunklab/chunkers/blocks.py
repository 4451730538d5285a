"""What chunks of Markdown are packed from: blocks, each with the headings before it, and pieces of blocks.

A block goes into a chunk whole where it fits. Where it does not, it comes in pieces, the largest that there are: the
items of a list, the rows of a table (each part of it under its header again), lines of code, sentences; at last, words.
Pieces are made as they are needed, and every part of the text is looked at once at each level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from chunklab.chunk import last_boundary, next_boundary
from chunklab.chunkers.boundaries import sentence_spans
from chunklab.chunkers.markdown import Block, Outline

_LINE = re.compile("[^\n\r\u2028\u2029]*(?:\r\n|[\n\r\u2028\u2029]|\\Z)")
_NOT_FIRST = "、。，．：；！？｡､」』）】》〉］…”’"  # what no line of Chinese or Japanese begins with
_LONGEST_REPEAT = 2000  # characters of a table's header: repeated in every part, a longer one would multiply the text


class Unit(NamedTuple):
    """What chunks are packed from: a block and the headings before it, or a piece of a block."""

    kind: str
    start: int
    body: int  # where it starts without those headings
    end: int
    block: int = -1
    repeat: str = ""  # what a chunk that begins here repeats: the header of a table, the fence of a code block
    before: str = ""  # the kind of what was cut to make it begin here
    behind: str = ""  # the same for its end


def units_of(read: Outline, first: int, last: int, start: int, body: int, end: int) -> list[Unit]:
    """The blocks from first to last - 1, those inside others aside, as units that together are text[start:end].

    A heading goes with what follows it. So do lines that look like rows of the table below them: a header of several
    rows.
    """
    places: list[tuple[int, int]] = []
    index = first
    while index < last:
        block = read.blocks[index]
        place = max(body, block.line)
        if block.kind == "table" and places and read.blocks[places[-1][1]].kind == "paragraph":
            place = _first_row(read.text, places[-1][0], place)
        places.append((place, index))
        index = block.after
    if not places or read.words.between(body, places[0][0]):
        places.insert(0, (body, -1))  # a list item's own text, front matter, definitions of links
    units = []
    for (place, index), (stop, _) in zip(places, [*places[1:], (end, -1)], strict=True):
        kind = read.blocks[index].kind if index >= 0 else "paragraph"
        if place == stop or (kind == "heading" and stop < end):
            continue
        table_end = read.blocks[index].end if kind == "table" else stop
        edge = table_end if read.words.between(table_end, stop) else stop
        units.append(Unit(kind, start, place, edge, index))
        if edge < stop:
            units.append(Unit("paragraph", edge, edge, stop))
        start = stop
    return units


def _first_row(text: str, start: int, place: int) -> int:
    """Where the first of the lines starts that stand right above text[place], after `start`, and look like rows."""
    for line in reversed(_LINE.findall(text, start, place)):
        if line and "|" not in line:
            break
        place -= len(line)
    return place


def smaller(read: Outline, unit: Unit, room: int) -> list[Unit]:
    """A unit in pieces: the blocks inside it, rows, sentences, lines; at last its first `room` words, and the rest.

    Returns:
        The pieces, in order; none for what is not to be cut: a row, a word.
    """
    text, block = read.text, read.blocks[unit.block] if unit.block >= 0 else None
    if block and unit.kind in ("list", "item", "quote") and block.after > unit.block + 1:
        inner = units_of(read, unit.block + 1, block.after, unit.start, unit.body, unit.end)
        last = len(inner) - 1
        return [
            piece._replace(before=unit.kind if k else unit.before, behind=unit.kind if k < last else unit.behind)
            for k, piece in enumerate(inner)
        ]
    if block and unit.kind == "table":
        rows = [row.line for row in read.blocks[unit.block + 1 : block.after] if row.kind == "row"] or [unit.end]
        return _pieces("row", unit, rows[1:], _head(text, unit, block, rows[0]))
    if block and unit.kind == "code":
        lines = [line.start() for line in _LINE.finditer(text, unit.body, block.end)]
        if block.level:  # fences stay with the first line and with the last
            return _pieces("line", unit, lines[2:-2], _head(text, unit, block, lines[1]))
        return _pieces("line", unit, lines[1:-1])
    if unit.kind == "row":
        return []
    if unit.kind == "words":
        return _first_words(read, unit, room)
    if unit.kind in ("sentence", "line"):
        lines = [line.start() for line in _LINE.finditer(text, unit.body, unit.end)][1:-1]
        return _pieces("line" if lines else "words", unit, lines, unit.repeat)
    sentences = sentence_spans(text[unit.body : unit.end])
    return _pieces("sentence", unit, [unit.body + start for start, _ in sentences[1:]])


def _pieces(kind: str, unit: Unit, places: Sequence[int], repeat: str = "") -> list[Unit]:
    """A unit cut at places inside it; all pieces but the first have something to repeat."""
    cut = "sentence" if unit.kind in ("line", "words") else unit.kind
    last = len(places)
    return [
        Unit(
            kind,
            start,
            max(start, unit.body),
            end,
            repeat=repeat if k else unit.repeat,
            before=cut if k else unit.before,
            behind=cut if k < last else unit.behind,
        )
        for k, (start, end) in enumerate(zip([unit.start, *places], [*places, unit.end], strict=True))
    ]


def _head(text: str, unit: Unit, block: Block, end: int) -> str:
    """The beginning of a block, as its pieces repeat it: a table's header, a fence; nothing if it is too long."""
    margin = text[unit.body : block.start] if unit.body == block.line else ""  # of an item, its mark; a quote's stays
    head = re.sub(r"[^\s>]", " ", margin) + text[unit.body + len(margin) : end].rstrip() + "\n"
    return head if len(head) <= _LONGEST_REPEAT else ""


def _first_words(read: Outline, unit: Unit, room: int) -> list[Unit]:
    """The first words of a unit, as many as there is room for, and the rest; nothing where that cannot be."""
    place = read.words.after(unit.start, room) if room > 0 else unit.end
    if place < unit.end:
        wanted = place - (read.text[place] in _NOT_FIRST and place - 1 > unit.start)
        place = last_boundary(read.text, unit.start, wanted)
        if place == unit.start:
            place = next_boundary(read.text, unit.start, wanted, unit.end)
    return _pieces("words", unit, [place], unit.repeat) if unit.start < place < unit.end else []
