"""Chains: families and ids, places in the document at each level, and a chain in a chain."""

import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from copy import copy
from dataclasses import asdict, replace
from itertools import pairwise

import pytest
from chunkers import CHAINS, CHUNKERS, chain_of
from fake_llm import MODES, FakeLLM
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_text_splitters import RecursiveCharacterTextSplitter
from test_retrieval import Counting as Vectors
from test_rules import HOSTILE, TEXT, assert_rules

from chunklab import (
    AgenticChunker,
    ChunkIndex,
    CodeChunker,
    FixedSizeChunker,
    HeadingChunker,
    Hybrid,
    LLMChunker,
    LLMError,
    ParagraphChunker,
    Parent,
    PropositionChunker,
    RecursiveChunker,
    SemanticChunker,
    SentenceChunker,
    SlidingWindowChunker,
    SplitterChain,
    TopN,
    WholeDocument,
    Window,
    add_context,
    embeddings,
    small_to_big,
    tokens,
)
from chunklab.chunk import Chunker
from chunklab.passages import is_slice
from chunklab.strategies import last_level

PETS = "# Cats\n\nThey purr. They sleep.\n\nThey dream.\n\n# Dogs\n\nThey bark."
SECTION, PARAGRAPH, SENTENCE = HeadingChunker(1, 9, 9), ParagraphChunker(24), SentenceChunker(12)
THREE = [SECTION, PARAGRAPH, SENTENCE]
# Chunkers of every kind that needs no model: slices, overlap, rewritten text, dropped separators.
SOME = [
    *THREE, ParagraphChunker(30, join=" / "), ParagraphChunker(9, r"\n"), HeadingChunker(1, 2, 3), SlidingWindowChunker(20, 7), FixedSizeChunker(7, 3),
    RecursiveChunker(15, 4), RecursiveChunker(9, keep_separator=False), CodeChunker("python", 20), FixedSizeChunker(1), FixedSizeChunker(10_000),
]  # fmt: skip
SPLITTERS = st.lists(st.sampled_from(SOME), min_size=1, max_size=3)
CHAIN_NAMES = [name for name in CHUNKERS if name.startswith("chain")]


def everything(chunks):
    """The chunks with their metadata, which `==` leaves out."""
    return [asdict(chunk) for chunk in chunks]


def depth(chunk):
    return chunk.id.count("_", len(chunk.document))


def level(chunks, number):
    return [c for c in chunks if depth(c) == number]


# Families.


def test_ids_parents_and_order():
    chunks = SplitterChain(THREE, include_all_chunks=True).chunk(PETS, "pets")
    assert [(c.id, c.parent_id, c.index, c.total, c.text) for c in chunks] == [
        ("pets_0", None, 0, 2, "# Cats\n\nThey purr. They sleep.\n\nThey dream."),
        ("pets_0_0", "pets_0", 0, 3, "# Cats"),
        ("pets_0_0_0", "pets_0_0", 0, 1, "# Cats"),
        ("pets_0_1", "pets_0", 1, 3, "They purr. They sleep."),
        ("pets_0_1_0", "pets_0_1", 0, 2, "They purr."),
        ("pets_0_1_1", "pets_0_1", 1, 2, "They sleep."),
        ("pets_0_2", "pets_0", 2, 3, "They dream."),
        ("pets_0_2_0", "pets_0_2", 0, 1, "They dream."),
        ("pets_1", None, 1, 2, "# Dogs\n\nThey bark."),
        ("pets_1_0", "pets_1", 0, 1, "# Dogs\n\nThey bark."),
        ("pets_1_0_0", "pets_1_0", 0, 2, "# Dogs"),
        ("pets_1_0_1", "pets_1_0", 1, 2, "They bark."),
    ]
    assert all(c.document == "pets" and PETS[c.start : c.end] == c.text for c in chunks)


