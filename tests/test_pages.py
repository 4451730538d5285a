"""The static site: every lesson is in it as it was run, every link leads somewhere, and it asks nothing of others."""

import re
from pathlib import Path

import build
import nbformat
import pages
import pytest
import yaml
from browser import browser, heard, serving
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]
FETCHED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pages.build_site(folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def soups(site):
    """Each page of the site, read."""
    return {p: BeautifulSoup(p.read_text(encoding="utf-8"), "html.parser") for p in sorted(site.rglob("*.html"))}


def outputs(path, kind):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return [output.data[kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


# What is there.


def test_every_lesson_is_a_page_and_so_is_its_solution(site):
    for source in build.lessons(ROOT / "notebooks"):
        assert (site / "notebooks" / f"{source.stem}.html").exists()
        assert (site / "notebooks" / "solutions" / f"{source.stem}.html").exists()


@pytest.mark.parametrize("source", build.lessons(ROOT / "notebooks"), ids=lambda source: source.stem)
def test_a_page_shows_all_that_its_lesson_holds(source, site, soups):
    path = build.edition_path(source, "course")
    page = soups[site / "notebooks" / f"{source.stem}.html"]
    cells = nbformat.read(path, as_version=4).cells
    code = [cell.source.split() for cell in cells if cell.cell_type == "code"]
    assert [block.get_text().split() for block in page.select(".input_area")] == code
    pictures = [f"data:image/png;base64,{''.join(data.split())}" for data in outputs(path, "image/png")]
    assert ["".join(image["src"].split()) for image in page.select(".output_png img")] == pictures
    assert len(page.select(".output_html")) == len(outputs(path, "text/html"))
    assert page.title.string == page.h1.get_text() == build.title(source)


def test_the_first_page_has_the_opening_the_lessons_and_the_way_to_the_rest(site, soups):
    page = soups[site / "index.html"]
    assert [h.get_text() for h in page.find_all("h2")] == ["The lessons", "Beyond reading"]
    assert len(page.select("table a")) == len(build.lessons(ROOT / "notebooks"))
    assert page.find("a", string="Start")["href"] == "README.html#start"
    assert page.img["src"] == "github/chunks.png" and (site / "github" / "chunks.png").exists()


def test_a_page_has_the_next_lesson_the_table_of_lessons_the_solutions_and_the_licence(site, soups):
    links = {a["href"] for a in soups[site / "notebooks" / "01_fixed_size.html"].find_all("a")}
    assert links >= {"00_start_here.html", "02_recursive.html", "../index.html#the-lessons", "../LICENSE.txt"}
    assert links >= {"solutions/01_fixed_size.html", "../README.html#start"}


# What must hold for every page.


def test_every_link_leads_to_a_place_in_the_site(soups):
    broken = []
    for path, page in soups.items():
        for element in page.find_all(["a", "img", "link"]):
            link = element.get("href") or element.get("src")
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if re.match(r"[a-z]+:", link):
                continue
            if not target.is_file() or (anchor and not soups[target].find(id=anchor)):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_no_two_places_of_a_page_have_one_name(soups):
    for path, page in soups.items():
        names = [element["id"] for element in page.find_all(id=True)]
        assert len(names) == len(set(names)), path.name


def test_every_picture_says_what_it_shows(soups):
    images = [image for page in soups.values() for image in page.find_all("img")]
    assert len(images) > 20
    # "No description" is what nbconvert writes where there is none.
    assert [i.get("alt") for i in images if len(i.get("alt", "")) < 20 or i["alt"].startswith("No description")] == []


def test_nothing_is_fetched_from_elsewhere_and_nothing_runs(site, soups):
    for path, page in soups.items():
        fetched = [element.get(FETCHED[element.name], "") for element in page.find_all(list(FETCHED))]
        assert [link for link in fetched if re.match(r"(?!data:)[a-z]+:|//", link)] == [], path.name
        assert not page.find_all("script"), path.name
        styles = [*page.find_all("style"), *(e["style"] for e in page.find_all(style=True))]
        assert not re.search(r"url\(|@import", " ".join(map(str, styles))), path.name
    assert not re.search(r"url\(|@import", (site / "style.css").read_text(encoding="utf-8"))


def test_no_page_holds_a_path_of_the_machine_or_a_secret(site, soups):
    for path in soups:
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text and str(site) not in text
        assert [what for what, pattern in build.PRIVATE.items() if pattern.search(text)] == [], path.name


def test_no_prose_needs_mathematics_which_a_page_without_scripts_does_not_set():
    for source in build.lessons(ROOT / "notebooks"):
        prose = "\n\n".join(cell.source for cell in build.read(source) if cell.cell_type == "markdown")
        assert not re.search(r"(?<!\\)\$[^$\n]+\$|\$\$|\\\(", re.sub(r"```.*?```|`[^`\n]*`", "", prose, flags=re.S))


# In a browser.


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_telephone_pages_scroll_one_way_and_speak_to_nobody(scheme, site, tmp_path):
    server = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(site)]
    with serving(server, tmp_path, r"http://127\.0\.0\.1:\d+/") as host, browser() as chromium:
        page = chromium.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
        found = heard(page)
        for path in (
            "index.html",
            "README.html",
            "notebooks/04_semantic.html",
            "notebooks/07_chains_and_retrieval.html",
        ):
            page.goto(host + path)
            assert page.evaluate("document.documentElement.scrollWidth") == 390, path
            assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), path
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
    assert found == []


# Small sites.


@pytest.fixture
def small(tmp_path):
    """A repository of one lesson: with a widget, of which its picture is shown."""
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    (tmp_path / "LICENSE").write_text("free", encoding="utf-8")
    readme = "# Name\n\nOpening: [start](#start).\n\n## Start\n\n### Same\n\n### Same\n\n## The lessons\n\n[L](notebooks/00_a.ipynb)\n"
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    data = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "1"},
        "text/html": "<b>pic<b>ture",
        "text/plain": "w",
    }
    output = nbformat.v4.new_output("execute_result", data)
    cells = [
        nbformat.v4.new_markdown_cell("# A\n\n[up](../README.md#same-1)"),
        nbformat.v4.new_code_cell("1", outputs=[output]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "00_a.ipynb")
    return tmp_path


def test_the_command_writes_the_site_beside_the_lessons_and_replaces_an_old_one(small, capsys):
    (small / "_site").mkdir()
    (small / "_site" / "old.html").write_text("", encoding="utf-8")
    assert build.main(["--site"], small / "notebooks") == 0
    assert "_site" in capsys.readouterr().out
    written = sorted(path.relative_to(small / "_site").as_posix() for path in (small / "_site").rglob("*.*"))
    assert written == ["LICENSE.txt", "README.html", "index.html", "notebooks/00_a.html", "style.css"]
    lesson = (small / "_site" / "notebooks" / "00_a.html").read_text(encoding="utf-8")
    assert 'href="../README.html#same-1"' in lesson and "<b>pic" in lesson and "model_id" not in lesson
    assert 'id="same-1"' in (small / "_site" / "README.html").read_text(encoding="utf-8")
    assert 'href="README.html#start"' in (small / "_site" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("link", ["none.md", "notebooks", "../outside.md"])
def test_a_link_to_no_file_of_the_repository_is_an_error_that_names_it(link, small, tmp_path_factory):
    (small.parent / "outside.md").write_text("# Out\n", encoding="utf-8")
    with open(small / "README.md", "a", encoding="utf-8") as file:
        file.write(f"\n[x]({link})\n")
    with pytest.raises(ValueError, match=re.escape(f"README.md: the link {link} leads to no file")):
        pages.build_site(small / "_site", small)


def test_the_same_lessons_give_the_same_bytes(small):
    def built():
        pages.build_site(small / "_site", small)
        return {path.name: path.read_bytes() for path in (small / "_site").rglob("*.*")}

    assert built() == built()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_is_coloured_in_both_schemes(scheme):
    part = pages.style().partition(f"(prefers-color-scheme: {scheme})")[2]
    assert ".highlight .k {" in part.partition("@media")[0]


def test_the_workflow_publishes_what_the_readmes_command_writes():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text(encoding="utf-8"))["jobs"]
    steps = jobs["build"]["steps"]
    command = "python notebooks/build.py --site"
    assert {"run": command} in steps and f"\n{command}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert [step["with"]["path"] for step in steps if "upload-pages" in step.get("uses", "")] == ["_site"]
    assert jobs["publish"]["needs"] == "build" and "_site/\n" in (ROOT / ".gitignore").read_text(encoding="utf-8")
