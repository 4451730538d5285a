"""The build: from a source to its editions, and the holes of nbval that it closes (cases nb-01 to nb-13)."""

import os
import shutil

import build
import live_cells
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError, CellTimeoutError

ONE = '''\
# %% [markdown]
# # Equal pieces
#
# **Minutes:** 20. See the [data](../data/README.md).

# %% [markdown] tags=["speaker"]
# **Opening · 15 min** Say why, from the
# [data](../data/README.md).

# %%
from itertools import pairwise

from chunklab.exercises import check

# %%
# Three places.
places = [0, 4, 8]
print(len(places))

# %% tags=["scaffold"]
length = 12

# %% tags=["exercise"]
def gaps(places):
    """What lies between neighbours."""
    # BEGIN SOLUTION
    return [b - a for a, b in pairwise(places)]
    # END SOLUTION
    # STARTER: # pairwise gives each place with the next
    # STARTER: raise NotImplementedError

# %% tags=["check"]
with check("1.1 Gaps"):
    assert gaps(places) == [4, 4]

# %% [markdown] tags=["speaker"]
# **Break it · 5 min** Ask who.

# %% tags=["nbval-ignore-output"]
import time

print(time.perf_counter())
'''
TWO = "# %% [markdown]\n# # The next\n#\n# Words.\n\n# %%\n41 + 1\n\n# %% [markdown]\n# The end.\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of two tiny lessons, built."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "source").mkdir()
    (folder / "source" / "01_one.py").write_text(ONE, encoding="utf-8")
    (folder / "source" / "02_two.py").write_text(TWO, encoding="utf-8")
    assert build.main(["--check"], folder) == 1
    assert build.main([], folder) == 0
    return folder


def codes(course, edition, tag=None):
    """The code of an edition's cells, rescue cells aside; or the text of those with a tag."""
    cells = nbformat.read(build.edition_path(course / "source" / "01_one.py", edition), 4).cells
    if tag:
        return [cell.source for cell in cells if tag in cell.metadata.get("tags", [])]
    return [cell.source for cell in cells if cell.cell_type == "code" and not cell.id.endswith("-rescue")]


def outputs(course, edition):
    notebook = nbformat.read(build.edition_path(course / "source" / "01_one.py", edition), 4)
    return ["".join(o.get("text", "") for o in c.outputs) for c in notebook.cells if c.cell_type == "code"]


def test_an_exercise_is_a_starter_in_the_course_and_solved_in_the_solutions(course):
    head = 'def gaps(places):\n    """What lies between neighbours."""\n'
    start = head + "    # pairwise gives each place with the next\n    raise NotImplementedError"
    assert codes(course, "course")[3] == codes(course, "live")[3] == start
    assert codes(course, "solutions")[3] == head + "    return [b - a for a, b in pairwise(places)]"


def test_a_starter_is_told_kindly_and_a_solution_passes(course):
    assert outputs(course, "course")[4].startswith("not yet · 1.1 Gaps: ")
    assert outputs(course, "solutions")[4] == "✓ 1.1 Gaps\n"


def test_the_live_edition_keeps_imports_prompts_and_scaffolding(course):
    live = codes(course, "live")
    assert live[0] == "from itertools import pairwise\n\nfrom chunklab.exercises import check"
    assert live[1:3] == ["# Three places.\n# Used below: places", "length = 12"]
    assert live[5] == "# See the text above.\nimport time"
    assert not any(outputs(course, "live"))


def test_the_live_edition_has_a_folded_rescue_under_each_emptied_cell(course):
    lead = "# Rescue: the lesson's own code.\n"
    whole = codes(course, "course")
    assert codes(course, "live", "rescue") == [lead + whole[1], lead + whole[5]]
    cells = nbformat.read(course / "live" / "01_one.ipynb", 4).cells
    for place, cell in enumerate(cells):
        if "rescue" in cell.metadata.get("tags", []):
            assert cell.metadata.jupyter == {"source_hidden": True}
            assert cell.id == f"{cells[place - 1].id}-rescue"


