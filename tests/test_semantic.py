"""Semantic chunking: equality with LangChain, and what a fake model with known vectors must give."""

import hashlib
import os
import random
import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from chunklab import (
    SemanticChunker,
    SemanticWindowChunker,
    chunker_from_env,
    embeddings,
    load_benchmark,
    load_corpus,
    load_novel,
    tokens,
)
from chunklab.chunkers.distances import row_distances
from chunklab.chunkers.langchain_semantic import langchain_threshold
from chunklab.chunkers.semantic import AMOUNTS, breakpoint_threshold, sentence_distances, window_means
from chunklab.chunkers.sizes import largest_first, tame

TYPES = pytest.mark.parametrize("kind", AMOUNTS)


class Topics(Embeddings):
    """A model for which each of some words is a direction of its own; it keeps what it was asked."""

    def __init__(self, *words, replace=None):
        self.words, self.replace, self.asked = words, replace or {}, []

    def embed_documents(self, texts):
        self.asked += texts
        return [self.replace.get(text, [float(text.lower().count(word)) for word in self.words]) for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def topics_text(counts, words=("cat", "tax", "sea", "oak")):
    """Sentences about one subject after another."""
    names = [words[i % len(words)] for i, count in enumerate(counts) for _ in range(count)]
    return " ".join(f"A {name} is here number {place}." for place, name in enumerate(names))


def texts_of(chunks):
    return [chunk.text for chunk in chunks]


# Equal to LangChain.


@cache
def _static():
    return embeddings("static")


class Remembering(Embeddings):
    """The static model, asked once for each text: LangChain's chunker asks again for each threshold."""

    name, dimensions = "static", 256

    def __init__(self):
        self.known = {}

    def encode(self, texts):
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, _static().encode(new), strict=True))
        return np.array([self.known[text] for text in texts])

    def embed_documents(self, texts):
        return self.encode(texts).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


MODEL = Remembering()
SETTINGS = [
    *({"breakpoint_threshold_type": kind} for kind in AMOUNTS),
    *({"breakpoint_threshold_amount": amount} for amount in (0, 50, 80, 99.5, 100)),
    *(
        {"breakpoint_threshold_type": "standard_deviation", "breakpoint_threshold_amount": amount}
        for amount in (0, 0.5, 1.5)
    ),
    *({"breakpoint_threshold_type": "interquartile", "breakpoint_threshold_amount": amount} for amount in (0, 0.5, 3)),
    *({"breakpoint_threshold_type": "gradient", "breakpoint_threshold_amount": amount} for amount in (50, 80)),
    *({"number_of_chunks": count} for count in (1, 2, 3, 7, 20, 100, 10**6)),
    {"buffer_size": 0},
    {"buffer_size": 3, "min_chunk_size": 300},
    {"min_chunk_size": 1000, "breakpoint_threshold_amount": 70},
]


def _letters(text):
    return "".join(text.replace("\ufeff", "").split())


def assert_equal_to_langchain(text, model, **options):
    from langchain_experimental.text_splitter import SemanticChunker as LangChain

    theirs = LangChain(model, **options).split_text(text.strip())
    ours = SemanticChunker(model, compatible=True, **options).chunk(text)
    # There, sentences are joined by one space: between them only, so with the white space out both are the same text.
    # And a BOM is text.
    assert [_letters(chunk) for chunk in theirs] == [_letters(chunk.text) for chunk in ours]
    assert all(text[c.start : c.end] == c.text for c in ours)


def test_equal_to_langchain_on_the_corpus():
    model = Remembering()
    for number, text in enumerate(load_corpus().values()):
        for options in SETTINGS[number % 4 :: 4]:
            assert_equal_to_langchain(text, model, **options)


@pytest.mark.parametrize("options", SETTINGS)
def test_equal_to_langchain_for_every_setting(options):
    text = load_corpus()["users_meeting.txt"]
    assert_equal_to_langchain(text[:12_000], MODEL, **options)


