"""Which checks of the exercises have passed, lesson by lesson, and what to do next.

For a learner who comes back after a week, and for a class that compares notes. What has passed stays on the learner's
machine (`exercises.progress_file`), whatever becomes of the notebooks. Cost: the lessons are read, a few milliseconds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from chunklab.exercises import passed

LESSONS = Path(__file__).resolve().parents[1] / "notebooks"


@dataclass(frozen=True)
class Lesson:
    """A lesson: its title with its number, its file, and the names of its checks."""

    title: str
    path: Path
    checks: list[str]


@dataclass(frozen=True, repr=False)
class Progress:
    """The lessons, and which of their checks have passed, and when."""

    lessons: list[Lesson]
    passed: dict[str, datetime]

    def next(self) -> tuple[str, Lesson] | None:
        """The first check after the one that passed last that has not, going round; its lesson. None if all have."""
        checks = [(name, lesson) for lesson in self.lessons for name in lesson.checks]
        done = [(self.passed[name], place) for place, (name, _) in enumerate(checks) if name in self.passed]
        begin = max(done)[1] + 1 if done else 0
        left = (check for check in checks[begin:] + checks[:begin] if check[0] not in self.passed)
        return next(left, None)

    def __repr__(self) -> str:
        rows = [(lesson.title, "  ".join(map(self._mark, lesson.checks))) for lesson in self.lessons]
        width = max((len(title) for title, _ in rows), default=0)
        return "\n".join(
            [self._counted(), "", *(f"{title:{width}}  {marks}" for title, marks in rows), "", self._told()]
        )

    def _repr_html_(self) -> str:
        rows = [[_link(lesson), *map(self._cell, lesson.checks)] for lesson in self.lessons]
        cells = ["".join(f'<td style="text-align: left">{cell}</td>' for cell in row) for row in rows]
        ahead = self.next()
        told = f"Next: <b>{escape(ahead[0])}</b>, in {_link(ahead[1])}" if ahead else self._told()
        return f"<p>{self._counted()}</p><table><tr>{'</tr><tr>'.join(cells)}</tr></table><p>{told}</p>"

    def _counted(self) -> str:
        names = [name for lesson in self.lessons for name in lesson.checks]
        return f"{sum(name in self.passed for name in names)} of {len(names)} checks have passed"

    def _told(self) -> str:
        ahead = self.next()
        return f"Next: {ahead[0]}, in notebooks/{ahead[1].path.name}" if ahead else "Nothing is left to do"

    def _mark(self, name: str) -> str:
        return f"{name.partition(' ')[0]} {'done' if name in self.passed else 'open'}"

    def _cell(self, name: str) -> str:
        if name not in self.passed:
            return f'<span style="opacity: 0.6">{escape(name)}</span>'
        return f"✓ {escape(name)}, {self.passed[name].astimezone():%Y-%m-%d}"


def progress() -> Progress:
    """Which checks of the exercises you have passed, and what to do next.

    What passes is noted on your machine alone. The environment variable CHUNKLAB_PROGRESS names another file for it, or
    is "0" to have nothing noted.

    Returns:
        What shows as a table in a notebook, and as text elsewhere.

    Raises:
        FileNotFoundError: the lessons are not beside the package.
    """
    lessons = [_read(path) for path in sorted(LESSONS.glob("[0-9][0-9]_*.ipynb"))]
    if not lessons:
        raise FileNotFoundError(f"no lessons in {LESSONS}: go to the folder of the course and install it from there")
    return Progress(lessons, passed())


def _read(path: Path) -> Lesson:
    """A lesson as its notebook has it."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    checks = [found[1] for text in texts if (found := re.search(r'^with check\("([^"]+)"\)', text, re.MULTILINE))]
    return Lesson(texts[0].partition("\n")[0].removeprefix("# "), path, checks)


def _link(lesson: Lesson) -> str:
    """A lesson's title; a link to it where the notebook that shows this stands beside it."""
    title = escape(lesson.title)
    return f'<a href="{escape(lesson.path.name)}">{title}</a>' if Path.cwd() == lesson.path.parent else title
