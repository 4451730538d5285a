"""Your own documents: files in, a test set, a sweep and a recommendation out, honest about what it rests on."""

import itertools
import json
import random
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from fake_llm import FakeLLM
from files import make_docx, make_pdf, p
from test_evaluation import Words
from test_testset import good

import chunklab.recommending
from chunklab import LLMError, Scoreboard, embeddings, load_corpus, load_questions, recommend
from chunklab.chunkers import asking
from chunklab.known_items import known_items
from chunklab.own_documents import read_documents
from chunklab.recommending import BUDGET, KNOWN_ITEMS, questions_needed

NAMES = "Ada Bela Cora Dora Edda Fred Gwen Hans Ivan Jana Karl Lena Mara Nora Otto Paul Rosa Sara Theo Vera".split()
PLACES = "Orrin Maw Vell Lunt Skerry Holm Brack Ness Tarn Wick".split()
WORDS = (
    "seal fog lamp oil price rope bread letter harbour tide wheel anchor candle ledger gull storm island kettle window "
    "winter apple copper needle garden ladder mirror saddle violin hammer blanket feather lantern pepper barrel"
).split()


def told(n, name, place):
    rng = random.Random(n)
    things = [" and the ".join(rng.sample(WORDS, 6)) for _ in range(3)]
    return (
        f"{name} went ashore on {place} for the {things[0]}. The crossing took {n + 3} hours. Nobody there had seen the "
        f"{things[1]} before. Later a long letter told of the {things[2]}."
    )


