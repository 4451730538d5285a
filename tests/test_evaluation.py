"""The scoreboard: each row is what the measures say, each method pays what it cost, and a rerun shows the same."""

import os
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from test_strategies import family

from chunklab import ChunkIndex, Window, evaluation, small_to_big
from chunklab.chunk import Chunk, Chunker
from chunklab.chunkers.fixed import FixedSizeChunker
from chunklab.chunkers.recursive import RecursiveChunker
from chunklab.corpus import GoldSpan, Question, load_benchmark
from chunklab.evaluation import Scoreboard, precision_omega, span_scores
from chunklab.models.embeddings import embed, embeddings
from chunklab.models.tokens import tokens

DOCUMENTS = {
    "bell.txt": "The low bell waits. The high bell goes. A fourth bell never hung.",
    "boat.txt": "The ferry is blue. Tickets cost four crowns. Dogs travel free.",
}


def question(number, text, kind, *quotes):
    spans = [
        GoldSpan(name, there.find(quote), there.find(quote) + len(quote), quote)
        for quote in quotes
        for name, there in DOCUMENTS.items()
        if quote in there
    ]
    return Question(f"q{number}", text, "", kind, tuple(spans))


QUESTIONS = [
    question(1, "the low bell", "fact", "low bell waits"),
    question(2, "tickets cost", "fact", "four crowns"),
    question(3, "fourth bell hung, ferry blue", "across", "never hung", "blue"),
    question(4, "dogs travel", "fact", "four crowns. Dogs"),
]


class Words(Embeddings):
    """A bag of words: exact, quick, and it remembers what it was asked."""

    name = "words"

    def __init__(self):
        self.asked = []

    def embed_documents(self, texts):
        self.asked += texts
        vectors = np.zeros((len(texts), 64))
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().replace(".", " ").replace(",", " ").split():
                vector[crc32(word.encode()) % 64] += 1
        return vectors.tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class Windows(Chunker):
    def spans(self, text):
        return [(start, min(start + self._chunk_size, len(text))) for start in range(0, len(text), self._chunk_size)]


class Sentences(Chunker):
    def spans(self, text):
        ends = [place + 1 for place, character in enumerate(text) if character == "."]
        return list(zip([0, *[end + 1 for end in ends]], ends, strict=False))


@pytest.fixture(autouse=True)
def words_for_tokens(monkeypatch):
    monkeypatch.setattr("chunklab.models.tokens.tokens", lambda name: lambda text: len(text.split()))


@pytest.fixture
def board():
    return Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=2)


def test_a_row_is_what_the_measures_say(board):
    row = board.add("sentences", Sentences())
    chunks = [chunk for name, text in DOCUMENTS.items() for chunk in Sentences().chunk(text, name)]
    assert len(row.sizes) == len(chunks) == 6
    for place, each in enumerate(QUESTIONS):
        assert len(row.hits[place]) == 2
        scores = span_scores(row.hits[place], each.spans)
        assert [row.scores[metric][place] for metric in ("recall", "precision", "iou")] == list(scores)
        assert row.scores["omega"][place] == precision_omega(chunks, each.spans)
        assert row.tokens[place] == sum(len(hit.chunk.text.split()) for hit in row.hits[place])
    assert row.scores["recall"][:2].tolist() == [1, 1]
    assert row.cut.tolist() == [0, 0, 0, 1]
    assert repr(row).startswith("sentences: 6 chunks, recall ")


def test_the_pool_is_one_for_all_documents_and_questions_are_embedded_once(board):
    asked = [each.question for each in QUESTIONS]
    assert board.embeddings.asked == asked
    board.add("sentences", Sentences())
    board.add("windows", Windows(20))
    assert board.embeddings.asked[:4] == asked and not set(asked) & set(board.embeddings.asked[4:])
    documents = {hit.chunk.document for hit in board.rows["sentences"].hits[2]}
    assert documents == set(DOCUMENTS)


def test_a_name_that_is_there_is_measured_anew_in_its_place(board):
    board.add("a", Windows(10))
    board.add("b", Windows(20))
    board.add("a", Sentences())
    assert list(board.table().index) == ["a", "b"] and board.table()["chunks"].tolist() == ["6", "8"]


