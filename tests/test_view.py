"""The coloured chunks and the figures: exact text, nothing unescaped, nothing hidden, the same bytes every time."""

import os
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from chunklab.chunk import Chunk, Chunker
from chunklab.retrieval import Hit
from chunklab.score_figures import plot_heatmap
from chunklab.view import (
    compare_chunks,
    plot_distances,
    plot_hits,
    plot_scores,
    plot_sizes,
    plot_sweep,
    plot_windows,
    show_chunks,
    side_by_side,
)

PROSE = "The keeper wound the clock. It was late, and the tide was out.\n\nNo one came; the lamp burned on. " * 4
ARABIC = "كانت السفينة تغادر الميناء عند الفجر، وكان الحارس يراقب المصباح.\nEnglish with عربي inside."
EMOJI = "Hello 👩‍🔬👩‍👩‍👧‍👦🏳️‍🌈 flags 🇫🇷🇩🇪 skin 👍🏽 cafe\u0301 fin"
HOSTILE = [  # sec-08 and its relatives
    'a<b <img src=x onerror=alert(1)> "q"',
    "</pre></div><script>alert(1)</script>",
    "&lt;b&gt; &amp; &#36; &notit; <!-- x --> ]]>",
    "' onmouseover='alert(1)' \" style=\"x\" `",
]


class Page(HTMLParser):
    """Reads a view back: its text without tags, its elements, and which text is in which stretch."""

    def __init__(self, view):
        super().__init__(convert_charrefs=True)
        self.text, self.tags, self.elements, self.open, self.stretches = "", [], [], [], []
        self.feed(view._repr_html_())
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "br":
            self.open.append((tag, dict(attrs)))
        if tag == "sup":
            self.tags.append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        names = [name for name, _ in self.open]
        if "sup" in names:
            self.tags[-1] += data
        elif "pre" in names:
            self.text += data
            titles = [attrs["title"] for _, attrs in self.open if "title" in attrs]
            outlined = any("outline" in attrs.get("style", "") for _, attrs in self.open)
            self.stretches.append((data, titles[-1] if titles else "", "u" in names, outlined))


def windows(text, size, overlap=0):
    starts = range(0, max(1, len(text) - overlap), size - overlap)
    return [(start, min(start + size, len(text))) for start in starts]


def chunks_of(text, size, overlap=0, doc="doc"):
    spans = windows(text, size, overlap)
    return [Chunk(text[a:b], a, b, doc, f"{doc}_{n}", None, n, len(spans)) for n, (a, b) in enumerate(spans)]


def hit(start, end, score, doc="doc"):
    return Hit(Chunk("x" * (end - start), start, end, doc), score, 1)


def visible(text):
    """What a page can carry of a text: one sign for each character that it cannot."""
    signs = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"} | {127: "\u2421"}
    text = regex.sub(r"[\ud800-\udfff]", "\ufffd", text.translate(signs))
    return regex.sub(r"\r(?!\n)", "\u240d", text)


@pytest.mark.parametrize(
    "text", [PROSE, ARABIC, EMOJI, *HOSTILE, "  x\n\n\ty  ", "\nstart", "end\n", "\r\n\r\nWin\r\n"]
)
@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (4, 0), (20, 0), (20, 7), (9, 8), (1000, 0)])
def test_the_text_is_shown_once_and_exactly(text, size, overlap):
    page = Page(show_chunks(chunks_of(text, size, overlap), text))
    assert page.text == text


