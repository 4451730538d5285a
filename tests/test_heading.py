"""Headings as CommonMark defines them, topics, continuation headings, tables, code, words, CSV."""

import csv
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from chunkers import words_and_ideographs
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chunklab import Chunk, FixedSizeChunker, HeadingChunker, load_corpus, read_document, write_csv
from chunklab.chunkers.markdown import headings, outline, parse
from chunklab.chunkers.words import Words, count_words

FOLDER = Path(__file__).parent / "commonmark"
EXAMPLES = [
    pytest.param(example, id=f"{file.stem}: {example['rule']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for example in yaml.safe_load(file.read_text(encoding="utf-8"))
]
SMALL = HeadingChunker(5, 20, 30)


def texts(chunks):
    return [c.text for c in chunks]


def paths(chunks):
    return [c.metadata["path"] for c in chunks]


def words(count, start=1):
    return " ".join(f"w{n}" for n in range(start, start + count))


def sentences(count, each=5):
    return " ".join(f"S{n} {words(each - 2)} end." for n in range(1, count + 1))


# What a heading is.


def titles(text):
    return [[heading.level, heading.title] for heading in headings(text)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_headings_are_those_of_commonmark(example):
    text = example["markdown"]
    assert titles(text) == example["headings"]
    topics = [[section.level, section.path[-1]] for section in outline(text).sections[1:]]
    assert topics == example.get("topics", example["headings"])


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("ending", ["\r\n", "\r", "\u2028", "\u2029"], ids=ascii)
def test_line_ends_of_any_kind_make_the_same_headings(example, ending):
    assert titles(example["markdown"].replace("\r\n", "\n").replace("\n", ending)) == example["headings"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_headings_stand_where_they_are_said_to(example):
    text = "漢字 é 👩‍🔬\n\n" + example["markdown"]
    for heading in headings(text):
        assert heading.line == 0 or text[heading.line - 1] in "\n\r\u2028"
        assert re.fullmatch(r"[ \t>*+-]*(\d+[.)])?[ \t>]*", text[heading.line : heading.start])
        assert all(word in text[heading.start : heading.end] for word in re.findall(r"\w+", heading.title))


def test_there_are_enough_examples_for_each_rule():
    assert len(EXAMPLES) >= 130
    rules = [example.id for example in EXAMPLES]
    for kind in range(1, 8):
        assert sum(f"html: {kind}:" in rule for rule in rules) >= 1
    assert len(set(rules)) == len(rules)


LINES = st.lists(
    st.sampled_from(
        "# a|## b ##|#c|### |a|b c|---|===|  ||    |> |- |1. |* |```|~~~|````|``` x|<!-- |-->|<div>|</div>|<pre|</pre>|<?|?>|***|"
        "[f]: /u|\\|    # i|\t|&amp;|_|=|-".split("|")
    ),
    max_size=3,
).map("".join)


@settings(max_examples=400)
@given(st.lists(LINES, max_size=8).map("\n".join))
def test_a_second_parser_sees_the_same_headings(text):
    tokens = MarkdownIt("commonmark").parse(text)
    assert [heading.level for heading in headings(text)] == [int(t.tag[1]) for t in tokens if t.type == "heading_open"]


# The handed cases.

ONE_SECTION = {
    "md-01": "# Real\nbefore\n```python\n# not a heading\nx = 1\n```\nafter\n",
    "md-01, tildes": "# Real\n~~~\n# not a heading\n~~~\nafter\n",
    "md-01, in a list": "# Real\n- item\n  ```sh\n  # no\n  ```\nafter\n",
    "md-01, no end": "# Real\n```\n# no\n\n## no\n",
    "md-03": "# Real\n````\n```\n# not a heading\n```\n# still not\n````\nafter\n",
    "md-03, tildes": "# Real\n~~~~~\n~~~\n# no\n~~~\n````\n# no\n~~~~~\nafter\n",
    "md-04": "# Real\n```\nline\n``` not a close\n# not a heading\n```\nafter\n",
    "md-04, indented": "# Real\n```\n    ```\n# no\n```\nafter\n",
    "md-05": "# Real\n\n    # indented code, not a heading\n\ntext\n<!--\n# hidden\n-->\nend\n",
    "md-05, tab": "# Real\n\n\t# no\n\n<!-- # no\n\n## no -->\nend\n",
    "md-05, other HTML": "# Real\n<pre>\n\n# no\n</pre>\n<?x\n# no\n?>\nend\n",
}


@pytest.mark.parametrize("name", ONE_SECTION)
def test_md_01_to_05_code_and_comments_hold_no_headings(name):
    text = ONE_SECTION[name]
    (chunk,) = HeadingChunker().chunk(text)
    assert chunk.text == text.strip() and chunk.metadata["path"] == ["Real"] and "paths" not in chunk.metadata
    assert {tuple(path) for path in paths(HeadingChunker(1, 4, 4).chunk(text))} == {("Real",)}


def test_md_09_a_path_is_a_list():
    (chunk,) = HeadingChunker().chunk("# Root\n## 24/7 Desk\n### Hours\nopen\n")
    assert chunk.metadata["path"] == ["Root", "24/7 Desk", "Hours"]
    text = "# A > B\n## [x / y](/z)\none\n## a/b\ntwo\n# \ud800\nthree\n## `#` &gt;\nfour"
    chunks = HeadingChunker(1).chunk(text, "d")
    assert paths(chunks) == [["A > B", "x / y"], ["A > B", "a/b"], ["\ufffd"], ["\ufffd", "# >"]]
    assert [c.id for c in chunks] == ["d_0", "d_1", "d_2", "d_3"]
    assert json.loads(json.dumps(paths(chunks))) == paths(chunks)


def test_md_10_closing_marks_are_not_of_the_title():
    text = "# Title #\ntext\n#NoSpace\nmore\n"
    (chunk,) = HeadingChunker().chunk(text)
    assert chunk.metadata["path"] == ["Title"] and "#NoSpace" in chunk.text
    parts = HeadingChunker(1, 6, 6).chunk("## Title ##\n\none two.\n\nthree four.")
    assert texts(parts) == ["## Title ##\n\none two.", "## Title – cont'd\n\nthree four."]


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<h1>Ch 1</h1><p>a</p><h2>Sec 1.1</h2><p>b</p>", [["Ch 1"], ["Ch 1", "Sec 1.1"]]),
        ("<div><h1>Hello</h1><p>text</p></div>", [["Hello"]]),
        ("<section><h2>A</h2><div><h3>B</h3>b</div></section><h2>C</h2>c", [["A", "B"], ["C"]]),
    ],
)
def test_md_11_md_12_headings_of_html_are_those_of_its_markdown(tmp_path, page, wanted):
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    document = read_document(tmp_path / "page.html")
    assert paths(HeadingChunker(1).chunk(document.text)) == wanted
    (chunk,) = HeadingChunker(1).chunk(page)  # without being read as HTML it is a block of Markdown, and whole
    assert chunk.text == page and chunk.metadata["path"] == []


@pytest.mark.parametrize(
    "text",
    ["# Real\n```make\nall:\n\tgcc a.c\n```\nprice 10\u00a0EUR\n", "\ta\u00a0b\n\n# x\n\n-\tc\n\n\t\td\u3000e\n", "# a\n\n    x\n\ty\u2009z\n"],
)
def test_lost_03_white_space_inside_a_chunk_stays(text):
    for chunker in (HeadingChunker(), HeadingChunker(1, 3, 3)):
        chunks = chunker.chunk(text)
        assert all(c.text.endswith(text[c.start : c.end]) for c in chunks)
    (chunk,) = HeadingChunker().chunk(text)
    assert chunk.text == text.rstrip() and all(c in chunk.text for c in text if c in "\t\u00a0\u3000\u2009")


@pytest.mark.parametrize(
    "text", ["# A\n## B\n## C\ntext\n# D\n", "# A\n# B\n# C", "## A\n# B\n\nC\n---\n### D\n", "# A\n\n" + "# B\n\n" * 9 + "# C\nx\n# D"]
)
@pytest.mark.parametrize("sizes", [(80, 250, 400), (1, 250, 400), (1, 2, 2), (3, 4, 5)])
def test_lost_05_a_heading_without_a_body_is_kept(text, sizes):
    chunks = HeadingChunker(*sizes).chunk(text)
    everything = " ".join(text[c.start : c.end] for c in chunks).split()
    assert {"A", "B", "C", "D"} & set(text.split()) <= set(everything)
    assert len(everything) == len(text.split())


TABLE = "| Code | Meaning |\n|---|---|\n" + "\n".join(f"| E{n} | fault number {n} |" for n in range(40))


@pytest.mark.parametrize("limit", [60, 45, 30])
@pytest.mark.parametrize("text", [TABLE, sentences(60), "- " + "\n- ".join(sentences(30).split(". ")), "```\n" + "x = 1\n" * 90 + "```"])
def test_size_08_what_is_added_counts(text, limit):
    heading = "## A heading of twelve words or so, over a long text\n\n"
    chunks = HeadingChunker(10, limit, limit).chunk(heading + text)
    assert len(chunks) > 3
    for c in chunks:
        assert words_and_ideographs(c.text) == c.metadata["words"] <= limit and "oversize" not in c.metadata
        assert c.index == 0 or c.text.startswith("## A heading of twelve words or so, over a long text – cont'd\n\n")


@pytest.mark.parametrize("text", ["\ufeff# One\na\n# Two\nb\n", "\ufeff\ufeffOne\n===\na\n\nTwo\n===\nb", "\ufeff---\nx: y\n---\n# One\na\n# Two\nb"])
def test_uni_05_a_byte_order_mark_does_not_hide_the_first_heading(text):
    chunks = HeadingChunker(1).chunk(text)
    assert [["One"], ["Two"]] == [path for path in paths(chunks) if path]
    assert HeadingChunker().chunk(text)[0].metadata["path"] == ["One"]
    assert not any("\ufeff" in c.text for c in chunks)


HEADER = "| Area | Q1 | Q2 |\n| | jan | apr |\n|---|---|---|\n"
ROWS = [f"| row{i} | {i} | {i + 1} |" for i in range(12)]


@pytest.mark.parametrize("before", ["", "# Figures\n\n", "# Figures\n\nA caption.\n\n", "# Figures\n\nA caption at the table.\n"])
@pytest.mark.parametrize("most", [40, 30, 25])
def test_tab_02_each_part_of_a_table_has_all_its_header(before, most):
    chunks = HeadingChunker(1, most, most).chunk(before + HEADER + "\n".join(ROWS) + "\n")
    tables = [c.text for c in chunks if "row" in c.text]
    assert len(tables) > 1 and all(HEADER in table for table in tables)
    assert [line for table in tables for line in table.splitlines() if "row" in line] == ROWS
    assert [c.metadata.get("cut") for c in chunks if "row" in c.text] == ["table"] * len(tables)
    assert all(c.metadata["words"] <= most for c in chunks)


@pytest.mark.parametrize("sizes", [(1, 20, 30), (1, 40, 40), (1, 62, 62), (1, 5, 5)])
@pytest.mark.parametrize("rows", [1, 5])
def test_tab_03_no_cell_is_cut(sizes, rows):
    cells = " | ".join("5,120" for _ in range(30))
    header = "| " + " | ".join(f"column{i}" for i in range(30)) + " |\n|" + "---|" * 30
    text = f"# Wide\n\n{header}\n" + f"| {cells} |\n" * rows + "\nAfter it."
    chunks = HeadingChunker(*sizes).chunk(text)
    lines = [line for c in chunks for line in c.text.splitlines()]
    assert lines.count(f"| {cells} |") == rows and not any(line.count("5,120") not in (0, 30) for line in lines)
    long = [c for c in chunks if c.metadata["words"] > sizes[2]]
    assert len(long) == rows and {c.metadata["oversize"] for c in long} == {"row"}
    assert all(header in c.text for c in long)


# Topics.


def test_a_topic_is_a_chunk():
    text = f"# A\n\n{words(90)}\n\n## B\n\n{words(100)}\n\n## C\n\n{words(110)}\n"
    chunks = HeadingChunker().chunk(text)
    assert [c.text.splitlines()[0] for c in chunks] == ["# A", "## B", "## C"]
    assert paths(chunks) == [["A"], ["A", "B"], ["A", "C"]]
    assert [c.metadata["words"] for c in chunks] == [92, 102, 112]
    assert all(set(c.metadata) == {"path", "words"} for c in chunks)


def test_small_neighbours_share_a_chunk_until_it_has_enough_words():
    text = "# A\n" + "".join(f"## B{n}\n{words(30)}\n" for n in range(7))
    chunks = HeadingChunker().chunk(text)
    assert [c.metadata["words"] for c in chunks] == [98, 128]  # three, and four: the last would have been alone
    assert chunks[1].metadata["paths"] == [["A", "B3"], ["A", "B4"], ["A", "B5"], ["A", "B6"]]
    assert chunks[0].metadata["path"] == ["A", "B0"] and chunks[0].metadata["paths"][0] == ["A"]


def test_neighbours_under_two_parents_do_not():
    big = words(90)
    chunks = HeadingChunker().chunk(f"# A\n\n{big}\n\n## a\n\n{big}\n\n## b\n\n{big}\n\n### c\n\n{big}\n\n### d\n\nx\n\n# B\n\n{big}\n")
    assert [c.text[-1] for c in chunks] == ["0", "0", "0", "x", "0"]
    assert paths(chunks)[3:] == [["A", "b", "c"], ["B"]]
    far = HeadingChunker().chunk(f"# A\n\n{big}\n\n## b\n\n{words(380)}\n\n## d\n\nx {words(20)}\n\n# B\n\ny\n")
    assert [c.text.splitlines()[0] for c in far] == ["# A", "## b", "## d", "# B"]


def test_a_topic_is_kept_whole_up_to_the_extended_size():
    text = "# A\n\n" + "\n\n".join(words(39) for _ in range(10))
    (chunk,) = HeadingChunker().chunk(text)
    assert chunk.metadata == {"path": ["A"], "words": 392, "oversize": "topic"}
    parts = HeadingChunker(80, 250, 391).chunk(text)
    assert [c.metadata["words"] for c in parts] == [236, 160] and not any("oversize" in c.metadata for c in parts)


def test_a_topic_that_goes_on_has_a_continuation_heading():
    text = "# A\n\n## *B* `b` ##\n\n" + "\n\n".join(words(100) for _ in range(5))
    chunks = HeadingChunker().chunk(text)
    assert [c.text.splitlines()[0] for c in chunks] == ["# A", "## *B* `b` – cont'd", "## *B* `b` – cont'd"]
    assert all(c.text == c.metadata.get("added", "") + text[c.start : c.end] for c in chunks)
    assert paths(chunks) == [["A", "B b"]] * 3
    assert [c.text for c in chunks] == HeadingChunker().split_text(text)
    other = HeadingChunker(continuation=" (continued)").chunk("Title of\ntwo lines\n---\n\n" + sentences(100))
    assert [c.metadata.get("added") for c in other] == [None] + ["## Title of two lines (continued)\n\n"] * (len(other) - 1)


def test_a_long_heading_leaves_room_for_text():
    text = f"# {words(300)}\n\n{sentences(100)}"
    chunks = HeadingChunker().chunk(text)
    assert all(c.metadata["words"] <= 250 for c in chunks)
    assert chunks[-1].metadata["added"].startswith("# w1 w2") and chunks[-1].metadata["added"].endswith("… – cont'd\n\n")
    assert "added" not in HeadingChunker(1, 3, 3).chunk("# A\n\n" + words(9))[-1].metadata  # no room at all
    huge = "# " + "a" * 50_000 + "\n\n" + "word " * 10_000
    assert sum(map(len, HeadingChunker().split_text(huge))) < 2 * len(huge)


def test_text_before_the_first_heading_and_without_any():
    assert texts(HeadingChunker(1).chunk("Intro.\n\n# A\n\nText.")) == ["Intro.", "# A\n\nText."]
    assert HeadingChunker().chunk("Intro.\n\n# A\n\nText.")[0].metadata["path"] == ["A"]
    chunks = HeadingChunker().chunk(sentences(200))
    assert paths(chunks) == [[]] * len(chunks) and len(chunks) == 4 and all(c.text[0] == "S" for c in chunks)


def test_headings_in_quotes_and_lists_open_no_topic():
    text = "# A\n\n> # Quoted\n> text\n\n- ## Item\n\n  text\n\nafter"
    (chunk,) = HeadingChunker(1).chunk(text)
    assert chunk.text == text and chunk.metadata["path"] == ["A"]


# Paragraphs, lists, code.


def test_a_paragraph_is_kept_whole_up_to_the_extended_size():
    text = f"# A\n\n{words(100)}\n\n{words(300)}\n\n{words(100)}"
    chunks = HeadingChunker().chunk(text)
    assert [(c.metadata["words"], c.metadata.get("oversize")) for c in chunks] == [(102, None), (304, "paragraph"), (104, None)]


def test_a_longer_one_is_cut_at_sentences():
    text = "# A\n\n" + sentences(100)
    chunks = HeadingChunker().chunk(text)
    assert all(c.metadata["cut"] == "paragraph" and c.text.endswith("end.") for c in chunks)
    assert [c.metadata["words"] for c in chunks] == [247, 259]  # the end would have been alone


def test_a_sentence_that_is_too_long_is_cut_at_lines_or_words():
    assert texts(HeadingChunker(1, 4, 4).chunk("a b c d e f g")) == ["a b c d", "e f g"]
    chunks = HeadingChunker(1, 6, 6).chunk("a b c d\ne f g h\ni j k")
    assert texts(chunks) == ["a b c d", "e f g h", "i j k"] and {c.metadata["cut"] for c in chunks} <= {"paragraph", "sentence"}


@pytest.mark.parametrize("text", ["漢字" * 500, "漢字を書く。" * 200, "これは「例」です、そして" * 99, "使用API接口，" * 150, "# 标题\n\n" + "这是第一句话。" * 200])
def test_chinese_and_japanese_are_cut_too(text):
    chunks = HeadingChunker().chunk(text)
    assert len(chunks) > 1 and all(words_and_ideographs(c.text) <= 250 for c in chunks)
    assert not any(c.text[0] in "。，、」" for c in chunks)
    assert "".join(text[c.start : c.end] for c in chunks).replace("\n", "") == text.replace("\n", "")


def test_a_list_is_cut_between_items():
    items = [f"- item {n} {words(8)}" for n in range(10)]
    chunks = HeadingChunker(5, 50, 60).chunk("# A\n\n" + "\n".join(items))
    assert [line for c in chunks for line in c.text.splitlines() if line.startswith("- ")] == items
    assert all(c.metadata["cut"] == "list" for c in chunks)


def test_nested_lists_keep_their_indentation():
    text = "# A\n\n- one two\n" + "".join(f"  - inner {n} {words(5)}\n    - deep {n}\n" for n in range(6)) + "- three\n"
    chunks = SMALL.chunk(text)
    assert len(chunks) > 2 and all(c.text == c.metadata.get("added", "") + text[c.start : c.end] for c in chunks)
    bodies = [text[c.start : c.end] for c in chunks]
    assert "\n".join(bodies) == text.strip()


@pytest.mark.parametrize("fence", ["```", "~~~~", "  ```"])
def test_code_is_cut_at_lines_under_its_fence(fence):
    lines = [f"    x{n} = {n}  # comment" for n in range(20)]
    text = "\n".join(["# A", "", f"{fence}python", *lines, fence, "", "Text."])
    chunks = SMALL.chunk(text)
    assert [line for c in chunks for line in c.text.splitlines() if line.startswith("    x")] == lines
    for c in chunks[:-1]:
        assert [block.kind for block in parse(c.text)] == ["heading", "code"] and headings(c.text)[1:] == []
    assert [c.metadata["added"] for c in chunks[1:-1]] == [f"# A – cont'd\n\n{fence}python\n"] * (len(chunks) - 2)


def test_indented_code_keeps_its_first_indentation():
    text = "# A\n\n" + "\n".join(f"    line {n} of it" for n in range(20))
    chunks = SMALL.chunk(text)
    assert all(text[c.start : c.end].startswith("    line") for c in chunks[1:])
    assert "\n".join(text[c.start : c.end] for c in chunks) == text


def test_tables_and_code_that_fit_are_whole():
    text = f"# A\n\n{words(200)}\n\n{TABLE}\n\n```\n{'x = 1 ' * 90}\n```\n\n{words(100)}"
    chunks = HeadingChunker().chunk(text)
    assert sum(TABLE in c.text for c in chunks) == 1 and sum("x = 1 " * 90 in c.text for c in chunks) == 1
    assert [c.metadata.get("oversize") for c in chunks] == [None, "table", "code", None]


def test_a_table_in_a_quote_or_an_item_repeats_its_header():
    quoted = "> " + TABLE.replace("\n", "\n> ")
    chunks = HeadingChunker(1, 60, 60).chunk(quoted)
    assert len(chunks) > 2 and all(c.text.startswith("> | Code | Meaning |\n> |---|---|\n> | E") for c in chunks)
    item = "- " + TABLE.replace("\n", "\n  ")
    chunks = HeadingChunker(1, 60, 60).chunk(item)
    assert all(c.text.startswith(("- ", "  ")[c.index > 0] + "| Code | Meaning |\n  |---|---|\n  | E") for c in chunks)


# Generated Markdown: of each word it is known where it stands, and under which headings.

SIZE = st.integers(1, 45)
BLOCKS = st.one_of(
    st.tuples(st.just("heading"), st.integers(1, 6)),
    st.tuples(st.sampled_from(["paragraph", "lines", "list", "quote", "code", "fence", "table", "comment"]), SIZE),
)


def render(blocks, ending):
    """Markdown, and for each of its words, numbered, the path of the headings above it."""
    parts, found, above, count = [], {}, [], 0

    def take(number):
        nonlocal count
        taken = [f"w{n}" for n in range(count, count + number)]
        found.update(dict.fromkeys(taken, [title for _, title in above]))
        count += number
        return taken

    for kind, number in blocks:
        if kind == "heading":
            above = [(level, title) for level, title in above if level < number]
            above.append((number, f"h{count}"))
            setext = number <= 2 and count % 2
            parts.append(f"h{count}\n{'=-'[number - 1] * 3}" if setext else f"{'#' * number} h{count}")
            count += 1
        elif kind == "paragraph":
            parts.append(" ".join(word + "." * (n % 7 == 6) for n, word in enumerate(take(number))))
        elif kind == "lines":
            parts.append("\n".join(take(number)))
        elif kind == "list":
            parts.append("\n".join(f"{'  ' * (n % 2)}- {word}" for n, word in enumerate(take(number))))
        elif kind == "quote":
            parts.append("\n".join(f"> {word}" for word in take(number)))
        elif kind == "code":
            parts.append(take(1)[0] + "\n\n" + "\n".join(f"    {word}" for word in take(number)))
        elif kind == "fence":
            parts.append("```\n" + "\n".join(f"# {word}" for word in take(number)) + "\n```")
        elif kind == "table":
            parts.append("| a | b |\n|---|---|\n" + "\n".join(f"| {word} | |" for word in take(number)))
        else:
            parts.append("<!--\n" + "\n".join(f"# {word}" for word in take(number)) + "\n-->")
    return ("\n\n".join(parts) + "\n").replace("\n", ending), found


@settings(max_examples=300)
@given(st.lists(BLOCKS, min_size=1, max_size=14), st.sampled_from(["\n", "\r\n", "\r", "\u2028"]), st.sampled_from([(5, 20, 30), (80, 250, 400), (8, 12, 12)]))
def test_generated_markdown_is_cut_well(blocks, ending, sizes):
    text, found = render(blocks, ending)
    least, most, extended = sizes
    chunks = HeadingChunker(*sizes).chunk(text)
    assert all(left.end <= right.start for left, right in pairwise(chunks))
    seen = []
    for c in chunks:
        data = c.metadata
        assert c.text == data.get("added", "") + text[c.start : c.end]
        assert data["words"] == words_and_ideographs(c.text)
        assert data["words"] <= extended or data["oversize"] == "row"
        assert (data["words"] > most) == ("oversize" in data)
        inside = [word for word in re.findall(r"\b[wh]\d+\b", text[c.start : c.end])]
        seen += inside
        spoken = [word for word in inside if word in found]
        under = [word for word in spoken if found[word]]
        if under or spoken:
            assert data["path"] == found[(under or spoken)[0]]
        if data["path"] and not (spoken and not found[spoken[0]]):
            assert headings(c.text)[:1] and parse(c.text)[0].kind == "heading"
    assert seen == re.findall(r"\b[wh]\d+\b", text)
    if sizes[0] == 80 and words_and_ideographs(text) <= least:
        assert len(chunks) == 1


def test_sizes_are_met_on_the_corpus():
    for name, text in load_corpus().items():
        chunks = HeadingChunker().chunk(text, name)
        assert all(c.metadata["words"] <= (400 if "oversize" in c.metadata else 250) for c in chunks)
        if name.endswith(".md"):
            assert all(c.text.startswith("#") or headings(c.text) for c in chunks)
            assert sum(c.metadata["words"] < 80 for c in chunks) <= 1


@pytest.mark.parametrize(
    "text",
    [
        ">" * 20_000, "- " * 9_999 + "a", "> - " * 5_000 + "# a", "# a\n" * 5_000, "# " * 9_999, "a\n" * 9_999, "|" * 9_999 + "\n" + "-|" * 9_999,
        "| " + "a | " * 500 + "\n|" + "---|" * 500 + "\n" + "| b |\n" * 3_000, "|" + "a" * 9_000 + "|\n|---|\n" + "|b|\n" * 3_000,
        "```" + "a" * 9_000 + "\n" + "x\n" * 5_000, "    " * 2_000 + "a", "".join("  " * n + "- a\n" for n in range(150)), "[a]: b\n" * 3_000,
        "---\n" + "# c   \n" * 3_000, "---\na: b\n" + "c: d\n" * 3_000, "<!--\n" + "# a\n" * 3_000, "</pre></script>" * 999, "<pre>\n</style>\n" * 999,
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_hostile_markdown_does_not_multiply(text):
    chunks = HeadingChunker().chunk(text)
    assert sum(len(c.text) for c in chunks) < 2 * len(text) + 100
    covered = re.sub(r"\s", "", "".join(text[c.start : c.end] for c in chunks))
    assert covered == re.sub(r"\s", "", text)


# Words.


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["a", "é", " ", "\n", "\u3000", "漢", "カ", "。", "\u0301", "-", "\x1c", "\ufeff", "\ud800", "𠀋"]), max_size=30).map("".join), st.data())
def test_the_words_of_any_part_are_counted_right(text, data):
    counted = Words(text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert counted.between(start, end) == count_words(text[start:end])
    number = data.draw(st.integers(1, 9))
    place = counted.after(start, number)
    if place == len(text):
        assert counted.between(start, place) <= number
    else:
        assert counted.between(start, place) == number and counted.between(start, place + 1) == number + 1
    assert count_words(text) == sum(counted.between(n, n + 1) > counted.between(n, n) and (n == 0 or counted.between(0, n) < counted.between(0, n + 1)) for n in range(len(text)))


def test_without_ideographs_a_word_is_what_split_gives():
    for name in ("staff_handbook.md", "throat_survey.txt", "tideclock.py"):
        text = load_corpus()[name]
        assert count_words(text) == len(text.split())


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"min_words": 0}, "min_words=0: must be a whole number of 1 or more"),
        ({"max_words": 2.5}, "max_words=2.5: must be a whole number"),
        ({"extended_words": "400"}, "extended_words='400': must be a whole number"),
        ({"min_words": True}, "min_words=True: must be a whole number"),
        ({"min_words": 300}, "max_words=250: must be at least min_words=300"),
        ({"max_words": 500}, "extended_words=400: must be at least max_words=500"),
        ({"continuation": None}, "continuation=None: must be a str without line ends"),
        ({"continuation": "a\nb"}, "continuation='a.nb': must be a str without line ends"),
        ({"continuation": "a\u2028"}, "continuation=.*: must be a str without line ends"),
    ],
)
def test_bad_arguments_are_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        HeadingChunker(**arguments)


