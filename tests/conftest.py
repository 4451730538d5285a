"""What all tests share: a quiet environment without keys, steady random tests, and when outputs are compared.

The outputs of the lessons are compared on one set-up, the locked one: Linux on x86-64, Python 3.11, the versions of
requirements.txt. Elsewhere the lessons run without comparing. CHUNKLAB_STRICT=1 makes any other set-up an error, so
that a CI that is there to compare cannot stop comparing unseen.
"""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import build
import pytest
from hypothesis import settings
from packaging.requirements import Requirement

pytest_plugins = ["texts", "files"]
collect_ignore = ["benchmarks"]

ROOT = Path(__file__).resolve().parents[1]

os.environ.update(build.ENVIRONMENT)
for key in build.KEYS:
    os.environ.pop(key, None)
if "CHUNKLAB_DATA" in os.environ:
    os.environ["CHUNKLAB_DATA"] = str(Path(os.environ["CHUNKLAB_DATA"]).resolve())

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("steady")


def why_not_locked() -> str:
    """What sets this machine apart from the locked set-up; "" if nothing does."""
    here = (sys.platform, platform.machine(), f"{sys.version_info.major}.{sys.version_info.minor}")
    if here != ("linux", "x86_64", "3.11"):
        return f"this is {' '.join(here)}"
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-e"):
            continue
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate():
            try:
                found = version(wanted.name)
            except PackageNotFoundError:
                found = "missing"
            if found not in wanted.specifier:
                return f"{wanted.name} is {found}, not {wanted.specifier}"
    return ""


def pytest_configure(config):
    reason = why_not_locked()
    if reason and os.environ.get("CHUNKLAB_STRICT"):
        raise pytest.UsageError(f"outputs are to be compared, but this is not the locked set-up: {reason}")
    config.option.nbval_lax = bool(config.option.nbval_lax or reason)
    config.stash[HEADER] = f"not compared: {reason or 'by option'}" if config.option.nbval_lax else "compared"


def pytest_report_header(config):
    return f"lessons: run, outputs {config.stash[HEADER]}"


HEADER = pytest.StashKey[str]()


@pytest.fixture
def pauses(monkeypatch):
    """Every wait, in seconds; none of them is waited."""
    from chunklab.chunkers import asking

    found = []

    async def wait(seconds):
        found.append(seconds)

    monkeypatch.setattr(asking, "sleep", found.append)
    monkeypatch.setattr(asking, "async_sleep", wait)
    return found
