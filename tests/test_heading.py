"""Topics, continuation headings, paragraphs, tables, lists, code: Markdown cut by topic."""

import json
import re
from itertools import pairwise

import pytest
from chunkers import words_and_ideographs
from hypothesis import given, settings
from hypothesis import strategies as st

from chunklab import HeadingChunker, load_corpus
from chunklab.chunkers import markdown
from chunklab.chunkers.markdown import headings, parse

SMALL = HeadingChunker(5, 20, 30)
TABLE = "| Code | Meaning |\n|---|---|\n" + "\n".join(f"| E{n} | fault number {n} |" for n in range(40))


def texts(chunks):
    return [c.text for c in chunks]


def paths(chunks):
    return [c.metadata["path"] for c in chunks]


def words(count, start=1):
    return " ".join(f"w{n}" for n in range(start, start + count))


def sentences(count, each=5):
    return " ".join(f"S{n} {words(each - 2)} end." for n in range(1, count + 1))


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
    text = f"# A\n\n{big}\n\n## a\n\n{big}\n\n## b\n\n{big}\n\n### c\n\n{big}\n\n### d\n\nx\n\n# B\n\n{big}\n"
    chunks = HeadingChunker().chunk(text)
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
    assert {c.metadata.get("added") for c in other[1:]} == {"## Title of two lines (continued)\n\n"}


def test_a_long_heading_leaves_room_for_text():
    text = f"# {words(300)}\n\n{sentences(100)}"
    chunks = HeadingChunker().chunk(text)
    assert all(c.metadata["words"] <= 250 for c in chunks)
    assert re.fullmatch(r"# w1 w2 .*… – cont'd\n\n", chunks[-1].metadata["added"])
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
    assert [c.metadata["words"] for c in chunks] == [102, 304, 104]
    assert [c.metadata.get("oversize") for c in chunks] == [None, "paragraph", None]


def test_a_longer_one_is_cut_at_sentences():
    text = "# A\n\n" + sentences(100)
    chunks = HeadingChunker().chunk(text)
    assert all(c.metadata["cut"] == "paragraph" and c.text.endswith("end.") for c in chunks)
    assert [c.metadata["words"] for c in chunks] == [247, 259]  # the end would have been alone


def test_a_sentence_that_is_too_long_is_cut_at_lines_or_words():
    assert texts(HeadingChunker(1, 4, 4).chunk("a b c d e f g")) == ["a b c d", "e f g"]
    chunks = HeadingChunker(1, 6, 6).chunk("a b c d\ne f g h\ni j k")
    assert texts(chunks) == ["a b c d", "e f g h", "i j k"]
    assert {c.metadata["cut"] for c in chunks} <= {"paragraph", "sentence"}


@pytest.mark.parametrize(
    "text",
    [
        "漢字" * 500,
        "漢字を書く。" * 200,
        "これは「例」です、そして" * 99,
        "使用API接口，" * 150,
        "# 标题\n\n" + "这是第一句话。" * 200,
    ],
)
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
        found.update({word: [title for _, title in above] for word in taken})
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
@given(
    st.lists(BLOCKS, min_size=1, max_size=14),
    st.sampled_from(["\n", "\r\n", "\r", "\u2028"]),
    st.sampled_from([(5, 20, 30), (80, 250, 400), (8, 12, 12)]),
)
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
        inside = re.findall(r"\b[wh]\d+\b", text[c.start : c.end])
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
        ">" * 20_000, "- " * 9_999 + "a", "> - " * 5_000 + "# a", "# a\n" * 5_000, "# " * 9_999, "a\n" * 9_999,
        "|" * 9_999 + "\n" + "-|" * 9_999, "| " + "a | " * 500 + "\n|" + "---|" * 500 + "\n" + "| b |\n" * 3_000,
        "|" + "a" * 9_000 + "|\n|---|\n" + "|b|\n" * 3_000, "```" + "a" * 9_000 + "\n" + "x\n" * 5_000,
        "".join("  " * n + "- a\n" for n in range(150)), "[a]: b\n" * 3_000, "---\n" + "# c   \n" * 3_000,
        "---\na: b\n" + "c: d\n" * 3_000, "<!--\n" + "# a\n" * 3_000, "</pre></script>" * 999,
        "<pre>\n</style>\n" * 999, "    " * 2_000 + "a", "a b\n" * 9_999 + "===\n" + "x " * 999,
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_hostile_markdown_does_not_multiply(text):
    chunks = HeadingChunker().chunk(text)
    assert sum(len(c.text) for c in chunks) < 2 * len(text) + 100
    covered = re.sub(r"\s", "", "".join(text[c.start : c.end] for c in chunks))
    assert covered == re.sub(r"\s", "", text)


def test_a_text_is_parsed_once(monkeypatch):
    parsed = []
    monkeypatch.setattr(markdown, "events_with_range", lambda text, **options: parsed.append(text) or ())
    HeadingChunker().chunk("# A\n\n" + sentences(200))
    assert len(parsed) == 1


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
