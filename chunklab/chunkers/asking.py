"""Asking a language model: what all chunkers that use one share.

A method is a plan, a generator: it yields questions, several at once where none depends on another, is sent their
answers, and returns the chunks. Here the plan is carried out, one question after another or, with `achunk`, several at
once, with the same result. An answer is JSON of a given schema; one that cannot be used is asked for again, with what
was wrong, and given up after `TRIES`: then the method falls back on something that needs no model. A busy server is
waited for, as long as it says. Every reply is kept, so that after a fault the same run asks only for the rest.

The document is data, never part of an instruction: its sentences are strings in JSON, which they cannot close, and what
the model names is checked against what it was shown. So a text that tries to give orders spoils its own chunks at most.
Cost: that of the model. To keep replies from one process to the next, give the model a `cache` of LangChain's.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import WeakKeyDictionary, ref

from chunklab.chunk import Chunk, Chunker, Span, check_id, check_text
from chunklab.chunkers.questions import Question, Reply, Unusable, as_json, cut_off_reply, reply_of
from chunklab.models.tokens import well_formed
from chunklab.models.vectors import ATTEMPTS, LONGEST_PAUSE, key_advice, pause_after

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

TRIES = 3
"""How often a question is put, until its answer can be used."""

AT_ONCE = 8
"""How many questions of one event loop are on their way at once."""

sleep, async_sleep = time.sleep, asyncio.sleep

_PASSING = {"APIConnectionError", "TransportError"}  # OpenAI's, Anthropic's and httpx's names for a bad connection
_CUT_OFF = {"LengthFinishReasonError", "ContentFilterFinishReasonError"}  # OpenAI's client raises these for an answer
# What a server says that will not read one question, such as a hostile or a very long text; it answers others.
_REFUSED = {"content_filter", "invalid_prompt", "context_length_exceeded", "exceed_context_size_error"}
_SLOW = 3  # seconds, after which a bar shows how far it is
_GATES: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
_UNFINISHED: dict[tuple[str, int, int], tuple[ref[Any], dict[str, Reply]]] = {}

Plan = Generator[list[Question], list[Any], Any]
"""Yields questions, is sent their answers, returns what is made of them."""


class LLMError(RuntimeError):
    """The model did not answer; what it answered before is kept.

    Attributes:
        done: how many of its replies were kept by then.
    """

    def __init__(self, message: str, done: int = 0) -> None:
        super().__init__(message)
        self.done = done


def check_llm(llm: Any) -> None:
    """Raise ValueError unless it is a chat model."""
    if not (callable(getattr(llm, "invoke", None)) and callable(getattr(llm, "ainvoke", None))) or isinstance(
        llm, type
    ):
        raise ValueError(
            f"llm={llm!r:.80}: must be a chat model of LangChain, such as chunklab.chat() or ChatOpenAI(…)"
        )


class Asker:
    """Carries out plans with a model, and keeps its replies.

    Args:
        llm: the model.
        kept: replies that there are already; new ones are put in.

    Attributes:
        wrote: the names of the models that answered the last plan, as far as they have one.
    """

    def __init__(self, llm: BaseChatModel, kept: dict[str, Reply] | None = None) -> None:
        check_llm(llm)
        self._llm, self._kept = llm, {} if kept is None else kept
        self._plain = False  # the server knows no response_format
        self.wrote: dict[str, None] = {}

    def run(self, plan: Plan) -> Any:
        """What a plan returns, its questions asked one after another.

        Raises:
            LLMError: the model did not answer.
        """
        self.wrote = {}
        with _Progress(plan) as progress:
            for questions in progress:
                progress.answers = [progress.tick(self._resolve(one)) for one in questions]
        return progress.result

    async def arun(self, plan: Plan) -> Any:
        """The same, with up to `AT_ONCE` of its questions on their way at once.

        Raises:
            LLMError: the model did not answer; then the questions that are on their way are waited for.
        """
        self.wrote = {}
        with _Progress(plan) as progress:
            for questions in progress:
                progress.answers = await self._resolve_all(questions, progress)
        return progress.result

    def _resolve(self, one: Question) -> Any:
        messages, answer = one.messages, None
        for _ in range(TRIES):
            answer, messages = one.judge(messages, self._signed(self._call(messages, one.options)))
            if not isinstance(answer, Unusable):
                break
        return answer

    async def _resolve_all(self, questions: list[Question], progress: _Progress) -> list[Any]:
        gate = _GATES.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
        faults: list[BaseException] = []

        async def resolve(one: Question) -> Any:
            messages, answer = one.messages, None
            async with gate:
                for _ in range(TRIES):
                    try:
                        reply = self._signed(await self._acall(messages, one.options, faults))
                        answer, messages = one.judge(messages, reply)
                    except BaseException as fault:  # a client that cancels itself is no answer either
                        faults.append(fault)
                        raise
                    if not isinstance(answer, Unusable):
                        break
            return progress.tick(answer)

        # The same question twice is one question, as it is when they are asked one after another.
        keys = [_key(one.messages, one.options) for one in questions]
        unique = dict(zip(keys, questions, strict=True))
        answers = await asyncio.gather(*map(resolve, unique.values()), return_exceptions=True)
        if faults:
            raise faults[0]
        found = dict(zip(unique, answers, strict=True))
        return [found[key] for key in keys]

    def _signed(self, reply: Reply) -> Reply:
        if reply.model:
            self.wrote[reply.model] = None
        return reply

    @property
    def signature(self) -> dict[str, str]:
        """Metadata that say who wrote: {"model": …}; none where the models have no name."""
        return {"model": "; ".join(self.wrote)} if self.wrote else {}

    def _call(self, messages: list[tuple[str, str]], options: dict[str, Any]) -> Reply:
        key, attempt = _key(messages, options), 0
        while key not in self._kept:
            attempt += 1
            try:
                self._kept[key] = reply_of(self._llm.invoke(messages, **self._allowed(options)))
            except Exception as error:
                pause = self._after(error, key, options, attempt)
                if pause:
                    sleep(pause)
        return self._kept[key]

    async def _acall(self, messages: list[tuple[str, str]], options: dict[str, Any], faults: list[Any]) -> Reply:
        key, attempt = _key(messages, options), 0
        while key not in self._kept:
            if faults:
                raise asyncio.CancelledError  # another question has failed: this one is not begun
            attempt += 1
            try:
                self._kept[key] = reply_of(await self._llm.ainvoke(messages, **self._allowed(options)))
            except Exception as error:
                pause = self._after(error, key, options, attempt)
                if pause and not faults:
                    await async_sleep(pause)
        return self._kept[key]

    def _allowed(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in options.items() if not (self._plain and name == "response_format")}

    def _after(self, error: Exception, key: str, options: dict[str, Any], attempt: int) -> float:
        """Seconds to wait before the next attempt; raises LLMError where there is to be none."""
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _CUT_OFF:
            self._kept[key] = cut_off_reply(error)
            return 0
        if "ContextOverflowError" in names or {str(getattr(error, name, "")) for name in ("code", "type")} & _REFUSED:
            self._kept[key] = Reply("", refusal=well_formed(str(error)))
            return 0
        # What lasts may quote the document, which may speak of anything.
        lasting = _is_lasting(error)
        knows_no_schema = not lasting and re.search("response_format|json_schema", str(error))
        if knows_no_schema and "response_format" in self._allowed(options):
            self._plain = True  # the prompt asks for JSON all the same
            return 0
        busy = (type(error),) if names & _PASSING else (ConnectionError, TimeoutError)
        pause = None if lasting else pause_after(error, attempt, busy)
        if pause is None or pause > LONGEST_PAUSE or attempt >= ATTEMPTS:
            wait = f" The server asks to wait {pause:.0f} seconds." if pause and pause > LONGEST_PAUSE else ""
            raise LLMError(
                f"the model did not answer: {_reasons(error)}.{wait}{key_advice(error)} {len(self._kept)} replies are "
                "kept: run the same again, with the same object, and it goes on from there",
                len(self._kept),
            ) from error
        return pause


class _Progress:
    """A plan on its way: gives the questions of each step, takes their `answers`, and has the plan's `result` then."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._bar: Any = None
        self.answers: Any = None
        self.result: Any = None
        self._asked = self._unusable = 0
        self._problem = ""

    def __enter__(self) -> Self:
        from tqdm import tqdm

        self._bar = tqdm(desc="asking", unit=" questions", delay=_SLOW, file=sys.stderr, leave=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def __iter__(self) -> Iterator[list[Question]]:
        return self

    def __next__(self) -> list[Question]:
        try:
            questions = self._plan.send(self.answers)
        except StopIteration as stop:
            self.result = stop.value
            if self._unusable:
                warnings.warn(
                    f"{self._unusable} of {self._asked} questions got no answer that could be used, asked {TRIES} "
                    f'times each: there, chunks are made without the model, and say so in their metadata as "fallback" '
                    f"(such as: {self._problem})",
                    stacklevel=4,
                )
            raise
        self._asked += len(questions)
        if len(questions) > 1:
            self._bar.total = self._bar.n + len(questions)
        return questions

    def tick(self, answer: Any) -> Any:
        """The answer, counted."""
        if isinstance(answer, Unusable):
            self._unusable, self._problem = self._unusable + 1, str(answer)
        self._bar.update()
        return answer


def _key(messages: Sequence[tuple[str, str]], options: dict[str, Any]) -> str:
    return hashlib.sha256(as_json([messages, options]).encode()).hexdigest()


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def _is_lasting(error: Exception) -> bool:
    """Whether what lies behind it is no matter of connections: a model's file is missing, nothing was recorded."""
    return any(isinstance(cause, RuntimeError) for cause in _causes(error))


def _reasons(error: Exception) -> str:
    """The error, and what lies behind it, as far as it says more."""
    said: list[str] = []
    for cause in _causes(error):
        if not (str(cause) and any(str(cause) in reason for reason in said)):
            said.append(f"{type(cause).__name__}: {cause}".rstrip(":. ")[:600])
    return "; because of ".join(said)


@contextmanager
def unfinished(task: str, llm: BaseChatModel, text: str) -> Iterator[dict[str, Reply]]:
    """What functions, which keep nothing, keep all the same: the replies of a run that failed, as long as its model is.

    Args:
        task: names the function.
        llm: the model.
        text: the document, so that the runs of several do not drop each other's replies.

    Yields:
        The replies of the last run, if it failed; else none. New ones are put in.
    """
    check_llm(llm)
    key = task, id(llm), hash(text)
    owner, kept = _UNFINISHED.get(key, (None, {}))
    kept = dict(kept) if owner and owner() is llm else {}
    try:
        yield kept
    except BaseException:
        _UNFINISHED[key] = ref(llm, lambda _: _UNFINISHED.pop(key, None)), kept
        raise
    _UNFINISHED.pop(key, None)


class AskingChunker(Chunker):
    """The common part of the chunkers that ask a language model: a subclass says what to ask, in `plan`.

    Args:
        llm: a chat model of LangChain.
        chunk_size: the longest chunk, in units of `length_function`.
        length_function: measures a text; counts characters by default.

    Raises:
        ValueError: an argument that is not allowed, before any text is read.
    """

    def __init__(
        self, llm: BaseChatModel, chunk_size: int = sys.maxsize, length_function: Callable[[str], int] = len
    ) -> None:
        self._asker = Asker(llm)
        super().__init__(chunk_size, 0, length_function)

    @abstractmethod
    def plan(self, text: str) -> Plan:
        """Yields questions, is sent their answers, returns the chunks to be, a list of `Piece`."""

    def chunk(self, text: str, doc_id: str = "doc") -> list[Chunk]:
        """Cut one text, asking one question after another.

        Args:
            text: the document.
            doc_id: its id, kept in every chunk.

        Returns:
            The chunks, in the order of the text; none for a blank text. Their metadata say which model answered, as
            "model", and where an answer of it could not be used, why, as "fallback".

        Raises:
            ValueError: a text or an id that is not a str.
            LLMError: the model did not answer. Its replies are kept: this chunker asks for none of them again.
        """
        check_id(doc_id)
        return self._made(self._asker.run(self.plan(check_text(text))), text, doc_id)

    async def achunk(self, text: str, doc_id: str = "doc") -> list[Chunk]:
        """The same chunks, with several questions on their way at once where none depends on another."""
        check_id(doc_id)
        return self._made(await self._asker.arun(self.plan(check_text(text))), text, doc_id)

    def _made(self, pieces: Sequence[Piece], text: str, doc_id: str) -> list[Chunk]:
        for piece in pieces:
            piece.metadata.update(self._asker.signature)
        return chunks_of(pieces, text, doc_id)

    def spans(self, text: str) -> list[Span]:
        """Where the chunks start and end, in order."""
        return [(c.start, c.end) for c in self.chunk(text)]

    def split_text(self, text: str) -> list[str]:
        """The chunks' texts alone, as LangChain asks for them."""
        return [c.text for c in self.chunk(text)]


class Piece(NamedTuple):
    """A chunk to be: its place, what there is to say about it, and its text where that is not the document's."""

    start: int
    end: int
    metadata: dict[str, Any]
    text: str | None = None


def chunks_of(pieces: Sequence[Piece], text: str, doc_id: str) -> list[Chunk]:
    """The chunks of one document."""
    return [
        Chunk(
            text[piece.start : piece.end] if piece.text is None else piece.text,
            piece.start,
            piece.end,
            doc_id,
            f"{doc_id}_{index}",
            None,
            index,
            len(pieces),
            piece.metadata,
        )
        for index, piece in enumerate(pieces)
    ]
