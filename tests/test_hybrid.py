"""Hybrid search: the words count, the meaning counts, in the shares asked for, and the order is settled."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_retrieval import Fixed, found

from chunklab import ChunkIndex, Hybrid, MultiVectorIndex, Scoreboard, Window
from chunklab.chunk import Chunk
from chunklab.hybrid import K1, B, HybridIndex, WordScores, stemmed, words_of

MEANING = {"pump 7 drips": [1, 0], "pump 8 drips": [0.9, 0.1], "rain falls": [0, 1], "pump 8": [1, 0], "zzz": [0, 0]}


def chunks_of(*texts, document="a.md"):
    """Chunks that stand apart."""
    return [
        Chunk(t, 100 * i, 100 * i + len(t), document, f"{document}_{i}", None, i, len(texts))
        for i, t in enumerate(texts)
    ]


def hybrid_of(*texts, **options):
    return Hybrid(ChunkIndex(chunks_of(*texts), Fixed(MEANING)), **options)


def test_a_word_tells_apart_what_means_the_same():
    texts = ("pump 7 drips", "pump 8 drips", "rain falls")
    assert found(hybrid_of(*texts, word_weight=0).search("pump 8"))[0] == "pump 7 drips"
    for fusion in ("score", "rank"):
        assert found(hybrid_of(*texts, word_weight=0.6, fusion=fusion).search("pump 8"))[0] == "pump 8 drips"


def test_without_words_it_is_the_order_of_the_index_and_without_meaning_that_of_bm25():
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["bell", "tide", "pump", "ferry", "oil"], 6)) for _ in range(60)]
    model = Fixed({text: rng.normal(size=8) for text in texts} | {"oil the pump": rng.normal(size=8)})
    index = ChunkIndex(chunks_of(*texts), model)
    for fusion in ("score", "rank"):
        plain = [h.chunk for h in index.search("oil the pump", 60)]
        assert [h.chunk for h in HybridIndex(index, 0, fusion, None).search("oil the pump", 60)] == plain
        words = WordScores(index.chunks, None).scores("oil the pump")
        by_words = [h.chunk.index for h in HybridIndex(index, 1, fusion, None).search("oil the pump", 60)]
        assert by_words == np.lexsort((np.arange(60), -words)).tolist()


@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=12), st.text("abcd ", max_size=6))
def test_bm25_is_the_published_formula(texts, query):
    chunks = chunks_of(*texts)
    counts = [Counter(text.split()) for text in texts]
    mean = sum(map(Counter.total, counts)) / len(texts)
    wanted = []
    for words in counts:
        score = 0.0
        for word in query.split():
            having = sum(word in other for other in counts)
            idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            if word in words:
                score += idf * words[word] / (words[word] + K1 * (1 - B + B * words.total() / mean))
        wanted.append(score)
    assert WordScores(chunks, None).scores(query).tolist() == pytest.approx(wanted, abs=1e-5)


def test_the_scores_are_what_the_weight_says():
    index = ChunkIndex(chunks_of("pump 7 drips", "pump 8 drips", "rain falls"), Fixed(MEANING))
    meaning, words = index.scores(["pump 8"])[0], WordScores(index.chunks, "english").scores("pump 8")

    def standard(values):
        return (values - values.mean()) / values.std()

    hits = HybridIndex(index, 0.3, "score", "english").search("pump 8")
    wanted = 0.7 * standard(meaning) + 0.3 * standard(words)
    assert {h.chunk.index: h.score for h in hits} == pytest.approx(dict(enumerate(wanted)))
    hits = HybridIndex(index, 0.3, "rank", "english").search("pump 8")
    wanted = [0.7 / 61 + 0.3 / 62, 0.7 / 62 + 0.3 / 61, 0.7 / 63]
    assert {h.chunk.index: h.score for h in hits} == pytest.approx(dict(enumerate(wanted)))


def test_a_score_does_not_depend_on_the_filter_nor_on_the_queries_beside_it():
    hybrid = hybrid_of("pump 7 drips", "pump 8 drips", "rain falls")
    every = {h.chunk.id: h.score for h in hybrid.search("pump 8")}
    some = hybrid.search("pump 8", where=lambda c: c.index > 0)
    assert {h.chunk.id: h.score for h in some} == {name: score for name, score in every.items() if name != "a.md_0"}
    assert hybrid.search("pump 8", where={"index": 2})[0].chunk.text == "rain falls"
    assert hybrid.search_many(["rain falls", "pump 8"] * 50)[99] == hybrid.search("pump 8")
    assert hybrid.search("pump 8", k=2) == hybrid.search("pump 8")[:2]
    cut = hybrid.search("pump 8")[1].score
    assert hybrid.search("pump 8", min_score=cut) == hybrid.search("pump 8", k=2)


def test_equal_scores_keep_the_order_of_the_index():
    model = Fixed({"same words": [1, 0], "others": [0, 1], "same": [1, 0]})
    index = ChunkIndex(chunks_of("others", *["same words"] * 40, "others"), model)
    for fusion in ("score", "rank"):
        hits = HybridIndex(index, 0.5, fusion, "english").search("same", 41)
        assert [h.chunk.index for h in hits] == [*range(1, 41), 0]


def test_a_query_without_known_words_or_without_direction():
    texts = ("pump 7 drips", "rain falls")
    model = Fixed(MEANING | {"?!": [0, 1], "falls rain": [0, 0]})
    hybrid = Hybrid(ChunkIndex(chunks_of(*texts), model))
    for fusion in ("score", "rank"):
        hybrid = Hybrid(ChunkIndex(chunks_of(*texts), model), fusion=fusion)
        assert found(hybrid.search("?!", k=1)) == ["rain falls"], "by meaning alone"
        assert found(hybrid.search("falls rain", k=1)) == ["rain falls"], "by words alone"
        assert hybrid.search("zzz") == []


def test_what_has_no_weight_finds_nothing():
    texts = ("pump 7 drips", "rain falls")
    model = Fixed(MEANING | {"?!": [0, 1], "falls": [0, 0]})
    for fusion in ("score", "rank"):
        by_words, by_meaning = (
            Hybrid(ChunkIndex(chunks_of(*texts), model), fusion=fusion, word_weight=w) for w in (1, 0)
        )
        assert by_words.search("?!") == [] == by_meaning.search("falls"), "no word that is known, no direction"
        assert found(by_words.search("falls", k=1)) == found(by_meaning.search("?!", k=1)) == ["rain falls"]


def test_of_another_strategy_the_index_under_it_is_taken():
    index = ChunkIndex(chunks_of("pump 7 drips", "pump 8 drips", "rain falls"), Fixed(MEANING))
    plain = Hybrid(index, word_weight=0.6).search("pump 8")
    for other in (Window(index), Hybrid(index), Window(Hybrid(index, word_weight=0)), Hybrid(Hybrid(index)).index):
        assert Hybrid(other, word_weight=0.6).search("pump 8") == plain


def test_bad_arguments_are_named_before_a_word_is_counted(monkeypatch):
    monkeypatch.setattr("chunklab.hybrid.words_of", None)
    index = ChunkIndex(chunks_of("rain falls"), Fixed(MEANING))
    for bad in (
        {"k": 0},
        {"max_tokens": 0},
        {"min_score": "x"},
        {"length_function": str},
        {"language": "klingon"},
        {"word_weight": 2},
    ):
        with pytest.raises(ValueError, match=f"^{min(bad)}="):
            Hybrid(index, **bad)
    with pytest.raises(TypeError, match="no option 'weight'"):
        Hybrid(index, weight=1)


@pytest.mark.parametrize("texts", [[], [" "], ["…", "!!"], ["word", " ", "--"]])
def test_chunks_without_words(texts):
    model = Fixed({text: [1, 0] for text in texts} | {"word": [1, 0]})
    assert len(Hybrid(ChunkIndex(chunks_of(*texts), model)).search("word")) == (len(texts) if texts != [" "] else 0)


def test_words_of_any_script():
    assert words_of("The BELL's 2nd naïve\u0301—Größe, snake_case") == [
        "the",
        "bell",
        "s",
        "2nd",
        "naï" + "v\u00e9",
        "grösse",
        "snake_case",
    ]
    assert words_of("हिन्दी में") == ["हिन्दी", "में"], "a vowel sign is part of its word"
    assert words_of("한국어 문장") == ["한국어", "문장"]
    assert words_of("東京") == ["東", "京", "東京"] and words_of("ｶﾞ") == ["ガ"]
    assert words_of("MP3を買う") == ["mp3", "を", "買", "う", "を買", "買う"]
    assert words_of("") == words_of("…!") == []
    assert stemmed(["running runs", ""]) == [["run", "run"], []] and stemmed(["Häuser Haus"], "german") == [
        ["haus", "haus"]
    ]
    assert stemmed(["running"], None) == [["running"]]


ANY = st.characters(exclude_categories=())  # halves of surrogate pairs too


@given(st.lists(st.text(ANY, max_size=20), max_size=5), st.text(ANY, min_size=1, max_size=10))
def test_no_text_crashes(texts, query):
    scores = WordScores(chunks_of(*texts), "english").scores(query)
    assert scores.shape == (len(texts),) and np.isfinite(scores).all() and (scores >= 0).all()


def test_chinese_is_found_by_its_characters():
    texts = ["鐘は古い。創設者は鍛冶屋だった。", "雨が港に降る。", "渡し船は青い。"]
    model = Fixed({text: [1, 0] for text in [*texts, "港の雨"]})
    assert found(Hybrid(ChunkIndex(chunks_of(*texts), model)).search("港の雨", k=1)) == [texts[1]]


def test_sentences_neighbours_and_words_work_together():
    texts = ["A cat. A tax.", "Rain falls.", "An oak."]
    model = Fixed(
        {
            "A cat. A tax.": [1, 1],
            "A cat.": [1, 0],
            "A tax.": [0, 1],
            "Rain falls.": [0, -1],
            "An oak.": [-1, 0],
            "cat": [1, 0],
        }
    )
    index = MultiVectorIndex(chunks_of(*texts), model, 1, 0)
    hits = Hybrid(index).search("cat")
    assert found(hits)[0] == "A cat. A tax." and index.scores(["cat"])[0].tolist() == [1, 0, -1]
    (window, *_) = Window(Hybrid(index), k=1, n=1).search("cat")
    assert window.chunk.metadata["chunks"] == ["a.md_0", "a.md_1"]


def test_chunks_that_overlap_are_merged_by_hybrid_and_not_by_its_index():
    text = "pump 7 drips, pump 8 drips"
    chunks = [Chunk(text[a:b], a, b, "d", f"d_{i}", None, i, 2) for i, (a, b) in enumerate([(0, 20), (14, 26)])]
    hybrid = Hybrid(ChunkIndex(chunks, Fixed({c.text: [1, 0] for c in chunks} | {"pump 8": [1, 0]})))
    assert found(hybrid.search("pump 8")) == [text] and len(hybrid.index.search("pump 8")) == 2
    assert hybrid.invoke("pump 8")[0].page_content == text


def test_words_are_counted_again_where_the_index_has_changed():
    index = ChunkIndex(chunks_of("pump 7 drips", "rain falls"), Fixed(MEANING))
    hybrid = Hybrid(index, k=1, word_weight=1)
    assert found(hybrid.search("pump 8")) == ["pump 7 drips"]
    index.add(chunks_of("pump 8 drips", document="b.md"))
    assert found(hybrid.search("pump 8")) == ["pump 8 drips"]
    index.remove("a.md")
    assert len(hybrid.index) == 1 and found(hybrid.search("pump 8")) == ["pump 8 drips"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"index": None}, "index=None: must be a ChunkIndex or"),
        ({"index": ChunkIndex}, "index=.*must be"),
        ({"word_weight": 1.1}, "word_weight=1.1.*from 0 to 1"),
        ({"word_weight": None}, "word_weight=None"),
        ({"word_weight": True}, "word_weight=True"),
        ({"fusion": "sum"}, "fusion='sum'.*'score', 'rank'"),
        ({"language": "klingon"}, "language='klingon'.*'english'"),
        ({"k": 0}, "k=0"),
        ({"min_score": math.nan}, "min_score=nan"),
        ({"min_score": "0.5"}, "min_score='0.5'"),
        ({"max_tokens": -1}, "max_tokens=-1"),
    ],
)
def test_bad_arguments_are_named(arguments, says):
    index = ChunkIndex(chunks_of("rain falls"), Fixed(MEANING))
    with pytest.raises(ValueError, match=says):
        Hybrid(**({"index": index} | arguments))


def test_vectors_alone_are_refused():
    with pytest.raises(ValueError, match="must be texts, as their words are compared too"):
        hybrid_of("rain falls").search_many(np.ones((1, 2)))
    with pytest.raises(ValueError, match="query='  '"):
        hybrid_of("rain falls").search("  ")


def test_the_scoreboard_gives_it_the_words(monkeypatch):
    from test_evaluation import DOCUMENTS, QUESTIONS, Sentences, Words

    monkeypatch.setattr("chunklab.models.tokens.tokens", lambda name: lambda text: len(text.split()))
    board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=2)
    board.add("hybrid", Sentences(), index=lambda chunks, model: Hybrid(ChunkIndex(chunks, model)))
    row = board.add(
        "window",
        Sentences(),
        index=lambda chunks, model: Window(Hybrid(ChunkIndex(chunks, model)), documents=DOCUMENTS),
    )
    assert len(row.sizes) == 6 and row.hits[0][0].chunk.end - row.hits[0][0].chunk.start > 30
    assert board.within(8).rows["hybrid"].tokens.max() <= 8
