"""Record the replies that a lesson asks of a language model: `python -m chunklab record 05 --base-url … --model …`.

The lesson, with its exercises solved, runs once against a server that speaks OpenAI's language, and each reply is kept
with the model's name, the hash of its file and the day; what another lesson has of the same model is not asked again.
For whoever changes a lesson or wants another model in it. Cost: the lesson's own time on that server; stopped half-way,
it goes on where it was.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from datetime import date
from pathlib import Path
from types import ModuleType

import httpx

from chunklab.models.recordings import FOLDER, finish

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
_CELL_SECONDS = 24 * 3600


def record(lesson: str, base_url: str, model: str, file: Path | None = None, folder: Path = FOLDER) -> Path:
    """Record one lesson.

    Args:
        lesson: its number, such as "05".
        base_url: the server, such as "http://127.0.0.1:8080/v1". A key for it is read from OPENAI_API_KEY.
        model: the model to ask for; the recording names it.
        file: the model's file, for its hash.
        folder: where recordings are kept.

    Returns:
        The recording.

    Raises:
        ValueError: there is no such lesson, server or model, or the lesson asks nothing that others do not ask.
        OSError: the file cannot be read.
        RuntimeError: a cell failed; what was answered until then is kept.
    """
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    build = _builder()
    sources = {source.stem[:2]: source for source in build.lessons(NOTEBOOKS)}
    if lesson not in sources:
        raise ValueError(f"lesson={lesson!r}: must be one of {', '.join(sources)}")
    if not model.strip():
        raise ValueError(f"model={model!r}: must name the model to ask for")
    check_server(base_url)
    path = folder / f"{sources[lesson].stem}.json"
    sha256 = "unknown"
    if file:
        with file.open("rb") as weights:
            sha256 = hashlib.file_digest(weights, "sha256").hexdigest()
    order = {"path": str(path), "address": base_url, "model": model, "sha256": sha256, "date": date.today().isoformat()}
    added = {"CHUNKLAB_RECORD": json.dumps(order), "CHUNKLAB_RECORD_KEY": os.environ.get("OPENAI_API_KEY", "none")}
    os.environ.update(added)  # the lesson's kernel gets this process's environment, without its keys
    try:
        build.execute(build.make(sources[lesson], "solutions"), NOTEBOOKS, _CELL_SECONDS)
    except (CellControlSignal, DeadKernelError) as error:
        what = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()  # the colours of a traceback
        raise RuntimeError(f"{what}\nWhat was answered until then is kept: run the same again, to go on") from error
    finally:
        for name in added:
            os.environ.pop(name)
    if not path.with_suffix(".partial").exists():
        raise ValueError(f"lesson={lesson!r}: asks chat() nothing that no other lesson has recorded")
    finish(path)
    return path


def check_server(address: str) -> None:
    """Raise ValueError unless a server is there: better now than when a lesson has run for a while.

    Args:
        address: up to /v1.
    """
    try:
        httpx.get(f"{address.rstrip('/')}/models", timeout=30)  # whatever it answers
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(
            f"base_url={address!r}: no server answers there ({error or type(error).__name__}): give the address of one "
            "that speaks OpenAI's language, up to /v1, such as http://127.0.0.1:8080/v1"
        ) from error


def _builder() -> ModuleType:
    """notebooks/build.py, which knows how a lesson is made and run."""
    spec = importlib.util.spec_from_file_location("build", NOTEBOOKS / "build.py")
    if spec is None or spec.loader is None or not (NOTEBOOKS / "build.py").exists():
        raise ValueError("the lessons are not beside the package: run this in the folder of the course")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
