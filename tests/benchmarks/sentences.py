"""Sentences and paragraphs against peers: `python tests/benchmarks/sentences.py` (add --smoke for a quick look).

First, which sentence boundaries are found, on the texts of tests/boundaries: F1 over all boundaries, counted as places
between characters that are not white space. The peers are NLTK's punkt, pysbd and chonkie, all set to English, their
default; so there is a column for the kinds of text that are English. Then speed, as ratios in one process (see
speed.py). A peer that is not installed is left out: `pip install nltk pysbd`. NLTK wants its punkt_tab data in a folder
that NLTK_DATA names; the llama-index-core wheel carries them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import chonkie

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from boundaries import Splitter, marked, scores  # noqa: E402
from speed import Row, paired, public_text  # noqa: E402

from chunklab import ParagraphChunker, SentenceChunker, SnappingWindowChunker, sentence_spans  # noqa: E402

NOT_ENGLISH = (
    "Chinese and Japanese", "Korean", "German", "French", "Spanish", "Russian", "Arabic", "Hindi", "other stops", "other scripts",
)  # fmt: skip


def splitters() -> dict[str, Splitter]:
    """Name of each splitter, and what gives a text's sentences in order."""
    found: dict[str, Splitter] = {
        "chunklab `sentence_spans`": lambda text: [text[start:end] for start, end in sentence_spans(text)]
    }
    try:
        from nltk.tokenize.punkt import PunktTokenizer

        found["NLTK punkt"] = PunktTokenizer("english").tokenize
    except (ImportError, LookupError) as error:
        print(f"left out: NLTK punkt ({type(error).__name__})", file=sys.stderr)
    try:
        import pysbd

        found["pysbd"] = pysbd.Segmenter(language="en", clean=False).segment
    except ImportError as error:
        print(f"left out: {error.name}", file=sys.stderr)
    for least in (12, 1):  # its default joins a sentence of under 12 characters to the next
        chunker = chonkie.SentenceChunker(
            tokenizer="character",
            chunk_size=1,
            chunk_overlap=0,
            min_sentences_per_chunk=1,
            min_characters_per_sentence=least,
        )
        found[f"chonkie, {least} character{'s' * (least > 1)} at least"] = lambda text, chunker=chunker: [
            c.text for c in chunker.chunk(text)
        ]
    return found


def boundary_table() -> dict[str, list[float]]:
    """Print and give the F1 of every splitter on every set."""
    first, second = marked(), marked("second")
    english = [text for text in first + second if text[0] not in NOT_ENGLISH]
    sets = {"first set": first, "second set": second, "English texts of both": english}
    heads = [f"{name} ({sum(len(sentences) - 1 for _, sentences in texts)} boundaries)" for name, texts in sets.items()]
    print(f"| F1 | {' | '.join(heads)} |\n| --- |{' --- |' * len(sets)}")
    table = {}
    for name, split in splitters().items():
        table[name] = [scores(split, texts)[2] for texts in sets.values()]
        print(f"| {name} | {' | '.join(f'{f1:.3f}' for f1 in table[name])} |")
    return table


def rag_me_up(text: str, size: int = 512, separator: str = r"\n\s*\n") -> list[str]:
    """RAG Me Up's rule for paragraphs, written from its description."""
    chunks, current, length = [], [], 0
    for paragraph in [part.strip() for part in re.split(separator, text) if part.strip()]:
        if length and length + len(paragraph) > size:
            chunks.append("\n\n".join(current))
            current, length = [], 0
        current.append(paragraph)
        length += len(paragraph)
    return [*chunks, "\n\n".join(current)] if current else chunks


def rows(text: str) -> Iterator[Row]:
    """The comparisons of speed, over one text."""
    part = text[:100_000]
    asked = {"NLTK punkt": 5.0, "pysbd": 5.0}
    for name, split in splitters().items():
        if name in asked:
            piece = part if name == "pysbd" else text[:500_000]
            ours, theirs = partial(sentence_spans, piece), partial(split, piece)
            yield Row("`sentence_spans`", ours, name, theirs, asked[name], len(piece))
    peer = chonkie.SentenceChunker(tokenizer="character", chunk_size=1000, chunk_overlap=0)
    ours, theirs = partial(SentenceChunker(1000).chunk, part), partial(peer.chunk, part)
    yield Row("`SentenceChunker(1000).chunk`", ours, "chonkie SentenceChunker", theirs, 0.5, len(part))
    slices, joined = ParagraphChunker(), ParagraphChunker(join="\n\n")
    large = text * max(1, 10_000_000 // len(text)) if len(text) > 1_000_000 else text
    ways = {"`ParagraphChunker.split_text`": slices, 'the same, `join="\\n\\n"`': joined}
    for piece in (part, large):
        for name, chunker in ways.items():
            ours, theirs = partial(chunker.split_text, piece), partial(rag_me_up, piece)
            yield Row(name, ours, "RAG Me Up's rule", theirs, 1.0, len(piece))


def growth(text: str, factor: int) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    """What must grow linearly: each with a text, and with twice that text."""
    once = (text * (factor * 1_000_000 // len(text) + 1))[: factor * 1_000_000]
    twice = once + once
    for chunker in (SentenceChunker(1000), SentenceChunker(1000, 200), SnappingWindowChunker(), ParagraphChunker()):
        name = f"{type(chunker).__name__}{', overlap' if chunker._chunk_overlap else ''}"
        yield name, lambda c=chunker: c.split_text(once), lambda c=chunker: c.split_text(twice)


def main(arguments: list[str] | None = None) -> tuple[dict[str, list[float]], list[tuple[str, float]]]:
    """Print the tables; gives the F1 of every splitter, and (name, ratio) of every row of speed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small text and one round: does it run at all")
    smoke = parser.parse_args(arguments).smoke
    text, rounds, results = public_text()[: 50_000 if smoke else None], (1 if smoke else 9), []
    table = boundary_table()

    print("\n| ours | against | characters | ratio | asked |\n| --- | --- | --- | --- | --- |")
    for row in rows(text):
        _, ratio, _ = paired(row.ours, row.peer, rounds)
        results.append((row.name, ratio))
        print(f"| {row.name} | {row.peer_name} | {row.characters:,} | {ratio:.2f} | {row.asked:.2g} |")

    print("\n| ours | 10 MB against 5 MB (2 is linear) |\n| --- | --- |")
    for name, once, twice in growth(text, 1 if smoke else 5):
        _, ratio, _ = paired(once, twice, 1 if smoke else 3)
        results.append((name, ratio))
        print(f"| {name} | {ratio:.2f} |")
    return table, results


if __name__ == "__main__":
    main()
