"""Strategies: what is handed on of what was found, never twice, never over the budget, never of two documents."""

import asyncio
import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import ConfigurableField
from test_retrieval import Counting, Fixed

from chunklab import (
    ChunkIndex,
    Hybrid,
    MultiVectorIndex,
    ParagraphChunker,
    Parent,
    Scoreboard,
    SentenceChunker,
    SplitterChain,
    TopN,
    WholeDocument,
    Window,
    small_to_big,
)
from chunklab.chunk import Chunk
from chunklab.passages import is_slice, joined
from chunklab.strategies import last_level, parent_of

A = "Alpha one. Alpha two.  Alpha three.\n\nBeta one. Beta two. Beta three. Beta four."
B = "Gamma one. Gamma two.\n\nDelta one."


def level(text, *quotes, document="a", parent=None, total=None):
    """The chunks of one split: each quote at its first place in the text."""
    prefix = parent or document
    return [
        Chunk(q, text.index(q), text.index(q) + len(q), document, f"{prefix}_{i}", parent, i, total or len(quotes))
        for i, q in enumerate(quotes)
    ]


def family(text, document):
    """A hierarchy as a SplitterChain gives it: paragraphs, and the sentences of each; parents before children."""
    found, start = [], 0
    for i, paragraph in enumerate(text.split("\n\n")):
        start = text.index(paragraph, start)
        found.append(Chunk(paragraph, start, start + len(paragraph), document, f"{document}_{i}", None, i, 2))
        ends = [place + 1 for place, character in enumerate(paragraph) if character == "."]
        for j, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
            begin += len(paragraph[begin:end]) - len(paragraph[begin:end].lstrip())
            words, name = paragraph[begin:end], f"{document}_{i}_{j}"
            found.append(Chunk(words, start + begin, start + end, document, name, f"{document}_{i}", j, len(ends)))
    return found


ALL = family(A, "a") + family(B, "b")
DOCUMENTS = {"a": A, "b": B}


class Ranked(Fixed):
    """The query q finds the texts in the order given; the rest is far behind, and alike."""

    def __init__(self, *texts):
        super().__init__({}, "ranked")
        self.order = {text: place for place, text in enumerate(texts)}

    def embed_documents(self, texts):
        self.asked += texts
        angles = [0.0 if text == "q" else 0.1 * (1 + self.order.get(text, 14)) for text in texts]
        return [[float(np.cos(angle)), float(np.sin(angle))] for angle in angles]


def index_of(*texts, chunks=ALL):
    return ChunkIndex(chunks, Ranked(*texts))


def texts(hits):
    return [hit.chunk.text for hit in hits]


def sentences(chunks=ALL):
    return [chunk for chunk in chunks if chunk.parent_id is not None]


# RAG4p: its three wrong results, and its right ones.


def test_a_window_takes_siblings_of_the_hits_own_level():
    # There, the window of "1_1" was the first-level chunks 0, 1 and 2.
    (hit,) = Window(index_of("Beta two."), k=1, documents=DOCUMENTS).search("q")
    assert hit.chunk.text == "Beta one. Beta two. Beta three."
    assert hit.chunk.id == "a_1_1" and hit.chunk.metadata["chunks"] == ["a_1_0", "a_1_1", "a_1_2"]


def test_a_parent_is_kept_apart_from_that_of_another_document_ret_01():
    # There, the document's id was forgotten, and the second of these was taken for the first.
    same = "Same notice. Read it."
    chunks = [
        c
        for name in ("x", "y")
        for c in (
            Chunk(same, 0, 21, name, "0"),
            Chunk(same[:12], 0, 12, name, "0_0", "0"),
            Chunk(same[13:], 13, 21, name, "0_1", "0", 1, 2),
        )
    ]
    hits = Parent(index_of("Same notice.", chunks=chunks)).search("q")
    assert [(hit.chunk.document, hit.chunk.id) for hit in hits] == [("x", "0"), ("y", "0")]


def test_a_document_is_whole_without_first_level_chunks():
    # There, this failed.
    for chunks in (sentences(), [c for c in ALL if c.id != "a_0"]):
        (hit, *_) = WholeDocument(index_of("Beta two.", chunks=chunks), documents=DOCUMENTS).search("q")
        assert hit.chunk.text == A and (hit.chunk.start, hit.chunk.end, hit.chunk.id) == (0, len(A), "a")


