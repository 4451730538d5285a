"""The embedding models of the course: texts to vectors whose angles say how alike the texts are.

`minilm` (all-MiniLM-L6-v2, Sentence-Transformers; its weights as 8-bit integers, ONNX) is the default: it reads a text
in context, 256 tokens of it, and runs on any processor. `static` (WordLlama) averages ready-made token vectors: it
knows no word order, finds a little less, and is a hundred times as fast. `openai` is OpenAI's service, or any that
speaks its language. All are LangChain Embeddings, so a learner can hand in any other. Cost on two cores: minilm reads
about 7,000 tokens a second, a sentence in 5 ms; static takes 0.05 ms. What minilm and openai compute is kept on disk.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.models.tokens import tokens, well_formed, wordpiece
from chunklab.models.vectors import Cached, EmbeddingError, check_texts, embed, unit
from chunklab.models.weights import check_name, damaged, once, sha256, weight

if TYPE_CHECKING:
    import onnxruntime
    import wordllama.inference

__all__ = ["Cached", "EmbeddingError", "MiniLM", "OpenAI", "Static", "embed", "embeddings", "truncated", "unit"]

NAMES = ("minilm", "static", "openai")


def embeddings(name: str = "minilm", cache: bool = True, model: str | None = None) -> Embeddings:
    """One of the course's embedding models.

    Args:
        name: "minilm" (local, in context), "static" (local, fastest) or "openai" (needs a key).
        cache: keep what minilm and openai compute, on disk; static computes a vector about as quickly as it could be
            kept.
        model: which of OpenAI's models; text-embedding-3-small by default.

    Returns:
        A LangChain Embeddings with, beside LangChain's methods, `encode(texts)` (float32, unit length), `name`,
        `dimensions` and `max_tokens` (None: it reads everything).

    Raises:
        ValueError: another name; a `model` for a local one; "openai" without a key.
        WeightsError: the model's file is not in the cache and could not be fetched.

    >>> vectors = embeddings("static").encode(["a cat", "a kitten", "a tax return"])
    >>> vectors.shape, bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
    ((3, 256), True)
    """
    check_name("name", name, NAMES)
    if model is not None and name != "openai":
        raise ValueError(f'model={model!r}: only with name="openai"')
    if name == "static":
        return Static()
    if name == "minilm":
        return Cached(MiniLM(), batch_size=MiniLM.block) if cache else MiniLM()
    # Behind the cache it is the cache that waits and asks again.
    service = OpenAI(model or "text-embedding-3-small", max_retries=0 if cache else 6)
    return Cached(service, batch_size=OpenAI.block) if cache else service


def truncated(model: Embeddings, texts: Iterable[str]) -> list[int]:
    """Which texts are longer than the model reads: it sees only their beginning, and says nothing.

    Args:
        model: any Embeddings; one without `max_tokens` and `count_tokens` is taken to read everything.
        texts: the texts.

    Returns:
        The places of those texts in `texts`; its length is how many.
    """
    limit, count = getattr(model, "max_tokens", None), getattr(model, "count_tokens", None)
    if limit is None or count is None:
        return []
    return [place for place, text in enumerate(check_texts(texts)) if count(text) > limit]


class _Model(Embeddings):
    """LangChain's two methods, by way of `encode`."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        raise NotImplementedError

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """LangChain's form of `encode`."""
        return self.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """LangChain's form of `encode`, for one text."""
        return self.encode([text])[0].tolist()


class MiniLM(_Model):
    """all-MiniLM-L6-v2 on this machine: the mean of a text's token vectors, at unit length.

    Only the stored weights are integers; the model computes in float32. So a text's vector does not depend on the texts
    beside it, beyond the rounding of the last digit on some processors.

    Args:
        max_tokens: how much of a text it reads, in tokens with the two that mark its ends: 256 as it was trained to,
            512 at most.

    Raises:
        ValueError: a `max_tokens` that is not a whole number from 3 to 512.
        WeightsError: its files are not in the cache and could not be fetched.
    """

    dimensions = 384
    block = 512  # texts that are tokenized and sorted together
    # Tokens in one run, padding included: fewer leave a core idle, more fall out of the processor's cache.
    _tokens_at_once = 1024

    def __init__(self, max_tokens: int = 256) -> None:
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or not 3 <= max_tokens <= 512:
            raise ValueError(f"max_tokens={max_tokens!r}: must be a whole number from 3 to 512")
        self.max_tokens = max_tokens
        self.name = "minilm" if max_tokens == 256 else f"minilm-{max_tokens}"
        _minilm(), wordpiece()  # a missing file shows here, not in the middle of the work

    @property
    def key(self) -> str:
        """What its vectors depend on beside the text."""
        return f"{self.name} {sha256('minilm')} {sha256('minilm-tokenizer')}"

    def count_tokens(self, text: str) -> int:
        """The tokens of a text as this model counts them, with the two that mark its ends."""
        return tokens("minilm")(text) + 2

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts.

        Args:
            texts: the texts; of a long one only the beginning is read, see `truncated`.

        Returns:
            float32 of shape (texts, 384), unit length.
        """
        texts = check_texts(texts)
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), self.block):
            block = [well_formed(text) for text in texts[start : start + self.block]]
            ids = [self._ids(e.ids) for e in wordpiece().encode_batch_fast(block, add_special_tokens=False)]
            # Sorted, longest first, so that texts of about the same length share a batch and little is padding.
            order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
            while order:
                size = max(1, self._tokens_at_once // len(ids[order[0]]))
                batch, order = order[:size], order[size:]
                for place, states in zip(batch, _hidden([ids[place] for place in batch]), strict=True):
                    vectors[start + place] = states.mean(axis=0)
        return unit(vectors)

    def token_vectors(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The vector of each token in the light of the whole text, for late chunking.

        Args:
            text: one text; only the first `max_tokens` - 2 tokens are read.

        Returns:
            float32 of shape (tokens, 384), not of unit length, and int64 of shape (tokens, 2): where each token starts
            and ends in `text`. The tokens that mark a text's ends are left out.
        """
        encoded = wordpiece().encode(well_formed(text), add_special_tokens=False)
        states = _hidden([self._ids(encoded.ids)])[0][1:-1]
        spans = np.array(encoded.offsets[: len(states)], dtype=np.int64).reshape(-1, 2)
        return states, spans

    def _ids(self, ids: list[int]) -> list[int]:
        first, last = (wordpiece().token_to_id(mark) for mark in ("[CLS]", "[SEP]"))
        return [first, *ids[: self.max_tokens - 2], last]  # type: ignore[list-item]


