"""A sweep measures what the scoreboard measures, once, and never takes a row for that of something else."""

import json
import warnings
from functools import partial

import pytest
from test_evaluation import DOCUMENTS, QUESTIONS, Words

import chunklab
from chunklab import (
    ChunkIndex,
    RecursiveChunker,
    Scoreboard,
    SemanticChunker,
    SentenceChunker,
    Window,
    embeddings,
    plot_heatmap,
    plot_sweep,
    sweep,
)
from chunklab.chunkers.fixed import FixedSizeChunker, SlidingWindowChunker
from chunklab.kept_rows import KeptRows, digest

CHUNKERS = {"recursive": RecursiveChunker}
GRID = {"chunk_size": [20, 40], "chunk_overlap": [0, 10]}


def swept(chunkers=CHUNKERS, grid=GRID, model=None, **options):
    options = {"documents": DOCUMENTS, "questions": QUESTIONS, "k": 2} | options
    return sweep(chunkers, grid, model or Words(), **options)


def without_time(frame):
    return frame.drop(columns="seconds").to_dict("list")


class Failing(Words):
    """Fails at the text that holds a word, until it is mended."""

    fails = True

    def embed_documents(self, texts):
        if self.fails and any(len(text) > 30 for text in texts):
            raise RuntimeError("the server is down")
        return super().embed_documents(texts)


class Other(Words):
    """Has the same name, but other vectors."""

    def embed_documents(self, texts):
        return [vector[::-1] for vector in super().embed_documents(texts)]


class Named(Words):
    def __init__(self, name):
        super().__init__()
        self.name = name


# What it measures.


def test_each_row_is_that_of_the_scoreboard():
    frame = swept()
    assert list(frame.index) == [
        f"recursive chunk_size={s} chunk_overlap={o}, chunks, words" for s in (20, 40) for o in (0, 10)
    ]
    assert list(frame.columns[:5]) == ["chunker", "chunk_size", "chunk_overlap", "strategy", "embedder"]
    board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=2)
    for size, overlap in zip(frame["chunk_size"], frame["chunk_overlap"], strict=True):
        board.add(f"{size} {overlap}", RecursiveChunker(size, overlap))
    expected = board.frame().rename(columns={"size": "mean_size", "size_sd": "mean_size_sd"}).drop(columns="seconds")
    assert frame[expected.columns].to_dict("list") == expected.to_dict("list")


def test_the_same_sweep_gives_the_same_frame():
    assert without_time(swept()) == without_time(swept())


def test_its_frame_is_ready_for_the_figures():
    frame = swept()
    assert "chunk overlap 10" in plot_sweep(frame, "chunk_size", "recall", by="chunk_overlap").alt
    assert plot_heatmap(frame, "chunk_size", "chunk_overlap", "iou").alt.startswith("iou by")


def test_each_chunker_may_have_its_own_grid():
    chunkers = CHUNKERS | {"sentence": SentenceChunker, "sliding": SlidingWindowChunker}
    frame = swept(chunkers, {"recursive": {"chunk_size": [20]}, "sliding": {"size": [20, 30], "overlap": [5]}})
    assert list(frame["chunker"]) == ["recursive", "sentence", "sliding", "sliding"]
    assert list(frame["chunk_size"]) == [20, None, None, None] and list(frame["size"]) == [None, None, 20, 30]
    assert frame["mean_size"].notna().all()


def test_a_chunker_that_takes_a_model_has_that_of_its_row():
    cheap, better = Named("cheap"), Named("better")
    seen = []

    def semantic(embeddings, amount):
        seen.append(embeddings)
        return SemanticChunker(embeddings, breakpoint_threshold_amount=amount)

    swept({"semantic": semantic}, {"amount": [50, 90]}, cheap, better=better)
    assert seen == [cheap, cheap, better, better]
    other = Named("other")
    swept({"semantic": partial(SemanticChunker, embeddings=other)}, {}, cheap)
    assert other.asked


def test_each_strategy_is_a_row():
    strategies = {"chunks": ChunkIndex, "window": lambda chunks, model: Window(ChunkIndex(chunks, model))}
    frame = swept(grid={"chunk_size": [20]}, strategies=strategies)
    assert list(frame["strategy"]) == ["chunks", "window"] and frame["tokens"].iloc[1] > frame["tokens"].iloc[0]


def test_a_budget_counts_only_the_passages_that_fit():
    frame = swept(grid={"chunk_size": [20, 40]}, k=9, max_tokens=12)
    assert frame["tokens"].max() <= 12 and swept(grid={"chunk_size": [40]}, k=9)["tokens"].max() > 12
    board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=9)
    board.add("20", RecursiveChunker(20))
    assert frame["recall"].iloc[0] == board.within(12).frame()["recall"].iloc[0]


