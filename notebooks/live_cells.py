"""The cells of the live edition: what is left of the code, what rescues a class that is stuck, and the speaker's notes.

For who teaches a lesson by writing its code. An emptied cell says what is to be written, and which names later cells
use, so that what is typed fits what is given. Nothing is run here.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from io import StringIO
from tokenize import COMMENT, TokenInfo, generate_tokens

WIDTH = 118
DRAWS = re.compile(r"\b(?:show_chunks|compare_chunks|plot_\w+)\(")
# A speaker's note opens with what it is for, and how long that takes: "**Predict · 5 min**".
NOTE = re.compile(r"\*\*(.+?) · (\d+) min\*\*")


def prompts(code: str, tags: list[str], later: Iterable[str] = ()) -> str:
    """A code cell of the live edition: imports, figures and scaffolding stay; of the rest, the prompts.

    These are its comments, the functions and classes to write, and the other names on which cells below rely.
    """
    if {"scaffold", "check"} & set(tags) or (DRAWS.search(code) and not _built(tags)):
        return code
    body = ast.parse(code).body
    kept = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    if kept == body:
        return code
    written = [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    values = set().union(*(gives(node) for node in body if node not in [*kept, *written]))
    told = {"To write": [*map(_head, written)], "Used below": sorted(values & used(later))}
    kept += [node for node in body if node not in written and DRAWS.search(ast.get_source_segment(code, node))]
    lines = [token.line.rstrip() for token in generate_tokens(StringIO(code).readline) if _is_comment(token)]
    lines += [] if lines or written else ["# See the text above."]
    lines += [_comment(f"{what}: {', '.join(names)}") for what, names in told.items() if names]
    return "\n".join([*lines, *(ast.get_source_segment(code, node) for node in kept)])


def _built(tags: list[str]) -> list[tuple[str, str]]:
    """What a cell defines as the package does: (module, name)."""
    places = [tag.removeprefix("same-as:").rpartition(".") for tag in tags if tag.startswith("same-as:")]
    return [(module, name) for module, _, name in places]


def _is_comment(token: TokenInfo) -> bool:
    """Whether a comment stands on a line of its own at the top of a cell, not inside a definition."""
    return token.type == COMMENT and token.start[1] == 0


def _head(node: ast.FunctionDef | ast.ClassDef) -> str:
    """What a definition opens with, as "merge(starts, ends)"."""
    if isinstance(node, ast.FunctionDef):
        return f"{node.name}({ast.unparse(node.args)})"
    return f"class {node.name}" + (f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else "")


def _comment(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def gives(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a cell sets."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return _names(statement, ast.Store) - _inner(statement)


def used(codes: Iterable[str]) -> set[str]:
    """The names that cells, one after the other, take from before them. (A name that a loop sets counts as set.)"""
    taken, given = set(), set()
    for statement in (node for code in codes for node in ast.parse(code).body):
        set_here, read = gives(statement), _names(statement, ast.Load) - _inner(statement)
        if isinstance(statement, ast.AugAssign):
            read |= set_here
        elif not isinstance(statement, ast.Assign):
            read -= set_here
        taken |= read - given
        given |= set_here
    return taken


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, context)}


def _inner(node: ast.AST) -> set[str]:
    """The names that functions and comprehensions in a piece of code keep to themselves."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            found |= _names(part.target, ast.Store)
        elif isinstance(part, (ast.FunctionDef, ast.Lambda)):
            found |= _names(part, ast.Store) | {each.arg for each in ast.walk(part.args) if isinstance(each, ast.arg)}
    return found


def rescue(code: str, tags: list[str]) -> str:
    """What stands under an emptied cell: its code; of what the package has, the import."""
    built: dict[str, list[str]] = {}
    for module, name in _built(tags):
        built.setdefault(module, []).append(name)
    if not built:
        return f"# Rescue: the lesson's own code.\n{code}"
    names = sum(built.values(), [])
    rest = [node for node in ast.parse(code).body if not gives(node) & set(names)]
    lines = [f"# Rescue: {' and '.join(names)} from the package, finished."]
    lines += [f"from {module} import {', '.join(names)}" for module, names in built.items()]
    return "\n".join([*lines, *([""] if rest else []), *(ast.get_source_segment(code, node) for node in rest)])


def note(text: str, before: int) -> str:
    """A speaker's note as it is shown: minutes, and when they begin; the words folded, as the class sees the screen."""
    name, minutes = NOTE.match(text).groups()
    head = f"Speaker · {name} · {minutes} min, from {before // 60}:{before % 60:02}"
    words = NOTE.sub("", text, count=1).strip()
    shown = f"<details><summary><b>{head}</b></summary>\n\n{words}\n\n</details>"
    return "\n".join(f"> {line}".rstrip() for line in shown.splitlines())