ANY = st.text(
    st.one_of(st.characters(), st.sampled_from("ab \n\r\t$<>&\"'\u0301\u200d👩🇫🏽é。\u2028\x00\ud835")), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(st.data(), ANY)
def test_any_text_any_spans(data, text):
    place = st.integers(0, len(text))
    span = st.tuples(place, place).map(lambda pair: tuple(sorted(pair)))
    spans, gold = data.draw(st.lists(span, max_size=6)), data.draw(st.lists(span, max_size=3))
    view = show_chunks(spans, text, highlight=gold)
    page = Page(view)
    assert page.text == visible(text) if text else "empty" in page.text
    view.html.encode("utf-8"), repr(view).encode("utf-8")
    clusters = {m.end() for m in regex.finditer(r"\X", visible(text))} | {0}
    at = 0
    for piece, _, _, _ in page.stretches if "$" not in text and "\r" not in text and text else ():
        at += len(piece)
        assert at in clusters or "\n" in text or visible(text) != text


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 40))
def test_a_part_is_a_part(data, limit):
    text = data.draw(ANY)
    start, end = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
    page = Page(show_chunks([(0, len(text))], text, limit=limit, around=(start, end)))
    if text:
        assert page.text in visible(text) and visible(text[start:end]) in page.text + "\n"


def test_overlap_is_marked_and_carries_both_numbers():
    view = show_chunks([(0, 10), (6, 16), (16, 20)], "abcdefghijklmnopqrst")
    page = Page(view)
    assert page.tags == ["0", "0+1", "1", "2"]
    assert [(text, shared) for text, _, shared, _ in page.stretches] == [
        ("abcdef", False),
        ("ghij", True),
        ("klmnop", False),
        ("qrst", False),
    ]
    both = page.stretches[1][1]
    assert "chunk 0: 0–10, 10 characters" in both and "chunk 1: 6–16, 10 characters" in both
    assert "4 characters repeated" in view.html and "4 characters repeated" in repr(view)


def test_many_chunks_on_one_place():
    text = "x" * 40
    page = Page(show_chunks([(start, start + 20) for start in range(20)], text))
    assert page.text == text
    assert "0…19" in page.tags and any("and 16 more" in title for _, title, _, _ in page.stretches)


def test_text_in_no_chunk_is_said_to_be():
    page = Page(show_chunks([(2, 4)], "ab cd ef"))
    assert "5 characters in no chunk" in repr(show_chunks([(2, 4)], "ab cd ef"))
    assert "in no chunk" not in repr(show_chunks([(1, 3), (5, 7)], "\ufeffab\n\ncd ")), (
        "white space and a BOM are no loss"
    )
    assert [(text, title) for text, title, _, _ in page.stretches] == [
        ("ab", "in no chunk"),
        (" c", "chunk 0: 2–4, 2 characters"),
        ("d ef", "in no chunk"),
    ]


def test_hover_gives_number_place_length_and_id():
    text = "x" * 2400
    page = Page(show_chunks(chunks_of(text, 1200, doc="manual"), text))
    assert page.stretches[1][1] == "chunk 1: 1,200–2,400, 1,200 characters, manual_1"


def test_what_a_question_found_is_lit_and_tagged_and_what_kept_a_method_is_said():
    text = "x" * 20 + "y" * 20
    chunks, why = [(0, 12), (8, 20), (20, 40)], ValueError("size=0: <must> be more")
    view = side_by_side(text, {"a": chunks, "b": why}, None, None, [], {"a": {1: 2, 2: 1}})
    page = Page(view)
    assert page.tags == ["0", "0+1 · hit 2", "1 · hit 2", "2 · hit 1"] and page.text == text + str(why)
    assert "chunk 2: 20–40, 20 characters, hit 1" in page.stretches[3][1]
    lit = [attrs["style"].count(".62)") for tag, attrs in page.elements if tag == "span"]
    assert lit == [0, 1, 1, 1]
    assert view.plain.startswith(
        "a: 3 chunks of 12 to 20 characters, mean 15 · 4 characters repeated · 3 cuts inside a word · 2 hits"
    )
    assert view.plain.endswith("(hit 1)\nb: nothing was cut: size=0: <must> be more")


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_the_text_becomes_markup_sec_08(text):
    """In the text, in an id (an attribute), and in the name of a method."""
    chunks = [Chunk(text, 0, len(text), "doc", text)]
    for view in (show_chunks(chunks, text), compare_chunks(text, {text: chunks, "b": []})):
        page = Page(view)
        assert {tag for tag, _ in page.elements} <= {"div", "pre", "span", "sup", "u", "b", "i", "br"}
        assert {name for _, attrs in page.elements for name in attrs} <= {"class", "style", "title", "dir"}
        assert any(title.endswith(text) for _, title, _, _ in page.stretches)


