"""Make one static site of the executed lessons, to be read where nothing can be run.

    python notebooks/build.py --site     write `_site`: open `_site/index.html`, or put the folder on any server

The site is README and all that its links lead to, and so on from there: lessons become pages (as they stand: nothing is
run), so do Markdown files, other files are copied. It keeps the repository's folders, so a link needs a new ending
only. A page has no script and asks no other host for anything. nbconvert does the work: it is there already, with
JupyterLab. It serves who publishes the course and who reads it on a telephone; the site takes some seconds.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from functools import cache
from os.path import relpath
from pathlib import Path
from urllib.parse import unquote

import nbformat
from bs4 import BeautifulSoup, Tag
from nbconvert import HTMLExporter
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
PARTS = HERE / "site"
# Widgets need a script from elsewhere; beside each stands what is shown without one.
SHOWN = ["text/html", "text/markdown", "image/png", "text/plain"]
# The sections of README on the first page; the others have a page of their own.
FRONT = "the-lessons"


def build_site(target: Path, root: Path = HERE.parent) -> list[Path]:
    """Write the site.

    Args:
        target: the folder to write; one that is there is replaced.
        root: the repository.

    Returns:
        The files of the repository that are in the site.

    Raises:
        ValueError: a link that leads to no file.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "style.css").write_text(style(), encoding="utf-8", newline="\n")
    readme = root / "README.md"
    first = _markdown(front(readme.read_text(encoding="utf-8")))
    linked, done = _write(readme, first, target / "index.html", root), set()
    while waiting := linked - done:
        for path in sorted(waiting):
            place = target / address(path.relative_to(root))
            if path.suffix == ".ipynb":
                linked |= _write(path, nbformat.read(path, as_version=4), place, root)
            elif path.suffix == ".md":
                linked |= _write(path, _markdown(path.read_text(encoding="utf-8")), place, root)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
        done |= waiting
    return sorted(done)


def style() -> str:
    """The style sheet: ours, and Pygments' colours for code, by day and by night."""
    colours = [
        f"@media (prefers-color-scheme: {scheme}) {{\n{HtmlFormatter(style=name).get_style_defs('.highlight')}\n}}\n"
        for scheme, name in {"light": "default", "dark": "github-dark"}.items()
    ]
    return "".join([*colours, (PARTS / "style.css").read_text(encoding="utf-8")])


def front(readme: str) -> str:
    """README's opening, its table of lessons, and where the rest of it is."""
    opening, *sections = re.split(r"^(?=## )", readme, flags=re.MULTILINE)
    lessons = next(section for section in sections if slug(section.partition("\n")[0]) == FRONT)
    others = [section.partition("\n")[0].removeprefix("## ") for section in sections if section != lessons]
    rest = "\n".join(f"- [{name}](README.md#{slug(name)})" for name in others)
    return f"{opening}{lessons}## Beyond reading\n\n{rest}\n"


def slug(heading: str) -> str:
    """What GitHub calls the place of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("# ").strip().lower()).replace(" ", "-")


def address(path: Path) -> Path:
    """Where a file of the repository is in the site: servers leave out hidden folders, and offer odd files to save."""
    plain = Path(*(part.lstrip(".") for part in path.parts))
    if plain.suffix in (".ipynb", ".md"):
        return plain.with_suffix(".html")
    return plain if plain.suffix in (".png", ".txt", ".pdf") else plain.with_name(f"{plain.name}.txt")


def _markdown(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text, id="page")])


def _write(path: Path, notebook: nbformat.NotebookNode, place: Path, root: Path) -> set[Path]:
    """Write the page of a file, and say to which files of the repository it links."""
    solved = path.parent / "solutions" / path.name
    page = {
        "up": "../" * (len(path.relative_to(root).parts) - 1),
        "solutions": f"solutions/{path.name}" if path.suffix == ".ipynb" and solved.exists() else "",
    }
    soup = BeautifulSoup(_exporter().from_notebook_node(notebook, {"page": page})[0], "html.parser")
    soup.title.string = soup.h1.get_text()
    seen = Counter()
    for heading in soup.main.find_all(re.compile("^h[1-6]$")):
        name = slug(heading.get_text())
        heading["id"] = f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1
    for table in soup.find_all("table"):
        # Who scrolls by keyboard must be able to go there.
        table.wrap(soup.new_tag("div", attrs={"class": "scroll", "tabindex": "0"}))
    linked = {_lead(element, path, root) for element in soup.find_all(["a", "img"])}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(str(soup), encoding="utf-8", newline="\n")
    return linked - {None}


@cache
def _exporter() -> HTMLExporter:
    config = Config({"NbConvertBase": {"display_data_priority": SHOWN}})
    quiet = {"exclude_anchor_links": True, "exclude_input_prompt": True, "exclude_output_prompt": True}
    return HTMLExporter(config, template_file=str(PARTS / "page.html.j2"), **quiet)


def _lead(element: Tag, path: Path, root: Path) -> Path | None:
    """Turn a link between files of the repository into one between pages; the file that it leads to."""
    name = "href" if element.name == "a" else "src"
    link = element.get(name, "")
    if not link or re.match(r"[a-z]+:", link):
        return None
    file, _, anchor = link.partition("#")
    target = (path.parent / unquote(file)).resolve() if file else path
    if not target.is_file() or not target.is_relative_to(root):
        raise ValueError(f"{path.relative_to(root)}: the link {link} leads to no file of the repository")
    on_front = target == root / "README.md" and anchor in ("", FRONT)
    goal = Path("index.html") if on_front else address(target.relative_to(root))
    here = address(path.relative_to(root)).parent
    element[name] = Path(relpath(goal, here)).as_posix() + (f"#{anchor}" if anchor else "")
    return None if on_front else target
