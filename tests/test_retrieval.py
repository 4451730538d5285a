"""The index finds what is nearest, in a settled order, follows its documents, and is kept on disk without a pickle."""

import functools
import hashlib
import json
import multiprocessing
import os
import pickle
import random
import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from chunklab import MultiVectorIndex, index_file
from chunklab.chunk import Chunk
from chunklab.queries import model_name
from chunklab.retrieval import ChunkIndex


class Fixed(Embeddings):
    """Vectors by text, and a record of what was asked for."""

    def __init__(self, vectors, name="fixed"):
        self.vectors, self.name, self.asked = vectors, name, []

    def embed_documents(self, texts):
        self.asked += texts
        return [list(map(float, self.vectors[text])) for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def chunks_of(*texts, document="a.md", **metadata):
    return [
        Chunk(text, 10 * i, 10 * i + len(text), document, f"{document}_{i}", None, i, len(texts), dict(metadata))
        for i, text in enumerate(texts)
    ]


def found(hits):
    return [hit.chunk.text for hit in hits]


COMPASS = {"east": [2, 0], "north-east": [1, 1], "north": [0, 3], "west": [-1, 0], "nowhere": [0, 0], "q": [5, 0]}


def test_vectors_that_are_there_are_taken_whatever_their_length_and_later_chunks_embedded():
    model = Fixed(COMPASS)
    index = ChunkIndex(chunks_of("north", "west"), model, np.array([[3, 0], [0, 2]]))
    assert model.asked == [] and index.vectors.tolist() == [[1, 0], [0, 1]] and index.vectors.dtype == np.float32
    index.add(chunks_of("east", document="b.md"))
    assert model.asked == ["east"] and found(index.search("q", k=3)) == ["north", "east", "west"]
    assert len(ChunkIndex([], model, np.zeros((0, 2)))) == 0


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((3, 2)), "vectors has 3 rows: must have one for each of the 2 chunks"),
        (np.ones((2, 2, 2)), r"vectors is an array of float64 of shape \(2, 2, 2\): must be numbers \(chunks, dim"),
        ("static", "vectors is an array of <U6"),
        (np.array([[1, np.nan], [1, 1]]), "vectors holds a number that is not finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(vectors, message):
    with pytest.raises(ValueError, match=message):
        ChunkIndex(chunks_of("north", "west"), Fixed(COMPASS), vectors)


def test_hits_come_best_first_with_cosines_and_ranks():
    hits = ChunkIndex(chunks_of("west", "north", "east", "north-east"), Fixed(COMPASS)).search("q", k=3)
    assert found(hits) == ["east", "north-east", "north"]
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.5**0.5, 0], abs=1e-6)


def test_fewer_chunks_than_k_give_fewer_hits_ret_04():
    index = ChunkIndex(chunks_of("east", "north"), Fixed(COMPASS))
    assert found(index.search("q", k=5)) == ["east", "north"]
    assert found(index.search("q", k=5, where={"id": "a.md_1"})) == ["north"]


def test_an_empty_index_finds_nothing_and_asks_no_model():
    model = Fixed(COMPASS)
    index = ChunkIndex([], model)
    assert len(index) == 0 and index.search("q") == [] and index.search_many(["q", "q"]) == [[], []]
    assert model.asked == []


@pytest.mark.parametrize("length", [10.0, 1.0, 1e-6, 1e-30, 1e30])
def test_scores_are_cosines_whatever_the_length_of_the_vectors_ret_05(length):
    model = Fixed({"a": [length, 0], "same": [length, 0], "opposite": [0, -length], "against": [-length, 0]})
    index = ChunkIndex(chunks_of("a"), model)
    assert [index.search(query)[0].score for query in ("same", "opposite", "against")] == pytest.approx([1, 0, -1])