@pytest.mark.parametrize("text", ["Cost rose from $31 a share to $135 million.", "$$x$$", r"\(x\) \[y\] $z$"])
def test_dollars_stay_dollars_nb_10(text):
    view = show_chunks([(0, len(text))], text)
    assert Page(view).text == text
    first = Page(view).elements[0]
    assert first == ("div", {"class": "tex2jax_ignore mathjax_ignore"})
    # Wherever the class is lost: <pre> is skipped too, and no two dollars share a text node.
    assert view.html.count("<span>$</span>") == text.count("$") == view.html.count("$")
    assert view.html.index("<pre") < view.html.index("$") if "$" in text else True


@pytest.mark.parametrize("text", ["ok \ud835 tail \x00 end", "\ud83d\ude00", "\x1b[31m red \x7f", "a\ufffe\ufeffb"])
def test_characters_that_a_page_cannot_carry_uni_06(text):
    view = show_chunks(windows(text, 3), text)
    view.html.encode("utf-8"), repr(view).encode("utf-8")
    assert Page(view).text == visible(text) and len(Page(view).text) == len(text)


@pytest.mark.parametrize("text", ["a\rb", "a\u2028b", "a\u2029b", "a\x85b"])
def test_other_line_ends_break_the_line_uni_04(text):
    assert "<br>" in show_chunks([(0, 3)], text).html


def test_no_grapheme_is_torn_uni_02():
    family = "👩‍👩‍👧‍👦"
    view = show_chunks(windows(family + "é" * 3, 2), family + "é" * 3)
    page = Page(view)
    assert page.stretches[0][0] == family
    assert page.tags[:4] == ["0", "1", "2", "3"], "a chunk without a whole character still shows its number"
    assert "cuts inside a character" in repr(view)


def test_right_to_left_text():
    html = show_chunks(windows(ARABIC, 20, 5), ARABIC).html
    assert '<pre dir="auto"' in html, "each line in its own direction"
    assert html.count("<sup ") == html.count('<sup dir="ltr"'), "numbers apart from the text's own direction"


def test_highlight_outlines_gold_across_chunks_and_lines():
    text = "one two\n\nthree four"
    page = Page(show_chunks(windows(text, 5), text, highlight=[(4, 14), (6, 8)]))
    assert "".join(piece for piece, _, _, outlined in page.stretches if outlined) == "twothree"
    assert page.text == text


def test_cuts_inside_a_word_are_counted():
    assert "1 cut inside a word" in repr(show_chunks([(0, 3), (3, 9)], "abcdef gh"))
    assert "inside a word" not in repr(show_chunks([(0, 4), (4, 7)], "abc def"))
    assert "inside a word" not in repr(show_chunks([(0, 2), (2, 4)], "这是第一")), "no spaces, no words to cut"


class Halves(Chunker):
    """Two halves."""

    def spans(self, text):
        middle = len(text) // 2
        return [(0, middle), (middle, len(text))]


def test_a_chunker_is_run_on_the_text():
    view = show_chunks(Halves(), PROSE)
    assert Page(view).tags == ["0", "1"] and "doc_1" in view.html


def test_limit_and_around_say_what_is_left_out():
    text = PROSE * 20
    view = show_chunks(windows(text, 200), text)
    page = Page(view)
    assert 2900 < len(page.text) <= 3000 and text.startswith(page.text)
    assert f"Not shown: {len(text) - len(page.text):,} characters after" in view.html
    part = Page(show_chunks(windows(text, 200), text, limit=500, around=(4000, 4010)))
    assert text[3800:4200] in part.text and len(part.text) <= 540
    assert part.tags[0] == "18", "the chunk that goes on at the start of the part is named"
    assert Page(show_chunks([], text, limit=None)).text == text
    assert text[1000:3000] in Page(show_chunks([], text, limit=10, around=(1000, 3000))).text


