"""SmolLM2 on this machine: a small language model behind an OpenAI-compatible server, started when it is first asked.

135 million parameters, from a file of 98 MB, in llama.cpp (by way of xllamacpp), which brings the server. It runs
inside this process, on a free port that only this machine reaches, and ends with it, also when a kernel is started
anew. It answers what nobody has recorded: a learner's own prompt, in a second or a few, at about 80 tokens a second;
its answers are real and weak.
"""

from __future__ import annotations

import os
from pathlib import Path

from chunklab.models.weights import once, weight

NAME = "SmolLM2-135M-Instruct"
CONTEXT = 8192
"""Tokens of question and answer together."""


class ServerError(RuntimeError):
    """The local model could not be started, or does not answer; the message says what to do."""


@once
def local_server() -> str:
    """Start SmolLM2, once in a process, and give its server's address.

    Returns:
        Such as "http://127.0.0.1:40123/v1".

    Raises:
        WeightsError: the model's file is not in the cache and could not be fetched.
        ServerError: it could not be started.
    """
    return start(weight("smollm2"))


def start(model: Path, context: int = CONTEXT, port: int = 0) -> str:
    """Start a server for a model's GGUF file.

    Args:
        model: the file.
        context: tokens of question and answer together.
        port: 0 takes one that is free.

    Returns:
        The address of its OpenAI-compatible interface. The server lives as long as the process.

    Raises:
        ServerError: it could not be started.
    """
    try:
        import xllamacpp
    except ModuleNotFoundError as error:
        raise ServerError(
            f"xllamacpp is not installed ({error}): it runs the local language model. Run: pip install -r "
            "requirements.txt; or set OPENAI_API_KEY, or OPENAI_BASE_URL to the address of a server of your own"
        ) from error
    except ImportError as error:
        raise ServerError(
            f"xllamacpp, which runs the local language model, does not load ({error}): a library of the system is "
            "missing; for libgomp.so.1 on Debian and Ubuntu, apt install libgomp1"
        ) from error
    options = xllamacpp.CommonParams()
    options.model.path, options.n_ctx, options.port = str(model), context, port
    options.n_parallel, options.warmup, options.verbosity = 1, False, -1
    options.cache_ram_mib = 0  # else it keeps up to 8 GB of what was asked before
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = cores
    try:
        server = xllamacpp.Server(options)
    except (RuntimeError, OSError) as error:
        taken = f"; port {port} may be taken" if port else ""
        raise ServerError(
            f"the local model did not start ({error}{taken}): free some memory (it needs about 300 MB), or delete "
            f"{model.name} from the cache to have it fetched again; `python -m chunklab models` checks it"
        ) from error
    _RUNNING.append(server)
    return f"{server.listening_address}/v1"


_RUNNING: list[object] = []
"""The servers, kept as long as the process lives."""
