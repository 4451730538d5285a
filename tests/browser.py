"""A real Chromium, and the servers whose pages it opens, for tests that look at a page as a learner does."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def chromium(play):
    """What to start Chromium with: Playwright's own, or that of the machine; None if there is none."""
    own = Path(play.chromium.executable_path)
    return str(own) if own.exists() else next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser():
    """Chromium; without one, or without Playwright, the test is skipped."""
    if not find_spec("playwright"):
        pytest.skip("Playwright is not installed")
    from playwright.sync_api import Error, sync_playwright

    with ExitStack() as stack:
        try:
            play = stack.enter_context(sync_playwright())
        except Exception as error:  # its driver wants libraries of the system, such as libatomic
            pytest.skip(f"Playwright does not start: {str(error)[:200]}")
        found = chromium(play)
        if found is None:
            pytest.skip("there is no Chromium: `playwright install chromium`, or apt-get install chromium")
        # As root it has no sandbox; in a container it may have little shared memory. The pages are our own.
        try:
            started = play.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        except Error as error:
            pytest.skip(f"Chromium does not start: {str(error)[:200]}")
        try:
            yield started
        finally:
            started.close()


@contextmanager
def serving(command, folder, says):
    """A server of this machine, with settings of its own in a folder; gives its address, which it says in a line."""
    places = {f"JUPYTER_{kind}_DIR": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    places |= {f"JUPYTERLAB_{kind}_DIR": str(folder / kind.lower()) for kind in ("SETTINGS", "WORKSPACES")}
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    env = {name: value for name, value in os.environ.items() if name not in screens} | places
    with open(folder / "log", "w", encoding="utf-8") as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        with subprocess.Popen([sys.executable, *command], cwd=folder, env=env, **streams) as server:
            try:
                yield _address(server, folder / "log", says)
            finally:
                server.terminate()
                try:
                    server.wait(20)
                except subprocess.TimeoutExpired:
                    server.kill()


def _address(server, log, says):
    for _ in range(300):  # a minute
        said = re.search(says, log.read_text(encoding="utf-8", errors="replace"))
        if said:
            return said.group(0)
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise AssertionError(f"the server did not start: {log.read_text(encoding='utf-8', errors='replace')}")


def heard(page):
    """What goes wrong on a page from now on: errors of its console, and requests to other hosts."""
    found = []
    page.on("console", lambda said: found.append(f"console: {said.text}") if said.type == "error" else None)
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("request", lambda asked: None if _is_here(asked.url) else found.append(f"elsewhere: {asked.url}"))
    return found


def _is_here(url):
    return re.match(r"(https?|wss?)://(localhost|127\.0\.0\.1)[:/]|data:|blob:|about:", url) is not None
