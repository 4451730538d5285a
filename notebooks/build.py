"""Make the three editions of each lesson from its source, and say what is wrong with them.

    python notebooks/build.py            build what is out of date
    python notebooks/build.py 01 02      these lessons only
    python notebooks/build.py --force    build anew, whatever the date
    python notebooks/build.py --check    run nothing; list the editions that do not follow from their source
    python notebooks/build.py --site     run nothing; make a site of the lessons as they stand, in `_site`

The sources, `notebooks/source/NN_name.py`, are percent-format scripts (jupytext) and the only files edited by hand.
From each come the course (exercises as starters), `solutions/` (exercises solved), both executed top to bottom, and
`live/` for live coding, not executed: code emptied, a rescue cell under each emptied one, and the speaker's notes. No
edition with a fault (see `faults`) is written. Tests run the same checks on what is committed, and the rescue cells.
It serves who writes lessons and who teaches them; a build takes the time that the lesson takes, twice.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import jupytext
import nbformat
from bs4 import BeautifulSoup
from IPython.core.displayhook import DisplayHook
from live_cells import NOTE, note, prompts, rescue
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

HERE = Path(__file__).resolve().parent
EDITIONS = {"course": ".", "solutions": "solutions", "live": "live"}
SECONDS = 60
TAGS = {"exercise", "check", "scaffold", "nbval-ignore-output"}
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}
# What a rerun would change, what leaves the machine, and what would call somebody else's model.
ENVIRONMENT = {
    "CHUNKLAB_LIVE": "0",  # what a lesson asks of a language model must be recorded
    "CHUNKLAB_PROGRESS": "0",  # the checks that a learner has passed are the learner's own
    "TQDM_DISABLE": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "RAGAS_DO_NOT_TRACK": "true",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "ORT_DISABLE_TELEMETRY": "1",
}
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "LANGSMITH_API_KEY")
PRIVATE = {
    "an absolute path": re.compile(
        r"(?<![\w.])/(?:home|root|tmp|work|Users|farm|opt|private|var/folders)/[\w.-]+|\b[A-Z]:\\{1,2}Users\b"
    ),
    "what looks like a secret": re.compile(
        r"\b(?:sk-|[Bb]earer |(?:ghp|gho|hf|pypi|xoxb)[_-])[A-Za-z0-9._-]{20,}|\bAKIA[0-9A-Z]{16}\b"
    ),
    "an e-mail address": re.compile(r"\b[\w.+-]+@(?!(?:[\w-]+\.)*example\b)[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b"),
}
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{7,}\b")
HIDES = {"clear_output", "update_display", "display_id", "DisplayHandle", "get_ipython", "sleep", "exit", "quit"}
# What of os and subprocess goes on after a command that failed.
SILENT = {"system", "popen", "Popen", "call", "getoutput", "getstatusoutput"}


def lessons(folder: Path = HERE) -> list[Path]:
    """The sources, in the order of the course."""
    return sorted((folder / "source").glob("[0-9][0-9]_*.py"))


def edition_path(source: Path, edition: str) -> Path:
    """Where an edition of a lesson is written."""
    return source.parent.parent / EDITIONS[edition] / f"{source.stem}.ipynb"


def environment() -> dict[str, str]:
    """The variables that lessons are run with, by the build and by the tests: quiet, untracked, and without a key."""
    return {name: value for name, value in os.environ.items() if name not in KEYS} | ENVIRONMENT


# From the source to an edition.


def read(source: Path) -> list[NotebookNode]:
    """The cells of a source: type, text and tags; a ValueError names a cell that the markup does not allow."""
    text = source.read_text(encoding="utf-8")
    percent = {"extension": ".py", "format_name": "percent", "comment_magics": False}
    cells = jupytext.reads(text, percent).cells
    if not cells or not cells[0].source.startswith("# ") or "\n# # " not in text:
        raise ValueError(f"{source.name}: the first cell must be '# %% [markdown]', and '# # ' with the title under it")
    for place, cell in enumerate(cells):
        tags = cell.metadata.get("tags", [])
        marks = ("# BEGIN SOLUTION" in cell.source, "# END SOLUTION" in cell.source, "# STARTER:" in cell.source)
        if cell.cell_type not in ("markdown", "code"):
            raise ValueError(f"{source.name}, cell {place}: is of type {cell.cell_type}, not markdown or code")
        if any(marks) != all(marks) or all(marks) != ("exercise" in tags):
            raise ValueError(
                f"{source.name}, cell {place}: a cell tagged exercise, and no other, has # BEGIN SOLUTION, "
                "# END SOLUTION and # STARTER: lines"
            )
        if "speaker" in tags and (cell.cell_type != "markdown" or not NOTE.match(cell.source)):
            raise ValueError(
                f"{source.name}, cell {place}: a cell tagged speaker is prose that opens '**Name · 5 min**'"
            )
    return cells


def title(source: Path) -> str:
    """A lesson's number and title, as "01 · Fixed size"."""
    first = re.search(r"^# # (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    return f"{source.stem[:2]} · {first.group(1).strip() if first else source.stem[3:]}"


def navigation(source: Path, edition: str) -> str:
    """One line of links: the lesson before, all lessons, the lesson after."""
    course = lessons(source.parent.parent)
    place = course.index(source)
    root = "../README.md" if edition == "course" else "../../README.md"
    links = [f"[All lessons]({root}#the-lessons)"]
    if place > 0:
        links.insert(0, f"[← {title(course[place - 1])}]({course[place - 1].stem}.ipynb)")
    if place + 1 < len(course):
        links.append(f"[{title(course[place + 1])} →]({course[place + 1].stem}.ipynb)")
    return " | ".join(links)


def starter(code: str) -> str:
    """An exercise as the learner gets it: the solution taken out, the starter lines put in."""
    without = re.sub(r"^ *# BEGIN SOLUTION\n.*?^ *# END SOLUTION(?:\n|\Z)", "", code, flags=re.M | re.S)
    return re.sub(r"^( *)# STARTER: ?", r"\1", without, flags=re.M).rstrip("\n")


def solution(code: str) -> str:
    """An exercise solved: the marks and the starter lines taken out."""
    marks = r"^ *# (?:BEGIN SOLUTION|END SOLUTION|STARTER:[^\n]*)(?:\n|\Z)"
    return re.sub(marks, "", code, flags=re.M).rstrip("\n")


def make(source: Path, edition: str) -> NotebookNode:
    """An edition of a lesson, not yet executed."""
    notebook = nbformat.v4.new_notebook(metadata=METADATA)
    cells, seen, minutes = read(source), Counter(), 0
    for place, cell in enumerate(cells):
        tags, text = cell.metadata.get("tags", []), cell.source
        if "speaker" in tags and edition != "live":
            continue
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        seen[digest] += 1
        # A cell keeps its id in all editions and wherever it moves; a twin gets the number of its turn.
        name = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        if cell.cell_type == "markdown":
            if edition != "course":
                text = re.sub(r"(\]\(|src=\"|href=\")\.\./", r"\1../../", text)
            if "speaker" in tags:
                text, minutes = note(text, minutes), minutes + int(NOTE.match(text)[2])
            new = nbformat.v4.new_markdown_cell(text, id=name)
        else:
            if "exercise" in tags:
                text = solution(text) if edition == "solutions" else starter(text)
            elif edition == "live":
                later = (solution(after.source) for after in cells[place + 1 :] if after.cell_type == "code")
                text = prompts(text, tags, later)
            new = nbformat.v4.new_code_cell(text, id=name)
        if tags:
            new.metadata["tags"] = list(tags)
        notebook.cells.append(new)
        if edition == "live" and cell.cell_type == "code" and "exercise" not in tags and text != cell.source:
            folded = {"jupyter": {"source_hidden": True}, "tags": ["rescue"]}
            code = rescue(cell.source, tags)
            notebook.cells.append(nbformat.v4.new_code_cell(code, id=f"{name}-rescue", metadata=folded))
    return frame(notebook, source, edition)


def frame(notebook: NotebookNode, source: Path, edition: str) -> NotebookNode:
    """Number the title, and add the links at the start and the end."""
    links = navigation(source, edition)
    notes = {
        "course": "",
        "solutions": f"*The exercises solved. [The lesson itself](../{source.stem}.ipynb)*\n\n",
        "live": "*For live coding: the code is left to you. Under each emptied cell a folded one, the rescue, holds it "
        f"finished: run it, or step over it. [The lesson itself](../{source.stem}.ipynb)*\n\n",
    }
    _, _, rest = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"# {title(source)}\n\n{links}\n\n{notes[edition]}{rest.strip()}"
    if notebook.cells[-1].cell_type == "markdown":
        notebook.cells[-1].source += f"\n\n{links}"
    else:
        notebook.cells.append(nbformat.v4.new_markdown_cell(links, id="navigation"))
    return notebook


def execute(notebook: NotebookNode, folder: Path, seconds: float = SECONDS) -> None:
    """Run a notebook in place, top to bottom in one fresh kernel of this very environment, as nbval does.

    Args:
        notebook: changed in place.
        folder: the working directory: where the notebook stands, as in JupyterLab.
        seconds: the most that one cell may take.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; the message shows it.
        nbclient.exceptions.CellTimeoutError: a cell took too long.
    """
    place = {"metadata": {"path": str(folder)}}
    options = {"resources": place, "timeout": seconds, "record_timing": False, "coalesce_streams": True}
    client = NotebookClient(notebook, kernel_name=CURRENT_ENV_KERNEL_NAME, **options)
    client.create_kernel_manager().kernel_spec_manager = NbvalKernelspecManager()
    client.execute(env=environment(), stderr=subprocess.DEVNULL)
    notebook.metadata = nbformat.from_dict(METADATA)


# What is wrong with an edition.


def faults(notebook: NotebookNode) -> list[str]:
    """What nbval, or a reader, would not forgive or would not see in an executed notebook; empty if it is right.

    nbval alone passes a cell that never ran, an unknown magic with an error behind it, and a `!command` that fails.
    """
    found = [] if notebook.metadata == METADATA else ["the notebook's metadata are not those that build.py writes"]
    turn = 0
    for place, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        strange = [tag for tag in tags if tag not in TAGS and not tag.startswith("same-as:")]
        here = [f"has the tag {tag}, which is not one of ours" for tag in strange]
        if set(cell.metadata) - {"tags"}:
            here.append(f"has metadata beside its tags: {', '.join(sorted(cell.metadata))}")
        if cell.cell_type == "code":
            turn += 1
            here += _code_faults(cell.source)
            if cell.execution_count != turn:
                here.append(f"was run as number {cell.execution_count}, not {turn}: not run top to bottom in one go")
            for output in cell.outputs:
                here += _output_faults(output, "nbval-ignore-output" in tags)
        elif _math_by_accident(re.sub(r"```.*?```|`[^`\n]*`", "", cell.source, flags=re.S), prose=True):
            here.append("two dollar signs would be shown as mathematics: write \\$")
        everything = "\n".join(_strings(cell))
        here += [f"holds {what}" for what, pattern in PRIVATE.items() if pattern.search(everything)]
        found += [f"cell {place} {fault}" for fault in here]
    return found


def _strings(part: object) -> list[str]:
    """Every text in a part of a notebook, however deep; images aside."""
    if isinstance(part, dict):
        return [text for key, value in part.items() if key != "image/png" for text in _strings(value)]
    if isinstance(part, list):
        return [text for value in part for text in _strings(value)]
    return [part] if isinstance(part, str) else []


def _code_faults(code: str) -> list[str]:
    try:
        tree = compile(code, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return ["is not plain Python: no %magics and no !commands, whose failures nbval does not see"]
    names = {getattr(node, key, None) for node in ast.walk(tree) for key in ("id", "attr", "arg", "name", "module")}
    found = [f"uses {name}, which a run without a person cannot show as it was" for name in sorted(names & HIDES)]
    unchecked = "subprocess" in names and any(map(_runs_unchecked, ast.walk(tree)))
    if unchecked or (names & {"os", "subprocess"} and names & SILENT):
        found.append("runs a command whose failures nbval does not see: use subprocess.run(…, check=True)")
    if not code.strip():
        found.append("is empty")
    if re.search(r"^\s*#+\s*(?:NBVAL|PYTEST_VALIDATE)_", code, re.MULTILINE):
        found.append("has a comment that steers nbval: use the tag nbval-ignore-output, which is counted")
    if DisplayHook.semicolon_at_end_of_expression(code):
        found.append("ends in ';', which hides an output that nbval compares all the same: give it a name")
    return found


def _runs_unchecked(node: ast.AST) -> bool:
    """Whether this calls a `run` of subprocess, but not to fail when the command does."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("run", "subprocess.run"):
        return False
    return not any(k.arg == "check" and isinstance(k.value, ast.Constant) and k.value.value for k in node.keywords)


def _output_faults(output: NotebookNode, ignored: bool) -> list[str]:
    found = []
    if output.output_type == "error":
        found.append(f"ended in an error: {output.ename}: {output.evalue}")
    if output.output_type == "stream" and output.name == "stderr" and not ignored:
        found.append("wrote to stderr (a progress bar, a warning), which differs from run to run")
    data = output.get("data", {})
    text = "\n".join(str(data[kind]) for kind in data if kind.startswith("text/")) + output.get("text", "")
    if ADDRESS.search(text):
        found.append("shows a memory address, which no other run will give")
    if any(map(_math_by_accident, [data.get("text/markdown", ""), *_texts(data.get("text/html", ""))])):
        found.append("shows text with two dollar signs, which JupyterLab takes for mathematics")
    return found


def _math_by_accident(text: str, prose: bool = False) -> bool:
    """Whether two dollar signs stand in a text; in prose, where formulas are meant, only before a digit."""
    return len(re.findall(r"(?<![\\$])\$(?=\d)" if prose else r"(?<!\\)\$", text)) > 1


def _texts(html: str) -> list[str]:
    """The pieces of text in HTML in which JupyterLab looks for mathematics."""
    left_alone = {"pre", "code", "script", "style", "textarea", "math", "select", "option", "noscript", "annotation"}
    classes = {"tex2jax_ignore", "mathjax_ignore"}
    return [
        str(text)
        for text in BeautifulSoup(html, "html.parser").find_all(string=True)
        if not any(parent.name in left_alone or classes & set(parent.get("class") or []) for parent in text.parents)
    ]


def cells_of(notebook: NotebookNode) -> list[tuple]:
    """What the source says of each cell; outputs and execution counts aside."""
    return [(c.cell_type, c.id, c.source, dict(c.metadata)) for c in notebook.cells]


def is_stale(source: Path, edition: str) -> bool:
    """Whether an edition is missing, has a fault, or is not what its source, or its place in the course, gives."""
    path = edition_path(source, edition)
    if not path.exists():
        return True
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception:  # whatever a merge or a crash has left there
        return True
    wrong = notebook.metadata != METADATA or (edition != "live" and faults(notebook))
    return bool(wrong) or cells_of(notebook) != cells_of(make(source, edition))


def stray(folder: Path = HERE) -> list[Path]:
    """Editions without a source."""
    stems = {source.stem for source in lessons(folder)}
    return [p for place in EDITIONS.values() for p in sorted((folder / place).glob("*.ipynb")) if p.stem not in stems]


# Writing.


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook so that equal notebooks are equal files."""
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook, version=4).rstrip("\n") + "\n", encoding="utf-8", newline="\n")


