"""The command line: what it checks, what it tells JupyterLab, and that it really opens lesson 00."""

import csv
import io
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import chunklab
from chunklab import __main__ as cli
from chunklab import chunk_files


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_a_python_of_the_course_is_right(version):
    cli.check_python(version)


@pytest.mark.parametrize("version", [(3, 9), (3, 10), (3, 14), (4, 0)])
def test_a_wrong_python_is_an_error_that_says_what_to_do(version):
    with pytest.raises(cli.Problem, match=r"this is Python \d\.\d+, and the course needs 3.11 to 3.13. Make the"):
        cli.check_python(version)


def test_missing_lessons_are_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(cli.Problem, match="00_start_here.ipynb is not beside the package"):
        cli.check_course(tmp_path)


def test_a_missing_jupyterlab_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / cli.FIRST).touch()
    cli.check_course(tmp_path)
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    with pytest.raises(cli.Problem, match="JupyterLab is not installed in this environment. Activate"):
        cli.check_course(tmp_path)


def test_a_problem_goes_to_stderr_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(cli, "check_python", lambda: (_ for _ in ()).throw(cli.Problem("no")))
    assert cli.main(["models"]) == 1
    assert capsys.readouterr().err == "chunklab: no\n"


@pytest.mark.parametrize("error", [OSError("no network"), ValueError("a wrong hash"), RuntimeError("pip failed")])
def test_weights_that_cannot_be_fetched_are_an_error_without_a_traceback(monkeypatch, capsys, error):
    from chunklab.models import weights

    def fail():
        raise error

    monkeypatch.setattr(weights, "fetch", fail)
    assert cli.main(["models"]) == 1
    assert capsys.readouterr().err == f"chunklab: the lessons' weights could not be fetched: {error}\n"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "lesson", "8.5", ""])
def test_a_wrong_port_is_an_error(port, capsys):
    with pytest.raises(SystemExit):
        cli.main(["open", f"--port={port}"])
    assert "must be a whole number from 1 to 65535" in capsys.readouterr().err


def test_jupyterlab_is_told_only_what_it_needs():
    plain = cli.lab_arguments(None, root_user=False, browser=True)
    assert not [argument for argument in plain if re.match("--(port|allow-root|no-browser)", argument)]
    assert "--allow-root" in cli.lab_arguments(None, root_user=True, browser=True)
    assert "--no-browser" in cli.lab_arguments(None, root_user=False, browser=False)
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in plain, "nothing is asked of the network"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there, a graphical browser is always at hand")
def test_without_a_screen_there_is_no_browser(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert not cli.has_browser()


OPEN = """
import sys
from pathlib import Path
from chunklab import __main__ as cli
cli.ROOT, cli.fetch_models, cli.check_course = Path(sys.argv[1]), lambda: None, lambda: None
cli.main(["open", "--port", sys.argv[2]])
"""


def read(address):
    """A page of a server that has just said that it starts, and may not listen yet."""
    for _ in range(60):
        try:
            with urllib.request.urlopen(address, timeout=30) as page:
                return page.read()
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.5)
    raise AssertionError(f"{address} does not answer")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal to stop a server with")
