"""The handed cases on headings in code, Markdown headings, tables, and text that was lost; each as its whole kind."""

import json

import pytest
from chunkers import words_and_ideographs

from chunklab import HeadingChunker, read_document

TABLE = "| Code | Meaning |\n|---|---|\n" + "\n".join(f"| E{n} | fault number {n} |" for n in range(40))


def texts(chunks):
    return [c.text for c in chunks]


def paths(chunks):
    return [c.metadata["path"] for c in chunks]


def sentences(count):
    return " ".join(f"S{n} w1 w2 w3 end." for n in range(1, count + 1))


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
    [
        "# Real\n```make\nall:\n\tgcc a.c\n```\nprice 10\u00a0EUR\n",
        "\ta\u00a0b\n\n# x\n\n-\tc\n\n\t\td\u3000e\n",
        "# a\n\n    x\n\ty\u2009z\n",
    ],
)
def test_lost_03_white_space_inside_a_chunk_stays(text):
    for chunker in (HeadingChunker(), HeadingChunker(1, 3, 3)):
        chunks = chunker.chunk(text)
        assert all(c.text.endswith(text[c.start : c.end]) for c in chunks)
    (chunk,) = HeadingChunker().chunk(text)
    assert chunk.text == text.rstrip() and all(c in chunk.text for c in text if c in "\t\u00a0\u3000\u2009")


@pytest.mark.parametrize(
    "text",
    [
        "# A\n## B\n## C\ntext\n# D\n",
        "# A\n# B\n# C",
        "## A\n# B\n\nC\n---\n### D\n",
        "# A\n" + "# B\n\n" * 9 + "# C\nx\n# D",
    ],
)
@pytest.mark.parametrize("sizes", [(80, 250, 400), (1, 250, 400), (1, 2, 2), (3, 4, 5)])
def test_lost_05_a_heading_without_a_body_is_kept(text, sizes):
    chunks = HeadingChunker(*sizes).chunk(text)
    everything = " ".join(text[c.start : c.end] for c in chunks).split()
    assert {"A", "B", "C", "D"} & set(text.split()) <= set(everything)
    assert len(everything) == len(text.split())


@pytest.mark.parametrize("limit", [60, 45, 30])
@pytest.mark.parametrize(
    "text", [TABLE, sentences(60), "- " + "\n- ".join(sentences(30).split(". ")), "```\n" + "x = 1\n" * 90 + "```"]
)
def test_size_08_what_is_added_counts(text, limit):
    heading = "## A heading of twelve words or so, over a long text\n\n"
    chunks = HeadingChunker(10, limit, limit).chunk(heading + text)
    assert len(chunks) > 3
    for c in chunks:
        assert words_and_ideographs(c.text) == c.metadata["words"] <= limit and "oversize" not in c.metadata
        assert c.index == 0 or c.text.startswith("## A heading of twelve words or so, over a long text – cont'd\n\n")


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff# One\na\n# Two\nb\n",
        "\ufeff\ufeffOne\n===\na\n\nTwo\n===\nb",
        "\ufeff---\nx: y\n---\n# One\na\n# Two\nb",
    ],
)
def test_uni_05_a_byte_order_mark_does_not_hide_the_first_heading(text):
    chunks = HeadingChunker(1).chunk(text)
    assert [path for path in paths(chunks) if path] == [["One"], ["Two"]]
    assert HeadingChunker().chunk(text)[0].metadata["path"] == ["One"]
    assert not any("\ufeff" in c.text for c in chunks)


HEADER = "| Area | Q1 | Q2 |\n| | jan | apr |\n|---|---|---|\n"
ROWS = [f"| row{i} | {i} | {i + 1} |" for i in range(12)]


@pytest.mark.parametrize(
    "before", ["", "# Figures\n\n", "# Figures\n\nA caption.\n\n", "# Figures\n\nOne at the table.\n"]
)
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
