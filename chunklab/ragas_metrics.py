"""RAGAS's metrics with our models: the judge that they ask hands its questions out, and the embedder is LangChain's.

For `judging`, which carries the metrics on. Formulas, prompts and schemas are RAGAS's. What a judge answers is looked
at before it counts: a verdict is 0 or 1, a question has words, a list holds something; RAGAS would take a verdict of 5
for a recall of 500 %. Loading RAGAS takes some seconds, and it reports its use to its makers unless it is told not to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from functools import cache
from typing import Any

# It is read when RAGAS first reports; whoever has set it has decided.
os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel
from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics import collections as ragas
from ragas.metrics._context_precision import NonLLMContextPrecisionWithReference
from ragas.metrics._context_recall import NonLLMContextRecall
from ragas.metrics.result import MetricResult

from chunklab.chunk import is_blank
from chunklab.chunkers.questions import Question, Reply, Unusable, parse, wire_format
from chunklab.models.vectors import embed

# These reach a server that holds to schemas, so that a small judge cannot repeat itself until it is cut off. What it
# writes is what takes its time, and its reasons are most of that.
_REASON = {"pattern": '^[^"\\\\\\n]{1,100}$'}
_ON_THE_WIRE: dict[str, dict[str, Any]] = {
    "string": {"pattern": '^[^"\\\\\\n]{1,200}$'},
    "array": {"maxItems": 10},
    "integer": {"enum": [0, 1]},
}


def metric_of(name: str, embeddings: Embeddings | None = None) -> Any:
    """A metric of RAGAS's: its `ascore`, given a row's fields, is a coroutine that awaits nothing but answers.

    Args:
        name: one of those that `ragas_scores` knows.
        embeddings: for the metrics that compare vectors.
    """
    judge = _Judge()
    similarity: Any = _Similarity()
    made: dict[str, Callable[[], Any]] = {
        "faithfulness": lambda: ragas.Faithfulness(judge),
        # RAGAS's default of 3 would ask the very same question three times, and at temperature 0 be told the same.
        "answer_relevancy": lambda: ragas.AnswerRelevancy(judge, _Embedder(embeddings), strictness=1),
        "context_precision": lambda: ragas.ContextPrecision(judge),
        "context_recall": lambda: ragas.ContextRecall(judge),
        "semantic_similarity": lambda: ragas.SemanticSimilarity(_Embedder(embeddings)),
        "non_llm_string_similarity": ragas.NonLLMStringSimilarity,
        "non_llm_context_precision_with_reference": lambda: _Older(
            NonLLMContextPrecisionWithReference(distance_measure=similarity)
        ),
        "non_llm_context_recall": lambda: _Older(NonLLMContextRecall(_distance_measure=similarity)),
    }
    return made[name]()


def judge_question(prompt: str, schema: type[BaseModel]) -> Question:
    """A question of RAGAS's, as our plans put it.

    Args:
        prompt: all of it; RAGAS writes a row's texts as JSON into its end.
        schema: what the answer must look like.

    Returns:
        The question; its answer is a `schema`.
    """
    # Where servers take "<|…|>" for the mark of a turn, it is written so that it is only text.
    message = ("human", prompt.replace("<|", "<\\u007c"))
    return Question([message], lambda reply: _verdict(reply, schema), {"response_format": _bounded(schema)})


def _verdict(reply: Reply, schema: type[BaseModel]) -> Any:
    answer = parse(reply, schema)
    for field, value in _leaves(answer.model_dump()):
        if isinstance(value, int) and value not in (0, 1):
            raise Unusable(f"{field}: must be 0 or 1, not {value}")
        if value == [] or (field == "question" and is_blank(value)):
            raise Unusable(f"{field}: must not be empty")
    return answer


def _leaves(value: Any, field: str = "") -> Generator[tuple[str, Any]]:
    """Each text, number and empty list in an answer, with the name of its field."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, name)
    elif isinstance(value, list) and value:
        for part in value:
            yield from _leaves(part, field)
    else:
        yield field, value


@cache
def _bounded(schema: type[BaseModel]) -> dict[str, Any]:
    """The schema for the wire, every part of it bounded."""

    def bounded(part: dict[str, Any]) -> dict[str, Any]:
        part |= _ON_THE_WIRE.get(part.get("type", ""), {})
        return part | {"reason": part["reason"] | _REASON} if "reason" in part else part

    return json.loads(json.dumps(wire_format(schema)), object_hook=bounded)


class _Handed:
    """An answer that is awaited: whoever carries the coroutine on gets the question, and sends the answer."""

    def __init__(self, question: Question) -> None:
        self._question = question

    def __await__(self) -> Generator[Question, Any, Any]:
        return (yield self._question)


class _Judge(InstructorBaseRagasLLM):
    async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> Any:
        return await _Handed(judge_question(prompt, response_model))

    def generate(self, prompt: str, response_model: type[BaseModel]) -> Any:
        raise NotImplementedError("the metrics ask by agenerate")


class _Embedder(BaseRagasEmbedding):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def embed_text(self, text: str, **_: Any) -> list[float]:
        return self.embed_texts([text])[0]

    def embed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        return embed(self._model, texts, float).tolist()

    # Never RAGAS's own, which would gather tasks, and need an event loop.
    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return self.embed_text(text)

    async def aembed_texts(self, texts: list[str], **_: Any) -> list[list[float]]:
        return self.embed_texts(texts)


class _Similarity:
    """RAGAS's similarity of strings, for its metrics of the older kind: they would ask for it by an event loop."""

    async def single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        return (await ragas.NonLLMStringSimilarity().ascore(sample.reference or "", sample.response or "")).value


class _Older:
    """A metric of RAGAS's older kind, asked as the newer ones are."""

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    async def ascore(self, **fields: Any) -> MetricResult:
        return MetricResult(await self._metric._single_turn_ascore(SingleTurnSample(**fields), []))
