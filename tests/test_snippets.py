"""What a learner takes away runs alone: in an empty folder, with the standard library and what it names.

"Take it with you" of each lesson names its packages as "`pip install …`"; a file of `chunkers/` comes with the files of
chunklab that it imports, and the packages are those that they import. A bare Python sees links to these packages and to
what they depend on, and nothing else: neither the repository, nor what else is installed, nor the network.
"""

import ast
import doctest
import os
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import distribution, packages_distributions

import build
import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_frame import PROJECT, ROOT, imports

import chunklab
from chunklab.models.weights import cache_folder

SOURCES = build.lessons(ROOT / "notebooks")
FILES = sorted(path.stem for path in (ROOT / "chunklab" / "chunkers").glob("*.py") if path.stem != "__init__")
OURS = {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]}

# How a bare Python starts: in an empty folder, with the packages as its only argument.
START = """
import sys

def no_network(event, arguments):
    if event == "socket.getaddrinfo":
        raise ConnectionError(f"{arguments[0]}: nothing here may need the network")

sys.addaudithook(no_network)
sys.path[:0] = ["", sys.argv[1]]
"""

# The examples of these files need more than they import, or there are none; this is all that they need.
CALLS = {
    "added_headings": """
from langchain_core.language_models import FakeListChatModel
from chunklab.chunkers.added_headings import add_headings

model = FakeListChatModel(responses=['{"headings": [{"paragraph": 2, "title": "Rates"}]}'])
assert add_headings("It rains.\\n\\nRates rose.", model).text == "It rains.\\n\\n## Rates\\n\\nRates rose."
""",
    "asking": """
from langchain_core.language_models import FakeListChatModel
from pydantic import BaseModel
from chunklab.chunkers.asking import Asker
from chunklab.chunkers.questions import question

class Word(BaseModel):
    word: str

def plan():
    [answer] = yield [question("Say a word.", "{}", Word)]
    return answer.word

assert Asker(FakeListChatModel(responses=['{"word": "tide"}'])).run(plan()) == "tide"
""",
    "blocks": """
from chunklab.chunkers.blocks import smaller, units_of
from chunklab.chunkers.markdown import outline

read = outline("It rains. It pours.\\n\\nIt stops.")
one, two = units_of(read, 0, len(read.blocks), 0, 0, len(read.text))
assert (one.end, two.end) == (21, 30) and [part.end for part in smaller(read, one, 2)] == [10, 21]
""",
    "chain": """
from chunklab.chunk import Chunker
from chunklab.chunkers.chain import SplitterChain

class Lines(Chunker):
    def spans(self, text):
        return [(start, start + 3) for start in range(0, len(text), 4)]

ids = [chunk.id for chunk in SplitterChain([Lines(), Lines()]).chunk("one two")]
assert ids == ["doc_0", "doc_0_0", "doc_1", "doc_1_0"]
""",
    "cluster": """
from langchain_core.embeddings import DeterministicFakeEmbedding
from chunklab.chunkers.cluster import ClusterChunker

chunker = ClusterChunker(DeterministicFakeEmbedding(size=8), 20, 10, len)
assert " ".join(chunker.split_text("One two. Three four. Five six.")) == "One two. Three four. Five six."
""",
    "contextual": """
from langchain_core.language_models import FakeListChatModel
from chunklab.chunk import Chunk
from chunklab.chunkers.contextual import add_context

model = FakeListChatModel(responses=['{"document_title": "Report", "chunk_title": "Revenue"}'])
[chunk] = add_context([Chunk("It rose.", 0, 8, "doc", "doc_0", None, 0, 1)], "It rose.", model)
assert chunk.text == "Report: Revenue\\nIt rose."
""",
    "semantic": """
from langchain_core.embeddings import DeterministicFakeEmbedding
from chunklab.chunkers.semantic import SemanticChunker

chunker = SemanticChunker(DeterministicFakeEmbedding(size=8), number_of_chunks=2)
assert len(chunker.split_text("One two. Three four. Five six.")) == 2
""",
    "semantic_window": """
from langchain_core.embeddings import DeterministicFakeEmbedding
from chunklab.chunkers.semantic_window import SemanticWindowChunker

chunker = SemanticWindowChunker(DeterministicFakeEmbedding(size=8), size=1, threshold=1)
assert chunker.split_text("One two. Three four.") == ["One two.", "Three four."]
""",
}


# A bare Python.


def needed(lines):
    """The names of the distributions that `pip install` of these lines would bring to this machine."""
    todo, seen = [Requirement(line) for line in lines], set()
    while todo:
        wanted = todo.pop()
        one = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if one not in seen:
            seen.add(one)
            for part in map(Requirement, distribution(wanted.name).requires or []):
                if part.marker is None or any(part.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)):
                    todo.append(part)
    return frozenset(name for name, _ in seen)