def test_what_rag4p_has_right():
    found = ("Alpha two.", "Beta four.", "Gamma one.", "Alpha one.")
    assert texts(TopN(index_of(*found)).search("q")) == list(found)
    hits = Window(index_of(*found), documents=DOCUMENTS, n=1).search("q", k=3)
    assert texts(hits) == ["Alpha one. Alpha two.  Alpha three.", "Beta three. Beta four.", "Gamma one. Gamma two."]
    assert texts(WholeDocument(index_of(*found), documents=DOCUMENTS).search("q")) == [A, B]
    hits = Parent(index_of(*found)).search("q")
    assert [hit.chunk.id for hit in hits] == ["a_0", "a_1", "b_0", "b_1"], "once each, best first"
    # The same window twice, the same neighbours: the hit itself does not change (ret-08).
    one, three = (Window(index_of(*found), k=1, n=n, documents=DOCUMENTS).search("q")[0].chunk for n in (1, 3))
    assert one.id == three.id == "a_0_1"


# Each strategy.


def test_chunks_that_overlap_are_one_passage():
    text = "one two three four five"
    chunks = level(text, "one two three", "three four", "four five")
    hits = TopN(index_of("three four", "one two three", chunks=chunks), k=2).search("q")
    assert [(h.chunk.text, h.chunk.start, h.chunk.end, h.chunk.id) for h in hits] == [
        ("one two three four", 0, 18, "a_1")
    ]
    apart = TopN(index_of("one two three", "four five", chunks=chunks), k=2).search("q")
    assert [hit.chunk for hit in apart] == [chunks[0], chunks[2]], "what stands alone is the chunk itself"


def test_windows_are_clamped_and_merge_where_they_meet():
    def of(*found, n=1, k=2):
        return texts(Window(index_of(*found), k=k, n=n, documents=DOCUMENTS).search("q"))

    assert of("Beta one.", k=1) == ["Beta one. Beta two."] and of("Beta one.", n=9, k=1) == [A[A.index("Beta") :]]
    assert of("Beta two.", "Beta three.") == ["Beta one. Beta two. Beta three. Beta four."], "they overlap"
    long = "0. 1. 2. 3. 4. 5. 6. 7."
    chunks = level(long, *long.split())
    found = Window(index_of("1.", "4.", chunks=chunks), k=2).search("q")
    assert texts(found) == ["0.\n1.\n2.\n3.\n4.\n5."], "one follows the other"
    assert len(Window(index_of("1.", "5.", chunks=chunks), k=2).search("q")) == 2
    bridged = Window(index_of("0.", "4.", "2.", chunks=chunks), k=3, documents={"a": long}).search("q")
    assert [(h.chunk.text, h.chunk.id, h.rank) for h in bridged] == [("0. 1. 2. 3. 4. 5.", "a_0", 1)]
    # A missing neighbour ends the window: what stands beyond it is none.
    assert texts(Window(index_of("1.", chunks=chunks[:2] + chunks[3:]), k=1, n=2).search("q")) == ["0.\n1."]


@pytest.mark.parametrize("order", list(itertools.permutations(["S1.", "Bee.", "S3."], 3)), ids="".join)
@pytest.mark.parametrize("documents", [None, {"a": "S0. S1. Bee. S2. S3."}], ids=["pieces", "documents"])
def test_what_stands_between_siblings_is_neither_lost_nor_said_twice(order, documents):
    text = "S0. S1. Bee. S2. S3."
    bee = Chunk("Bee.", 8, 12, "a", "a_7", None, 7, 8)
    chunks = [*level(text, "S0.", "S1.", "S2.", "S3.", parent="a_0"), bee]
    for k in (2, 3):
        said = " ".join(texts(Window(index_of(*order, chunks=chunks), k=k, documents=documents).search("q")))
        assert all(said.count(word) == 1 for word in order[:k])


def test_an_overlap_is_said_once():
    text = "one two three four five six"
    chunks = level(text, "one two three", "three four", "four five six")
    (hit,) = Window(index_of("three four", chunks=chunks), k=1).search("q")
    assert hit.chunk.text == text and "spans" not in hit.chunk.metadata


