"""The rules that every chunker keeps (README, "Add a chunker"), over generated and hostile text.

The checks here are written apart from the package's own helpers: they ask the `regex` library for grapheme clusters, and
count everything themselves.
"""

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import groupby

import numpy as np
import pytest
import regex
from chunkers import CHUNKERS, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from chunklab import (
    Chunk,
    FixedSizeChunker,
    RecursiveChunker,
    SentenceChunker,
    SlidingWindowChunker,
    SplitterChain,
    load_corpus,
)

ALL = pytest.mark.parametrize("name", CHUNKERS)
BOM = "\ufeff"

HOSTILE = [
    "", " ", "\n", "\ufeff", "\ufeff\n \t", "a", " a ", "\u3000a\u3000",
    "alpha alpha", "Same line again. " * 12, "a" * 2000, "ab\n" * 200, "x" * 23, "aaaaaaaa. " + "b" * 18 + ". cc.",
    "".join(chr(97 + i % 26) for i in range(300)), "naïve café 🧪🧪🧪 Größe 東京都庁 " * 3, "鬱蒼とした森🧬🧬 naïve",
    "👩\u200d🔬" * 6 + "e\u0301" * 6 + "🇫🇷" * 4, "a" + "\u0301" * 300 + "b", " \u0301x \u0301y" * 40, "\u0600 \u0600a" * 30,
    "这是第一句话。这是第二句话。这是第三句话。", "他说：“好！”她笑了？」然后。" * 20, "한국어 문장입니다. " * 20, "각각" * 50,
    "Para one is here.\r\n\r\nPara two is here.\r\n\r\nPara three is here.", "a\rb\rc\r\r" * 30, "a\u2028b\u2029c\x85d" * 30,
    "\ufeff# One\na\n# Two\nb\n", "mid\ufeffdle \ufeff text \ufeff" * 20, "ok \ud835 tail \x00 end" * 10, "\udc00\ud800" * 40,
    "'aa  bb\t cc   dd'", "The marker <|endoftext|> is literal here. [SEP] [CLS]", "  Para one has indent.  \n\n\n\tTabbed.\n\n" + "w " * 400,
    "देवनागरी क्षत्रिय लिपि " * 20, "ภาษาไทยไม่มีวรรค" * 20, "مرحبا بالعالم، كيف الحال؟ " * 20, "\u200b".join("zero width" * 9),
    "word" * 100 + " " + "x" * 101 + "\n\n" + "short. " * 30, "ﬁ\u00ad\u2060\u200d" * 30, "👨‍👩‍👧‍👦" * 20, "\u0600🇫🇷🇫🇷。" * 20, "🏴\U000e0067\U000e0062\U000e007f" * 9,
]  # fmt: skip


def clusters(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in regex.finditer(r"\X", text)]


