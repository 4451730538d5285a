"""Cluster chunking: the best division, against all divisions, and the published code's fault avoided."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_semantic import Topics, topics_text

from chunklab import ClusterChunker, embeddings, load_corpus, tokens
from chunklab.chunkers.cluster import best_blocks, block_values, mean_similarity
from chunklab.models.vectors import unit


def worth(vectors, blocks):
    """What a division is worth, counted pair by pair."""
    cosines = vectors @ vectors.T
    mean = cosines[np.triu_indices(len(vectors), 1)].mean() if len(vectors) > 1 else 0
    return sum(2 * (cosines[i, j] - mean) for a, b in blocks for i, j in combinations(range(a, b + 1), 2))


def divisions(count):
    for cuts in range(2 ** (count - 1)):
        edges = [0, *(i + 1 for i in range(count - 1) if cuts >> i & 1), count]
        yield [(a, b - 1) for a, b in zip(edges, edges[1:], strict=False)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 9), size=st.integers(1, 9))
def test_no_division_is_worth_more(seed, count, size):
    rng = np.random.default_rng(seed)
    vectors, lengths = unit(rng.normal(size=(count, 3))), rng.integers(1, 4, count)
    blocks = best_blocks(2 * block_values(vectors, lengths, size))
    allowed = [d for d in divisions(count) if all(a == b or lengths[a : b + 1].sum() <= size for a, b in d)]
    assert blocks in allowed
    assert worth(vectors, blocks) == pytest.approx(max(worth(vectors, d) for d in allowed), abs=1e-4)


def test_the_mean_is_that_of_all_pairs():
    vectors = unit(np.random.default_rng(1).normal(size=(40, 7)))
    cosines = vectors @ vectors.T
    assert mean_similarity(vectors) == pytest.approx(cosines[np.triu_indices(40, 1)].mean(), abs=1e-6)
    assert mean_similarity(vectors[:1]) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "vectors", [np.eye(30), np.ones((30, 1)), np.zeros((30, 4)), -np.eye(30)], ids=["apart", "one", "zero", "minus"]
)
def test_where_no_block_is_worth_anything_none_is_too_long(vectors):
    # In the published code a piece whose blocks are all worth nothing points back to the beginning of the text.
    blocks = best_blocks(block_values(unit(vectors), [1] * 30, 4))
    assert [a for a, _ in blocks] == [0, *(b + 1 for _, b in blocks[:-1])] and blocks[-1][1] == 29
    assert all(b - a < 4 for a, b in blocks)


@pytest.mark.parametrize("size", [60, 100, 400])
def test_chunks_keep_their_limit_in_tokens(size):
    count = tokens("cl100k")
    chunks = ClusterChunker(embeddings("static"), size, 30).chunk(load_corpus()["users_meeting.txt"])
    assert max(count(chunk.text) for chunk in chunks) <= size and len(chunks) > 10


@pytest.mark.parametrize("length", [len, lambda text: len(text.split()), lambda text: 1], ids=range(3))
def test_what_is_all_the_same_makes_long_chunks_within_the_limit(length):
    text, limit = "The same thing again. " * 400, 400
    chunks = ClusterChunker(Topics("same"), limit, 2, length).split_text(text)
    assert "".join("".join(chunks).split()) == "".join(text.split())
    assert max(map(length, chunks)) <= limit and len(chunks) <= 1 + 2 * length(text) / limit


def test_it_cuts_where_the_subject_changes():
    text = topics_text((4, 3, 5))
    chunks = ClusterChunker(Topics("cat", "tax", "sea"), 200, 25, len).chunk(text)
    assert [chunk.text.count("is here") for chunk in chunks] == [4, 3, 5]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"embeddings": "static"}, "embeddings='static'"),
        ({"max_chunk_size": 0}, "max_chunk_size=0"),
        ({"piece_size": 1.5}, "piece_size=1.5"),
        ({"max_chunk_size": 10, "piece_size": 11}, "piece_size=11: must be at most max_chunk_size=10"),
        ({"length_function": 3}, "length_function=3"),
    ],
)
def test_a_bad_argument_is_named(options, says):
    with pytest.raises(ValueError, match=says):
        ClusterChunker(**{"embeddings": Topics("a"), **options})
