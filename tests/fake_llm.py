"""A chat model for tests: what it says depends on what it is asked and on nothing else, and it can fail as servers do."""

import asyncio
import hashlib
import json
import random

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

MODES = ["random", "garbage", "nothing", "same", "mixed"]
GARBAGE = [
    "", " ", "none", "Sure! Here it is:", "0", "-5", "1", "9999", "sorry", "ID 003", "[]", "{}", "null", "true", '"x"', "[[[[", "{" * 3000,
    '{"starts": [1, 2', '{"starts": "all"}', '{"starts": [1e999, -1]}', '{"starts": [NaN]}', '{"first": -3}', '{"first": 1}', '{"first": null}',
    '{"first": 99999999999999999999999999}', '{"first": ' + "9" * 5000 + "}", '```json\n{"starts": [2], "first": 2}\n```', "\ud800 {\ud800}", "[" * 100_000,
    '{"propositions": ["A.", "B."]}', '{"propositions": [{"sentences": [0, 77], "text": "No."}]}', '{"propositions": [{"sentences": [1], "text": "  "}]}',
    '{"chunk": 7}', '{"title": "", "summary": ""}', '{"document_title": "\\n", "chunk_title": "."}', '{"headings": [{"paragraph": 1, "title": "##"}]}', "<think>[2]</think> {\"starts\": [3]} and so on",
]  # fmt: skip


class FakeLLM(BaseChatModel):
    """Answers by a hash of the prompt.

    mode: "random" gives JSON as the schema asks, with any numbers; "garbage" one of GARBAGE; "nothing" an empty answer;
    "same" the same number for ever; "mixed" any of these. says: from the question's text to the answer, instead.
    faults: by the number of the call, from 1, the exception that it raises.
    """

    mode: str = "random"
    says: object = None
    faults: dict = {}
    asked: list = []
    answered: int = 0
    options: list = []

    def __init__(self, mode="random", says=None, faults=None):
        super().__init__(mode=mode, says=says, faults=faults or {}, asked=[], options=[])

    @property
    def _llm_type(self):
        return "fake"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        words = "\n".join(f"{message.type}: {message.content}" for message in messages)
        self.asked.append(messages[-1].content if self.says is None else words)
        self.options.append(kwargs)
        if fault := self.faults.get(len(self.asked)):
            raise fault
        self.answered += 1
        rng = random.Random(hashlib.sha256(words.encode("utf-8", "replace")).digest())
        content = self.says(words) if self.says else self._answer(rng, kwargs)
        tokens = [{"token": token, "logprob": -5 * rng.random()} for token in ("keep", "split", "the", "Spl")]
        likely = {"logprobs": {"content": [{**tokens[0], "top_logprobs": tokens}]}} if kwargs.get("logprobs") else {}
        if self.mode in ("garbage", "nothing") and likely:
            likely["logprobs"]["content"][0] = {"token": "the", "logprob": -0.1, "top_logprobs": []}
        message = AIMessage(
            content, response_metadata=likely, usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        # Later questions are answered first, so that an order that comes from luck is none.
        await asyncio.sleep(0.001 * (3 - len(self.asked) % 4))
        return self._generate(messages, stop, run_manager, **kwargs)

    def _answer(self, rng, kwargs):
        mode = rng.choice(MODES[:-1]) if self.mode == "mixed" else self.mode
        if mode == "nothing":
            return ""
        if mode == "garbage":
            return rng.choice(GARBAGE)
        schema = kwargs.get("response_format", {}).get("json_schema", {}).get("schema")
        return json.dumps(_made(schema, rng, same=mode == "same")) if schema else "keep"


def _made(schema, rng, same):
    """Something that a schema allows."""
    kind = schema.get("type")
    if kind == "object":
        return {name: _made(part, rng, same) for name, part in schema["properties"].items()}
    if kind == "array":
        return [_made(schema["items"], rng, same) for _ in range(1 if same else rng.randrange(5))]
    if kind == "integer":
        return 2 if same else rng.choice([1, 2, 3, 4, 5, 7, 9, 14, 20, -1, 0, 99])
    return "Same." if same else rng.choice(["A title", "It weighs 5 kg.", "東京 🧬", "# no\n\n``` {", "word " * 40])
