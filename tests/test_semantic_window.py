"""Semantic windows: neighbours that are alike stay together, whatever the order in which one looks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_semantic import Topics, topics_text

from chunklab import SemanticWindowChunker
from chunklab.chunkers.semantic_window import alike, joined_groups
from chunklab.models.vectors import unit

DISTANCES = ["cosine", "euclidean", "manhattan", lambda a, b: float(np.abs(a - b).max())]


def joined_by_looking_at_all(vectors, threshold, distance):
    """The same rule, slowly: join the two neighbours that are most alike, the first of equals, as long as any are."""
    groups = [(i, i) for i in range(len(vectors))]
    while len(groups) > 1:
        means = np.array([vectors[a : b + 1].mean(axis=0) for a, b in groups])
        likeness = alike(means[:-1], means[1:], distance)
        best = int(likeness.argmax())
        if likeness[best] < threshold:
            break
        groups[best : best + 2] = [(groups[best][0], groups[best + 1][1])]
    return groups


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 25),
    threshold=st.floats(0, 1),
    distance=st.sampled_from(DISTANCES[:3]),
)
def test_the_most_alike_are_joined_first(seed, count, threshold, distance):
    vectors = np.random.default_rng(seed).normal(size=(count, 2)).astype(np.float32)
    assert joined_groups(vectors, threshold, distance) == joined_by_looking_at_all(
        vectors.astype(np.float64), threshold, distance
    )


@pytest.mark.parametrize("distance", DISTANCES)
def test_every_distance_is_the_right_way_round(distance):
    near, far = np.array([[1.0, 0.1]]), np.array([[-0.2, 1.0]])
    here = np.array([[1.0, 0.0]])
    assert alike(here, here, distance) == 1 and alike(here, near, distance) > alike(here, far, distance)
    text = topics_text((6, 4, 8))
    chunks = SemanticWindowChunker(Topics("cat", "tax", "sea"), 2, 0.8, distance).chunk(text)
    assert [chunk.text.count("is here") for chunk in chunks] == [6, 4, 8]


@pytest.mark.parametrize("threshold", [0, 1])
def test_the_extremes(threshold):
    text, model = topics_text((4, 4)), Topics("cat", "tax", replace={})
    count = len(SemanticWindowChunker(model, 1, threshold).chunk(text))
    assert count == {0: 1, 1: 2}[threshold]


@pytest.mark.parametrize("distance", DISTANCES)
def test_what_is_the_same_is_joined_at_the_highest_threshold(distance):
    vectors = np.tile(np.random.default_rng(3).normal(size=384).astype(np.float32), (40, 1))
    assert joined_groups(vectors, 1, distance) == [(0, 39)]


def test_a_negative_distance_is_an_error_but_not_its_rounding():
    here = np.ones((1, 2))
    assert alike(here, here, lambda a, b: -1e-9) == 1
    for far in (-1, -0.5, -5):
        with pytest.raises(ValueError, match=f"distance gave {far}.*: must give 0 or more"):
            SemanticWindowChunker(Topics("a"), 1, 0.5, lambda a, b, far=far: far).chunk("One dog. Two dogs.")


def test_a_change_back_is_a_chunk_of_its_own():
    chunks = SemanticWindowChunker(Topics("cat", "tax"), 1, 0.9).chunk(topics_text((3, 3, 3), ("cat", "tax")))
    assert len(chunks) == 3, "groups are contiguous, though the first and the last are alike"


@pytest.mark.parametrize("text", ["", "  ", "One.", "One two. Three four."])
def test_few_sentences(text):
    chunks = SemanticWindowChunker(Topics("one"), 10).chunk(text)
    assert [chunk.text for chunk in chunks] == ([text] if text.strip() else [])


def test_a_window_is_no_longer_than_the_model_reads():
    class Short(Topics):
        max_tokens = 30

        def count_tokens(self, text):
            return len(text.split())

        def embed_documents(self, texts):
            assert all(len(text.split()) <= 30 for text in texts)
            return super().embed_documents(texts)

    text = topics_text((30, 30)) + " word" * 100
    chunks = SemanticWindowChunker(Short("cat", "tax"), 10).chunk(text)
    assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())


@pytest.mark.parametrize("bad", [-0.1, 1.1, True, "0.9", None, float("nan")], ids=str)
def test_a_bad_threshold_is_named(bad):
    with pytest.raises(ValueError, match="threshold=.*from 0 to 1"):
        SemanticWindowChunker(Topics("a"), threshold=bad)


def test_vectors_may_be_of_any_length():
    vectors = np.random.default_rng(3).normal(size=(12, 4))
    assert joined_groups(unit(vectors), 0.3) == joined_groups(unit(5 * vectors), 0.3)
