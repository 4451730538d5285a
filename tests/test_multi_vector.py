"""Search by a chunk's own vector, its best sentence's and its neighbours'."""

import numpy as np
import pytest
from test_semantic import Topics

from chunklab import ChunkIndex, MultiVectorIndex, RecursiveChunker, Scoreboard, embeddings, load_corpus
from chunklab.chunk import Chunk

TEXTS = ["A cat. A tax. A sea.", "An oak. An oak. An oak.", "A tax. An oak. A sea.", "A sea. A sea."]


def index_of(texts=TEXTS, **weights):
    chunks = [
        Chunk(text, 100 * i, 100 * i + len(text), "d", f"d_{i}", None, i, len(texts)) for i, text in enumerate(texts)
    ]
    return MultiVectorIndex(chunks, Topics("cat", "tax", "sea", "oak"), **weights)


def order(index, query, **options):
    return [hit.chunk.index for hit in index.search(query, **options)]


def test_without_weights_it_is_the_plain_index():
    static, texts = embeddings("static"), load_corpus()
    chunks = [c for name, text in texts.items() for c in RecursiveChunker(800).chunk(text[:6000], name)]
    plain, multi = ChunkIndex(chunks, static), MultiVectorIndex(chunks, static, 0, 0)
    for query in ("Who hung the bell?", "How often must the pump be oiled?"):
        ours, theirs = multi.search(query, 10), plain.search(query, 10)
        assert [h.chunk.id for h in ours] == [h.chunk.id for h in theirs]
        assert np.allclose([h.score for h in ours], [h.score for h in theirs], atol=1e-5)


def test_one_sentence_can_speak_for_its_chunk():
    assert order(index_of(sentence_weight=1, neighbour_weight=0), "cat", k=1) == [0]
    (best, *_) = index_of(sentence_weight=1, neighbour_weight=0).search("cat")
    assert (
        best.score == pytest.approx(1) and index_of(sentence_weight=0, neighbour_weight=0).search("cat")[0].score < 0.6
    )


def test_the_scores_are_what_the_weights_say():
    index, query = index_of(sentence_weight=0.4, neighbour_weight=0.2), "oak"
    own = [0, 1, 1 / np.sqrt(3), 0]
    best = [0, 1, 1, 0]
    mixed = [0.6 * a + 0.4 * b for a, b in zip(own, best, strict=True)]
    near = [mixed[1], mixed[2], mixed[1], mixed[2]]
    wanted = [0.8 * a + 0.2 * b for a, b in zip(mixed, near, strict=True)]
    found = {hit.chunk.index: hit.score for hit in index.search(query)}
    assert found == pytest.approx(dict(enumerate(wanted)))


def test_a_neighbour_is_of_the_same_document_and_parent():
    same = [Chunk("A cat.", 0, 6, "a", "a_0", None, 0, 1), Chunk("A sea.", 0, 6, "b", "b_1", None, 1, 2)]
    index = MultiVectorIndex(same, Topics("cat", "sea"), 0, 1)
    scores = {hit.chunk.document: hit.score for hit in index.search("cat")}
    assert scores == pytest.approx({"a": 1, "b": 0}), "a chunk without a neighbour stands for it itself"


def test_filters_limits_and_empty_indexes():
    index = index_of()
    assert order(index, "oak", where=lambda c: c.index != 1)[0] == 2
    assert order(index, "oak", k=2) == [1, 2] and len(index.search("oak", min_score=0.99)) == 0
    assert MultiVectorIndex([], Topics("a")).search("a") == []
    blank = [Chunk(" ", 0, 1), Chunk("A cat.", 2, 8, "doc", "doc_1", None, 1, 2)]
    assert order(MultiVectorIndex(blank, Topics("cat"), 0.5, 0), "cat") == [1, 0]
    assert index.search_many(np.ones((70, 4), np.float32))[69][0].rank == 1


def test_it_is_kept_and_read_again(tmp_path):
    index = index_of()
    index.save(tmp_path)
    again = MultiVectorIndex.load(tmp_path, index.embeddings)
    assert [(h.chunk, h.score) for h in again.search("oak")] == [(h.chunk, h.score) for h in index.search("oak")]


def test_its_weights_are_kept(tmp_path):
    index = index_of(sentence_weight=np.float32(1), neighbour_weight=0)
    index.save(tmp_path)
    again = MultiVectorIndex.load(tmp_path, index.embeddings)
    assert (again.sentence_weight, again.neighbour_weight) == (1, 0) and "MultiVectorIndex of 4 chunks" in repr(again)
    assert [(h.chunk, h.score) for h in again.search("cat")] == [(h.chunk, h.score) for h in index.search("cat")]
    assert len(ChunkIndex.load(tmp_path, index.embeddings).search("cat")) == 4
    ChunkIndex(index.chunks, index.embeddings).save(tmp_path)
    assert MultiVectorIndex.load(tmp_path, index.embeddings).neighbour_weight == 0.3


def test_a_score_does_not_depend_on_the_queries_beside_it():
    chunks = RecursiveChunker(300).chunk(load_corpus()["the_bell_that_waited.txt"][:20_000], "a")
    twins = [Chunk("A cat sat here.", 0, 15, f"b{i}", f"b{i}_0") for i in range(40)]
    index, queries = MultiVectorIndex([*chunks, *twins], embeddings("static")), [c.text[:60] for c in chunks[:66]]
    assert index.search_many(queries) == [index.search(query) for query in queries]
    assert [hit.chunk.document for hit in index.search("the cat", 40)] == [f"b{i}" for i in range(40)]


@pytest.mark.parametrize("bad", [None, 3, "MultiVectorIndex"], ids=str)
def test_what_is_no_index_is_named_before_any_work(bad):
    with pytest.raises(ValueError, match="index=.*must be ChunkIndex"):
        Scoreboard(embeddings("static")).add("x", RecursiveChunker(600), index=bad)


@pytest.mark.parametrize("name", ["sentence_weight", "neighbour_weight"])
@pytest.mark.parametrize("bad", [-0.1, 1.1, True, None, "half", float("nan")], ids=str)
def test_a_bad_weight_is_named(name, bad):
    model = Topics("a")
    with pytest.raises(ValueError, match=f"{name}=.*from 0 to 1"):
        MultiVectorIndex([Chunk("a", 0, 1)], model, **{name: bad})
    assert model.asked == []


def test_the_scoreboard_searches_with_it():
    board = Scoreboard(embeddings("static"))
    plain = board.add("recursive", RecursiveChunker(600))
    multi = board.add("recursive, sentences", RecursiveChunker(600), index=MultiVectorIndex)
    assert len(plain.sizes) == len(multi.sizes) and plain.scores["recall"].mean() != multi.scores["recall"].mean()
    assert multi.calls.embedded > 2 * plain.calls.embedded