def test_without_documents_the_places_say_what_the_text_is_from():
    (hit,) = Window(index_of("Alpha two."), k=1).search("q")
    assert hit.chunk.text == "Alpha one.\nAlpha two.\n\nAlpha three."
    assert hit.chunk.metadata["spans"] == [(0, 10), (11, 21), (23, 35)] and (hit.chunk.start, hit.chunk.end) == (0, 35)
    whole = WholeDocument(index_of("Gamma one.", chunks=sentences()), k=1).search("q")[0].chunk
    assert whole.text == "Gamma one.\nGamma two.\n\nDelta one." and whole.id == "b" and whole.end == len(B)
    assert WholeDocument(index_of("Gamma one."), k=1).search("q")[0].chunk.text == B, (
        "paragraphs hold all but blank lines"
    )


def test_parents_climb_as_far_as_asked():
    top = Chunk(A, 0, len(A), "a", "a_0")
    middle = [Chunk(A[s:e], s, e, "a", f"a_0_{i}", "a_0", i, 2) for i, (s, e) in enumerate([(0, 35), (37, len(A))])]
    leaves = [
        Chunk("Beta two.", 47, 56, "a", "a_0_1_1", "a_0_1", 1, 4),
        Chunk("Alpha one.", 0, 10, "a", "a_0_0_0", "a_0_0", 0, 3),
    ]
    chunks = [top, *middle, *leaves]

    def ids(levels, chunks=chunks, **options):
        return [
            h.chunk.id
            for h in Parent(index_of("Beta two.", "Alpha one.", chunks=chunks), levels=levels, **options).search("q")
        ]

    assert ids(1) == ["a_0_1", "a_0_0"] and ids(2) == ids(3) == ids(99) == ["a_0"]
    # The last level alone in the index, the others handed in; or a level that the chain left out.
    assert ids(1, leaves, parents=[top, *middle]) == ["a_0_1", "a_0_0"]
    assert ids(1, [top, *leaves]) == ["a_0"] and parent_of(leaves[0], {("a", "a_0"): top}) is top


def test_children_are_found_and_not_their_parents():
    paragraph = A[A.index("Beta") :]
    index = index_of(paragraph, "Gamma two.", "Beta two.")
    assert [h.chunk.id for h in Parent(index, k=2).search("q")] == ["b_0", "a_1"]
    assert [h.chunk.id for h in Parent(index).search("q", where={"document": "a"})] == ["a_1", "a_0"]
    assert [h.chunk.id for h in Parent(index).search("q", where=lambda c: c.index == 2)] == ["a_0", "a_1"]
    assert Parent(index).search("q", where=lambda c: c.parent_id is None) == []
    with pytest.raises(ValueError, match="'documnet', which no chunk has"):
        Parent(index).search("q", where={"documnet": "a"})


def test_a_hit_without_a_parent_stays_itself():
    alone = Chunk("Alone.", 0, 6, "c", "c_0")
    chunks = [*ALL, alone]
    assert Parent(index_of("Alone.", chunks=chunks), k=1).search("q")[0].chunk == alone
    lost = [c for c in ALL if c.id != "a_1"]
    assert Parent(index_of("Beta two.", chunks=lost), k=1).search("q")[0].chunk.id == "a_1_1"
    with pytest.raises(ValueError, match="no chunk has its parent here: 'a_0_0' of 'a' has 'a_0'; index all levels"):
        Parent(index_of(chunks=sentences()))


def test_small_to_big_embeds_the_last_level_alone():
    model = Ranked("Gamma two.", "Beta two.")
    strategy = small_to_big(ALL, model, k=2)
    assert model.asked == [c.text for c in sentences()] == [c.text for c in last_level(ALL)]
    assert [hit.chunk.id for hit in strategy.search("q")] == ["b_0", "a_1"]
    assert small_to_big(iter(ALL), model, index=MultiVectorIndex, levels=2).levels == 2


def test_ids_that_are_no_paths_do_not_hang():
    chunks = [Chunk("x", 0, 1, "d", "d_0_1", "part-of_nothing"), Chunk("y", 2, 3, "d", "d_0", "d_0")]
    assert parent_of(chunks[0], {}) is None and Parent(index_of("x", chunks=chunks), levels=9).search("q")


# What they have in common.

STRATEGIES = [TopN, Window, WholeDocument, Parent, Hybrid]


