"""Chunks in a CSV file: whole, as they were, and harmless."""

import csv
import json
import os

import pytest

from chunklab import Chunk, FixedSizeChunker, HeadingChunker, load_corpus, read_document, write_csv


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_batch_of_files_becomes_one_csv(tmp_path):
    for name, text in load_corpus().items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    chunker, documents = HeadingChunker(), [read_document(path) for path in sorted(tmp_path.glob("*.md"))]
    chunks = [chunk for document in documents for chunk in chunker.chunk(document.text, document.id)]
    write_csv(chunks, tmp_path / "chunks.csv")
    found = rows(tmp_path / "chunks.csv")
    assert list(found[0]) == ["document", "id", "path", "text", "start", "end", "words"]
    assert len({row["document"] for row in found}) == 3 and len({row["id"] for row in found}) == len(chunks)
    for row, c in zip(found, chunks, strict=True):
        assert (row["document"], row["id"], row["text"]) == (c.document, c.id, c.text)
        assert json.loads(row["path"]) == c.metadata["path"]
        assert [int(row[key]) for key in ("start", "end", "words")] == [c.start, c.end, c.metadata["words"]]
    assert (tmp_path / "chunks.csv").read_bytes().startswith(b"\xef\xbb\xbfdocument,")


@pytest.mark.parametrize("text", ['say "hi", she; said\r\nok', "tab\there", "漢字 é 👩‍🔬", "nul \0", "a,b\n\nc"])
def test_text_comes_back_as_it_was(tmp_path, text):
    write_csv([Chunk(text, 0, len(text))], tmp_path / "c.csv")
    assert rows(tmp_path / "c.csv")[0]["text"] == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "- item", "\t=1", "\r=1", "\n=1", "＝1"])
def test_a_formula_is_no_formula(tmp_path, text):
    write_csv([Chunk(text, 0, len(text), text, text)], tmp_path / "c.csv")
    (row,) = rows(tmp_path / "c.csv")
    assert row["text"] == row["document"] == row["id"] == "'" + text


def test_chunks_of_any_chunker_can_be_written(tmp_path):
    write_csv(FixedSizeChunker(7).chunk("one two three"), tmp_path / "c.csv")
    found = [(row["text"], row["path"], row["words"]) for row in rows(tmp_path / "c.csv")]
    assert found == [("one two", "[]", "2"), (" three", "[]", "1")]
    write_csv([], tmp_path / "c.csv")
    assert rows(tmp_path / "c.csv") == []


def test_a_csv_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "c.csv"
    write_csv([Chunk("old", 0, 3)], path)

    def broken():
        yield Chunk("new", 0, 3)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_csv(broken(), path)
    assert rows(path)[0]["text"] == "old" and list(tmp_path.iterdir()) == [path]
    write_csv([Chunk("half \ud83d pair", 0, 11)], str(path))
    assert rows(path)[0]["text"] == "half ? pair"


@pytest.mark.skipif(os.name == "nt", reason="links and pipes are another thing on Windows")
def test_a_link_stays_a_link_and_a_device_is_not_replaced(tmp_path):
    chunks = HeadingChunker().chunk("# A\n\nwords", "a.md")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_csv(chunks, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "real.csv").read_text(encoding="utf-8-sig").count(
        "a.md"
    ) == 2
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match="must be a file that can be replaced"):
            write_csv(chunks, path)
