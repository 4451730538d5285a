"""Files in, chunks out: what `python -m chunklab chunk` does.

For whoever has a folder of files to cut, and no Python to write: `chunk notes/ --method heading --output chunks.csv`. A
file that cannot be read costs none of the others; what is written is written whole. Cost: that of the method.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import glob
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO, TypeGuard

import chunklab
from chunklab.documents import utf_8

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


class Problem(Exception):
    """What keeps a command from its work, in words for the learner."""


def add_chunk_arguments(parser: argparse.ArgumentParser) -> None:
    """What `chunk` can be told."""
    files = f"a file, a pattern such as 'notes/*.md', or a folder: its files that end in {' '.join(ENDINGS)}"
    parser.add_argument("files", nargs="+", metavar="FILE", help=files)
    parser.add_argument("--method", choices=METHODS, default="recursive", help="how to cut (recursive)")
    sizes = (
        "the longest chunk, in characters; words for heading, tokens for cluster; the method's own default if not given"
    )
    parser.add_argument("--size", type=whole_number(1), metavar="N", help=sizes)
    overlap = "what neighbours may share, in characters; in sentences for snapping"
    parser.add_argument("--overlap", type=whole_number(0), metavar="N", help=overlap)
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
    files: list[tuple[Path, Path | None]]
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


def document_ids(files: Iterable[tuple[Path, Path | None]]) -> list[str]:
    """What to call the documents of files, as `found` gives these.

    Returns:
        One id a file: its path in the folder given, or the name of a file given, with "/"; where that is taken, its
        whole path, and where that is taken too, a number behind it. Text that UTF-8 can hold, whatever bytes the file
        system gave.

    >>> document_ids([(Path("notes/a.txt"), Path("notes")), (Path("b/a.txt"), None)])
    ['a.txt', 'b/a.txt']
    """
    ids: dict[str, None] = {}
    for path, base in files:
        short, whole = utf_8(path.relative_to(base).as_posix() if base else path.name), utf_8(path.as_posix())
        numbered = (f"{whole}#{number}" for number in count(2))
        ids[next(name for name in chain((short, whole), numbered) if name not in ids)] = None
    return list(ids)


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
    how: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
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


def _is_file(output: Path | None) -> TypeGuard[Path]:
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


def whole_number(least: int) -> Callable[[str], int]:
    """The type of an option that is a whole number of so much or more."""

    def checked(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of {least} or more")
        return int(text)

    return checked