def test_chunks_that_are_made_already_and_come_from_several_places(board):
    text = DOCUMENTS["bell.txt"]
    parts = [(4, 12), (text.index("never"), text.index("never") + 10)]
    made = Chunk("The low bell never hung.", 4, parts[1][1], "bell.txt", metadata={"spans": parts})
    row = board.add("rewritten", [made])
    assert row.scores["recall"].tolist() == [8 / 14, 0, 10 / 14, 0]
    assert row.scores["precision"].tolist() == [8 / 18, 0, 10 / 18, 0]
    assert row.cut.tolist() == [1, 1, 1, 1]


def test_a_strategy_is_scored_by_the_passages_that_it_gives(board):
    def window(chunks, model):
        return Window(ChunkIndex(chunks, model), documents=DOCUMENTS)

    plain, row = board.add("sentences", Sentences()), board.add("window", Sentences(), index=window)
    assert row.sizes.tolist() == plain.sizes.tolist() and row.cut.tolist() == plain.cut.tolist()
    for place, each in enumerate(QUESTIONS):
        assert row.scores["recall"][place] == span_scores(row.hits[place], each.spans).recall
        assert all(
            hit.chunk.text == DOCUMENTS[hit.chunk.document][hit.chunk.start : hit.chunk.end] for hit in row.hits[place]
        )
    assert row.scores["recall"][3] == 1 > plain.scores["recall"][3], "the gold is in two sentences"
    assert row.tokens.mean() > plain.tokens.mean() and row.calls.embedded == plain.calls.embedded
    # A budget of a strategy's own, and of the board.
    tight = board.add("tight", Sentences(), index=lambda c, m: Window(ChunkIndex(c, m), max_tokens=12))
    assert tight.tokens.max() <= 12 and board.within(9).rows["window"].tokens.max() <= 9


def test_small_to_big_is_measured_by_the_chunks_that_it_searches(board):
    chunks = [c for name, text in DOCUMENTS.items() for c in family(text, name)]
    board.embeddings.asked.clear()
    row = board.add("small to big", chunks, index=small_to_big)
    small = [c for c in chunks if c.parent_id]
    assert board.embeddings.asked == [c.text for c in small] and row.calls.embedded == len(row.sizes) == len(small)
    assert [hit.chunk.parent_id for hit in row.hits[0]] == [None, None]


def test_questions_are_given_as_texts_where_words_count(board):
    asked = []

    class ByWords:
        reads_words, chunks = True, []

        def search_many(self, queries, k):
            asked.append((queries, k))
            return [[] for _ in queries]

    board.add("words", Sentences(), index=lambda chunks, model: ByWords())
    assert asked == [([each.question for each in QUESTIONS], 2)]
    with pytest.raises(ValueError, match="index=.*gave None, which cannot be searched"):
        board.add("none", Sentences(), index=lambda chunks, model: None)


def test_no_chunks_is_a_row_of_zeros(board):
    row = board.add("nothing", [])
    assert row.scores["recall"].tolist() == [0] * 4 and board.frame().loc["nothing", "chunks"] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"documents": DOCUMENTS}, "give both"),
        ({"questions": QUESTIONS}, "give both"),
        ({"documents": DOCUMENTS, "questions": []}, "questions is empty"),
        ({"documents": {"bell.txt": DOCUMENTS["bell.txt"]}, "questions": QUESTIONS}, "q2: .* no 'boat.txt' .*up to 43"),
        ({"documents": ["bell"], "questions": QUESTIONS}, "documents=.*must be a dictionary"),
        ({"documents": "bell", "questions": QUESTIONS}, "documents=.*must be a dictionary"),
        ({"documents": {"bell.txt": b"bell"}, "questions": QUESTIONS}, "documents=.*must be a dictionary"),
        ({"documents": DOCUMENTS, "questions": 3}, "questions holds 3"),
        ({"documents": DOCUMENTS, "questions": [{"id": "q1"}]}, "questions holds {'id': 'q1'}.*Question objects"),
        ({"documents": DOCUMENTS, "questions": QUESTIONS * 2}, "question q1: must have an id of its own"),
        ({"documents": DOCUMENTS, "questions": [replace(QUESTIONS[0], spans=())]}, "question q1: .*a gold span"),
        ({"documents": DOCUMENTS, "questions": [replace(QUESTIONS[0], question=" ")]}, "question q1: .*words"),
        (
            {"documents": DOCUMENTS, "questions": [replace(QUESTIONS[0], spans=[("bell.txt", 3, 3)])]},
            "no 'bell.txt' 3 up",
        ),
        ({"documents": DOCUMENTS, "questions": QUESTIONS, "k": 0}, "k=0"),
    ],
)
def test_bad_arguments_are_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        Scoreboard(Words(), **arguments)


