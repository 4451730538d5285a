"""The checks of exercises: kind, exact, and never an error in the notebook; and what they note of a learner's way."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import build
import platformdirs
import pytest
from IPython.core.interactiveshell import InteractiveShell
from test_notebooks import SOURCES

import chunklab
from chunklab import __main__ as cli
from chunklab import progress_page
from chunklab.exercises import check, passed, progress_file


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell()
    yield shell
    shell.history_manager.enabled = False


@pytest.fixture
def said(shell, capsys):
    """Run a notebook's cells as a kernel would; give what they print."""

    def run(*cells):
        shell.reset(new_session=False)
        # The shell takes the name __main__ for its own module, as a kernel does.
        shell.user_ns["__name__"] = "__main__"
        for cell in ("from chunklab.exercises import check", *cells):
            result = shell.run_cell(cell)
            assert result.success, "a check let an error out"
        return capsys.readouterr().out

    return run


def block(*lines):
    return "\n".join(['with check("1.1 Name"):', *(f"    {line}" for line in lines)])


def test_a_solved_exercise_gets_a_tick(said):
    assert said("answer = 4", block("assert answer == 4, 'count again'")) == "✓ 1.1 Name\n"


@pytest.mark.parametrize(
    ("before", "asked", "reason"),
    [
        ("def f(x):\n    raise NotImplementedError", "assert f(1) == 2", "the exercise above is still to be written"),
        ("def f(x):\n    raise NotImplementedError('write f')", "assert f(1) == 2", "write f"),
        ("", "assert f(1) == 2", "`f` is not defined: run the cells above first"),
        ("answer = ...", "assert answer == 2", "put your answer in the place of the three dots of `answer`"),
        ("answer = ...", "assert abs(answer - 2) < 1", "put your answer in the place of the three dots of `answer`"),
        ("def f(x): pass", "assert f(1) == 2", "yours is None, where 2 is expected"),
        ("answer = 3", "assert answer == 2, 'count the gaps'", "count the gaps; yours is 3, where 2 is expected"),
        ("answer = 3", "assert answer < 3", "`answer < 3` does not hold"),
        ("answer = float('nan')", "assert answer == answer", "`answer == answer` does not hold"),
        ("calls = iter([1, 2])", "assert next(calls) == 2", "`next(calls) == 2` does not hold"),
        ("answer = 3", "assert answer < 3, 'smaller'", "smaller\n"),
        ("a = list(range(90))", "assert a == [*range(80), 0, *range(81, 90)]", "at 80 yours has 80, where 0 is exp"),
        ("a = list(range(90))", "assert a == list(range(91))", "yours has a length of 90, where 91 is expected"),
        ("a = 'x' * 999", "assert a == 3", "yours is 'xxxx"),
        ("def f(x):\n    return x[0] + 1", "assert f('a') == 2", "TypeError: can only concatenate"),
        ("def f(x):\n    return x[0] + 1", "assert f('a') == 2", "in the line `return x[0] + 1`"),
        ("def f(x):\n    assert x > 1, 'inner'\n    return x", "assert f(1) == 2", "inner\n"),
    ],
)
def test_an_unsolved_one_is_told_kindly_what_is_wrong(said, before, asked, reason):
    out = said(before, block(asked))
    assert out.startswith("not yet · 1.1 Name: ")
    assert reason in out
    assert out.count("\n") == 1 and len(out) < 300


def test_the_first_assert_that_fails_is_the_one_told(said):
    lines = ["assert answer > 1", "assert answer == 4, 'first'", "assert answer == 5, 'second'"]
    assert "first" in said("answer = 3", block(*lines))