def test_the_live_edition_alone_has_the_speakers_notes_and_when_each_begins(course):
    assert codes(course, "course", "speaker") == codes(course, "solutions", "speaker") == []
    first, second = codes(course, "live", "speaker")
    head = "> <details><summary><b>Speaker · Opening · 15 min, from 0:00</b></summary>\n>\n"
    assert first == f"{head}> Say why, from the\n> [data](../../data/README.md).\n>\n> </details>"
    assert "<b>Speaker · Break it · 5 min, from 0:15</b></summary>\n>\n> Ask who.\n" in second


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("show_chunks(chunks, text)", "show_chunks(chunks, text)"),
        ("plot_sizes(chunks)", "plot_sizes(chunks)"),
        ("x = 1", "# See the text above."),
        ("d = 1", "# See the text above.\n# Used below: d"),
        ("# Say why.\n# And how.\n\nx = 1  # not this", "# Say why.\n# And how."),
        ("# Say why.\nimport re\nx = 1\nfrom os import path", "# Say why.\nimport re\nfrom os import path"),
        ("x = 1\n# And then.\nfor y in z:\n    # no\n    y = '# no'", "# And then."),
        ("def f(x, *, y=1):\n    # no\n    return x", "# To write: f(x, *, y=1)"),
        ("class A(B):\n    pass\n\n\nclass C:\n    pass", "# To write: class A(B), class C"),
        ("# Say why.\na, (b, *c) = 1, (2, 3)\nd = 4", "# Say why.\n# Used below: b, d"),
    ],
)
def test_what_the_live_edition_keeps_of_a_cell(code, kept):
    assert live_cells.prompts(code, [], ["c = 0\nb + c", "print(d)"]) == kept


def test_of_a_cell_that_builds_what_the_package_has_the_figure_stays_and_the_rescue_imports():
    code = "import re\n# How.\ndef f(x):\n    return x\ndef g(x):\n    return f(x)\n\nplot_sizes(f(1))\nf(2)"
    tags = ["same-as:chunklab.a.f", "same-as:chunklab.a.g", "same-as:chunklab.b.h"]
    assert live_cells.prompts(code, tags) == "# How.\n# To write: f(x), g(x)\nimport re\nplot_sizes(f(1))"
    lead = (
        "# Rescue: f and g and h from the package, finished.\nfrom chunklab.a import f, g\nfrom chunklab.b import h\n\n"
    )
    assert live_cells.rescue(code, tags) == f"{lead}import re\nplot_sizes(f(1))\nf(2)"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a = b", "b"),
        ("a = a + 1", "a"),
        ("a += 1", "a"),
        ("a = 1\nb = a", ""),
        ("for a in b:\n    c = a + d", "b d"),
        ("[a + b for a in c if d]", "b c d"),
        ("{a: b for a, (b, *c) in d}", "d"),
        ("f = lambda a, b=c: a + b + d", "c d"),
        ("def f(a, b=c):\n    d = a\n    return d + e", "c e"),
        ("class A(b):\n    def c(self):\n        return d", "b d"),
        ("with a as b:\n    b(c)", "a c"),
        ("a.b = c\nd[e] = 1", "a c d e"),
        ("(a := b) + a", "b"),
        ("import a.c\nfrom d import e as f\na.b + f + e", "e"),
    ],
)
def test_which_names_a_cell_takes_from_those_above_it(code, names):
    assert live_cells.used([code]) == set(names.split())


def test_lessons_are_linked_in_every_edition(course):
    for edition, root in (("course", ".."), ("solutions", "../.."), ("live", "../..")):
        first = nbformat.read(build.edition_path(course / "source" / "01_one.py", edition), 4).cells
        second = nbformat.read(build.edition_path(course / "source" / "02_two.py", edition), 4).cells
        contents = f"[All lessons]({root}/README.md#the-lessons)"
        links = f"{contents} | [02 · The next →](02_two.ipynb)"
        assert first[0].source.startswith(f"# 01 · Equal pieces\n\n{links}\n\n")
        assert f"({root}/data/README.md)" in first[0].source
        assert first[-1].source == links
        assert second[-1].source == f"The end.\n\n[← 01 · Equal pieces](01_one.ipynb) | {contents}"


