"""Texts that many tests use; the public ones skip, and say so, where their folder is not given."""

import os

import pytest

from chunklab import load_benchmark, load_corpus, load_novel


@pytest.fixture(scope="session")
def corpus() -> dict[str, str]:
    """The course corpus: file name to text."""
    return load_corpus()


@pytest.fixture(scope="session")
def novella(corpus) -> str:
    return corpus["the_bell_that_waited.txt"]


@pytest.fixture(scope="session")
def public_texts() -> dict[str, str]:
    """The public benchmark's five corpora, the novel, and all of them joined by blank lines."""
    if "CHUNKLAB_DATA" not in os.environ:
        pytest.skip("CHUNKLAB_DATA names no folder of public data")
    texts = {**load_benchmark()[0], "novel": load_novel()}
    return {**texts, "joined": "\n\n".join(texts.values())}