def test_no_chunks_and_no_text():
    assert Page(show_chunks([], "abc")).stretches == [("abc", "in no chunk", False, False)]
    assert repr(show_chunks([], "abc")) == "0 chunks · 3 characters in no chunk"
    assert "an empty text" in show_chunks([], "").html
    assert "an empty text, 1 chunk" in show_chunks([(0, 0)], "").html


def test_plain_text_is_short():
    lines = repr(show_chunks(chunks_of(PROSE, 20), PROSE)).splitlines()
    assert lines[0].startswith("20 chunks of") and lines[1] == "  0  0–20     'The keeper wound the'"
    assert lines[-1] == "  … 12 chunks more" and len(lines) == 10


def test_page_is_compact():
    """At most two bytes of page for a character at the size of a usual chunk, and nothing that needs a class."""
    text = PROSE * 10
    view = show_chunks(chunks_of(text, 1000, 200), text, limit=None)
    assert len(view.html.encode()) < 2 * len(text)
    assert "<style" not in view.html and "<script" not in view.html and view.html.count("class=") == 1


def test_styles_are_those_that_an_untrusted_notebook_keeps():
    """JupyterLab drops var(), ch, hex colours with alpha and repeating gradients from a notebook that was not run."""
    html = compare_chunks(PROSE, {"a": windows(PROSE, 50, 20), "b": windows(PROSE, 70)}, highlight=[(3, 90)]).html
    assert not regex.search(r"var\(|color-mix|repeating-|\dch\b|#[0-9a-f]{4}\b|#[0-9a-f]{8}\b|<mark", html)


