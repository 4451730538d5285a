"""The command line: `python -m chunklab open` opens the course, `python -m chunklab models` fetches its weights.

It serves a learner on the first day: all that is needed is fetched, JupyterLab opens at lesson 00, and what is missing
is said in words that tell what to do. Fetching costs a download of some tens of megabytes, once.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST = "notebooks/00_start_here.ipynb"
PYTHONS = ((3, 11), (3, 13))
INSTALL = "pip install -r requirements.txt"


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: those of the command line by default.

    Returns:
        0 if all went well, 1 if not; what is wrong is on stderr.
    """
    parser = argparse.ArgumentParser(prog="python -m chunklab", description="Hands-on chunking for retrieval.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("models", help="fetch the weights that the lessons need, and say where they are")
    opened = commands.add_parser("open", help="fetch what is missing, and open JupyterLab at lesson 00")
    opened.add_argument("--port", type=_port, help="the port to serve on; 8888, or the next that is free, by default")
    options = parser.parse_args(arguments)
    try:
        check_python()
        if options.command == "open":
            check_course()
        fetch()
        if options.command == "open":
            open_lab(options.port)
    except Problem as problem:
        print(f"chunklab: {problem}", file=sys.stderr)
        return 1
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


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