def test_k_counts_what_adds_something():
    index = index_of("Beta two.", "Beta three.", "Beta one.", "Beta four.", "Gamma one.")
    assert [h.chunk.id for h in Parent(index, k=2).search("q")] == ["a_1", "b_0"]
    assert [h.chunk.id for h in WholeDocument(index, k=2).search("q")] == ["a", "b"]
    many = [Chunk(f"{i}.", 3 * i, 3 * i + 2, "many", f"many_{i}", None, i, 300) for i in range(300)]
    far = Chunk("far.", 0, 4, "far", "far_0")
    index = index_of(*(c.text for c in many), chunks=[*many, far])
    for documents in (None, {"many": " " * 900, "far": "far."}):
        for k in (2, 4):
            hits = WholeDocument(index, k=k, documents=documents).search("q")
            assert [h.chunk.id for h in hits] == ["many", "far"]


def test_all_is_searched_only_where_more_can_be_found(monkeypatch):
    asked, search_many = [], ChunkIndex.search_many
    monkeypatch.setattr(ChunkIndex, "search_many", lambda *a: asked.append((len(a[1]), a[2])) or search_many(*a))
    many = [Chunk(f"{i}.", 3 * i, 3 * i + 2, f"d{i // 299}", f"m_{i}", None, i, 300) for i in range(300)]
    last = [chunk.text for chunk in many[:299]]
    for documents in (None, {"d0": " " * 900, "d1": " " * 900}):
        # First k, then some more; all, a query at a time, so that not all hits of all queries are in memory at once.
        for order, wanted in ((["299."], [(2, 4)]), (last, [(2, 4), (2, 16), (1, 300), (1, 300)])):
            strategy = WholeDocument(index_of(*order, chunks=many), documents=documents)
            asked.clear()
            assert [len(hits) for hits in strategy.search_many(["q", "q"])] == [2, 2] and asked == wanted


def test_the_budget_is_spent_best_first_and_never_gone_over():
    def words(text):
        return len(text.split())

    index = index_of("Beta two.", "Alpha two.", "Gamma one.")
    for most, expected in [
        (1, []),
        (2, ["a_1_1"]),
        (3, ["a_1_1"]),
        (4, ["a_1_1", "a_0_1"]),
        (9, ["a_1_1", "a_0_1", "b_0_0"]),
    ]:
        hits = TopN(index, k=3, max_tokens=most, length_function=words).search("q", where=lambda c: c.parent_id)
        assert [h.chunk.id for h in hits] == expected
    # What does not fit is left out, and what comes after it and fits is not.
    hits = Parent(index, k=3, max_tokens=6, length_function=words).search("q")
    assert [h.chunk.id for h in hits] == ["a_0"]
    # A parent that did not fit is not tried for each of its children.
    index = index_of("Beta two.", "Beta three.", "Beta one.", "Gamma one.")
    assert [h.chunk.id for h in Parent(index, k=2, max_tokens=6, length_function=words).search("q")] == ["b_0"]


def test_tokens_are_counted_in_cl100k():
    index = index_of("Beta two.", "Alpha two.")
    assert texts(TopN(index, k=2, max_tokens=6).search("q")) == ["Beta two.", "Alpha two."]
    assert texts(TopN(index, k=2, max_tokens=5).search("q")) == ["Beta two."]


def test_min_score_cuts_off():
    index = index_of("Beta two.", "Gamma one.")
    assert len(Parent(index, min_score=float(np.cos(0.15))).search("q")) == 1
    assert len(Parent(index).search("q", min_score=float(np.cos(0.25)))) == 2
    assert TopN(index, min_score=1.0).search("q") == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_min_share_cuts_off_what_is_far_behind_the_best(strategy):
    index = index_of("Beta two.", "Gamma one.", "Alpha two.")
    best = strategy(index, k=1).search("q")
    assert strategy(index, k=1, min_share=1).search("q") == best
    for share in (0, 0.5, 0.99, 1):
        found = strategy(index, k=20, min_share=share).search("q")
        # As with a cut-off at that score.
        assert found == strategy(index, k=20, min_score=share * best[0].score).search("q")


def test_a_share_of_a_score_below_0_is_all_of_it():
    index = ChunkIndex(
        [Chunk("a", 0, 1, id="0"), Chunk("b", 1, 2, id="1")], Fixed({"q": [1, 0], "a": [-0.6, 0.8], "b": [-1, 0]})
    )
    assert texts(TopN(index, min_share=0.5).search("q")) == ["a"]


