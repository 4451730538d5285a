"""The chat model: who is asked, what is replayed, what a fault says. The live model itself runs in one test."""

import asyncio
import json

import httpx
import pytest
from langchain_core.messages import AIMessage

from chunklab.counting import counted
from chunklab.models import llm, local_server, recordings
from chunklab.models.llm import chat, written_by
from chunklab.models.recordings import NotRecordedError, Recordings, Replay, bare, save

NOTES = {"model": "Tiny-1B", "sha256": "0" * 64, "date": "2000-01-01"}


def asked(words, **more):
    return {"messages": [{"role": "user", "content": words}], "temperature": 0.0, "max_completion_tokens": 1024, "seed": llm.SEED, **more}


def answered(words, model="Tiny-1B"):
    message = {"role": "assistant", "content": words}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return {"object": "chat.completion", "model": model, "usage": usage, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    save(tmp_path / "05.json", [asked("One?"), asked("Two?", n=1)], [answered("First."), answered("Second. ü")], NOTES)
    monkeypatch.setattr(llm, "FOLDER", tmp_path)
    monkeypatch.setenv("CHUNKLAB_LIVE", "0")
    llm._recordings.cache_clear()
    yield tmp_path
    llm._recordings.cache_clear()


def test_what_is_recorded_is_replayed_and_says_so(folder):
    reply = chat().invoke("One?")
    assert reply.content == "First." and written_by(reply) == "Tiny-1B, replayed"
    assert asyncio.run(chat().ainvoke("One?")).content == "First."
    assert reply.usage_metadata["input_tokens"] == 5
    assert [r.content for r in chat().batch(["One?"] * 20)] == ["First."] * 20


@pytest.mark.parametrize("words", ["One? ", "one?", "Three?", ""])
def test_other_words_are_another_request(folder, words):
    with pytest.raises(Exception) as caught:
        chat().invoke(words)
    assert "nothing is recorded" in chain(caught.value) and "python -m chunklab record" in chain(caught.value)


def test_other_settings_are_another_request_but_another_address_and_name_are_not(folder):
    with pytest.raises(Exception, match="."):
        chat(temperature=0.5).invoke("One?")
    assert chat(model="some-other-name").invoke("One?").content == "First."


def chain(error):
    found = []
    while error is not None:
        found.append(str(error))
        error = error.__cause__ or error.__context__
    return " | ".join(found)


def test_a_recording_is_readable_small_and_without_secrets(folder):
    text = (folder / "05.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert {name: content[name] for name in NOTES} == NOTES and "Second. ü" in text
    assert content["interactions"][0] == {"asked": asked("One?"), "answered": answered("First.")}
    for word in ("http", "localhost", "127.0", "uthorization", "api_key", "Bearer"):
        assert word not in text


def test_an_answer_is_kept_without_ids_times_and_bytes():
    token = {"token": "a", "logprob": -0.123456, "bytes": [97], "id": 3, "top_logprobs": [{"token": "b", "logprob": -1.0, "bytes": [98]}]}
    answer = {**answered("x"), "id": "chatcmpl-1", "created": 1, "timings": {}, "system_fingerprint": "b1"}
    answer["choices"][0]["logprobs"] = {"content": [token]}
    kept = bare(answer)
    assert set(kept) == {"choices", "usage", "model", "object"}
    assert kept["choices"][0]["logprobs"]["content"] == [{"token": "a", "logprob": -0.1235, "top_logprobs": [{"token": "b", "logprob": -1.0}]}]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"interactions": 3}', '{"interactions": [{}]}', "not json"], ids=repr)
def test_a_file_that_is_no_recording_is_named(tmp_path, text):
    (tmp_path / "07.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="07.json is not a recording"):
        Recordings(tmp_path)


def test_what_is_not_recorded_is_asked_of_the_live_model(tmp_path, monkeypatch):
    seen = []

    def serve(request):
        seen.append((str(request.url), json.loads(request.content)))
        return httpx.Response(200, json={**answered("Live."), "id": "x"})

    replay = Replay(Recordings(tmp_path), lambda: ("http://127.0.0.1:9/v1", "Small, live"))
    replay._client = httpx.Client(transport=httpx.MockTransport(serve))
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="local", api_key="none", base_url="http://model/v1", http_client=httpx.Client(transport=replay))
    reply = model.invoke("New?")
    assert reply.content == "Live." and written_by(reply) == "Small, live"
    assert seen[0][0] == "http://127.0.0.1:9/v1/chat/completions" and seen[0][1]["messages"][0]["content"] == "New?"


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_refusal_of_the_live_model_reaches_the_caller(tmp_path, status):
    from langchain_openai import ChatOpenAI

    replay = Replay(Recordings(tmp_path), lambda: ("http://127.0.0.1:9/v1", "Small, live"))
    error = {"error": {"message": "the request exceeds the available context size", "type": "x", "code": status}}
    replay._client = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(status, json=error)))
    model = ChatOpenAI(model="local", api_key="none", base_url="http://model/v1", max_retries=0, http_client=httpx.Client(transport=replay))
    with pytest.raises(Exception, match="context size"):
        model.invoke("New?")


@pytest.mark.parametrize(
    ("environ", "model", "base"),
    [
        ({"OPENAI_API_KEY": "a-key"}, "gpt-4o-mini", None),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "gpt-4o-mini", "http://127.0.0.1:1/v1"),
        ({"OPENAI_API_KEY": "a-key", "OPENAI_MODEL": "other"}, "other", None),
    ],
)
def test_with_a_key_or_an_address_it_is_that_server(monkeypatch, environ, model, base):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = chat()
    assert found.model_name == model and found.openai_api_base == base
    assert "a-key" not in repr(found)


def test_calls_tokens_and_price_are_counted(folder):
    with counted() as count:
        chat().batch(["One?", "One?"])
        with counted() as inner:
            chat().invoke("One?")
    assert (inner.llm, inner.tokens_in, inner.tokens_out) == (1, 5, 2)
    assert count.llm == 2 and count.price(1e6, 2e6) == 2 * 5 + 2 * 2 * 2
    chat().invoke("One?")
    assert written_by(AIMessage("x")) == "an unnamed model"


def test_a_server_that_does_not_start_says_what_to_do(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(local_server.ServerError, match="did not start.*broken.gguf"):
        local_server.start(broken)


def test_the_local_model_answers_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(llm, "FOLDER", tmp_path)
    monkeypatch.setenv("CHUNKLAB_LIVE", "1")
    llm._recordings.cache_clear()
    try:
        reply = chat().invoke("Name a colour.", max_tokens=4)
        assert written_by(reply) == "SmolLM2-135M-Instruct, live on this machine" and reply.content.strip()
        schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}
        assert set(json.loads(chat().invoke("How many legs has a cat?", max_tokens=20, response_format=schema).content)) == {"n"}
    finally:
        llm._recordings.cache_clear()
