"""A corpus on many workers: the chunks of one process, whatever is killed, changed or unreadable on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import regex
from files import make_docx, make_pdf, p
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import chunklab.ray_session
import chunklab.scale
from chunklab import (
    ChunkIndex,
    RecursiveChunker,
    SplitterChain,
    chunk_corpus,
    corpus_worker,
    embeddings,
    index_from_parquet,
    read_chunks,
    read_document,
    start_ray,
)
from chunklab.chunk import Chunk
from chunklab.chunk_table import CHUNKS, Part, chunk_rows, parts_in, recipe_of, without, write_part

ray = pytest.importorskip("ray")


class Noted(Embeddings):
    """A model that writes down how many texts it embeds; it fails at one word, and kills its process once."""

    name = "noted"

    def __init__(self, folder, fails_at=None, dies=False):
        self.key = "noted"
        self.folder, self.fails_at, self.dies = Path(folder), fails_at, dies

    def embed_documents(self, texts):
        if self.fails_at and any(self.fails_at in text for text in texts):
            raise ValueError("the model is out of order")
        if self.dies and any(self.folder.iterdir()):  # not the first call: some are done
            die_once(self.folder / "actor died")
        (self.folder / f"{os.getpid()} {time.monotonic_ns()}").write_text(str(len(texts)), encoding="utf-8")
        return [[float(len(text)), 1.0, float(text.count("e"))] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]

    def texts(self):
        return sum(int(file.read_text(encoding="utf-8")) for file in self.folder.iterdir() if file.suffix == "")

    def forget(self):
        for file in self.folder.iterdir():
            file.unlink()


class Dying(RecursiveChunker):
    """A chunker that kills its process once, in the middle."""

    def __init__(self, folder, size):
        super().__init__(size)
        self.folder = Path(folder)

    def spans(self, text):
        if "chapter 17" in text:
            die_once(self.folder / "task died")
        return super().spans(text)


def die_once(mark):
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def running():
    """One Ray for all tests, as starting it takes seconds."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers know nothing of the folder of tests
    start_ray(2)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Files of every kind, with names and contents of every kind, three that cannot be read, and two that are equal."""
    folder = tmp_path_factory.mktemp("notes")
    (folder / "deep" / "deeper").mkdir(parents=True)
    story = "\n\n".join(f"Part {n}. The bell rang {n} times over the harbour, and nobody came." for n in range(30))
    (folder / "story.txt").write_text(story, encoding="utf-8")
    (folder / "deep" / "twin.txt").write_text(story, encoding="utf-8")
    (folder / "deep" / "deeper" / "page.md").write_text(f"# Tides\n\n{story[:900]}", encoding="utf-8")
    (folder / "word.docx").write_bytes(make_docx(p("A letter about tides.") + p("It is short.")))
    (folder / "page.html").write_text("<h2>Bells</h2><p>Low.<p>High.", encoding="utf-8")
    (folder / "tides.pdf").write_bytes(make_pdf("A page about tides.\nIt is short."))
    (folder / "surrogates.txt").write_bytes(b"half a pair: \xed\xa0\x80, and on. " * 20)
    (folder / "nul.txt").write_bytes("a NUL \0 in the middle, and ä\n".encode() * 20)
    (folder / "a 'quoted', \"strange\"; näme\t[1] #2.txt").write_text("Strange names are names.", encoding="utf-8")
    if sys.platform == "linux":
        (folder / os.fsdecode(b"no utf-8 \xff.txt")).write_text("Its name is no text.", encoding="utf-8")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    (folder / "empty.txt").touch()
    return folder


UNREAD = {"broken.pdf", "empty.txt"}


def one_by_one(folder, chunker):
    """The chunks as one process gives them: (chunks by document, documents that cannot be read)."""
    chunks, unread = [], set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        try:
            chunks += chunker.chunk(read_document(path.relative_to(folder), base=folder).text, name)
        except ValueError:
            unread.add(name)
    return sorted(chunks, key=lambda chunk: chunk.document), unread


@pytest.fixture(scope="module")
def first(running, notes, tmp_path_factory):
    """A first run: what it gave, its folder, and its model."""
    output = tmp_path_factory.mktemp("first") / "table"
    model = Noted(tmp_path_factory.mktemp("asked"))
    paths = [notes, str(notes / "missing.txt")]
    return chunk_corpus(paths, RecursiveChunker(200), model, output), output, model


def copied(first, tmp_path):
    _, output, model = first
    shutil.copytree(output, tmp_path / "table")
    model.forget()
    return tmp_path / "table", model


# The result.


def test_the_chunks_are_those_of_one_process(first, notes):
    run, output, model = first
    expected, unread = one_by_one(notes, RecursiveChunker(200))
    assert unread == UNREAD
    assert read_chunks(output) == expected and len(expected) == run.chunks > 40
    assert run.documents == run.new == len({chunk.document for chunk in expected}) and not run.kept and not run.removed
    assert run.seconds["all"] > 0 and set(run.seconds) == {"all", "reading", "cutting", "embedding", "writing"}
    assert model.texts() == len(expected)
    assert not list(output.rglob("*.tmp")) and {path.name for path in output.iterdir()} - {".lock"} == {
        "chunks",
        "errors.parquet",
    }


def test_anything_that_reads_parquet_reads_the_table(first, notes):
    run, output, _ = first
    table = pq.read_table(output / CHUNKS)
    names = ["id", "parent", "document", "index", "total", "start", "end", "text", "metadata", "vector"]
    assert table.column_names == names and table.schema.field("vector").type == pa.list_(pa.float32(), 3)
    row = table.filter(pa.compute.equal(table["document"], "story.txt")).to_pylist()[0]
    text = (notes / "story.txt").read_text(encoding="utf-8")
    assert row["text"] == text[row["start"] : row["end"]] and json.loads(row["metadata"]) == {}
    assert np.linalg.norm(row["vector"]) == pytest.approx(1)


def test_an_index_has_the_vectors_that_were_written(first, tmp_path):
    _, output, model = first
    model.forget()
    index = index_from_parquet(output, model)
    assert not model.texts()
    direct = ChunkIndex(read_chunks(output), model)
    assert index.chunks == direct.chunks and np.array_equal(index.vectors, direct.vectors) and index.model == "noted"
    with pytest.raises(ValueError, match="have vectors of noted; search them with the model"):
        index_from_parquet(output, embeddings("static"))
    with pytest.raises(FileNotFoundError, match="chunk_corpus has written none there"):
        read_chunks(tmp_path)
    with pytest.raises(ValueError, match="output=3: must be"):
        read_chunks(3)


def test_what_cannot_be_read_is_a_row_in_the_table_of_errors(first):
    run, output, _ = first
    errors = {row["document"]: row["error"] for row in pq.read_table(output / "errors.parquet").to_pylist()}
    assert set(errors) == UNREAD | {"missing.txt"} and run.errors == 3
    assert errors["empty.txt"] == "is empty" and errors["missing.txt"] == "is missing: there is no such file"


# Another run.


def test_a_second_run_has_nothing_to_do_and_does_not_start_ray(first, notes, tmp_path, monkeypatch):
    output, model = copied(first, tmp_path)

    def row(file):  # what could not be read is tried again
        assert file.document in UNREAD
        times = dict.fromkeys(("reading", "cutting", "embedding", "writing"), 0.0)
        return {"document": file.document, "path": "", "sha256": None, "error": "is so", **times}

    monkeypatch.setattr(chunklab.scale, "_done", lambda files, *rest: map(row, files))
    before = {path: path.stat().st_mtime_ns for path in (output / CHUNKS).iterdir()}
    run = chunk_corpus(notes, RecursiveChunker(200), model, output)
    assert (run.new, run.kept, run.removed, run.errors) == (0, run.documents, 0, 2) and not model.texts()
    assert {path: path.stat().st_mtime_ns for path in (output / CHUNKS).iterdir()} == before


def test_only_what_is_new_or_changed_is_done_and_what_is_gone_is_removed(first, notes, tmp_path, monkeypatch):
    output, model = copied(first, tmp_path)
    folder = tmp_path / "notes"
    shutil.copytree(notes, folder)
    os.utime(folder / "word.docx")  # a new date is no change
    (folder / "story.txt").write_text("The bell is gone.", encoding="utf-8")
    (folder / "broken.pdf").write_bytes(make_pdf("It can be read now."))
    (folder / "new.txt").write_text("Rain falls on the harbour.", encoding="utf-8")
    (folder / "deep" / "twin.txt").unlink()
    (folder / "nul.txt").write_bytes(b"")  # and so cannot be read any more
    monkeypatch.setattr(chunklab.scale, "HASHED_HERE", -1)  # as in a corpus so large that the workers compare
    run = chunk_corpus(folder, RecursiveChunker(200), model, output)
    expected, unread = one_by_one(folder, RecursiveChunker(200))
    assert read_chunks(output) == expected and unread == {"empty.txt", "nul.txt"}
    assert (run.new, run.removed, run.errors, run.documents) == (3, 2, 2, run.kept + 3)
    assert run.chunks == len(expected) and model.texts() == 3


def test_killed_workers_lose_nothing_and_double_nothing(running, tmp_path):
    folder, marks = tmp_path / "book", tmp_path / "marks"
    folder.mkdir(), marks.mkdir()
    for n in range(40):
        text = f"This is chapter {n}.\n\n" + "A sentence of some length, about the sea. " * 40
        (folder / f"{n}.txt").write_text(text, encoding="utf-8")
    chain = SplitterChain([Dying(marks, 600), RecursiveChunker(150)])
    asked = tmp_path / "asked"
    asked.mkdir()
    run = chunk_corpus(folder, chain, Noted(asked, dies=True), tmp_path / "table")
    assert (marks / "task died").exists() and (asked / "actor died").exists()
    expected, _ = one_by_one(folder, SplitterChain([RecursiveChunker(600), RecursiveChunker(150)]))
    chunks = read_chunks(tmp_path / "table")
    assert chunks == expected and run.chunks == len(chunks) and any(chunk.parent_id for chunk in chunks)
    assert not list((tmp_path / "table").rglob("*.tmp")) and not run.errors


class Deadly(RecursiveChunker):
    """A chunker that never survives one word, as a fault in a library may kill the process."""

    def spans(self, text):
        if "poison" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().spans(text)


def test_a_document_that_kills_each_worker_is_an_error_like_others(running, tmp_path):
    for name, text in {"a": "The bell.", "b": "There is poison in it.", "c": "Low water."}.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    run = chunk_corpus(tmp_path, Deadly(200), None, tmp_path / "table")
    assert [chunk.document for chunk in read_chunks(tmp_path / "table")] == ["a.txt", "c.txt"] and run.new == 2
    (row,) = pq.read_table(tmp_path / "table" / "errors.parquet").to_pylist()
    assert row["document"] == "b.txt" and row["error"] == "RuntimeError: 3 workers have died while they read or cut it"


def test_it_is_known_at_which_document_workers_died(tmp_path):
    def tries():
        return corpus_worker.Tries(tmp_path, ["a", "b"], "cut")

    assert not tries().deaths
    (tmp_path / tries()._path.name).write_text("0\n1\n0\n0\n1\n", encoding="utf-8")
    assert tries().deaths == {1: 2, 0: 1}
    with tries() as one:
        one.begin(0)
        assert tries().deaths == {1: 2, 0: 2}
    assert not list(tmp_path.iterdir())
    (tmp_path / corpus_worker.Tries(tmp_path, ["a"], "embed")._path.name).write_text("0\n0\n0\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="3 workers have died while they embedded a and more"):
        corpus_worker.Writer(None, str(tmp_path), "now")(pa.table({"document": ["a"]}))


def test_a_run_that_breaks_off_is_gone_on_with(running, tmp_path):
    folder, asked = tmp_path / "notes", tmp_path / "asked"
    folder.mkdir(), asked.mkdir()
    for n in range(30):
        (folder / f"{n:02}.txt").write_text(f"Note {n}. " + "It is long. " * 100, encoding="utf-8")
    (folder / "99.txt").write_text("There is a spanner in this one. " * 40, encoding="utf-8")
    with pytest.raises(Exception, match="the model is out of order") as held:
        chunk_corpus(folder, RecursiveChunker(200), Noted(asked, fails_at="spanner"), tmp_path / "table")
    end = time.monotonic() + 120  # though the error is held, the actors that it came from are not
    while held.value and ray.available_resources().get("CPU", 0) < 2:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert read_chunks(tmp_path / "table") == [] and len(parts_in(tmp_path / "table" / "unfinished")) > 1
    model = Noted(asked)
    before = model.texts()
    run = chunk_corpus(folder, RecursiveChunker(200), model, tmp_path / "table")
    assert read_chunks(tmp_path / "table") == one_by_one(folder, RecursiveChunker(200))[0]
    assert run.kept > 0 and 0 < model.texts() - before < run.chunks


def test_documents_without_a_chunk_are_done_once(running, tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    for name in "abc":
        (tmp_path / "notes" / f"{name}.txt").write_text(f"The bell. {name}", encoding="utf-8")
    chunker = Picky(200)
    assert chunk_corpus(tmp_path / "notes", chunker, None, tmp_path / "table").new == 3
    assert [chunk.document for chunk in read_chunks(tmp_path / "table")] == ["b.txt"]
    with monkeypatch.context() as patched:
        patched.setattr(chunklab.scale, "_done", None)
        run = chunk_corpus(tmp_path / "notes", chunker, None, tmp_path / "table")
        (tmp_path / "notes" / "a.txt").unlink()
        less = chunk_corpus(tmp_path / "notes", chunker, None, tmp_path / "table")
    assert (run.new, run.kept, run.documents, run.errors) == (0, 3, 3, 0) and (less.kept, less.removed) == (2, 1)
    assert [chunk.document for chunk in read_chunks(tmp_path / "table")] == ["b.txt"]


class Picky(RecursiveChunker):
    """A chunker that gives chunks of some texts only."""

    def spans(self, text):
        return super().spans(text) if text.endswith("b") else []


def test_what_a_worker_gathers_is_passed_on_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_worker, "_HELD", 1000)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("The bell. " * 60, encoding="utf-8")
    files = [chunklab.scale._File(path.name, path, tmp_path, 600) for path in sorted(tmp_path.iterdir())]
    group = pa.concat_tables(chunklab.scale._groups(files, {}, 1))
    tables = list(corpus_worker.cut_files(group, RecursiveChunker(100), tmp_path))
    assert [table["document"].to_pylist() for table in tables] == [["a.txt", "b.txt"], ["c.txt"]]


def test_blank_chunks_have_vectors_of_the_model_s_length(tmp_path):
    vectors = [corpus_worker._vectors(embeddings("static"), texts) for texts in ([" "], [" ", "bell"])]
    assert [one.shape for one in vectors] == [(1, 256), (2, 256)] and not vectors[1][0].any() and vectors[1][1].any()


class FakeRay:
    """Ray, as far as it is started and ended."""

    on = False

    def is_initialized(self):
        return self.on

    def shutdown(self):
        self.on = False


def test_of_several_runs_at_once_the_last_ends_ray(monkeypatch):
    fake = FakeRay()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(chunklab.ray_session, "start_ray", lambda: setattr(fake, "on", True))
    monkeypatch.setattr(chunklab.ray_session, "_quietly", lambda ray: nullcontext())
    first, second = chunklab.ray_session.running(fake), chunklab.ray_session.running(fake)
    first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    assert fake.on
    second.__exit__(None, None, None)
    assert not fake.on
    fake.on = True  # started by somebody else, and so left
    with chunklab.ray_session.running(fake):
        pass
    assert fake.on


QUIET = """
import sys, time
from chunklab import RecursiveChunker, chunk_corpus, read_chunks
assert "ray" not in sys.modules
run = chunk_corpus(sys.argv[1], RecursiveChunker(200), None, sys.argv[2])
import ray
assert run.documents == 2 and run.new == 2 and len(read_chunks(sys.argv[2])) == run.chunks and not ray.is_initialized()
"""


def test_ray_is_started_without_a_word_and_ended(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in "ab":
        (tmp_path / "notes" / f"{name}.txt").write_text("The bell is old. " * 50, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    environment["CHUNKLAB_MARK"] = mark = str(tmp_path)
    command = [sys.executable, "-c", QUIET, str(tmp_path / "notes"), str(tmp_path / "table")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if sys.platform == "linux":
        end = time.monotonic() + 30
        while left := [pid for pid in os.listdir("/proc") if pid.isdigit() and _has(pid, mark)]:
            assert time.monotonic() < end, left
            time.sleep(0.2)


def _has(pid, mark):
    """Whether a process that is no zombie was started with the mark in its environment."""
    try:
        return f"CHUNKLAB_MARK={mark}".encode() in Path("/proc", pid, "environ").read_bytes()
    except OSError:
        return False


# What is refused.


class Held:
    """A length function that no other process can have."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, text):
        return len(text)