@pytest.mark.parametrize("model", ["static", None, Words, 3], ids=str)
def test_what_is_no_model_is_named(model):
    with pytest.raises(ValueError, match=r"embeddings=.*must have embed_documents\(texts\)"):
        Scoreboard(model, DOCUMENTS, QUESTIONS)


def test_chunks_of_unknown_documents_are_an_error_and_no_row(board):
    with pytest.raises(ValueError, match="odd: .*not on the board: .'other'"):
        board.add("odd", [Chunk("x", 0, 1, "other")])
    with pytest.raises(ValueError, match="odd: chunk far ends at 10000, bell.txt at"):
        board.add("odd", [Chunk("x", 0, 10_000, "bell.txt", "far")])
    for wrong in (len, FixedSizeChunker, None):
        with pytest.raises(ValueError, match="must be a chunker, or a list of chunks"):
            board.add("odd", wrong)
    for wrong in (["a text"], "a text"):
        with pytest.raises(ValueError, match="chunks holds a str"):
            board.add("odd", wrong)
    with pytest.raises(ValueError, match="name=None"):
        board.add(None, [])
    assert not board.rows


def test_the_corpus_and_questions_of_the_course_are_the_default(monkeypatch):
    monkeypatch.setattr(evaluation, "load_corpus", lambda: DOCUMENTS)
    monkeypatch.setattr(evaluation, "load_questions", lambda: QUESTIONS)
    board = Scoreboard(Words())
    assert board.documents == DOCUMENTS and board.questions == QUESTIONS and board.k == 5


def test_the_frame_has_the_numbers_that_figures_need(board):
    board.add("windows", Windows(20), note="cuts words")
    board.add("sentences", Sentences())
    frame = board.frame()
    assert frame.index.tolist() == ["windows", "sentences"]
    for metric in ("recall", "precision", "iou"):
        assert (frame[f"{metric}_low"] <= frame[metric]).all() and (frame[metric] <= frame[f"{metric}_high"]).all()
        values = board.rows["windows"].scores[metric]
        assert frame.loc["windows", metric] == pytest.approx(100 * values.mean())
    assert frame.loc["windows", ["chunks", "size", "cut", "questions"]].tolist() == [8, 15.875, 3, 4]
    assert frame["seconds"].min() > 0


def test_the_board_can_be_read_by_kind_and_document(board):
    board.add("windows", Windows(20))
    board.add("sentences", Sentences())
    frame = board.frame(by="kind")
    assert frame.index.tolist() == [(m, kind) for m in ("windows", "sentences") for kind in ("fact", "across")]
    assert frame.loc[("sentences", "across"), "questions"] == 1
    recall = board.rows["sentences"].scores["recall"]
    assert frame.loc[("sentences", "fact"), "recall"] == pytest.approx(100 * recall[[0, 1, 3]].mean())
    table = board.table(by="document", metric="precision")
    assert table.columns.tolist() == ["bell.txt (1)", "boat.txt (2)", "several (1)"]
    assert table.index.tolist() == ["windows", "sentences"] and table.columns.name == "precision %"
    for call in (lambda: board.frame(by="colour"), lambda: board.table(metric="f1"), lambda: board.table(by=1)):
        with pytest.raises(ValueError, match="must be one of"):
            call()


