"""Replies of language models, recorded once and replayed: lessons about LLMs without a key, a wait or a bill.

A recording is a VCR.py cassette, kept as JSON that one can read: what was asked and what was answered, with the name of
the model, the hash of its file and the day. Asked the same again, in the same words, it answers with the same reply;
what was never asked goes on to a live model. Neither host nor port, header nor key is kept or compared. For lessons and
tests; cost: reading the files once, about 20 ms a megabyte.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from chunklab.models.local_server import ServerError
from chunklab.models.names import plain_name

FOLDER = Path(__file__).resolve().parents[2] / "data" / "recordings"
HOST = "http://model"
"""What stands for the server in a recording."""

_KEPT = ("choices", "usage", "model", "object")  # of an answer; the rest are ids, times and versions


class NotRecordedError(RuntimeError):
    """Something is asked that no recording answers, where no live model may be asked."""


class NotKeptError(RuntimeError):
    """A reply could not be written into the recording that is being made."""


class Json:
    """A VCR.py serializer: JSON, bodies as JSON and not as text in text, and notes about the model above them.

    Args:
        notes: "model", "sha256", "date" and whatever else a reader should know.
    """

    def __init__(self, notes: dict[str, Any] | None = None) -> None:
        self.notes = notes or {}

    def serialize(self, cassette: dict[str, Any]) -> str:
        """The text of a cassette, as VCR.py gives it: version and interactions."""
        interactions = [
            {"asked": json.loads(one["request"]["body"]), "answered": json.loads(one["response"]["body"]["string"])}
            for one in cassette["interactions"]
        ]
        return json.dumps({**self.notes, "interactions": interactions}, indent=1, ensure_ascii=False) + "\n"

    def deserialize(self, text: str) -> dict[str, Any]:
        """The cassette as VCR.py wants it."""
        content = json.loads(text)
        interactions = content.pop("interactions")
        self.notes = content
        return {
            "version": 1,
            "interactions": [
                {
                    "request": {
                        "method": "POST",
                        "uri": f"{HOST}/chat/completions",
                        "body": json.dumps(one["asked"]),
                        "headers": {},
                    },
                    "response": {
                        "status": {"code": 200, "message": "OK"},
                        "headers": {"content-type": ["application/json"]},
                        "body": {"string": json.dumps(one["answered"])},
                    },
                }
                for one in interactions
            ],
        }


class Recordings:
    """Every recording of a folder, asked by what was asked.

    Args:
        folder: holds the recordings, one file a lesson.

    Raises:
        ValueError: a file that is not a recording; it is named.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.notes: dict[str, dict[str, Any]] = {}
        for path in sorted(folder.glob("*.json")):
            asked, answers, self.notes[path.stem] = load(path)
            for question, answer in zip(asked, answers, strict=True):
                self.answers.setdefault(key_of(question), answer)

    def find(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """The recorded answer to a request's body, or None."""
        return self.answers.get(key_of(question))


def load(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """What was asked, what was answered, and the notes of one recording."""
    from vcr.serialize import deserialize

    serializer = Json()
    try:
        # VCR.py's own persister reads and writes in the encoding of the system.
        requests, responses = deserialize(path.read_text(encoding="utf-8"), serializer)
        asked = [json.loads(request.body) for request in requests]
        answered = [json.loads(response["body"]["string"]) for response in responses]
        for question, answer in zip(asked, answered, strict=True):
            key_of(question), answer["model"], answer["choices"][0]["message"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what_to_do = "delete it" if path.suffix == ".partial" else "take it from the repository again"
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path.name} is not a recording ({reason}): {what_to_do}") from error
    return asked, answered, serializer.notes


def save(path: Path, asked: list[dict[str, Any]], answered: list[dict[str, Any]], notes: dict[str, Any]) -> None:
    """Write one recording, whole or not at all."""
    from vcr.request import Request
    from vcr.serialize import serialize

    cassette = {
        "requests": [Request("POST", f"{HOST}/chat/completions", json.dumps(body), {}) for body in asked],
        "responses": [
            {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": json.dumps(body)}}
            for body in answered
        ],
    }
    new = path.with_suffix(".new")
    path.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(serialize(cassette, Json(notes)), encoding="utf-8", newline="\n")
    new.replace(path)


def key_of(question: dict[str, Any]) -> str:
    """A request's body, whatever the order of its fields; the name of the model is left out."""
    return json.dumps(
        {name: value for name, value in question.items() if name not in ("model", "stream")}, sort_keys=True
    )


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what says nothing about it: ids, times, versions, bytes of tokens."""
    answer = {name: answer[name] for name in _KEPT if name in answer}
    for choice in answer.get("choices", []):
        for token in (choice.get("logprobs") or {}).get("content") or []:
            for one in (token, *token.get("top_logprobs", [])):
                one.pop("bytes", None), one.pop("id", None)
                one["logprob"] = round(one["logprob"], 4)
    return answer


class Replay(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """An HTTP transport that answers from recordings, and lets a live model answer the rest.

    Args:
        recordings: what is answered from.
        live: gives the address of a live model's server, such as "http://127.0.0.1:8080/v1", and what to call the
            model; asked only when it is needed. None: what is not recorded is an error.
    """

    def __init__(self, recordings: Recordings | Recorder, live: Callable[[], tuple[str, str]] | None) -> None:
        self._recordings, self._live = recordings, live
        self._client: httpx.Client | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        question = json.loads(request.read())
        answer = self._recordings.find(question)
        return _response(request, answer) if answer else self._answered(request, question)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        import asyncio

        question = json.loads(await request.aread())
        answer = self._recordings.find(question)
        # The local model answers one at a time, so a thread each costs nothing.
        return _response(request, answer) if answer else await asyncio.to_thread(self._answered, request, question)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _answered(self, request: httpx.Request, question: dict[str, Any]) -> httpx.Response:
        try:
            return self._ask_live(request, question)
        except (RuntimeError, ValueError) as error:
            raise _handed_on(error) from error

    def _ask_live(self, request: httpx.Request, question: dict[str, Any]) -> httpx.Response:
        if self._live is None:
            raise NotRecordedError(
                f"nothing is recorded for {_last_words(question)!r}, and no live model may be asked here "
                "(CHUNKLAB_LIVE=0): unset that, or run `python -m chunklab record` for this lesson"
            )
        address, name = self._live()
        # No proxy of the environment stands before a server on this machine.
        self._client = self._client or httpx.Client(timeout=None, trust_env=False)
        timeout = httpx.Timeout(**request.extensions.get("timeout", {"timeout": 600}))
        try:
            answer = self._client.post(f"{address}/chat/completions", json=question, timeout=timeout)
        except httpx.TimeoutException as error:
            raise ServerError(
                f"{name}: no answer in {timeout.read} seconds to {_last_words(question)!r}: ask for a shorter one, "
                "with max_tokens, or close what else keeps the processor busy"
            ) from error
        except httpx.TransportError as error:
            raise ServerError(
                f"{name}: its server does not answer any more ({type(error).__name__}: {error}): restart the kernel"
            ) from error
        return _response(request, {**answer.json(), "model": name}) if answer.is_success else _refused(request, answer)


def _handed_on(error: Exception) -> Exception:
    """The error as one that OpenAI's client hands on: any other it takes for a lost connection, and says only that."""
    from openai import OpenAIError

    ours = (k for k in type(error).__mro__ if k.__module__.startswith("chunklab.") or k in (RuntimeError, ValueError))
    kind = next(ours)
    return type(kind.__name__, (kind, OpenAIError), {"__module__": kind.__module__})(str(error))


class Recorder(Replay):
    """A transport that asks a server, and keeps what it answers: at once, so that a fault loses nothing.

    Args:
        path: the recording to be. Until `finish`, its replies stand beside it, in a file that ends in .partial; one
            that is there already, of the same model, is gone on with. What another recording of that folder and model
            answers is replayed, and not kept twice.
        address: of the server's OpenAI-compatible interface.
        notes: "model", the name to ask for (written without its folder, where it is a file), and what else a reader
            should know.
        key: the server's key, which is written nowhere.
    """

    def __init__(self, path: Path, address: str, notes: dict[str, Any], key: str = "none") -> None:
        super().__init__(self, None)
        self._path, self._address, self._key = path.with_suffix(".partial"), address, key
        self._model, self._notes = notes["model"], {**notes, "model": plain_name(notes["model"])}
        self._used: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._before: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._lock = threading.Lock()
        if self._path.exists():
            self._before = self._of_same_model(self._path)
        others = [other for other in sorted(path.parent.glob("*.json")) if other != path]
        self._elsewhere = {key: a for other in others for key, (_, a) in self._of_same_model(other).items()}

    def _of_same_model(self, path: Path) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """What a recording holds, if the same model wrote it."""
        asked, answered, notes = load(path)
        same = all(notes.get(name) == self._notes.get(name) for name in ("model", "sha256"))
        return {key_of(q): (q, a) for q, a in zip(asked, answered, strict=True)} if same else {}

    def find(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """The reply that is there already, or None."""
        with self._lock:
            key = key_of(question)
            if key in self._elsewhere:
                return self._elsewhere[key]
            if key not in self._used and key in self._before:
                self._keep(key, self._before[key])
            return self._used[key][1] if key in self._used else None

    def _ask_live(self, request: httpx.Request, question: dict[str, Any]) -> httpx.Response:
        self._client = self._client or httpx.Client(timeout=None, headers={"authorization": f"Bearer {self._key}"})
        asked = {**question, "model": self._model}
        reply = self._client.post(f"{self._address.rstrip('/')}/chat/completions", json=asked)
        if not reply.is_success:
            return _refused(request, reply)
        answer = {**bare(reply.json()), "model": self._notes["model"]}
        if not answer.get("choices"):
            raise ValueError(f"the server gave no answer, and said: {reply.text:.300}")
        with self._lock:
            self._keep(key_of(question), ({name: value for name, value in question.items() if name != "model"}, answer))
        return _response(request, answer)

    def _keep(self, key: str, pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
        used = {**self._used, key: pair}
        rest = [pair for key, pair in self._before.items() if key not in used]
        asked, answered = zip(*used.values(), *rest, strict=True)
        try:
            save(self._path, list(asked), list(answered), {**self._notes, "used": len(used)})
        except OSError as error:
            raise NotKeptError(
                f"{self._path.name} could not be written ({error}): make room for it, and run the same again"
            ) from error
        self._used = used


def finish(path: Path) -> int:
    """Make the recording of what the last run asked; gives the number of replies."""
    part = path.with_suffix(".partial")
    asked, answered, notes = load(part)
    used = notes.pop("used")
    save(path, asked[:used], answered[:used], notes)
    part.unlink()
    return used


def _last_words(question: dict[str, Any]) -> str:
    messages = question.get("messages") or [question]
    return str(messages[-1].get("content"))[-80:]


def _refused(request: httpx.Request, reply: httpx.Response) -> httpx.Response:
    """What a server said that did not answer, without what else its headers tell."""
    names = ("content-type", "retry-after")
    headers = {name: reply.headers[name] for name in names if name in reply.headers}
    return httpx.Response(reply.status_code, content=reply.content, headers=headers, request=request)


def _response(request: httpx.Request, answer: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"id": "", "created": 0, "object": "chat.completion", **answer}, request=request)
