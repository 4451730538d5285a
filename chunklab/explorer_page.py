"""The explorer alone on a page, by Voila: what `python -m chunklab explore` opens.

For whoever wants to play with chunkers, or to show them to others, without a notebook. Voila runs one cell and shows
what it gives; the page takes nothing from other hosts, asks for a token as JupyterLab does, and begins anew with each
reload. Cost: a process for each page that is open, which ends two minutes after the page is closed.
"""

from __future__ import annotations

import json
import logging
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory

NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "explorer",
            "source": "from chunklab import explore\nexplore()",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
        }
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
# Voila's page asks another host for icons, of which we have none.
_POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws: wss:"


def open_explorer(port: int | None, browser: bool) -> None:
    """Serve the explorer on this machine, in this process, until it is stopped.

    Args:
        port: where; 8866, or one near it that is free, by default.
        browser: whether to open a browser there; the address is printed in any case.
    """
    from voila.app import Voila

    class Page(Voila):
        def launch_browser(self) -> None:
            print(f"The explorer is at {self.display_url}. To stop it: Ctrl-C here.", flush=True)
            if browser:  # Voila's own way would leave out the token
                webbrowser.open(self.display_url)

    # A page that is closed asks that its kernel be ended, in a way that the server refuses; idle ones are ended anyway.
    logging.getLogger("tornado").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder:
        notebook = Path(folder, "explorer.ipynb")
        notebook.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
        Page.launch_instance(
            [str(notebook), *arguments(port)], tornado_settings={"headers": {"Content-Security-Policy": _POLICY}}
        )


def arguments(port: int | None) -> list[str]:
    """What Voila is told.

    >>> arguments(8890)[-1]
    '--port=8890'
    """
    told = ["--token", "--Voila.log_level=ERROR"]
    # Others of JupyterLab are made for another version than Voila's, and fail on its page.
    needed = ("@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8")
    told += [f"--VoilaConfiguration.extension_allowlist={name}" for name in needed]
    told += ["--MappingKernelManager.cull_idle_timeout=120", "--MappingKernelManager.cull_interval=30"]
    return told + ([f"--port={port}"] if port else [])