@pytest.mark.skipif(
    not os.environ.get("CHUNKLAB_DATA"), reason="needs the public data: let CHUNKLAB_DATA name their folder"
)
def test_equal_to_langchain_on_the_public_data():
    for text in [*load_benchmark()[0].values(), load_novel()]:
        model = Remembering()
        for options in [*SETTINGS[:4], SETTINGS[6], {"number_of_chunks": 50}]:
            assert_equal_to_langchain(text[:60_000], model, **options)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    text=st.lists(
        st.sampled_from(["A cat. ", "A tax! ", "Sea?\n\n", "oak ", "Dr. Tax... ", "\t", "é. ", "A cat tax. "]),
        max_size=30,
    ).map("".join),
    options=st.sampled_from(SETTINGS),
)
def test_equal_to_langchain_on_vectors_with_many_ties(text, options):
    if text.strip():
        assert_equal_to_langchain(text, Topics("cat", "tax", "sea"), **options)


def test_a_model_in_double_precision_is_not_rounded():
    rng, words = np.random.default_rng(0), [f"Word {i}." for i in range(60)]
    model = Topics(replace={})
    model.embed_documents = lambda texts: (np.arange(20) * 1e-9 + rng.normal(size=(len(texts), 20)) * 1e-3 + 1).tolist()
    for count in (2, 5, 30):
        rng = np.random.default_rng(count)
        from langchain_experimental.text_splitter import SemanticChunker as LangChain

        theirs = LangChain(model, number_of_chunks=count).split_text(" ".join(words))
        rng = np.random.default_rng(count)
        assert SemanticChunker(model, number_of_chunks=count, compatible=True).split_text(" ".join(words)) == theirs


class Hashed(Topics):
    """A model for which every character counts: one blank more in a text is another vector."""

    def __init__(self, number=float):
        super().__init__()
        self.number = number

    def embed_documents(self, texts):
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        return [[self.number(byte % 5) - 2 for byte in digest[:3]] for digest in digests]


# Marks after a blank and BOMs belong to the sentence in LangChain, and not to our spans of it.
NASTY = ["A cat. ", "B? ", "?! ", "... ", "…", "日本。", "\r\n", "\n\n", " \ufeffC! ", "\xa0", "\u2028", " \u0301x. ", "a. \u0301b. ", "word ",
         "Dr. X ", "\x00", "\x1f", "\x85", "\u0600 ", "👩\u200d🔬. ", "🇫🇷. ", "\ud800. ", ".", "\u3000"]  # fmt: skip


@settings(max_examples=250, deadline=None, derandomize=True)
@given(
    text=st.lists(st.sampled_from(NASTY), max_size=30).map("".join),
    kind=st.sampled_from([{"breakpoint_threshold_type": kind} for kind in AMOUNTS] + SETTINGS),
    more=st.fixed_dictionaries({"buffer_size": st.integers(0, 5)}, optional={"min_chunk_size": st.integers(1, 30)}),
    number=st.sampled_from([float, int, lambda n: n * 1e300, lambda n: n * 1e-300]),
)
def test_equal_to_langchain_on_nasty_text(text, kind, more, number):
    if text.strip():
        with np.errstate(all="ignore"):
            assert_equal_to_langchain(text, Hashed(number), **{**kind, **more})


def test_langchain_makes_a_chunk_of_a_bom_and_we_do_not():
    text, options = "A cat. \ufeff", {"number_of_chunks": 1, "breakpoint_threshold_type": "gradient"}
    assert SemanticChunker(Hashed(), compatible=True, **options).split_text(text) == ["A cat."]


@pytest.mark.parametrize("precision", [np.float16, np.float32, np.float64])
def test_a_model_that_gives_arrays_is_computed_with_in_their_precision(precision):
    class Arrays(Topics):
        def embed_documents(self, texts):
            seeds = [np.random.default_rng(sum(map(ord, text)) % 7) for text in texts]
            return np.array(
                [seed.normal(size=20) * (1 + len(text) % 5) for seed, text in zip(seeds, texts, strict=True)], precision
            )

    for seed in range(40):
        words = random.Random(seed).choices(["Cat sat.", "Dog ran!", "Sea?", "Tax is due."], k=3 + seed)
        assert_equal_to_langchain(
            " ".join(words), Arrays(), buffer_size=seed % 3, breakpoint_threshold_amount=5 + 2 * seed
        )


