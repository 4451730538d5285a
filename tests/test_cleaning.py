"""Cleaning the text of pages: running lines, broken words, spaces."""

import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunklab.formats.cleaning import join_hyphens, page_joint, single_spaces, without_running_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An exam-\nple of wrap, well-\nknown too.", "An example of wrap, well-known too."),  # pdf-03
        ("An exam-\r\nple, re\u2010\nsult, foot\u00ad\nnote, so\u00adft", "An example, result, footnote, soft"),
        ("COVID-\n19, Anglo-\nSaxon, SUR-\nVEY", "COVID-19, Anglo-Saxon, SURVEY"),
        ("C-\nterminal, T-\nshirt", "C-terminal, T-shirt"),
        ("state-of-\nthe-art, over-the-\ncounter, one-to-\none", "state-of-the-art, over-the-counter, one-to-one"),
        ("self-\nevident, six-\nteen, half-\nway, two-\nstorey", "self-evident, sixteen, halfway, two-storey"),
        ("web-based and cloud-\nbased, re-\nlated", "web-based and cloud-based, related"),
        ("a co-operative, a co-\noperative", "a co-operative, a co-operative"),
        ("a cooperative, a co-\noperative", "a cooperative, a cooperative"),
        ("wellness, the well-\nness", "wellness, the wellness"),
        (
            "at https://a.org/some-\nlong-page, me@mail-\nhost.example",
            "at https://a.org/some-long-page, me@mail-host.example",
        ),
        ("two-\nand three-storey", "two- and three-storey"),
        ("a dash -\nand - so\n- item\n-\n3-\n4", "a dash -\nand - so\n- item\n-\n3-4"),
        ("Über-\nraschung, müh-\nsam", "Überraschung, mühsam"),
        ("", ""),
        ("end-\n", "end-\n"),
    ],
)
def test_pdf_03_broken_words_are_joined_and_real_hyphens_kept(text, expected):
    assert join_hyphens(text)[0] == expected


def test_pdf_03_offsets_move_with_the_text(read):
    text = "An exam-\nple. Sec-\nond."
    starts = [0, 3, 9, 12, 14, len(text)]
    joined, moved = join_hyphens(text, starts)
    assert joined == "An example. Second." and moved == [0, 3, 7, 10, 12, len(joined)]
    assert join_hyphens(text, [8])[1] == [7]  # inside of what went
    assert read("txt", text, clean=["hyphens"]).text == joined


@given(st.text("ab-\n \u00ad2A/", max_size=40))
def test_joining_loses_hyphens_and_line_ends_only(text):
    joined, moved = join_hyphens(text, range(len(text) + 1))
    drop = str.maketrans("", "", "-\n \u00ad")
    assert joined.translate(drop) == text.translate(drop)
    assert moved[-1] == len(joined) and moved == sorted(moved)
    assert all(joined[new] == text[old] for old, new in enumerate(moved[:-1]) if text[old].isalnum())


@given(st.text("ab \t\n\r", max_size=40))
def test_single_spaces_are_single_and_final(text):
    cleaned, moved = single_spaces(text, range(len(text) + 1))
    assert "".join(cleaned.split()) == "".join(text.split())
    assert not re.search(r"\S[ \t]{2,}\S|\S[ \t]+$", cleaned, re.MULTILINE)
    assert moved[-1] == len(cleaned) and moved == sorted(moved)
    assert single_spaces(cleaned)[0] == cleaned


def test_single_spaces_keep_the_indent_of_code():
    assert single_spaces("def f():\n    return  1  \n\n\n\n    x")[0] == "def f():\n    return 1\n\n    x"


ROMAN = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii"]


def test_pdf_06_running_lines_of_many_kinds():
    body = [f"{name} begins\n{name} goes on\n{name} and on\n{name} ends" for name in "abcdefgh"]
    for head, foot in [
        (lambda n: "THE REPORT", lambda n: f"{n}"),
        (lambda n: "the  report" if n % 3 else "THE REPORT", lambda n: f"- {n} -"),
        (lambda n: "Left page" if n % 2 else "Right page", lambda n: f"Page {n} of 8"),
        (lambda n: f"{n + 40}   Chapter 2", lambda n: ROMAN[n]),
        (lambda n: f"Chapter {n // 3}: Bells {n + 3}" if n < 6 else "", lambda n: ""),
        (lambda n: f"Preface {ROMAN[n]}", lambda n: f"- {ROMAN[n]} -"),
        (lambda n: f"{ROMAN[n].upper()} Preface", lambda n: f"p. {ROMAN[n]}" if n < 4 else str(n - 3)),
        (lambda n: "24/11/2024, 10:30", lambda n: f"https://a.example/b {n + 1}/8"),
        (lambda n: f"Report 2024\n{n + 1}", lambda n: "\n \n© 2024"),
    ]:
        pages = [f"{head(n)}\n{text}\n{foot(n)}" for n, text in enumerate(body)]
        assert [page.strip() for page in without_running_lines(pages)] == body


def test_pdf_06_lines_that_only_look_alike_stay():
    for line in (
        lambda n: f"{n * n} apples",
        lambda n: "0",
        lambda n: f"Table {n // 3}",
        lambda n: "-----",
        lambda n: "1,000",
    ):
        pages = [f"{line(n)}\n{'a' * n} text\n{'b' * n} end" for n in range(8)]
        assert without_running_lines(pages) == pages
    middle = [f"a{n * n}\nb{n * n}\nc{n * n}\nsame here\nd{n * n}\ne{n * n}\nf{n * n}" for n in range(1, 9)]
    assert without_running_lines(middle) == middle
    assert without_running_lines(["HEAD\ntext\n1"]) == ["HEAD\ntext\n1"] and without_running_lines([]) == []


@pytest.mark.parametrize(
    ("previous", "following", "expected"),
    [
        ("goes on", "here.", " "),
        ("goes on,", "here.", " "),
        ("broken sec-", "ond", "\n"),
        ("It ends.", "it begins", "\n\n"),
        ('It ends."', "it begins", "\n\n"),
        ("goes on", "Heading", "\n\n"),
        ("goes on", "4.2 Heading", "\n\n"),
        ("句子没有完", "在下一页。", " "),
        ("句子完。", "下一句", "\n\n"),
        ("", "x", "\n\n"),
    ],
)
def test_pdf_06_pages_join_where_a_sentence_goes_on(previous, following, expected):
    assert page_joint(previous, following) == expected


@pytest.mark.parametrize(
    ("step", "part"), [(join_hyphens, "aa-\nb "), (join_hyphens, "\u00ad"), (single_spaces, "a  ")]
)
def test_cleaning_takes_no_more_memory_than_a_few_times_the_text(step, part):
    text = part * (60_000 // len(part))
    tracemalloc.start()
    step(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 * len(text)  # a list of what was found would take a hundred times


@pytest.mark.parametrize("step", [join_hyphens, single_spaces])
@pytest.mark.parametrize("part", ["-", "a-\n", "a" * 30 + "-", " \n", "\t ", "a-\n\n ", "- " * 9, "\r\n-"])
def test_cleaning_is_linear(step, part):
    began = time.process_time()
    step(part * (300_000 // len(part)))
    assert time.process_time() - began < 20  # quadratic, it would be hours
