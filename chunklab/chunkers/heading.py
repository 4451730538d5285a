"""Heading chunking: Markdown cut by topic, as the author of a knowledge base would cut it by hand.

For manuals, handbooks and wikis, where a heading says what the text below it is about. A topic (a heading and the text
up to the next one) is a chunk; small neighbours under one parent share a chunk; a topic that is too long goes on in
further chunks, each under its heading "– cont'd". Tables, code blocks and paragraphs stay whole where they fit. After a
script that an author of knowledge bases uses; headings are those of CommonMark. Cost: one pass; no model.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from chunklab.chunk import Chunk, Chunker, Span, check_id, check_size, check_text, hard_cut, is_blank, trim
from chunklab.chunkers.blocks import Unit, smaller, units_of
from chunklab.chunkers.markdown import Outline, Section, outline, raw_title
from chunklab.chunkers.words import count_words

KEPT_WHOLE = {"paragraph", "code", "table", "html", "item", "row"}
_INDENTED = {"code", "line", "item", "list", "quote", "table", "row"}  # where indentation means something
_SHORT = 200  # characters of a header that may be repeated for each row
_LONGEST_TITLE = 300  # characters: it is repeated in every chunk of its topic, so a longer one would multiply the text


class Sizes(NamedTuple):
    """The chunker's parameters."""

    least: int
    most: int
    extended: int
    continuation: str


class Group(NamedTuple):
    """Neighbouring sections, from first to last - 1: a chunk, or several where they are too long for one."""

    first: int
    last: int
    whole: bool = True  # whole topics, not only a part of one


Rule = Callable[[Outline, Sizes, Group, Group, bool], bool]


class Part(NamedTuple):
    """A chunk to be: its place, what is added before it, and what there is to say about it."""

    kind: str
    start: int
    end: int
    added: str = ""
    counted: int = 0  # the words of what is added, as far as they count
    oversize: str = ""  # what was kept whole, should it be too long
    before: str = ""
    behind: str = ""


def topics(read: Outline, sizes: Sizes, top: int = 0) -> list[Group]:
    """Which sections share a chunk: small neighbours under one parent, until they have words enough.

    Args:
        read: the text.
        sizes: how many words are enough, and how many too many.
        top: the section that is divided, with all below it.

    Returns:
        The groups, in order. In one that is too long, the last section is what makes it so.

    >>> read = outline("# Pets\\n## Cat\\nIt purrs.\\n## Dog\\nIt barks.\\n## Fish\\nIt swims.")
    >>> [read.text[read.starts[group.first] :][:6] for group in topics(read, Sizes(5, 9, 9, ""))]
    ['# Pets', '## Dog']
    """
    groups, below = [Group(top, top + 1)], top + 1
    while below < read.sections[top].after:
        groups += topics(read, sizes, below)
        below = read.sections[below].after
    for rule in (belong, belong_at_last) if len(groups) > 1 else ():
        groups = joined(read, sizes, top, groups, rule)
    return groups if len(groups) == 1 else [group._replace(whole=False) for group in groups]


def joined(read: Outline, sizes: Sizes, top: int, groups: list[Group], rule: Rule) -> list[Group]:
    """The groups under one section, with those neighbours in one that a rule puts together."""
    together = groups[:1]
    for group in groups[1:]:
        last = together[-1]
        is_child = len(read.sections[group.first].path) == len(read.sections[top].path) + 1
        if last.whole and is_child and rule(read, sizes, last, group, last.first == top):
            together[-1] = Group(last.first, group.last, group.whole)
        else:
            together.append(group)
    return together


def belong(read: Outline, sizes: Sizes, left: Group, right: Group, leads: bool) -> bool:
    """Whether two neighbours under one parent share a chunk: the first is small, and they fit.

    `leads`: the first is the text under the parent's own heading, which may go with only a part of the topic behind it.
    """
    return is_small(read, sizes, left) and (right.whole or leads) and words_of(read, left, right) <= sizes.most


