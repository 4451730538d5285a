"""The lessons as they are committed: built from their sources, run to the end, and made as design asks.

nbval runs them; these tests close what it leaves open (test_build.py shows each hole). To mend most of what they find:
python notebooks/build.py
"""

import ast
import builtins
import re
import statistics
import symtable
from importlib import import_module
from pathlib import Path

import build
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = build.lessons(ROOT / "notebooks")
RUN = ["course", "solutions"]
# Cells that are tagged nbval-ignore-output, a lesson: what a rerun or another machine changes, such as versions, or seconds.
IGNORED = {"00": 1, "10": 3}
LONG = {"04", "08"}  # may have half as much again
SECTIONS = "Predict, Build it, Check it, See it, Measure it, Break it, Exercises, Key points, Quiz, Take it with you"
# Lesson 00 runs the pipeline and builds no chunker of its own.
WITHOUT = {"00": {"The flaw", "Check it"}}
BUILDS_NOTHING = {"00", "08", "09", "10"}
TO_COME: set[str] = set()  # lessons that are not written yet, though later ones are
DATED = re.compile(r"\b(recent(ly)?|nowadays|currently|brand[- ]new|state[- ]of[- ]the[- ]art|cutting[- ]edge)\b", re.I)

every_lesson = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
every_edition = pytest.mark.parametrize("edition", build.EDITIONS)
every_run = pytest.mark.parametrize("edition", RUN)


def committed(source, edition):
    return nbformat.read(build.edition_path(source, edition), as_version=4)


def code_of(notebook, tag=None):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell for cell in cells if tag is None or tag in cell.metadata.get("tags", [])]


def prose_of(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def lines_of(cell):
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def section(source, name):
    """The cells of the course under a heading, to the next one."""
    cells, inside = [], False
    for cell in build.make(source, "course").cells:
        if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.M):
            inside = re.search(rf"^## {name}", cell.source, re.M) is not None
        if inside:
            cells.append(cell)
    return cells


# The editions.


def test_the_lessons_are_numbered_without_a_gap():
    numbers = [source.stem[:2] for source in SOURCES]
    assert numbers == sorted(set(numbers))
    assert {f"{n:02d}" for n in range(int(numbers[-1]) + 1)} - set(numbers) <= TO_COME
    assert build.stray(ROOT / "notebooks") == []


@every_lesson
@every_edition
def test_an_edition_follows_from_its_source(source, edition):
    assert not build.is_stale(source, edition), f"run: python notebooks/build.py {source.stem[:2]}"


@every_lesson
@every_run
def test_an_edition_was_run_and_has_no_fault(source, edition):
    assert build.faults(committed(source, edition)) == []


@every_lesson
def test_the_live_edition_was_not_run_and_holds_nothing_private(source):
    live = committed(source, "live")
    assert not any(cell.outputs or cell.execution_count for cell in code_of(live))
    assert not any(pattern.search(cell.source) for pattern in build.PRIVATE.values() for cell in live.cells)


@every_lesson
@every_edition
def test_an_edition_is_written_as_the_build_writes(source, edition, tmp_path):
    build.write(committed(source, edition), tmp_path / "again.ipynb")
    assert build.edition_path(source, edition).read_bytes() == (tmp_path / "again.ipynb").read_bytes()


@every_lesson
@every_run
def test_few_outputs_are_left_uncompared(source, edition):
    ignored = code_of(committed(source, edition), "nbval-ignore-output")
    assert len(ignored) == IGNORED.get(source.stem[:2], 0), "state the number in IGNORED, with a reason"
    assert not any("same-as" in tag for cell in ignored for tag in cell.metadata.tags)


def test_pytest_runs_every_edition(request):
    options = request.config.option
    whole = request.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not whole or options.keyword or options.markexpr or options.lf or options.deselect:
        pytest.skip("only a part of the tests was asked for")
    assert options.nbval and options.nbval_current_env and options.nbval_cell_timeout <= build.SECONDS
    run = {item.path for item in request.session.items}
    assert {build.edition_path(source, edition) for source in SOURCES for edition in RUN} <= run


# The exercises.


@every_lesson
def test_three_exercises_each_have_a_check_and_a_hint(source):
    cells = section(source, "Exercises")
    tagged = [tag for c in cells for tag in c.metadata.get("tags", []) if tag in ("exercise", "check")]
    assert tagged == ["exercise", "check"] * 3
    text = "\n".join(cell.source for cell in cells)
    assert re.findall(r'with check\("([\d.]+) ', text) == [f"{int(source.stem[:2])}.{n}" for n in (1, 2, 3)]
    assert text.count("<details>") == 3
    whole = build.make(source, "course")
    assert len(code_of(whole, "exercise")) == len(code_of(whole, "check")) == 3


@every_lesson
def test_starters_are_not_yet_solved_and_solutions_are(source):
    for edition, opening in (("course", "not yet · "), ("solutions", "✓ ")):
        for cell in code_of(committed(source, edition), "check"):
            printed = "".join(output.get("text", "") for output in cell.outputs)
            assert printed.startswith(opening) and printed.count("\n") == 1


# The lesson as design asks for it.


@every_lesson
def test_a_lesson_has_its_sections_in_order(source):
    number = source.stem[:2]
    wanted = [name for name in ["The flaw", *SECTIONS.split(", ")] if name not in WITHOUT.get(number, ())]
    headings = re.findall(r"^## (.+)$", prose_of(build.make(source, "course")), re.M)
    found = [name for heading in headings for name in wanted if heading.startswith(name)]
    assert found == wanted


