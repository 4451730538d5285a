"""Speed and care of `CodeChunker` beside LangChain's splitter for code: `python tests/benchmarks/source_code.py`.

LangChain's cuts at strings such as "\\ndef ", and parses nothing. Both run in one process, in turn, on modules of
Python's standard library; the ratio is the median of the paired ones, and says how many times faster ours is. The last
columns say how many of the functions that fit into a chunk are whole in one. The second table says how the time grows
with the text. Add --smoke for a quick look.
"""

from __future__ import annotations

import argparse
import ast
import sysconfig
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from langchain_text_splitters import Language, RecursiveCharacterTextSplitter
from speed import paired

from chunklab import CodeChunker

MODULES = ["typing", "inspect", "argparse", "turtle", "tarfile", "datetime", "subprocess", "_pydecimal", "ast"]
SIZE = 1000
GROWING = {
    "small functions": "def f(x):\n    return x\n\n\n",
    "one class": "    def f(x):\n        return x\n\n",
    "statements": "x = f(1)\n",
    "no code": "This is not code, is it? (It is not.\n\n",
    "one word": "x",
}


def modules() -> Iterator[str]:
    """Sources of the standard library."""
    for name in MODULES:
        yield Path(sysconfig.get_path("stdlib"), f"{name}.py").read_text(encoding="utf-8")


def functions(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each function, from the line of `def` on."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno] - 1


def whole(text: str, spans: list[tuple[int, int]]) -> tuple[int, int]:
    """How many functions fit into a chunk, and how many of them are whole in one."""
    starts = [start for start, _ in spans]
    fit = [(start, end) for start, end in functions(text) if end - start <= SIZE]
    return len(fit), sum(spans[bisect_right(starts, start) - 1][1] >= end for start, end in fit)


def located(text: str, chunks: list[str]) -> list[tuple[int, int]]:
    """Where chunks without offsets stand."""
    spans, place = [], 0
    for chunk in chunks:
        place = text.index(chunk, place)
        spans.append((place, place + len(chunk)))
    return spans


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the tables; gives (name, ratio) of every row, for the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small texts and one round: does it run at all")
    smoke = parser.parse_args(arguments).smoke
    texts = list(modules())[: 1 if smoke else None]
    rounds, results = (1, []) if smoke else (7, [])

    ours = CodeChunker("python", SIZE)
    peer = RecursiveCharacterTextSplitter.from_language(Language.PYTHON, chunk_size=SIZE, chunk_overlap=0)
    took, ratio, _ = paired(
        lambda: [ours.split_text(text) for text in texts], lambda: [peer.split_text(text) for text in texts], rounds
    )
    results.append(("CodeChunker", ratio))
    kept = [whole(text, ours.spans(text)) for text in texts]
    theirs = [whole(text, located(text, peer.split_text(text))) for text in texts]
    fit = sum(count for count, _ in kept)
    print("| ours | peer | million characters a second | ratio | whole functions, ours | peer's |")
    print("| --- " * 6 + "|")
    shares = " | ".join(f"{sum(count for _, count in pairs) / fit:.1%}" for pairs in (kept, theirs))
    speed = sum(map(len, texts)) / took / 1e6
    print(f'| `CodeChunker("python", {SIZE})` | LangChain, `Language.PYTHON` | {speed:.1f} | {ratio:.2f} | {shares} |')

    print("\n| text | 2 MB against 1 MB (2 is linear) |\n| --- | --- |")
    for name, line in GROWING.items():
        once = ("class A:\n" if name == "one class" else "") + line * ((20_000 if smoke else 1_000_000) // len(line))
        twice = once + line * (len(once) // len(line))
        calls = (lambda text=once: ours.split_text(text), lambda text=twice: ours.split_text(text))
        _, growth, _ = paired(*calls, 1 if smoke else 3)
        results.append((name, growth))
        print(f"| {name} | {growth:.2f} |")
    return results


if __name__ == "__main__":
    main()