def test_a_zero_vector_is_never_above_a_real_match_sem_05():
    model = Fixed({"zero": [0, 0], "one": [1, 0], "half": [0.5, 0.5], "up": [0, 1], "q": [1, 0]})
    index = ChunkIndex(chunks_of("zero", "half", "one"), model)
    assert found(index.search("q", k=2)) == ["one", "half"]
    assert index.search("q", k=3)[2].score == 0
    # Nor above one that is equal to it: orthogonal, but real.
    assert found(ChunkIndex(chunks_of("zero", "up"), model).search("q")) == ["up", "zero"]


def test_a_query_without_direction_finds_nothing():
    assert ChunkIndex(chunks_of("east", "nowhere"), Fixed(COMPASS)).search("nowhere") == []


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_vector_that_is_not_finite_is_an_error(bad):
    model = Fixed({"a": [1, 0], "b": [bad, 0]})
    with pytest.raises(ValueError):
        ChunkIndex(chunks_of("a", "b"), model)
    index = ChunkIndex(chunks_of("a"), model)
    with pytest.raises(ValueError):
        index.search("b")
    with pytest.raises(ValueError, match="not finite"):
        index.search_many(np.array([[bad, 0.0]]))
    with pytest.raises(ValueError, match="not finite"):
        index.search_many(np.array([[1e300, 0.0]]))


def test_a_blank_chunk_is_not_embedded():
    model = Fixed(COMPASS)
    index = ChunkIndex(chunks_of("east", " \n"), model)
    assert model.asked == ["east"] and found(index.search("q")) == ["east", " \n"]
    assert ChunkIndex(chunks_of(" "), model).search("q") == []


def test_keys_must_be_unique_and_hold_the_document_ret_01():
    model = Fixed({"Same notice.": [1, 0]})
    both = chunks_of("Same notice.") + chunks_of("Same notice.", document="b.md")
    assert [hit.chunk.document for hit in ChunkIndex(both, model).search("Same notice.")] == ["a.md", "b.md"]
    with pytest.raises(ValueError, match="holds 2 with document 'a.md' and id 'a.md_0'.*unique"):
        ChunkIndex(chunks_of("Same notice.") * 2, model)
    with pytest.raises(ValueError, match="chunks holds a str"):
        ChunkIndex(["Same notice."], model)
    for wrong in (None, both[0], 3):
        with pytest.raises(ValueError, match="chunks=.*must be a list of chunks"):
            ChunkIndex(wrong, model)
    for name in ("text", "document", "id"):
        for wrong in (None, 5, ["x"], b"x"):
            with pytest.raises(ValueError, match="chunks holds Chunk.*its text, document and id must be of type str"):
                ChunkIndex([replace(both[0], **{name: wrong})], model)
    assert model.asked == ["Same notice."] * 3, "nothing is embedded before"
    for wrong in (None, "static", Fixed):
        for chunks in ([], both):
            with pytest.raises(ValueError, match="embeddings=.*must have embed_documents"):
                ChunkIndex(chunks, wrong)


def test_another_dimension_names_both_dimensions_and_models_ret_06():
    index = ChunkIndex(chunks_of("east"), Fixed(COMPASS, "flat"))
    index.embeddings = Fixed({"q": [1, 0, 0]}, "deep")
    with pytest.raises(ValueError, match=r"query has 3 dimensions \(deep\), the index has 2 \(flat\)"):
        index.search("q")
    with pytest.raises(ValueError, match=r"3 dimensions \(the vectors given\), the index has 2 \(flat\)"):
        index.search_many(np.ones((1, 3)))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"k": 0}, "k=0"),
        ({"k": 2.5}, "k=2.5"),
        ({"k": True}, "k=True"),
        ({"k": None}, "k=None"),
        ({"min_score": 60}, "min_score=60.*from -1 to 1"),
        ({"min_score": float("nan")}, "min_score=nan"),
        ({"min_score": "0.5"}, "min_score='0.5'"),
        ({"min_score": True}, "min_score=True"),
        ({"where": "a.md"}, "where='a.md'"),
        ({"where": lambda chunk: np.ones(2)}, "where=.*must be true or false of each chunk"),
        ({"where": lambda: True}, "where=.*must be true or false of each chunk"),
        ({"where": {"index": np.zeros(2)}}, "where=.*must be true or false of each chunk"),
        ({"where": {"documnet": "a.md"}}, "'documnet', which no chunk has; there are document, end, id"),
        ({"query": "  "}, "query='  '.*blank"),
        ({"query": None}, "query=None"),
        ({"query": ["q"]}, r"query=\['q'\]"),
    ],
)
def test_bad_arguments_are_named(arguments, says):
    index = ChunkIndex(chunks_of("east"), Fixed(COMPASS))
    with pytest.raises(ValueError, match=says):
        index.search(**({"query": "q"} | arguments))