@pytest.mark.parametrize("own", [None, 8], ids=["the sweep's budget", "its own"])
def test_a_strategy_knows_the_budget_before_it_merges(own):
    # All chunks are found and lie side by side: merged first, each passage would be a whole document, and none would fit.
    def window(chunks, model):
        return Window(ChunkIndex(chunks, model), max_tokens=own)

    frame = swept(grid={"chunk_size": [20]}, k=99, max_tokens=12, strategies={"window": window})
    board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=99)
    board.add("window", RecursiveChunker(20), index=lambda c, m: Window(ChunkIndex(c, m), max_tokens=own or 12))
    assert frame["recall"].iloc[0] == board.frame()["recall"].iloc[0] > 0
    assert 0 < frame["tokens"].iloc[0] <= (own or 12)


def test_the_better_model_measures_the_finalists_alone():
    cheap, better = Named("cheap"), Named("better")
    frame = swept(model=cheap, better=better, finalists=2, metric="iou")
    first, last = frame[frame["embedder"] == "cheap"], frame[frame["embedder"] == "better"]
    assert len(first) == 4 and len(last) == 2
    best = first.sort_values(["iou", "tokens"], ascending=[False, True], kind="stable").index[:2]
    assert {name.rpartition(", ")[0] for name in best} == {name.rpartition(", ")[0] for name in last.index}
    assert len(better.asked) < len(cheap.asked)


# What it keeps.


def test_after_a_fault_only_the_rest_is_measured(tmp_path):
    path = tmp_path / "sweep.jsonl"
    model = Failing()
    with pytest.raises(RuntimeError, match="the server is down") as caught:
        swept(model=model, path=path)
    assert "recursive chunk_size=40 chunk_overlap=0" in caught.value.__notes__[0]
    assert len(path.read_text().splitlines()) == 2
    model.fails, model.asked = False, []
    resumed = swept(model=model, path=path)
    assert not [
        text for text in model.asked if text in {c.text for c in RecursiveChunker(20).chunk(DOCUMENTS["bell.txt"])}
    ]
    assert without_time(resumed) == without_time(swept())
    model.asked = []
    assert without_time(swept(model=model, path=path)) == without_time(resumed)
    # A second look asks for the questions alone.
    assert set(model.asked) == {question.question for question in QUESTIONS}


def test_a_larger_grid_measures_only_what_is_new(tmp_path):
    path = tmp_path / "sweep.jsonl"
    first = swept(grid={"chunk_size": [20]}, path=path)
    both = swept(grid={"chunk_size": [10, 20]}, path=path)
    assert len(path.read_text().splitlines()) == 2
    assert both["seconds"].iloc[1] == first["seconds"].iloc[0]


def test_a_line_that_was_torn_is_measured_again(tmp_path):
    path = tmp_path / "sweep.jsonl"
    whole = swept(path=path)
    path.write_bytes(path.read_bytes()[:-20])
    assert without_time(swept(path=path)) == without_time(whole)
    lines = path.read_text().splitlines()
    assert len(lines) == 5 and json.loads(lines[-1])["run"] == whole.index[-1]
    assert without_time(swept(path=path)) == without_time(whole) and len(path.read_text().splitlines()) == 5


CHANGES = {
    "documents": {"documents": DOCUMENTS | {"third.txt": "Something else."}},
    "questions": {"questions": QUESTIONS[:-1]},
    "k": {"k": 3},
    "max_tokens": {"max_tokens": 9},
    "model": {"model": Other()},
    "chunker": {"chunkers": {"recursive": partial(RecursiveChunker, keep_separator="end")}},
    "strategy": {"strategies": {"chunks": lambda chunks, model: Window(ChunkIndex(chunks, model))}},
}


@pytest.mark.parametrize("changed", CHANGES)
def test_what_was_measured_with_something_else_is_not_used(changed, tmp_path):
    path = tmp_path / "sweep.jsonl"
    swept(path=path)
    with pytest.warns(UserWarning, match=f"rows are measured anew: those in the file had other {changed}$"):
        found = swept(**CHANGES[changed], path=path)
    assert without_time(found) == without_time(swept(**CHANGES[changed]))
    # Both are there now, and neither is measured again.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        swept(path=path)
        swept(**CHANGES[changed], path=path)
    assert len(path.read_text().splitlines()) == 8


def test_an_edited_lambda_is_another_strategy():
    def with_n(n):
        return lambda chunks, model: Window(ChunkIndex(chunks, model), n=n)

    assert digest(with_n(1)) == digest(with_n(1)) != digest(with_n(2))
    assert digest(lambda c, m: ChunkIndex(c, m)) != digest(lambda c, m: Window(ChunkIndex(c, m)))


