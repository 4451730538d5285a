"""Chunks in a CSV file: what a person can look at in a spreadsheet, and what a knowledge base takes for an upload."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from pathlib import Path

from chunklab.chunk import Chunk
from chunklab.chunkers.words import count_words

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(chunks: Iterable[Chunk], path: str | os.PathLike[str]) -> None:
    """Write chunks into a CSV file, ready for a spreadsheet or for the upload to a knowledge base.

    The columns are document, id, path (the headings, a list in JSON), text, start, end, words. It is UTF-8 with a byte
    order mark, without which Excel takes it for something else; Python reads it with encoding="utf-8-sig". A cell that
    a spreadsheet would take for a formula, since it begins with = + - @, a tab or a line end, has an apostrophe before
    it: what a stranger wrote must not calculate, or call, anything. The file is written whole or not at all.

    Args:
        chunks: of one document or of many; those of other chunkers have no path.
        path: the file; one that is there is replaced.

    Raises:
        ValueError: a path that is a folder, a device or a pipe.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "chunks.csv")
    ...     chunk = Chunk("# Cats\\n\\nThey purr.", 0, 18, "pets.md", "pets.md_0", metadata={"path": ["Cats"]})
    ...     write_csv([chunk], file)
    ...     print(file.read_text(encoding="utf-8-sig"))
    document,id,path,text,start,end,words
    pets.md,pets.md_0,"[""Cats""]","# Cats
    <BLANKLINE>
    They purr.",0,18,4
    <BLANKLINE>
    """
    path = Path(path).resolve()  # a link stays one
    if path.exists() and not path.is_file():
        raise ValueError(f"path={str(path)!r}: must be a file that can be replaced, not a folder or a device")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["document", "id", "path", "text", "start", "end", "words"])
            for c in chunks:
                titles = json.dumps(c.metadata.get("path", []), ensure_ascii=False)
                words = c.metadata.get("words") or count_words(c.text)
                rows.writerow([_cell(c.document), _cell(c.id), titles, _cell(c.text), c.start, c.end, words])
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _cell(text: str) -> str:
    return "'" + text if text.startswith(_FORMULA) else text
