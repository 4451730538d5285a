"""Checks for the exercises of the lessons: they say kindly what is not right yet, and let the notebook run on.

A check is a `with` block of plain asserts, so that a learner can read what is asked. An exercise that is not solved
prints "not yet" and why; a solved one prints a tick, and is noted in a file of the learner's own. It serves learners,
and the tests, which run every lesson unsolved and solved, and note nothing. It costs nothing, except that the two sides
of a failed `==` are computed once more to be shown.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from os.path import commonprefix
from pathlib import Path
from types import FrameType
from typing import Any

LONGEST = 100


@contextmanager
def check(name: str) -> Iterator[None]:
    """Run the asserts of an exercise, and print whether they hold.

    Write what the learner made on the left of `==`, and what is right on the right: the two are shown where they
    differ. A message after the comma of an assert is shown first.

    Args:
        name: number and name of the exercise, as in "1.2 Windows that overlap".

    Yields:
        Nothing. No error but an interrupt leaves the block.

    >>> with check("1.1 A sum"):
    ...     assert 1 + 1 == 2
    ✓ 1.1 A sum
    >>> with check("1.2 A difference"):
    ...     assert 3 - 1 == 1, "take two away"
    not yet · 1.2 A difference: take two away
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        try:
            reason = _reason(error)
        except Exception:  # an object of the learner's that cannot even be shown or compared
            reason = type(error).__name__
        print(f"not yet · {name}: {reason}")
    else:
        print(f"✓ {name}")
        with suppress(Exception):  # a lesson goes on where nothing can be noted
            _note(name)


def progress_file() -> Path | None:
    """The file that keeps which checks have passed, a line of JSON each.

    Returns:
        The file that the environment variable CHUNKLAB_PROGRESS names, else one in the user's data folder of the
        system; None if the variable is "0", and nothing is to be kept.
    """
    named = os.environ.get("CHUNKLAB_PROGRESS")
    if named:
        return None if named == "0" else Path(named).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("chunklab", appauthor=False) / "progress.jsonl"


def passed() -> dict[str, datetime]:
    """The checks that have passed, each with the time of the first pass; a line that is damaged is passed over."""
    found: dict[str, datetime]
    path, found = progress_file(), {}
    text = path.read_text(encoding="utf-8", errors="replace") if path and path.exists() else ""
    for line in text.splitlines():
        with suppress(ValueError, TypeError, KeyError):
            row = json.loads(line)
            found.setdefault(str(row["check"]), datetime.fromisoformat(row["passed"]).astimezone(UTC))
    return found


def _note(name: str) -> None:
    """Add a check to those that have passed. That somebody else's solution passes is not noted."""
    path = progress_file()
    if path is None or Path.cwd().name == "solutions" or name in passed():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"check": name, "passed": datetime.now(UTC).isoformat(timespec="seconds")}
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(row)}\n")  # a line that was not written to its end is ended first


def _reason(error: BaseException) -> str:
    """What a learner can do about an error that ended a check."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _of_learner(frame)]
    statement = _statement(*frames[0]) if frames else None
    gaps = [name for name in _names(statement) if frames and _value(name, frames[0][0]) is ...]
    if gaps:
        return f"put your answer in the place of the three dots of `{gaps[0]}`, and run its cell"
    if isinstance(error, NotImplementedError):
        return str(error) or "the exercise above is still to be written"
    if isinstance(error, NameError) and error.name and not isinstance(error, UnboundLocalError):
        return f"`{error.name}` is not defined: run the cells above first"
    if isinstance(error, AssertionError):
        asserted = _statement(*frames[-1]) if frames else None
        told = [str(error), _difference(asserted, frames[-1][0])] if isinstance(asserted, ast.Assert) else [str(error)]
        if not any(told) and isinstance(asserted, ast.Assert):
            told = [f"`{ast.unparse(asserted.test)}` does not hold"]
        return "; ".join(filter(None, told)) or "an assert does not hold"
    line = linecache.getline(frames[-1][0].f_code.co_filename, frames[-1][1]).strip() if frames else ""
    return f"{type(error).__name__}: {error}" + (f", in the line `{line}`" if line else "")


def _of_learner(frame: FrameType) -> bool:
    """Whether a frame runs code of a notebook, not of this module or of a library."""
    return frame.f_globals.get("__name__") == "__main__"


def _statement(frame: FrameType, line: int) -> ast.stmt | None:
    """The innermost statement of a frame's source at a line, or None where the source is not at hand."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    except SyntaxError:
        return None
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max(around, key=lambda n: (n.lineno, n.col_offset), default=None)


def _names(node: ast.AST | None) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)] if node else []


def _value(name: str, frame: FrameType) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


def _difference(asserted: ast.Assert, frame: FrameType) -> str:
    """What the two sides of a failed `==` are, or where two long sequences part; "" for any other assert."""
    test = asserted.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return ""
    try:
        yours, right = (
            eval(compile(ast.Expression(side), "<check>", "eval"), frame.f_globals, frame.f_locals)
            for side in (test.left, test.comparators[0])
        )
    except Exception:
        return ""
    if isinstance(yours, (str, list, tuple)) and type(yours) is type(right) and len(repr(right)) > LONGEST:
        for place, (mine, theirs) in enumerate(zip(yours, right, strict=False)):
            if mine != theirs:
                return f"at {place} yours has {_short(mine, theirs)}, where {_short(theirs, mine)} is expected"
        return f"yours has a length of {len(yours)}, where {len(right)} is expected"
    alike = _short(yours) == _short(right)  # not a number, say, or what a function gives on its second call
    return "" if alike else f"yours is {_short(yours)}, where {_short(right)} is expected"


def _short(value: Any, other: Any = None) -> str:
    """What a value looks like; of a long text the part where it leaves the other one."""
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    same = len(commonprefix([value, other])) if isinstance(value, str) and isinstance(other, str) else 0
    if same < LONGEST // 2:
        return f"{text[: LONGEST - 1]}…"
    return f"…{value[same - LONGEST // 4 : same + LONGEST // 2]!r}…"
