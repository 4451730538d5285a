"""100 MB of text to chunks and vectors: `python tests/benchmarks/scale.py` (add --smoke for a quick look).

The course corpus and the public data, over and over, each copy with a line of its own at its head, as files; cut by
`RecursiveChunker(500)`, embedded with the static model and written as Parquet: by one process with one thread on one
core; by as many such processes as there are cores, side by side, each with its share of the files, which is the most that
this machine can do; and by `chunk_corpus` on all cores. All do the same work with the same functions.
"Once the workers have started" is the rate from the first file that is written to the last: starting costs the same for
any corpus. Memory is what all processes of the run hold, those of Ray included, each page they share counted once (the
sum of their proportional set sizes), looked at twice a second; it is 0 where the system does not say.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from chunklab import (
    RecursiveChunker,
    chunk_corpus,
    corpus_worker,
    embeddings,
    load_benchmark,
    load_corpus,
    load_novel,
    scale,
)


def write_files(folder: Path, megabytes: float) -> int:
    """So many megabytes of text files, no two of them alike; gives how many characters they hold."""
    texts = load_corpus()
    with suppress(OSError, RuntimeError):
        texts |= load_benchmark()[0] | {"novel": load_novel()}
    size, characters, copy = 0, 0, 0
    while size < megabytes * 1e6:
        place = folder / f"copy {copy}"
        place.mkdir()
        for name, text in texts.items():
            text = f"Copy {copy} of {name}.\n\n{text}"
            size += (place / f"{Path(name).stem}.txt").write_bytes(text.encode())
            characters += len(text)
            if size >= megabytes * 1e6:
                break
        copy += 1
    return characters


def one_process(folder: Path, output: Path, share: int = 0, of: int = 1) -> int:
    """The same work without Ray, on one core and in one thread, or a share of it; gives the number of chunks."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[share]})
    pa.set_cpu_count(1)
    output.mkdir(parents=True)
    chunker, count = RecursiveChunker(500), 0
    write = corpus_worker.Writer(embeddings("static"), str(output), "recipe")
    for group in scale._groups(scale._listed(folder, [])[share::of], {}, of):
        for documents in corpus_worker.cut_files(group, chunker, output):
            write(documents)
            count += sum(map(len, documents["chunks"].to_pylist()))
    return count


def side_by_side(folder: Path, output: Path) -> int:
    """`one_process` on each core at once, none of which waits for another; gives the number of chunks."""
    cores = len(os.sched_getaffinity(0))
    shares = [(folder, output / str(share), share, cores) for share in range(cores)]
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        return sum(pool.starmap(one_process, shares, chunksize=1))


def all_cores(folder: Path, output: Path) -> int:
    """`chunk_corpus`; gives the number of chunks."""
    return chunk_corpus(folder, RecursiveChunker(500), embeddings("static"), output).chunks


def measure(way: str, folder: str, output: str) -> None:
    """One way, and what it took, as JSON; that of `chunk_corpus` also where Ray was running before."""
    embeddings("static").embed_query("the model is loaded")
    ways = {"one": one_process, "apart": side_by_side, "all": all_cores}
    begin = time.perf_counter()
    if way == "all":
        scale.start_ray()
    started = time.perf_counter()
    chunks = ways[way](Path(folder), Path(output))
    took = {"start": started - begin, "seconds": time.perf_counter() - started, "chunks": chunks}
    print(json.dumps(took | {"rate": rate(Path(output))}), flush=True)
    if way == "all":
        import ray

        ray.shutdown()


def rate(output: Path) -> float:
    """Chunks a second, from the first file that was written to the last."""
    parts = sorted((path.stat().st_mtime, pq.read_metadata(path).num_rows) for path in output.rglob("part-*.parquet"))
    return sum(rows for _, rows in parts[1:]) / (parts[-1][0] - parts[0][0])


def run(way: str, folder: Path, output: Path) -> dict[str, float]:
    """What one way took, in seconds, and the most that its processes held, in MB."""
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import scale; scale.measure(*sys.argv[1:])"
    command = [sys.executable, "-c", code, way, str(folder), str(output)]
    peak, over = [0], threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:

        def watch() -> None:
            while not over.wait(0.5):
                peak[0] = max(peak[0], held(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        printed = process.stdout.read()
        over.set()
        watcher.join()
    if process.returncode:
        raise RuntimeError(f"the run failed: {way}")
    return json.loads(printed.splitlines()[-1]) | {"MB": peak[0]}


def held(root: int) -> int:
    """What a process and all that it started, and these, hold, in MB: the sum of their proportional set sizes."""
    parents, total = {}, 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    ours, size = {root}, 0
    while len(ours) > size:
        size = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    for pid in ours:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
            total += int(rollup.split("\nPss:")[1].split()[0])
        except (OSError, IndexError, ValueError):
            continue
    return total // 1024


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the table; gives (name, figure) of every row, for the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a megabyte: does it run at all")
    parser.add_argument("--megabytes", type=float, default=100, help="how much text (100)")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary, "files")
        folder.mkdir()
        characters = write_files(folder, 1 if options.smoke else options.megabytes)
        one, apart, ray = (run(way, folder, Path(temporary, way)) for way in ("one", "apart", "all"))
        if len({found["chunks"] for found in (one, apart, ray)}) > 1:
            raise RuntimeError(f"{one['chunks']}, {apart['chunks']} and {ray['chunks']} chunks: must be the same")
    rows = {
        "seconds": (one["seconds"], apart["seconds"], ray["seconds"], ""),
        "seconds to start Ray before that": ("", "", ray["start"], ""),
        "MB at the peak, all processes (proportional set size)": (one["MB"], apart["MB"], ray["MB"], 3000),
        "throughput, once the workers have started": (1, apart["rate"] / one["rate"], ray["rate"] / one["rate"], 1.5),
        "throughput of the whole call": (1, one["seconds"] / apart["seconds"], one["seconds"] / ray["seconds"], ""),
        "the same, with starting Ray": (1, "", one["seconds"] / (ray["start"] + ray["seconds"]), ""),
    }
    size = f"{characters / 1e6:,.0f} million characters, {one['chunks']:,} chunks, WordLlama"
    cores = os.cpu_count()
    print(
        f"| {size} | one process | {cores} side by side | Ray, {cores} cores | asked |\n| --- | --- | --- | --- | --- |"
    )
    for name, values in rows.items():
        print(f"| {name} | {' | '.join(map(shown, values))} |")
    return [("chunks", one["chunks"]), *((name, values[2]) for name, values in rows.items())]


def shown(value: float | str) -> str:
    """A figure to three digits, if it has a point; "" where there is none."""
    return value if isinstance(value, str) else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    main()
