"""Paragraphs: RAG Me Up's rule with the joiner counted, all line ends, what is too long, joins, bad arguments."""

import re
from itertools import pairwise

import pytest
from chunkers import Case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_rules import HOSTILE, TEXT, assert_rules

from chunklab import ParagraphChunker, tokens
from chunklab.chunk import BOM
from chunklab.chunkers import paragraph
from chunklab.chunkers.paragraph import BLANK_LINE, paragraph_spans

SAME = BLANK_LINE + "(?#not the default)"  # the default separator, by the way that any separator goes
LINE_ENDS = ["\n", "\r\n", "\r", "\u2028"]


def words(text: str) -> int:
    return len(text.split())


def rag_me_up(text: str, size: int, separator: str = r"\n\s*\n") -> list[str]:
    """RAG Me Up's rule as it is: what is between paragraphs is not counted."""
    groups, length = [], 0
    for part in filter(None, (part.strip() for part in re.split(separator, text))):
        if not groups or length + len(part) > size:
            groups.append([])
            length = 0
        groups[-1].append(part)
        length += len(part)
    return ["\n\n".join(group) for group in groups]


@pytest.mark.parametrize("line_end", LINE_ENDS, ids=ascii)
@pytest.mark.parametrize("gap", [2, 3, 5])
def test_every_kind_of_line_end_makes_a_blank_line(line_end, gap):  # uni-04
    text = (line_end * gap).join(["Para one is here.", "Para two is here.", "Para three is here."])
    chunks = ParagraphChunker(20).chunk(text)
    assert [c.text for c in chunks] == ["Para one is here.", "Para two is here.", "Para three is here."]
    assert all(text[c.start : c.end] == c.text for c in chunks)
    lines = text.replace(line_end * gap, line_end)
    assert len(ParagraphChunker(20).chunk(lines)) == 1, "a line end is no blank line"


def test_line_ends_may_be_mixed_and_blank_lines_may_hold_blanks():
    text = "a\r\n \t\r\nb\n\u3000\nc\u2028\nd\u2029e\r\rf\r\ng\n\x0b\nh"
    assert [text[a:b] for a, b in paragraph_spans(text)] == ["a", "b", "c", "d", "e", "f\r\ng", "h"]
    assert paragraph_spans(text) == paragraph_spans(text, SAME)


@pytest.mark.parametrize("line_end", LINE_ENDS, ids=ascii)
def test_a_separator_of_ones_own_sees_every_line_end_as_a_line_feed(line_end):
    text = line_end.join(["one", "---", "two", "three", "---", "four"])
    spans = paragraph_spans(text, r"\n-{3,}\n")
    assert [text[a:b] for a, b in spans] == ["one", f"two{line_end}three", "four"]


def test_groups_in_a_separator_and_matches_of_no_length_are_nothing_special():  # lost-01
    assert ParagraphChunker(3, r"(\s)\s*").split_text("aa  bb\t cc   dd") == ["aa", "bb", "cc", "dd"]
    assert ParagraphChunker(5, r"(?=#)").split_text("#one#two") == ["#one", "#two"]


def test_chunks_are_slices_with_what_stands_between_paragraphs():
    text = "One.\n\n\n\nTwo.\n \nThree is here.\n\n"
    chunks = ParagraphChunker(13).chunk(text)
    assert [(c.text, c.start, c.end) for c in chunks] == [("One.\n\n\n\nTwo.", 0, 12), ("Three is here.", 15, 29)]
    assert ParagraphChunker(11).split_text(text) == ["One.", "Two.", "Three is here."], "the blank lines are counted"


def test_blanks_around_paragraphs_are_accounted_for():  # off-13
    text = "  Para one has indent.  \n\n\tPara two tabbed.\n\n" + "w " * 400 + "\n\nLast."
    chunks = ParagraphChunker(300).chunk(text)
    assert all(text[c.start : c.end] == c.text == c.text.strip() for c in chunks)
    assert [c.metadata.get("oversize") for c in chunks] == [None, "paragraph", None]
    assert chunks[0].text == "Para one has indent.  \n\n\tPara two tabbed." and chunks[-1].text == "Last."


@pytest.mark.parametrize("join", [None, "\n\n", ""])
def test_only_a_paragraph_that_is_itself_too_long_goes_over_and_is_named(join):  # size-01
    text = "short\n\n" + "x" * 50 + "\n\nend\n\nfin"
    chunks = ParagraphChunker(20, join=join).chunk(text)
    assert [c.metadata.get("oversize") for c in chunks] == [None, "paragraph", None]
    assert chunks[1].text == "x" * 50, "it stands alone, and the next does not join it"


def test_the_joiner_is_counted():
    text = "\n\n".join(["abc"] * 4)
    assert rag_me_up(text, 10) == ["abc\n\nabc\n\nabc", "abc"], "RAG Me Up's is over its size"
    for join in (None, "\n\n"):
        assert ParagraphChunker(10, join=join).split_text(text) == ["abc\n\nabc", "abc\n\nabc"]