def compared(notebook: NotebookNode) -> list:
    """What a rerun must give again: all but the outputs that nbval is told to ignore, and images."""
    kept = []
    for cell in notebook.cells:
        ignored = cell.cell_type != "code" or "nbval-ignore-output" in cell.metadata.get("tags", [])
        outputs = [] if ignored else cell.outputs
        kept.append([{**o, "data": {k: v for k, v in o.get("data", {}).items() if k != "image/png"}} for o in outputs])
    return [cells_of(notebook), kept]


def build(source: Path, edition: str, force: bool = False) -> str:
    """Make, run and write one edition; "" if all went well, else what is wrong with it (and nothing is written)."""
    path = edition_path(source, edition)
    path.parent.mkdir(exist_ok=True)
    notebook = make(source, edition)
    if edition != "live":
        before, begun = set(path.parent.rglob("*")), time.perf_counter()
        try:
            execute(notebook, path.parent)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return f"{path.name}: {error}"
        seconds = time.perf_counter() - begun
        print(f"  {seconds:.0f} s" + (f": a lesson has {SECONDS}" if seconds > SECONDS else ""))
        found = faults(notebook)
        if litter := set(path.parent.rglob("*")) - before:
            found.append(f"leaves files behind: {', '.join(sorted(p.name for p in litter))}")
        if found:
            return "\n".join(f"{path.name}: {fault}" for fault in found)
        kept = not force and not is_stale(source, edition)
        if kept and compared(nbformat.read(path, as_version=4)) == compared(notebook):
            os.utime(path)
            return ""
    write(notebook, path)
    return ""


