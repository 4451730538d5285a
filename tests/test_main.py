"""The command line: what it checks, what it tells JupyterLab, and that it really opens lesson 00."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from chunklab import __main__ as cli


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
cli.ROOT, cli.fetch, cli.check_course = Path(sys.argv[1]), lambda: None, lambda: None
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