def test_a_build_is_right_repeatable_and_followed_by_nothing_to_do(course, capsys, monkeypatch):
    path = course / "01_one.ipynb"
    before = path.read_text(encoding="utf-8")
    assert build.main(["--check"], course) == 0
    # Only the cell whose output is ignored differs, so the file stays as it was.
    assert build.build(course / "source" / "01_one.py", "course") == ""
    assert path.read_text(encoding="utf-8") == before
    assert build.faults(nbformat.reads(before, 4)) == []
    monkeypatch.setattr(build, "is_older", lambda path: False)
    capsys.readouterr()
    assert build.main([], course) == 0
    assert capsys.readouterr().out == "all editions follow from their sources\n"


def test_ids_follow_the_content(course):
    first, again = (build.make(course / "source" / "01_one.py", edition) for edition in ("course", "solutions"))
    assert [cell.id for cell in first.cells] == [cell.id for cell in again.cells]
    assert len({cell.id for cell in first.cells}) == len(first.cells)


@pytest.mark.parametrize("part", ["source", "cell", "turn", "kernel", "neighbour"])
def test_an_edition_that_does_not_follow_from_its_source_is_told_and_built_anew(course, tmp_path, part):
    folder = tmp_path / "course"
    shutil.copytree(course, folder)
    one, two = folder / "source" / "01_one.py", folder / "source" / "02_two.py"
    edits = {"cell": ("0, 4, 8", "0, 4, 9"), "turn": ('_count": 1,', '_count": 7,'), "kernel": ('"python3"', '"mine"')}
    if part == "source":
        one.write_text(ONE.replace("Three places", "Some places"), encoding="utf-8")
    elif part == "neighbour":
        two.write_text(TWO.replace("The next", "Another"), encoding="utf-8")
    else:
        path = folder / "01_one.ipynb"
        path.write_text(path.read_text(encoding="utf-8").replace(*edits[part]), encoding="utf-8")
    assert build.is_stale(one, "course")
    assert build.main(["--check"], folder) == 1
    assert build.build(one, "course") == ""
    assert not build.is_stale(one, "course")
    one.unlink()
    assert folder / "live" / "01_one.ipynb" in build.stray(folder)


def test_an_edition_with_a_fault_is_not_written(tmp_path, capsys):
    (tmp_path / "source").mkdir()
    source = tmp_path / "source" / "01_one.py"
    for code, fault in (("1 / 0", "ZeroDivisionError"), ("open('a', 'w').close()", "leaves files behind: a")):
        source.write_text(f"# %% [markdown]\n# # One\n\n# %%\n{code}\n", encoding="utf-8")
        assert build.main([], tmp_path) == 1
        assert fault in capsys.readouterr().out
        assert not (tmp_path / "01_one.ipynb").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("# %%\n1 + 1\n", "the first cell must be"),
        ('# %% [markdown]\n# # A\n\n# %% tags=["exercise"]\nx = 1\n', "cell 1: a cell tagged exercise"),
        ("# %% [markdown]\n# # A\n\n# %%\n# BEGIN SOLUTION\nx = 1\n# END SOLUTION\n", "cell 1: a cell tagged exercise"),
        ("# %% [markdown]\n# # A\n\n# %% [raw]\n# x\n", "cell 1: is of type raw"),
        ('# %% [markdown]\n# # A\n\n# %% [markdown] tags=["speaker"]\n# x\n', "cell 1: a cell tagged speaker"),
        ('# %% [markdown]\n# # A\n\n# %% tags=["speaker"]\n1\n', "cell 1: a cell tagged speaker"),
    ],
)
def test_markup_that_is_not_ours_is_an_error_that_names_the_cell(tmp_path, source, message):
    path = tmp_path / "01_one.py"
    path.write_text(source, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        build.read(path)


def test_an_unknown_lesson_is_an_error(course, capsys):
    with pytest.raises(SystemExit):
        build.main(["07"], course)
    assert "no lesson 07: there are 01, 02" in capsys.readouterr().err


# The holes. Every notebook here passes nbval, or fails it without need.


def notebook(code, *outputs, turn=1, tags=()):
    cell = nbformat.v4.new_code_cell(code, execution_count=turn, outputs=list(outputs))
    if tags:
        cell.metadata["tags"] = list(tags)
    return nbformat.v4.new_notebook(cells=[cell], metadata=build.METADATA)


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", text=text, name=name)


def shown(kind, text):
    return nbformat.v4.new_output("display_data", {kind: text})


def prose(text):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)], metadata=build.METADATA)


