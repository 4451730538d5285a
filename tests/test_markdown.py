"""Headings as CommonMark defines them: our own examples, one or more for each of its rules, and a second parser."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chunklab import HeadingChunker
from chunklab.chunkers.markdown import headings, outline, parse

FOLDER = Path(__file__).parent / "commonmark"
EXAMPLES = [
    pytest.param(example, id=f"{file.stem}: {example['rule']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for example in yaml.safe_load(file.read_text(encoding="utf-8"))
]


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
        "# a|## b ##|#c|### |a|b c|---|===|  ||    |> |- |1. |* |```|~~~|````|``` x|<!-- |-->|<div>|</div>|<pre|</pre>|"
        "<?|?>|***|[f]: /u|\\|    # i|\t|&amp;|_|=|-".split("|")
    ),
    max_size=3,
).map("".join)


@settings(max_examples=400)
@given(st.lists(LINES, max_size=8).map("\n".join))
def test_a_second_parser_sees_the_same_headings(text):
    tokens = MarkdownIt("commonmark").parse(text)
    assert [heading.level for heading in headings(text)] == [int(t.tag[1]) for t in tokens if t.type == "heading_open"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("---\na: b\n# c\n---\n# x", [[1, "x"]]),
        ('---\n"a b": c\n  - d\n\n# e\n...\n# x', [[1, "x"]]),
        ("---\n# c\n\n# d\na: |\n  # e\n---\n# x", [[1, "x"]]),
        ("+++\n[a]\n# c\nb = 1\n+++\n# x", [[1, "x"]]),
        ("---\n---\n# x", [[1, "x"]]),
        ("---\nBy: me\n\n# x\n\nA paragraph.\n\n---\n", [[1, "x"]]),  # a break, and a colon that happens to be there
        ("---\n\na: b\n---\n# x", [[2, "a: b"], [1, "x"]]),
        ("----\na: b\n---\n# x", [[2, "a: b"], [1, "x"]]),
        ("---\na: b\n# x", [[1, "x"]]),
        ("+++\n# x", [[1, "x"]]),
    ],
)
def test_front_matter_is_told_from_a_break(text, wanted):
    assert titles(text) == wanted
    assert outline(text).sections[0].start == 0


def test_blocks_stand_before_those_inside_them():
    text = "> - a\n>\n>   ```\n>   b\n>   ```\n> - c\n\n| d |\n|---|\n| e |\n\n    f\n\n<p>\n"
    blocks = parse(text)
    kinds = "quote list item paragraph code item paragraph table row code html".split()
    assert [block.kind for block in blocks] == kinds
    assert [block.after for block in blocks] == [7, 7, 5, 4, 5, 7, 7, 9, 9, 10, 11]
    assert [block.level for block in blocks if block.kind == "code"] == [1, 0]
    assert [text[block.line : block.start] for block in blocks[:4]] == ["", "> ", "> ", "> - "]


def test_what_is_too_deep_is_not_told_apart():
    text = "> " * 500 + "# a\n\n" + "- " * 500 + "# b"
    assert titles(text) == [[1, "a"], [1, "b"]] and len(parse(text)) == 202


def test_tags_that_end_each_others_blocks_do_not_change_titles():
    heading = "## The `</style>` tag, and `<script>`\n"
    assert titles(heading) == [[2, "The </style> tag, and <script>"]]
    assert titles("<pre>\n</Script>\n" + heading) == [[2, "The `</style>` tag, and `<script>`"]]


def test_a_path_has_only_the_beginning_of_a_long_title():
    text = "# " + "e\u0301" * 5_000 + "\n\n" + "word " * 5_000
    (title,) = outline(text).sections[1].path
    assert headings(text)[0].title == "e\u0301" * 5_000 and title == "e\u0301" * 149 + "…"
    chunks = HeadingChunker().chunk(text)
    assert len(chunks) > 20 and sum(len(c.metadata["path"][0]) for c in chunks) < len(text)
