"""The repository as a whole: its layout, imports, lock, links, licences, and that nothing private stands in it."""

import ast
import graphlib
import json
import re
import subprocess
import sys
import tomllib
from importlib.util import resolve_name
from pathlib import Path

import build
import nbformat
import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement

import chunklab

ROOT = Path(__file__).resolve().parents[1]
TOP = {"notebooks", "chunklab", "data", "tests", "requirements.txt", "README.md", "pyproject.toml", "LICENSE"}
DOTS = {".ci", ".github", ".gitignore", ".gitattributes"}
# A module imports from its own row and the rows above it; models and exercises from nothing but themselves.
LAYERS = [
    "exercises",
    "progress_page",
    "models",
    "chunk",
    "chunkers",
    "settings",
    "formats",
    "documents",
    "corpus",
    "index_file",
    "queries",
    "retrieval",
    "multi_vector",
    "metrics",
    "passages",
    "retriever",
    "strategies",
    "hybrid",
    "counting",
    "rows",
    "choosing",
    "evaluation",
    "kept_rows",
    "sweeping",
    "ragas_metrics",
    "judging",
    "question_checks",
    "question_file",
    "testset",
    "known_items",
]
LAYERS += [
    "figures",
    "curves",
    "score_figures",
    "view",
    "explorer_picture",
    "explorer",
    "explorer_page",
    "record",
    "chunk_files",
    "chunk_table",
    "corpus_worker",
    "ray_session",
    "scale",
    "own_documents",
    "recommendation_page",
    "recommendation",
    "recommending",
    "__main__",
]
ALONE = {"models", "exercises", "chunk"}
HEAVY = {"onnxruntime", "faiss", "wordllama", "pandas", "matplotlib", "tiktoken", "tokenizers", "langchain_openai"}
HEAVY |= {"bm25s", "Stemmer", "numpy", "langchain_core", "langchain_text_splitters", "ragas", "ray", "ipywidgets"}
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".cfg", ".sh", ".json", ".jsonl", ".ipynb", ".csv", ""}
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")


def files():
    """Every file that git has or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def texts():
    return [path for path in files() if path.suffix in TEXT]


# Layout.


def test_the_top_level_is_that_of_the_design():
    found = {path.relative_to(ROOT).parts[0] for path in files()}
    assert found <= TOP | DOTS and found >= TOP


def test_no_file_is_too_large():
    sizes = {path.name: path.stat().st_size for path in files()}
    assert {name for name, size in sizes.items() if size > 5_000_000} == set()
    assert {name for name, size in sizes.items() if size > 3_000_000 and name.endswith((".json", ".ipynb"))} == set()


def test_nothing_private_stands_in_any_file():
    found = [
        f"{path.relative_to(ROOT)}: {what}: {match.group(0)}"
        for path in texts()
        for what, pattern in build.PRIVATE.items()
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_text_files_are_utf_8_with_plain_line_ends():
    assert [path.name for path in texts() if b"\r\n" in path.read_bytes()] == []


# The package.


def imports():
    """Module of the package to the modules of the package that it imports, anywhere in its code."""
    graph = {}
    for path in sorted((ROOT / "chunklab").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        package = ".".join(parts[:-1])
        found = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
                found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        graph[name] = {other for other in found if other.split(".")[0] == "chunklab"} - {"chunklab"}
    return {name: found & set(graph) for name, found in graph.items()}


def row(module):
    return module.split(".")[1]


def test_imports_run_one_way():
    graph = imports()
    assert {row(name) for name in graph if "." in name} <= set(LAYERS)
    wrong = [
        f"{name} imports {other}"
        for name, others in graph.items()
        if "." in name
        for other in others
        if LAYERS.index(row(other)) > LAYERS.index(row(name)) or (row(name) in ALONE and row(other) != row(name))
    ]
    assert wrong == []


def test_imports_run_in_no_circle():
    graph = imports()
    # A package holds what its parts hold; only the parts are asked.
    graphlib.TopologicalSorter({name: others - {name} for name, others in graph.items()}).prepare()


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, chunklab; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert HEAVY & set(out.split()) == set()


@pytest.mark.parametrize("name", chunklab.__all__)
def test_a_public_name_is_there_and_explained(name):
    assert (getattr(chunklab, name).__doc__ or "").strip()


def test_an_unknown_name_is_an_error_that_lists_the_known():
    with pytest.raises(AttributeError, match="no attribute 'FixedSizeChunkr'; it has .*FixedSizeChunker"):
        chunklab.FixedSizeChunkr  # noqa: B018


def test_the_distribution_holds_every_part():
    parts = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "chunklab").rglob("*.py")}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == parts


# The lock.


def locked():
    return [Requirement(line) for line in LOCK.splitlines()[:-1]]


def environments():
    systems = [("linux", "Linux", "posix", "x86_64"), ("darwin", "Darwin", "posix", "arm64")]
    for platform, system, name, machine in [*systems, ("win32", "Windows", "nt", "AMD64")]:
        for python in ("3.11", "3.12", "3.13"):
            names = {"sys_platform": platform, "platform_system": system, "os_name": name, "platform_machine": machine}
            yield default_environment() | names | {"python_version": python, "python_full_version": f"{python}.9"}


def test_the_lock_is_names_versions_and_markers_and_ends_with_the_course_itself():
    lines = LOCK.split("\n")
    assert lines[-2:] == ["-e .", ""]
    assert [line for line in lines[:-2] if not re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; [\w .'<>=!()]+)?", line)] == []


def test_the_lock_keeps_every_range_on_every_system():
    project = PROJECT["project"]
    ranges = project["dependencies"] + project["optional-dependencies"]["test"]
    for environment in environments():
        here = [r for r in locked() if r.marker is None or r.marker.evaluate(environment)]
        versions = {r.name: str(r.specifier).removeprefix("==") for r in here}
        assert len(versions) == len(here)
        for wanted in map(Requirement, ranges):
            if wanted.marker is None or wanted.marker.evaluate(environment):
                assert wanted.specifier.contains(versions[wanted.name.lower()], prereleases=True), str(wanted)


def test_nb_11_no_package_needs_data_that_it_does_not_bring():
    assert not {"nltk", "spacy", "llama-index-core", "tree-sitter-language-pack"} & {r.name for r in locked()}


# README, licences, automation.


def commands():
    """Lines of the README's code blocks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", README, re.S | re.M)
    return [line.strip() for block in blocks for line in block.splitlines()]


