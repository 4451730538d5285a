"""Run the benchmarks and write their tables into the page: `python tests/benchmarks/run.py`.

    python tests/benchmarks/run.py                     all of them, but best.py, which takes long
    python tests/benchmarks/run.py speed headings      these
    python tests/benchmarks/run.py best --kept rows    that one; options that are not known here go to each script

Each script runs in a process of its own, one after another, ours and its peers in it together, and prints tables. The
n-th table of a script stands in README.md between `<!-- script n -->` and `<!-- end -->`, and is written anew; one that
has no place yet is put behind the one before it. Everything else on the page is kept as it is, so that the prose may
say what the tables say and give no figures of its own. A script that fails keeps its tables, and the others go on.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER / "README.md"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run")
LONG = {"best"}  # only where it is asked for by name
OPTIONS = {"retrieval": ["--minilm"]}
_TABLE = re.compile(r"^\|.*\|$(?:\n^\|.*\|$)+", re.M)


def tables_of(printed: str) -> list[str]:
    """The Markdown tables in what a script prints, in order."""
    return _TABLE.findall(printed.replace("\r\n", "\n"))


def place(table: str, name: str, number: int, page: str) -> str:
    """The page with a table in its place; a ValueError where there is none for the first one of a script."""

    def block(which: int) -> re.Pattern[str]:
        return re.compile(rf"^<!-- {name} {which} -->\n.*?^<!-- end -->\n", re.M | re.S)

    written = f"<!-- {name} {number} -->\n\n{table}\n\n<!-- end -->\n"
    if block(number).search(page):
        return block(number).sub(lambda _: written, page)
    before = block(number - 1).search(page)
    if before is None:
        raise ValueError(
            f"{name}: the page has no place for its table {number}: put <!-- {name} 1 --> and <!-- end -->"
        )
    return f"{page[: before.end()]}\n{written}{page[before.end() :]}"


def without_rest(name: str, last: int, page: str) -> str:
    """The page without the tables of a script beyond its last one."""
    for number in count(last + 1):
        page, found = re.subn(rf"^<!-- {name} {number} -->\n.*?^<!-- end -->\n\n?", "", page, flags=re.M | re.S)
        if not found:
            return page


def machine(names: list[str]) -> str:
    """Where the figures are from, as a table."""
    busy = f"{os.getloadavg()[0]:.1f} cores before the run" if hasattr(os, "getloadavg") else "not known"
    rows = {
        "benchmarks": ", ".join(names),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        "what else it was busy with": busy,
    }
    return "\n".join(
        ["| the last run | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run scripts and write the page; gives how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which; all but best if none is given: {', '.join(NAMES)}"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="another page than README.md beside this file")
    options, others = parser.parse_known_args(arguments)
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(NAMES)}")
    names = options.names or [name for name in NAMES if name not in LONG]
    page = place(machine(names), "run", 1, options.page.read_text(encoding="utf-8"))
    failed = []
    for name in names:
        print(f"{name} …", flush=True)
        command = [sys.executable, str(FOLDER / f"{name}.py"), *OPTIONS.get(name, []), *others]
        done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", env=os.environ | {"PYTHONUTF8": "1"})
        print(done.stdout, flush=True)
        tables = tables_of(done.stdout)
        if done.returncode or not tables:
            failed.append(name)
            continue
        for number, table in enumerate(tables, start=1):
            page = place(table, name, number, page)
        page = without_rest(name, len(tables), page)
        options.page.write_text(page, encoding="utf-8", newline="\n")
    print(f"written to {options.page.name}: read whether the prose there still says what the tables say")
    print(*(f"{name} failed: its tables are those of before" for name in failed), sep="\n", end="")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
