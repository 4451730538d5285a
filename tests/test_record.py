"""Recording a lesson: kept at once, gone on with after a fault, and without a secret."""

import hashlib
import json
import shutil
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import build
import pytest
from langchain_openai import ChatOpenAI
from test_llm import answered

from chunklab import __main__ as cli
from chunklab import record as module
from chunklab.models.recordings import Recorder, Recordings, finish, load

NOTES = {"model": "tiny", "sha256": "1" * 64, "date": "2000-01-01"}
LESSON = '''# %% [markdown]
# # A lesson that asks
#
# **Minutes:** 1 · **Before:** nothing

# %%
from chunklab.models.llm import chat, written_by
for words in ("One?", "Two?", "One?"):
    reply = chat().invoke(words)
    print(reply.content, written_by(reply))
'''


@pytest.fixture
def server():
    """An OpenAI-compatible server that counts; it fails from the call on that `server.fails_from` names."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            serving.seen.append((body, self.headers["authorization"]))
            status = 500 if len(serving.seen) >= serving.fails_from else 200
            words = body["messages"][-1]["content"]
            data = json.dumps(answered(f"To {words}") if status == 200 else {"error": {"message": "gone"}}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving.seen, serving.fails_from = [], 10**9
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
    assert "secret" not in text and "127.0.0.1" not in text and "model\": \"local" not in text


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
    with pytest.raises(ValueError, match="lesson='07': must be one of 05"):
        module.record("07", server.address, "tiny")
    assert cli.main(["record", "07", "--base-url", server.address, "--model", "tiny"]) == 1
    assert "lesson 07 could not be recorded" in capsys.readouterr().err