def test_the_readme_has_the_two_commands_once_and_early():
    lines = commands()
    for command in (
        "pip install -r requirements.txt && python -m chunklab open",
        "pip install -r requirements.txt && pytest",
    ):
        assert lines.count(command) == 1
        assert README[: README.index(command)].count("\n") < 60


def test_ci_runs_the_readmes_own_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    asked = re.search(r"grep -E '(.+?)' README.md", script).group(1)
    found = [line for line in README.splitlines() if re.search(asked, line)]
    assert found == ["pip install -r requirements.txt && pytest"]
    assert "set -euo pipefail" in script and "requirements.txt" not in script
    if sys.platform != "win32":  # where bash may be that of a Linux that is not installed
        subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT, check=True)


def test_the_workflow_runs_on_three_systems_and_three_pythons_and_nightly():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["locked"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13"]
    assert [system.split("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]
    assert workflow[True]["schedule"] and "newest" in workflow["jobs"]


def test_the_readmes_table_lists_the_lessons_that_there_are():
    rows = re.findall(r"^\| \[(\d\d · [^\]]+)\]\(notebooks/([\w.]+)\) \|.*\| (\d+) \|$", README, re.M)
    sources = build.lessons(ROOT / "notebooks")
    assert [(name, file) for name, file, _ in rows] == [(build.title(s), f"{s.stem}.ipynb") for s in sources]
    for source, (_, _, minutes) in zip(sources, rows, strict=True):
        assert re.search(rf"\*\*Minutes:\*\* {minutes}\b", build.read(source)[0].source)


def test_the_licence_is_mit_for_code_and_cc_by_for_lessons_and_corpus():
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert 'THE SOFTWARE IS PROVIDED "AS IS"' in licence and "The MIT License" in licence
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in licence
    assert licence.count("the chunklab authors") >= 2
    assert PROJECT["project"]["license"] == "MIT AND CC-BY-4.0"


# Links.


def anchors(path):
    """The places in a Markdown file that a link can lead to, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def pages():
    for path in files():
        if path.suffix == ".md" and "corpus" not in path.parts:
            yield path, path.read_text(encoding="utf-8")
        elif path.suffix == ".ipynb":
            cells = nbformat.read(path, as_version=4).cells
            yield path, "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_relative_links_lead_somewhere():
    broken = []
    for page, text in pages():
        text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text):
            address, _, anchor = "".join(link).partition("#")
            if re.match(r"[a-z]+:", address):
                continue
            target = (page.parent / address).resolve() if address else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {''.join(link)}")
    assert broken == []


def test_json_files_are_json():
    for path in files():
        if path.suffix in {".json", ".ipynb"}:
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