def test_many_queries_need_a_list():
    index = ChunkIndex(chunks_of("east"), Fixed(COMPASS))
    assert index.search_many([]) == []
    for queries in ("q", None, 3):
        with pytest.raises(ValueError, match="queries=.*must be a list"):
            index.search_many(queries)
    with pytest.raises(ValueError, match="as a numpy array"):
        index.search_many([[1.0, 0.0]])
    for queries in (np.array(["q"]), np.array(3.0), np.ones((1, 1, 2)), np.array([[None, 1]]), np.ones((1, 2)) * 1j):
        with pytest.raises(ValueError, match=r"queries is an array of .*must be numbers"):
            index.search_many(queries)
    one = index.search("q")
    assert index.search_many(query for query in ["q", "q"]) == [one, one]
    assert index.search_many(np.array([5, 0])) == index.search_many(np.array([[5.0, 0.0]])) == [one]
    assert index.search("q", k=np.int64(1)) == one


def test_min_score_and_where_come_before_the_cut_to_k():
    far = chunks_of("north-east", "north", "west", document="far.md", lang="de")
    index = ChunkIndex(chunks_of(*["east"] * 30) + far, Fixed(COMPASS))
    assert found(index.search("q", k=2, where={"document": "far.md"})) == ["north-east", "north"]
    assert found(index.search("q", k=2, where={"lang": "de", "index": 2})) == ["west"]
    assert found(index.search("q", k=2, where=lambda chunk: chunk.text.startswith("n"))) == ["north-east", "north"]
    assert found(index.search("q", k=4, min_score=0.5, where={"lang": "de"})) == ["north-east"]
    assert index.search("q", where=lambda chunk: False) == []
    assert index.search("q", min_score=1.0, where={"lang": "de"}) == []


@pytest.mark.parametrize("kind", [ChunkIndex, MultiVectorIndex])
@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=2, max_size=9).filter(any))
def test_what_is_the_same_scores_the_highest_there_is(kind, vector):
    model = Fixed({"same": vector, "q": vector, "against": [-x for x in vector]})
    index = kind(chunks_of("same", "against", document="a"), model)
    if kind is MultiVectorIndex:
        index.neighbour_weight = 0.0
    assert found(index.search("q", min_score=1)) == ["same"] and len(index.search("q", min_score=-1)) == 2