def test_equal_scores_keep_the_order_of_the_index():
    assert [h.chunk.id for h in TopN(index_of(), k=30).search("q", where=lambda c: c.parent_id)] == [
        c.id for c in sentences()
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_is_a_langchain_retriever(strategy):
    retriever = strategy(index_of("Beta two.", "Gamma one."), k=2)
    hits, documents = retriever.search("q"), retriever.invoke("q")
    for hit, document in zip(hits, documents, strict=True):
        chunk = hit.chunk
        assert document.page_content == chunk.text and document.id == chunk.id
        wanted = {
            "id": chunk.id,
            "document": chunk.document,
            "start": chunk.start,
            "end": chunk.end,
            "score": hit.score,
        }
        assert wanted.items() <= document.metadata.items() and document.metadata["start_index"] == chunk.start
    assert asyncio.run(retriever.ainvoke("q")) == documents
    assert (retriever | (lambda found: len(found))).invoke("q") == len(documents)
    assert retriever.search_many(["q", "q"]) == [hits, hits]
    for vectors in ([[1.0, 0.0]] * 2, [1.0, 0.0]):
        if not retriever.reads_words:
            assert retriever.search_many(np.array(vectors)) == [hits] * len(np.atleast_2d(vectors))
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert strategy(index_of(chunks=[])).search("q") == [] and len(repr(retriever)) < 300


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_langchain_does_with_a_retriever(strategy):
    retriever = strategy(index_of("Beta two.", "Gamma one."), max_tokens=99)
    every = retriever.search("q")
    some = [hit.chunk.text for hit in retriever.search("q", k=1, where={"document": "b"})]
    assert len(every) > len(some) == 1
    options = {"k": 1, "where": {"document": "b"}}
    for found in (
        retriever.invoke("q", **options),
        asyncio.run(retriever.ainvoke("q", **options)),
        *retriever.batch(["q"], **options),
        retriever.bind(**options).invoke("q"),
    ):
        assert [document.page_content for document in found] == some, "options are not passed over in silence"
    settable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert (
        len(settable.invoke("q", {"configurable": {"k": 1}}))
        == 1
        == len(retriever.model_copy(update={"k": 1}).invoke("q"))
    )
    for same in (copy.copy(retriever), copy.deepcopy(retriever), pickle.loads(pickle.dumps(retriever))):
        assert same.search("q") == every
    retriever.index.chunks[0].metadata["tags"] = ["mine"]
    for document in retriever.invoke("q", k=9):
        document.metadata.setdefault("tags", []).append("theirs")
    assert retriever.index.chunks[0].metadata == {"tags": ["mine"]}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_queries_that_are_none_are_named(strategy):
    for bad in (None, 5, "q", [None], [["q"]], [" "]):
        with pytest.raises(ValueError, match="quer(ies|y)=.*must be a"):
            strategy(index_of()).search_many(bad)
    assert strategy(index_of()).search_many([]) == []


@pytest.mark.parametrize("of_index", [ChunkIndex, MultiVectorIndex])
@pytest.mark.parametrize(
    "strategy", [*STRATEGIES, lambda index: Window(Hybrid(index)), lambda index: Parent(Hybrid(index))]
)
def test_what_a_search_gives_is_of_one_moment(strategy, of_index):
    class Meddling(Counting):
        def embed_query(self, text):
            if self.index is not None:  # as another thread would, in the midst of a search
                index, self.index = self.index, None
                index.update("a", family("New one. New two.\n\nNew three.", "a"))
                index.remove("b")
            return super().embed_query(text)

    index = of_index(ALL, Meddling())
    retriever = strategy(index)
    for where in (None, lambda chunk: True):
        index.embeddings.index = None
        index.update("a", family(A, "a"))
        index.update("b", family(B, "b"))
        quiet = retriever.search("one", where=where)
        index.embeddings.index = index
        assert retriever.search("one", where=where) == quiet
        assert {hit.chunk.document for hit in retriever.search("one", where=where)} == {"a"}, "and then of the next"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"index": None}, "index=None: must be"),
        ({"index": ChunkIndex}, "index=.*must be"),
        ({"index": [1]}, r"index=\[1\]"),
        ({"k": 0}, "k=0"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"max_tokens": 2.5}, "max_tokens=2.5"),
        ({"min_score": float("nan")}, "min_score=nan"),
        ({"min_score": True}, "min_score=True"),
        ({"min_share": 1.5}, "min_share=1.5"),
        ({"min_share": True}, "min_share=True"),
        ({"min_share": float("nan")}, "min_share=nan"),
        ({"length_function": 3}, "length_function=3"),
        ({"length_function": str}, "length_function=.*to its length"),
        ({"length_function": lambda text: None}, "length_function=.*to its length"),
    ],
)
def test_bad_arguments_are_named(strategy, arguments, says):
    with pytest.raises(ValueError, match=says):
        strategy(**({"index": index_of()} | arguments))
    if strategy is not Hybrid:  # whose scores have no ends
        with pytest.raises(ValueError, match="min_score=60.*from -1 to 1"):
            strategy(index_of(), min_score=60)