TQDM = "from tqdm import tqdm\nfor i in tqdm(range(3)): pass\nprint(1)"


def test_nb_01_a_progress_bar_is_off_in_a_build_and_a_fault_where_it_shows(tmp_path):
    made = notebook(TQDM)
    build.execute(made, tmp_path)
    assert [(o.name, o.text) for o in made.cells[0].outputs] == [("stdout", "1\n")]
    assert build.faults(made) == []
    bar = stream("100%|██████████| 3/3", "stderr")
    assert "wrote to stderr" in build.faults(notebook(TQDM, bar, stream("1\n")))[0]
    assert build.faults(notebook(TQDM, bar, tags=["nbval-ignore-output"])) == []


@pytest.mark.parametrize(
    "code",
    ["%no_such_magic here\nraise ValueError(1)", "%%no_such_magic\n1", "%matplotlib inline", "x = %pwd", "len?"],
)
def test_nb_03_a_magic_is_a_fault(code):
    assert "is not plain Python" in build.faults(notebook(code))[0]


def test_nb_03_an_unknown_magic_stops_the_build(tmp_path):
    with pytest.raises(CellExecutionError):
        build.execute(notebook("%no_such_magic here\nraise ValueError(1)"), tmp_path)


@pytest.mark.parametrize("turn", [None, 2, 0])
def test_nb_04_a_cell_that_never_ran_or_ran_out_of_turn_is_a_fault(turn):
    assert "not run top to bottom in one go" in build.faults(notebook("x = 41 + 1\nx", turn=turn))[0]


@pytest.mark.parametrize(
    "code",
    [
        "from IPython.display import display\nh = display('a', display_id=True)\nh.update('b')",
        "from IPython.display import clear_output\nclear_output()",
        "import IPython.display as d\nd.update_display('a')",
    ],
)
def test_nb_05_changing_an_output_afterwards_is_a_fault(code):
    assert build.faults(notebook(code))


@pytest.mark.parametrize("code", ["41 + 1;", "41 + 1;  # hidden", "plot_sizes(x);\n", "x = 1\nx; "])
def test_nb_06_an_output_hidden_by_a_semicolon_is_a_fault(code):
    assert "ends in ';'" in build.faults(notebook(code))[0]


def test_nb_06_semicolons_elsewhere_are_not():
    assert build.faults(notebook('x = "a;"')) == build.faults(notebook("x = 1; y = 2")) == []


def test_nb_07_a_private_kernel_is_a_fault():
    made = notebook("print(1)", stream("1\n"))
    made.metadata["kernelspec"]["name"] = "chunk-course-env"
    assert "metadata" in build.faults(made)[0]


@pytest.mark.parametrize(
    "code",
    [
        "!exit 3\nprint(1)",
        "files = !ls",
        "import os\nos.system('exit 3')",
        "from os import system\nsystem('exit 3')",
        "import os\nos.popen('exit 3')",
        "get_ipython().system('exit 3')",
        "import subprocess\nsubprocess.run(['false'])",
        "from subprocess import run\nrun(['false'], check=False)",
        "import subprocess\nsubprocess.call('false')",
        "import subprocess\nsubprocess.Popen('false')",
        "import subprocess\nsubprocess.getoutput('false')",
    ],
)
def test_nb_08_a_command_whose_failure_passes_is_a_fault(code):
    assert build.faults(notebook(code))


