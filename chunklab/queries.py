"""The questions that an index is asked: checked, and as vectors.

For indexes of every kind, so that they refuse the same and score alike. Cost: one embedding a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from chunklab.chunk import is_blank
from chunklab.models.vectors import check_model, embed

_ROWS = 8192  # vectors multiplied at once


def model_name(embeddings: Embeddings) -> str:
    """What to call a model: its `name`, or the `model` of a LangChain class, else its class."""
    for attribute in ("name", "model", "model_name"):
        name = getattr(embeddings, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(embeddings).__name__


def query_vectors(queries: Sequence[str], embeddings: Embeddings) -> np.ndarray:
    """The vectors of questions, float32 (queries, dimensions); some models treat these unlike documents."""
    check_model(embeddings)
    if hasattr(embeddings, "encode") or not queries:
        return embed(embeddings, list(queries))
    return embed(_AsQueries(embeddings), list(queries))


def cosines(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Of unit vectors: (queries, vectors). In double precision and rounded: equal vectors score alike in any batch."""
    queries = queries.astype(np.float64)
    # For a few queries, what is copied had better stay in the processor's cache.
    rows = _ROWS if len(queries) > 8 else _ROWS // 8
    blocks = [queries @ vectors[i : i + rows].astype(np.float64).T for i in range(0, len(vectors), rows)]
    return np.concatenate(blocks, axis=1).round(9)


class _AsQueries(Embeddings):
    """A model that takes every text for a query, so that `embed` and its checks serve queries too."""

    def __init__(self, model: Embeddings) -> None:
        self.name = model_name(model)
        self._model = model

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._model.embed_query(text) for text in texts]


def check_queries(queries: Any) -> list[str]:
    """The queries as a list; a ValueError says what is no text, or a blank one."""
    if isinstance(queries, str) or not isinstance(queries, Iterable):
        raise ValueError(f"queries={queries!r:.80}: must be a list of texts; for one text there is search")
    queries = list(queries)
    for query in queries:
        if not isinstance(query, str) or is_blank(query):
            raise ValueError(f"query={query!r:.80}: must be a text, and not a blank one (vectors: as a numpy array)")
    return queries


def check_vectors(vectors: np.ndarray, name: str = "queries") -> np.ndarray:
    """The vectors as float32 (queries, dimensions); `name` is that of the argument."""
    if vectors.dtype.kind not in "fiu" or vectors.ndim not in (1, 2):
        rows = "chunks" if name == "vectors" else name
        raise ValueError(
            f"{name} is an array of {vectors.dtype} of shape {vectors.shape}: must be numbers ({rows}, dimensions)"
        )
    with np.errstate(over="ignore"):
        vectors = np.atleast_2d(vectors).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name} holds a number that is not finite (NaN or infinity)")
    return vectors
