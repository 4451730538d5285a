"""RecursiveChunker is LangChain's splitter wherever LangChain keeps the rules; where not, each exception has a name here."""

import logging
import re
from itertools import groupby

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from chunklab import RecursiveChunker, tokens
from chunklab.chunkers.recursive import DEFAULT_SEPARATORS, RAG_ME_UP_SEPARATORS

LANGCHAIN_DEFAULT = ["\n\n", "\n", " ", ""]
BENCHMARK = ["\n\n", "\n", ".", "?", "!", " ", ""]
LISTS = {"default": LANGCHAIN_DEFAULT, "RAG Me Up": list(RAG_ME_UP_SEPARATORS), "benchmark": BENCHMARK}
SENTENCE_END = "。．！？｡"


def langchain(text, size, overlap=0, separators=None, keep="start", **options):
    logging.getLogger("langchain_text_splitters.base").setLevel(logging.ERROR)
    splitter = RecursiveCharacterTextSplitter(
        separators=separators, chunk_size=size, chunk_overlap=overlap, keep_separator=keep, **options
    )
    return splitter.split_text(text)


def ours(text, size, overlap=0, separators=None, keep="start", **options):
    chosen = DEFAULT_SEPARATORS if separators is None or separators == LANGCHAIN_DEFAULT else separators
    return RecursiveChunker(size, overlap, chosen, keep, **options).split_text(text)


def exceptions(text: str, size: int, chunks: list[str], separators: list[str]) -> set[str]:
    """What LangChain does against the rules in this text, by name."""
    found = set()
    boundaries = {m.start() for m in regex.finditer(r"\X", text)} | {len(text)}
    place = 0
    for c in chunks:
        if not c.strip():
            found.add("a blank chunk")
            continue
        if len(c) > size:
            found.add("a chunk over its limit")
        start = text.find(c, max(0, place))
        if start >= 0:
            place = start + 1
            if start not in boundaries or start + len(c) not in boundaries:
                found.add("a grapheme cut")
    if any(mark in text for mark in SENTENCE_END):
        found.add("。 is no sentence end")
    if any(mark in text for mark in "\r\u2028\u2029"):
        found.add("line ends unknown")
    if "\ufeff" in text:
        found.add("a BOM is text")
    return found


def once(chunks: list[str]) -> list[str]:
    """Without repeats: among blanks and a large overlap, LangChain gives one span twice running, which rule 2 forbids."""
    return [chunk for chunk, _ in groupby(chunks)]


SIZES = [(1000, 0), (1000, 200), (200, 0), (200, 50), (37, 11), (5, 2)]


@pytest.mark.parametrize("keep", ["start", "end"])
@pytest.mark.parametrize("separators", LISTS)
@pytest.mark.parametrize(("size", "overlap"), SIZES)
def test_equal_to_langchain_on_the_corpus(size, overlap, separators, keep, corpus):
    compared = 0
    for name, text in corpus.items():
        theirs = langchain(text, size, overlap, LISTS[separators], keep)
        mine = ours(text, size, overlap, LISTS[separators], keep)
        if mine == theirs or (size < 30 and once(mine) == once(theirs)):
            compared += 1
        else:
            assert exceptions(text, size, theirs, LISTS[separators]), name
            assert name == "leaflet.txt", f"{name} is plain enough to be equal"
    assert compared >= len(corpus) - 1


@pytest.mark.parametrize("keep", ["start", "end"])
@pytest.mark.parametrize("separators", LISTS)
@pytest.mark.parametrize(("size", "overlap"), SIZES)
def test_equal_to_langchain_on_public_texts(size, overlap, separators, keep, public_texts):
    for name, text in public_texts.items():
        text = text if size > 30 else text[:50_000]
        mine = ours(text, size, overlap, LISTS[separators], keep)
        theirs = langchain(text, size, overlap, LISTS[separators], keep)
        assert mine == theirs if size > 30 else once(mine) == once(theirs), name


