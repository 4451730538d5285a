"""Recording a lesson: kept at once, gone on with after a fault, and without a secret."""

import hashlib
import json
import os
import shutil
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import build
import pytest
from langchain_openai import ChatOpenAI
from test_llm import answered

from chunklab import LLMChunker, LLMError, chat
from chunklab import __main__ as cli
from chunklab import record as module
from chunklab.chunkers import asking
from chunklab.counting import counted
from chunklab.models.recordings import Recorder, Recordings, finish, load

NOTES = {"model": "tiny", "sha256": "1" * 64, "date": "2000-01-01"}
LESSON = """# %% [markdown]
# # A lesson that asks
#
# **Minutes:** 1 · **Before:** nothing

# %%
from chunklab.models.llm import chat, written_by
for words in ("One?", "Two?", "One?"):
    reply = chat().invoke(words)
    print(reply.content, written_by(reply))
"""


@pytest.fixture
def server():
    """An OpenAI-compatible server that counts; it fails from the call on that `server.fails_from` names."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            serving.seen.append((body, self.headers["authorization"]))
            status = serving.status if len(serving.seen) >= serving.fails_from else 200
            words = body["messages"][-1]["content"]
            answer = answered(f"To {words}") if serving.body is None else serving.body
            data = json.dumps(answer if status == 200 else {"error": {"message": "gone"}}).encode()
            self.send_response(status)
            if status == 429:
                self.send_header("retry-after", "7")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.seen, serving.fails_from, serving.status, serving.body = [], 10**9, 500, None
    serving.address = f"http://127.0.0.1:{serving.server_port}/v1"
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield serving
    serving.shutdown()
    serving.server_close()


def model_of(recorder):
    import httpx

    client = httpx.Client(transport=recorder)
    return ChatOpenAI(model="local", api_key="none", base_url="http://model/v1", http_client=client, max_retries=0)


def test_what_was_answered_is_kept_after_a_fault_and_paid_for_once(server, tmp_path):
    path, server.fails_from = tmp_path / "05.json", 3
    model = model_of(Recorder(path, server.address, NOTES, "a-secret-key"))
    assert [model.invoke(words).content for words in ("A?", "B?", "A?")] == ["To A?", "To B?", "To A?"]
    with pytest.raises(Exception, match="gone"):
        model.invoke("C?")
    assert not path.exists() and len(server.seen) == 3
    server.fails_from = 10**9
    again = model_of(Recorder(path, server.address, NOTES, "a-secret-key"))
    assert [again.invoke(words).content for words in ("A?", "C?")] == ["To A?", "To C?"]
    assert len(server.seen) == 4 and {body["model"] for body, _ in server.seen} == {"tiny"}
    assert {key for _, key in server.seen} == {"Bearer a-secret-key"}
    assert finish(path) == 2 and not path.with_suffix(".partial").exists()
    asked, answers, notes = load(path)
    assert [q["messages"][-1]["content"] for q in asked] == ["A?", "C?"] and notes == NOTES
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text and "127.0.0.1" not in text and 'model": "local' not in text


def test_what_another_lesson_has_of_the_same_model_is_not_asked_again(server, tmp_path):
    model_of(Recorder(tmp_path / "05.json", server.address, NOTES)).invoke("A?")
    finish(tmp_path / "05.json")
    path = tmp_path / "09.json"
    model = model_of(Recorder(path, server.address, NOTES))
    assert [model.invoke(words).content for words in ("A?", "B?")] == ["To A?", "To B?"]
    assert len(server.seen) == 2 and finish(path) == 1, "kept once, in the lesson that asked first"
    both = Recordings(tmp_path)
    assert len(both.answers) == 2
    model_of(Recorder(tmp_path / "10.json", server.address, {**NOTES, "sha256": "2" * 64})).invoke("A?")
    assert len(server.seen) == 3, "another file is another model"


@pytest.mark.parametrize("name", ["/srv/models/tiny.gguf", "D:\\models\\tiny.gguf", "org/tiny.gguf"])
def test_a_model_that_is_called_by_its_file_is_named_without_the_folder(server, tmp_path, name):
    path, notes = tmp_path / "05.json", {**NOTES, "model": name}
    for _ in range(2):
        model_of(Recorder(path, server.address, notes)).invoke("A?")
    assert [body["model"] for body, _ in server.seen] == [name], "asked for by its whole name, and gone on with"
    finish(path)
    text = path.read_text(encoding="utf-8")
    assert "ann" not in text and load(path)[2]["model"] == ("org/tiny.gguf" if name.startswith("org") else "tiny.gguf")


def test_what_cannot_be_written_is_said_and_never_left_out(server, tmp_path, monkeypatch):
    path = tmp_path / "05.json"
    chunker = LLMChunker(model_of(Recorder(path, server.address, NOTES)))
    monkeypatch.setattr(asking, "sleep", pytest.fail)

    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_text", full)
        with pytest.raises(LLMError, match="NotKeptError: 05.partial could not be written.*No space left"):
            chunker.chunk("One. Two. Three.")
    assert len(server.seen) == 1 and not path.with_suffix(".partial").exists()
    model_of(Recorder(path, server.address, NOTES)).invoke("A?")
    assert finish(path) == 1


@pytest.mark.parametrize("body", [{}, {"error": {"message": "overloaded"}}, {"choices": []}])
def test_what_is_no_answer_is_not_recorded(server, tmp_path, body):
    path, server.body = tmp_path / "05.json", body
    with pytest.raises(ValueError, match="the server gave no answer, and said: "):
        model_of(Recorder(path, server.address, NOTES)).invoke("A?")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_busy_is_waited_for_as_long_as_it_says(server, tmp_path, monkeypatch):
    waited, server.fails_from, server.status = [], 1, 429

    def wait(seconds):
        waited.append(seconds)
        server.fails_from = 10**9

    monkeypatch.setattr(asking, "sleep", wait)
    with pytest.warns(UserWarning, match="no JSON"):
        LLMChunker(model_of(Recorder(tmp_path / "05.json", server.address, NOTES))).chunk("One. Two. Three.")
    assert waited == [7.0]


def test_a_damaged_file_beside_the_recording_is_named(tmp_path):
    (tmp_path / "05.partial").write_text('{"interactions": [', encoding="utf-8")
    with pytest.raises(ValueError, match="05.partial is not a recording .*: delete it"):
        Recorder(tmp_path / "05.json", "http://x/v1", NOTES)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lesson": "5"}, "lesson='5': must be one of "), ({"lesson": ""}, "lesson=''"), ({"model": " "}, "model=' ': must name the model"),
        ({"base_url": "127.0.0.1:1/v1"}, "base_url='127.0.0.1:1/v1': no server answers there"), ({"base_url": ""}, "base_url=''"), ({"base_url": "http://[/v1"}, "base_url="),
        ({"base_url": "http://127.0.0.1:1/v1"}, "base_url='http://127.0.0.1:1/v1': no server answers there"), ({"file": "gone.gguf"}, "gone.gguf"),
    ],
    ids=str,
)  # fmt: skip
def test_recording_says_what_is_missing_before_it_runs_anything(server, change, says, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    given = {"lesson": "00", "base_url": server.address, "model": "tiny", **change}
    options = [
        word
        for name in ("base_url", "model", "file")
        if name in given
        for word in (f"--{name.replace('_', '-')}", given[name])
    ]
    assert cli.main(["record", given["lesson"], *options]) == 1
    said = capsys.readouterr().err
    assert (
        says in said and "could not be recorded" in said and "Traceback" not in said and list(tmp_path.iterdir()) == []
    )


def test_another_model_begins_anew(server, tmp_path):
    path = tmp_path / "05.json"
    model_of(Recorder(path, server.address, NOTES)).invoke("A?")
    model_of(Recorder(path, server.address, {**NOTES, "sha256": "2" * 64})).invoke("A?")
    assert len(server.seen) == 2


def test_a_lesson_is_recorded_and_then_replayed(server, tmp_path, monkeypatch, capsys):
    notebooks, folder = tmp_path / "notebooks", tmp_path / "recordings"
    (notebooks / "source").mkdir(parents=True)
    shutil.copy(build.__file__, notebooks / "build.py")
    (notebooks / "source" / "05_asks.py").write_text(LESSON, encoding="utf-8")
    monkeypatch.setattr(module, "NOTEBOOKS", notebooks)
    file = tmp_path / "model.gguf"
    file.write_bytes(b"weights")
    path = module.record("05", server.address, "tiny", file, folder)
    assert path == folder / "05_asks.json" and len(server.seen) == 2
    recordings = Recordings(folder)
    assert len(recordings.answers) == 2
    assert recordings.notes["05_asks"] == {
        "model": "tiny",
        "sha256": hashlib.sha256(b"weights").hexdigest(),
        "date": date.today().isoformat(),
    }
    server.seen.clear()
    server.fails_from = 2
    with pytest.raises(RuntimeError, match=r"gone[\s\S]*What was answered until then is kept") as caught:
        module.record("05", server.address, "other", file, folder)
    assert "\x1b" not in str(caught.value)
    assert len(server.seen) == 2 and "CHUNKLAB_RECORD" not in os.environ
    server.fails_from = 10**9
    module.record("05", server.address, "other", file, folder)
    assert len(server.seen) == 3 and len(Recordings(folder).answers) == 2
    with pytest.raises(ValueError, match="lesson='07': must be one of 05"):
        module.record("07", server.address, "tiny")
    assert cli.main(["record", "07", "--base-url", server.address, "--model", "tiny"]) == 1
    assert "lesson 07 could not be recorded" in capsys.readouterr().err


@pytest.mark.parametrize(("temperature", "asked"), [(0.0, 2), (0.7, 4)])
def test_the_same_question_to_a_server_is_paid_for_once_where_the_answer_is_the_same(
    server, monkeypatch, temperature, asked
):
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    model = chat(temperature=temperature)
    with counted() as count:
        replies = [model.invoke(words).content for words in ("One?", "One?", "Two?", "One?")]
    assert replies == ["To One?", "To One?", "To Two?", "To One?"] and len(server.seen) == asked and count.llm == 4