HELD = Held()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"paths": []}, r"paths=\[\]: must be a file or a folder"),
        ({"paths": 3}, "paths=3: must be a file or a folder"),
        ({"paths": ["notes", None]}, "must be a file or a folder, or a list of these"),
        ({"paths": [""]}, "paths: one of the files has an empty name"),
        ({"paths": "nowhere"}, "paths='nowhere': no file there that can be read"),
        ({"paths": "with\0nul.txt"}, "no file there that can be read"),
        ({"chunker": RecursiveChunker}, "must be a Chunker, as"),
        ({"chunker": RecursiveChunker(9, length_function=HELD)}, "chunker=.*: cannot be sent to other processes"),
        ({"embeddings": "static"}, "embeddings='static': must have embed_documents"),
        ({"output": 3}, "output=3: must be the path of a folder"),
        ({"output": ""}, "output='': must be the path of a folder"),
        ({"output": "no utf-8 \udcff"}, "output=.*: must be the path of a folder, which may be new, in UTF-8"),
        ({"output": "with\0nul"}, "output=.*: must be the path of a folder"),
        ({"output": __file__}, "must be the path of a folder, which may be new"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(changed, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("notes").mkdir()
    Path("notes/a.txt").write_text("The bell.", encoding="utf-8")
    arguments = {"paths": "notes", "chunker": RecursiveChunker(9), "embeddings": None, "output": "table"} | changed
    with pytest.raises(ValueError, match=message):
        chunk_corpus(**arguments)
    assert not Path("table").exists()


def test_an_empty_folder_is_refused_and_what_was_done_before_stands(first, tmp_path, capsys):
    output, model = copied(first, tmp_path)
    (tmp_path / "unmounted").mkdir()
    before = read_chunks(output)
    with pytest.raises(ValueError, match="no file there that can be read"):
        chunk_corpus(tmp_path / "unmounted", RecursiveChunker(200), model, output)
    assert read_chunks(output) == before and "no file in it ends in" in capsys.readouterr().err


def test_two_runs_do_not_write_to_one_place(notes, tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".lock"), pytest.raises(RuntimeError, match="another run is writing there"):
        chunk_corpus(notes, RecursiveChunker(200), None, tmp_path)


def test_without_ray_it_says_what_to_install(notes, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "ray\[data\]"'):
        chunk_corpus(notes, RecursiveChunker(200), None, tmp_path / "table")
    with pytest.raises(ValueError, match="cores=0: must be a whole number of 1 or more"):
        start_ray(0)


# On disk.


def rows(*names):
    return chunk_rows([Chunk(f"text of {name}", 0, 9, name, f"{name}_0") for name in names])


def test_whatever_stopped_a_run_the_next_has_each_document_once(tmp_path):
    result, unfinished = tmp_path / CHUNKS, tmp_path / "unfinished"
    result.mkdir(), unfinished.mkdir()
    write_part(result, rows("a", "b"), None, "now", None, {"a": "1", "b": "1"})
    write_part(result, rows("c"), None, "another recipe", None, {"c": "1"})
    write_part(unfinished, rows("b", "d"), None, "now", None, {"b": "2", "d": "1"})
    write_part(unfinished, rows("a", "e"), None, "now", None, {"a": "1", "e": "1"})  # and "a" is there already
    (result / f"part-{32 * '0'}.parquet").write_bytes(b"PAR1 and then the power failed")
    for folder, name in ((result, "of somebody else.txt"), (result, "part-0.parquet.tmp"), (unfinished, "draft.md")):
        (folder / name).touch()
    chunklab.scale._settle(tmp_path, "now", {"a": "1", "b": "2", "d": "1", "e": "1"})
    assert [chunk.document for chunk in read_chunks(tmp_path)] == ["a", "b", "d", "e"]
    assert sorted(name for part in parts_in(result) for name in part.documents) == ["a", "b", "d", "e"]
    assert (result / "of somebody else.txt").exists() and (result / "part-0.parquet.tmp").exists()
    assert [path.name for path in unfinished.iterdir()] == ["draft.md"]  # the rest is removed
    with pytest.raises(RuntimeError, match="chunks of 1 documents are gone, as of 'f'"):
        chunklab.scale._settle(tmp_path, "now", {"f": "1"})
    assert len(read_chunks(tmp_path)) == 4
    chunklab.scale._settle(tmp_path, "now", {})
    assert read_chunks(tmp_path) == []


def test_vectors_of_two_lengths_are_no_result(tmp_path):
    result, unfinished = tmp_path / CHUNKS, tmp_path / "unfinished"
    result.mkdir(), unfinished.mkdir()
    for folder, name, size in ((result, "a", 2), (unfinished, "b", 3)):
        write_part(folder, rows(name), np.ones((1, size), dtype=np.float32), "now", "model", {name: "1"})
    with pytest.raises(ValueError, match="embeddings: vectors of 2 numbers and of 3 do not go together"):
        chunklab.scale._settle(tmp_path, "now", {"a": "1", "b": "1"})
    assert [chunk.document for chunk in read_chunks(tmp_path)] == ["a"] and not unfinished.exists()


def test_a_part_that_is_written_twice_is_there_once(tmp_path):
    vectors = np.ones((2, 4), dtype=np.float32)
    names = {write_part(tmp_path, rows("a", "b"), vectors, "now", "model", {"a": "1", "b": "2"}) for _ in range(2)}
    assert len(names) == len(list(tmp_path.iterdir())) == 1
    (part,) = parts_in(tmp_path)
    assert part == Part(tmp_path / names.pop(), 2, "now", "model", {"a": "1", "b": "2"}, 4)
    other = without(part, ["b"], tmp_path)
    assert pq.read_table(tmp_path / other)["document"].to_pylist() == ["b"]


def test_what_a_row_cannot_hold_is_an_error():
    assert chunk_rows([]).type == rows("a").type and chunk_rows([Chunk("a\0b", 0, 3)])[0]["text"].as_py() == "a\0b"
    with pytest.raises(ValueError, match="surrogates not allowed"):
        chunk_rows([Chunk("\ud800", 0, 1)])
    for value in (object(), float("nan")):
        with pytest.raises(ValueError, match="metadata cannot be written as JSON"):
            chunk_rows([Chunk("a", 0, 1, metadata={"when": value})])


# What made the chunks.


def in_a_notebook(source, name):
    """What a cell that holds this source defines, without its place in a file."""
    defined = {"__name__": "__main__", "RecursiveChunker": RecursiveChunker, "Embeddings": Embeddings}
    exec(source, defined)
    return defined[name]


MEASURE = """
shortest = {}
def helper(text):
    return len(text) + {}
def measure(text):
    return helper(text) * shortest
"""
OWN = """
class Own(RecursiveChunker):
    def spans(self, text):
        return [(0, {})]
"""


def test_another_chunker_model_or_code_is_another_recipe():
    static = embeddings("static")
    chunkers = [
        RecursiveChunker(200),
        RecursiveChunker(201),
        RecursiveChunker(200, separators=["\n", ""]),
        SplitterChain([RecursiveChunker(200)]),
        Dying("x", 200),
        *(in_a_notebook(OWN.format(n), "Own")(200) for n in (1, 2)),
        *(RecursiveChunker(200, length_function=in_a_notebook(MEASURE.format(*n), "measure")) for n in NUMBERS),
    ]
    recipes = [recipe_of(chunker, None) for chunker in chunkers]
    recipes += [recipe_of(RecursiveChunker(200), model) for model in (static, Noted("x"))]
    assert len(set(recipes)) == len(recipes) == 12
    assert recipe_of(RecursiveChunker(200), embeddings("static")) == recipes[-2]
    again = in_a_notebook("# a comment, and\n\n" + MEASURE.format(*NUMBERS[0]), "measure")
    assert recipe_of(RecursiveChunker(200, length_function=again), None) == recipes[7]


NUMBERS = [(1, 0), (1, 1), (2, 0)]


class Has(RecursiveChunker):
    """A chunker with a setting of any kind."""

    def __init__(self, setting):
        super().__init__(9)
        self.setting = setting


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Path("a"), Path("b")),
        (np.float32(1), np.float32(2)),
        (np.array([1]), np.array([2])),
        (regex.compile("a"), regex.compile("b")),
        (range(3), range(4)),
        ("a".count, "b".count),
        (signal.SIGINT, signal.SIGTERM),
        (Tokenizer(WordLevel({"a": 0}, "a")), Tokenizer(WordLevel({"b": 0}, "b"))),
        (DeterministicFakeEmbedding(size=2), DeterministicFakeEmbedding(size=3)),
    ],
)
def test_a_setting_of_any_kind_counts(before, after):
    assert recipe_of(Has(before), None) != recipe_of(Has(after), None)
    again = ray.cloudpickle.loads(ray.cloudpickle.dumps(before))
    assert recipe_of(Has(before), None) == recipe_of(Has(again), None)
    if isinstance(before, Embeddings):
        assert recipe_of(Has(0), before) != recipe_of(Has(0), after)