LATIN = st.text(st.sampled_from("ab .,\n!?x—é\u200b"), max_size=120)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(LATIN, st.integers(2, 30), st.integers(0, 29), st.sampled_from(list(LISTS)), st.sampled_from(["start", "end"]))
def test_equal_to_langchain_on_generated_text(text, size, overlap, separators, keep):
    overlap = min(overlap, size - 1)
    theirs = langchain(text, size, overlap, LISTS[separators], keep)
    assert once(ours(text, size, overlap, LISTS[separators], keep)) == once(theirs)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(LATIN, st.integers(1, 8), st.integers(0, 7))
def test_equal_to_langchain_counting_words(text, size, overlap):
    overlap = min(overlap, size - 1)

    def words(piece):
        return len(piece.split())

    theirs = langchain(text, size, overlap, length_function=words)
    mine = ours(text, size, overlap, length_function=words)
    fits = all(words(c) <= size for c in theirs)
    if mine != theirs and fits and all(c.strip() for c in theirs):
        assert len(mine) < len(theirs), "only a repeated span may be missing"


@pytest.mark.parametrize("size", [10, 40])
def test_equal_to_langchain_counting_tokens(size, novella):
    text, count = novella[:8000], tokens("cl100k")
    assert ours(text, size, 0, BENCHMARK, length_function=count) == langchain(
        text, size, 0, BENCHMARK, length_function=count
    )


@pytest.mark.parametrize("separators", LISTS)
def test_dropping_separators_keeps_slices(separators, novella):
    text = novella[:20_000]
    mine = RecursiveChunker(200, 0, LISTS[separators], keep_separator=False).chunk(text)
    theirs = langchain(text, 200, 0, LISTS[separators], False)
    assert all(c.text in text for c in mine)
    same = sum(c.text in theirs for c in mine)
    assert same > len(mine) // 2
    squeezed = re.sub(r"\n+", "\n", text)
    if separators == "default":
        assert RecursiveChunker(200, keep_separator=False).split_text(squeezed) == langchain(
            squeezed, 200, 0, None, False
        )


def test_where_langchain_breaks_the_rules_we_do_not():
    flag = "🇫🇷" * 4
    assert langchain(flag, 3)[0] == "🇫🇷🇫" and ours(flag, 3)[0] == "🇫🇷"
    chinese = "这是第一句话。这是第二句话。这是第三句话。"  # uni-03
    assert langchain(chinese, 10)[-1] == "。"
    assert ours(chinese, 10) == ["这是第一句话。", "这是第二句话。", "这是第三句话。"]
    assert langchain("他说好。她笑了。", 5, 0, list(RAG_ME_UP_SEPARATORS))[1][0] == "。"
    assert ours("他说好。她笑了。", 5, 0, list(RAG_ME_UP_SEPARATORS)) == ["他说好。", "她笑了。"]
    assert "" in [c.strip() for c in langchain("a b", 1)] and ours("a b", 1) == ["a", "b"]
    long = "short\n\n" + "x" * 50 + "\n\nend"  # size-01
    assert max(map(len, langchain(long, 20, 0, ["\n\n"]))) > 20
    assert ours(long, 20, 0, ["\n\n"]) == ["short", "x" * 18, "x" * 20, "x" * 12, "end"]
    windows = "Para one is here.\r\n\r\nPara two is here.\r\n\r\nPara three is here."
    assert ours(windows, 30) == ["Para one is here.", "Para two is here.", "Para three is here."]
    for end in ("\r", "\u2028", "\n", "\r\n"):
        assert ours(f"Para one.{end}{end}Para two.{end}{end}Para three.", 16) == [
            "Para one.",
            "Para two.",
            "Para three.",
        ]


def test_a_piece_that_fills_a_chunk_by_itself_is_not_stripped():
    assert ours("a\nbcd", 4, 0, ["\n"]) == langchain("a\nbcd", 4, 0, ["\n"]) == ["a", "\nbcd"]


@pytest.mark.parametrize("separators", [[], ["\n\n"]])
def test_without_a_last_resort_only_what_is_too_long_is_cut_further(separators):
    def words(piece):
        return len(piece.split())

    assert ours("some words here", 1, 0, separators, length_function=words) == ["some", "words", "here"]
    assert ours("some words", 6, 2, separators) == ["some", "words"]
    assert ours("words", 3, 1, separators) == ["wor", "rds"]
    assert ours("e\u0301\u0301\u0301", 2, 0, separators) == ["e\u0301", "\u0301\u0301"]