def test_bad_arguments_of_their_own_are_named():
    with pytest.raises(ValueError, match="n=0"):
        Window(index_of(), n=0)
    with pytest.raises(ValueError, match="levels=0"):
        Parent(index_of(), levels=0)
    for strategy in (Window, WholeDocument):
        with pytest.raises(ValueError, match="^documents='a'.*dictionary"):
            strategy(index_of(), documents="a")
        with pytest.raises(ValueError, match="'a' has a chunk that ends at .., and a text that ends at 3"):
            strategy(index_of("Beta two."), k=1, documents={"a": "abc"}).search("q")
        with pytest.raises(ValueError, match="documents has no text of 'a'"):
            strategy(index_of("Beta two."), documents={}).search("q")
    for bad, says in (
        (None, "=None"),
        (3, "=3"),
        (["x"], " holds a str"),
        (ALL + ALL[:1], " holds 2 with document 'a'"),
    ):
        with pytest.raises(ValueError, match=f"^parents{says}"):
            Parent(index_of(), parents=bad)
        with pytest.raises(ValueError, match=f"^chunks{says}"):
            small_to_big(bad, Ranked())
    with pytest.raises(ValueError, match="^index='x'"):
        small_to_big(ALL, Ranked(), index="x")
    with pytest.raises(ValueError, match="query='  '"):
        TopN(index_of()).search(" " * 2)


def test_a_strategy_takes_the_index_of_another():
    hybrid = Hybrid(index_of("Alpha one."))
    found = Window(hybrid, k=1, documents=DOCUMENTS)
    assert found.index is hybrid.index and found.reads_words and not TopN(index_of()).reads_words
    assert Window(TopN(index_of("Beta one.")), k=1).search("q")[0].chunk.id == "a_1_0"


def test_what_an_index_learns_its_strategies_know():
    index = index_of("Beta two.", "New two.")
    window, parent, whole = Window(index, k=1), Parent(index, k=1), WholeDocument(index, k=1)
    assert parent.search("q")[0].chunk.id == "a_1"
    index.update("a", family("New one. New two. New three.", "a"))
    assert texts(window.search("q")) == ["New one.\nNew two.\nNew three."]
    assert texts(parent.search("q")) == texts(whole.search("q")) == ["New one. New two. New three."]


@pytest.mark.parametrize("new", [A[:-1] + "?", A[:30] + A[31:], A + " More.", A[: A.index(" Beta four")]], ids=len)
def test_parents_of_a_document_before_it_changed_are_not_handed_on(new):
    strategy = small_to_big(ALL, Counting())
    strategy.index.remove("b")
    assert strategy.search("q"), "what is gone is not missed"
    strategy.index.add([Chunk("Late.", 0, 5, "late", "late_0")])
    assert "late" in {hit.chunk.document for hit in strategy.search("q", k=9)}
    chunks = family(new, "a")
    strategy.index.update("a", last_level(chunks))
    with pytest.raises(ValueError, match="parents holds another 'a_.*' of 'a' than the index.*make a new Parent"):
        strategy.search("q")
    assert {hit.chunk.text for hit in Parent(strategy.index, parents=chunks).search("q")} <= {
        *new.split("\n\n"),
        "Late.",
    }
    # Parts that were given words of their own are still parts.
    told = [
        Chunk(f"Told: {c.text}", c.start, c.end, c.document, c.id, c.parent_id, c.index, c.total) for c in sentences()
    ]
    assert Parent(ChunkIndex(told, Counting()), parents=ALL, k=1).search("q")[0].chunk in ALL