def test_compare_shows_the_same_part_of_each():
    text = PROSE * 20
    view = compare_chunks(text, {"fixed": windows(text, 200), "halves": Halves()}, limit=400)
    parts = regex.findall(r"<pre.*?</pre>", view.html, regex.DOTALL)
    shown = [regex.sub(r"<sup.*?</sup>|<[^>]+>", "", part) for part in parts]
    assert len(parts) == 2 and shown[0] == shown[1] and len(shown[0]) > 350
    assert "<b>fixed</b>" in view.html and view.html.count("Not shown") == 1
    assert "flex-wrap:wrap" in view.html, "stacked where the page is narrow"
    assert repr(view).startswith("fixed: ") and "\nhalves: 2 chunks" in repr(view)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: show_chunks([(0, 3)], None), "text"),
        (lambda: show_chunks("abc", "abc"), "chunks='abc'"),
        (lambda: show_chunks(3, "abc"), "chunks=3"),
        (lambda: show_chunks(["abc"], "abc"), "'abc' is of type str"),
        (lambda: show_chunks([(0, 1.5)], "abc"), "(0, 1.5)"),
        (lambda: show_chunks([(0, 1, 2)], "abc"), "(0, 1, 2)"),
        (lambda: show_chunks([(0, 4)], "abc"), "(0, 4) does not fit a text of 3 characters"),
        (lambda: show_chunks([(2, 1)], "abc"), "(2, 1)"),
        (lambda: show_chunks([(-1, 1)], "abc"), "(-1, 1)"),
        (lambda: show_chunks(chunks_of("abc", 2) + chunks_of("abc", 2, doc="b"), "abc"), "more than one document"),
        (lambda: show_chunks([], "abc", limit=0), "limit=0"),
        (lambda: show_chunks([], "abc", limit="all"), "limit='all'"),
        (lambda: show_chunks([], "abc", around=7), "around"),
        (lambda: show_chunks([], "abc", highlight=[(1, 9)]), "highlight"),
        (lambda: compare_chunks("abc", [[]]), "methods"),
        (lambda: compare_chunks("abc", {"one": []}), "methods"),
        (lambda: plot_sizes({}), "methods"),
        (lambda: plot_sizes({"a": []}, limit=0), "limit=0"),
        (lambda: plot_windows([], 5), "spans"),
        (lambda: plot_hits([]), "one or more, from one document"),
        (lambda: plot_hits([hit(0, 2, 0.5), hit(0, 2, 0.5, "other")]), "one or more, from one document"),
        (lambda: plot_windows([(0, 1)], 0), "length=0"),
        (lambda: plot_distances({}), "one or more"),
        (lambda: plot_distances({"a": ([], None, [])}), "'a' has 0 places"),
        (lambda: plot_distances({"a": ([0.5], 0.4, [1])}), "no such cut or mark: [1]"),
        (lambda: plot_distances({"a": ([0.5], 0.4, [])}, mark=-1), "no such cut or mark: [-1]"),
        (lambda: plot_scores(pd.DataFrame()), "no rows"),
        (lambda: plot_scores(pd.DataFrame({"recall": [1.0]}), "iou"), "'iou'"),
        (lambda: plot_sweep(pd.DataFrame({"x": range(7), "y": 1}), "x", "y", by="x"), "7 lines"),
    ],
)
def test_errors_name_the_argument_and_what_is_allowed(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    assert words in str(caught.value)


HITS = [hit(100, 200, 0.35), hit(0, 100, -0.1), hit(200, 250, 0.1)]
SCORES = pd.DataFrame(
    {"recall": [52.1, 69.3], "recall_low": [47.0, 65.0], "recall_high": [57.0, 74.0]}, index=["fixed", "costs $1 or $2"]
)
SWEEP = pd.DataFrame(
    [
        {"chunk_size": size, "chunk_overlap": o, "recall": 50 + size / 50 + o}
        for size in (200, 400, 1600)
        for o in (0, 5)
    ]
)
FIGURES = {
    "sizes": (lambda: plot_sizes({"a $x$": [(0, 200), (200, 390)], "none": []}, limit=200), "none: no chunks"),
    "over": (lambda: plot_sizes({"a": [(0, 5000)]}, limit=3), "at most 3 allowed"),
    "windows": (
        lambda: plot_windows([(0, 100), (80, 180), (200, 300), (280, 420), (290, 300), (400, 400)], 400),
        "characters 180 to 200 are in none",
    ),
    "hits": (
        lambda: plot_hits(HITS, [("doc", 150, 210), ("other", 0, 9)], 0.01),
        "With the answer: 0.350 at 100, 0.100 at",
    ),
    "distances": (
        lambda: plot_distances({"a $1$": ([0.1, 0.9, 0.2], 0.8, [1]), "b": ([0.5, 0.1, 0.2], None, [])}, mark=1),
        "a $1$: 3 places, threshold 0.8, 1 cut, one of them at place 1. b: 3 places, 0 cuts, none of them at place 1.",
    ),
    "hits alone": (lambda: plot_hits(HITS), "3 chunks are to the question: cosine -0.100 to 0.350."),
    "scores": (lambda: plot_scores(SCORES), "fixed: 52.1 (47 to 57)"),
    "sweep": (lambda: plot_sweep(SWEEP, "chunk_size", "recall", by="chunk_overlap"), "54 at 200"),
}


def test_a_sweep_leaves_out_labels_that_would_lie_on_one_another():
    reads = [182, 186, 264, 266, 389, 523, 2310]
    axes = plot_sweep(pd.DataFrame({"tokens": reads, "recall": range(7)}), "tokens", "recall").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["182", "264", "389", "523", "2,310"]


def test_a_line_of_a_sweep_is_named_by_a_text_alone_and_a_number_with_its_column():
    frame = pd.DataFrame({"size": [1, 2, 1], "recall": [3, 4, 5], "method": ["fixed", "fixed", "keep_or_split"]})
    figure = plot_sweep(frame, "size", "recall", by="method")
    assert figure.alt == "recall over size: fixed: 3 at 1, 4 at 2; keep or split: 5 at 1."
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["fixed", "keep or split"]
    assert "chunk overlap 5: " in plot_sweep(SWEEP, "chunk_size", "recall", by="chunk_overlap").alt


@pytest.mark.parametrize("names", [["a", "b"], [f"semantic, {n} limit" for n in range(6)], ["n" * 40, "o" * 40]])
def test_the_names_of_lines_stand_above_them_and_within_the_picture(names):
    frame = pd.DataFrame([{"size": size, "recall": 50, "method": name} for name in names for size in (1, 2)])
    figure = plot_sweep(frame, "size", "recall", by="method")
    legend, axes = figure.axes[0].get_legend().get_window_extent(), figure.axes[0].get_window_extent()
    assert axes.y1 <= legend.y0 < legend.y1 <= figure.bbox.y1 and legend.x1 <= figure.bbox.x1


def test_each_number_of_a_heatmap_stands_out_from_its_cell():
    frame = pd.DataFrame({"x": range(8), "y": "one", "recall": range(8)})
    axes = plot_heatmap(frame, "x", "y", "recall").axes[0]
    inks = [{"black": 0, "white": 1}[text.get_color()] for text in axes.texts]
    rgb = axes.images[0].to_rgba(range(8))[:, :3]
    papers = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)
    contrasts = [(max(pair) + 0.05) / (min(pair) + 0.05) for pair in zip(inks, papers, strict=True)]
    assert min(contrasts) >= 4.5 and set(inks) == {0, 1}