def test_the_table_shows_what_a_rerun_shows_and_time_only_if_asked():
    shown = []
    for _ in range(2):
        board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=2)
        board.add("sentences", Sentences())
        shown.append((repr(board), board._repr_html_()))
    assert shown[0] == shown[1]
    table = board.table()
    measures = ["recall %", "precision %", "IoU %", "omega %", "gold cut", "tokens"]
    assert table.columns.tolist() == ["chunks", "size", *measures, "embedded", "LLM calls"]
    assert table.columns.name == "4 questions, k = 2"
    assert table.loc["sentences", ["chunks", "size", "gold cut"]].tolist() == ["6", "20 ± 3", "1 of 5"]
    assert board.table(seconds=True).columns[-1] == "seconds"
    board.add("windows", Windows(20), note="cuts words")
    assert board.table()["note"].tolist() == ["", "cuts words"]


def test_an_empty_board_can_be_shown(board):
    assert len(board.table()) == len(board.table(by="kind")) == len(board.frame()) == 0
    assert repr(board) and board._repr_html_()


def test_the_page_of_a_board_breaks_no_interval_and_escapes_names(board):
    board.add("<b>windows", Windows(20))
    page = board._repr_html_()
    assert page.count("<caption") == 1 and "4 questions, k = 2</caption><thead>" in page
    assert "&lt;b&gt;windows" in page and "<b>" not in page
    assert page.count("<th ") + page.count("<td ") == page.count("white-space:nowrap") == 2 * 11


def test_differences_are_paired(board):
    board.add("windows", Windows(20))
    board.add("sentences", Sentences())
    gains = 100 * (board.rows["sentences"].scores["recall"] - board.rows["windows"].scores["recall"])
    difference = board.compare("sentences", "windows")
    assert difference.mean == pytest.approx(gains.mean()) and difference.low <= difference.mean <= difference.high
    assert difference.higher == tuple(f"q{place + 1}" for place in np.flatnonzero(gains > 0))
    back = board.compare("windows", "sentences")
    assert (back.mean, back.lower, back.higher) == (-difference.mean, difference.higher, difference.lower)
    assert repr(difference).startswith(f"recall, sentences minus windows: {gains.mean():+.1f} points [")
    same = board.compare("windows", "windows", metric="omega")
    assert (same.mean, same.low, same.high, same.higher, same.lower) == (0, 0, 0, (), ())
    assert "the interval leaves out 0" not in repr(same)
    for call in (("windows", "absent"), ("absent", "windows"), ("windows", "windows", "f1")):
        with pytest.raises(ValueError, match="must be one of"):
            board.compare(*call)


def test_within_a_budget_hits_are_read_in_order_as_long_as_they_fit(board):
    row = board.add("thirties", FixedSizeChunker(30))
    sizes = [[len(hit.chunk.text.split()) for hit in near] for near in row.hits]
    for budget in (1, 4, 6, 9, 10**6):
        read = board.within(budget).rows["thirties"]
        for near, kept, lengths, spent in zip(row.hits, read.hits, sizes, read.tokens, strict=True):
            left, wanted = budget, []
            for hit, length in zip(near, lengths, strict=True):
                if length <= left:
                    wanted, left = [*wanted, hit], left - length
            assert kept == wanted and spent == budget - left <= budget
        recall = [span_scores(kept, q.spans).recall for kept, q in zip(read.hits, QUESTIONS, strict=True)]
        assert (
            read.scores["recall"].tolist() == recall
            and (read.cut == row.cut).all()
            and read.scores["omega"] is row.scores["omega"]
        )
    assert read.scores["recall"].tolist() == row.scores["recall"].tolist() and board.rows["thirties"] is row
    with pytest.raises(ValueError, match="max_tokens=0"):
        board.within(0)


def test_differences_stand_in_one_table(board):
    board.add("whole", FixedSizeChunker(1000)), board.add("cut", FixedSizeChunker(9))
    table, single = board.differences([("whole", "cut"), ("cut", "cut")]), board.compare("whole", "cut")
    assert list(table.index) == ["whole minus cut", "cut minus cut"] and list(table.columns) == ["all (4)"]
    assert table.iloc[0, 0] == f"{single.mean:+.1f} [{single.low:+.1f}, {single.high:+.1f}]"
    assert table.iloc[1, 0] == "+0.0 [+0.0, +0.0]"
    kinds = board.differences([("whole", "cut")], by="kind", metric="iou")
    assert list(kinds.columns) == ["fact (3)", "across (1)"]
    for wrong, says in ((([("whole", "none")],), "other="), (([], "size"), "by=")):
        with pytest.raises(ValueError, match=says):
            board.differences(*wrong)


