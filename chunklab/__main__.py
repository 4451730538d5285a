"""The command line: `open` the course, see your `progress`, `explore`, `chunk`, `recommend`, `models`, `record`.

It serves a learner on the first day: all that is needed is fetched, JupyterLab opens at lesson 00, and what is missing
is said in words that tell what to do. Fetching costs a download of some tens of megabytes, once. And it serves whoever
has a folder of files to cut: `python -m chunklab chunk notes/ --method heading --format csv --output chunks.csv`.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chunklab.chunk_files import Problem, add_chunk_arguments, chunk_files, maker, whole_number

ROOT = Path(__file__).resolve().parents[1]
FIRST = "notebooks/00_start_here.ipynb"
PYTHONS = ((3, 11), (3, 13))
INSTALL = "pip install -r requirements.txt"


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: those of the command line by default.

    Returns:
        0 if all went well, 1 if not, 130 if it was stopped; what is wrong is on stderr.
    """
    options = parser().parse_args(arguments)
    try:
        check_python()
        return options.run(options)
    except Problem as problem:
        print(f"chunklab: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("chunklab: stopped", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The commands and their options; each sets `run`, a function of the options that gives the exit status."""
    commands = argparse.ArgumentParser(prog="python -m chunklab", description="Hands-on chunking for retrieval.")
    each = commands.add_subparsers(dest="command", required=True)
    models = each.add_parser("models", help="fetch the weights that the lessons need, and say where they are")
    models.set_defaults(run=fetch_models)
    opened = each.add_parser("open", help="fetch what is missing, and open JupyterLab at lesson 00")
    opened.add_argument("--port", type=_port, help="the port to serve on; 8888, or the next that is free, by default")
    opened.set_defaults(run=open_course)
    done = each.add_parser("progress", help="say which checks of the exercises have passed, and what to do next")
    done.set_defaults(run=show_progress)
    explored = each.add_parser("explore", help="open a page with two chunkers on one text, and sliders to move them")
    explored.add_argument("--port", type=_port, help="the port to serve on; 8866, or one near it, by default")
    explored.set_defaults(run=explore_chunkers)
    chunks = each.add_parser(
        "chunk",
        help="cut files into chunks: CSV, JSON lines, or text to read",
        description="Cut files into chunks. A file that cannot be read is named on stderr, and the others go on; the "
        "exit status is then 1.",
        epilog="example: python -m chunklab chunk notes/ report.pdf --method heading --size 200 --output chunks.csv",
    )
    add_chunk_arguments(chunks)
    chunks.set_defaults(run=lambda options: chunk_files(options, maker(options, chunks.error)))
    _add_recommend(each)
    recorded = each.add_parser("record", help="record anew what a lesson asks of a language model")
    recorded.add_argument("lesson", help="its number, such as 05")
    recorded.add_argument("--base-url", required=True, help="a server that speaks OpenAI's language, up to /v1")
    recorded.add_argument("--model", required=True, help="the model to ask for")
    recorded.add_argument("--file", type=Path, help="the model's file, whose hash the recording then names")
    recorded.set_defaults(run=record_lesson)
    return commands


def _add_recommend(commands: argparse._SubParsersAction[Any]) -> None:
    own = commands.add_parser(
        "recommend",
        help="measure chunkers on files of your own, and say in a report which to take",
        description="Have questions about files written, try chunkers on one half of them, and hold the best against "
        "the plain default on the other. The questions are kept beside the report, to be edited; "
        "run the same again then.",
        epilog="example: python -m chunklab recommend notes/ report.pdf --output report.html",
    )
    own.add_argument("files", nargs="+", metavar="PATH", help="a file, a folder, or a pattern such as 'notes/*.md'")
    own.add_argument(
        "--output", type=Path, default=Path("report.html"), metavar="PATH", help="the report (report.html)"
    )
    asked = "how many questions to have written (40); 0 asks no model and takes those that are kept"
    own.add_argument("--questions", type=whole_number(0), default=40, metavar="N", help=asked)
    limit = "how long the model may be asked (60); the same command again goes on from there"
    own.add_argument("--seconds", type=whole_number(0), default=60, metavar="N", help=limit)
    finalists = "measure the best five again with this model"
    own.add_argument("--better", choices=("minilm", "openai"), metavar="MODEL", help=finalists)
    own.set_defaults(run=recommend_for)


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


def show_progress(options: argparse.Namespace) -> int:
    """Say which checks have passed, and where that is kept; raise Problem where that cannot be read."""
    from chunklab.exercises import progress_file
    from chunklab.progress_page import progress

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        print(progress(), f"Kept in: {progress_file() or 'nothing, as CHUNKLAB_PROGRESS is 0'}", sep="\n")
    except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
        raise Problem(str(error)) from error
    return 0


def record_lesson(options: argparse.Namespace) -> int:
    """Record a lesson, and say where; raise Problem where that fails."""
    from chunklab.record import record

    check_course()
    try:
        path = record(options.lesson, options.base_url, options.model, options.file)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise Problem(f"lesson {options.lesson} could not be recorded: {error}") from error
    print(f"Recorded: {path.relative_to(ROOT)}")
    return 0


def recommend_for(options: argparse.Namespace) -> int:
    """Say what is recommended for files, and where the report is; 1 if some file could not be read, else 0."""
    import chunklab

    print(f"Measuring; the report will be {options.output}", file=sys.stderr)
    try:
        better = chunklab.embeddings(options.better) if options.better else None
        how = {"questions": options.questions, "seconds": options.seconds, "better": better}
        made = chunklab.recommend(options.files, output=options.output, **how)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise Problem(str(error).replace("paths=", "", 1)) from error
    print(f"{made.text()}\n\nReport: {options.output}\nQuestions: {made.path}")
    return int(bool(made.own.unread))


def fetch_models(options: argparse.Namespace | None = None) -> int:
    """Fetch the weights that are missing, and say where all are; raise Problem where that fails."""
    from chunklab.models import weights

    try:
        paths = weights.fetch()
    except (OSError, RuntimeError, ValueError) as error:
        raise Problem(f"the lessons' weights could not be fetched: {error}") from error
    print(f"Weights: {len(paths)} files in {weights.cache_folder()}")
    return 0


def open_course(options: argparse.Namespace) -> int:
    """Fetch what is missing, and open the course; raise Problem where that fails."""
    check_course()
    fetch_models()
    open_lab(options.port)
    return 0


def open_lab(port: int | None = None) -> None:
    """Open JupyterLab at lesson 00, in this process, until it is stopped."""
    from jupyterlab.labapp import LabApp

    arguments = lab_arguments(port, is_root(), has_browser())
    print(f"Opening JupyterLab at {FIRST}. To stop it: Ctrl-C here.", flush=True)
    LabApp.launch_instance(arguments)


def explore_chunkers(options: argparse.Namespace) -> int:
    """Open the explorer on a page of its own, in this process, until it is stopped."""
    if find_spec("voila") is None:
        raise Problem(f"Voila is not installed in this environment. Activate the course's own, and run: {INSTALL}")
    from chunklab.explorer_page import open_explorer

    open_explorer(options.port, has_browser())
    return 0


def lab_arguments(port: int | None, root_user: bool, browser: bool) -> list[str]:
    """What JupyterLab is told.

    >>> lab_arguments(8890, root_user=True, browser=False)[5:]
    ['--port=8890', '--allow-root', '--no-browser']
    """
    arguments = [f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{FIRST}"]
    # It would ask the package index for a newer JupyterLab each time that it opens.
    arguments += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--Application.log_level=WARN"]
    # Voila serves the explorer alone, not here, where it would open with a warning.
    arguments.append("--ServerApp.jpserver_extensions={'voila.server_extension': False}")
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


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
