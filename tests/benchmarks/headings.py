"""Speed of `HeadingChunker`, as a ratio to LangChain's, in the same process: `python tests/benchmarks/headings.py`.

LangChain's MarkdownHeaderTextSplitter looks at how each line begins, and parses nothing. The two run in turn on the
course's Markdown, repeated; the ratio is the median of the paired ones, and says how many times faster ours is. Ours
also cuts what is too long, joins what is too short, and counts the words. The second table says how the time grows with
the text, on that text and on hostile ones. Add --smoke for a quick look.
"""

from __future__ import annotations

import argparse
from functools import partial

from langchain_text_splitters import MarkdownHeaderTextSplitter
from speed import paired

from chunklab import HeadingChunker, load_corpus

ASKED = 0.5
HOSTILE = {
    "one paragraph": "word " * 200_000,
    "headings alone": "# a\n" * 50_000,
    "lists in lists": "- " * 100_000 + "a",
    "a table of a column": "| a |\n|---|\n" + "| b |\n" * 100_000,
    "a wide table": "| " + "a | " * 60 + "\n|" + "---|" * 60 + "\n" + "| b |\n" * 100_000,
    "a heading as long as its text": "# " + "a" * 250_000 + "\n\n" + "word " * 50_000,
    "Chinese": "漢字。" * 100_000,
}


def markdown(size: int) -> str:
    """The course's Markdown, repeated until it has `size` characters."""
    text = "\n\n".join(text for name, text in load_corpus().items() if name.endswith(".md"))
    return (text * (size // len(text) + 1))[:size]


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the tables; gives (name, ratio) of every row, for the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small texts and one round: does it run at all")
    smoke = parser.parse_args(arguments).smoke
    rounds, size, results = (1, 50_000, []) if smoke else (9, 1_000_000, [])

    chunker = HeadingChunker()
    peer = MarkdownHeaderTextSplitter([("#" * level, f"h{level}") for level in range(1, 7)])
    sizes = (size, size // 10)
    print(f"| ours | against | {' | '.join(f'ratio, {length:,} characters' for length in sizes)} | asked |")
    print("| --- | --- | --- | --- | --- |")
    for name, call in (("chunk", chunker.chunk), ("split_text", chunker.split_text)):
        times = []
        for text in map(markdown, sizes):
            times.append(paired(partial(call, text), partial(peer.split_text, text), rounds)[1])
            results.append((f"{name}, {len(text):,}", times[-1]))
        shown = " | ".join(f"{ratio:.2f}" for ratio in times)
        print(f"| `HeadingChunker().{name}` | LangChain MarkdownHeaderTextSplitter | {shown} | {ASKED} |")

    print("\n| text | twice against once (2 is linear) | characters of all chunks / text |\n| --- | --- | --- |")
    for name, text in {"the course's Markdown": markdown(size), **HOSTILE}.items():
        text = text[: 20_000 if smoke else None]
        once, twice = partial(chunker.split_text, text), partial(chunker.split_text, text + "\n\n" + text)
        _, growth, _ = paired(once, twice, 1 if smoke else 5)
        results.append((name, growth))
        print(f"| {name} | {growth:.2f} | {sum(map(len, chunker.split_text(text))) / len(text):.2f} |")
    return results


if __name__ == "__main__":
    main()
