"""The benchmarks run: a small text, one round, no word about speed; and their tables come into the page."""

import importlib.util
import math
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "benchmarks"
PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def blocks(page):
    """Script and number to the table that stands there."""
    found = re.findall(r"^<!-- (\w+) (\d+) -->\n\n(.*?)\n\n<!-- end -->$", page, re.M | re.S)
    return {(name, int(number)): table for name, number, table in found}


def assert_heads(name, printed):
    """The page's tables have the columns that the script prints, sizes aside; some may not have been run yet."""
    tables = load("run").tables_of(printed)
    there = {number: table for (script, number), table in blocks(PAGE).items() if script == name}
    assert list(there) == list(range(1, len(there) + 1)) and len(there) <= len(tables)
    for number, table in there.items():
        here, wanted = (re.sub(r"\d[\d,.]*", "0", text.splitlines()[0]) for text in (table, tables[number - 1]))
        assert here == wanted


def test_the_speed_benchmark_runs(capsys, monkeypatch):
    speed = load("speed")
    monkeypatch.setattr(speed, "public_text", lambda: "\n\n".join(speed.load_corpus().values()))
    results = speed.main(["--smoke"])
    assert len(results) == 10 and all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)
    printed = capsys.readouterr().out
    assert all(f"| {name} |" in printed for name, _ in results)
    assert_heads("speed", printed)


def test_the_semantic_benchmark_runs(capsys, monkeypatch):
    semantic = load("semantic")
    monkeypatch.setattr(semantic, "public_text", lambda: "\n\n".join(load("speed").load_corpus().values()))
    results = semantic.main(["--smoke"])
    assert len(results) == 9 and all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)
    assert_heads("semantic", capsys.readouterr().out)


def test_the_index_benchmark_runs(capsys):
    results = dict(load("index").main(["--smoke"]))
    assert len(results) == 12 and all(math.isfinite(value) and value >= 0 for value in results.values())
    printed = capsys.readouterr().out
    assert results["questions a second, one by one"] > 0 and "| seconds to index |" in printed
    assert_heads("index", printed)


def test_the_scale_benchmark_runs(capsys):
    results = dict(load("scale").main(["--smoke"]))
    assert len(results) == 7 and all(math.isfinite(value) and value >= 0 for value in results.values())
    printed = capsys.readouterr().out
    assert results["chunks"] > 100 and "| throughput of the whole call | 1 |" in printed
    assert_heads("scale", printed)


def test_the_best_pipeline_is_chosen_on_one_half_and_reported_on_the_other(capsys):
    tables = load("best").main(["--smoke"])
    tuned, held, *_ = tables.values()
    assert set(tuned["questions"]) == set(held["questions"]) == {30}
    assert all(frame["recall"].between(0, 100).all() for frame in tables.values())
    held_out, gains, sweep, ideas, course = load("run").tables_of(capsys.readouterr().out)
    chosen = "`RecursiveChunker(700)`, `Hybrid(MultiVectorIndex(…), word_weight=0.3, min_share=0.6)`"
    assert f"| **chosen**: {chosen} |" in held_out and "| published: cluster 200, text-embedding-3-large" in held_out
    assert "| recall | " in gains and " of 30 |" in gains
    assert "| 700 characters, words 0.3 | " in sweep and "| (the chosen) | " in ideas and "k = 5, share 0.6" in course


def test_the_explorer_benchmark_runs(capsys):
    results = load("explorer").main(["--smoke"])
    assert len(results) == 12 and all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)
    assert "| recursive | " in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    ["best", "explorer", "headings", "index", "retrieval", "scale", "semantic", "sentences", "source_code", "speed"],
)
def test_the_page_names_each_benchmark_and_has_its_tables(name):
    assert f"tests/benchmarks/{name}.py" in PAGE and (name, 1) in blocks(PAGE)


def test_the_page_is_told_of_each_benchmark_there_is():
    run = load("run")
    assert {name for name, _ in blocks(PAGE)} == {"run", *run.NAMES}
    assert PAGE.count("<!--") == 2 * len(blocks(PAGE)), "a mark is not as run.py writes it"


def test_one_command_writes_tables_into_the_page_and_nothing_else(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    run = load("run")
    assert run.main(["headings", "source_code", "--smoke", "--page", str(page)]) == 0
    written = page.read_text(encoding="utf-8")
    before, after = blocks(PAGE), blocks(written)
    assert set(after) >= set(before) and {("headings", 2), ("source_code", 2)} <= set(after)
    assert {name for name in before if before[name] != after[name]} == {("run", 1), ("headings", 1), ("source_code", 1)}
    assert "| benchmarks | headings, source_code |" in after["run", 1]
    for name in ("headings", "source_code"):
        assert_heads(name, "\n\n".join(table for (script, _), table in after.items() if script == name))
    marked = re.compile(r"\n*<!-- \w+ \d+ -->\n.*?<!-- end -->\n*", re.S)
    assert "".join(marked.split(written)) == "".join(marked.split(PAGE))


def test_a_benchmark_that_fails_keeps_its_tables(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    run = load("run")
    assert run.main(["headings", "--no-such-option", "--page", str(page)]) == 1
    assert page.read_text(encoding="utf-8") == PAGE
    assert "headings failed: its tables are those of before" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run.main(["heading"])


def test_tables_find_their_place():
    run = load("run")
    page = "a\n\n<!-- x 1 -->\n\n| old |\n| --- |\n\n<!-- end -->\n\nb\n"
    two = run.place("| n |\n| --- |\n| \\1 |", "x", 2, page)
    assert two == page.replace("-->\n\nb", "-->\n\n<!-- x 2 -->\n\n| n |\n| --- |\n| \\1 |\n\n<!-- end -->\n\nb")
    assert run.place("| new |\n| --- |", "x", 1, two) == two.replace("| old |", "| new |")
    assert run.without_rest("x", 1, two) == page
    with pytest.raises(ValueError, match="y: the page has no place for its table 1"):
        run.place("| n |\n| --- |", "y", 1, page)
    assert run.tables_of("said\n| a |\n| --- |\n| 1 |\n\n| b |\n| --- |\nend") == [
        "| a |\n| --- |\n| 1 |",
        "| b |\n| --- |",
    ]