def belong_at_last(read: Outline, sizes: Sizes, left: Group, right: Group, leads: bool) -> bool:
    """The same for what stayed small: it goes with what stands before it, else with what stands behind it."""
    together = words_of(read, left, right)
    if right.whole and is_small(read, sizes, right):
        return together <= sizes.extended
    most = sizes.extended if right.whole or leads else sizes.most
    return is_small(read, sizes, left) and (together <= most or words_of(read, right) > sizes.extended)


def is_small(read: Outline, sizes: Sizes, group: Group) -> bool:
    """Whether a group has too few words, or ends with a heading that has no text under it."""
    end = read.starts[group.last]
    body = min(read.sections[group.last - 1].body, end)
    return words_of(read, group) < sizes.least or not read.words.between(body, end)


def words_of(read: Outline, first: Group, last: Group | None = None) -> int:
    """The words of a group, or of neighbouring ones."""
    return read.words.between(read.starts[first.first], read.starts[(last or first).last])


def packed(read: Outline, sizes: Sizes, group: Group) -> list[Part]:
    """Cut sections that are too long for one chunk: whole blocks as far as they fit, then whole sentences.

    Args:
        read: the text.
        sizes: how many words a chunk is to have.
        group: the sections.

    Returns:
        The chunks to be, in order.
    """
    parts, ahead = [], _units_of_group(read, group)[::-1]
    while ahead:
        parts.append(filled(read, sizes, ahead))
    return _without_small_end(read, sizes, parts)


def filled(read: Outline, sizes: Sizes, ahead: list[Unit]) -> Part:
    """The next chunk: the units that fit, taken off the end of the list `ahead`, where the next one is the last."""
    added, counted = opening(read, sizes, ahead[-1])
    taken: list[Unit]
    start, taken = ahead[-1].start, []
    while ahead:
        unit = ahead[-1]
        before, words = (counted + read.words.between(start, place) for place in (unit.start, unit.end))
        small = not taken or before < sizes.least
        if words <= (sizes.extended if small and unit.kind in KEPT_WHOLE else sizes.most):
            taken.append(ahead.pop())
        elif small and (pieces := divided(read, sizes, unit, sizes.most - before, not taken)):
            ahead[-1:] = pieces[::-1]
        else:
            break
    return part_of(taken or [ahead.pop()], added, counted)  # at least one, be it longer than any chunk


def _units_of_group(read: Outline, group: Group) -> list[Unit]:
    start, end = read.starts[group.first], read.starts[group.last]
    first = read.sections[group.first].block
    last = read.sections[group.last].block if group.last < len(read.sections) else len(read.blocks)
    return units_of(read, first, last, start, start, end)


def divided(read: Outline, sizes: Sizes, unit: Unit, room: int, first: bool) -> list[Unit]:
    """A unit in pieces; none if it is not to be cut, or fits whole into the next chunk and is not the first in this."""
    limit = sizes.extended if unit.kind in KEPT_WHOLE else sizes.most
    if not first and opening(read, sizes, unit)[1] + read.words.between(unit.start, unit.end) <= limit:
        return []
    return smaller(read, unit, room)


def part_of(taken: list[Unit], added: str, counted: int) -> Part:
    """The chunk that units make together."""
    last = taken[-1]
    return Part(taken[0].kind, taken[0].start, last.end, added, counted, last.kind, taken[0].before, last.behind)


def _without_small_end(read: Outline, sizes: Sizes, parts: list[Part]) -> list[Part]:
    """The parts, the last of them joined to the one before if it is small, and the two fit."""
    if len(parts) > 1:
        left, right = parts[-2:]
        small = right.counted + read.words.between(right.start, right.end) < sizes.least
        if small and left.counted + read.words.between(left.start, right.end) <= sizes.extended:
            return [*parts[:-2], left._replace(end=right.end, oversize="topic", behind=right.behind)]
    return parts