def test_equal_scores_come_in_the_order_of_the_index():
    index = ChunkIndex(chunks_of(*["north"] * 50, *["east"] * 100, "q"), Fixed(COMPASS))
    assert [hit.chunk.index for hit in index.search("q", k=7)] == list(range(50, 57))


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=60), st.integers(1, 12), st.data())
def test_search_is_the_plain_definition(vectors, k, data):
    query = data.draw(st.sampled_from(vectors + [(1, 2, -2)]))
    kept = data.draw(st.sets(st.integers(0, len(vectors) - 1)))
    model = Fixed({str(i): vector for i, vector in enumerate(vectors)} | {"query": query})
    index = ChunkIndex(chunks_of(*map(str, range(len(vectors)))), model)

    def cosine(place):
        lengths = np.linalg.norm(vectors[place]) * np.linalg.norm(query)
        return float(np.dot(vectors[place], query) / lengths) if lengths else 0.0

    places = [hit.chunk.index for hit in index.search("query", k=k, where=lambda chunk: chunk.index in kept)]
    best = sorted((cosine(place) for place in kept), reverse=True)[:k] if any(query) else []
    assert [cosine(place) for place in places] == pytest.approx(best, abs=1e-6)
    # Of equal vectors the first ones are found, in their order.
    for vector in set(vectors):
        equal = [place for place in sorted(kept) if vectors[place] == vector]
        there = [place for place in places if vectors[place] == vector]
        assert there == equal[: len(there)]


def test_many_queries_find_what_one_finds():
    rng = np.random.default_rng(1)
    model = Fixed({str(i): rng.normal(size=24) for i in range(300)} | {f"q{i}": rng.normal(size=24) for i in range(70)})
    index = ChunkIndex(chunks_of(*map(str, range(300))), model)
    queries = [f"q{i}" for i in range(70)]
    many = index.search_many(queries, k=9)
    assert many == [index.search(query, k=9) for query in queries]
    assert index.search_many(np.array([model.vectors[query] for query in queries], dtype=np.float32), k=9) == many


def test_a_query_is_embedded_as_a_query():
    class Asymmetric(Fixed):
        def embed_query(self, text):
            return [0.0, 1.0]

    assert found(ChunkIndex(chunks_of("east", "north"), Asymmetric(COMPASS)).search("east", k=1)) == ["north"]


@pytest.mark.parametrize(
    ("attribute", "name"), [("name", "a"), ("model", "b"), ("model_name", "c"), ("other", "Fixed")]
)
def test_a_model_is_named_by_what_it_has(attribute, name):
    model = Fixed({}, name=None)
    setattr(model, attribute, name)
    assert model_name(model) == name


# Documents that change.


class Counting(Fixed):
    """A vector for any text, the same in each process."""

    def __init__(self):
        super().__init__({}, "counting")

    def embed_documents(self, texts):
        self.asked += texts
        return [[1.0 + len(text), 1.0 + text.count("1"), 1.0 + text.count("e")] for text in texts]


def same(one, other):
    """Whether two indexes hold and find the same."""
    assert one.chunks == other.chunks and np.array_equal(one.vectors, other.vectors)
    for query in ("q", "e1", "eleven"):
        assert one.search(query, k=7) == other.search(query, k=7)
    return True


@pytest.mark.parametrize("kind", [ChunkIndex, MultiVectorIndex])
def test_updating_one_document_of_a_hundred_embeds_only_its_new_chunks(kind):
    model = Counting()
    documents = {f"d{i}": chunks_of(f"one {i}.", f"two {i}.", f"three {i}.", document=f"d{i}") for i in range(100)}
    index = kind([c for chunks in documents.values() for c in chunks], model)
    model.asked.clear()
    documents["d41"] = chunks_of("one 41.", "two and a half.", "three 41.", "one 7.", document="d41")
    index.update("d41", documents["d41"])
    assert set(model.asked) == {"two and a half."}, "one 7. is another document's, and embedded already"
    assert len(model.asked) == (2 if kind is MultiVectorIndex else 1), "as a chunk, and as a sentence"
    assert same(index, kind([c for chunks in documents.values() for c in chunks], Counting()))
    model.asked.clear()
    index.update("d41", documents["d41"])
    index.remove("d99")
    assert model.asked == [] and len(index) == 298


