"""Every chunker under test, with the limit that it promises: the property test runs over all of them.

To put a new chunker under the nine rules, add a line to CHUNKERS.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import regex
from fake_llm import FakeLLM

from chunklab import (
    ClusterChunker,
    CodeChunker,
    FixedSizeChunker,
    HeadingChunker,
    KeepOrSplitChunker,
    LLMChunker,
    LumberChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
    SemanticWindowChunker,
    SentenceChunker,
    SlidingWindowChunker,
    SnappingWindowChunker,
    SplitterChain,
    embeddings,
    tokens,
)
from chunklab.chunk import Chunk, Chunker
from chunklab.chunkers.recursive import RAG_ME_UP_SEPARATORS


def words(text: str) -> int:
    """A length function that counts words."""
    return len(text.split())


def words_and_ideographs(text: str) -> int:
    """A length function for which each Chinese or Japanese character is a word."""
    return words(regex.sub(r"[\p{Han}\p{Hiragana}\p{Katakana}]", " x ", text))


@dataclass(frozen=True)
class Case:
    """A chunker, and what it promises."""

    make: Callable[[], Chunker]
    limit: int
    length: Callable[[str], int] = len
    overlap: int = 0
    drops: str = ""  # separators that it was asked to leave out
    adds: bool = False  # what it adds before a slice is in metadata["added"]
    embeds: bool = False  # each piece goes through a model, which takes its time
    whole: tuple[str, ...] = ()  # what it may keep whole beyond its limit, if metadata["oversize"] says so
    above: tuple["Case", ...] = ()  # a chain's chunkers before the last

    def last_level(self, chunks: list[Chunk]) -> list[Chunk]:
        """The chunks without those above them in a chain."""
        return [c for c in chunks if c.id.count("_", len(c.document)) == 1 + len(self.above)]


@cache
def _counter(name: str) -> Callable[[str], int]:
    return tokens(name)


def _tokens(name: str) -> Callable[[str], int]:
    return lambda text: _counter(name)(text)


@cache
def _static():
    return embeddings("static")


def _semantic(*arguments, **options) -> Callable[[], Chunker]:
    return lambda: SemanticChunker(_static(), *arguments, **options)


def _asking(make: Callable[..., Chunker], mode: str, *arguments) -> Callable[[], Chunker]:
    """A chunker with a model whose answers are of a kind; it does not warn of those that cannot be used."""

    def made() -> Chunker:
        chunker = make(FakeLLM(mode), *arguments)
        chunk = chunker.chunk

        def quiet(*text: str) -> list:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return chunk(*text)

        chunker.chunk = quiet
        return chunker

    return made


CHUNKERS = {
    "fixed": Case(lambda: FixedSizeChunker(100), 100),
    "fixed, overlap": Case(lambda: FixedSizeChunker(40, 15), 40, overlap=15),
    "fixed, tiny": Case(lambda: FixedSizeChunker(3, 2), 3, overlap=2),
    "fixed, words": Case(lambda: FixedSizeChunker(10, 3, length_function=words), 10, words, overlap=3),
    "fixed, cl100k": Case(lambda: FixedSizeChunker(20, 5, "cl100k"), 20, _tokens("cl100k"), overlap=5),
    "fixed, minilm": Case(lambda: FixedSizeChunker(20, 0, "minilm"), 20, _tokens("minilm")),
    "sliding": Case(lambda: SlidingWindowChunker(50, 10), 70, overlap=10),
    "sliding, tiny": Case(lambda: SlidingWindowChunker(4, 3), 10, overlap=3),
    "sliding, no overlap": Case(lambda: SlidingWindowChunker(30, 0), 30),
    "sliding, words": Case(lambda: SlidingWindowChunker(8, 2, words), 12, words, overlap=2),
    "recursive": Case(lambda: RecursiveChunker(100), 100),
    "recursive, overlap": Case(lambda: RecursiveChunker(60, 25), 60, overlap=25),
    "recursive, tiny": Case(lambda: RecursiveChunker(4, 1), 4, overlap=1),
    "recursive, one": Case(lambda: RecursiveChunker(1), 1),
    "recursive, end": Case(lambda: RecursiveChunker(50, keep_separator="end"), 50),
    "recursive, drop": Case(lambda: RecursiveChunker(50, keep_separator=False), 50),
    "recursive, RAG Me Up": Case(lambda: RecursiveChunker(30, 5, RAG_ME_UP_SEPARATORS), 30, overlap=5),
    "recursive, RAG Me Up, drop": Case(
        lambda: RecursiveChunker(30, 0, RAG_ME_UP_SEPARATORS, keep_separator=False), 30, drops=".!?,\u200b，、．。"
    ),
    "recursive, no last resort": Case(lambda: RecursiveChunker(20, separators=["\n\n"]), 20),
    "recursive, regex": Case(lambda: RecursiveChunker(20, 4, [r"\s+", r"(?<=[.!?])"], "end", True), 20, overlap=4),
    "recursive, words": Case(lambda: RecursiveChunker(9, 2, length_function=words), 9, words, overlap=2),
    "recursive, cl100k": Case(lambda: RecursiveChunker(15, length_function=tokens("cl100k")), 15, _tokens("cl100k")),
    "recursive, minilm": Case(lambda: RecursiveChunker(15, length_function=tokens("minilm")), 15, _tokens("minilm")),
    "heading": Case(lambda: HeadingChunker(), 400, words_and_ideographs, adds=True, whole=("row",)),
    "heading, small": Case(lambda: HeadingChunker(8, 20, 30), 30, words_and_ideographs, adds=True, whole=("row",)),
    "heading, tiny": Case(lambda: HeadingChunker(1, 2, 3, "…"), 3, words_and_ideographs, adds=True, whole=("row",)),
    "sentence": Case(lambda: SentenceChunker(100), 100),
    "sentence, overlap": Case(lambda: SentenceChunker(80, 40), 80, overlap=40),
    "sentence, tiny": Case(lambda: SentenceChunker(4, 3), 4, overlap=3),
    "sentence, one": Case(lambda: SentenceChunker(1), 1),
    "sentence, words": Case(lambda: SentenceChunker(9, 4, words), 9, words, overlap=4),
    "sentence, cl100k": Case(lambda: SentenceChunker(15, length_function=tokens("cl100k")), 15, _tokens("cl100k")),
    "snapping": Case(lambda: SnappingWindowChunker(100), 200, overlap=5),
    "snapping, tiny": Case(lambda: SnappingWindowChunker(4, 2), 8, overlap=2),
    "snapping, no overlap": Case(lambda: SnappingWindowChunker(60, 0), 60),
    "snapping, delimiter": Case(lambda: SnappingWindowChunker(60, 3, "."), 120, overlap=3),
    "snapping, words": Case(lambda: SnappingWindowChunker(8, 2, length_function=words), 16, words, overlap=2),
    # A paragraph is never cut, so there is no limit to promise; test_paragraph.py holds the other chunks to theirs.
    "paragraph": Case(lambda: ParagraphChunker(100), sys.maxsize),
    "paragraph, tiny": Case(lambda: ParagraphChunker(4), sys.maxsize),
    "paragraph, lines": Case(lambda: ParagraphChunker(60, r"\n"), sys.maxsize),
    "paragraph, words": Case(lambda: ParagraphChunker(9, length_function=words), sys.maxsize, words),
    "code": Case(lambda: CodeChunker("python", 100), 100),
    "code, tiny": Case(lambda: CodeChunker("python", 4), 4),
    "code, one": Case(lambda: CodeChunker("python", 1), 1),
    "code, words": Case(lambda: CodeChunker("python", 9, words), 9, words),
    "code, cl100k": Case(lambda: CodeChunker("python", 15, tokens("cl100k")), 15, _tokens("cl100k")),
    "code, javascript": Case(lambda: CodeChunker("javascript", 100), 100),
    "code, javascript, minilm": Case(lambda: CodeChunker("javascript", 15, tokens("minilm")), 15, _tokens("minilm")),
    "semantic": Case(_semantic(max_chunk_size=100), 100, embeds=True),
    "semantic, no maximum": Case(_semantic(), sys.maxsize, embeds=True),
    "semantic, compatible": Case(_semantic(compatible=True), sys.maxsize, embeds=True),
    "semantic, sides": Case(
        _semantic(2, "gradient", max_chunk_size=60, window="sides", distance="euclidean"), 60, embeds=True
    ),
    "semantic, text": Case(_semantic(2, "standard_deviation", 1, max_chunk_size=80, window="text"), 80, embeds=True),
    "semantic, count": Case(_semantic(number_of_chunks=5, min_chunk_size=10, max_chunk_size=99), 99, embeds=True),
    "semantic, tiny": Case(_semantic(breakpoint_threshold_type="interquartile", max_chunk_size=4), 4, embeds=True),
    "semantic, words": Case(_semantic(max_chunk_size=9, length_function=words), 9, words, embeds=True),
    "semantic, cl100k": Case(
        _semantic(max_chunk_size=15, length_function=tokens("cl100k")), 15, _tokens("cl100k"), embeds=True
    ),
    "semantic window": Case(lambda: SemanticWindowChunker(_static(), 3, 0.5), sys.maxsize, embeds=True),
    "cluster": Case(lambda: ClusterChunker(_static(), 40, 10), 40, _tokens("cl100k"), embeds=True),
    "cluster, characters": Case(lambda: ClusterChunker(_static(), 100, 20, len), 100, embeds=True),
    "cluster, tiny": Case(lambda: ClusterChunker(_static(), 3, 3, words), 3, words, embeds=True),
    "llm": Case(_asking(LLMChunker, "random", 100), 100, embeds=True),
    "llm, mixed": Case(_asking(LLMChunker, "mixed", 2000), 2000, embeds=True),
    "llm, nothing, tiny": Case(_asking(LLMChunker, "nothing", 4), 4, embeds=True),
    "llm, cl100k": Case(_asking(LLMChunker, "random", 15, tokens("cl100k")), 15, _tokens("cl100k"), embeds=True),
    "lumber": Case(_asking(LumberChunker, "random"), 550, _tokens("cl100k"), embeds=True),
    "lumber, mixed": Case(_asking(LumberChunker, "mixed", 40), 40, _tokens("cl100k"), embeds=True),
    "lumber, same": Case(_asking(LumberChunker, "same", 60, len), 60, embeds=True),
    "lumber, tiny": Case(_asking(LumberChunker, "garbage", 3, words), 3, words, embeds=True),
    "keep or split": Case(_asking(KeepOrSplitChunker, "random", 0.3, 100), 100, embeds=True),
    "keep or split, tiny": Case(_asking(KeepOrSplitChunker, "random", -1, 4), 4, embeds=True),
    "keep or split, garbage": Case(_asking(KeepOrSplitChunker, "garbage", 0, 9, words), 9, words, embeds=True),
}


def chain_of(*names: str) -> Case:
    """A chain of these chunkers, which promises for its last level what the last of them does."""
    cases = [CHUNKERS[name] for name in names]
    drops, embeds = "".join(case.drops for case in cases), any(case.embeds for case in cases)
    return replace(
        cases[-1],
        make=lambda: SplitterChain([case.make() for case in cases], include_all_chunks=True),
        drops=drops,
        embeds=embeds,
        above=tuple(cases[:-1]),
    )


# None but the last overlaps: where an earlier one does, chunks of two families share text (test_chain.py).
CHAINS = [
    ("sentence, cl100k", "semantic"),
    ("heading, small", "paragraph", "sentence"),
    ("heading, tiny", "llm"),
    ("recursive, RAG Me Up, drop", "fixed, words"),
    ("code", "paragraph, lines", "recursive, tiny"),
    ("cluster", "sliding, tiny"),
]
# Each level of a chain is the last one of the chain up to there, so all levels are under the rules.
CHUNKERS |= {
    "chain: " + " > ".join(names[:k]): chain_of(*names[:k]) for names in CHAINS for k in range(2, len(names) + 1)
}