TOLD = [told(n, a + b.lower(), b) for n, (b, a) in enumerate(itertools.product(PLACES[::3], NAMES[::2]))]
SMALL = 300  # tokens: these texts are short


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(asking, "sleep", lambda seconds: None)
    monkeypatch.setattr(chunklab.recommending, "SIZES", [300, 1000])
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of every kind, one that is damaged, and one that says what another says."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "notes"
    place.mkdir()
    parts = [TOLD[n::4] for n in range(4)]
    (place / "a.txt").write_text("\n\n".join(parts[0]), encoding="utf-8")
    (place / "b.md").write_text("\n\n".join(f"# Part {n}\n\n{t}" for n, t in enumerate(parts[1])), encoding="utf-8")
    (place / "c.docx").write_bytes(make_docx("".join(map(p, parts[2]))))
    (place / "d.html").write_text("".join(f"<p>{t}</p>" for t in parts[3]), encoding="utf-8")
    (place / "e.pdf").write_bytes(make_pdf("A page about tides.\nIt is short."))
    (place / "copy.txt").write_text("\n\n".join(parts[0][:8]), encoding="utf-8")
    (place / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    return Path("notes")


def made(folder, llm=None, **options):
    options = {"questions": 24, "max_tokens": SMALL} | options
    return recommend(folder, llm or FakeLLM(says=good), **options)


def without_time(frame):
    return frame.drop(columns="seconds").to_dict("list")


# From end to end.


def test_ids_are_short(tmp_path):
    for name in ("one/a.txt", "one/deep/b.txt", "two/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(" ".join(f"{name}{n}" for n in range(40)))
    assert list(read_documents(tmp_path).texts) == ["one/a.txt", "one/deep/b.txt", "two/a.txt"]
    assert list(read_documents([tmp_path / "one", tmp_path / "two/a.txt"]).texts) == [
        "a.txt",
        "deep/b.txt",
        (tmp_path / "two/a.txt").as_posix(),
    ], "a name that is taken keeps its path"


def test_a_folder_of_mixed_files_gives_questions_a_sweep_a_choice_and_a_report(folder):
    result = made(folder, output="report.html")
    assert set(result.own.texts) == {"a.txt", "b.md", "c.docx", "d.html", "e.pdf"}
    assert [Path(line.partition(":")[0]).name for line in result.own.unread] == ["broken.pdf"]
    assert result.own.doubled == {"copy.txt": "a.txt"}
    assert len(result.questions) >= 20 and result.halved and not result.with_known_items
    assert set(result.frame["chunker"]) == {"recursive", "sentence", "paragraph", "heading", "semantic"}
    assert set(result.frame["strategy"]) == {"meaning", "words too"} and len(result.frame) == 20
    assert result.frame["tokens"].max() <= SMALL
    chunks = [c for name, text in result.own.texts.items() for c in result.chunker.chunk(text, name)]
    assert result.strategy(chunks, embeddings("static")).search("Who went ashore?", 2)
    said = result.text()
    assert result.name in said and str(len(result.questions)) in said and "Cost:" in said
    assert Path("report.html").read_text(encoding="utf-8") == result.html()


def test_choice_and_report_are_of_different_questions(folder):
    result = made(folder)
    assert result.differences[0].questions + result.frame["questions"].iloc[0] == len(result.questions)
    row = next(iter(result.rows.values()))
    assert len(row.scores["recall"]) == result.differences[0].questions


def test_the_default_stays_unless_the_interval_is_above_0(folder):
    result = made(folder)
    gain = result.differences[0]
    default = "recursive 1000 by meaning"
    assert (result.name != default) == (result.best != default and gain.low > 0)
    assert {d.one for d in result.differences} == {result.best} and (gain.other == default or result.best == default)


def test_finalists_are_measured_with_a_better_model_and_held_against_the_default(folder):
    result = made(folder, better=Words())
    again = result.frame[result.frame["embedder"] == result.embedder]
    assert len(again) == 5 and len(result.frame) == 25 and result.embedder == "words"
    assert result.best in {
        f"{r.chunker} {r.chunk_size} by " + ("words and meaning" if r.strategy == "words too" else "meaning")
        for r in again.itertuples()
    }
    assert "recursive 1000 by meaning" in result.rows and "embedded by words" in result.text()
    ET.fromstring(result.html())


def test_it_gives_the_same_again(folder):
    one, two = made(folder), made(folder)
    assert one.text() == two.text() and one.html() == two.html() and without_time(one.frame) == without_time(two.frame)


# Too few questions.


def test_with_few_questions_it_is_the_default_and_says_so(folder):
    result = made(folder, questions=8)
    assert not result.halved and result.name == "recursive 1000 by meaning"
    assert "are too few to choose by, 20 are the least" in result.text() and "looks better than it is" in result.text()


def test_where_no_question_can_be_used_known_item_queries_stand_in_and_are_named(folder):
    result = made(folder, FakeLLM(mode="nothing"), questions=6, output="report.html")
    assert result.with_known_items and len(result.asked) == 0 and result.asked.dropped
    assert {q.kind for q in result.questions} == {"known item"} and 20 <= len(result.questions) <= KNOWN_ITEMS
    assert result.name == "recursive 1000 by meaning", "they choose nothing"
    assert "known-item queries, no questions" in result.text() and "such queries choose nothing" in result.text()
    page = result.html()
    assert "They are no questions" in page and "the model gave no answer that could be used" in page
    assert Path("report.questions.jsonl").read_bytes() == b"", "they are not put among the questions"


def test_a_few_questions_are_shown_but_never_mixed_with_known_items(folder):
    result = made(folder, questions=3)
    assert len(result.asked) == 3 and {q.kind for q in result.questions} == {"known item"}
    assert "Questions that there are, too few to measure with" in result.html()


def test_known_items_find_finalists_for_a_better_model_too(folder):
    result = made(folder, questions=0, better=Words())
    assert result.with_known_items and set(result.frame["strategy"]) == {"meaning"}
    assert result.name == "recursive 1000 by meaning" and (result.frame["embedder"] == "words").sum() == 5


def test_the_best_is_held_against_plain_chunks_in_its_own_size_and_search(folder):
    result = made(folder)
    cut, _, rest = result.best.partition(" ")
    assert cut == "recursive" or f"recursive {rest}" in {d.other for d in result.differences}


def test_without_a_key_a_model_that_does_not_answer_is_no_end(folder, monkeypatch):
    monkeypatch.setattr("chunklab.models.llm.chat", lambda **_: FakeLLM(faults={1: RuntimeError("no weights")}))
    result = recommend(folder, max_tokens=SMALL, output="report.html")
    assert result.with_known_items and "no weights" in result.problem and "no weights" in result.html()


def test_when_the_time_is_over_it_says_so_and_goes_on_another_time(folder):
    result = made(folder, seconds=0, output="report.html")
    assert result.with_known_items and "The time for questions, 0 s, was over: the same again goes on" in result.text()
    assert len(made(folder, output="report.html").asked) >= 20


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL"])
def test_with_a_key_it_is_an_error(folder, monkeypatch, name):
    monkeypatch.setenv(name, "x")
    monkeypatch.setattr("chunklab.models.llm.chat", lambda **_: FakeLLM(faults={1: RuntimeError("bad key")}))
    with pytest.raises(LLMError, match="bad key"):
        recommend(folder, max_tokens=SMALL)


def test_the_number_of_questions_needed_finds_the_gain_in_four_of_five_trials():
    rng = np.random.default_rng(0)
    gains = rng.choice([-1.0, 0, 1], 40, p=[0.1, 0.6, 0.3])
    count = questions_needed(gains)
    drawn = rng.choice(gains, (2000, count))
    low = drawn.mean(1) - 1.96 * drawn.std(1, ddof=1) / count**0.5
    assert 0.75 < (low > 0).mean() < 0.86
    assert (
        questions_needed(-gains) is None
        and questions_needed(np.zeros(9)) is None
        and questions_needed(np.ones(1)) is None
    )


# Known items.


def test_known_items_are_sentences_that_their_words_tell_apart():
    documents = {"a": " ".join(TOLD), "b": "Short. " * 50}
    items = known_items(documents, 20)
    assert len(items) == 20 == len({q.id for q in items}) and items == known_items(documents, 20)
    for q in items:
        (gold,) = q.spans
        assert documents[gold.document][gold.start : gold.end] == gold.quote and len(q.question.split()) == 4
        held = [
            t
            for t in re.split(r"(?<=\.) ", documents["a"])
            if all(w in t.casefold().split() for w in q.question.split())
        ]
        assert len(held) <= 1
    assert known_items({"a": ""}) == [] == known_items({"a": "One two. " * 30})


def test_known_items_flatter_short_chunks_as_the_text_says():
    documents = load_corpus()
    gains = []
    for asked in (load_questions(), known_items(documents, KNOWN_ITEMS)):
        board = Scoreboard(embeddings("static"), documents, asked, 60)
        board.add("short", chunklab.SentenceChunker(300))
        board.add("default", chunklab.RecursiveChunker(1000))
        gains.append(round(board.within(BUDGET).compare("short", "default").mean))
    assert gains == [-2, 33]


# Edits, faults, reruns.


def test_a_rerun_pays_nothing_twice(folder):
    one = made(folder, output="report.html")
    silent = FakeLLM(says=lambda words: pytest.fail("it was asked again"))
    rows = Path("report.sweep.jsonl").read_bytes()
    two = made(folder, silent, output="report.html")
    assert silent.asked == [] and two.questions.questions == one.questions.questions and two.text() == one.text()
    assert Path("report.sweep.jsonl").read_bytes() == rows
    assert made(folder, silent, questions=0, output="report.html").text() == one.text().replace(" (fake)", "")


def test_what_a_person_wrote_stays_and_is_measured_with(folder):
    made(folder, output="report.html")
    path = Path("report.questions.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    mine = {
        "question": "What is the page about?",
        "answer": "Tides.",
        "spans": [{"document": "e.pdf", "quote": "A page about tides."}],
    }
    changed = json.loads(lines[0]) | {"question": "How long was the first crossing of all?"}
    path.write_text("\n".join([json.dumps(changed), *lines[2:], json.dumps(mine)]) + "\n", encoding="utf-8")
    result = made(folder, output="report.html")
    said = [q.question for q in result.questions]
    assert said[0] == changed["question"] and mine["question"] in said and json.loads(lines[1])["question"] not in said
    assert mine["question"] in result.html()


def test_a_fault_loses_nothing(folder, monkeypatch):
    model, faulty = FakeLLM(says=good), FakeLLM(says=good, faults={10: RuntimeError("down")})
    with pytest.raises(LLMError):
        made(folder, faulty, output="report.html")
    with monkeypatch.context() as patch:
        patch.setattr(chunklab.recommending, "Scoreboard", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        with pytest.raises(OSError, match="no space"):
            made(folder, model, output="report.html")
    rows = Path("report.sweep.jsonl").read_bytes()
    result = made(folder, model, output="report.html")
    assert faulty.answered == 9 and len({*faulty.asked[:9], *model.asked}) == 9 + len(model.asked), (
        "none is asked twice"
    )
    assert Path("report.sweep.jsonl").read_bytes() == rows
    assert result.questions.questions == made(folder).questions.questions


def test_a_report_is_no_document(folder):
    made(folder, output="notes/report.html")
    (folder / "older.html").write_text((folder / "report.html").read_text(encoding="utf-8"), encoding="utf-8")
    assert "older.html" not in read_documents("notes").texts


# The page.


def parsed(page):
    assert page.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(page)


def test_the_page_is_whole_and_needs_nothing_else(folder):
    page = made(folder, output="report.html").html()
    root = parsed(page)
    assert not re.search(r"https?:|<script|<link|@import|url\(|javascript:|\son\w+=", page)
    images = list(root.iter("img"))
    assert len(images) == 2 and all(i.get("src").startswith("data:image/png;base64,") and i.get("alt") for i in images)
    for needed in (
        "Of the variance between the runs",
        "Left out",
        "copy.txt",
        "broken.pdf",
        "gold quote",
        "How to go on",
        "report.questions.jsonl",
        "light dark",
    ):
        assert needed in page, needed
    assert re.search(r"\d\.\d \[\d", page) and re.search(r"[+-]\d+\.\d \[[+-]", page)


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'\x00\x07\u202eevil\ufffe</table>]]>--><!--"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows allows no such names")
def test_names_and_texts_of_strangers_are_shown_and_are_no_mark_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "in"
    place.mkdir()
    name = "<img src=x onerror='alert(1)'>&\u202e.txt"
    text = "\n\n".join(t.replace("The crossing", f"{HOSTILE} The crossing") for t in TOLD)
    (place / name).write_text(text, encoding="utf-8")
    (place / "<b>bad<b>.pdf").write_bytes(b"%PDF")

    def hostile(words):
        said = json.loads(good(words))
        return json.dumps(said | {"answer": said["answer"].replace(".", " <b>x</b> hours.")})

    for model in (FakeLLM(says=hostile), FakeLLM(mode="nothing")):
        root = parsed(made("in", model, questions=24 if model.says else 2).html())
        assert len(list(root.iter("img"))) == 2 and list(root.iter("script")) == [] and list(root.iter("b")) == []
        shown = "".join(root.itertext())
        assert name in shown and "<b>bad<b>.pdf" in shown


# Wrong arguments.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"paths": []}, "paths="),
        ({"paths": 5}, "paths="),
        ({"paths": [""]}, "paths="),
        ({"paths": "nope"}, "nothing there can be read.*nope"),
        ({"llm": 5}, "llm=5"),
        ({"embeddings": 5}, "embeddings=5"),
        ({"better": "minilm"}, "better='minilm'"),
        *[({"questions": value}, "questions=") for value in (-1, 1.5, True, False, "3", None)],
        *[({"max_tokens": value}, "max_tokens=") for value in (0, -1, "3", None)],
        *[({"seconds": value}, "seconds=") for value in (-1, float("nan"), "3", None)],
        *[({"output": value}, "output=") for value in (5, "", "report", "report.txt", "no/such/folder/r.html")],
        ({"max_tokens": 10**6}, "are too little to choose by: must be 8,000,000 or more"),
    ],
)
def test_a_wrong_argument_is_named_before_any_work(folder, monkeypatch, arguments, says):
    monkeypatch.setattr(chunklab.recommending, "make_testset", lambda *_: pytest.fail("work was begun"))
    arguments = {"paths": "notes", "llm": FakeLLM(says=good)} | arguments
    with pytest.raises(ValueError, match=says):
        recommend(**arguments)
    assert list(Path().glob("*.jsonl")) == []