def assert_rules(case: Case, text: str) -> None:
    chunker = case.make()
    chunks = case.last_level(chunker.chunk(text, "d"))
    spans = [(c.start, c.end) for c in chunks]

    assert case.adds or not any("added" in c.metadata for c in chunks)
    for c in chunks:
        assert c.metadata.get("added", "") + text[c.start : c.end] == c.text, (
            "1: a chunk is a slice, and what it says it added"
        )
    assert [c.text for c in chunks] == chunker.split_text(text)
    assert case.above or all(c.parent_id is None for c in chunks)
    for parent, found in groupby(chunks, lambda c: c.parent_id):
        family = list(found)
        assert [(c.id, c.index) for c in family] == [(f"{parent or 'd'}_{i}", i) for i in range(len(family))]
        assert all(c.total == len(family) and c.document == "d" for c in family)

    starts = [start for start, _ in spans]
    assert starts == sorted(starts) and len(set(spans)) == len(spans), "2: starts never go back, no span twice"
    if not case.overlap:
        assert len(set(starts)) == len(starts), "2: without overlap, starts strictly increase"
    covered = bytearray(len(text))
    for start, end in spans:
        covered[start:end] = b"\1" * (end - start)
    lost = [
        c for c, done in zip(text, covered, strict=True) if not done and not c.isspace() and c not in BOM + case.drops
    ]
    assert not lost, f"2: lost {lost[:5]}"

    assert all(c.text.replace(BOM, " ").strip() for c in chunks), "4: never a blank chunk"
    assert all(text[c.start] != BOM for c in chunks if c.start == 0), "6: a BOM is not text"

    inside = {place: (a, b) for a, b in clusters(text) for place in range(a + 1, b)}
    for place in {place for span in spans for place in span} & inside.keys():
        a, b = inside[place]
        assert any(one.length(text[a:b]) > one.limit for one in (case, *case.above)), f"5: cut inside {text[a:b]!r}"

    for c in chunks:
        one_character = len(c.text) == 1
        whole = c.metadata.get("oversize") in case.whole
        assert case.length(c.text) <= case.limit or one_character or whole, (
            f"3: {case.length(c.text)} is over the limit"
        )
    assert chunks == case.last_level(case.make().chunk(text, "d")), "9: same input, same output"


@ALL
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_rules_hold_on_hostile_text(name, text):
    assert_rules(CHUNKERS[name], text)


# Generated text leans on what breaks chunkers: line ends, blanks, marks, joiners, flags, scripts without spaces.
PIECES = st.sampled_from(
    ["word", "a", " ", "  ", "\n", "\n\n", "\r\n", "\r", "\u2028", "\t", ". ", "!", "?", ",", "。", "！", "」", "é", "e\u0301", "\u0301", "\u200d", "👩‍🔬",
     "🇫🇷", "🧬", "東京", "한", "\ufeff", "\xa0", "\u3000", "\u200b", "\x00", "\ud800", "-", "longerwordthanthelimitsofsomechunkers", "\u0600", "क्ष"]
)  # fmt: skip
TEXT = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=200))


@ALL
@settings(max_examples=30, deadline=None, derandomize=True)
@given(text=TEXT)
def test_rules_hold_on_generated_text(name, text):
    assert_rules(CHUNKERS[name], text)


@ALL
def test_rules_hold_on_the_corpus(name):
    for text in load_corpus().values():
        assert_rules(CHUNKERS[name], text[:6000])


@ALL
@pytest.mark.parametrize("letter", ["a", " ", "\n", "\u0301", "。", "🇫"], ids=ascii)
def test_two_megabytes_of_one_letter_end(name, letter):
    case = CHUNKERS[name]
    # A tiny limit only makes the list of chunks long.
    text = letter * (100_000 if case.limit < 50 or case.embeds else 2_000_000)
    spans = [(c.start, c.end) for c in case.last_level(case.make().chunk(text))]
    if letter.isspace():
        assert spans == []
        return
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert all(right[0] <= left[1] and left[0] < right[0] for left, right in zip(spans, spans[1:], strict=False))
    sample = spans[:3] + spans[-3:]
    assert all(case.length(text[a:b]) <= case.limit or b - a == 1 for a, b in sample)


@ALL
@pytest.mark.parametrize("text", ["", " ", "\n\n", "\ufeff", "\t\r\n\u2028\u3000\xa0"], ids=ascii)
def test_blank_text_gives_nothing(name, text):
    chunker = CHUNKERS[name].make()
    assert chunker.chunk(text) == [] and chunker.split_text(text) == [] and chunker.create_documents([text]) == []


@ALL
@pytest.mark.parametrize("text", [None, 3, b"bytes", ["list"]], ids=repr)
def test_what_is_not_text_is_refused(name, text):
    with pytest.raises(ValueError, match="must be a str"):
        CHUNKERS[name].make().chunk(text)


