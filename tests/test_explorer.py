"""The explorer: what is set gives what is seen, nothing of a text becomes mark-up, and a real browser shows it."""

import inspect
import itertools
import json
import re
import socket
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import browser, heard, serving
from test_view import HOSTILE

import chunklab
from chunklab import embeddings, explore, explorer, explorer_picture, load_corpus, load_questions
from chunklab.chunk import Chunker
from chunklab.explorer import GIVEN, NOVELLA, PASTE
from chunklab.explorer_picture import METHODS, Choice, cut, picture

ROOT = Path(__file__).resolve().parents[1]
PROSE = (
    "# Tides\n\nThe keeper wound the clock. It was late, and the tide was out.\n\n" * 3 + "def bell():\n    return 3\n"
)
WIDGET = "application/vnd.jupyter.widget-view+json"


def preset(method, **settings):
    """A method as its sliders stand at first, but for some."""
    first = {name: allowed[0 if isinstance(allowed[0], str) else 3] for name, allowed in METHODS[method][1].items()}
    return Choice(method, tuple((first | settings).items()))


class Page(HTMLParser):
    """The elements, attributes and text of a piece of HTML, each of whose elements must be closed."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.titles, self.open = set(), set(), "", [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.titles += [value for name, value in attrs if name == "title"]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def cells(numbers):
    """The table of numbers: name of each method to its cells, by their heads."""
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", numbers)]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=False)) for row in rows[1:]}


# What can be picked.


def test_every_chunker_that_asks_no_language_model_can_be_picked():
    classes = {name: getattr(chunklab, name) for name in chunklab.__all__ if name.endswith("Chunker")}
    alone = {
        name
        for name, kind in classes.items()
        if kind is not Chunker and "llm" not in inspect.signature(kind).parameters
    }
    assert {name for name, _ in METHODS.values()} == alone


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_is_an_argument_of_the_method_and_begins_within_its_range(method):
    name, settings = METHODS[method]
    assert set(settings) <= set(inspect.signature(getattr(chunklab, name)).parameters)
    for allowed in settings.values():
        if not isinstance(allowed[0], str):
            low, high, step, first = allowed
            assert low <= first <= high and 0 < step < high - low
    for widget in explorer._Panel("A", method, None).children[1:]:
        assert len(widget.tooltip) > len(widget.description), f"{name} does not say what {widget.description} is"
    assert cut(load_corpus()[NOVELLA], preset(method))[0]


@pytest.mark.parametrize("method", METHODS)
def test_every_corner_of_the_sliders_gives_chunks_or_a_reason(method):
    """Chunks as the chunker gives them by itself, or what it says in place of them."""
    settings = METHODS[method][1]
    corners = [allowed if isinstance(allowed[0], str) else allowed[:2] for allowed in settings.values()]
    for values in itertools.product(*corners):
        arguments = dict(zip(settings, values, strict=True))
        made = picture(PROSE, {"A": Choice(method, tuple(arguments.items()))})
        if "embeddings" in arguments:
            arguments["embeddings"] = embeddings(arguments["embeddings"])
        try:
            chunks = getattr(chunklab, METHODS[method][0])(**arguments).chunk(PROSE)
        except ValueError as error:
            assert str(error) in Page(made.numbers).text and str(error) in Page(made.view.html).text
            assert "must be" in str(error)
        else:
            assert cells(made.numbers)["A"]["chunks"] == str(len(chunks)) and f"{len(chunks)} chunk" in made.view.plain


# What is seen.


def test_the_numbers_are_those_of_the_chunks():
    text = "abcdefghij" * 100
    row = cells(picture(text, {"A": preset("sliding window", size=300, overlap=100)}).numbers)["A"]
    chunks = chunklab.SlidingWindowChunker(300, 100).chunk(text)
    sizes = [c.end - c.start for c in chunks]
    assert row["chunks"] == str(len(chunks)) and row["longest"] == str(max(sizes))
    assert row["mean ± sd"] == f"{np.mean(sizes):,.0f} ± {np.std(sizes):,.0f}"
    assert row["overlap"] == f"{(sum(sizes) - 1000) / 10:.0f} %" and float(row["ms"]) >= 0


def test_sizes_are_drawn_on_one_axis():
    text = load_corpus()["leaflet.txt"]
    choices = {"A": preset("fixed characters", chunk_size=100), "B": preset("recursive", chunk_size=1000)}
    made = picture(text, choices)
    drawn = [Page(row) for row in re.findall(r'<span role="img".*?</span></span>', made.numbers)]
    top = max(c.end - c.start for name in choices for c in cut(text, choices[name])[0])
    for page, choice in zip(drawn, choices.values(), strict=True):
        bars = [
            re.fullmatch(r"([\d,]+) to ([\d,]+) characters: (\d+) chunks?", title).groups() for title in page.titles
        ]
        places = [(int(low.replace(",", "")), int(high.replace(",", "")), int(count)) for low, high, count in bars]
        assert places[0][0] == 1 and places[-1][1] == top
        assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(places))
        sizes = [c.end - c.start for c in cut(text, choice)[0]]
        assert [count for *_, count in places] == [
            sum(low <= size <= high for size in sizes) for low, high, _ in places
        ]


def test_a_method_that_fails_says_why_and_the_other_goes_on(monkeypatch):
    wrong = preset("fixed characters", chunk_size=100, chunk_overlap=500)
    made = picture(PROSE, {"A": wrong, "B": preset("recursive")})
    said = "chunk_overlap=500: must be a whole number of 0 or more and smaller than chunk_size=100"
    assert cells(made.numbers)["A"] == {"sizes, 1 to 248": said} or said.split(":")[0] in made.numbers
    assert "A: nothing was cut: chunk_overlap=500" in made.view.plain and "B: 1 chunk" in made.view.plain

    def fail(self, text):
        raise RuntimeError("no <b>network</b>")

    monkeypatch.setattr(chunklab.RecursiveChunker, "spans", fail)
    made = picture(PROSE + "x", {"A": wrong, "B": preset("recursive")}, question="tide")
    assert "RuntimeError: no &lt;b&gt;network" in made.numbers and made.hits == {}


@pytest.mark.parametrize(
    "text", [*HOSTILE, "", " \n", "\ud835 x \x00", "👩‍👩‍👧‍👦" * 9, "x" * 3001, "\ufeffa\r\n\u2028b\r"]
)
def test_nothing_of_a_text_or_a_question_becomes_markup(text):
    for methods in itertools.pairwise(METHODS):
        made = picture(text, {text + name: preset(name) for name in methods}, question=text, gold=((0, len(text)),))
        for html in (made.numbers, made.view.html):
            page = Page(html)
            assert page.tags <= set("div table tr th td span pre sup u b i br".split())
            assert page.attributes <= {"style", "title", "class", "dir", "scope", "colspan", "role", "aria-label"}


def test_a_question_lights_what_the_index_finds():
    question = next(q for q in load_questions() if {span.document for span in q.spans} == {NOVELLA})
    text, choices = load_corpus()[NOVELLA], {"A": preset("recursive"), "B": preset("sentences")}
    gold = tuple((span.start, span.end) for span in question.spans)
    made = picture(text, choices, question=question.question, k=4, gold=gold)
    for name, choice in choices.items():
        chunks = cut(text, choice)[0]
        hits = chunklab.ChunkIndex(chunks, embeddings("static")).search(question.question, 4)
        assert [made.hits[f"{name}, hit {rank}"] for rank in (1, 2, 3, 4)] == [hit.chunk.start for hit in hits]
        assert cells(made.numbers)[name]["hits (chunk numbers)"] == ", ".join(str(hit.chunk.index) for hit in hits)
    there = picture(text, choices, made.hits["A, hit 1"], question.question, 4, gold)
    assert " · hit 1</sup>" in there.view.html and ".62)" in there.view.html
    assert "outline" in picture(text, choices, gold[0][0], question.question, 4, gold).view.html
    assert "hits" not in picture(text, choices, question=" ").numbers


def test_of_a_huge_text_a_passage_is_drawn_and_all_is_counted():
    text = load_corpus()[NOVELLA] * 20
    made = picture(text, {"A": preset("recursive")}, place=1_000_000)
    assert len(made.view.html) < 20_000
    assert cells(made.numbers)["A"]["chunks"] == f"{len(chunklab.RecursiveChunker(500).chunk(text)):,}"
    start = int(re.search(r"Not shown: ([\d,]+) characters before", made.view.plain)[1].replace(",", ""))
    assert 999_900 <= start <= 1_000_000


def test_a_text_is_embedded_once():
    class Counting:
        asked = []

        def encode(self, texts):
            self.asked += texts
            return np.array([[len(text), 1.0] for text in texts])

    model = explorer_picture._Once(Counting())
    assert model.encode(["a", "bb", "a"]).tolist() == [[1, 1], [2, 1], [1, 1]]
    assert model.embed_documents(["bb", "ccc"]) == [[2, 1], [3, 1]]
    assert Counting.asked == ["a", "bb", "ccc"]
    many = [str(number) for number in range(explorer_picture._KEPT)]
    assert len(model.encode(many)) == len(model._vectors) == len(many)  # what was there before is forgotten


# The widget.


def test_what_is_moved_is_seen():
    shown = explore()
    panel = shown.panels[0]
    assert cells(shown.numbers.value)["A · fixed characters"]["chunks"] == "146"
    panel.children[1].value = 1000
    assert cells(shown.numbers.value)["A · fixed characters"]["chunks"] == "73"
    panel.method.value = "paragraphs"
    assert "A · paragraphs" in shown.numbers.value and "A · paragraphs" in shown.passage.value
    assert [widget.description for widget in panel.children] == ["method A", "max_chunk_size"]
    panel.method.value = "fixed characters"
    assert cells(shown.numbers.value)["A · fixed characters"]["chunks"] == "73", "its sliders stand where they stood"
    shown.text.value = "leaflet.txt"
    assert "leaflet" not in shown.passage.value and cells(shown.numbers.value)["A · fixed characters"]["chunks"] == "4"


def test_a_text_can_be_pasted():
    shown = explore()
    assert shown.pasted.layout.display == "none"
    shown.text.value = PASTE
    assert shown.pasted.layout.display is None and "an empty text, 0 chunks" in shown.passage.value
    shown.pasted.value = "<script>alert(1)</script> and more."
    assert "&lt;script&gt;" in shown.passage.value and "<script" not in shown.passage.value
    shown.text.value = NOVELLA
    assert shown.pasted.layout.display == "none" and "THE BELL" in shown.passage.value


def test_a_question_moves_the_passage_to_its_first_hit():
    shown = explore()
    assert shown.question.options and shown.hit.layout.display == "none"
    shown.question.value = shown.question.options[3]
    hits = dict(shown.hit.options)
    assert shown.hit.value == hits["A · fixed characters, hit 1"] and shown.hit.layout.display is None
    assert " · hit 1</sup>" in shown.passage.value and shown.place.value == (shown.hit.value - 200) // 50 * 50
    shown.hit.value = hits["B · recursive, hit 2"]
    assert " · hit 2</sup>" in shown.passage.value and shown.place.value == (shown.hit.value - 200) // 50 * 50
    shown.place.value = 0
    assert shown.hit.index == 0 and "THE BELL" in shown.passage.value
    shown.panels[1].children[1].value = 200
    assert shown.place.value == 0, "what a slider does is seen where the learner looks"
    assert dict(shown.hit.options) != hits
    shown.question.value = ""
    assert shown.hit.layout.display == "none" and "hits (" not in shown.numbers.value


def test_the_method_that_was_not_moved_is_not_cut_again(monkeypatch):
    shown, cuts = explore(), []
    chunk = Chunker.chunk
    monkeypatch.setattr(Chunker, "chunk", lambda self, text: cuts.append(type(self).__name__) or chunk(self, text))
    shown.panels[1].children[1].value = 700
    assert cuts == ["RecursiveChunker"]
    shown.place.value = 100
    assert cuts == ["RecursiveChunker"]


def test_a_text_of_the_learners_own_and_none_that_is_no_text():
    shown = explore("Mine \ud800 alone.")
    assert "Mine \ufffd alone." in shown.passage.value and shown.text.value == GIVEN and not shown.question.options
    shown.text.value = "leaflet.txt"
    assert "Mine" not in shown.passage.value
    known = explore(load_corpus()["tideclock.py"])
    assert known.text.value == "tideclock.py" and known.question.options, "a text of the course has its questions"
    with pytest.raises(ValueError, match="text"):
        explore(5)


def test_without_the_course_a_text_can_still_be_pasted(monkeypatch):
    def missing():
        raise FileNotFoundError("no folder")

    monkeypatch.setattr(chunklab, "load_corpus", missing)
    shown = explore()
    shown.pasted.value = "One. Two."
    assert list(shown.text.options) == [PASTE] and "One. Two." in shown.passage.value


def test_where_no_widgets_run_there_is_a_picture_and_it_is_the_same_every_time():
    first, second = explore()._repr_mimebundle_(), explore()._repr_mimebundle_()
    assert first["text/html"] == second["text/html"] and first["text/plain"] == second["text/plain"] == repr(explore())
    assert "THE BELL" in first["text/html"] and "ms" not in cells(first["text/html"])
    ids = [int(re.fullmatch(r"chunklab-explorer-(\d+)", made[WIDGET]["model_id"])[1]) for made in (first, second)]
    assert ids[1] == ids[0] + 1, "a random id would make each run of a notebook another file"
    assert "$" not in first["text/html"]


def test_what_lesson_00_says_opens_the_explorer_on_its_needle():
    lesson = (ROOT / "notebooks" / "source" / "00_start_here.py").read_text(encoding="utf-8")
    line = re.search(r"`(from chunklab import explore; explore\(manual\))`", lesson)[1]
    needle = next(q for q in load_questions() if q.id == "manual-28")
    shown = eval(line.partition("; ")[2], {"explore": explore, "manual": load_corpus()[needle.spans[0].document]})
    assert needle.question in shown.question.options
    shown.question.value = needle.question
    assert '<b style="outline' in shown.passage.value and needle.spans[0].quote[:20] in shown.passage.value


# In a browser. A server is waited for a minute, a page as long: machines of a CI are slow to start.

LAB = ["-m", "jupyterlab", "--no-browser", "--port=0", "--allow-root", "--LabApp.news_url=", "--ServerApp.token=abc"]
WAIT = 60_000


def notebook(source, **output):
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": source, "execution_count": None, "outputs": []}
    if output:
        data = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": output}
        cell |= {"execution_count": 1, "outputs": [data]}
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return json.dumps({"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture(scope="module")
def chrome():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def lab(chrome, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    (folder / "new.ipynb").write_text(notebook("from chunklab import explore\nexplore()"))
    old = explore("An old run, <b>kept</b>.")._repr_mimebundle_()
    (folder / "old.ipynb").write_text(notebook("explore()", **old))
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    with serving([*LAB, f"--ServerApp.root_dir={folder}"], folder, r"http://127\.0\.0\.1:\d+/") as address:
        yield address


def table(page, name):
    """The numbers of a method, as a list of cells."""
    return page.locator(f"tr:has(th:text-is('{name}')) td").all_inner_texts()


def test_in_jupyterlab_sliders_move_the_chunks(chrome, lab):
    page = chrome.new_page(viewport={"width": 1280, "height": 1500})
    wrong = heard(page)
    page.goto(f"{lab}lab/tree/new.ipynb?token=abc")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=WAIT)
    page.locator(".jp-Notebook .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    page.locator("th:text-is('A · fixed characters')").wait_for(timeout=WAIT)
    assert table(page, "A · fixed characters")[1] == "146"
    # By keyboard, as by mouse.
    handle = page.get_by_role("slider").first
    handle.focus()
    for _ in range(10):
        handle.press("ArrowRight")
    page.wait_for_function("document.querySelector('.widget-readout').innerText == '600'", timeout=WAIT)
    page.locator("td:text-is('122')").wait_for(timeout=WAIT)
    page.get_by_label("method B").select_option("sentences")
    page.locator("th:text-is('B · sentences')").wait_for(timeout=WAIT)
    assert page.locator("pre").nth(1).locator("sup").count() > 3
    # A sentence of the text cannot become a part of the page.
    page.get_by_label("text", exact=True).select_option(PASTE)
    page.locator("textarea[placeholder*=Paste]").fill(
        "<img src=x onerror='window.wrong = 1'> The bell is old. Rain falls on the quay."
    )
    page.locator("pre >> text=onerror").first.wait_for(timeout=WAIT)
    assert page.evaluate("window.wrong") is None
    question = page.get_by_label("question")
    question.fill("Where does rain fall?")
    question.press("Enter")
    page.locator("sup:has-text('hit 1')").first.wait_for(timeout=WAIT)
    chosen = "e => e.options[e.selectedIndex].label.replaceAll('\\u00a0', ' ')"
    assert page.get_by_label("go to").evaluate(chosen) == "A · fixed characters, hit 1"
    page.locator("textarea[placeholder*=Paste]").fill("")
    page.locator("text=an empty text, 0 chunks").first.wait_for(timeout=WAIT)
    page.set_viewport_size({"width": 600, "height": 1000})
    inside = "(e => e.clientWidth < 600 && e.scrollWidth <= e.clientWidth)(document.querySelector('.widget-vbox'))"
    page.wait_for_function(inside, timeout=WAIT)
    assert wrong == []
    page.close()


def test_jupyterlab_shows_the_picture_of_a_run_that_it_does_not_trust(chrome, lab):
    page = chrome.new_page()
    page.goto(f"{lab}lab/tree/old.ipynb?token=abc")
    page.locator("text=A picture of the explorer").wait_for(timeout=WAIT)
    assert "An old run, <b>kept</b>." in page.locator(".jp-OutputArea-output pre").first.inner_text()
    assert "rgba" in page.locator(".jp-OutputArea-output pre span").first.get_attribute("style")
    page.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with serving(["-m", "chunklab", "explore", "--port", port], folder, r"http://localhost:\d+/\?token=\w+") as address:
        yield address


def test_the_page_of_its_own_wants_its_token(alone):
    with urllib.request.urlopen(alone, timeout=60) as page:
        assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(alone.partition("?")[0] + "voila/static/../api/kernels", timeout=60)
    assert refused.value.code in (403, 404)


def test_on_a_page_of_its_own_sliders_move_the_chunks(chrome, alone):
    page = chrome.new_page()
    page.goto(alone)
    page.get_by_label("method A").wait_for(timeout=WAIT)
    page.get_by_label("method A").select_option("code")
    page.locator("th:text-is('A · code')").wait_for(timeout=WAIT)
    assert page.locator("pre").first.locator("sup").count() > 3
    page.close()


def test_explore_says_what_is_missing(monkeypatch, capsys):
    from chunklab import __main__ as cli

    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert cli.main(["explore"]) == 1
    assert "Voila is not installed" in capsys.readouterr().err
