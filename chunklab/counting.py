"""What a method asks of models: texts embedded, and calls and tokens of a language model, counted while it runs.

For the scoreboard and the lessons, which say what a method costs. A chunker need not know that it is counted. It costs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from chunklab.models.vectors import ASKED


class Calls(BaseCallbackHandler):
    """What was asked.

    Attributes:
        texts: how many texts were embedded, one number a call.
        llm: calls of language models.
        tokens_in: tokens that they read, as far as they say.
        tokens_out: tokens that they wrote.
    """

    def __init__(self) -> None:
        self.texts: list[int] = []
        self.llm = self.tokens_in = self.tokens_out = 0

    @property
    def embedded(self) -> int:
        """How many texts were embedded."""
        return sum(self.texts)

    def price(self, per_million_in: float, per_million_out: float) -> float:
        """What the language models' tokens cost, at these prices for a million."""
        return (self.tokens_in * per_million_in + self.tokens_out * per_million_out) / 1_000_000

    def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
        self.llm += 1

    on_chat_model_start = on_llm_start

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        for generations in response.generations:
            usage = getattr(getattr(generations[0], "message", None), "usage_metadata", None) if generations else None
            self.tokens_in += (usage or {}).get("input_tokens") or 0
            self.tokens_out += (usage or {}).get("output_tokens") or 0


_CALLS: ContextVar[Calls | None] = ContextVar("chunklab_calls", default=None)
# LangChain asks this variable for a handler whenever a model is called, so a chunker need not know that it is counted.
register_configure_hook(_CALLS, inheritable=True)


@contextmanager
def counted() -> Iterator[Calls]:
    """Count what is asked of models inside the block.

    Yields:
        A `Calls` that grows.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> with counted() as calls:
    ...     reply = FakeListChatModel(responses=["yes"]).invoke("Is it?")
    >>> calls.llm
    1
    """
    calls = Calls()
    tokens = _CALLS.set(calls), ASKED.set(calls.texts)
    try:
        yield calls
    finally:
        _CALLS.reset(tokens[0])
        ASKED.reset(tokens[1])
