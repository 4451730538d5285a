"""The chat model of the course: OpenAI's or your own server's where there is a key, else recordings and a local model.

Every lesson asks `chat()` for its model and gets a LangChain chat model, so that another can stand in its place. With
OPENAI_API_KEY, or OPENAI_BASE_URL for any server that speaks OpenAI's language, it is that. Without, replies come from
`data/recordings`, real ones of the model that each names, and what was never asked is answered by SmolLM2 on this
machine. `written_by` says which it was. Cost: a replayed reply takes a millisecond, a local one seconds, one with a key
money.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunklab.models.names import plain_name
from chunklab.models.recordings import FOLDER, Recorder, Recordings, Replay
from chunklab.models.weights import once

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

REPLAYED = ", replayed"
LIVE = ", live on this machine"
OPENAI = "https://api.openai.com/v1"
SEED, MAX_TOKENS = 7, 1024
"""What every request of `chat` asks for, unless told otherwise; a recording is found by these too."""
TIMEOUT = 300


def chat(
    model: str | None = None, temperature: float = 0.0, max_tokens: int = MAX_TOKENS, timeout: float = TIMEOUT
) -> BaseChatModel:
    """The course's chat model.

    With OPENAI_API_KEY or OPENAI_BASE_URL in the environment it is OpenAI's or that server's, and the key stays there.
    Else it replays recordings, and lets SmolLM2 answer the rest on this machine (unless CHUNKLAB_LIVE=0).

    Args:
        model: which model to ask a server for; by default what OPENAI_MODEL names, else gpt-4o-mini.
        temperature: 0 for the likeliest words, up to 2.
        max_tokens: the longest answer.
        timeout: seconds that an answer may take.

    Returns:
        A LangChain `ChatOpenAI`. A server that is busy is asked once more. At temperature 0 it keeps its answers: what
        is asked again is not paid for again.
    """
    from langchain_core.caches import InMemoryCache
    from langchain_openai import ChatOpenAI

    key, address = _setting("OPENAI_API_KEY"), _setting("OPENAI_BASE_URL") or _setting("OPENAI_API_BASE")
    settings: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens, "seed": SEED}
    settings |= {"timeout": timeout, "max_retries": 1, "cache": None if temperature else InMemoryCache()}
    settings["api_key"] = key or "none"
    if key or address:
        name = model or _setting("OPENAI_MODEL") or "gpt-4o-mini"
        # OpenAI's client would take a blank variable for an address, so that it is never left to look for itself.
        return ChatOpenAI(model=name, base_url=address or OPENAI, **settings)
    import httpx

    if order := os.environ.get("CHUNKLAB_RECORD"):
        replay: Replay = _recorder(order)
    else:
        replay = Replay(_recordings(), _live if os.environ.get("CHUNKLAB_LIVE", "1") != "0" else None)
    settings["http_client"] = httpx.Client(transport=replay)
    settings["http_async_client"] = httpx.AsyncClient(transport=replay)
    # Nothing is sent anywhere: the transport answers, whatever the address, and what it refuses it refuses again. It
    # answers in one piece, and knows no proxy.
    settings |= {"max_retries": 0, "disable_streaming": True, "openai_proxy": None}
    return ChatOpenAI(model=model or "local", base_url="http://model/v1", **settings)


def written_by(reply: BaseMessage) -> str:
    """Which model wrote a reply, and whether it was replayed.

    Args:
        reply: what `chat().invoke(…)` gives.

    Returns:
        Such as "Qwen2.5-Coder-1.5B-Instruct, replayed" or "SmolLM2-135M-Instruct, live on this machine".
    """
    return plain_name(str(reply.response_metadata.get("model_name") or "an unnamed model"))


def _setting(name: str) -> str:
    """A variable of the environment; "" where it is blank, without the line end that a key brings from a file."""
    return os.environ.get(name, "").strip()


@once
def _recordings() -> Recordings:
    recordings = Recordings(FOLDER)
    for answer in recordings.answers.values():
        answer["model"] = f"{answer['model']}{REPLAYED}"
    return recordings


@once
def _recorder(order: str) -> Recorder:
    """What `python -m chunklab record` asks for, in the lesson's own process."""
    settings = json.loads(order)
    path, address = Path(settings.pop("path")), settings.pop("address")
    return Recorder(path, address, settings, _setting("CHUNKLAB_RECORD_KEY") or "none")


def _live() -> tuple[str, str]:
    from chunklab.models.local_server import NAME, local_server

    return local_server(), f"{NAME}{LIVE}"