def test_what_a_notebook_defines_counts_by_its_code():
    def run(number, size):
        scope = {"__name__": "__main__", "size": size}
        exec(f"class Mine:\n    def chunk(self, text, doc_id): return {number}\ndef made(): return size, made", scope)
        return digest(scope["Mine"]()), digest(scope["made"])

    assert run(1, 5) == run(1, 5)
    assert run(1, 5)[0] != run(2, 5)[0] and run(1, 5)[1] != run(1, 6)[1]


def test_a_chunker_counts_by_its_settings_and_its_model():
    assert digest(RecursiveChunker(20)) == digest(RecursiveChunker(20)) != digest(RecursiveChunker(21))
    assert digest(SemanticChunker(Named("a"))) == digest(SemanticChunker(Named("a")))
    assert digest(SemanticChunker(Named("a"))) != digest(SemanticChunker(Named("b")))
    used = Words()
    before = digest(used)
    used.embed_documents(["a text"])
    assert digest(used) == before


# What it refuses.


def test_combinations_that_a_chunker_refuses_are_left_out_and_said():
    with pytest.warns(
        UserWarning, match=r"1 of 4 combinations are left out.*chunk_size=10 chunk_overlap=10.*chunk_overlap=10: "
    ):
        frame = swept(grid={"chunk_size": [10, 20], "chunk_overlap": [0, 10]})
    assert len(frame) == 3


def test_chunks_that_are_too_long_are_said_once():
    model = Words()
    model.max_tokens, model.count_tokens = 30, len
    with pytest.warns(UserWarning, match="in 2 runs some chunks are longer than words reads") as said:
        frame = swept(model=model)
    assert len(said) == 1 and (frame["truncated"] > 0).tolist() == [False, False, True, True]


BAD = {
    "grid: its chunkers refuse all of it": {"grid": {"chunk_size": [10], "chunk_overlap": [10, 11]}},
    "grid has 'size': recursive must have it, and has chunk_size": {"grid": {"size": [10]}},
    "grid has 'recursve': must be one of the chunkers, recursive": {"grid": {"recursve": {"chunk_size": [10]}}},
    "grid has 'chunk_size': 10: must be a list": {"grid": {"chunk_size": 10}},
    "grid has 'chunk_size': '10': must be a list": {"grid": {"chunk_size": "10"}},
    "grid has 'chunk_size' without values": {"grid": {"chunk_size": []}},
    "grid has 'separators' with ": {"grid": {"separators": [["a"]]}},
    "grid has 'recall': the sweep's own columns": {
        "chunkers": {"mine": lambda recall: RecursiveChunker(recall)},
        "grid": {"recall": [9]},
    },
    "grid=": {"grid": [10]},
    r"grid\['sentence'\]=": {
        "chunkers": CHUNKERS | {"sentence": SentenceChunker},
        "grid": {"recursive": {}, "sentence": [1]},
    },
    "chunkers has 'mine', which needs 'size'": {"chunkers": {"mine": lambda size: FixedSizeChunker(size)}, "grid": {}},
    "chunkers has 'mine', which gave 3": {"chunkers": {"mine": lambda: 3}, "grid": {}},
    "chunkers=": {"chunkers": [RecursiveChunker]},
    "chunkers={}": {"chunkers": {}},
    "chunkers={'recursive'": {"chunkers": {"recursive": RecursiveChunker(20)}},
    "strategies=": {"strategies": {"chunks": "ChunkIndex"}},
    "metric='f1'": {"metric": "f1"},
    "k=0": {"k": 0},
    "finalists=0": {"finalists": 0},
    "max_tokens=0": {"max_tokens": 0},
    "embeddings='minilm'": {"model": "minilm"},
    "better='minilm'": {"better": "minilm"},
    "path=3": {"path": 3},
    "path='nowhere": {"path": "nowhere/sweep.jsonl"},
    "questions is empty": {"questions": []},
}


@pytest.mark.parametrize("said", BAD)
def test_bad_arguments_are_named_before_any_work(said):
    model = Words()
    with pytest.raises(ValueError, match=said):
        swept(**({"model": model} | BAD[said]))
    assert model.asked == []


def test_a_file_that_holds_something_else_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(ValueError, match="must be a new file, or one that sweep has made"):
        swept(path=path)
    assert path.read_text() == "my notes\n"


def test_a_row_that_is_no_row_is_passed_over(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"run": "a", "made_with": {}, "row": {"x": 1}}\n{"run": 3}\n[]\n{"run": "a", "made_with"')
    rows = KeptRows(path)
    rows.put("b", {}, {"x": 2})
    assert KeptRows(path).get("a", {}) == {"x": 1} and KeptRows(path).get("b", {}) == {"x": 2}


def test_the_names_come_from_the_package():
    assert chunklab.sweep is sweep
    assert embeddings("static").name == "static"
