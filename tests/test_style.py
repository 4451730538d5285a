"""Layout, lint and types of all code, as pyproject.toml sets them: what `ruff format`, `ruff check` and `mypy` say."""

import subprocess
import sys

import pytest
from test_frame import ROOT


def said(*command):
    """What a tool says of the repository; "" if it finds nothing wrong."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, encoding="utf-8")
    return done.stdout + done.stderr if done.returncode else ""


def test_every_file_is_laid_out():
    assert said("ruff", "format", "--check", "--quiet", ".") == ""


def test_the_linter_finds_nothing():
    assert said("ruff", "check", "--quiet", "--output-format=concise", ".") == ""


def test_the_types_of_the_package_hold(request):
    if request.config.option.nbval_lax:
        pytest.skip("types are checked where outputs are compared: other versions of libraries have other types")
    assert said("mypy") == ""