def test_open_serves_lesson_00_and_prints_its_address_without_a_browser(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / cli.FIRST).write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    alone = {name: value for name, value in os.environ.items() if name not in screens}
    alone |= {f"JUPYTER_{kind}_DIR": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-c", OPEN, str(tmp_path), str(port)]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=alone, text=True, **streams) as server:
        try:
            address = next(m.group(0) for line in server.stdout if (m := re.search(r"http://127\S+token=\S+", line)))
            assert f":{port}/lab/tree/{cli.FIRST}?token=" in address
            assert b"JupyterLab" in read(address)
        finally:
            server.send_signal(signal.SIGTERM)


# Cutting files.


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """A folder of files, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    files = {
        "a.txt": "One two three. Four five six.\n",
        "sub/a.txt": "Another one. With the same name.\n",
        "b.md": "# Bells\n\nThey ring.\n\n## Low\n\nIt is low.\n",
        "tide.py": "class Tide:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n",
        "wide.txt": "Größe 漢字 👩‍🔬 → done.\n",
        "image.png": "no text",
        ".secret.txt": "hidden",
        ".hidden/c.txt": "hidden too",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def rows(out):
    return [json.loads(line) for line in out.split("\n")[:-1]]


def chunk(capsys, *arguments, code=0):
    assert cli.main(["chunk", *arguments]) == code
    return capsys.readouterr()


def test_a_line_of_json_is_a_chunk(notes, capsys):
    out = chunk(capsys, "notes/a.txt", "--method", "sentence", "--size", "16", "--format", "jsonl").out
    both = {"document": "notes/a.txt", "total": 2, "metadata": {}}
    assert rows(out) == [
        {"text": "One two three.", "start": 0, "end": 14, "id": "notes/a.txt_0", "index": 0, **both},
        {"text": "Four five six.", "start": 15, "end": 29, "id": "notes/a.txt_1", "index": 1, **both},
    ]


def test_a_folder_stands_for_its_files_and_ids_are_unique(notes, capsys):
    got = chunk(capsys, "notes", "--format", "jsonl")
    names = ["notes/a.txt", "notes/b.md", "notes/tide.py", "notes/wide.txt", "notes/sub/a.txt"]
    assert list(dict.fromkeys(row["document"] for row in rows(got.out))) == names and got.err == ""
    assert len({row["id"] for row in rows(got.out)}) == len(rows(got.out))


def test_a_file_that_is_meant_twice_is_cut_once(notes, capsys):
    given = ["notes/a.txt", "./notes/a.txt", str(notes / "a.txt"), "notes", "notes/*.txt", "notes/**/*.txt"]
    documents = {row["document"] for row in rows(chunk(capsys, *given, "--format", "jsonl").out)}
    assert sorted(documents) == ["notes/a.txt", "notes/b.md", "notes/sub/a.txt", "notes/tide.py", "notes/wide.txt"]


def test_a_pattern_is_for_files_and_a_name_with_a_bracket_for_itself(notes, capsys):
    (notes / "x[1].txt").write_text("Bracket.", encoding="utf-8")
    assert [row["document"] for row in rows(chunk(capsys, "notes/*.md", "--format", "jsonl").out)] == ["notes/b.md"]
    assert [row["text"] for row in rows(chunk(capsys, "notes/x[1].txt", "--format", "jsonl").out)] == ["Bracket."]


@pytest.mark.parametrize("method", chunk_files.METHODS)
def test_every_method_cuts(notes, capsys, method):
    out = chunk(capsys, "notes/tide.py", "--method", method, "--size", "20", "--format", "jsonl").out
    text = (notes / "tide.py").read_text(encoding="utf-8")
    assert all(row["text"].endswith(text[row["start"] : row["end"]]) for row in rows(out)) and len(rows(out)) >= 1
    assert chunk(capsys, "notes/tide.py", "--method", method).out.startswith("--- notes/tide.py_0 [0:")


@pytest.mark.parametrize("method", chunk_files.METHODS)
@pytest.mark.parametrize("size", ["1", "5", "9" * 18])
def test_every_method_takes_every_size_alone(notes, capsys, method, size):
    out = chunk(capsys, "notes/tide.py", "--method", method, "--size", size, "--format", "jsonl").out
    whole = size == "9" * 18 and method != "semantic"  # which cuts where the meaning changes, however much would fit
    assert len(rows(out)) == 1 if whole else len(rows(out)) >= 1


def test_size_and_overlap_reach_the_chunker(notes, capsys):
    out = chunk(capsys, "notes/a.txt", "--method", "fixed", "--size", "10", "--overlap", "4", "--format", "jsonl").out
    assert [(row["start"], row["end"]) for row in rows(out)] == [(0, 10), (6, 16), (12, 22), (18, 28), (24, 30)]
    out = chunk(capsys, "notes/b.md", "--method", "heading", "--size", "4", "--format", "jsonl").out
    assert [row["metadata"]["path"] for row in rows(out)] == [["Bells"], ["Bells", "Low"]]


def test_code_is_cut_by_the_ending_of_its_name(notes, capsys):
    (notes / "bell.js").write_text("function ring() {\n  return 1;\n}\n", encoding="utf-8")
    out = chunk(capsys, "notes", "--method", "code", "--size", "50", "--format", "jsonl").out
    assert [row["document"] for row in rows(out)] == ["notes/bell.js", "notes/tide.py", "notes/tide.py"]
    assert rows(out)[2]["metadata"] == {"context": ["class Tide:"]} and rows(out)[2]["text"].startswith("    def two")
    got = chunk(capsys, "notes/a.txt", "notes/bell.js", "--method", "code", "--format", "jsonl", code=1)
    assert got.err == "chunklab: notes/a.txt: is no source code that --method code can cut: .py .js\n"
    assert len(rows(got.out)) == 1


def test_text_is_to_be_read(notes, capsys):
    out = chunk(capsys, "notes/a.txt", "--method", "sentence", "--size", "16").out
    assert out == "--- notes/a.txt_0 [0:14]\nOne two three.\n\n--- notes/a.txt_1 [15:29]\nFour five six.\n\n"


def test_csv_is_safe_and_the_same_in_a_file_and_on_standard_output(notes, capsys):
    (notes / "formula.txt").write_text('=HYPERLINK("x"), "quoted"\nsecond line', encoding="utf-8")
    out = chunk(capsys, "notes/formula.txt", "notes/wide.txt", "--format", "csv").out
    table = list(csv.reader(io.StringIO(out, newline="")))
    assert table[0] == ["document", "id", "path", "text", "start", "end", "words"]
    assert table[1][3] == '\'=HYPERLINK("x"), "quoted"\nsecond line' and table[2][3] == "Größe 漢字 👩‍🔬 → done."
    chunk(capsys, "notes/formula.txt", "notes/wide.txt", "--format", "csv", "--output", "chunks.csv")
    assert Path("chunks.csv").read_bytes() == b"\xef\xbb\xbf" + out.encode()


def test_an_output_is_written_whole_and_never_read(notes, capsys):
    for _ in range(2):
        assert chunk(capsys, "notes", "--format", "jsonl", "--output", "notes/chunks.txt").out == ""
        found = {row["document"] for row in rows((notes / "chunks.txt").read_text(encoding="utf-8"))}
        assert len(found) == 5 and "notes/chunks.txt" not in found
    before = (notes / "a.txt").read_bytes()
    got = chunk(capsys, "notes/a.txt", "--output", "notes/a.txt", code=1)
    assert "notes/a.txt is to be read, and to be written" in got.err and (notes / "a.txt").read_bytes() == before
    got = chunk(capsys, "notes/a.txt", "--output", "missing/folder/chunks.txt", code=1)
    assert got.err.startswith("chunklab: ") and "chunks.txt cannot be written: No such file" in got.err
    assert [path.name for path in notes.iterdir() if "part" in path.name] == []


@pytest.mark.parametrize(("name", "form"), [("c.csv", "csv"), ("c.JSONL", "jsonl"), ("c.txt", "text"), ("c", "text")])
def test_the_format_is_what_the_ending_of_the_output_says(notes, capsys, name, form):
    chunk(capsys, "notes/a.txt", "--output", name)
    chunk(capsys, "notes/a.txt", "--output", "asked", "--format", form)
    assert Path(name).read_bytes() == Path("asked").read_bytes()
    chunk(capsys, "notes/a.txt", "--output", "asked.csv", "--format", "jsonl")
    assert len(rows(Path("asked.csv").read_text(encoding="utf-8"))) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
@pytest.mark.parametrize("form", ["csv", "jsonl", "text"])
def test_a_device_or_pipe_is_written_to_and_never_replaced(notes, capsys, form):
    os.mkfifo("pipe")
    with ThreadPoolExecutor() as pool:
        read = pool.submit(Path("pipe").read_bytes)
        chunk(capsys, "notes/a.txt", "--format", form, "--output", "pipe")
        assert b"One two three." in read.result(timeout=30)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets few users make links")
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_output_that_is_a_link_stays_one(notes, capsys, form):
    Path("real").write_text("old", encoding="utf-8")
    Path("link").symlink_to("real")
    chunk(capsys, "notes/a.txt", "--format", form, "--output", "link")
    assert Path("link").is_symlink() and "One two three." in Path("real").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("output", ["notes", "", "."])
def test_an_output_that_is_a_folder_is_refused_before_any_work(notes, capsys, monkeypatch, form, output):
    monkeypatch.setattr(chunk_files, "cut", lambda *_: pytest.fail("it was cut"))
    got = chunk(capsys, "notes", "--format", form, "--output", output, code=1)
    assert re.fullmatch(r"chunklab: --output \S+ is a folder: give the name of a file\n", got.err)


@pytest.mark.parametrize("name", ["", "a" * 5000, "\0"])
def test_a_name_that_no_file_has_is_an_error_without_a_traceback(notes, capsys, name):
    got = chunk(capsys, name, code=1)
    assert got.err.startswith("chunklab: ") and got.out == ""
    assert ("empty name" in got.err) == (name == "")
    if name != "\0":
        assert chunk(capsys, "notes/a.txt", "--output", name, code=1).err.startswith("chunklab: ")


def test_whatever_happens_to_one_file_the_others_go_on(notes, capsys, monkeypatch):
    def chunked(self, text, name):
        if name.endswith("b.md"):
            raise RecursionError("too deep")
        return real(self, text, name)

    real = chunklab.RecursiveChunker.chunk
    monkeypatch.setattr(chunklab.RecursiveChunker, "chunk", chunked)
    got = chunk(capsys, "notes", "--format", "jsonl", "--output", "c.jsonl", code=1)
    assert got.err == "chunklab: notes/b.md: RecursionError: too deep\n"
    assert len({row["document"] for row in rows(Path("c.jsonl").read_text(encoding="utf-8"))}) == 4


def test_a_folder_that_cannot_be_opened_is_reported(notes, capsys, monkeypatch):
    def scandir(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    real = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    got = chunk(capsys, "notes", "--format", "jsonl", code=1)
    assert "sub: cannot be opened (Permission denied)" in got.err and len(rows(got.out)) >= 4


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_interrupt_leaves_no_half_a_file_and_no_traceback(notes, capsys, monkeypatch, form):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    Path("old").write_text("old", encoding="utf-8")
    monkeypatch.setattr(chunklab, "read_document", interrupted)
    got = chunk(capsys, "notes", "--format", form, "--output", "old", code=130)
    assert got.err == "chunklab: stopped\n"
    assert Path("old").read_text(encoding="utf-8") == "old" and list(Path().glob("*.part")) == []


def test_a_closed_standard_output_is_an_error_without_a_traceback(notes, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)  # as Python sets it
    for form in ("csv", "jsonl", "text"):
        assert cli.main(["chunk", "notes/a.txt", "--format", form]) == 1
    monkeypatch.undo()
    assert capsys.readouterr().err == 3 * "chunklab: standard output is closed: give --output\n"


def test_what_cannot_be_read_is_reported_and_the_others_go_on(notes, capsys):
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    (notes / "empty.txt").touch()
    got = chunk(capsys, "nope.txt", "notes", "*.nope", "notes/image.png", "--format", "jsonl", code=1)
    assert len({row["document"] for row in rows(got.out)}) == 5
    errors = got.err.splitlines()
    assert all(line.startswith("chunklab: ") for line in errors) and len(errors) == 5, got.err
    assert "nope.txt: is missing" in got.err and "*.nope: no file is named so" in got.err
    assert "empty.txt: is empty" in got.err and "image.png: is of a type" in got.err and "broken.pdf: " in got.err


def test_a_folder_without_files_is_reported(notes, capsys):
    Path("bare").mkdir()
    assert "bare: no file in it ends in .txt .text .md" in chunk(capsys, "bare", code=1).err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets few users make links")
def test_a_link_in_a_folder_is_not_followed_out_of_it(notes, capsys):
    outside = notes.parent / "outside.txt"
    outside.write_text("Not in the folder.", encoding="utf-8")
    (notes / "link.txt").symlink_to(outside)
    (notes / "loop").symlink_to(notes)
    got = chunk(capsys, "notes", "--format", "jsonl", code=1)
    assert "link.txt" in got.err and "outside" in got.err and "Not in the folder." not in got.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--method", "best"], r"invalid choice: 'best' \(choose from '?fixed'?, '?sliding'?, "),
        (["--format", "xml"], r"invalid choice: 'xml' \(choose from '?csv'?, "),
        *[(["--size", size], f"--size: '{size}': must be a whole number of 1 or more") for size in ("0", "ten", "1.5", "²")],
        (["--overlap", "-1"], "argument --overlap: '-1': must be a whole number of 0 or more|expected one argument"),
        (["--size", "10", "--overlap", "10"], "--overlap=10: must be a whole number from 0 to less than --size=10"),
        (["--method", "sliding", "--size", "9", "--overlap", "9"], "--overlap=9: must be .* less than --size=9"),
        (["--method", "code", "--overlap", "5"], "--overlap: --method code has none; these have: fixed, sliding"),
        (["--method", "heading", "--overlap", "5"], "--overlap: --method heading has none"),
    ],
)  # fmt: skip
def test_wrong_options_are_errors_before_any_file_is_read(notes, capsys, arguments, says):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["chunk", "nope.txt", *arguments])
    assert stopped.value.code == 2 and re.search(says, capsys.readouterr().err)


def test_a_folder_gives_all_that_can_be_read():
    from chunklab import documents

    assert set(chunk_files.ENDINGS) == set(documents._FORMATS)


def run(notes, *arguments, **more):
    command = [sys.executable, "-m", "chunklab", "chunk", *arguments]
    path = os.pathsep.join([str(cli.ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **more.pop("environment", {})}
    return subprocess.run(command, cwd=notes.parent, env=environment, stdout=subprocess.PIPE, **more)


def test_output_is_utf_8_whatever_the_console_is_and_line_ends_stay(notes):
    (notes / "crlf.txt").write_bytes("é one\r\ntwo\u2028three\n".encode())
    strange = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = run(notes, "notes/wide.txt", "notes/crlf.txt", "--format", "jsonl", environment=strange)
    assert done.returncode == 0 and b"\r" not in done.stdout
    lines = done.stdout.decode("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["Größe 漢字 👩‍🔬 → done.", "é one\r\ntwo\u2028three"]
    assert "é one\r\ntwo".encode() in run(notes, "notes/crlf.txt", environment=strange).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes on Windows")
def test_a_reader_that_has_enough_is_no_error_to_read_about(notes):
    (notes / "long.txt").write_text("word " * 200_000, encoding="utf-8")
    command = f'"{sys.executable}" -m chunklab chunk notes/long.txt --size 50 | head -n 1'
    environment = {**os.environ, "PYTHONPATH": str(cli.ROOT)}
    done = subprocess.run(command, shell=True, cwd=notes.parent, env=environment, capture_output=True, text=True)
    assert done.stdout == "--- notes/long.txt_0 [0:49]\n" and done.stderr == ""


def test_a_progress_bar_only_on_a_terminal_and_for_many_files(notes, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for given, shown in ((["notes"], True), (["notes/a.txt"], False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        assert cli.main(["chunk", *given, "--format", "jsonl", "--output", "chunks.jsonl"]) == 0
        assert ("file/s" in terminal.getvalue()) == shown
    monkeypatch.undo()
    monkeypatch.chdir(notes.parent)
    assert chunk(capsys, "notes", "--output", "chunks.jsonl").err == ""


# Your own documents.


@pytest.fixture
def bells(tmp_path, monkeypatch):
    """A folder with text enough to choose by, which is in the working folder; and no language model."""
    monkeypatch.chdir(tmp_path)
    Path("bells").mkdir()
    (Path("bells") / "novella.txt").write_text(chunklab.load_corpus()["the_bell_that_waited.txt"], encoding="utf-8")
    return Path("bells")


def test_recommend_writes_a_report_and_says_where(bells, capsys):
    (bells / "broken.pdf").write_bytes(b"%PDF-1.7 broken")
    assert cli.main(["recommend", "bells", "--questions", "0", "--output", "out.html"]) == 1, "a file was not read"
    got = capsys.readouterr()
    assert got.out.startswith("Recommended: ") and "known-item queries" in got.out
    assert got.out.endswith("Report: out.html\nQuestions: out.questions.jsonl\n")
    assert got.err.count("broken.pdf: ") == 1 and "Traceback" not in got.err
    assert Path("out.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope"], "nothing there can be read"),
        ([""], "must be a file or a folder"),
        (["bells/novella.txt", "--output", "bells"], "must end in .html"),
        (["bells/novella.txt", "--output", "no/such/r.html"], "in a folder that is there"),
        (["bells/short.txt"], "are too little to choose by"),
    ],
)
def test_what_recommend_cannot_do_is_an_error_without_a_traceback(bells, capsys, arguments, says):
    (bells / "short.txt").write_text("The bell is old.", encoding="utf-8")
    assert cli.main(["recommend", *arguments]) == 1
    got = capsys.readouterr()
    assert says in got.err and got.err.splitlines()[-1].startswith("chunklab: ") and got.out == ""


@pytest.mark.parametrize("option", ["--questions=-1", "--questions=ten", "--seconds=-1", "--better=best"])
def test_a_wrong_option_of_recommend_is_an_error(bells, capsys, option):
    with pytest.raises(SystemExit):
        cli.main(["recommend", "bells", option])
    assert option.partition("=")[0] in capsys.readouterr().err
