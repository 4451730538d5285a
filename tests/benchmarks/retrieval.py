"""Quality on Chroma's public benchmark, beside what was published: `python tests/benchmarks/retrieval.py`.

The first table needs no model: precision_omega of the report's recursive and token rows, with the quirks of its code
and without. The others retrieve, k = 5: with WordLlama there and on the course's own corpus, on which nothing was
chosen, and there with MiniLM, where --minilm asks for it (minutes, the first time). CHUNKLAB_DATA names the folder of
the public data; without it they are downloaded. --smoke for a quick look.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial

import numpy as np

from chunklab import (
    ChunkIndex,
    ClusterChunker,
    FixedSizeChunker,
    HeadingChunker,
    Hybrid,
    MultiVectorIndex,
    ParagraphChunker,
    RecursiveChunker,
    Scoreboard,
    SemanticChunker,
    SemanticWindowChunker,
    SentenceChunker,
    SlidingWindowChunker,
    SnappingWindowChunker,
    embeddings,
    load_benchmark,
    precision_omega,
    tokens,
)
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
# With MiniLM, k = 5: recall, precision, omega, IoU.
PUBLISHED_MINILM = {
    "recursive 250/125": (78.7, 4.9, 21.9, 4.9),
    "token 250/125": (82.4, 3.6, 11.4, 3.5),
    "recursive 250/0": (78.5, 5.4, 26.7, 5.4),
    "token 250/0": (77.1, 3.3, 16.4, 3.3),
    "recursive 200/0": (75.7, 6.5, 31.2, 6.5),
    "token 200/0": (76.6, 4.1, 19.1, 4.1),
    "cluster 250": (77.3, 6.1, 28.6, 6.0),
    "cluster 200": (75.2, 7.2, 33.6, 7.2),
}


def chunker(method: str, size: int, overlap: int = 0) -> RecursiveChunker | FixedSizeChunker:
    """A row's chunker; sizes in cl100k tokens."""
    if method == "token":
        return FixedSizeChunker(size, overlap, tokenizer="cl100k")
    return RecursiveChunker(size, overlap, separators=SEPARATORS, length_function=tokens("cl100k"))


def print_omega(rows: int) -> None:
    """The first of the published rows."""
    documents, questions = load_benchmark()
    print("| chunker | published | with quirks | without |\n| --- | --- | --- | --- |")
    for (method, size, overlap), published in list(PUBLISHED.items())[:rows]:
        chunks = {name: chunker(method, size, overlap).chunk(text, name) for name, text in documents.items()}
        places = {name: published_spans(made, documents) for name, made in chunks.items()}
        quirky = [precision_omega(places[q.spans[0].document], q.spans, quirks=True) for q in questions]
        plain = [precision_omega(chunks[q.spans[0].document], q.spans) for q in questions]
        shown = " | ".join(f"{100 * np.mean(omega):.1f}±{100 * np.std(omega):.1f}" for omega in (quirky, plain))
        print(f"| {method} {size}/{overlap} | {published} | {shown} |")


def print_retrieval(minilm: bool, rows_of_static: int) -> None:
    """Rows of scoreboards."""
    static = Scoreboard(embeddings("static"), *load_benchmark())
    for method, size in [("recursive", 200), ("recursive", 400), ("token", 400)][:rows_of_static]:
        static.add(f"{method} {size}/0 tokens", chunker(method, size))
    print_rows("WordLlama", static)
    own = Scoreboard(embeddings("static"))
    for size in (400, 600, 800)[:rows_of_static]:
        own.add(f"recursive {size}", RecursiveChunker(size))
        own.add(f"recursive {size}, sentences and neighbours", RecursiveChunker(size), index=MultiVectorIndex)
    print_rows("the course's own corpus, WordLlama", own)
    if not minilm:
        return
    model = embeddings("minilm")
    local = Scoreboard(model, *load_benchmark())
    recursive = RecursiveChunker(600, separators=SEPARATORS)
    tamed = SemanticChunker(model, min_chunk_size=250, max_chunk_size=600)
    rows = {
        "fixed 600": FixedSizeChunker(600),
        "sliding 400/100": SlidingWindowChunker(400, 100),
        "recursive 600": recursive,
        "recursive 850": RecursiveChunker(850, separators=SEPARATORS),
        "recursive 1,700": RecursiveChunker(1700, separators=SEPARATORS),
        "sentence 500": SentenceChunker(500),
        "snapping 300/1": SnappingWindowChunker(300, 1),
        "paragraph 600": ParagraphChunker(600),
        "heading": HeadingChunker(),
        "semantic, LangChain's": SemanticChunker(model, compatible=True),
        "semantic": SemanticChunker(model),
        "semantic 250 to 600": tamed,
        "semantic 250 to 600, sides": SemanticChunker(model, min_chunk_size=250, max_chunk_size=600, window="sides"),
        "semantic window": SemanticWindowChunker(model, 5, 0.6),
        "cluster 200": ClusterChunker(model, 200, 40),
        "cluster 120": ClusterChunker(model, 120, 30),
    }
    for name, method in rows.items():
        local.add(name, method)
    for name, method in {
        "recursive 600": recursive,
        "sentence 500": rows["sentence 500"],
        "semantic 250 to 600": tamed,
    }.items():
        local.add(f"{name}, sentences too", method, index=partial(MultiVectorIndex, neighbour_weight=0))
        local.add(f"{name}, sentences and neighbours", method, index=MultiVectorIndex)
    for size in (600, 700):
        chunker_of_size = RecursiveChunker(size, separators=SEPARATORS)
        for name, searched in {
            "words alone": lambda chunks, model: Hybrid(ChunkIndex(chunks, model), word_weight=1),
            "words too": lambda chunks, model: Hybrid(ChunkIndex(chunks, model)),
            "words and sentences": lambda chunks, model: Hybrid(MultiVectorIndex(chunks, model, neighbour_weight=0)),
            "words, sentences and neighbours": lambda chunks, model: Hybrid(MultiVectorIndex(chunks, model)),
            "words too, by rank": lambda chunks, model: Hybrid(ChunkIndex(chunks, model), fusion="rank"),
        }.items():
            local.add(f"recursive {size}, {name}", chunker_of_size, index=searched)
    print_rows("MiniLM", local, PUBLISHED_MINILM)


def print_rows(model: str, board: Scoreboard, published: dict[str, tuple[float, ...]] | None = None) -> None:
    """What was published, and the rows of a scoreboard."""
    print(f"\n| {model}, k = 5 | chunks | size | recall | precision | omega | IoU |\n|{' --- |' * 7}")
    for name, figures in (published or {}).items():
        print(f"| published: {name} | | | {' | '.join(map(str, figures))} |")
    for name, row in board.frame().iterrows():
        spread = {
            metric: f"{row[metric]:.1f} [{row[f'{metric}_low']:.1f}, {row[f'{metric}_high']:.1f}]"
            for metric in ("recall", "iou")
        }
        print(
            f"| {name} | {row['chunks']:.0f} | {row['size']:.0f} ± {row['size_sd']:.0f} | {spread['recall']} "
            f"| {row['precision']:.1f} | {row['omega']:.1f} | {spread['iou']} |"
        )


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minilm", action="store_true", help="measure with MiniLM too")
    parser.add_argument("--smoke", action="store_true", help="a row of each table, without MiniLM: does it run at all")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # the table counts the chunks that are too long
    print_omega(1 if options.smoke else len(PUBLISHED))
    print_retrieval(options.minilm and not options.smoke, 1 if options.smoke else 3)


if __name__ == "__main__":
    main()