@pytest.mark.parametrize(
    ("where", "counts"),
    [
        ("marks = [{}]\nclass Own(RecursiveChunker):\n def spans(self, text): return marks", True),
        ("class Own(RecursiveChunker):\n marks = [{}]", True),
        ("class Own(RecursiveChunker):\n @staticmethod\n def size(): return {}", True),
        ("class Own(RecursiveChunker):\n @property\n def size(self): return {}", True),
        ("from functools import cache\n@cache\ndef f(): return {}\nclass Own(RecursiveChunker):\n size = f", True),
        ("text = {}\nclass Own(RecursiveChunker):\n def spans(self, document): return document.text", False),
    ],
)
def test_what_a_notebook_s_own_chunker_uses_counts(where, counts):
    first, other = (recipe_of(in_a_notebook(where.format(n), "Own")(9), None) for n in (1, 2))
    assert (first != other) is counts


def test_a_model_of_one_s_own_counts_as_a_chunker_does():
    def model(number, setting):
        code = f"class Own(Embeddings):\n def embed_documents(self, texts): return [[{number}]]\n embed_query = None"
        made = in_a_notebook(code, "Own")()
        made.setting = setting
        return made

    assert len({recipe_of(Has(0), model(*changed)) for changed in ((1, 0), (2, 0), (1, 1), (1, 0))}) == 3


def test_a_recipe_is_the_same_in_every_process():
    code = """if True:
        from chunklab import HeadingChunker, RecursiveChunker, SplitterChain, embeddings
        from chunklab.chunk_table import recipe_of
        measure = lambda text: len(text) if text in {"a", "b", "c"} else len(text)
        chain = SplitterChain([HeadingChunker(), RecursiveChunker(9, length_function=measure)])
        print(recipe_of(chain, embeddings("static")))
    """
    found = set()
    for seed in "12":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        found.add(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment).stdout)
    assert len(found) == 1


def test_importing_the_package_does_not_import_ray_or_arrow():
    code = "import chunklab, sys; assert not {'ray', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