def test_the_middle_is_left_out_unless_it_is_asked_for():
    chunks = SplitterChain(THREE).chunk(PETS)
    assert chunks == [c for c in SplitterChain(THREE, include_all_chunks=True).chunk(PETS) if depth(c) != 2]
    assert [c.id for c in chunks][:4] == ["doc_0", "doc_0_0_0", "doc_0_1_0", "doc_0_1_1"]
    for kept in (False, True):
        assert {depth(c) for c in SplitterChain([SECTION, SENTENCE], kept).chunk(PETS)} == {1, 2}


@pytest.mark.parametrize("chunker", SOME, ids=lambda chunker: type(chunker).__name__)
def test_one_splitter_gives_its_chunks_alone(chunker):
    for include_all_chunks in (False, True):
        chain = SplitterChain([chunker], include_all_chunks)
        assert everything(chain.chunk(PETS, "p")) == everything(chunker.chunk(PETS, "p"))
        assert chain.split_text(PETS) == chunker.split_text(PETS) and chain.spans(PETS) == chunker.spans(PETS)
        assert chain.create_documents([PETS]) == chunker.create_documents([PETS])


def rag4p(text, splitters, include_all_chunks, parent=None):
    """RAG4p's chain in its own terms, where it is right: id, siblings and text, found anew by recursion."""
    found = []
    texts = splitters[0].split_text(text)
    for index, part in enumerate(texts):
        chunk_id = f"{parent or 'doc'}_{index}"
        if parent is None or len(splitters) == 1 or include_all_chunks:
            found.append((chunk_id, len(texts), part))
        if len(splitters) > 1:
            found += rag4p(part, splitters[1:], include_all_chunks, chunk_id)
    return found