@pytest.mark.parametrize("kind", [ChunkIndex, MultiVectorIndex])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from(["e", "ee1", "e. 1.", " "]), max_size=3)), max_size=8
    )
)
def test_a_changed_index_is_what_a_new_one_would_be(kind, steps):
    index, documents = kind([], Counting()), {}
    for document, texts in steps:
        chunks = chunks_of(*texts, document=document)
        if texts or document not in documents:
            index.update(document, chunks)
        else:
            index.remove(document)
        documents[document] = chunks
        documents = {name: kept for name, kept in documents.items() if kept}
    fresh = kind([c for chunks in documents.values() for c in chunks], Counting())
    assert index.chunks == fresh.chunks and (not fresh.vectors.size or same(index, fresh))


def test_chunks_are_added_at_the_end_and_updated_in_their_place():
    model = Fixed(COMPASS)
    index = ChunkIndex(chunks_of("east") + chunks_of("east", document="b.md"), model)
    index.add(chunk for chunk in chunks_of("east", "north", document="c.md"))
    index.update("a.md", chunks_of("east", "west"))
    assert [hit.chunk.document for hit in index.search("q", k=3)] == ["a.md", "b.md", "c.md"]
    index.update("d.md", chunks_of("q", document="d.md"))
    index.update("b.md", [])
    assert [c.document for c in index.chunks] == ["a.md", "a.md", "c.md", "c.md", "d.md"]
    assert model.asked == ["east", "east", "north", "west", "q", "q"], "a query is embedded too"


def test_a_change_that_fails_changes_nothing():
    index = ChunkIndex(chunks_of("east"), Fixed(COMPASS))
    before = (index.chunks, index.search("q"))
    bad = {
        "holds 2 with document 'a.md' and id 'a.md_0'": lambda: index.add(chunks_of("north")),
        "chunks holds a str": lambda: index.add(["north"]),
        "chunks=None": lambda: index.update("a.md", None),
        "holds some of document 'a.md': must be of 'b.md' alone": lambda: index.update("b.md", chunks_of("north")),
        "document='b.md': the index has no chunk of it": lambda: index.remove("b.md"),
        "document=3: must be a str": lambda: index.update(3, []),
    }
    for says, change in bad.items():
        with pytest.raises(ValueError, match=says):
            change()
    with pytest.raises(KeyError):
        index.update("a.md", chunks_of("a text that the model does not know"))
    index.embeddings = Fixed({"up": [0, 0, 1]}, "deep")
    with pytest.raises(ValueError, match=r"the model gives 3 dimensions, the index has 2 \(fixed\)"):
        index.add(chunks_of("up", document="b.md"))
    index.embeddings = Fixed(COMPASS)
    assert (index.chunks, index.search("q")) == before


def test_threads_may_search_while_one_changes_the_index():
    from concurrent.futures import ThreadPoolExecutor

    few, many = chunks_of("east", document="x"), chunks_of(*["east"] * 300, document="x")
    index = ChunkIndex(few, Fixed(COMPASS))

    def change():
        for turn in range(100):
            index.update("x", few if turn % 2 else many)

    with ThreadPoolExecutor(4) as pool:
        changing = pool.submit(change)
        sizes = set()
        while not changing.done():
            found = list(pool.map(lambda _: index.search("q", k=500), range(8)))
            sizes |= {(len(hits), len({hit.chunk.id for hit in hits}), hits[0].chunk.total) for hits in found}
        changing.result()
    assert sizes <= {(1, 1, 1), (300, 300, 300)}


def test_all_scores_are_what_a_search_finds():
    index = ChunkIndex(chunks_of("west", "north", "nowhere", "east"), Fixed(COMPASS))
    assert index.scores(["q", "nowhere"]).tolist() == [[-1, 0, 0, 1], [0, 0, 0, 0]]
    assert index.scores(np.array([[0, 2]])).tolist() == [[0, 1, 0, 0]]
    assert index.scores([]).shape == (0, 4) and ChunkIndex([], Fixed(COMPASS)).scores(["q"]).shape == (1, 0)