@ALL
def test_langchain_verbs_agree_with_chunk(name):
    case, text = CHUNKERS[name], "One two three. Four five six! " * 12
    chunker = case.make()
    chunks = case.last_level(chunker.chunk(text, "d"))
    made = chunker.create_documents([text], [{"id": "d", "author": "x"}])
    assert [(d.page_content, d.metadata["start_index"], d.metadata["end_index"], d.id) for d in made] == [
        (c.text, c.start, c.end, c.id) for c in chunks
    ]
    assert all(d.metadata["author"] == "x" for d in made)
    split = chunker.split_documents([Document(page_content=text, metadata={"source": "s.txt"})])
    assert [d.page_content for d in split] == [c.text for c in chunks]
    assert {d.metadata["document"] for d in split} == {"s.txt"}
    both = chunker.create_documents([text, text])
    assert {d.metadata["document"] for d in both} == {"0", "1"}
    assert len({d.metadata["chunk_id"] for d in both}) == len(both)
    assert {d.id for d in both + split} == {None}  # these names may come again: a vector store would overwrite
    assert list(chunker.transform_documents([Document(page_content=text)])) == chunker.create_documents([text])


def test_ids_and_chunks_do_not_depend_on_the_process():  # ret-02
    code = (
        "from chunklab import FixedSizeChunker, RecursiveChunker\n"
        "for c in (FixedSizeChunker(30, 7), RecursiveChunker(30, 7)): print(c.chunk('Some words to cut. ' * 9, 'a.md'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert len(outputs) == 1 and "a.md_3" in outputs.pop()


@pytest.mark.parametrize("number", [5, np.int64(5), np.int32(5), np.uint8(5)], ids=repr)
def test_a_whole_number_of_numpy_is_a_size(number):
    for chunker in (FixedSizeChunker(number, number - 3), RecursiveChunker(number, number - 3)):
        chunks = chunker.chunk("alpha beta gamma")
        assert chunks and {type(place) for c in chunks for place in (c.start, c.end)} == {int}
        assert json.loads(json.dumps(asdict(chunks[0])))["start"] == 0


@pytest.mark.parametrize("length", [None, 3, str.upper, lambda text: None, print])
def test_a_function_that_measures_nothing_is_refused(length):
    for make in (FixedSizeChunker, RecursiveChunker, SlidingWindowChunker):
        with pytest.raises(ValueError, match="length_function=.*must be a function from a text to its length"):
            make(length_function=length)


@pytest.mark.parametrize("doc_id", [None, 3, b"a"], ids=repr)
def test_an_id_that_is_no_text_is_refused(doc_id):
    with pytest.raises(ValueError, match="doc_id=.*must be a str"):
        FixedSizeChunker(5).chunk("some text", doc_id)


def ids_of(*metadatas):
    made = FixedSizeChunker(5).create_documents(["some text"] * len(metadatas), metadatas)
    assert len({d.metadata["chunk_id"] for d in made}) == len(made)
    return list(dict.fromkeys(d.metadata["document"] for d in made))


def test_texts_with_one_name_are_told_apart():
    # The pages of a PDF all have the file as their source; with one id, a vector store would keep one of them.
    pages = [{"source": "a.pdf", "page": page} for page in range(3)]
    assert ids_of(*pages) == ["a.pdf", "a.pdf#1", "a.pdf#2"]
    assert ids_of({"id": "a"}, {"id": "a#2"}, {"id": "a"}) == ["a", "a#2", "a#2#2"]
    assert ids_of({"id": 1}, {}, {"id": 0}, {"id": ""}, {"id": None, "source": "s"}) == ["1", "1#1", "0", "3", "s"]


PROSE = "One two three. Four five six! " * 12


def test_what_is_split_in_one_call_after_another_does_not_overwrite():
    # LangChain's ParentDocumentRetriever splits each parent in a call of its own, and parents share their source.
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    parents = RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=0).create_documents(
        [PROSE], [{"source": "s"}]
    )
    parts = [FixedSizeChunker(5).split_documents([parent]) for parent in parents]
    for part in parts:
        store.add_documents(part)
    assert len(store.store) == sum(map(len, parts)) > len(parents) > 1