def opening(read: Outline, sizes: Sizes, unit: Unit) -> tuple[str, int]:
    """What a chunk that begins with this unit has before it, and how many words that counts.

    What is repeated is not to take more than half of the room: else a fence is left out, and a table's header does not
    count. A short one does: to repeat a long one for each row would multiply the text.
    """
    section = bisect_right(read.starts, unit.start) - 1
    heading = ""
    if read.sections[section].level and unit.start > read.starts[section]:
        heading = _continued(read, sizes, section)
    counted, repeated = count_words(heading), count_words(unit.repeat)
    if repeated <= (sizes.most - counted) // 2 or (unit.kind == "row" and len(unit.repeat) <= _SHORT):
        return heading + unit.repeat, counted + repeated
    return heading + (unit.repeat if unit.kind == "row" else ""), counted


def _continued(read: Outline, sizes: Sizes, section: int) -> str:
    """A section's continuation heading; one of more than two thirds of a chunk is cut to a third, or left out."""
    heading = read.blocks[read.sections[section].block]
    end = min(heading.end, heading.start + 2 * _LONGEST_TITLE)  # no more of it is needed
    marks, title = "#" * heading.level + " ", raw_title(read.text, heading._replace(end=end))
    if len(title) > _LONGEST_TITLE or 3 * count_words(marks + title + sizes.continuation) > 2 * sizes.most:
        room = sizes.most // 3 - count_words(marks + "…" + sizes.continuation)
        if room < 1:
            return ""
        title = title[: hard_cut(title, 0, _LONGEST_TITLE)]
        title = title[: hard_cut(title, 0, room, count_words)].rstrip() + "…"
    return (marks + title).rstrip() + sizes.continuation + "\n\n"


def heading_parts(read: Outline, sizes: Sizes) -> list[Part]:
    """Cut a Markdown text by topic.

    Args:
        read: the text, as `outline` gives it.
        sizes: how many words a chunk is to have.

    Returns:
        The chunks to be, in order: places without blank lines at their edges, and what is added before each.

    >>> read = outline("# Pets\\n\\nThere are many.\\n\\n## Cat\\n\\nIt purrs.\\n\\nIt sleeps all day.")
    >>> [part.added + read.text[part.start : part.end] for part in heading_parts(read, Sizes(3, 8, 8, " (more)"))]
    ['# Pets\\n\\nThere are many.', '## Cat\\n\\nIt purrs.\\n\\nIt sleeps all day.']
    """
    parts: list[Part] = []
    for group in topics(read, sizes):
        words = words_of(read, group)
        if words > sizes.extended:
            parts += packed(read, sizes, group)
        elif words:
            kind = "heading" if read.sections[group.first].level else _units_of_group(read, group)[0].kind
            parts.append(Part(kind, read.starts[group.first], read.starts[group.last], oversize="topic"))
    return [_trimmed(read.text, part) for part in parts if not is_blank(read.text[part.start : part.end])]


def _trimmed(text: str, part: Part) -> Part:
    """A part without blank lines at its edges; the indentation of code and of lists stays."""
    start, end = trim(text, part.start, part.end)
    while part.kind in _INDENTED and start > part.start and text[start - 1] in " \t":
        start -= 1
    return part if (start, end) == (part.start, part.end) else part._replace(start=start, end=end)


def _metadata(read: Outline, sizes: Sizes, part: Part) -> dict[str, Any]:
    """What there is to say about a chunk: see `HeadingChunker`."""
    first, last = bisect_right(read.starts, part.start) - 1, bisect_left(read.starts, part.end)
    inside = [section for section in read.sections[first:last] if section.level]
    words = read.words.between(part.start, part.end) + (count_words(part.added) if part.added else 0)
    metadata: dict[str, Any] = {"path": list(_path(read, part, read.sections[first], inside)), "words": words}
    if len(inside) > 1:
        metadata["paths"] = [list(section.path) for section in inside]
    if part.added:
        metadata["added"] = part.added
    if words > sizes.most:
        metadata["oversize"] = part.oversize
    if part.before or part.behind:
        metadata["cut"] = part.behind or part.before
    return metadata