@pytest.mark.parametrize("compatible", [False, True])
def test_white_space_at_the_end_adds_nothing(compatible):
    text, model = topics_text([3, 3, 3]), Topics("cat", "tax", "sea")
    chunker = SemanticChunker(model, compatible=compatible, breakpoint_threshold_amount=70)
    chunks = chunker.chunk(text)
    for more in (" ", "\n\n", " \t\r\n", "\ufeff"):
        model.asked.clear()
        assert chunker.chunk(text + more) == chunks and len(model.asked) == 9
        assert texts_of(chunker.chunk(" \n" + text + more)) == texts_of(chunks)


# Few sentences, and vectors that say nothing.


@TYPES
@pytest.mark.parametrize("compatible", [False, True])
@pytest.mark.parametrize(
    "text", ["Only one sentence here.", "one line without a stop", "?", "First. Second."]
)  # sem-01
def test_one_or_two_sentences(kind, compatible, text):
    model = Topics("first", "second", "one")
    # Where LangChain would take the gradient of one distance, it gives both sentences.
    expected = ["First.", "Second."] if compatible and kind == "gradient" and text == "First. Second." else [text]
    assert SemanticChunker(model, 1, kind, compatible=compatible).split_text(text) == expected
    assert SemanticChunker(model, 1, number_of_chunks=1, compatible=compatible).split_text(text) == [text]


@pytest.mark.parametrize("count", range(1, 9))  # sem-03
def test_so_many_chunks_as_are_asked_for(count):
    text = "First. Second. Third. Fourth. Fifth."
    chunker = SemanticChunker(Topics("first", "second", "third", "fourth", "fifth"), number_of_chunks=count)
    assert len(chunker.chunk(text)) == min(count, 5)
    assert len(chunker.chunk("First. Second.")) == min(count, 2)


@TYPES
def test_identical_sentences_are_one_chunk(kind):
    text = "The same thing again. " * 40
    assert len(SemanticChunker(embeddings("static"), 1, kind).chunk(text)) == 1
    chunks = SemanticChunker(embeddings("static"), 1, kind, max_chunk_size=100).chunk(text)
    sizes = [len(chunk.text) for chunk in chunks]
    assert max(sizes) <= 100 and len(sizes) <= 20, "no crumbs: equal distances are cut evenly"


@TYPES
@pytest.mark.parametrize("buffer", [0, 1])
def test_a_zero_vector_is_like_nothing_and_breaks_nothing(kind, buffer):  # sem-05
    model = Topics("cat", replace={"!!!": [0.0], "***": [0.0]})
    text = "A cat. A cat. A cat!\n\n***\n\n!!!\n\nA cat."
    chunks = SemanticChunker(model, buffer, kind).chunk(text)
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(text.split())
    assert row_distances(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 0.0]])).tolist() == [1, 1]


@TYPES
@pytest.mark.parametrize("distance", ["cosine", "euclidean", "manhattan", lambda a, b: np.linalg.norm(a - b)])
@pytest.mark.parametrize("scale", [0.1, 1, 100, 1e6])
def test_repeated_sentences_do_not_differ_whatever_the_distance(kind, distance, scale):
    vector = (np.random.default_rng(3).normal(size=384) * scale).tolist()
    model = Topics()
    model.embed_documents = lambda texts: [vector for _ in texts]
    for buffer, window in ((1, "mean"), (5, "sides"), (3, "mean")):
        chunker = SemanticChunker(model, buffer, kind, distance=distance, window=window)
        assert len(chunker.chunk("The same thing again. " * 40)) == 1


def test_blended_vectors_are_those_of_the_weights():
    vectors = np.random.default_rng(0).normal(size=(9, 4))
    for before, after in ((0, 0), (1, 1), (2, 0), (0, 3), (2, 2), (20, 20)):
        weights = np.array(
            [
                [max(0, 1 + max(before, after) - abs(i - j)) * (-after <= i - j <= before) for j in range(9)]
                for i in range(9)
            ]
        )
        assert np.allclose(window_means(vectors, before, after), weights @ vectors / weights.sum(axis=1, keepdims=True))


def test_windows_are_the_same_in_blocks(monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(47, 4))
    model, text = Topics(), "One word here. " * 47
    model.embed_documents = lambda texts: vectors[: len(texts)]
    for buffer, window in ((0, "mean"), (1, "mean"), (3, "sides"), (60, "mean")):
        monkeypatch.setattr("chunklab.chunkers.semantic._AT_ONCE", 5)
        chunker = SemanticChunker(model, buffer, window=window)
        found = chunker.distances(text, chunker.sentences(text))
        assert np.allclose(found, sentence_distances(vectors, buffer, window), atol=1e-5)


