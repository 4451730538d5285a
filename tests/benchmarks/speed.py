"""Speed, as ratios against peers in the same process: `python tests/benchmarks/speed.py` (add --smoke for a quick look).

Each row runs ours and the peer's in turn, several times, and reports the median of the paired ratios: the machine's
speed may drift, the ratio hardly does. "Ratio" is how many times faster ours is. The text is all of the public data
joined by blank lines, 1.6 million characters, where CHUNKLAB_DATA names their folder; else the course corpus, repeated.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chunklab import FixedSizeChunker, RecursiveChunker, SlidingWindowChunker, load_benchmark, load_corpus, load_novel


@dataclass(frozen=True)
class Row:
    """One comparison: what ours does, what the peer does, and the ratio that we ask of ourselves."""

    name: str
    ours: Callable[[], object]
    peer_name: str
    peer: Callable[[], object]
    asked: float
    characters: int


def public_text() -> str:
    """The benchmark's five corpora and the novel, joined by blank lines; the course corpus where they are absent."""
    try:
        return "\n\n".join([*load_benchmark()[0].values(), load_novel()])
    except (FileNotFoundError, OSError, RuntimeError):
        return "\n\n".join(load_corpus().values()) * 8


def rows(text: str) -> Iterator[Row]:
    """The comparisons, over one text."""
    import chonkie
    from langchain_text_splitters import RecursiveCharacterTextSplitter, TokenTextSplitter

    ours, langchain = RecursiveChunker(1000), RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=0)
    peer = "LangChain RecursiveCharacterTextSplitter"
    yield Row(
        "RecursiveChunker(1000).split_text",
        lambda: ours.split_text(text),
        peer,
        lambda: langchain.split_text(text),
        2.5,
        len(text),
    )

    chonk = chonkie.RecursiveChunker(chunk_size=1000, tokenizer="character")
    yield Row(
        "RecursiveChunker(1000).chunk",
        lambda: ours.chunk(text),
        "chonkie RecursiveChunker",
        lambda: chonk.chunk(text),
        1.0,
        len(text),
    )

    overlapping = RecursiveChunker(1000, 200)
    langchain_200 = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    yield Row(
        "RecursiveChunker(1000, 200).split_text",
        lambda: overlapping.split_text(text),
        peer,
        lambda: langchain_200.split_text(text),
        2.5,
        len(text),
    )

    fixed, sliding = FixedSizeChunker(1000), SlidingWindowChunker(1000, 200)

    def slicing() -> list[str]:
        return [text[start : start + 1000] for start in range(0, len(text), 1000)]

    name, peer = "FixedSizeChunker(1000).split_text", "plain slicing"
    yield Row(name, lambda: fixed.split_text(text), peer, slicing, 1 / 3, len(text))
    yield Row("SlidingWindowChunker().split_text", lambda: sliding.split_text(text), peer, slicing, 0.1, len(text))

    part, by_tokens = text[:500_000], FixedSizeChunker(512, 0, "cl100k")
    langchain_tokens = TokenTextSplitter("cl100k_base", chunk_size=512, chunk_overlap=0)
    name, peer = "FixedSizeChunker(512, 0, 'cl100k').split_text", "LangChain TokenTextSplitter"
    yield Row(name, lambda: by_tokens.split_text(part), peer, lambda: langchain_tokens.split_text(part), 0.2, len(part))


def growth(text: str, factor: int) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    """What must grow linearly: each with a text, and with twice that text."""
    once = (text * (factor * 1_000_000 // len(text) + 1))[: factor * 1_000_000]
    twice = once + once
    for name, chunker in {
        "FixedSizeChunker": FixedSizeChunker(1000),
        "SlidingWindowChunker": SlidingWindowChunker(1000, 200),
        "RecursiveChunker": RecursiveChunker(1000),
        "RecursiveChunker, overlap": RecursiveChunker(1000, 200),
    }.items():
        yield name, lambda chunker=chunker: chunker.split_text(once), lambda chunker=chunker: chunker.split_text(twice)


def seconds(call: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def paired(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Median seconds of the first, and median and spread of second / first, the two run in turn."""
    first(), second()
    pairs = [(seconds(first), seconds(second)) for _ in range(rounds)]
    ratios = sorted(b / a for a, b in pairs)
    return statistics.median(a for a, _ in pairs), statistics.median(ratios), ratios[-1] - ratios[0]


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the tables; gives (name, ratio) of every row, for the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small text and one round: does it run at all")
    smoke = parser.parse_args(arguments).smoke
    text = public_text()[: 50_000 if smoke else None]
    rounds, results = (1 if smoke else 9), []

    print("| ours | peer | characters | million a second | ratio | asked |\n| --- | --- | --- | --- | --- | --- |")
    for row in rows(text):
        took, ratio, _ = paired(row.ours, row.peer, rounds)
        results.append((row.name, ratio))
        speed = f"{row.characters:,} | {row.characters / took / 1e6:.0f}"
        print(f"| {row.name} | {row.peer_name} | {speed} | {ratio:.2f} | {row.asked:.2g} |")

    print("\n| ours | 20 MB against 10 MB (2 is linear) |\n| --- | --- |")
    for name, once, twice in growth(text, 1 if smoke else 10):
        _, ratio, _ = paired(once, twice, 1 if smoke else 3)
        results.append((name, ratio))
        print(f"| {name} | {ratio:.2f} |")
    return results


if __name__ == "__main__":
    main()