def test_the_same_differences_come_as_numbers(board):
    board.add("whole", FixedSizeChunker(1000)), board.add("cut", FixedSizeChunker(9))
    pairs, single = [("whole", "cut"), ("cut", "cut")], board.compare("whole", "cut")
    gains = board.gains(pairs)
    assert gains.loc["whole minus cut"].tolist() == [4, single.mean, single.low, single.high]
    assert gains.loc["cut minus cut"].tolist() == [4, 0, 0, 0]
    kinds = board.gains(pairs, by="kind")
    assert list(kinds.index)[:2] == [("whole minus cut", "fact"), ("whole minus cut", "across")]
    assert kinds["questions"].tolist() == [3, 1, 3, 1]
    assert (kinds["questions"] * kinds["mean"]).groupby("pair").sum()["whole minus cut"] == pytest.approx(
        4 * single.mean
    )
    assert board.gains([]).empty and board.differences([]).empty


def test_a_sure_difference_is_told_from_a_doubtful_one(board):
    sure, doubtful = np.array([0.2, 0.3, 0.2, 0.4]), np.array([0.5, -0.4, 0.2, -0.2])
    rows = {"a": np.zeros(4), "b": sure, "c": doubtful}
    for name, values in rows.items():
        board.add(name, Sentences()).scores["recall"] = values
    assert "leaves out 0" in repr(board.compare("b", "a")) and "leaves out 0" not in repr(board.compare("c", "a"))


def test_every_method_pays_for_the_texts_it_embeds_and_the_calls_it_makes(board):
    model = FakeListChatModel(responses=["yes"])

    class Asks(Sentences):
        def spans(self, text):
            model.invoke("where?")
            model.batch(["and?", "there?"])
            embed(board.embeddings, text.split()[:3])
            return super().spans(text)

    row = board.add("asks", Asks())
    assert (row.calls.llm, row.calls.embedded) == (6, 3 + 3 + 6)
    model.invoke("unrelated")
    row = board.add("sentences", Sentences())
    assert (row.calls.llm, row.calls.embedded) == (0, 6)
    assert board.table()[["embedded", "LLM calls"]].to_numpy().tolist() == [["12", "6"], ["6", "0"]]


def test_chunks_that_the_model_cannot_read_whole_are_told_ev_05(board):
    board.embeddings.max_tokens, board.embeddings.count_tokens = 12, lambda text: len(text.split()) + 2
    with pytest.warns(UserWarning, match=r"whole: 2 of 2 chunks are longer than words reads"):
        row = board.add("whole", Windows(100))
    board.add("sentences", Sentences())
    assert row.truncated == board.frame().loc["whole", "truncated"] == 2
    assert board.table()["too long"].tolist() == ["2", "0"]


@pytest.mark.skipif(
    not os.environ.get("CHUNKLAB_DATA"), reason="needs the public data: let CHUNKLAB_DATA name their folder"
)
def test_a_row_on_the_public_benchmark_is_near_what_others_measured():
    """Chroma's data, WordLlama, k = 5: 73.7, 3.0, 3.0, 17.8. MiniLM's row is in benchmarks/retrieval.py: minutes."""
    board = Scoreboard(embeddings("static"), *load_benchmark())
    separators = ["\n\n", "\n", ".", "?", "!", " ", ""]
    row = board.add("recursive", RecursiveChunker(400, separators=separators, length_function=tokens("cl100k")))
    shares = [100 * row.scores[metric].mean() for metric in ("recall", "precision", "iou", "omega")]
    assert shares == pytest.approx([73.7, 3.0, 3.0, 17.8], abs=1)
    assert shares[3] == pytest.approx(17.8, abs=0.05)