@pytest.fixture
def saved(tmp_path):
    index = ChunkIndex(chunks_of("west", "north", "east", lang="en", spans=[[0, 4]]), Fixed(COMPASS))
    index.save(tmp_path / "index")
    return tmp_path / "index"


def test_an_index_comes_back_as_it_was(saved):
    model = Fixed(COMPASS)
    index = ChunkIndex.load(saved, model)
    assert model.asked == [] and len(index) == 3
    assert found(index.search("q", k=2)) == ["east", "north"]
    assert index.chunks[0].metadata == {"lang": "en", "spans": [[0, 4]]}
    assert index.chunks == chunks_of("west", "north", "east")
    assert sorted(path.suffix for path in saved.iterdir() if path.name != ".lock") == [".faiss", ".json"]


@pytest.mark.parametrize(
    "texts", [[], ["nowhere"], ["\ud835 lone surrogate", "naïve 鐘\u2028\x00"], ["two \ud835\udc00 halves"]]
)
def test_unusual_indexes_are_kept_too(tmp_path, texts):
    model = Fixed(COMPASS | {text: [1, 1] for text in texts[:2] if text not in COMPASS})
    ChunkIndex(chunks_of(*texts), model).save(tmp_path / "new" / "näme")
    index = ChunkIndex.load(tmp_path / "new" / "näme", model)
    assert [chunk.text for chunk in index.chunks] == texts
    assert len(index.search("q")) == len(texts)


ANY = st.text(st.characters(exclude_categories=()))  # halves of surrogate pairs too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(ANY, parts, max_size=3),
)


@given(st.lists(ANY | st.sampled_from(["", " \n"]), max_size=3), JSON)
def test_whatever_json_can_hold_comes_back_as_it_was(tmp_path_factory, texts, value):
    folder, index = tmp_path_factory.mktemp("index"), ChunkIndex(chunks_of(*texts, value=value), Counting())
    for _ in range(2):  # and once more into the same folder
        index.save(folder)
        index = ChunkIndex.load(folder, Counting())
        assert index.chunks == chunks_of(*texts) and all(chunk.metadata == {"value": value} for chunk in index.chunks)


def test_another_model_is_refused(saved):
    with pytest.raises(ValueError, match=r"built with fixed \(2 dimensions\), not with other"):
        ChunkIndex.load(saved, Fixed(COMPASS, "other"))


def test_nothing_is_ever_unpickled_sec_01(saved, tmp_path):
    marker = tmp_path / "marker"

    class Malicious:
        def __reduce__(self):
            return os.system, (f'"{sys.executable}" -c "open({str(marker)!r}, chr(119))"',)

    for name in ("index.pkl", "index.faiss"):
        (saved / name).write_bytes(pickle.dumps(Malicious()))
    assert found(ChunkIndex.load(saved, Fixed(COMPASS)).search("q", k=1)) == ["east"]
    (saved / "index.json").write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match="damaged"):
        ChunkIndex.load(saved, Fixed(COMPASS))
    assert not marker.exists()


def test_a_missing_or_half_index_is_named(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match="no index"):
        ChunkIndex.load(tmp_path / "nowhere", Fixed(COMPASS))
    next(saved.glob("*.faiss")).unlink()
    with pytest.raises(FileNotFoundError, match="half of the index"):
        ChunkIndex.load(saved, Fixed(COMPASS))


