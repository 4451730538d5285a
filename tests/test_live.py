"""The live editions: the speaker's notes, the rescue cells, and a run with these in place of the emptied ones.

All lessons run in this process, one after the other, each in a namespace of its own: nbval has run the very same code
in fresh kernels, and what is new here, the imports of the rescue cells, needs no kernel. Outputs are compared where
nbval compares them.
"""

import re
import sys

import build
import pytest
from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from live_cells import NOTE
from test_notebooks import DATED, ROOT, code_of, committed, every_lesson, prose_of
from traitlets.config import Config


def tags_of(cell):
    return cell.metadata.get("tags", [])


def rescued(live):
    """The code cells of a live edition, each emptied one left out for the rescue that follows it."""
    cells = code_of(live)
    return [
        cell
        for cell, after in zip(cells, [*cells[1:], None], strict=True)
        if after is None or tags_of(after) != ["rescue"]
    ]


def notes_of(source):
    """Name, minutes and text of each of the speaker's notes."""
    cells = [cell.source for cell in build.read(source) if "speaker" in tags_of(cell)]
    return [(*NOTE.match(text).groups(), " ".join(NOTE.sub("", text).split())) for text in cells]


# The speaker's notes.


@every_lesson
def test_every_section_has_a_note_and_each_stands_under_its_heading(source):
    headings, seen, noted = [], [], []
    for cell in build.read(source):
        if "speaker" in tags_of(cell):
            name = NOTE.match(cell.source)[1].partition(":")[0]
            assert any(title.startswith(name) for _, title in headings), f"{name}: no heading above it begins so"
            noted += [] if noted and noted[-1] == name else [name]
        elif cell.cell_type == "markdown" and (found := re.findall(r"^(#{1,3}) (.+)$", cell.source, re.M)):
            headings = [("#", "Opening")] if not seen else found
            seen += headings
    assert noted == [n for _, title in seen for n in noted if title.startswith(n)], "not in the order of the headings"
    assert [title for marks, title in seen if len(marks) < 3 and not any(map(title.startswith, noted))] == []


@every_lesson
def test_the_minutes_of_the_notes_are_those_of_the_lesson(source):
    stated = re.search(r"\*\*Minutes:\*\* (\d+)", build.read(source)[0].source)[1]
    assert sum(int(minutes) for _, minutes, _ in notes_of(source)) == int(stated)


@every_lesson
def test_a_note_is_short_and_says_nothing_that_the_lesson_does_not_print(source):
    course = committed(source, "course")
    shown = "\n".join(text for cell in course.cells for text in build._strings(cell)).replace(",", "")
    for name, _, text in notes_of(source):
        assert 20 <= len(text.split()) <= 75, f"{name}: {len(text.split())} words"
        assert not DATED.search(text) and not build._math_by_accident(text, prose=True)
        numbers = re.findall(r"[+−-]?\d[\d,]*\.?\d+", text)
        unknown = [n for n in numbers if n.replace(",", "").replace("−", "-") not in shown.replace("−", "-")]
        assert not unknown, f"{name}: {unknown} stand nowhere in the lesson"


@every_lesson
def test_only_the_live_edition_has_notes_and_rescue_cells(source):
    for edition in ("course", "solutions"):
        assert not any({"speaker", "rescue"} & set(tags_of(cell)) for cell in committed(source, edition).cells)
    live = committed(source, "live")
    assert sum("speaker" in tags_of(cell) for cell in live.cells) == len(notes_of(source))
    assert prose_of(live).count("> <details><summary><b>Speaker · ") == len(notes_of(source))


# The rescue cells.


@every_lesson
def test_every_cell_of_the_course_is_there_as_it_is_or_with_a_rescue(source):
    live, course = rescued(committed(source, "live")), code_of(committed(source, "course"))
    assert [cell.id.removesuffix("-rescue") for cell in live] == [cell.id for cell in course]
    for ours, cell in zip(live, course, strict=True):
        built = any(tag.startswith("same-as:") for tag in tags_of(cell))
        assert built or ours.source.removeprefix("# Rescue: the lesson's own code.\n") == cell.source
    hidden = [cell for cell in code_of(committed(source, "live")) if cell.metadata.get("jupyter")]
    assert all(cell.metadata.jupyter == {"source_hidden": True} and tags_of(cell) == ["rescue"] for cell in hidden)
    assert len(hidden) == sum(cell.id.endswith("-rescue") for cell in live) > 5


@pytest.fixture(scope="module")
def run():
    """Run a cell as a kernel does, but in this process; give what it printed and what it showed, images aside."""
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.display_trap.hook = CapturingDisplayHook(shell, results := [])

    def run(code):
        results.clear()
        with capture_output() as shown:
            result = shell.run_cell(code)
        assert result.success, f"{code}\n{result.error_before_exec or result.error_in_exec!r}"
        return shown.stdout, [
            seen(data) for data in (*(out.data for out in shown.outputs), *(r["data"] for r in results))
        ]

    yield run
    shell.reset(new_session=False)
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


def seen(data):
    """What a page shows of it; pandas fits its plain text to a screen, and this process has none."""
    return {
        kind: data[kind] for kind in data if kind != "image/png" and not (kind == "text/plain" and "text/html" in data)
    }


@every_lesson
def test_a_live_edition_runs_with_the_rescue_cells_and_shows_what_the_course_shows(source, run, request, monkeypatch):
    monkeypatch.chdir(ROOT / "notebooks" / "live")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    run("%reset -f")
    run("__name__ = '__main__'")
    course = {cell.id: cell for cell in committed(source, "course").cells}
    for cell in rescued(committed(source, "live")):
        shown, there = run(cell.source), course[cell.id.removesuffix("-rescue")]
        if not request.config.option.nbval_lax and "nbval-ignore-output" not in tags_of(there):
            printed = "".join(out.get("text", "") for out in there.outputs)
            assert shown == (printed, [seen(out.data) for out in there.outputs if "data" in out]), cell.source