@pytest.mark.parametrize("closer", ["」", "”", "』", "）", "】", "。」"])
def test_closing_marks_stay_with_their_sentence(closer):  # uni-03
    assert ours(f"他说「好的。{closer}她笑了起来。", 8) == [f"他说「好的。{closer}", "她笑了起来。"]


def test_offsets_are_true_where_text_repeats():  # off-05, off-11, off-01
    repeated = RecursiveChunker(40).chunk("Same line again. " * 12)
    starts = [c.start for c in repeated]
    assert starts == sorted(set(starts)) and len(starts) == 6
    assert [(c.start, c.end) for c in RecursiveChunker(1024, 100).chunk("a" * 2000)] == [
        (0, 1024),
        (924, 1948),
        (1848, 2000),
    ]
    twice = RecursiveChunker(5, 4, [" ", ""]).chunk("alpha alpha")
    assert twice[0].start == 0 and all(c.start >= 6 for c in twice if c.start > 0 and c.text[0] == "a")


def test_overlap_is_made_of_whole_pieces():  # ovl-01, ovl-02, dup-02, off-09
    paragraphs = "First paragraph is here.\n\nSecond paragraph is here.\n\nThird paragraph is here."
    assert len(ours(paragraphs, 30, 10)) == 3
    assert ours("mnopqrstuvwx", 6, 2, ["\n\n"]) == ["mnopqr", "qrstuv", "uvwx"]
    nested = "Intro\nA short lead line for the section that follows below.\n\nBody\nA second block with rather more text than the limit allows."
    assert all(c in nested for c in ours(nested, 45, 10))
    lines = "Line one here. Line two here. Line three here. Line four here. Line five here."
    chunks = RecursiveChunker(4, 1, length_function=lambda t: len(t.split())).chunk(lines)
    assert all(lines[c.start : c.end] == c.text and len(c.text.split()) <= 4 for c in chunks)
    shared = [left.end - right.start for left, right in zip(chunks, chunks[1:], strict=False)]
    assert all(
        lines[right.start : left.end].split()
        for left, right, n in zip(chunks, chunks[1:], shared, strict=False)
        if n > 0
    )


def test_regex_separators_leave_no_pattern_behind():  # lost-01
    text = "aa  bb\t cc   dd"
    for keep in ("start", "end", False):
        chunks = RecursiveChunker(8, separators=[r"\s+", ""], keep_separator=keep, is_separator_regex=True).split_text(
            text
        )
        assert all("\\s" not in c and c in text for c in chunks) and chunks[0].startswith("aa  bb")


def test_counted_separators_are_not_counted_twice():  # size-11
    text, count = "alpha beta gamma delta " * 40, tokens("cl100k")
    for keep in ("start", False):
        chunks = RecursiveChunker(50, separators=[" ", ""], keep_separator=keep, length_function=count).chunk(text)
        words = [m.span() for m in re.finditer(r"\S+", text)]
        for c in chunks[:-1]:
            following = next(end for start, end in words if start >= c.end)
            assert count(c.text) <= 50 < count(text[c.start : following]) + 1


def test_tokens_and_characters_are_not_mixed():  # off-02
    text = " ".join(f"word{i}" for i in range(60))
    for c in RecursiveChunker(10, 5, length_function=tokens("cl100k")).chunk(text):
        assert text[c.start : c.end] == c.text and tokens("cl100k")(c.text) <= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"separators": "\n\n"}, "separators="), ({"separators": [1]}, "separators="), ({"keep_separator": "middle"}, "keep_separator='middle'"),
     ({"separators": ["("], "is_separator_regex": True}, "not a regular expression"), ({"chunk_size": 0}, "chunk_size=0"),
     ({"chunk_size": 5, "chunk_overlap": 5}, "chunk_overlap=5.*chunk_size=5"), ({"separators": None}, "separators=None")],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RecursiveChunker(**arguments)