@every_lesson
def test_a_lesson_opens_with_its_question_aim_minutes_and_prerequisites(source):
    opening = "\n".join(cell.source for cell in build.make(source, "course").cells[:3])
    assert "?" in opening and "ou will be able to" in opening
    assert re.search(r"\*\*Minutes:\*\* \d+\b", opening) and re.search(r"\*\*Before:\*\* \w", opening)


@every_lesson
def test_a_lesson_has_the_length_of_a_lesson(source):
    notebook = build.make(source, "course")
    sizes = [lines_of(cell) for cell in code_of(notebook)]
    assert 25 <= len(notebook.cells) <= 45
    assert max(sizes) <= 15 and statistics.median(sizes) < 6
    # Folded hints and answers, and code shown, are not read in one go with the rest; links to other lessons not at all.
    read = re.sub(r"<details>.*?</details>|```.*?```", "", prose_of(notebook), flags=re.S)
    read = read.replace(build.navigation(source, "course"), "")
    assert 800 <= len(read.split()) <= (2250 if source.stem[:2] in LONG else 1500)
    assert len(prose_of(notebook).split()) <= 2200 or source.stem[:2] in LONG


@every_lesson
def test_a_lesson_has_no_dated_words(source):
    assert DATED.findall(prose_of(build.make(source, "course"))) == []


@every_lesson
def test_a_quiz_has_five_questions_with_folded_answers(source):
    quiz = "\n".join(cell.source for cell in section(source, "Quiz"))
    assert quiz.count("<details>") == quiz.count("</details>") == 5
    assert quiz.count("?") >= 5


# A lesson's code is the package's.


def bare(node):
    """A definition's syntax tree, docstrings and annotations aside."""
    tree = ast.parse(ast.unparse(node))
    for part in ast.walk(tree):
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(part) is not None:
            part.body = part.body[1:] or [ast.Pass()]
        for name in ("returns", "annotation"):
            if hasattr(part, name) and not isinstance(part, ast.AnnAssign):
                setattr(part, name, None)
    return ast.dump(_Plain().visit(tree))


class _Plain(ast.NodeTransformer):
    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value else None


def definitions(code):
    """Name to node of what stands at the top of a piece of code: functions, classes, names given a value."""
    found = {}
    for node in ast.parse(code).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    return found


def globals_of(code, name):
    """The names that a definition takes from around it."""

    def inside(table):
        yield from (s.get_name() for s in table.get_symbols() if s.is_global())
        for child in table.get_children():
            yield from inside(child)

    tables = symtable.symtable(code, "cell", "exec").get_children()
    used = {symbol for table in tables if table.get_name() == name for symbol in inside(table)}
    return used - {name} - set(dir(builtins))


def differences(cells):
    """Where the cells tagged same-as part from the package that they name; (all, differing)."""
    known, seen, wrong = {}, [], []
    for cell in cells:
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.ImportFrom):
                known |= {a.asname or a.name: getattr(import_module(node.module), a.name, None) for a in node.names}
            elif isinstance(node, ast.Import):
                known |= {a.asname or a.name.split(".")[0]: import_module(a.name) for a in node.names}
        here = definitions(cell.source)
        tags = [tag.removeprefix("same-as:") for tag in cell.metadata.get("tags", []) if tag.startswith("same-as:")]
        pairs = [(import_module(tag.rsplit(".", 1)[0]), tag.rsplit(".", 1)[1]) for tag in tags]
        known |= dict.fromkeys(here) | {name: getattr(module, name, None) for module, name in pairs}
        for module, name in pairs:
            there = definitions(Path(module.__file__).read_text(encoding="utf-8"))
            if name not in here or name not in there or bare(here[name]) != bare(there[name]):
                wrong.append(f"{name} is not that of {module.__name__}")
                continue
            for used in globals_of(ast.unparse(here[name]), name):
                if used not in known or known[used] is not getattr(module, used, None):
                    wrong.append(f"{name} uses {used}, which is not that of {module.__name__}")
        if tags and (others := set(here) - {name for _, name in pairs}):
            wrong.append(f"{', '.join(others)}: in a cell tagged same-as, and not named by it")
        seen += tags
    return seen, wrong


@every_lesson
def test_the_functions_of_a_lesson_are_those_of_the_package(source):
    seen, wrong = differences(code_of(build.make(source, "solutions")))
    assert wrong == []
    assert seen or source.stem[:2] in BUILDS_NOTHING


GOOD = """import ast
def _names(node):
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)] if node else []"""


@pytest.mark.parametrize(
    ("code", "right"),
    [
        (GOOD, True),
        (GOOD.replace("(node):", '(node: object) -> list:\n    "Words."'), True),
        (GOOD.replace("[]", "[0]"), False),
        (GOOD.replace("import ast", "import re as ast"), False),
        (GOOD.replace("import ast\n", ""), False),
        (GOOD + "\nx = 1", False),
        (GOOD.replace("_names", "names"), False),
    ],
)
def test_a_function_that_differs_from_the_packages_is_told(code, right):
    cell = nbformat.v4.new_code_cell(code, metadata={"tags": ["same-as:chunklab.exercises._names"]})
    assert (differences([cell])[1] == []) is right


def test_a_helper_of_the_lessons_own_is_told():
    helper = nbformat.v4.new_code_cell("import linecache\nimport ast\ndef _names(node):\n    return 1")
    caller = Path(import_module("chunklab.exercises").__file__).read_text(encoding="utf-8")
    code = ast.unparse(definitions(caller)["_reason"])
    cell = nbformat.v4.new_code_cell(code, metadata={"tags": ["same-as:chunklab.exercises._reason"]})
    assert "_reason uses _names, which is not that of chunklab.exercises" in differences([helper, cell])[1]