@settings(max_examples=300)
@given(
    text=TEXT,
    size=st.integers(1, 60),
    join=st.sampled_from([None, "\n\n", "-", ""]),
    length=st.sampled_from([len, words]),
)
def test_as_many_whole_paragraphs_as_fit(text, size, join, length):
    paragraphs = paragraph_spans(text)
    chunks = ParagraphChunker(size, join=join, length_function=length).chunk(text)
    starts, ends = [a for a, _ in paragraphs], [b for _, b in paragraphs]
    places = [(starts.index(c.start), ends.index(c.end)) for c in chunks]
    assert [k for first, last in places for k in range(first, last + 1)] == list(range(len(paragraphs))), (
        "each once, whole"
    )
    for c, (first, last) in zip(chunks, places, strict=True):
        pieces = [text[a:b] for a, b in paragraphs[first : last + 1]]
        assert c.text == (text[c.start : c.end] if join is None else join.join(pieces))
        assert c.metadata.get("spans") == (paragraphs[first : last + 1] if join is not None and first < last else None)
        over = length(c.text) > size
        assert (c.metadata.get("oversize") == "paragraph") == over and (not over or first == last)
    for (first, last), _ in pairwise(places):
        pieces = [text[a:b] for a, b in paragraphs[first : last + 2]]
        assert length(text[starts[first] : ends[last + 1]] if join is None else join.join(pieces)) > size, (
            "one more would have fitted"
        )


@settings(max_examples=300)
@given(text=TEXT, size=st.integers(1, 60), join=st.sampled_from([None, "\n\n", "-"]))
def test_the_quick_ways_give_the_same(text, size, join):
    quick, slow = ParagraphChunker(size, join=join), ParagraphChunker(size, SAME, join)
    assert quick.split_text(text) == slow.split_text(text) == [c.text for c in quick.chunk(text)]
    assert quick.chunk(text) == slow.chunk(text) and quick.spans(text) == slow.spans(text)


ODD = st.lists(
    st.sampled_from(
        [
            "a",
            "word ",
            "x" * 25,
            "“é。",
            "\n",
            "\n\n",
            "\n \n",
            " ",
            "\t",
            "\r",
            "\r\n\r\n",
            "\u2028",
            "\u2029",
            BOM,
            "\u0301",
            "\u0600",
            "\xa0",
        ]
    ),
    max_size=50,
).map("".join)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=ODD, size=st.integers(1, 30), join=st.sampled_from([None, "\n\n", "-"]), block=st.sampled_from([1, 5, 40]))
def test_block_by_block_is_the_same(monkeypatch, text, size, join, block):
    monkeypatch.setattr(paragraph, "_BLOCK", block)
    quick, slow = ParagraphChunker(size, join=join), ParagraphChunker(size, SAME, join)
    assert quick.split_text(text) == slow.split_text(text) and quick.spans(text) == slow.spans(text)


@pytest.mark.parametrize("size", [50, 512, 2000])
def test_joined_chunks_are_rag_me_ups_where_its_joiners_fit(size, corpus):
    for text in corpus.values():
        theirs = rag_me_up(text, size)
        ours = ParagraphChunker(size, join="\n\n").split_text(text)
        assert "\n\n".join(ours) == "\n\n".join(theirs), "the same paragraphs, with the same between them"
        fits = next((k for k, chunk in enumerate(theirs) if len(chunk) > size and "\n\n" in chunk), len(theirs))
        assert ours[:fits] == theirs[:fits]


def test_quick_and_slow_agree_on_the_corpus(corpus):
    for text in corpus.values():
        for size in (60, 512, 5000, 10**9):
            for join in (None, "\n\n"):
                assert ParagraphChunker(size, join=join).chunk(text) == ParagraphChunker(size, SAME, join).chunk(text)


def test_tokens_measure(corpus):
    count, text = tokens("minilm"), corpus["staff_handbook.md"]
    chunks = ParagraphChunker(100, length_function=count).chunk(text)
    assert all(count(c.text) <= 100 or c.metadata["oversize"] == "paragraph" for c in chunks) and len(chunks) > 20


@pytest.mark.parametrize("limit", [4, 100])
@settings(max_examples=100)
@given(text=st.one_of(TEXT, st.sampled_from(HOSTILE)))
def test_the_rules_hold_with_the_limit(limit, text):
    assert_rules(Case(lambda: ParagraphChunker(limit), limit, whole=("paragraph",)), text)


def test_a_character_is_not_divided_by_a_separator():
    text = "a\n\n \u0301b" + "e\u0301x"
    assert ParagraphChunker(3, "x|\u0301").split_text(text) == ParagraphChunker(3, "x").split_text(text)
    assert ParagraphChunker(3).split_text(text)[1].startswith(" \u0301b"), "a blank with a mark is a character"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"max_chunk_size": 0}, "max_chunk_size=0"), ({"max_chunk_size": "9"}, "max_chunk_size='9'"), ({"max_chunk_size": True}, "max_chunk_size=True"),
     ({"paragraph_separator": "("}, r"paragraph_separator='\('"), ({"paragraph_separator": "[a"}, "paragraph_separator="), ({"paragraph_separator": "a{99999999999}"}, "paragraph_separator="),
     ({"paragraph_separator": ""}, "paragraph_separator=''.*empty"), ({"paragraph_separator": r"\n*"}, "empty text"),
     ({"paragraph_separator": None}, "paragraph_separator=None"), ({"paragraph_separator": 5}, "paragraph_separator=5"),
     ({"paragraph_separator": b"x"}, "paragraph_separator=b'x'"), ({"join": 5}, "join=5"), ({"length_function": 5}, "length_function=5")],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(arguments, says):
    with pytest.raises(ValueError, match=says):
        ParagraphChunker(**arguments)