def test_on_the_scoreboard_a_chains_parents_do_not_compete_with_their_children():
    from test_evaluation import DOCUMENTS, QUESTIONS, Words

    def added(*arguments, **options):
        board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=3)
        row = board.add("x", *arguments, **options)
        return {name: scores.tolist() for name, scores in row.scores.items()} | {
            "sizes": row.sizes.tolist(),
            "hits": row.hits,
        }

    chain = SplitterChain([ParagraphChunker(9), SentenceChunker(30)])
    chunks = [c for name, text in DOCUMENTS.items() for c in chain.chunk(text, name)]
    small = last_level(chunks)
    for index in (ChunkIndex, MultiVectorIndex):
        assert added(chain, index=index) == added(small, index=index)
        for strategy in (
            Window,
            TopN,
            lambda found: WholeDocument(found, documents=DOCUMENTS),
            lambda found: Parent(found, parents=chunks),
            lambda found: Window(TopN(found)),
        ):

            def made(chunks, model, strategy=strategy, index=index):
                return strategy(index(chunks, model))

            assert added(chain, index=made) == added(small, index=made)
        assert added(chain, index=lambda c, m, index=index: index(c, m)) == added(small, index=index), (
            "in a function too"
        )
    assert added(chain, index=small_to_big) == added(chunks, index=small_to_big) != added(chain)
    assert len(added(chunks)["sizes"]) == len(chunks), "what is made already stays as it is"
    with pytest.raises(ValueError, match="^chunks holds a str"):
        added(type("Odd", (), {"chunk": lambda self, text, name: ["x"]})())


# Chunks that were rewritten have a place, and words of their own.


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.booleans()), min_size=2, max_size=8), st.data())
def test_what_is_joined_is_said_once_and_apart(drawn, data):
    text = "".join(data.draw(st.permutations([chr(0x100 + i) for i in range(52)])))  # each character tells its place
    pieces = []
    for i, (start, size, told) in enumerate(drawn):
        words, metadata = (f"<{i}>", {"spans": [(start, start + size)]}) if told else (text[start : start + size], {})
        pieces.append(Chunk(words, start, start + size, "a", f"a_{i}", None, i, len(drawn), metadata))
    chunk = joined(pieces, pieces[0])
    parts = chunk.text.split("\n\n")
    assert all(parts.count(c.text) == 1 for c in pieces if not is_slice(c)), "their own words stand for themselves"
    covered = {place for c in pieces if is_slice(c) for place in range(c.start, c.end)}
    assert [c for c in chunk.text if c in text] == [text[place] for place in sorted(covered)]


def test_a_document_of_several_levels_says_nothing_twice_whatever_was_added():
    told = [Chunk(f"[{c.id}] {c.text}", c.start, c.end, c.document, c.id, c.parent_id, c.index, c.total) for c in ALL]
    (whole, _) = WholeDocument(ChunkIndex(told, Counting())).search("a_0", k=2)
    assert whole.chunk.text.count("one.") == len(
        {c.id for c in ALL if c.document == whole.chunk.document and not c.parent_id}
    )


def test_rewritten_chunks_are_kept_whole_and_apart():
    first = Chunk("Its bell is old, the town says.", 0, 10, "a", "a_0", None, 0, 2)
    second = Chunk("The town is proud.", 0, 10, "a", "a_1", None, 1, 2)
    index = index_of(second.text, first.text, chunks=[first, second])
    assert texts(TopN(index).search("q")) == [second.text, first.text], "of one place, but not the same text"
    assert texts(Window(index).search("q")) == [f"{first.text}\n\n{second.text}"]
    (hit,) = Window(index, documents=DOCUMENTS).search("q")
    assert hit.chunk.text == A[:10] and "spans" not in hit.chunk.metadata
    several = Chunk("Alpha, Beta.", 0, 80, "a", metadata={"spans": [(0, 5), (37, 41)]})
    assert joined([several, Chunk(A[6:10], 6, 10, "a", "a_1")], several).metadata["spans"] == [
        (0, 5),
        (6, 10),
        (37, 41),
    ]


