"""An index of 100,000 chunks: `python tests/benchmarks/index.py` (add --smoke for a quick look).

Seconds, memory and questions a second with the static model, of the plain index and of `Hybrid` on it, and the update
of one document. Memory is the most that a process of its own ever held (VmHWM), of which a part is there before the
first chunk: Python, the model, the texts. The texts are the public data, or the course corpus, over and over, with a
number in each sentence: three in four are unlike all others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from chunklab import ChunkIndex, Hybrid, RecursiveChunker, embeddings, load_benchmark, load_corpus
from chunklab.chunk import Chunk

PAGE = 40_000  # characters of a document: about a hundred chunks


def pages() -> Iterator[tuple[str, str]]:
    """Documents without end: name and text."""
    try:
        text = "\n\n".join(load_benchmark()[0].values())
    except (FileNotFoundError, OSError, RuntimeError):
        text = "\n\n".join(load_corpus().values())
    number = 0
    while True:
        start = number * (PAGE + 137) % len(text)
        yield f"page {number}", (text + text)[start : start + PAGE].replace(". ", f" {number}. ")
        number += 1


def collection(wanted: int) -> list[Chunk]:
    """So many chunks, of as many documents as that takes."""
    chunker, chunks = RecursiveChunker(500), []
    for name, text in pages():
        chunks += chunker.chunk(text, name)
        if len(chunks) >= wanted:
            return chunks[:wanted]
    raise AssertionError("unreachable")


def held() -> int:
    """The most that this process has ever held, in MB; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def measure(wanted: int) -> None:
    """Build, search and change an index, and print what it took: one line, a name and a number."""
    chunks, model, figures = collection(wanted), embeddings("static"), {}
    model.embed_query("the model is loaded")
    questions = [chunk.text[:60] for chunk in chunks[:: max(1, wanted // 200)][:200]]
    figures["documents"] = len({chunk.document for chunk in chunks})
    figures["characters of a chunk, on average"] = sum(len(chunk.text) for chunk in chunks) / len(chunks)
    figures["MB before the first vector: Python, the model, the texts"] = held()

    begin = time.perf_counter()
    index = ChunkIndex(chunks, model)
    figures["seconds to index"] = time.perf_counter() - begin
    figures["MB, indexed"] = held()

    begin = time.perf_counter()
    for question in questions:
        index.search(question, k=10)
    figures["questions a second, one by one"] = len(questions) / (time.perf_counter() - begin)
    begin = time.perf_counter()
    index.search_many(questions, k=10)
    figures["questions a second, 200 together"] = len(questions) / (time.perf_counter() - begin)

    name = chunks[wanted // 2].document
    changed = [chunk for chunk in chunks if chunk.document == name]
    text = "A sentence that is new. " + changed[0].text
    changed[0] = Chunk(text, 0, len(text), name, changed[0].id, None, 0, changed[0].total)
    begin = time.perf_counter()
    index.update(name, changed)
    figures["seconds to update one document (one new chunk is embedded)"] = time.perf_counter() - begin
    figures["MB, and one document updated (the old index stands until the new one does)"] = held()

    begin = time.perf_counter()
    hybrid = Hybrid(index)
    figures["seconds to count the words, for `Hybrid`"] = time.perf_counter() - begin
    begin = time.perf_counter()
    for question in questions[:50]:
        hybrid.search(question, k=10)
    figures["questions a second, by words and meaning"] = len(questions[:50]) / (time.perf_counter() - begin)
    figures["MB, and words counted"] = held()
    for figure, value in figures.items():
        print(f"{figure}\t{value}")


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the table; gives (name, figure) of every row, for the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small index: does it run at all")
    wanted = 500 if parser.parse_args(arguments).smoke else 100_000
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import index; index.measure({wanted})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    results = [(name, float(value)) for name, value in (line.split("\t") for line in printed.splitlines())]
    for head, memory in ((f"{wanted:,} chunks", False), ("MB at the peak, of a process of its own (VmHWM)", True)):
        print(f"| {head} | |\n| --- | --- |")
        for name, value in results:
            if name.startswith("MB") is memory:
                shown = f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
                print(f"| {name.removeprefix('MB').lstrip(' ,')} | {shown} |")
        print()
    return results


if __name__ == "__main__":
    main()
