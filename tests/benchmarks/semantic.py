"""Speed and memory of `SemanticChunker`, against its peers over the same model: `python tests/benchmarks/semantic.py`.

With WordLlama, a megabyte: chonkie's SemanticChunker, both with a maximum of 1,000 characters, and LangChain's, both
without one. With MiniLM, without the cache, LangChain's, on a small part, as it embeds each sentence three times. Ours
and the peer's run in turn; the ratio says how many times faster ours is. Then what 10 MB take in memory (a process of its own, the peak of all it held), and 10 MB against 5 MB.
Add --smoke for a quick look.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial

import numpy as np
from speed import paired, public_text

from chunklab import ClusterChunker, SemanticChunker, SemanticWindowChunker, embeddings

MEMORY = """
import sys
from chunklab import SemanticChunker, embeddings, load_corpus
text = "\\n\\n".join(load_corpus().values())
size = int(sys.argv[2])
def peak():  # in kB; the figure of `resource` would count the process that started this one
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
text = (text * (size // len(text) + 1))[:size]
class Wide:  # of MiniLM's width, whose own vectors would take half an hour
    name, dimensions = "wide", 384
    static = embeddings("static")
    def encode(self, texts):
        import numpy as np
        return np.pad(self.static.encode(texts), ((0, 0), (0, 128)))
model = {"static": lambda: embeddings("static"), "wide": Wide}[sys.argv[1]]()
before = peak()
chunks = SemanticChunker(model, max_chunk_size=1000).chunk(text)
print(len(chunks), before, peak())
"""


def chonkie_chunker(model):
    """chonkie's SemanticChunker over one of our models."""
    import chonkie
    from chonkie.embeddings import BaseEmbeddings

    class Adapter(BaseEmbeddings):
        dimension = model.dimensions

        def embed(self, text: str) -> np.ndarray:
            return model.encode([text])[0]

        def embed_batch(self, texts: list[str]) -> list[np.ndarray]:
            return list(model.encode(texts))

        def get_tokenizer(self) -> str:
            return "character"

    return chonkie.SemanticChunker(Adapter(), chunk_size=1000)


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the tables; gives (name, ratio) of every row, for the smoke test."""
    from langchain_experimental.text_splitter import SemanticChunker as LangChain

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small texts and one round: does it run at all")
    smoke = parser.parse_args(arguments).smoke
    text, results = public_text()[: 20_000 if smoke else 1_000_000], []
    static, minilm, part = embeddings("static"), embeddings("minilm", cache=False), text[: 2_000 if smoke else 60_000]
    ours, free, slow = SemanticChunker(static, max_chunk_size=1000), SemanticChunker(static), SemanticChunker(minilm)
    rows = [
        ("WordLlama", "chonkie SemanticChunker", ours, chonkie_chunker(static).chunk, text, 2),
        ("WordLlama", "LangChain SemanticChunker", free, LangChain(static).split_text, text, 3.5),
        ("MiniLM, without the cache", "LangChain SemanticChunker", slow, LangChain(minilm).split_text, part, 2.5),
    ]
    print("| model | peer | characters | ratio | asked |\n| --- | --- | --- | --- | --- |")
    for model, peer, chunker, call, words, asked in rows:
        _, ratio, _ = paired(partial(chunker.chunk, words), partial(call, words), 1 if smoke else 5)
        results.append((f"{model}, {peer}", ratio))
        print(f"| {model} | {peer} | {len(words):,} | {ratio:.1f} | {asked} |")

    print("\n| WordLlama | 10 MB against 5 MB (2 is linear) |\n| --- | --- |")
    once = (text * 20)[: 20_000 if smoke else 5_000_000]
    for name, chunker in {
        "SemanticChunker": ours,
        'SemanticChunker, window="text"': SemanticChunker(static, max_chunk_size=1000, window="text"),
        "SemanticWindowChunker": SemanticWindowChunker(static, threshold=0.6),
        "ClusterChunker": ClusterChunker(static, 1000, 150, len),
    }.items():
        _, ratio, _ = paired(partial(chunker.chunk, once), partial(chunker.chunk, once + once), 1)
        results.append((name, ratio))
        print(f"| {name} | {ratio:.2f} |")

    print("\n| 10 MB, dimensions | MB before | MB at the peak |\n| --- | --- | --- |")
    for name, dimensions in (("static", 256), ("wide", 384)):
        command = [sys.executable, "-c", MEMORY, name, str(20_000 if smoke else 10_000_000)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        results.append((f"memory, {name}", int(out[2]) / 1024))
        print(f"| {dimensions} | {int(out[1]) / 1024:.0f} | {int(out[2]) / 1024:.0f} |")
    return results


if __name__ == "__main__":
    main()
