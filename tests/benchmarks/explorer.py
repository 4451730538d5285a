"""What a step of the explorer's sliders takes: `python tests/benchmarks/explorer.py` (add --smoke for a quick look).

On the course's novella, 72,749 characters: the milliseconds from a moved slider to the HTML of both methods, the other
of which is not cut again; and how many times as long that is as the chunker's own `chunk`, the two run in turn. What
JupyterLab adds, the message and the drawing, is not in it.
"""

from __future__ import annotations

import argparse
import sys
from itertools import cycle
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from speed import paired, seconds  # noqa: E402

from chunklab import load_corpus  # noqa: E402
from chunklab.explorer_picture import METHODS, Choice, make, picture  # noqa: E402


def settings(method: str, more: int = 0) -> Choice:
    """A method with its sliders as they are at first, those of its size moved by some steps."""
    chosen = {}
    for name, allowed in METHODS[method][1].items():
        chosen[name] = allowed[0] if isinstance(allowed[0], str) else allowed[3]
        if name in ("chunk_size", "size", "max_chunk_size", "max_words"):
            chosen[name] += more * allowed[2]
    return Choice(method, tuple(chosen.items()))


def main(arguments: list[str] | None = None) -> list[tuple[str, float]]:
    """Print the table; gives (method, ratio) of every row, for the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small text and one round: does it run at all")
    smoke = parser.parse_args(arguments).smoke
    text, rounds, results = (
        load_corpus()["leaflet.txt" if smoke else "the_bell_that_waited.txt"],
        1 if smoke else 15,
        [],
    )
    print("| method | ms for a step | times its chunk() |\n| --- | --- | --- |")
    for method in METHODS:
        chunkers = cycle([make(settings(method, more)) for more in (1, 2)])
        steps = cycle([{"A": settings(method, more), "B": settings("recursive")} for more in (1, 2)])

        def step(steps: cycle = steps) -> object:
            return picture(text, next(steps))

        _, ratio, _ = paired(lambda chunkers=chunkers: next(chunkers).chunk(text), step, rounds)
        took = sorted(seconds(step) for _ in range(rounds))[rounds // 2]
        results.append((method, ratio))
        print(f"| {method} | {took * 1000:.0f} | {ratio:.1f} |")
    return results


if __name__ == "__main__":
    main()