def test_sizes_have_their_thousands_marked():
    axes = plot_sizes({"fixed": [(0, 4000)]}).axes[0]
    assert "2,000" in [label.get_text() for label in axes.get_xticklabels()]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_one_picture_with_words(name):
    make, words = FIGURES[name]
    figure = make()
    data, metadata = figure._repr_mimebundle_()
    again, redrawn = figure._repr_mimebundle_()[0], make()._repr_mimebundle_()[0]
    assert list(data) == ["image/png", "text/plain"]
    assert words in figure.alt and data["text/plain"] == metadata["image/png"]["alt"] == figure.alt
    assert data == again == redrawn


def test_another_process_gives_the_same_bytes_and_matplotlib_is_left_alone():
    made = (
        "view = show_chunks([(0, 9), (5, 14), (14, 20)], 'one two three four $5', highlight=[(3, 8)])\n"
        "figure = plot_windows([(0, 5), (3, 9)], 9)\n"
        "made = view.html + repr(view) + str(figure._repr_mimebundle_())\n"
    )
    code = (
        "import sys; from chunklab.view import show_chunks, plot_windows; assert 'matplotlib' not in sys.modules\n"
        "from matplotlib import rcParams\n"
        "state = lambda: [(key, rcParams[key]) for key in sorted(rcParams) if key != 'backend']\n"  # asking sets it
        f"before = state()\n{made}"
        "assert state() == before and 'matplotlib.pyplot' not in sys.modules\n"
        "sys.stdout.buffer.write(made.encode())"
    )
    here = {"show_chunks": show_chunks, "plot_windows": plot_windows}
    exec(made, here)
    there = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True, check=True
    )
    assert there.stdout.decode() == here["made"]


def test_settings_of_the_reader_do_not_change_a_figure():
    import matplotlib

    plain = plot_windows([(0, 5), (3, 9)], 9)._repr_mimebundle_()
    with matplotlib.rc_context({"font.size": 30, "figure.facecolor": "red", "axes.grid": True}):
        assert plot_windows([(0, 5), (3, 9)], 9)._repr_mimebundle_() == plain


def test_windows_name_the_classic_faults():
    alt = plot_windows([(0, 100), (80, 180), (200, 300), (280, 420), (290, 300), (400, 400)], 400).alt
    assert "window 3 runs past the end" in alt and "window 4 adds nothing" in alt and "window 5 is empty" in alt


def test_a_scoreboard_gives_its_own_frame():
    class Board:
        def frame(self):
            return SCORES

    assert plot_scores(Board()).alt == plot_scores(SCORES).alt