@pytest.mark.parametrize("doc_id", [None, 3, b"a"], ids=repr)
def test_an_id_that_is_no_text_is_refused(doc_id):
    with pytest.raises(ValueError, match="doc_id=.*must be a str"):
        HeadingChunker().chunk("some text", doc_id)


def test_what_chunks_say_can_be_kept_as_json():
    chunks = HeadingChunker(5, 20, 30).chunk(f"# A\n\n{TABLE}\n\n{sentences(20)}")
    assert json.loads(json.dumps([c.metadata for c in chunks])) == [c.metadata for c in chunks]
    chunks[0].metadata["path"].append("x")
    assert chunks[1].metadata["path"] == ["A"]


# CSV.


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_batch_of_files_becomes_one_csv(tmp_path):
    for name, text in load_corpus().items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    chunker, documents = HeadingChunker(), [read_document(path) for path in sorted(tmp_path.glob("*.md"))]
    chunks = [chunk for document in documents for chunk in chunker.chunk(document.text, document.id)]
    write_csv(chunks, tmp_path / "chunks.csv")
    found = rows(tmp_path / "chunks.csv")
    assert list(found[0]) == ["document", "id", "path", "text", "start", "end", "words"]
    assert len({row["document"] for row in found}) == 3 and len({row["id"] for row in found}) == len(chunks)
    for row, c in zip(found, chunks, strict=True):
        assert (row["document"], row["id"], row["text"]) == (c.document, c.id, c.text)
        assert json.loads(row["path"]) == c.metadata["path"]
        assert [int(row[key]) for key in ("start", "end", "words")] == [c.start, c.end, c.metadata["words"]]
    assert (tmp_path / "chunks.csv").read_bytes().startswith(b"\xef\xbb\xbfdocument,")