def is_older(path: Path) -> bool:
    """Whether the package or the data have changed since an edition was built."""
    parts = [*HERE.parent.glob("chunklab/**/*.py"), *HERE.parent.glob("data/**/*.*")]
    return path.stat().st_mtime < max((p.stat().st_mtime for p in parts), default=0)


def main(arguments: list[str] | None = None, folder: Path = HERE) -> int:
    """Build or check the editions; 0 if all is well."""
    parser = argparse.ArgumentParser(description="Make the three editions of each lesson from its source.")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="the lessons, by number; all of them if none is given")
    parser.add_argument("--force", action="store_true", help="build what is up to date too")
    parser.add_argument("--check", action="store_true", help="run nothing; list the editions that are out of date")
    parser.add_argument("--site", action="store_true", help="run nothing; make a site of the lessons, in _site")
    options = parser.parse_args(arguments)
    if options.site:
        from pages import build_site  # which loads nbconvert

        build_site(folder.parent / "_site", folder.parent)
        print("the site is in _site: open _site/index.html")
        return 0
    known = [source.stem[:2] for source in lessons(folder)]
    if unknown := set(options.numbers) - set(known):
        parser.error(f"no lesson {', '.join(sorted(unknown))}: there are {', '.join(known)}")
    wrong = [f"{path} has no source: delete it" for path in stray(folder)]
    for source in lessons(folder):
        for edition in EDITIONS if not options.numbers or source.stem[:2] in options.numbers else ():
            path = edition_path(source, edition)
            stale = is_stale(source, edition)
            if options.check:
                wrong += [f"{edition} {source.stem} does not follow from its source: run notebooks/build.py"] * stale
            elif stale or options.force or edition != "live" and is_older(path):
                print(f"{edition} {source.stem}", flush=True)
                if problem := build(source, edition, options.force):
                    wrong.append(problem)
    print("\n".join(wrong) or "all editions follow from their sources")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