@pytest.mark.parametrize("name", ["id", "source"])
def test_a_chunk_that_is_split_further_is_split_as_in_a_chain(name):
    large, small = RecursiveChunker(40), SentenceChunker(15)
    chained = SplitterChain([large, small]).create_documents([PROSE], [{name: "d"}])
    pages = large.create_documents([PROSE], [{name: "d"}])
    assert chained == small.split_documents(pages) == [d for page in pages for d in small.split_documents([page])]
    assert all(PROSE[d.metadata["start_index"] : d.metadata["end_index"]] == d.page_content for d in chained)
    deep = SplitterChain([large, small, FixedSizeChunker(4)]).create_documents([PROSE], [{name: "d"}])
    assert (
        deep
        == FixedSizeChunker(4).split_documents(chained)
        == SplitterChain([small, FixedSizeChunker(4)]).split_documents(pages)
    )


@pytest.mark.parametrize(
    "odd", [{"end_index": 3}, {"start_index": "0"}, {"document": None}, {"spans": [(0, 1)]}], ids=repr
)
def test_a_chunk_whose_place_is_not_known_is_a_document_of_its_own(odd):
    (page,) = FixedSizeChunker(500).create_documents([PROSE], [{"source": "d"}])
    page.metadata.update(odd)
    made = SentenceChunker(15).split_documents([page])
    assert {d.metadata["document"] for d in made} == {"d_0"} and made[1].metadata["chunk_id"] == "d_0_1"
    assert all(PROSE[d.metadata["start_index"] : d.metadata["end_index"]] == d.page_content for d in made)


def test_chunks_do_not_share_the_metadata_that_they_were_given():
    given = {"tags": ["a"]}
    made = FixedSizeChunker(5).create_documents(["some text"], [given])
    made[0].metadata["tags"].append("b")
    assert given == {"tags": ["a"]} and made[1].metadata["tags"] == ["a"]


@pytest.mark.parametrize(
    ("texts", "metadatas", "says"),
    [
        ("one text", None, "texts='one text': must be a list"),
        (None, None, "texts=None: must be a list"),
        ([None], None, "must be a str"),
        (["a"], [None], r"metadatas\[0\]=None: must be a dictionary"),
        (["a"], ["name"], r"metadatas\[0\]='name': must be a dictionary"),
        (["a"], {"id": "a"}, r"metadatas\[0\]='id': must be a dictionary"),
        (["a", "b"], [{}], "metadatas has 1 entries for 2 texts"),
    ],
)
def test_what_is_no_list_of_texts_and_dictionaries_is_named(texts, metadatas, says):
    with pytest.raises(ValueError, match=says):
        FixedSizeChunker(5).create_documents(texts, metadatas)


def test_documents_may_come_one_by_one_and_without_waiting():
    chunker, texts = RecursiveChunker(5), ["one two", "three"]
    made = chunker.create_documents(texts, [{"n": 1}, {"n": 2}])
    assert chunker.create_documents(iter(texts), ({"n": n} for n in (1, 2))) == made
    documents = [Document(page_content=text) for text in texts]
    assert asyncio.run(chunker.atransform_documents(documents)) == chunker.create_documents(texts)


def test_a_chunk_is_kept_by_copy_pickle_and_json():
    chunk = RecursiveChunker(5).chunk("one two")[1]
    from_json = Chunk(**json.loads(json.dumps(asdict(chunk))))
    for kept in (copy.deepcopy(chunk), pickle.loads(pickle.dumps(chunk)), from_json):
        assert kept == chunk and hash(kept) == hash(chunk) and kept is not chunk
    assert replace(chunk, metadata={"note": 1}) == chunk and len({chunk, replace(chunk, start=0)}) == 2
