"""Quality on Chroma's public benchmark, beside what was published: `python tests/benchmarks/retrieval.py`.

The first table needs no model: precision_omega of the report's recursive and token rows, with the quirks of its code
and without. The second retrieves, k = 5, with WordLlama, and with MiniLM where --minilm asks for it (minutes, the first
time). CHUNKLAB_DATA names the folder of the public data; without it they are downloaded.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from chunklab import FixedSizeChunker, RecursiveChunker, Scoreboard, embeddings, load_benchmark, precision_omega, tokens
from chunklab.metrics import published_spans

SEPARATORS = ["\n\n", "\n", ".", "?", "!", " ", ""]
PUBLISHED = {
    ("recursive", 800, 400): "6.7±5.2",
    ("token", 800, 400): "4.7±3.1",
    ("recursive", 400, 200): "13.9±10.4",
    ("token", 400, 200): "8.4±5.1",
    ("recursive", 400, 0): "17.7±14.0",
    ("token", 400, 0): "12.5±8.1",
    ("recursive", 200, 0): "29.9±18.4",
    ("token", 200, 0): "21.0±11.9",
}


def chunker(method: str, size: int, overlap: int = 0) -> RecursiveChunker | FixedSizeChunker:
    """A row's chunker; sizes in cl100k tokens."""
    if method == "token":
        return FixedSizeChunker(size, overlap, tokenizer="cl100k")
    return RecursiveChunker(size, overlap, separators=SEPARATORS, length_function=tokens("cl100k"))


def print_omega() -> None:
    """The eight published rows."""
    documents, questions = load_benchmark()
    print("| chunker | published | with quirks | without |\n| --- | --- | --- | --- |")
    for (method, size, overlap), published in PUBLISHED.items():
        chunks = {name: chunker(method, size, overlap).chunk(text, name) for name, text in documents.items()}
        places = {name: published_spans(made, documents) for name, made in chunks.items()}
        quirky = [precision_omega(places[q.spans[0].document], q.spans, quirks=True) for q in questions]
        plain = [precision_omega(chunks[q.spans[0].document], q.spans) for q in questions]
        shown = " | ".join(f"{100 * np.mean(omega):.1f}±{100 * np.std(omega):.1f}" for omega in (quirky, plain))
        print(f"| {method} {size}/{overlap} | {published} | {shown} |")


def print_retrieval(minilm: bool) -> None:
    """Rows of the scoreboard."""
    static = Scoreboard(embeddings("static"), *load_benchmark())
    for method, size in (("recursive", 200), ("recursive", 400), ("token", 400)):
        static.add(f"{method} {size}/0", chunker(method, size))
    print(f"\nWordLlama\n{static.table().to_string()}")
    if minilm:
        local = Scoreboard(embeddings("minilm"), *load_benchmark())
        for size in (850, 1700):
            local.add(f"recursive {size} characters", RecursiveChunker(size, separators=SEPARATORS))
        print(f"\nMiniLM\n{local.table().to_string()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minilm", action="store_true", help="measure with MiniLM too")
    warnings.simplefilter("ignore", UserWarning)  # the table counts the chunks that are too long
    print_omega()
    print_retrieval(parser.parse_args().minilm)
