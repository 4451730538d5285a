"""What a source file is made of: statements within blocks, lines within statements, words within lines.

For `CodeChunker`, which packs the parts. A file that parses is divided by its syntax tree, of tree-sitter: the grammars
are packages, tree-sitter-python and tree-sitter-javascript, so nothing is fetched. A file that does not parse is
divided by its indentation: a function with an error in it is still a function to a reader. Parts are found one level at
a time, as they are needed. Cost: one parse, some five million characters a second, and a look at each part that is
divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from chunklab.chunk import BOM, last_boundary, trim

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_DEEPEST = 100  # levels: Python itself allows no more; deeper down, lines have to do
_LONGEST_LINE = 200  # characters of a context line: it is repeated in each chunk of its block
_LINE_ENDS = "\n\r\u2028\u2029"
_LINE = re.compile(f"[^{_LINE_ENDS}]*(?:\r\n|[{_LINE_ENDS}])|[^{_LINE_ENDS}]+")
_WORD = re.compile(r"\S+")
_WHITE = re.compile(r"\s*")
_CLOSING = re.compile(r"[\s,;)\]}]*")


@dataclass(frozen=True)
class Grammar:
    """What there is to know about a language's syntax tree.

    Attributes:
        package: where the grammar is.
        suffix: what names of its files end with.
        blocks: nodes whose children are parts: places to cut between.
        definitions: nodes whose first line is context for the chunks inside.
        wholes: nodes that are or hold one definition: what is worth to be kept whole.
        plain: nodes that hold no block.
    """

    package: str
    suffix: str
    blocks: frozenset[str]
    definitions: frozenset[str]
    wholes: frozenset[str]
    plain: frozenset[str]


GRAMMARS = {
    "python": Grammar(
        "tree_sitter_python",
        ".py",
        frozenset(["module", "block"]),
        frozenset(["class_definition", "function_definition"]),
        frozenset(["class_definition", "function_definition", "decorated_definition"]),
        frozenset(["expression_statement", "return_statement", "parameters", "argument_list"]),
    ),
    "javascript": Grammar(
        "tree_sitter_javascript",
        ".js",
        frozenset(["program", "statement_block", "class_body", "switch_body", "object", "array"]),
        frozenset(
            ["class_declaration", "class", "function_declaration", "function_expression", "arrow_function"]
            + ["generator_function_declaration", "generator_function", "method_definition"]
        ),
        frozenset(
            ["class_declaration", "function_declaration", "generator_function_declaration", "method_definition"]
            + ["export_statement", "lexical_declaration", "pair"]
        ),
        frozenset(["string", "template_string", "formal_parameters"]),
    ),
}


class Part(NamedTuple):
    """A part of a source file, from the start of its line where nothing but blanks is before it there.

    Attributes:
        start: offset of its first character.
        end: offset after its last character that is no white space.
        how: how it is divided into smaller ones: "tree", "outline", "lines", "words"; "" if it is a word.
        core: what is divided: a node of the tree, or where its first line starts in an outline.
        context: the first lines of the classes and functions that it stands in.
        inner: the same for what stands in it, its beginning aside.
        opens: "header" or "comment", if it belongs to the part after it.
        closes: it belongs to the part before it: a bracket, a comment on the same line.
        defines: it is a class or a function.
        depth: how many parts it stands in.
    """

    start: int
    end: int
    how: str
    core: Any = None
    context: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    opens: str = ""
    closes: bool = False
    defines: bool = False
    depth: int = 0


class Source:
    """A source file, to be divided.

    Args:
        text: what is in it.
        language: one of `GRAMMARS`.

    >>> source = Source("class A:\\n    x = 1\\n\\n    def f(self):\\n        pass\\n", "python")
    >>> [source.text[part.start : part.end] for part in source.parts(source.parts(source.whole)[0])]
    ['class A:', '    x = 1', '    def f(self):\\n        pass']
    """

    def __init__(self, text: str, language: str) -> None:
        self.text, self.grammar = text, GRAMMARS[language]
        self._is_plain = text.isascii()
        root, begin = parsed(text, language), int(text.startswith(BOM))
        first = self._from_line_start(_after_blanks(text, begin), begin)
        self.whole = Part(first, trim(text, first, len(text))[1], "tree" if root else "outline", root)

    def parts(self, part: Part) -> list[Part]:
        """The parts of a part, in order: together they hold all of it but white space. Of a word, none."""
        if part.depth >= _DEEPEST and part.how in ("tree", "outline"):
            part = part._replace(how="lines")
        return {"tree": self._by_tree, "outline": self._by_outline, "lines": self._by_lines, "words": self._by_words}[
            part.how
        ](part)

    def next_start(self, place: int) -> int:
        """Where the next part starts, if nothing but white space follows; else the place."""
        return self._from_line_start(_WHITE.match(self.text, place).end(), place)  # type: ignore[union-attr]

    def _by_tree(self, part: Part) -> list[Part]:
        """The statements of the blocks in a statement, and what is before, between and after them."""
        marks: list[Part] = []
        place, depth = part.start, part.depth + 1
        for block, parent in self._blocks(part.core):
            context = part.inner + self._context_line(part.core, parent, block, place)
            around = part.inner
            children = [child for child in block.children if child.is_named]
            for child, following in zip_longest(children, children[1:]):
                marks += self._between(part, place, child.start_byte, around)
                comment = child.type == "comment"
                closes = comment and bool(marks) and not self._has_line_end(place, child.start_byte)
                above = comment and not closes and following is not None and self._is_above(child, following)
                start, how = self._from_line_start(child.start_byte, place), "lines" if comment else "tree"
                opens, defines = "comment" if above else "", child.type in self.grammar.wholes
                marks.append(Part(start, 0, how, child, context, context, opens, closes, defines, depth))
                place, around = child.end_byte, context
        marks += self._between(part, place, part.end, part.inner)
        return self._bounded(part, marks) if len(marks) > 1 or marks[0].core else self._by_lines(part)

    def _blocks(self, node: Node) -> Iterator[tuple[Node, Node | None]]:
        """The outermost blocks in a node, each with the node that it is the block of."""
        stack: list[tuple[Node, Node | None]] = [(node, None)]
        while stack:
            node, parent = stack.pop()
            if node.type in self.grammar.blocks:
                yield node, parent
            elif node.type not in self.grammar.plain:
                stack += [(child, node) for child in reversed(node.children)]

    def _context_line(self, statement: Node, parent: Node | None, block: Node, place: int) -> tuple[str, ...]:
        """The first line of the class or function that a block is the body of; nothing if it is no such body."""
        if parent is None or parent.type not in self.grammar.definitions:
            return ()
        named = parent.child_by_field_name("name") is not None
        start = parent.start_byte if named else max(place, statement.start_byte)
        colons = [child.end_byte for child in parent.children if child.type == ":"]
        return (_as_context(self.text[start : colons[-1] if colons else block.start_byte + 1]),)

    def _between(self, part: Part, start: int, end: int, context: tuple[str, ...]) -> list[Part]:
        """What stands between two statements: brackets and commas close the first, a header opens the second."""
        gap = self.text[start:end]
        if not gap.strip():
            return []
        closing = _CLOSING.match(gap).end() if end < part.end else len(gap)  # type: ignore[union-attr]
        if closing < len(gap):
            closing = max(map(gap[:closing].rfind, _LINE_ENDS)) + 1 or closing
        parts = []
        for first, last, opens in ((start, start + closing, ""), (start + closing, end, "header")):
            first = _after_blanks(self.text, first, last)
            if first < last:
                first = self._from_line_start(first, start)
                parts.append(Part(first, 0, "lines", None, context, context, opens, closes=not opens))
        return parts

    def _by_outline(self, part: Part) -> list[Part]:
        """The lines that are indented least, after the first, each with what is indented more below it."""
        lines = [_Line.of(self.text, *found.span()) for found in _LINE.finditer(self.text, part.start, part.end)]
        lines = [line for line in lines if line.start < line.end]
        head = 0 if part.core is None else sum(line.start <= part.core for line in lines)
        first, below = lines[:head][-1:], lines[head:]
        least = min((line.indent for line in below if not line.goes_on), default=-1)
        if least < 0:
            return self._by_lines(part)
        inner, depth = part.inner, part.depth + 1
        if first and _DEFINITION.match(self.text, first[0].first):
            inner += (_as_context(self.text[first[0].first : first[0].end]),)
        marks = [Part(part.start, 0, "lines", None, part.context, inner, "header")] if first else []
        for line, following in zip_longest(below, below[1:]):
            if line.indent <= least and not line.goes_on:
                above = line.leads and following and following.start == line.stop and following.indent <= least
                opens, defines = "comment" if above else "", bool(_DEFINITION.match(self.text, line.first))
                marks.append(Part(line.start, 0, "outline", line.start, inner, inner, opens, False, defines, depth))
        return self._bounded(part, marks)

    def _by_lines(self, part: Part) -> list[Part]:
        marks = [
            Part(found.start(), 0, "words", None, part.inner, part.inner)
            for found in _LINE.finditer(self.text, part.start, part.end)
        ]
        return self._bounded(part, marks) if len(marks) > 1 else self._by_words(part)

    def _by_words(self, part: Part) -> list[Part]:
        marks = [
            Part(found.start(), 0, "", None, part.inner, part.inner)
            for found in _WORD.finditer(self.text, part.start, part.end)
        ]
        return self._bounded(part, marks)

    def _bounded(self, part: Part, marks: list[Part]) -> list[Part]:
        """The marks as parts that end where the next starts, never inside a grapheme cluster; the blank ones aside."""
        kept = [marks[0]._replace(start=part.start, context=part.context)]
        for mark in marks[1:]:
            start = mark.start
            if not self._is_plain:
                start = last_boundary(self.text, kept[-1].start, start)
            if start > kept[-1].start:
                kept.append(mark._replace(start=start))
        stops = [*(mark.start for mark in kept[1:]), part.end]
        ends = [trim(self.text, mark.start, stop)[1] for mark, stop in zip(kept, stops, strict=True)]
        return [mark._replace(end=end) for mark, end in zip(kept, ends, strict=True) if mark.start < end]

    def _from_line_start(self, place: int, floor: int) -> int:
        """The start of the line, if there are only blanks before the place, from `floor` on; else the place."""
        start = place
        while start > floor and self.text[start - 1].isspace() and self.text[start - 1] not in _LINE_ENDS:
            start -= 1
        return start if start == 0 or self.text[start - 1] in _LINE_ENDS + BOM else place

    def _has_line_end(self, start: int, end: int) -> bool:
        return any(self.text.find(mark, start, end) >= 0 for mark in _LINE_ENDS)

    def _is_above(self, comment: Node, following: Node) -> bool:
        """Whether a comment stands right above what follows it, without a blank line between."""
        gap = self.text[comment.end_byte : following.start_byte]
        return gap.isspace() and sum(line[-1] in _LINE_ENDS for line in _LINE.findall(gap)) == 1


class _Line(NamedTuple):
    """A line of an outline; of a blank one, start is end."""

    start: int
    first: int  # its first character that is no blank
    end: int  # after its last
    stop: int  # where the next line starts
    indent: int
    goes_on: bool  # with what is above it: a bracket, an else
    leads: bool  # to what is below it: a comment, a decorator

    @classmethod
    def of(cls, text: str, start: int, stop: int) -> _Line:
        first, end = trim(text, start, stop)
        if first == end:
            return cls(start, start, start, stop, 0, False, False)
        goes_on, leads = bool(_GOES_ON.match(text, first)), bool(_LEADS.match(text, first))
        return cls(start, first, end, stop, len(text[start:first].expandtabs()), goes_on, leads)


_GOES_ON = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch)\b")
_LEADS = re.compile(r"#|//|/\*|\*|@")
_DEFINITION = re.compile(r"(?:(?:export|default|async) +)*(?:class|def|function)\b")


def _as_context(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST_LINE else line[: last_boundary(line, 0, _LONGEST_LINE - 1)] + "…"


def _after_blanks(text: str, start: int, end: int | None = None) -> int:
    """The first place from `start` to `end` that is no white space and no BOM."""
    end = len(text) if end is None else end
    return trim(text, start, end)[0] if text[start:end].strip() else end


# Parsing.

_STEP = 256  # bytes that the parser is given at a time
_REREAD = 20  # how often, on average, it may read a byte; 2 to 4 times is usual
_CHECKS, _ADVANCE = 50, 500  # within 50 checks, one each 100 steps of the parser, it has to advance by 500 bytes
_TROUBLED = 100  # checks in the middle of an error
_CONTINUED = re.compile(r"#[^\n]*|\\\r?\n")
_COMMENTS = re.compile(r"^([ \t]*)#[^\n]*(?:\n\1#[^\n]*)+", re.M)
_HTML_COMMENT = re.compile(r"^([ \t]*)(?:<!--|-->)", re.M)


def parsed(text: str, language: str) -> Node | None:
    """The root of the syntax tree, in which offsets count characters; None if the text has an error.

    Where there are errors, tree-sitter tries many ways to go on, and can take time that grows with the square or the
    cube of the text. It is stopped as soon as it does: by what it reads and how often it asks, not by the clock, so
    that the same text has the same parts on any machine.
    """
    from tree_sitter import Parser

    source = shadow(text, language)
    view, limit, near_the_end = memoryview(source), _REREAD * len(source) // _STEP + 100, len(source) - 1000
    reads = checks = troubled = checks_at_mark = mark = 0

    def read(start: int, _: object) -> memoryview:
        nonlocal reads
        reads += 1
        return view[start : start + _STEP] if reads <= limit else view[:0]

    def has_to_stop(place: int, in_error: bool) -> bool:
        nonlocal checks, troubled, checks_at_mark, mark
        checks, troubled = checks + 1, troubled + in_error
        if checks - checks_at_mark == _CHECKS:
            if place - mark < _ADVANCE and place < near_the_end:
                return True
            checks_at_mark, mark = checks, place
        return troubled > _TROUBLED or reads > limit

    try:
        root = Parser(_language(language)).parse(read, progress_callback=has_to_stop).root_node
    except ValueError:
        return None
    return None if root.has_error or reads > limit else root


def shadow(text: str, language: str) -> bytes:
    """A text with the same structure, in which each character is one byte.

    Beyond ASCII a character becomes a blank if it is one, else a letter. What makes the parser slow is written
    otherwise: in Python, a line that goes on after a backslash, and comments in a row, which become one; in JavaScript,
    HTML comments.

    >>> shadow("# café 漢字\\nx = 'é'", "python")
    b"# cafx xx\\nx = 'x'"
    """
    if not text.isascii():
        text = text.replace(BOM, "\n", 1) if text.startswith(BOM) else text
        text = re.sub(r"[^\S\x00-\x7f]|\ufeff", " ", text)
        text = re.sub(r"[^\x00-\x7f]+", lambda found: "x" * len(found[0]), text)
    text = re.sub("\r(?!\n)", "\n", text).replace("\0", " ")
    if language == "python":
        text = _CONTINUED.sub(lambda found: found[0] if found[0][0] == "#" else " " * len(found[0]), text)
        text = _COMMENTS.sub(lambda found: found[0].replace("\n", " "), text)
    elif "--" in text:
        text = _HTML_COMMENT.sub(lambda found: found[1] + "//" + " " * (len(found[0]) - len(found[1]) - 2), text)
        text = text.replace("<!--", "<!xx")
    return text.encode("ascii")


@cache
def _language(language: str) -> Language:
    import tree_sitter

    return tree_sitter.Language(import_module(GRAMMARS[language].package).language())
