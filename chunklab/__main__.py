"""The command line: `open` opens the course, `models` fetches its weights, `chunk` cuts files, `record` asks an LLM.

It serves a learner on the first day: all that is needed is fetched, JupyterLab opens at lesson 00, and what is missing
is said in words that tell what to do. Fetching costs a download of some tens of megabytes, once. And it serves whoever
has a folder of files to cut: `python -m chunklab chunk notes/ --method heading --format csv --output chunks.csv`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import chunklab

ROOT = Path(__file__).resolve().parents[1]
FIRST = "notebooks/00_start_here.ipynb"
PYTHONS = ((3, 11), (3, 13))
INSTALL = "pip install -r requirements.txt"

# What `chunk` calls a method; its class, and what that calls the size and the overlap.
METHODS = {
    "fixed": ("FixedSizeChunker", "chunk_size", "chunk_overlap"),
    "sliding": ("SlidingWindowChunker", "size", "overlap"),
    "sentence": ("SentenceChunker", "chunk_size", "chunk_overlap"),
    "snapping": ("SnappingWindowChunker", "size", "overlap"),
    "recursive": ("RecursiveChunker", "chunk_size", "chunk_overlap"),
    "paragraph": ("ParagraphChunker", "max_chunk_size", ""),
    "heading": ("HeadingChunker", "max_words", ""),
    "code": ("CodeChunker", "chunk_size", ""),
    "semantic": ("SemanticChunker", "max_chunk_size", ""),
    "cluster": ("ClusterChunker", "max_chunk_size", ""),
}
BY_MEANING = ("semantic", "cluster")
ENDINGS = tuple(".txt .text .md .markdown .html .htm .xhtml .pdf .docx .py .js".split())
Make = Callable[[Path], "chunklab.Chunker"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: those of the command line by default.

    Returns:
        0 if all went well, 1 if not, 130 if it was stopped; what is wrong is on stderr.
    """
    parser = argparse.ArgumentParser(prog="python -m chunklab", description="Hands-on chunking for retrieval.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("models", help="fetch the weights that the lessons need, and say where they are")
    opened = commands.add_parser("open", help="fetch what is missing, and open JupyterLab at lesson 00")
    opened.add_argument("--port", type=_port, help="the port to serve on; 8888, or the next that is free, by default")
    chunks = commands.add_parser(
        "chunk",
        help="cut files into chunks: CSV, JSON lines, or text to read",
        description="Cut files into chunks. A file that cannot be read is named on stderr, and the others go on; the "
        "exit status is then 1.",
        epilog="example: python -m chunklab chunk notes/ report.pdf --method heading --size 200 --output chunks.csv",
    )
    add_chunk_arguments(chunks)
    recorded = commands.add_parser("record", help="record anew what a lesson asks of a language model")
    recorded.add_argument("lesson", help="its number, such as 05")
    recorded.add_argument("--base-url", required=True, help="a server that speaks OpenAI's language, up to /v1")
    recorded.add_argument("--model", required=True, help="the model to ask for")
    recorded.add_argument("--file", type=Path, help="the model's file, whose hash the recording then names")
    options = parser.parse_args(arguments)
    try:
        check_python()
        if options.command == "chunk":
            return chunk_files(options, maker(options, chunks.error))
        if options.command in ("open", "record"):
            check_course()
        if options.command == "record":
            return record_lesson(options)
        fetch()
        if options.command == "open":
            open_lab(options.port)
    except Problem as problem:
        print(f"chunklab: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("chunklab: stopped", file=sys.stderr)
        return 130
    return 0


class Problem(Exception):
    """What keeps a command from its work, in words for the learner."""


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raise Problem unless this Python is one that the course is tested on."""
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        allowed = f"{'.'.join(map(str, PYTHONS[0]))} to {'.'.join(map(str, PYTHONS[1]))}"
        raise Problem(
            f"this is Python {'.'.join(map(str, version))}, and the course needs {allowed}. Make the virtual "
            f"environment again with one of those, activate it, and run: {INSTALL}"
        )


def check_course(root: Path = ROOT) -> None:
    """Raise Problem unless lesson 00 and JupyterLab are there."""
    if not (root / FIRST).exists():
        raise Problem(
            f"{FIRST} is not beside the package, which is in {root}. The lessons are not part of the installed "
            f"package: go to the folder of the course (the one with requirements.txt) and run there: {INSTALL}"
        )
    if find_spec("jupyterlab") is None:
        raise Problem(f"JupyterLab is not installed in this environment. Activate the course's own, and run: {INSTALL}")


def record_lesson(options: argparse.Namespace) -> int:
    """Record a lesson, and say where; raise Problem where that fails."""
    from chunklab.record import record

    try:
        path = record(options.lesson, options.base_url, options.model, options.file)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise Problem(f"lesson {options.lesson} could not be recorded: {error}") from error
    print(f"Recorded: {path.relative_to(ROOT)}")
    return 0


def fetch() -> None:
    """Fetch the weights that are missing, and say where all are; raise Problem where that fails."""
    from chunklab.models import weights

    try:
        paths = weights.fetch()
    except (OSError, RuntimeError, ValueError) as error:
        raise Problem(f"the lessons' weights could not be fetched: {error}") from error
    print(f"Weights: {len(paths)} files in {weights.cache_folder()}")


def open_lab(port: int | None = None) -> None:
    """Open JupyterLab at lesson 00, in this process, until it is stopped."""
    from jupyterlab.labapp import LabApp

    arguments = lab_arguments(port, is_root(), has_browser())
    print(f"Opening JupyterLab at {FIRST}. To stop it: Ctrl-C here.", flush=True)
    LabApp.launch_instance(arguments)


def lab_arguments(port: int | None, root_user: bool, browser: bool) -> list[str]:
    """What JupyterLab is told.

    >>> lab_arguments(8890, root_user=True, browser=False)[3:]
    ['--Application.log_level=WARN', '--port=8890', '--allow-root', '--no-browser']
    """
    arguments = [f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{FIRST}"]
    # It would ask the package index for a newer JupyterLab each time that it opens.
    arguments += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--Application.log_level=WARN"]
    if port:
        arguments.append(f"--port={port}")
    if root_user:
        arguments.append("--allow-root")
    if not browser:
        arguments.append("--no-browser")
    return arguments


def is_root() -> bool:
    """Whether this is the user root, as which JupyterLab starts only when told."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def has_browser() -> bool:
    """Whether there is a graphical browser; one for the terminal would take the screen from the server."""
    windows = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    try:
        return bool(windows and webbrowser.get())
    except webbrowser.Error:
        return False


# Cutting files.


def add_chunk_arguments(parser: argparse.ArgumentParser) -> None:
    """What `chunk` can be told."""
    files = f"a file, a pattern such as 'notes/*.md', or a folder: its files that end in {' '.join(ENDINGS)}"
    parser.add_argument("files", nargs="+", metavar="FILE", help=files)
    parser.add_argument("--method", choices=METHODS, default="recursive", help="how to cut (recursive)")
    sizes = "the longest chunk, in characters; words for heading, tokens for cluster; the method's own default if not given"
    parser.add_argument("--size", type=_whole_number(1), metavar="N", help=sizes)
    overlap = "what neighbours may share, in characters; in sentences for snapping"
    parser.add_argument("--overlap", type=_whole_number(0), metavar="N", help=overlap)
    models = "what semantic and cluster embed sentences with (minilm); static is a hundred times as fast"
    parser.add_argument("--embeddings", choices=("minilm", "static", "openai"), metavar="MODEL", help=models)
    form = "what to write; by default what the ending of --output says (.csv, .jsonl), else text to read"
    parser.add_argument("--format", choices=("csv", "jsonl", "text"), help=form)
    parser.add_argument("--output", type=Path, metavar="PATH", help="where to; to standard output if not given")


def maker(options: argparse.Namespace, fail: Callable[[str], Any]) -> Make:
    """What gives the chunker for a file; `fail` is called with what is wrong with the options."""
    name, size, overlap = METHODS[options.method]
    settings = {} if options.size is None else {size: options.size}
    if options.method == "heading" and options.size is not None:  # the other two sizes keep their proportion to it
        settings |= {"min_words": max(1, options.size * 80 // 250), "extended_words": options.size * 400 // 250}
    if options.overlap is not None and not overlap:
        with_overlap = ", ".join(method for method, (_, _, overlap) in METHODS.items() if overlap)
        fail(f"argument --overlap: --method {options.method} has none; these have: {with_overlap}")
    elif options.overlap is not None:
        settings[overlap] = options.overlap
    elif options.method == "sliding" and options.size is not None:
        settings[overlap] = options.size // 5  # as the defaults are
    elif options.method == "snapping" and options.size is not None:
        settings[overlap] = min(5, options.size - 1)  # the default, where the size allows it
    if options.embeddings and options.method not in BY_MEANING:
        fail(f"argument --embeddings: only for --method {' and '.join(BY_MEANING)}")
    if options.method == "cluster" and options.size is not None:
        settings["piece_size"] = min(50, options.size)  # the default, where the size allows it
    chunker = getattr(chunklab, name)

    def make(path: Path) -> chunklab.Chunker:
        if options.method == "code":
            return chunker(language_of(path), **settings)
        return chunker(**settings)

    try:
        if options.method in BY_MEANING:
            settings["embeddings"] = chunklab.embeddings(options.embeddings or "minilm")
        make(Path("a.py"))
    except ValueError as error:
        message = str(error).replace(size, "--size")
        fail(message.replace(overlap, "--overlap", 1) if overlap else message)
    return make


def language_of(path: Path) -> str:
    """The language of a source file, by the ending of its name."""
    from chunklab.chunkers.syntax import GRAMMARS

    endings = {grammar.suffix: language for language, grammar in GRAMMARS.items()}
    if path.suffix.lower() not in endings:
        raise ValueError(f"{path.name} is no source code that --method code can cut: {' '.join(endings)}")
    return endings[path.suffix.lower()]


def chunk_files(options: argparse.Namespace, make: Make) -> int:
    """Cut files, and write the chunks; 1 if some file could not be read, or nobody reads what is written, else 0."""
    failures: list[str] = []
    if options.output and os.path.isdir(options.output):
        raise Problem(f"--output {options.output} is a folder: give the name of a file")
    form = options.format or {".csv": "csv", ".jsonl": "jsonl"}.get(_ending(options.output or ""), "text")
    endings = (".py", ".js") if options.method == "code" else ENDINGS
    files = list(found(options.files, options.output, endings, failures))
    chunks = cut(files, make, failures, _shows_progress(options.output) and len(files) > 1)
    try:
        write(chunks, form, options.output)
    except BrokenPipeError:  # what reads our output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        raise Problem(f"{options.output or 'standard output'} cannot be written: {error.strerror or error}") from error
    return int(bool(failures))


def found(
    patterns: Iterable[str], output: Path | None, endings: tuple[str, ...], failures: list[str]
) -> Iterator[tuple[Path, Path | None]]:
    """The files that are meant, each once, and the folder that they are from.

    A link in a folder is not followed out of it: see `read_document`. Hidden files and folders are left out, and so is
    the output.
    """
    seen = {os.path.abspath(output)} if output else set()
    for pattern in patterns:
        path = Path(pattern)
        if not pattern:
            raise Problem("one of the files has an empty name: is a variable of the shell not set?")
        if output and os.path.abspath(path) == os.path.abspath(output):
            raise Problem(f"{output} is to be read, and to be written: give another --output")
        if os.path.isdir(path):
            files = [(file, path) for file in _files_in(path, failures) if _ending(file) in endings]
        elif os.path.exists(path) or not any(mark in pattern for mark in "*?["):
            files = [(path, None)]
        else:
            files = [(Path(match), None) for match in sorted(glob(pattern, recursive=True)) if os.path.isfile(match)]
        if not files:
            none = f"no file in it ends in {' '.join(endings)}" if os.path.isdir(path) else "no file is named so"
            report(f"{pattern}: {none}", failures)
        for file, base in files:
            if os.path.abspath(file) not in seen:
                seen.add(os.path.abspath(file))
                yield file, base


def cut(
    files: list[tuple[Path, Path | None]], make: Make, failures: list[str], progress: bool
) -> Iterator[chunklab.Chunk]:
    """The chunks of all files. What cannot be read is reported, and the others go on."""
    from tqdm import tqdm

    for path, base in tqdm(files, unit="file", disable=not progress):
        try:
            chunker = make(path)
            document = chunklab.read_document(path.relative_to(base) if base else path, base=base)
            chunks = chunker.chunk(document.text, path.as_posix())
        except (OSError, ValueError) as error:
            said = str(error).partition(f"{path.name} ")[2] or str(error)  # it may begin with the name, too
            report(f"{path}: {said}", failures)
            continue
        except Exception as error:  # one file must not cost what the others gave
            report(f"{path}: {type(error).__name__}: {error}", failures)
            continue
        for warning in document.metadata.get("warnings", ()):
            report(f"{path}: {warning}")
        yield from chunks


def write(chunks: Iterable[chunklab.Chunk], form: str, output: Path | None) -> None:
    """Write chunks as CSV, as JSON lines, or as text to read; a file is written whole or not at all."""
    if form == "csv" and _is_file(output):
        chunklab.write_csv(chunks, os.path.realpath(output))
        return
    if form == "csv":
        with TemporaryDirectory() as folder, opened(output) as stream:
            path = Path(folder, "chunks.csv")
            chunklab.write_csv(chunks, path)
            stream.write(path.read_bytes().decode("utf-8-sig"))
        return
    with opened(output) as stream:
        for chunk in chunks:
            to_read = f"--- {chunk.id} [{chunk.start}:{chunk.end}]\n{chunk.text}\n\n"
            stream.write(_json_line(chunk) if form == "jsonl" else to_read)


@contextmanager
def opened(output: Path | None) -> Iterator[TextIO]:
    """A file, which takes its name only when all is well, or standard output: UTF-8, line ends as they are."""
    how = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    if output is None and sys.stdout is None:
        raise Problem("standard output is closed: give --output")
    if output is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(**how)
        yield sys.stdout
        sys.stdout.flush()
        return
    if not _is_file(output):  # a device or a pipe is written to, and never replaced by a file
        with output.open("w", **how) as stream:
            yield stream
        return
    output = Path(os.path.realpath(output))  # a link stays one
    part = output.with_name(f"{output.name}.{os.getpid()}.part")
    try:
        with part.open("w", **how) as stream:
            yield stream
        os.replace(part, output)
    finally:
        part.unlink(missing_ok=True)


def report(problem: str, failures: list[str] | None = None) -> None:
    """Say on stderr what is wrong with a file, beside the progress bar if there is one; a failure is also noted."""
    from tqdm import tqdm

    tqdm.write(f"chunklab: {problem}", file=sys.stderr)
    if failures is not None:
        failures.append(problem)


def _json_line(chunk: chunklab.Chunk) -> str:
    names = ("text", "start", "end", "document", "id", "index", "total", "metadata")
    line = json.dumps({name: getattr(chunk, name) for name in names}, ensure_ascii=False, default=str)
    for mark in "\x85\u2028\u2029":  # line ends to some readers
        line = line.replace(mark, f"\\u{ord(mark):04x}")
    return line + "\n"


def _is_file(output: Path | None) -> bool:
    """Whether there is, or can be, a regular file of this name."""
    return output is not None and (os.path.isfile(output) or not os.path.exists(output))


def _ending(path: str | Path) -> str:
    return Path(path).suffix.lower()


def _files_in(folder: Path, failures: list[str]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        report(f"{error.filename}: cannot be opened ({error.strerror})", failures)

    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(names) if not name.startswith("."))


def _shows_progress(output: Path | None) -> bool:
    """Whether stderr is a terminal, and not one that the chunks are written to."""
    return sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())


def _whole_number(least: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of {least} or more")
        return int(text)

    return whole_number


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