def link_all(name, folder):
    """Put links to a distribution's files into a folder; packages are linked whole, so that they need no compiling."""
    found = distribution(name)
    packages = {file.parent for file in found.files if file.name == "__init__.py"}
    for file in found.files:
        whole = next((parent for parent in reversed(file.parents) if parent in packages), file)
        link = folder / whole
        if ".." not in file.parts and "__pycache__" not in file.parts and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(found.locate_file(whole), target_is_directory=whole in packages)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Make a folder that holds just what `pip install` of some names would bring."""

    @cache
    def folder_of(names):
        folder = tmp_path_factory.mktemp("packages")
        try:
            for name in sorted(names):
                link_all(name, folder)
        except OSError as error:
            pytest.skip(f"no links can be made here: {error}")
        return folder

    return lambda lines: folder_of(needed(lines))


@pytest.fixture
def alone(packages, tmp_path):
    """Run a program with a bare Python, in a folder that is empty but for what a test put there."""

    def run(program, named=(), **variables):
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
        return subprocess.run(
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", START + program, str(packages(tuple(named)))],
            cwd=tmp_path,
            env=kept | variables,
            capture_output=True,
            encoding="utf-8",
        )

    return run


def test_a_bare_python_has_the_standard_library_and_what_is_named_with_what_that_needs(alone):
    assert alone("import json, sqlite3\nprint(6 * 7)").stdout == "42\n"
    assert alone("import pydantic, pydantic_core, typing_extensions", ["pydantic"]).returncode == 0
    assert alone("import httpx, anyio", ["httpx"]).returncode == 0


@pytest.mark.parametrize("missing", ["numpy", "pydantic", "pytest", "pip", "chunklab"])
def test_what_is_not_named_is_missing_from_a_bare_python(alone, missing):
    assert f"No module named '{missing}'" in alone(f"import {missing}", ["regex"]).stderr


def test_the_network_is_out_of_a_bare_pythons_reach(alone):
    program = "import urllib.request\nurllib.request.urlopen('http://localhost:1')"
    assert "localhost: nothing here may need the network" in alone(program).stderr


# Take it with you.


def take_away(source):
    """The prose of "Take it with you" up to its code, and the code."""
    cells = build.read(source)
    place = next(n for n, cell in enumerate(cells) if re.search("^## Take it with you", cell.source, re.M))
    [code] = [n for n, cell in enumerate(cells) if n > place and cell.cell_type == "code"]
    prose = "\n\n".join(cell.source for cell in cells[place:code])
    return prose[prose.index("## Take it with you") :], cells[code].source


def named_in(prose):
    return [name for line in re.findall(r"`pip install ([^`]+)`", prose) for name in line.split()]


def showing(code):
    """A program that prints what the notebook shows: its last expression."""
    last = ast.parse(code).body[-1]
    assert isinstance(last, ast.Expr), "the snippet ends in no call that shows what it does"
    return "\n".join([*code.splitlines()[: last.lineno - 1], f"print(repr(({ast.get_source_segment(code, last)})))"])


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_take_it_with_you_runs_alone_and_gives_what_the_lesson_shows(source, alone):
    prose, code = take_away(source)
    done = alone(showing(code), named_in(prose))
    assert done.returncode == 0, done.stderr
    cells = nbformat.read(build.edition_path(source, "course"), as_version=4).cells
    [shown] = [cell.outputs[-1].data["text/plain"] for cell in cells if cell.source == code]
    assert ast.literal_eval(done.stdout) == ast.literal_eval(shown)


def test_a_snippet_that_imports_what_it_does_not_name_is_told(alone):
    _, code = take_away(SOURCES[8])
    assert alone(showing(code), named_in("You need `pip install numpy`.")).returncode == 0
    assert "No module named 'numpy'" in alone(showing(code), named_in("You need nothing.")).stderr


# The files of chunkers/.


@cache
def graph():
    return imports()


def copied(module):
    """The modules of chunklab that come with one: what it imports, and what that imports; the packages around them."""
    found, todo = {"chunklab"}, [module]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [*graph()[name], name.rpartition(".")[0]]
    return found


def path_of(module):
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def distributions():
    return packages_distributions()


def named_by(path):
    """The distributions that a file imports, and, where it imports by name, those that its first docstring names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules, found = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules.add(node.module.split(".")[0])
            if any(alias.name == "import_module" for alias in node.names):
                found = OURS.intersection(re.findall(r"[\w-]+", ast.get_docstring(tree)))
    modules -= {"chunklab", *sys.stdlib_module_names}
    return found | {canonicalize_name(distributions()[name][0]) for name in modules}


def examples(module, files):
    """The names of what has examples that these files are enough for."""
    found = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(module), module):
        tree = ast.parse("".join(example.source for example in test.examples))
        taken = {
            a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "chunklab" for a in n.names
        }
        if test.examples and all(f"chunklab.{chunklab._MODULE_OF[name]}" in files for name in taken):
            found.append(test.name)
    return found


RUN_EXAMPLES = """
import doctest, importlib
module = importlib.import_module({module!r})
tests = doctest.DocTestFinder().find(module, module.__name__)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
for test in tests:
    if test.name in {names!r}:
        runner.run(test)
assert runner.summarize().failed == 0
"""


def copy_to(folder, files):
    for module in files:
        path = folder / path_of(module).relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(path_of(module).read_bytes())


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_chunkers_runs_with_what_it_imports(name, alone, tmp_path):
    module = f"chunklab.chunkers.{name}"
    files = copied(module)
    copy_to(tmp_path, files)
    named = set().union(*(named_by(path_of(other)) for other in files))
    assert named <= OURS
    names, public = examples(module, files), chunklab._WHERE.get(f"chunkers.{name}", [])
    used = names if not public else {f"{module}.{one}" for one in public}.intersection(names)
    assert used or name in CALLS, "what this file is for is not run: give it an example, or a call in CALLS"
    program = RUN_EXAMPLES.format(module=module, names=names) + CALLS.get(name, "")
    done = alone(program, named, CHUNKLAB_CACHE=str(cache_folder()))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_needs_more_than_it_imports_is_told(alone, tmp_path):
    files = copied("chunklab.chunkers.words")
    copy_to(tmp_path, files)
    named = set().union(*(named_by(path_of(other)) for other in files))
    hidden = "__import__('chunklab.chunkers.words'); __import__({!r})"
    assert files == {"chunklab", "chunklab.chunkers", "chunklab.chunkers.words"} and named == {"numpy"}
    assert alone(hidden.format("numpy"), named).returncode == 0
    for other in ("chunklab.chunk", "regex"):
        assert f"No module named '{other}'" in alone(hidden.format(other), named).stderr