def _path(read: Outline, part: Part, first: Section, inside: list[Section]) -> list[str]:
    """The path of a chunk's first topic with text in it; text before all headings has none, and counts last."""
    if not inside or inside == [first]:
        return first.path
    ends = [*(section.start for section in inside[1:]), part.end]
    for section, end in zip(inside, ends, strict=True):
        if read.words.between(section.body, max(section.body, end)):
            return section.path
    return inside[-1].path if inside and not read.words.between(part.start, inside[0].start) else first.path


class HeadingChunker(Chunker):
    """Markdown by topic.

    A chunk begins with a heading where it can, and has from `min_words` to `max_words` words; up to `extended_words` to
    keep a topic, a paragraph, a table or a code block whole. Only a table's row and its header are kept whole beyond
    that. What does not begin with its heading begins with a continuation heading: there `text` is metadata["added"],
    and then the text from `start` to `end`. A table that is cut also repeats its header there, a code block its fence.

    The metadata of a chunk:
        path: the titles of the headings over its first text, a list, the outermost first.
        paths: the paths of all its topics, where it has several.
        words: how many it has, with what is added; counted by `count_words`.
        added: what was added before the text of the document.
        oversize: what was kept whole, where it has more than `max_words`: "topic", "paragraph", "table", "row", …
        cut: what it has only a part of: "paragraph", "table", "code", "list", "sentence", …

    Args:
        min_words: small neighbouring topics under one parent share a chunk until it has so many words.
        max_words: what a chunk has at most, unless something is to be kept whole.
        extended_words: what it has at most then.
        continuation: what follows a heading that is repeated.

    Raises:
        ValueError: sizes that are not whole numbers of 1 or more, each at least the one before; a continuation that is
            no str, or more than a line.

    >>> chunker = HeadingChunker(min_words=3, max_words=8, extended_words=8)
    >>> for chunk in chunker.chunk("# Cats\\n\\nThey purr. They sleep all day.\\n\\nThey dream of mice."):
    ...     print(chunk.metadata["path"], repr(chunk.text))
    ['Cats'] '# Cats\\n\\nThey purr. They sleep all day.'
    ['Cats'] "# Cats – cont'd\\n\\nThey dream of mice."
    """

    def __init__(
        self,
        min_words: int = 80,
        max_words: int = 250,
        extended_words: int = 400,
        continuation: str = " – cont'd",
    ) -> None:
        least, most = check_size("min_words", min_words), check_size("max_words", max_words)
        extended = check_size("extended_words", extended_words)
        if most < least:
            raise ValueError(f"max_words={most}: must be at least min_words={least}")
        if extended < most:
            raise ValueError(f"extended_words={extended}: must be at least max_words={most}")
        if not isinstance(continuation, str) or len((continuation + "x").splitlines()) > 1:
            raise ValueError(f"continuation={continuation!r:.80}: must be a str without line ends")
        super().__init__(extended, 0, count_words)
        self._sizes = Sizes(least, most, extended, continuation)

    def spans(self, text: str) -> list[Span]:
        """Where the chunks stand, in order."""
        return [(part.start, part.end) for part in heading_parts(outline(check_text(text)), self._sizes)]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts alone, with their continuation headings."""
        parts = heading_parts(outline(check_text(text)), self._sizes)
        return [part.added + text[part.start : part.end] for part in parts]

    def chunk(self, text: str, doc_id: str = "doc") -> list[Chunk]:
        """Cut one text: see the class for what is in the metadata.

        Args:
            text: the document, Markdown.
            doc_id: its id, kept in every chunk.

        Returns:
            The chunks, in the order of the text; none for a blank text.

        Raises:
            ValueError: a text or an id that is not a str.
        """
        check_id(doc_id)
        read = outline(check_text(text))
        parts = heading_parts(read, self._sizes)
        return [
            Chunk(
                part.added + text[part.start : part.end],
                part.start,
                part.end,
                doc_id,
                f"{doc_id}_{index}",
                None,
                index,
                len(parts),
                _metadata(read, self._sizes, part),
            )
            for index, part in enumerate(parts)
        ]