def test_nb_08_a_command_that_is_checked_is_none():
    assert build.faults(notebook("import subprocess\n\nsubprocess.run(['true'], check=True)")) == []
    assert build.faults(notebook("import os\n\nrun = len\nrun(os.name)")) == []


DOLLARS = "Cost rose from $31 a share to $135 million."


@pytest.mark.parametrize(
    ("made", "right"),
    [
        (prose(DOLLARS), False),
        (prose(DOLLARS.replace("$", r"\$")), True),
        (prose(f"`{DOLLARS}`\n\n```\n{DOLLARS}\n```"), True),
        (prose("The distance is $1 - c$, or $d_i$."), True),
        (notebook("x", shown("text/markdown", DOLLARS)), False),
        (notebook("x", shown("text/html", f"<div>{DOLLARS}</div>")), False),
        (notebook("x", shown("text/html", f"<br>{DOLLARS.replace('$', '&#36;')}")), False),
        (notebook("x", shown("text/html", f"<pre>{DOLLARS}</pre>")), True),
        (notebook("x", shown("text/html", f'<div class="a tex2jax_ignore"><p>{DOLLARS}</p></div>')), True),
        (notebook("x", shown("text/html", f"<p>{DOLLARS.replace('$', '<span>$</span>')}</p>")), True),
        (notebook("x", stream(DOLLARS)), True),
    ],
)
def test_nb_10_dollars_shown_as_mathematics_are_a_fault(made, right):
    assert (build.faults(made) == []) is right


def test_nb_13_a_slow_cell_stops_the_build_in_good_time(tmp_path):
    with pytest.raises(CellTimeoutError):
        build.execute(notebook("import time; time.sleep(20)"), tmp_path, seconds=1)
    assert "uses sleep" in build.faults(notebook("import time; time.sleep(20)"))[0]


@pytest.mark.parametrize(
    "made",
    [
        notebook(""),
        notebook("# NBVAL_SKIP\nx = 1"),
        notebook("# NBVAL_IGNORE_OUTPUT\nx = 1"),
        notebook("x = 1", tags=["nbval-skip"]),
        notebook("x = 1", tags=["raises-exception"]),
        notebook("x = 1", tags=["skip-execution"]),
        notebook("object()", shown("text/plain", "<object object at 0x7f3a5c0d1b20>")),
        notebook("1 / 0", nbformat.v4.new_output("error", ename="ZeroDivisionError", evalue="", traceback=[])),
        notebook("x", stream("\n/" + "home/someone/course")),
        notebook("x", stream("C:\\" + "Users\\someone")),
        notebook("key = 'sk-" + "a1" * 16 + "'"),
        prose("Write to someone@" + "mail.org."),
    ],
)
def test_what_else_is_a_fault(made):
    assert build.faults(made)


def test_what_is_no_fault():
    assert build.faults(prose("Write to keeper@vell.example; see a/home/b and https://docs.org/home/x.")) == []
    assert build.faults(notebook("x = 1", tags=["same-as:chunklab.chunkers.fixed.fixed_spans", "check"])) == []


def test_lessons_run_without_keys_tracking_or_progress(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    made = build.environment()
    assert "OPENAI_API_KEY" not in made and made["LANGSMITH_TRACING"] == "false" and made["TQDM_DISABLE"] == "1"
    assert made["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    "left", ["", "[]", "{}", "<<<<<<< HEAD\n{}", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}']
)
def test_an_edition_that_is_no_notebook_is_stale_and_built_anew(tmp_path, left):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "02_two.py").write_text("# %% [markdown]\n# # The next\n#\n# Words.\n", encoding="utf-8")
    (tmp_path / "live").mkdir()
    made = tmp_path / "live" / "02_two.ipynb"
    made.write_text(left, encoding="utf-8")
    assert build.is_stale(tmp_path / "source" / "02_two.py", "live")
    assert build.build(tmp_path / "source" / "02_two.py", "live") == ""
    assert not build.is_stale(tmp_path / "source" / "02_two.py", "live")