@pytest.mark.parametrize("text", ['say "hi", she; said\r\nok', "tab\there", "漢字 é 👩‍🔬", "nul \0", "a,b\n\nc"])
def test_text_comes_back_as_it_was(tmp_path, text):
    write_csv([Chunk(text, 0, len(text))], tmp_path / "c.csv")
    assert rows(tmp_path / "c.csv")[0]["text"] == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "- item", "\t=1", "\r=1", "\n=1", "＝1"])
def test_a_formula_is_no_formula(tmp_path, text):
    write_csv([Chunk(text, 0, len(text), text, text)], tmp_path / "c.csv")
    (row,) = rows(tmp_path / "c.csv")
    assert row["text"] == row["document"] == row["id"] == "'" + text


def test_chunks_of_any_chunker_can_be_written(tmp_path):
    write_csv(FixedSizeChunker(7).chunk("one two three"), tmp_path / "c.csv")
    assert [(row["text"], row["path"], row["words"]) for row in rows(tmp_path / "c.csv")] == [("one two", "[]", "2"), (" three", "[]", "1")]
    write_csv([], tmp_path / "c.csv")
    assert rows(tmp_path / "c.csv") == []


def test_a_csv_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "c.csv"
    write_csv([Chunk("old", 0, 3)], path)

    def broken():
        yield Chunk("new", 0, 3)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_csv(broken(), path)
    assert rows(path)[0]["text"] == "old" and list(tmp_path.iterdir()) == [path]
    write_csv([Chunk("half \ud83d pair", 0, 11)], str(path))
    assert rows(path)[0]["text"] == "half ? pair"
