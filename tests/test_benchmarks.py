"""The benchmarks run: a small text, one round, no word about speed."""

import importlib.util
import math
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_the_speed_benchmark_runs(capsys, monkeypatch):
    speed = load("speed")
    monkeypatch.setattr(speed, "public_text", lambda: "\n\n".join(speed.load_corpus().values()))
    results = speed.main(["--smoke"])
    assert len(results) == 10 and all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name, _ in results)


def test_the_semantic_benchmark_runs(monkeypatch):
    semantic = load("semantic")
    monkeypatch.setattr(semantic, "public_text", lambda: "\n\n".join(load("speed").load_corpus().values()))
    results = semantic.main(["--smoke"])
    assert len(results) == 9 and all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)


def test_the_index_benchmark_runs(capsys):
    results = dict(load("index").main(["--smoke"]))
    assert len(results) == 10 and all(math.isfinite(value) and value >= 0 for value in results.values())
    assert results["questions a second, one by one"] > 0 and "| seconds to index |" in capsys.readouterr().out


def test_the_scale_benchmark_runs(capsys):
    results = dict(load("scale").main(["--smoke"]))
    assert len(results) == 9 and all(math.isfinite(value) and value >= 0 for value in results.values())
    assert results["chunks"] > 100 and "| Ray: seconds |" in capsys.readouterr().out


def test_the_best_pipeline_is_chosen_on_one_half_and_reported_on_the_other(capsys):
    tables = load("best").main(["--smoke"])
    tuned, held, *_ = tables.values()
    assert set(tuned["questions"]) == set(held["questions"]) == {30}
    printed = capsys.readouterr().out
    assert printed.startswith(
        "recall, recursive 700, words 0.3, share 0.6: chosen minus recursive 700, without a share"
    )
    for name, frame in tables.items():
        assert f"\n{name}\n" in printed and frame["recall"].between(0, 100).all()


def test_the_explorer_benchmark_runs(capsys):
    results = load("explorer").main(["--smoke"])
    assert len(results) == 12 and all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)
    assert "| recursive | " in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["best", "explorer", "headings", "index", "retrieval", "scale", "semantic", "sentences", "source_code", "speed"],
)
def test_the_page_names_each_benchmark(name):
    assert f"tests/benchmarks/{name}.py" in (FOLDER / "README.md").read_text(encoding="utf-8")
