"""Ray, as `chunk_corpus` needs it: started without a word, on all cores or some, and ended when it was started here.

For `scale.py`, and for whoever calls it several times in a row. Ray takes a dozen processes, each of which imports it:
some seven seconds on two cores, whatever there is to do.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from chunklab.chunk import check_size

STORE_BYTES = 500_000_000
"""Of Ray's shared memory on this machine, where it would take a third of all there is."""


def load_ray() -> Any:
    """Ray with Ray Data, imported when it is needed; an ImportError says what to install."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read on import: it would report to its makers
    try:
        import ray
        import ray.data
    except ImportError:
        raise ImportError('chunk_corpus runs on Ray, which is not installed: pip install "ray[data]"') from None
    return ray


def start_ray(cores: int | None = None) -> None:
    """Start Ray on this machine, without a word; `ray.shutdown()` ends it.

    For several runs of `chunk_corpus` in a row, of which each would start it anew, or to say on how many cores.

    Args:
        cores: how many; all that this process may use by default.

    Raises:
        ValueError: no number of cores.
        ImportError: Ray is not installed.
    """
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores, ray = check_size("cores", cores), load_ray()
    # Below Python it says what it does on the standard error of the process, which would stand in a notebook. What goes
    # wrong is raised all the same.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # It ends workers that have had nothing to do for a second, and a new one takes three to import what it needs.
    os.environ.setdefault("RAY_idle_worker_killing_time_threshold_ms", "60000")
    with open(os.devnull, "wb") as nothing, _stderr_to(nothing.fileno()):
        options = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
        ray.init("local", num_cpus=cores, object_store_memory=STORE_BYTES, **options)


@contextmanager
def _stderr_to(place: int) -> Iterator[None]:
    before = os.dup(2)
    os.dup2(place, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


_lock = threading.Lock()
_runs = 0  # that go on, each in its thread
_held = ExitStack()  # what the last of them gives back


@contextmanager
def running(ray: Any) -> Iterator[None]:
    """Ray, as it runs already, on the cluster that RAY_ADDRESS names, or started here and ended afterwards; quietly.

    Of several runs at once, in threads of one process, the first starts it and the last ends it.
    """
    global _runs
    with _lock:
        if not _runs:
            if not ray.is_initialized():
                if os.environ.get("RAY_ADDRESS"):
                    ray.init(log_to_driver=False, logging_level=logging.ERROR)
                else:
                    start_ray()
                _held.callback(ray.shutdown)
            _held.enter_context(_quietly(ray))
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if not _runs:
                _held.close()


@contextmanager
def _quietly(ray: Any) -> Iterator[None]:
    """Ray Data without its bars and plans, which would stand in a notebook; errors are still raised."""
    context, log = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    # A block that is passed over would be documents that are missing.
    changed = {"enable_progress_bars": False, "print_on_execution_start": False, "max_errored_blocks": 0}
    before, level = {name: getattr(context, name) for name in changed}, log.level
    for name, value in changed.items():
        setattr(context, name, value)
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(context, name, value)
        log.setLevel(level)