class Static(_Model):
    """WordLlama: the mean of ready-made token vectors, at unit length; a text without a token gives zeros.

    It reads a text of any length whole, and its vectors come with the package.
    """

    name, dimensions, max_tokens = "static", 256, None
    _block = 64  # more texts at a time are no faster

    def __init__(self) -> None:
        _wordllama()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts.

        Args:
            texts: the texts.

        Returns:
            float32 of shape (texts, 256), unit length.
        """
        texts = check_texts(texts)
        table, tokenizer = _wordllama().embedding, _wordllama().tokenizer
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), self._block):
            block = [well_formed(text) for text in texts[start : start + self._block]]
            encoded = tokenizer.encode_batch_fast(block, add_special_tokens=False)
            for place, e in enumerate(encoded, start):
                # The sum points where the mean points.
                vectors[place] = table[e.ids].sum(axis=0)
        return unit(vectors)


class OpenAI(_Model):
    """OpenAI's embeddings, or those of any server that OPENAI_BASE_URL names.

    Of a text of more than 8,191 tokens only the beginning is sent, as these models read no more.

    Args:
        model: the model's name.
        max_retries: how often OpenAI's client asks again when the server is busy, waiting as long as it says.

    Raises:
        ValueError: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set.
    """

    max_tokens, dimensions = 8191, None
    block = 32  # 32 of the longest texts are within what one call may hold, 300,000 tokens

    def __init__(self, model: str = "text-embedding-3-small", max_retries: int = 6) -> None:
        address = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
        key = os.environ.get("OPENAI_API_KEY") or ("none" if address else None)
        if key is None:
            raise ValueError(
                "OPENAI_API_KEY is not set: set this environment variable to your key (or OPENAI_BASE_URL to the "
                'address of a server of your own), or take embeddings("minilm") or embeddings("static"): they need none'
            )
        import openai
        from langchain_openai import OpenAIEmbeddings

        # As texts, not as token numbers: other servers than OpenAI's take nothing else.
        options: dict[str, Any] = {"check_embedding_ctx_length": False, "chunk_size": self.block, "api_key": key}
        self._client = OpenAIEmbeddings(model=model, max_retries=max_retries, **options)
        self.name = f"openai/{model}"
        self.key = f"{address or 'openai'} {model}"
        self.busy = (openai.APIConnectionError,)

    def __reduce__(self) -> tuple[Any, ...]:
        # To another process goes what was asked for; it has a client and a key of its own.
        return type(self), (self._client.model, self._client.max_retries)

    def count_tokens(self, text: str) -> int:
        """The tokens of a text as these models count them."""
        return tokens("cl100k")(text)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of texts.

        Args:
            texts: the texts, none of them empty.

        Returns:
            float32 of shape (texts, dimensions of the model), unit length.
        """
        return unit(embed(self._client, [self._beginning(well_formed(text)) for text in check_texts(texts)]))

    def _beginning(self, text: str) -> str:
        # A token is at least one byte and a character at most four: most texts need no count.
        if len(text) * 4 <= self.max_tokens or self.count_tokens(text) <= self.max_tokens:
            return text
        return text[: tokens("cl100k").offsets(text)[self.max_tokens]]


@once
def _minilm() -> onnxruntime.InferenceSession:
    # Its newer releases, on import, keep a number for this machine in the user's folder and report to their makers.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for Windows, which does not ask the variable
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _cores()
    # Threads that wait by spinning are a little faster on an idle machine, and three times slower on a busy one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only: its warnings would stand in the learner's notebook
    path = weight("minilm")
    with damaged(path):
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _cores() -> int:
    """The cores that this process may use: in a container often fewer than the machine has.

    One of many workers on a machine is told its share by OMP_NUM_THREADS, as Ray tells its own.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(told)) if told.isdecimal() and int(told) > 0 else cores


def _hidden(ids: Sequence[list[int]]) -> list[np.ndarray]:
    """MiniLM's last layer for a batch of token numbers: for each text, float32 of shape (its tokens, 384)."""
    longest = max(map(len, ids))
    numbers = np.zeros((len(ids), longest), dtype=np.int64)
    mask = np.zeros_like(numbers)
    for row, one in enumerate(ids):
        numbers[row, : len(one)] = one
        mask[row, : len(one)] = 1
    feed = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros_like(numbers)}
    (states,) = _minilm().run(["last_hidden_state"], feed)
    return [states[row, : len(one)] for row, one in enumerate(ids)]


@once
def _wordllama() -> wordllama.inference.WordLlamaInference:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    import wordllama

    # On import it turns on logging for the whole process, and every library's messages would stand in the notebook.
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    model.tokenizer.encode_special_tokens = True  # a literal </s> is plain text
    return model
