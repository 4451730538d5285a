"""A file of questions, one JSON object a line, which a model writes and a person edits.

For `make_testset` and whoever keeps gold questions about documents of their own. In a line that is written by hand, the
question, the answer and the quote of each span are enough: the rest is put in, and the places of the quotes are looked
up. Lines that are there are never rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chunklab.chunk import BOM
from chunklab.corpus import Question, find_quote, question_of
from chunklab.models.tokens import well_formed

BY_HAND = "by hand"


def read_questions(path: Path, documents: Mapping[str, str]) -> list[Question]:
    """The questions of a file, each checked against the documents; what a person may leave out is put in.

    Raises:
        ValueError: lines that are no questions about these documents; they are named.
    """
    try:
        lines = path.read_bytes().decode("utf-8").removeprefix(BOM).split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 (byte {error.start}): save it as UTF-8") from None
    found: list[Question] = []
    faults = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found.append(question_of(_filled(line, number, documents), dict(documents), {q.id for q in found}))
            except ValueError as error:
                faults.append(f"line {number}: {error}")
    if faults:
        raise ValueError("\n  ".join([f"path={str(path)!r}: {len(faults)} lines are no questions:", *faults[:10]]))
    return found


def _filled(line: str, number: int, documents: Mapping[str, str]) -> str:
    """A line with its id, its kind, and the places of its quotes."""
    try:
        row = json.loads(line)
        spans = [dict(span) for span in row["spans"]]
        filled = {"id": f"{BY_HAND} {number}", "kind": BY_HAND, **row, "spans": spans}
    except (ValueError, LookupError, TypeError, RecursionError):
        return line  # which says itself what is wrong with it
    for span in spans:
        name: Any = span.setdefault("document", next(iter(documents)) if len(documents) == 1 else None)
        if "start" not in span and isinstance(span.get("quote"), str) and name in documents:
            if (place := find_quote(documents[name], span["quote"])) is None:
                raise ValueError(f"the quote {span['quote']!r:.60} is not in {name}")
            span["start"], span["end"] = place
            span["quote"] = documents[name][place[0] : place[1]]
    return json.dumps(filled)


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Put questions at the end of a file, whose other lines stay as they are."""
    before = path.read_bytes().decode("utf-8") if path.exists() else ""  # with the line ends that it has
    lines = [_line(asdict(one)) for one in questions]
    write_whole(path, before + ("\n" if before and not before.endswith("\n") else "") + "".join(lines))


def _line(row: dict[str, Any]) -> str:
    line = json.dumps(row, ensure_ascii=False)
    # Half a character, which a bad decoder left in the document, cannot be written as it is.
    return (line if well_formed(line) == line else json.dumps(row)) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place and move it there, so that nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8", newline="\n")
    new.replace(path)