@settings(max_examples=60)
@given(text=TEXT, include_all_chunks=st.booleans(), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_equal_to_rag4ps_where_that_is_right(text, include_all_chunks, sizes):
    splitters = [RecursiveChunker(size) for size in sizes]
    chunks = SplitterChain(splitters, include_all_chunks).chunk(text)
    assert [(c.id, c.total, c.text) for c in chunks] == rag4p(text, splitters, include_all_chunks)


def assert_families(chunks, text, lossless=True):
    """What holds in every chain whose levels are all given."""
    by_id = {c.id: c for c in chunks}
    assert len(by_id) == len(chunks)
    families = {}
    for c in chunks:
        families.setdefault(c.parent_id, []).append(c)
    for parent_id, family in families.items():
        assert [c.index for c in family] == list(range(len(family))) and {c.total for c in family} == {len(family)}
        assert [c.id for c in family] == [f"{parent_id or 'doc'}_{c.index}" for c in family]
        if parent := by_id.get(parent_id):
            assert all(parent.start <= c.start < c.end <= parent.end for c in family)
            covered = {place for c in family for place in range(c.start, c.end)}
            lost = [text[place] for place in range(parent.start, parent.end) if place not in covered]
            assert not lossless or not "".join(lost).replace("\ufeff", "").strip()
    assert families.keys() - {None} <= by_id.keys()
    order = []
    ahead = families.get(None, [])[::-1]
    while ahead:
        order.append(ahead.pop())
        ahead += families.get(order[-1].id, [])[::-1]
    assert order == chunks, "parents before children, depth first"


@settings(max_examples=150)
@given(text=st.one_of(TEXT, st.sampled_from(HOSTILE)), splitters=SPLITTERS)
def test_every_chunk_lies_in_its_parent_and_nothing_is_lost(text, splitters):
    text = text[:400]
    chunks = SplitterChain(splitters, include_all_chunks=True).chunk(text)
    assert_families(chunks, text)
    for number in range(1, len(splitters)):
        parents = {c.parent_id for c in level(chunks, number + 1)}
        assert parents == {c.id for c in level(chunks, number)}, "each chunk has a child"
    assert level(chunks, 1) == splitters[0].chunk(text)


@settings(max_examples=60)
@given(text=TEXT, splitters=SPLITTERS)
def test_a_level_is_the_last_one_of_the_chain_up_to_there(text, splitters):
    chunks = SplitterChain(splitters, include_all_chunks=True).chunk(text)
    for number in range(1, len(splitters) + 1):
        shorter = SplitterChain(splitters[:number])
        last = level(shorter.chunk(text), number)
        assert everything(level(chunks, number)) == everything(last)
        assert [(c.start, c.end) for c in last] == shorter.spans(text) and [c.text for c in last] == shorter.split_text(
            text
        )


@pytest.mark.parametrize("place", range(3))
def test_a_chunker_with_ids_of_its_own_is_one_as_any_other(place):
    class Own(type(THREE[place])):
        def chunk(self, text, doc_id="doc"):
            return [replace(c, id=f"at {c.start}") for c in super().chunk(text, doc_id)]

    own = copy(THREE[place])
    own.__class__ = Own
    splitters = [*THREE[:place], own, *THREE[place + 1 :]]
    for include_all_chunks in (False, True):
        ours, plain = (SplitterChain(s, include_all_chunks) for s in (splitters, THREE))
        assert everything(ours.chunk(PETS, "a_1")) == everything(plain.chunk(PETS, "a_1"))
        assert ours.create_documents([PETS]) == plain.create_documents([PETS])


def test_what_is_not_divided_has_one_child():
    text = "One.  \n\nTwo."
    whole, child = SplitterChain([FixedSizeChunker(99), CodeChunker("python", 99)]).chunk(text)
    assert (whole.start, whole.end) == (child.start, child.end) == (0, 12) and (child.index, child.total) == (0, 1)
    chunks = SplitterChain([FixedSizeChunker(99)] * 5, include_all_chunks=True).chunk("One.")
    assert [c.id for c in chunks] == ["doc" + "_0" * n for n in range(1, 6)] and {c.text for c in chunks} == {"One."}


# A chain in a chain.


def nested(splitters, cuts, flags):
    """The splitters, some of them gathered in chains, and these in chains again, as `cuts` says."""
    parts = list(splitters)
    for start, size in cuts:
        start %= len(parts)
        parts[start : start + size] = [SplitterChain(parts[start : start + size], next(flags))]
    return parts


@settings(max_examples=150)
@given(
    text=TEXT,
    splitters=st.lists(st.sampled_from(SOME), min_size=1, max_size=4),
    cuts=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=4),
    include_all_chunks=st.booleans(),
    flags=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_nesting_is_associative(text, splitters, cuts, include_all_chunks, flags):
    flat = SplitterChain(splitters, include_all_chunks)
    deep = SplitterChain(nested(splitters, cuts, iter(flags)), include_all_chunks)
    assert everything(deep.chunk(text, "a_1")) == everything(flat.chunk(text, "a_1"))
    assert deep.spans(text) == flat.spans(text) and deep.split_text(text) == flat.split_text(text)
    assert deep.create_documents([text]) == flat.create_documents([text])


@pytest.mark.parametrize("include_all_chunks", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_chain_in_a_chain_knows_its_parent(include_all_chunks, inner):  # RAG4p: it ignores it
    flat = SplitterChain(THREE, include_all_chunks).chunk(PETS)
    behind = SplitterChain([SECTION, SplitterChain([PARAGRAPH, SENTENCE], inner)], include_all_chunks).chunk(PETS)
    before = SplitterChain([SplitterChain([SECTION, PARAGRAPH], inner), SENTENCE], include_all_chunks).chunk(PETS)
    assert everything(behind) == everything(before) == everything(flat)


# Methods that rewrite.


STATED = {"They purr.": "Cats purr.", "They sleep.": "Cats sleep."}


def states(words):
    """A model that makes one proposition of each sentence that it knows, and one of its first two together."""
    shown = json.loads(words.split("human: ", 1)[1])["sentences"]
    found = [{"sentences": [int(n)], "text": STATED[text]} for n, text in shown.items() if text in STATED]
    both = [n["sentences"][0] for n in found]
    return json.dumps({"propositions": [*found, *([{"sentences": both, "text": "Cats are calm."}] if both else [])]})


def test_a_rewriting_method_in_the_last_place_says_where_in_the_document_it_reads():
    chunks = SplitterChain([SECTION, PropositionChunker(FakeLLM(says=states))]).chunk(PETS)
    calm = next(c for c in chunks if c.text == "Cats are calm.")
    assert calm.parent_id == "doc_0" and PETS[calm.start : calm.end] == "They purr. They sleep."
    assert [PETS[a:b] for a, b in calm.metadata["spans"]] == ["They purr.", "They sleep."]
    bark = chunks[-1]
    assert bark.text == PETS[bark.start : bark.end] == "They bark." and bark.metadata["spans"] == [
        (bark.start, bark.end)
    ]


def test_a_rewriting_method_in_an_earlier_place_says_what_is_split_next():
    chain = SplitterChain(
        [SECTION, PropositionChunker(FakeLLM(says=states)), SentenceChunker(12)], include_all_chunks=True
    )
    chunks = chain.chunk(PETS)
    calm = next(c for c in chunks if c.text == "Cats are calm.")
    assert [c.text for c in chunks if c.parent_id == calm.id] == ["They purr.", "They sleep."]
    assert all(PETS[c.start : c.end] == c.text for c in level(chunks, 3)), "nothing is invented"
    assert not any("Cats" in text and "#" not in text for text in chain.split_text(PETS))


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=15)
@given(text=TEXT, place=st.integers(0, 2))
def test_propositions_in_any_place_keep_the_places(mode, text, place):
    splitters = [ParagraphChunker(60), FixedSizeChunker(25)]
    splitters.insert(place, (PropositionChunker, AgenticChunker)[len(text) % 2](FakeLLM(mode)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chunks = SplitterChain(splitters, include_all_chunks=True).chunk(text)
    assert_families(chunks, text, lossless=False)
    rewritten = level(chunks, place + 1)
    assert all(text[c.start : c.end] == c.text for c in chunks if depth(c) != place + 1)
    for c in rewritten:
        spans = c.metadata["spans"]
        assert (min(spans)[0], max(end for _, end in spans)) == (c.start, c.end)
        assert all(text[a:b].strip() for a, b in spans)


def test_continuation_headings_and_joiners_are_not_split():
    text = "# Cats\n\n" + "They purr all day. " * 9
    chain = SplitterChain([HeadingChunker(3, 12, 12), SentenceChunker(20)])
    chunks = chain.chunk(text)
    assert any("cont'd" in c.text for c in level(chunks, 1)) and not any("cont'd" in c.text for c in level(chunks, 2))
    assert chain.split_text(text) == ["# Cats", *["They purr all day."] * 9]
    paragraphs = ParagraphChunker(20, join=" / ")
    chunks = SplitterChain([paragraphs, ParagraphChunker(5)]).chunk("One.\n\nTwo.\n\nThree.")
    assert [(c.id, c.text) for c in chunks[:3]] == [
        ("doc_0", "One. / Two. / Three."),
        ("doc_0_0", "One."),
        ("doc_0_1", "Two."),
    ]


def test_places_in_the_metadata_of_a_child_are_places_in_the_document():
    text = "# One\n\nA.\n\nB.\n\n# Two\n\nC.\n\nD."
    chunks = SplitterChain([HeadingChunker(1, 4, 4), ParagraphChunker(99, join="\n")]).chunk(text)
    for c in level(chunks, 2):
        assert "\n".join(text[a:b] for a, b in c.metadata["spans"]) == c.text
    assert len(level(chunks, 2)) == 2


def test_a_chunker_keeps_the_metadata_that_it_gave():
    kept = {"spans": [(0, 1)]}

    class Keeping(FixedSizeChunker):
        def chunk(self, text, doc_id="doc"):
            return [replace(c, metadata=kept) for c in super().chunk(text, doc_id)]

    chunks = SplitterChain([FixedSizeChunker(2), Keeping(2)]).chunk("abcdef")
    assert [c.metadata for c in level(chunks, 2)] == [{"spans": [(start, start + 1)]} for start in (0, 2, 4)]
    assert kept == {"spans": [(0, 1)]}


def test_metadata_are_a_chunks_own():
    chunks = SplitterChain([HeadingChunker(1, 9, 9), ParagraphChunker(5)]).chunk("# Cats\n\nThey purr.")
    assert chunks[0].metadata["path"] == ["Cats"] and chunks[2].metadata == {"oversize": "paragraph"}
    # What parent_id is for: the headings above a hit.
    by_id = {c.id: c for c in chunks}
    assert by_id[chunks[2].parent_id].metadata["path"] == ["Cats"]


def test_context_goes_to_the_chunks_of_a_chain():
    model = FakeListChatModel(responses=['{"document_title": "Pets", "chunk_title": "Cats"}'])
    chunks = add_context(SplitterChain([SECTION, SENTENCE]).chunk(PETS), PETS, model)
    assert all(c.text == c.metadata["added"] + PETS[c.start : c.end] for c in chunks)


# Overlap.


def test_children_of_chunks_that_overlap_repeat_text_in_two_families():
    text = "It rains. We stay. They go."
    chunks = SplitterChain([SentenceChunker(20, 9), SentenceChunker(9)]).chunk(text)
    assert_families(chunks, text)
    twice = [c.id for c in chunks if c.text == "We stay."]
    assert twice == ["doc_0_1", "doc_1_0"]


@pytest.mark.parametrize("overlaps", [(0, 0), (20, 0), (0, 5), (20, 5)])
def test_each_level_has_its_own_overlap(overlaps):  # ovl-04
    text, count = "A line of text here. " * 30, tokens("cl100k")
    sizes = list(zip((64, 16), overlaps, strict=True))
    chain = SplitterChain([RecursiveChunker(*size, length_function=count) for size in sizes])
    chunks = chain.chunk(text)
    assert_families(chunks, text)
    for number, (size, overlap) in enumerate(sizes, start=1):
        found = level(chunks, number)
        assert found and all(count(c.text) <= size for c in found)
        for a, b in pairwise(found):
            if a.parent_id == b.parent_id:
                assert a.start < b.start and count(text[b.start : a.end]) <= overlap


# The rules.


@pytest.mark.parametrize("names", CHAINS[:3], ids=" > ".join)
def test_a_typical_chain_over_the_whole_corpus_keeps_the_rules_at_each_level(names, corpus):
    cases = [CHUNKERS[names[0]], *(chain_of(*names[:k]) for k in range(2, len(names) + 1))]
    for text in corpus.values():
        for case in cases:
            assert_rules(case, text)
        assert_families(cases[-1].make().chunk(text), text)


class Counting(Chunker):
    """Halves, down to single characters; counts what it is handed."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.characters, self.calls = inner, 0, 0

    def spans(self, text):
        self.characters += len(text)
        self.calls += 1
        return self.inner.spans(text)


@pytest.mark.parametrize("verb", ["chunk", "split_text", "spans"])
def test_each_chunker_reads_the_document_once(verb):
    for size in (10_000, 1_000_000):
        text = ("word " * 19 + "end.\n\n") * (size // 101)
        counting = [
            Counting(c)
            for c in (ParagraphChunker(2000), RecursiveChunker(300), SentenceChunker(101), FixedSizeChunker(99))
        ]
        getattr(SplitterChain(counting), verb)(text)
        assert all(0.95 * len(text) < c.characters <= len(text) for c in counting)
        assert counting[0].calls == 1 and counting[3].calls <= size / 90


def test_a_blank_text_or_none_reaches_no_second_chunker():
    second = Counting(SENTENCE)
    chain = SplitterChain([SECTION, second])
    assert (
        chain.chunk(" \n\ufeff") == chain.split_text("") == chain.spans("\t") == chain.create_documents(["", " "]) == []
    )
    with pytest.raises(ValueError, match="text is of type bytes: must be a str"):
        chain.chunk(b"text")
    with pytest.raises(ValueError, match="doc_id=3: must be a str"):
        chain.chunk("text", 3)
    assert second.calls == 0


# What is retrieved.


@settings(max_examples=60)
@given(
    documents=st.dictionaries(st.sampled_from(["a", "a_1", "a_1_0", ""]), TEXT, min_size=1),
    splitters=SPLITTERS,
    place=st.none() | st.integers(0, 3),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    k=st.integers(1, 9),
)
def test_any_chain_goes_through_any_strategy(documents, splitters, place, flags, k):
    include_all_chunks, words, own_text = flags
    if place is not None:
        splitters = [*splitters[:place], PropositionChunker(FakeLLM("mixed")), *splitters[place:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chunks = [
            c
            for name, text in documents.items()
            for c in SplitterChain(splitters, include_all_chunks).chunk(text, name)
        ]
    index = ChunkIndex(chunks, Vectors())
    index = Hybrid(index) if words else index
    source = {"documents": documents} if own_text else {}
    for strategy in (TopN(index), Window(index, **source), WholeDocument(index, **source), Parent(index)):
        hits = [hit.chunk for hit in strategy.search("cats", k=k)]
        assert bool(hits) == bool(chunks) and len(hits) <= k
        for c in hits:
            assert 0 <= c.start < c.end <= len(documents[c.document]) and c.text.strip()
        slices = sorted((c for c in hits if is_slice(c)), key=lambda c: (c.document, c.start))
        assert all(c.text == documents[c.document][c.start : c.end] for c in slices if "chunks" not in c.metadata)
        assert all(a.document != b.document or a.end <= b.start for a, b in pairwise(slices))
    best = small_to_big(chunks, Vectors(), k=1).search("cats")
    leaves = last_level(chunks)
    assert len(best) == bool(chunks) and all(hit.chunk in chunks for hit in best)
    if len(splitters) > 1:
        assert not {(c.document, c.id) for c in leaves} & {(c.document, c.id) for c in chunks if depth(c) == 1}


# Typical chains.


def test_a_token_limit_then_meaning(novella):
    count = tokens("minilm")
    limited = SentenceChunker(200, length_function=count)
    chunks = SplitterChain([limited, SemanticChunker(embeddings("static"))]).chunk(novella)
    assert all(count(c.text) <= 200 for c in chunks) and len(level(chunks, 2)) > len(level(chunks, 1)) > 9
    assert all(novella[c.start : c.end] == c.text for c in chunks)
    assert_families(chunks, novella)


def test_sections_paragraphs_sentences(corpus):
    text = corpus["tidewright_manual.md"]
    chain = SplitterChain([HeadingChunker(), ParagraphChunker(), SentenceChunker(200)], include_all_chunks=True)
    chunks = chain.chunk(text, "manual")
    assert [len(level(chunks, n)) > 20 for n in (1, 2, 3)] == [True] * 3
    by_id = {c.id: c for c in chunks}
    sentence = chunks[-1]
    section = by_id[by_id[sentence.parent_id].parent_id]
    assert sentence.text in section.text and section.metadata["path"]


def test_a_section_then_an_llm():
    model = FakeListChatModel(responses=['{"starts": [3]}', '{"starts": []}'])
    chunks = SplitterChain([SECTION, LLMChunker(model)]).chunk(PETS)
    assert [(c.id, c.text) for c in level(chunks, 2)] == [
        ("doc_0_0", "# Cats\n\nThey purr."),
        ("doc_0_1", "They sleep.\n\nThey dream."),
        ("doc_1_0", "# Dogs\n\nThey bark."),
    ]


def test_a_model_that_fails_is_asked_only_for_the_rest():
    text = "\n\n".join(f"# {n}\n\nA cat sleeps. A dog barks. A bird sings." for n in range(6))
    model = FakeLLM("same", faults={4: RuntimeError("no file")})
    chain = SplitterChain([HeadingChunker(1, 9, 11), LLMChunker(model)])
    with pytest.raises(LLMError, match="3 replies are kept"):
        chain.chunk(text)
    chunks = chain.chunk(text)
    assert model.answered == 6 and len(model.asked) == 7
    assert chunks == SplitterChain([HeadingChunker(1, 9, 11), LLMChunker(FakeLLM("same"))]).chunk(text)


def test_what_a_model_could_not_answer_is_said_at_the_child():
    chain = SplitterChain([SECTION, LLMChunker(FakeLLM("nothing"))])
    with pytest.warns(UserWarning, match="got no answer that could be used"):
        chunks = chain.chunk(PETS)
    assert all(("fallback" in c.metadata) == (depth(c) == 2) for c in chunks)


# LangChain.


def test_langchain_gets_the_last_level_with_true_places():
    chain = SplitterChain(THREE, include_all_chunks=True)
    texts = [PETS, "", PETS, "# One\n\nTwo. Three is longer."]
    metadatas = [{"source": "a_b_1.md", "tags": ["x"]}, {}, {"source": "a_b_1.md"}, {"id": "_"}]
    made = chain.create_documents(texts, metadatas)
    assert {d.metadata["document"] for d in made} == {"a_b_1.md", "a_b_1.md#2", "_"}
    assert made[0].metadata == {
        "source": "a_b_1.md", "tags": ["x"], "document": "a_b_1.md", "chunk_id": "a_b_1.md_0_0_0", "start_index": 0, "end_index": 6, "parent_id": "a_b_1.md_0_0", "index": 0, "total": 1,
    }  # fmt: skip
    text_of = {"a_b_1.md": PETS, "a_b_1.md#2": PETS, "_": texts[3]}
    assert all(
        text_of[d.metadata["document"]][d.metadata["start_index"] : d.metadata["end_index"]] == d.page_content
        for d in made
    )
    assert [d.page_content for d in made] == [part for text in texts for part in chain.split_text(text)]
    documents = [
        Document(page_content=text, metadata=metadata) for text, metadata in zip(texts, metadatas, strict=True)
    ]
    assert list(chain.transform_documents(documents)) == chain.split_documents(documents) == made
    parents = {
        c.id
        for text, name in ((PETS, "a_b_1.md"), (PETS, "a_b_1.md#2"), (texts[3], "_"))
        for c in chain.chunk(text, name)
    }
    assert {d.metadata["parent_id"] for d in made} <= parents


@pytest.mark.parametrize("doc_id", ["", "_", "_0", "a_0_1", "doc_0", "ä/ö_3.md", "x\n_1"], ids=ascii)
def test_ids_hold_for_any_name_of_a_document(doc_id):
    chunks = SplitterChain(THREE, include_all_chunks=True).chunk(PETS, doc_id)
    assert [c.id.removeprefix(doc_id) for c in chunks] == [
        c.id.removeprefix("doc") for c in SplitterChain(THREE, True).chunk(PETS)
    ]
    assert {c.document for c in chunks} == {doc_id}
    made = SplitterChain(THREE).create_documents([PETS], [{"id": doc_id}])
    assert [d.page_content for d in made] == [c.text for c in level(chunks, 3)]


def test_ten_siblings_and_more_stay_in_order():
    text = "\n\n".join(f"Number {n}. And more." for n in range(120))
    chunks = SplitterChain([ParagraphChunker(5), SentenceChunker(11)]).chunk(text)
    assert [c.start for c in level(chunks, 2)] == sorted(c.start for c in level(chunks, 2))
    assert [c.index for c in level(chunks, 1)] == list(range(120))
    assert_families(chunks, text)


# Handed cases.


def test_documents_with_the_same_text_keep_their_chunks_apart():  # ret-01
    chain = SplitterChain([ParagraphChunker(), SentenceChunker()])
    chunks = [c for name in ("a.md", "b.md") for c in chain.chunk("Same notice.", name)]
    assert [(c.document, c.id, c.parent_id) for c in chunks] == [
        ("a.md", "a.md_0", None), ("a.md", "a.md_0_0", "a.md_0"), ("b.md", "b.md_0", None), ("b.md", "b.md_0_0", "b.md_0"),
    ]  # fmt: skip
    # An id may look like another document's; with the document it is unique.
    assert len({(c.document, c.id) for name in ("a", "a_0") for c in chain.chunk("Same notice.", name)}) == 4


def test_ids_do_not_depend_on_the_process():  # ret-02
    code = (
        "from chunklab import HeadingChunker, SentenceChunker, SplitterChain\n"
        "chain = SplitterChain([HeadingChunker(1, 9, 9), SentenceChunker(12)])\n"
        f"for c in chain.chunk({PETS!r}, 'a.md'): print(c)"
    )
    run = [sys.executable, "-c", code]
    outputs = {
        subprocess.run(
            run, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert len(outputs) == 1 and "id='a.md_0_2', parent_id='a.md_0'" in outputs.pop()


def test_a_heading_with_a_slash_or_an_underscore_makes_no_id_ambiguous():  # md-09
    text = "# Root\n## 24/7 Desk\n### Hours_0\nopen\n"
    chunks = SplitterChain([HeadingChunker(1, 2, 2), SentenceChunker(4)]).chunk(text, "d/7_a")
    assert all(re.fullmatch(r"d/7_a(_\d+){1,2}", c.id) for c in chunks) and len({c.id for c in chunks}) == len(chunks)
    assert level(chunks, 1)[-1].metadata["path"] == ["Root", "24/7 Desk", "Hours_0"]


def test_a_token_that_is_longer_than_the_limit_has_children():  # lost-08
    text = "X = '" + "q" * 600 + "'\ny = 1\n"
    chunks = SplitterChain([FixedSizeChunker(10_000), CodeChunker("python", 100)]).chunk(text)
    assert_families(chunks, text)
    assert "".join(c.text for c in level(chunks, 2)).count("q") == 600 and all(
        len(c.text) <= 100 for c in level(chunks, 2)
    )


# Arguments.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([],), r"splitters=\[\]: must hold one chunker at least"),
        ((iter(()),), "splitters=.*must hold one chunker at least"),
        ((None,), "splitters=None: must be a list of chunkers"),
        (("sentence",), "splitters='sentence': must be a list of chunkers"),
        ((SentenceChunker(),), "splitters=<.*SentenceChunker.*: must be a list of chunkers"),
        ((SplitterChain([SentenceChunker()]),), "splitters=<.*: must be a list of chunkers"),
        (([SentenceChunker(), None],), r"splitters\[1\]=None: must be a chunklab.Chunker"),
        (([SentenceChunker],), r"splitters\[0\]=<class .*: must be a chunklab.Chunker"),
        (([[SentenceChunker()]],), r"splitters\[0\]=\[.*: must be a chunklab.Chunker"),
        (([RecursiveCharacterTextSplitter()],), r"splitters\[0\]=<langchain.*take RecursiveChunker"),
        (([SentenceChunker()], "no"), "include_all_chunks='no': must be one of False, True"),
        (([SentenceChunker()], None), "include_all_chunks=None: must be one of False, True"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, says):
    with pytest.raises(ValueError, match=says):
        SplitterChain(*arguments)


def test_any_iterable_of_chunkers_is_read_once_and_kept():
    given_list = [SECTION, SENTENCE]
    chain, lazy = SplitterChain(given_list), SplitterChain(c for c in given_list)
    given_list.pop()
    assert chain.chunk(PETS) == lazy.chunk(PETS) == chain.chunk(PETS) and chain.chunk(PETS)[-1].id == "doc_1_1"
    assert pickle.loads(pickle.dumps(chain)).chunk(PETS) == chain.chunk(PETS)


@pytest.mark.parametrize("name", CHAIN_NAMES)
def test_the_registered_chains_are_chains(name):
    assert isinstance(CHUNKERS[name].make(), SplitterChain) and CHUNKERS[name].above