class ArrayLike:
    """What other libraries give for an array."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, place):
        return ArrayLike(self.values[place])

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)


@pytest.mark.parametrize("give", [lambda v: tuple(map(tuple, v)), np.array, lambda v: np.array(v, np.float16), lambda v: np.array(v, int), lambda v: np.array(v, object), ArrayLike, lambda v: [ArrayLike(row) for row in v], lambda v: np.array(v, ">f4"), np.asfortranarray], ids=range(9))  # fmt: skip
@pytest.mark.parametrize("compatible", [False, True])
def test_vectors_may_come_in_any_form(give, compatible):
    model, plain = Topics("cat", "tax"), Topics("cat", "tax")
    embed = model.embed_documents
    model.embed_documents = lambda texts: give(embed(texts))
    text = topics_text([3, 3, 1])
    assert SemanticChunker(model, compatible=compatible).chunk(text) == SemanticChunker(
        plain, compatible=compatible
    ).chunk(text)


@pytest.mark.parametrize("wrong", [
    lambda v: iter(v), lambda v: [iter(row) for row in v], lambda v: v[0], lambda v: np.array(v)[:, :, None], lambda v: [[row] for row in v],
    lambda v: np.array(v) + 1j, lambda v: [[1j, 2] for _ in v], lambda v: np.array(3.0), lambda v: [None] * len(v), lambda v: ["abc"] * len(v),
    lambda v: [["a", "b"]] * len(v), lambda v: [b"abc"] * len(v), lambda v: dict(enumerate(v)), lambda v: [{0: 1.0, 1: 2.0}] * len(v),
    lambda v: [[10**400, 1]] * len(v), lambda v: np.array([["2020-01-01"]] * len(v), "M8[D]"),
], ids=range(16))  # fmt: skip
@pytest.mark.parametrize("compatible", [False, True])
def test_what_are_no_vectors_is_an_error(wrong, compatible):
    model = Topics("aa", "bb", "cc")
    give = model.embed_documents
    model.embed_documents = lambda texts: wrong(give(texts))
    with pytest.raises(ValueError, match="asked for 3 vectors, got"):
        SemanticChunker(model, compatible=compatible).chunk("Aa. Bb. Cc.")


@pytest.mark.parametrize("size", [1e-30, 1e18, 1e37])
@pytest.mark.parametrize("distance", ["cosine", "euclidean", "manhattan"])
def test_vectors_may_be_very_long_or_short(size, distance):
    far = row_distances(np.float32([[size, 0], [size, size]]), np.float32([[0, size], [size, size]]), distance)
    assert np.isfinite(far).all() and far[0] > far[1] - 1e-6
    with pytest.raises(ValueError, match="distance of two vectors is not finite"), np.errstate(all="ignore"):
        row_distances(np.float32([[3e38, 1]]), np.float32([[-3e38, 1]]), "euclidean")


@pytest.mark.parametrize("compatible", [False, True])
@pytest.mark.parametrize("bad", [[float("nan"), 1.0], [float("inf"), 0.0], [0.0], []], ids=str)  # sem-06
def test_a_vector_that_is_none_is_an_error_that_names_the_sentence(bad, compatible):
    model = Topics("aa", "bb", replace={"Bb.": bad})
    with pytest.raises(ValueError, match="Bb"):
        SemanticChunker(model, 0, compatible=compatible).chunk("Aa. Bb. Cc. Dd. Ee.")


@pytest.mark.parametrize("compatible", [False, True])
@pytest.mark.parametrize(
    "wrong", [lambda v: v[:-1], lambda v: [*v, v[0]], lambda v: [], lambda v: None], ids=range(4)
)  # sem-07
def test_a_wrong_number_of_vectors_is_an_error(wrong, compatible):
    model = Topics("aa", "bb")
    give = model.embed_documents
    model.embed_documents = lambda texts: wrong(give(texts))
    with pytest.raises(ValueError, match="asked for 3 vectors, got"):
        SemanticChunker(model, compatible=compatible).chunk("Aa. Bb. Cc.")


def test_no_blank_text_is_embedded_and_each_sentence_once():  # sem-09
    text = "Text with gaps.\n\n\n\nSome more text.\n\n\ufeff\nAnd more. \n \n"
    for window, calls in {"mean": 3, "sides": 3, "text": 3}.items():
        model = Topics("text", "more")
        SemanticChunker(model, window=window).chunk(text)
        assert len(model.asked) == calls and all(asked.strip() for asked in model.asked)
    model = Topics("text", "more")
    for blank in ("", " \n", "\ufeff"):
        assert SemanticChunker(model).chunk(blank) == [] and SemanticChunker(model, compatible=True).chunk(blank) == []
    assert model.asked == []


def test_lines_are_units_where_there_are_no_stops():  # sent-05
    text = "- item cat\n- item cat\n- item tax\nno stops at all\n" * 20
    assert len(SemanticChunker(Topics("cat", "tax"), 0, breakpoint_threshold_amount=20).chunk(text)) > 10


# Where it cuts.


@pytest.mark.parametrize("window", ["mean", "sides"])
@pytest.mark.parametrize("counts", [(5, 6, 7), (4, 4), (9, 2, 9, 3)], ids=str)
@pytest.mark.parametrize("distance", ["cosine", "euclidean", "manhattan", lambda a, b: float(np.abs(a - b).max())])
def test_it_cuts_where_the_subject_changes(window, counts, distance):
    text = topics_text(counts)
    chunker = SemanticChunker(
        Topics("cat", "tax", "sea", "oak"), 1, window=window, distance=distance, number_of_chunks=len(counts)
    )
    ends = np.cumsum(counts).tolist()
    assert [int(re.findall(r"\d+", chunk.text)[-1]) + 1 for chunk in chunker.chunk(text)] == ends


@TYPES
@pytest.mark.parametrize("counts", [(3, 4), (4, 3, 4)], ids=str)
def test_every_type_finds_a_clear_change_in_a_short_text(kind, counts):
    # LangChain's standard deviation never splits ten distances, and its gradient is one sentence early.
    text, amount = topics_text(counts), {"percentile": 80, "gradient": 80, "interquartile": 1}.get(kind)
    model = Topics("cat", "tax", "sea")
    chunks = SemanticChunker(model, 0, kind, amount).chunk(text)
    assert [chunk.text.count("is here") for chunk in chunks] == list(counts)


def test_langchains_weaknesses_are_kept_where_they_are_asked_for():
    text, model = topics_text((3, 4)), Topics("cat", "tax", "sea")
    deviation = SemanticChunker(model, 0, "standard_deviation", compatible=True).chunk(text)
    gradient = SemanticChunker(model, 0, "gradient", 80, compatible=True).chunk(text)
    assert len(deviation) == 1 and [c.text.count("is here") for c in gradient] != [3, 4]


@pytest.mark.parametrize("peak", range(5))  # sem-10
def test_a_gradient_is_compared_with_gradients_and_cuts_at_the_peak(peak):
    distances = np.array([0.1, 0.11, 0.1, 0.12, 0.1])
    distances[peak] = 0.5
    values, threshold = breakpoint_threshold(distances, "gradient", 95)
    assert np.flatnonzero(values > threshold).tolist() == [peak]
    if 0 < peak < 4:
        slopes, theirs = langchain_threshold(distances, "gradient", 95)
        assert np.flatnonzero(slopes > theirs).tolist() == [peak - 1]


@pytest.mark.parametrize("window", ["mean", "sides"])
@pytest.mark.parametrize("buffer", [0, 1, 2])  # sem-08
def test_a_break_after_the_first_sentence_is_within_reach(window, buffer):
    text = "Tax law changed. Cats purr softly. Cats nap daily. Cats like fish."
    chunks = SemanticChunker(Topics("tax", "cats"), buffer, number_of_chunks=2, window=window).chunk(text)
    assert texts_of(chunks)[0] == "Tax law changed."


def test_sides_show_a_change_more_sharply_than_windows_that_share_sentences():
    vectors = np.repeat(np.eye(2), 5, axis=0)
    mean, sides = (sentence_distances(vectors, 2, window) for window in ("mean", "sides"))
    assert mean.argmax() == sides.argmax() == 4 and sides[4] > mean[4]
    assert sides[4] == pytest.approx(1) and np.sort(mean)[-2] / mean[4] > 0.2


@pytest.mark.parametrize("window", ["mean", "sides"])
def test_without_neighbours_a_distance_is_that_of_the_two_sentences(window):
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    assert np.allclose(sentence_distances(vectors, 0, window), row_distances(vectors[:-1], vectors[1:]), atol=1e-6)
    assert len(sentence_distances(vectors, 1000, window)) == 19


def test_chunks_are_slices_and_hold_the_whole_text():  # off-04, lost-07
    text = "Alpha one.\n\nBeta two.  Gamma three.\nDelta four."
    for options in ({}, {"compatible": True}, {"number_of_chunks": 4}, {"breakpoint_threshold_amount": 0}):
        chunks = SemanticChunker(Topics("alpha", "beta", "gamma", "delta"), 0, **options).chunk(text)
        assert all(text[c.start : c.end] == c.text for c in chunks)
        assert re.sub(r"\s", "", "".join(texts_of(chunks))) == re.sub(r"\s", "", text)
    assert (
        len(
            SemanticChunker(Topics("cats", "dogs", "stars", "rain"), 0, number_of_chunks=4).chunk(
                "Cats purr. Dogs bark. Stars shine. Rain falls."
            )
        )
        == 4
    )


def test_a_text_without_sentence_ends_is_cut_where_its_subject_changes():
    text = " ".join(word for word in ("cat", "tax", "sea") for _ in range(400))
    for window in ("mean", "sides", "text"):
        chunks = SemanticChunker(Topics("cat", "tax", "sea"), 0, window=window, number_of_chunks=3).split_text(text)
        assert [max(chunk.count(word) for word in ("cat", "tax", "sea")) > 380 for chunk in chunks] == [True] * 3
    assert len(SemanticChunker(embeddings("static"), compatible=True).chunk(text)) == 1
    transcript = load_corpus()["users_meeting.txt"]
    assert len(SemanticChunker(embeddings("static")).chunk(transcript)) > 10
    assert len(SemanticWindowChunker(embeddings("static")).chunk(transcript)) > 10
    assert SemanticChunker(Topics("cat")).split_text("cat " * 499) == [("cat " * 499).strip()], (
        "one long sentence stays one"
    )


# Sizes.


def test_so_many_chunks_as_are_asked_for_though_none_may_be_short():
    # A cut at the first of three equal distances would leave a short chunk.
    text = "Aa aa. Bb bb. Aa aa. Aa aa. Aa aa. Cc cc. Cc cc. Cc cc."
    model = Topics("aa", "bb", "cc")
    assert len(SemanticChunker(model, 0, number_of_chunks=3).chunk(text)) == 3
    for count in (1, 2, 3):
        sizes = [
            len(chunk)
            for chunk in SemanticChunker(model, 0, number_of_chunks=count, min_chunk_size=10).split_text(text)
        ]
        assert len(sizes) == count and min(sizes) >= 10


def test_a_chunk_is_too_short_only_where_its_neighbours_cannot_help():
    draw, model, helped = random.Random(0), Topics(), 0
    model.embed_documents = lambda texts: np.random.default_rng(len(texts)).normal(size=(len(texts), 3))
    for _ in range(150):
        text = " ".join("A" + "b" * draw.choice([2, 5, 9, 15, 20]) + "." for _ in range(draw.randint(2, 30)))
        chunker = SemanticChunker(
            model, 0, "percentile", draw.choice([0, 50, 100]), min_chunk_size=20, max_chunk_size=60
        )
        spans = chunker.sentences(text)
        can = [True]
        for _, end in spans:
            can.append(any(can[j] and 20 <= end - spans[j][0] <= 60 for j in range(len(can))))
        sizes = [len(chunk) for chunk in chunker.split_text(text)]
        assert max(sizes) <= 60
        if can[-1]:
            assert min(sizes) >= 20
            helped += 1
    assert helped > 100


@pytest.mark.parametrize("shape", ["rising", "falling", "equal"])
@pytest.mark.parametrize("options", [{"min_chunk_size": 10**6, "breakpoint_threshold_amount": 0}, {"number_of_chunks": 1, "max_chunk_size": 40}, {"min_chunk_size": 20, "max_chunk_size": 40}, {"number_of_chunks": 50, "min_chunk_size": 30}], ids=str)  # fmt: skip
def test_the_work_of_measuring_grows_with_the_text(shape, options):
    def work(count):
        measured = [0]

        def length(text):
            measured[0] += len(text)
            return len(text) // 5

        places = np.arange(count) / count
        angles = np.cumsum({"rising": places, "falling": 1 - places, "equal": places * 0 + 0.5}[shape])
        model = Topics()
        model.embed_documents = lambda texts: np.stack([np.cos(angles), np.sin(angles)], 1)
        SemanticChunker(model, 0, length_function=length, **options).chunk("Sentence of words. " * count)
        return measured[0]

    assert work(1200) < 3 * work(600)


def test_a_huge_buffer_ends():
    class Short(Topics):
        max_tokens = 60

        def count_tokens(self, text):
            return len(text.split())

    model = Short("cat")
    assert SemanticChunker(model, 10**30, window="text").chunk("Some words are here. " * 200)
    assert max(len(text.split()) for text in model.asked) in (52, 56, 60)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    distances=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9]), min_size=1, max_size=40),
    size=st.integers(1, 12),
)
def test_a_group_that_is_too_long_is_cut_at_its_own_largest_distances(distances, size):
    last = len(distances)
    tamed = tame([(0, last)], np.array(distances), size, lambda a, b: b - a + 1)
    assert [a for a, _ in tamed] == [0, *(b + 1 for _, b in tamed[:-1])] and tamed[-1][1] == last
    assert all(b - a + 1 <= size for a, b in tamed)
    cuts = {b for _, b in tamed[:-1]}

    def check(a, b):  # a piece is cut, if it is too long, at one of its largest distances; and so on in both parts
        if b - a + 1 <= size:
            assert not cuts & set(range(a, b))
            return
        most = max(distances[a:b])
        first = next(
            cut for cut in sorted(cuts & set(range(a, b)), key=lambda c: -distances[c]) if distances[cut] == most
        )
        check(a, first), check(first + 1, b)

    if len(set(distances)) == len(distances):
        check(0, last)
    elif cuts:
        assert max(distances) == max(distances[cut] for cut in cuts)


@pytest.mark.parametrize(("least", "most"), [(1, 2), (2, 4), (3, 5), (4, 9), (5, 5), (3, 4)])
def test_a_group_is_cut_into_parts_that_are_long_enough_where_it_can(least, most):
    rng = np.random.default_rng(least)
    for count in range(1, 40):
        tamed = tame([(0, count - 1)], rng.random(count - 1), most, lambda a, b: b - a + 1, least)
        sizes = [b - a + 1 for a, b in tamed]
        assert max(sizes) <= most and sum(sizes) == count
        if most >= 2 * least - 1:  # then whatever is too long can be cut into parts that are long enough
            assert min(sizes) >= min(least, count)


def test_equal_distances_are_taken_far_apart():
    order = largest_first(np.zeros(1000))
    assert sorted(order.tolist()) == list(range(1000))
    for count in (2, 5, 20, 100):
        gaps = np.diff(sorted([0, *order[:count].tolist(), 1000]))
        assert gaps.max() <= 3 * 1000 / count


@pytest.mark.parametrize("least", [1, 60, 200, 10**6])
def test_no_chunk_is_shorter_than_the_minimum(least):
    text = topics_text((1, 3, 1, 8, 2, 5, 1))
    chunks = SemanticChunker(
        Topics("cat", "tax", "sea", "oak"), 0, breakpoint_threshold_amount=0, min_chunk_size=least
    ).chunk(text)
    assert all(len(chunk.text) >= least for chunk in chunks) or len(chunks) == 1


@pytest.mark.parametrize("window", ["mean", "sides", "text"])
@pytest.mark.parametrize(
    "text", ["token " * 3000, "t" * 5000, "a. " + "word, " * 900 + ". b. c. " * 30], ids=lambda t: t[:8]
)
def test_the_model_is_never_asked_for_more_than_it_reads(window, text):  # size-06
    class Short(Topics):
        max_tokens = 512

        def count_tokens(self, text):
            return len(text.split()) + len(text) // 100

        def embed_documents(self, texts):
            assert all(self.count_tokens(text) <= 512 for text in texts)
            return super().embed_documents(texts)

    chunks = SemanticChunker(Short("a"), 3, window=window).chunk(text)
    assert "".join("".join(texts_of(chunks)).split()) == "".join(text.split())

    class Silent(Topics):  # says nothing of its limit: then the greatest size holds
        def embed_documents(self, texts):
            assert all(len(text) <= 300 for text in texts)
            return super().embed_documents(texts)

    assert SemanticChunker(Silent("a"), 3, window=window, max_chunk_size=300).chunk(text)


def test_a_length_function_measures_the_sizes():
    text = load_corpus()["the_bell_that_waited.txt"][:8000]
    count = tokens("minilm")
    chunker = SemanticChunker(_static(), max_chunk_size=60, min_chunk_size=20, length_function=count)
    sizes = [count(chunk) for chunk in chunker.split_text(text)]
    assert max(sizes) <= 60 and len(sizes) > 10


# Arguments.


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"embeddings": None}, "embeddings=None"),
        ({"embeddings": "minilm"}, "embeddings='minilm'"),
        *(({"buffer_size": bad}, "buffer_size=.*whole number of 0 or more") for bad in (-1, 1.5, True, "1", None)),
        *(({"breakpoint_threshold_type": bad}, "breakpoint_threshold_type=") for bad in ("percent", None, 5, "")),
        *(({"breakpoint_threshold_amount": bad}, "breakpoint_threshold_amount=.*from 0 to 100") for bad in (-1, 101, "95", True, float("nan"))),
        ({"breakpoint_threshold_type": "interquartile", "breakpoint_threshold_amount": -1}, "0 or more"),
        ({"breakpoint_threshold_type": "interquartile", "breakpoint_threshold_amount": 10**400}, "0 or more"),
        ({"breakpoint_threshold_type": "standard_deviation", "breakpoint_threshold_amount": float("inf")}, "0 or more"),
        *(({name: bad}, f"{name}=.*whole number of 1 or more") for name in ("number_of_chunks", "min_chunk_size", "max_chunk_size") for bad in (0, -3, 2.0, True, "3")),
        ({"min_chunk_size": 10, "max_chunk_size": 9}, "min_chunk_size=10: must be at most max_chunk_size=9"),
        *(({"distance": bad}, "distance=") for bad in ("cos", None, 3)),
        *(({"window": bad}, "window=") for bad in ("text ", None, 3)),
        *(({"compatible": True, **more}, "compatible=True: not with") for more in ({"max_chunk_size": 9}, {"distance": "euclidean"}, {"window": "sides"}, {"length_function": tokens("minilm")})),
        ({"length_function": None}, "length_function"),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named_before_any_text_is_embedded(options, says):
    model = Topics("a")
    with pytest.raises(ValueError, match=says):
        SemanticChunker(**{"embeddings": model, **options})
    assert model.asked == []


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.array, lambda x: x > 0.5, lambda x: -x - 5], ids=range(5))
def test_a_distance_may_be_any_kind_of_number(kind):
    distance = lambda a, b: kind(float(np.abs(a - b).max()))  # noqa: E731
    chunks = SemanticChunker(Topics("cat", "tax"), 0, distance=distance, number_of_chunks=2).chunk(topics_text([3, 4]))
    assert len(chunks) == 2 and (chunks[0].text.count("cat") == 3 or kind(2) < 0)


@pytest.mark.parametrize(
    "bad", [None, float("nan"), "far", float("inf"), 1j, np.ones(2), [1], 10**400], ids=lambda bad: str(bad)[:9]
)
def test_a_distance_that_is_no_number_is_an_error(bad):
    with pytest.raises(ValueError, match="distance gave .* must give a finite number"):
        SemanticChunker(Topics("a"), distance=lambda a, b: bad).chunk("One dog. Two dogs. Three dogs.")


def test_settings_name_the_semantic_chunker():
    environ = {"splitter": "SemanticChunker", "semantic_chunker_number_of_chunks": "3"}
    chunks = chunker_from_env(environ, Topics("cat", "tax", "sea")).chunk(topics_text((4, 4, 4)))
    assert [chunk.text.count("is here") for chunk in chunks] == [4, 4, 4]