@pytest.mark.parametrize("suffix", [".faiss", ".json"])
@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_damaged_index_is_refused(saved, suffix, cut):
    path = next(saved.glob("*" + suffix))
    data = path.read_bytes()
    for damaged in (data[:cut], data[:cut] + bytes([data[cut] ^ 1]) + data[cut:][1:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            ChunkIndex.load(saved, Fixed(COMPASS))


def rewrite(folder, **changes):
    """Change index.json and give it a right checksum, as somebody who means harm would."""
    content = json.loads((folder / "index.json").read_bytes())
    del content["sha256"]
    content |= changes
    content["sha256"] = index_file._sha(index_file._as_json(content))
    (folder / "index.json").write_bytes(index_file._as_json(content))


@pytest.mark.parametrize(
    "name", ["../outside.faiss", "/etc/hostname", "a/../../b.faiss", "ok\x00.faiss", "..\\win.faiss", "index.json", ""]
)
def test_a_name_that_leads_outside_is_refused_sec_02(saved, name):
    (saved.parent / "outside.faiss").write_bytes(next(saved.glob("*.faiss")).read_bytes())
    rewrite(saved, vectors=name)
    with pytest.raises(ValueError, match="not opened"):
        ChunkIndex.load(saved, Fixed(COMPASS))


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege on Windows")
def test_a_link_that_leads_outside_is_refused_sec_02(saved):
    for inside in (next(saved.glob("*.faiss")), saved / "index.json"):
        outside = saved.parent / "outside"
        inside.rename(outside)
        inside.symlink_to(outside)
        with pytest.raises(ValueError, match="not opened"):
            ChunkIndex.load(saved, Fixed(COMPASS))
        outside.replace(inside)
    (saved.parent / "link").symlink_to(saved)
    assert len(ChunkIndex.load(saved.parent / "link", Fixed(COMPASS))) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 2},
        {"dimension": 3},
        {"chunks": [{"colour": 1}] * 3},
        {"vectors": hashlib.sha256(b"").hexdigest() + ".faiss"},
        {"model": 7},
        {"format": 2},
        {"format": None},
    ],
)
def test_contents_that_do_not_fit_are_refused(saved, changes):
    (saved / f"{hashlib.sha256(b'').hexdigest()}.faiss").touch()
    rewrite(saved, **changes)
    with pytest.raises(ValueError, match="damaged"):
        ChunkIndex.load(saved, Fixed(COMPASS))


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"null", b'"x"', b"{}", b"\xff\xfe{", b"\x80\x04K\x01.", b"[" * 100_000, b'{"format": NaN}'],
    ids=lambda c: ascii(c[:9]),
)
def test_a_file_of_another_is_refused(saved, content):
    (saved / "index.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"index.json is damaged .*build the index anew"):
        ChunkIndex.load(saved, Fixed(COMPASS))


@pytest.mark.parametrize("step", ["vectors", "json"])
def test_a_crash_while_saving_leaves_the_old_index_whole(saved, monkeypatch, step):
    (saved / "notes.txt").write_text("mine")
    write, done = index_file._write, []

    def crash(path, data):
        if path.suffix == (".faiss" if step == "vectors" else ".json"):
            (path.parent / (path.name + ".1.tmp")).write_bytes(data[: len(data) // 2])
            raise OSError("disk full")
        write(path, data)
        done.append(path)

    new = ChunkIndex(chunks_of("north-east", "east"), Fixed(COMPASS))
    with monkeypatch.context() as patch:
        patch.setattr(index_file, "_write", crash)
        with pytest.raises(OSError, match="disk full"):
            new.save(saved)
    assert len(ChunkIndex.load(saved, Fixed(COMPASS))) == 3
    new.save(saved)
    assert len(ChunkIndex.load(saved, Fixed(COMPASS))) == 2
    assert len(list(saved.glob("*.faiss"))) == 1 and (saved / "notes.txt").read_text() == "mine"


ITSELF = []
ITSELF.append(ITSELF)
DEEP = functools.reduce(lambda inner, _: [inner], range(100_000), 1)


@pytest.mark.parametrize(
    "value",
    [{"a"}, b"a", np.int64(1), ITSELF, DEEP, {1: "a"}, [({"x": {None: 1}},)], {"1": 0, 1: 1}],
    ids=lambda v: f"{v!r:.9}" if v is not DEEP else "deep",
)
def test_metadata_that_json_cannot_hold_are_an_error_and_write_nothing(tmp_path, value):
    index = ChunkIndex(chunks_of("east", value=value), Fixed(COMPASS))
    with pytest.raises(ValueError, match="metadata cannot be saved"):
        index.save(tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("folder", [None, 3, b"index", ["index"]], ids=str)
def test_what_is_no_folder_is_named(folder):
    index = ChunkIndex(chunks_of("east"), Fixed(COMPASS))
    for work in (index.save, lambda folder: ChunkIndex.load(folder, index.embeddings)):
        with pytest.raises(ValueError, match=r"folder=.*must be a path"):
            work(folder)


def test_many_may_save_and_load_one_folder_at_once(saved):
    from concurrent.futures import ThreadPoolExecutor

    indexes = [ChunkIndex(chunks_of(*list(COMPASS)[:size]), Fixed(COMPASS)) for size in (2, 3, 4)]

    def work(turn):
        if turn % 2:
            indexes[turn % 3].save(saved)
        return len(ChunkIndex.load(saved, Fixed(COMPASS)))

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(work, range(60))) <= {2, 3, 4}
    assert len(list(saved.glob("*.faiss"))) == 1


def saving(folder, indexes):
    """A process that saves these indexes into a folder, in turn, until it is killed."""

    def work():
        while True:
            for index in indexes:
                index.save(folder)

    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    return process


def killed(process):
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "it was at work until then"


needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot safely be forked")
SIZES = {1, 40, 4000}


@pytest.fixture(scope="module")
def indexes():
    model = Counting()
    return [ChunkIndex(chunks_of(*[f"text {i} " * 20 for i in range(size)]), model) for size in sorted(SIZES)]


def dies_while_saving(index, folder, step, monkeypatch):
    """Save in a process of its own that kills itself at its n-th doing in the folder; whether it came so far."""
    left = [step]

    def doing(event, arguments):
        if event in ("open", "os.rename", "os.remove", "fsync") and str(folder) in str(arguments[0]):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    def work():
        fsync = os.fsync
        monkeypatch.setattr(index_file.os, "fsync", lambda file: (doing("fsync", [folder]), fsync(file)))
        sys.addaudithook(doing)
        index.save(folder)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@needs_fork
def test_a_process_that_is_killed_while_it_saves_loses_nothing(tmp_path, indexes, monkeypatch):
    old, new, last = indexes
    old.save(tmp_path)
    found, halves, step = [], 0, 1
    while dies_while_saving(new, tmp_path, step, monkeypatch):
        index = ChunkIndex.load(tmp_path, Counting())
        found.append(len(index) == len(new))
        same(index, new if found[-1] else old)
        halves += len(list(tmp_path.glob("*.tmp")))
        old.save(tmp_path)
        step += 1
    assert halves and found == sorted(found) and set(found) == {False, True}, "before and after one moment, and in it"
    last.save(tmp_path)
    same(ChunkIndex.load(tmp_path, Counting()), last)
    assert sorted(path.suffix for path in tmp_path.iterdir() if path.name != ".lock") == [".faiss", ".json"]


@needs_fork
def test_a_process_that_is_killed_at_any_moment_loses_nothing(tmp_path, indexes):
    indexes[0].save(tmp_path)
    moments = random.Random(1)
    for _ in range(20):
        process = saving(tmp_path, indexes[1:])
        time.sleep(moments.uniform(0, 0.15))
        killed(process)
        index = ChunkIndex.load(tmp_path, Counting())
        assert same(index, next(one for one in indexes if len(one) == len(index)))


@needs_fork
def test_others_may_read_while_a_process_saves(tmp_path, indexes):
    indexes[0].save(tmp_path)
    process, found, until = saving(tmp_path, indexes), set(), time.monotonic() + 20
    reads = 0
    while (found != SIZES or reads < 40) and time.monotonic() < until:
        found.add(len(ChunkIndex.load(tmp_path, Counting())))
        reads += 1
    killed(process)
    assert found == SIZES