def test_an_interrupt_stops_a_check():
    with pytest.raises(KeyboardInterrupt), check("1.1 Name"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("before", "asked", "reason"),
    [
        ("class A:\n    def __repr__(self): 1 / 0", "assert A() == 3", "1.1 Name: AssertionError\n"),
        ("class A(Exception):\n    def __str__(self): 1 / 0", "raise A", "1.1 Name: A\n"),
        ("class A:\n    def __ne__(self, other): 1 / 0", "assert [A()] * 60 == [0] * 60", "1.1 Name: AssertionError\n"),
        ("def f():\n    return x\n    x = 1", "assert f() == 1", "UnboundLocalError: cannot access local variable 'x'"),
        ("", "raise NameError", "NameError"),
        ("", "raise SystemExit(3)", "SystemExit: 3"),
        ("def f(x): return f(x)", "assert f(1) == 1", "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_what_cannot_be_shown_lets_no_error_out(said, before, asked, reason):
    assert reason in said(before, block(asked))


def test_of_two_long_texts_the_part_where_they_differ_is_shown(said):
    told = said("yours = ['a' * 300 + 'd' + 'c' * 300]", block("assert yours == ['a' * 300 + 'b' + 'c' * 300]"))
    assert "at 0 yours has '…" in told.replace("…'", "'…") and "aadcc" in told and "aabcc" in told
    assert len(told) < 300


# Progress.


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A file for the checks that pass in this test; the folder above it is not there yet."""
    monkeypatch.setenv("CHUNKLAB_PROGRESS", str(tmp_path / "data" / "progress.jsonl"))
    return tmp_path / "data" / "progress.jsonl"


def solve(*names):
    for name in names:
        with check(name):
            pass


def test_tests_and_builds_note_nothing(tmp_path, monkeypatch):
    assert os.environ["CHUNKLAB_PROGRESS"] == build.environment()["CHUNKLAB_PROGRESS"] == "0"
    assert progress_file() is None
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *args, **options: tmp_path)
    solve("1.1 Recall")
    assert passed() == {} and not list(tmp_path.iterdir())


def test_what_passes_is_noted_with_the_time_of_its_first_pass(kept, capsys):
    before = datetime.now(UTC) - timedelta(seconds=1)
    with check("1.1 Recall"):
        raise AssertionError
    assert passed() == {} and not kept.exists()
    solve("1.1 Recall", "1.2 Apply")
    first = passed()
    solve("1.1 Recall")
    assert passed() == first and list(first) == ["1.1 Recall", "1.2 Apply"]
    assert all(before <= time <= datetime.now(UTC) for time in first.values())
    assert len(kept.read_text(encoding="utf-8").split("\n\n")) == 2
    assert capsys.readouterr().out.endswith("✓ 1.1 Recall\n✓ 1.2 Apply\n✓ 1.1 Recall\n")


def test_by_default_it_is_kept_in_the_users_data_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CHUNKLAB_PROGRESS")
    assert progress_file() == platformdirs.user_data_path("chunklab", appauthor=False) / "progress.jsonl"
    monkeypatch.setenv("CHUNKLAB_PROGRESS", "~/mine.jsonl")
    assert progress_file() == (type(tmp_path).home() / "mine.jsonl")


def test_that_a_solution_of_the_courses_own_passes_is_not_noted(kept, tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path / "solutions")
    solve("1.1 Recall")
    assert passed() == {}


@pytest.mark.parametrize(
    "there",
    [
        b"\xff\xfe\x00{",
        b'{"check": "1.1 Re',
        b"[1]\n3\nnull\n{}",
        b'{"check": "2.1 Recall", "passed": "soon"}',
        b'{"check": "2.1 Recall", "passed": 3}',
    ],
)
def test_lines_that_are_damaged_cost_no_others(kept, there):
    solve("1.1 Recall")
    kept.write_bytes(kept.read_bytes() + there)
    solve("1.2 Apply")
    assert list(passed()) == ["1.1 Recall", "1.2 Apply"]


@pytest.mark.parametrize("fault", ["no folder", "a folder in its place", "no home"])
def test_where_nothing_can_be_noted_the_lesson_goes_on(kept, monkeypatch, capsys, fault):
    if fault == "no folder":
        kept.parent.write_bytes(b"")
    elif fault == "a folder in its place":
        kept.mkdir(parents=True)
    else:
        monkeypatch.delenv("CHUNKLAB_PROGRESS")
        monkeypatch.setattr(platformdirs, "user_data_path", lambda *args, **options: 1 / 0)
    solve("1.1 Recall")
    assert capsys.readouterr().out == "✓ 1.1 Recall\n"


def test_notebooks_that_note_at_the_same_time_lose_nothing(kept):
    names = [f"{lesson}.{number} Name" for lesson in range(11) for number in (1, 2, 3)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(solve, names))
    assert set(passed()) == set(names)


def names_of(made):
    return [name for lesson in made.lessons for name in lesson.checks]


def test_progress_knows_every_check_of_the_course_and_begins_at_the_first(kept):
    made = chunklab.progress()
    assert [lesson.title for lesson in made.lessons] == [build.title(source) for source in SOURCES]
    assert [name.partition(" ")[0] for name in names_of(made)] == [f"{n}.{e}" for n in range(11) for e in (1, 2, 3)]
    assert made.next() == ("0.1 Recall", made.lessons[0])
    assert repr(made).startswith("0 of 33 checks have passed\n\n00 · Start here ")
    assert repr(made).endswith("\n\nNext: 0.1 Recall, in notebooks/00_start_here.ipynb")


def test_what_is_next_follows_what_passed_last_and_goes_round(kept):
    names = names_of(chunklab.progress())
    solve(names[4])
    assert chunklab.progress().next()[0] == names[5]
    solve(*names[5:])
    assert chunklab.progress().next()[0] == names[0]
    solve(*names[:4])
    made = chunklab.progress()
    assert made.next() is None
    assert repr(made).startswith("33 of 33 ") and repr(made).endswith("\n\nNothing is left to do")
    assert made._repr_html_().endswith("<p>Nothing is left to do</p>")


def test_in_a_notebook_it_is_a_table_with_links_to_the_lessons_beside_it(kept, tmp_path, monkeypatch):
    cells = [("# 00 · A <b> & c\n\nx", []), ('with check("0.1 <i>"):\n    assert x', ["check"])]
    made = [{"cell_type": "code", "source": text.splitlines(keepends=True), "metadata": {}} for text, _ in cells]
    (tmp_path / "00_a.ipynb").write_text(json.dumps({"cells": made}), encoding="utf-8")
    monkeypatch.setattr(progress_page, "LESSONS", tmp_path)
    shown = chunklab.progress()._repr_html_()
    assert '<td style="text-align: left">00 · A &lt;b&gt; &amp; c</td>' in shown and "0.1 &lt;i&gt;</span>" in shown
    monkeypatch.chdir(tmp_path)
    solve("0.1 <i>")
    shown = chunklab.progress()._repr_html_()
    today = passed()["0.1 <i>"].astimezone().date().isoformat()
    assert '<a href="00_a.ipynb">00 · A &lt;b&gt; &amp; c</a>' in shown and f"✓ 0.1 &lt;i&gt;, {today}<" in shown


def test_the_command_says_what_has_passed_and_where_it_is_kept(kept, capsys, monkeypatch, tmp_path):
    solve("2.2 Apply")
    assert cli.main(["progress"]) == 0
    out = capsys.readouterr().out
    assert "2.1 open  2.2 done  2.3 open" in out and "\nNext: 2.3 Match the library exactly, in" in out
    assert out.endswith(f"\nKept in: {kept}\n")
    monkeypatch.setenv("CHUNKLAB_PROGRESS", str(tmp_path))
    assert cli.main(["progress"]) == 1
    assert capsys.readouterr().err.startswith("chunklab: ")
    monkeypatch.setattr(progress_page, "LESSONS", tmp_path)
    assert cli.main(["progress"]) == 1
    assert "go to the folder of the course" in capsys.readouterr().err