def test_a_passage_keeps_the_metadata_that_its_chunks_share():
    one, two = (
        Chunk(t, s, s + 1, "a", t, None, i, 2, {"source": "x", "page": i})
        for i, (t, s) in enumerate([("p", 0), ("q", 1)])
    )
    assert joined([one, two], two).metadata == {"source": "x", "chunks": ["p", "q"]}


# Rules that hold for any chunks.


@st.composite
def hierarchies(draw):
    """Documents, and their chunks: a first level, with overlap or gaps, and the children of each."""
    documents, chunks = {}, []
    for name in ("a", "b", "a_0"):
        text = "".join(draw(st.lists(st.sampled_from("ab \n"), min_size=1, max_size=40)))
        documents[name] = text
        for i, (start, end) in enumerate(draw(spans(0, len(text)))):
            parent = Chunk(text[start:end], start, end, name, f"{name}_{i}", None, i)
            chunks.append(parent)
            for j, (s, e) in enumerate(draw(spans(start, end))):
                chunks.append(Chunk(text[s:e], s, e, name, f"{parent.id}_{j}", parent.id, j))
    return documents, chunks


def spans(low, high):
    """Spans whose starts go on, none inside the one before it: rule 2 of the chunkers."""
    edges = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted).filter(lambda s: s[0] < s[1])

    def in_order(found):
        kept = []
        for start, end in sorted(found):
            if not kept or end > kept[-1][1]:
                kept.append((start, end))
        return kept

    return st.lists(edges, max_size=4, unique_by=lambda s: s[0]).map(in_order)


class Scattered(Fixed):
    """Vectors by the draw, for chunks that may have the same text."""

    def __init__(self, angles):
        super().__init__({}, "scattered")
        self.angles = angles

    def embed_documents(self, texts):
        return [
            [float(np.cos(a)), float(np.sin(a))] for a in (self.angles[i % len(self.angles)] for i in range(len(texts)))
        ]

    def embed_query(self, text):
        return [1.0, 0.0]


@given(
    hierarchies(),
    st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.2, 2.5]), min_size=1, max_size=9),
    st.integers(1, 6),
    st.data(),
)
def test_never_twice_never_over_never_mixed(made, angles, k, data):
    documents, chunks = made
    index = ChunkIndex(chunks, Scattered(angles))
    with_documents = {"documents": documents} if data.draw(st.booleans()) else {}
    make = data.draw(
        st.sampled_from(
            [
                lambda **o: TopN(index, **o),
                lambda **o: Window(index, n=data.draw(st.integers(1, 3)), **with_documents, **o),
                lambda **o: WholeDocument(index, **with_documents, **o),
                lambda **o: Parent(index, levels=data.draw(st.integers(1, 2)), **o),
                lambda **o: Hybrid(index, fusion=data.draw(st.sampled_from(["score", "rank"])), **o),
                lambda **o: Window(Hybrid(index), **with_documents, **o),
            ]
        )
    )
    most = data.draw(st.none() | st.integers(1, 60))
    strategy = make(k=k, max_tokens=most, length_function=len)
    hits = strategy.search("ab")
    assert len(hits) <= k and [h.rank for h in hits] == list(range(1, len(hits) + 1))
    scores = [h.score for h in hits]
    assert scores == sorted(scores, reverse=True)
    assert most is None or sum(len(h.chunk.text) for h in hits) <= most
    for hit in hits:
        c = hit.chunk
        text = documents[c.document]
        if "spans" in c.metadata:
            # Its text is that of its places, in order; only line ends are put between.
            assert c.text.replace("\n", "") == "".join(text[s:e] for s, e in c.metadata["spans"]).replace("\n", "")
        else:
            assert c.text == text[c.start : c.end]
    for one, other in ((a.chunk, b.chunk) for i, a in enumerate(hits) for b in hits[:i]):
        assert one.document != other.document or one.end <= other.start or other.end <= one.start
    assert strategy.search_many(["ab", "ab"]) == [hits, hits]


@pytest.mark.parametrize("kind", [TopN, Window, WholeDocument, Parent])
def test_an_option_that_a_strategy_does_not_have_is_refused(kind):
    index = ChunkIndex([Chunk("The bell is old.", 0, 16, "town", "town_0")], Fixed({"The bell is old.": [1, 0]}))
    with pytest.raises(TypeError, match=f"{kind.__name__} has no option 'windows'"):
        kind(index, windows=2)
