"""The texts that every lesson and score stands on, and the questions asked of them.

The course has its own corpus (`data/corpus`, one invented world in documents of eight kinds) and its own gold
questions (`data/questions.jsonl`), each tied to the very characters that answer it. Two public data sets come on
request: Chroma's chunking benchmark ("Evaluating Chunking Strategies for Retrieval", 2024: five corpora, 472 questions)
and a novel, Alice's Adventures in Wonderland. They are read from the folder that the variable CHUNKLAB_DATA names, else
from the cache, else downloaded once; wherever they come from, they are checked by SHA-256. It serves whoever measures a
chunking method, and costs a few milliseconds.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunklab.chunk import BOM, check_choice, check_text

DATA = Path(__file__).resolve().parent.parent / "data"

_CHROMA = (
    "https://raw.githubusercontent.com/brandonstarxel/chunking_evaluation/d451fc4cf56e417b755994b4ca5212fd5057c0d2/"
    "chunking_evaluation/evaluation_framework/general_evaluation_data/"
)
# Project Gutenberg's eBook 11 in its edition of 2011; the address at Project Gutenberg itself gives a later edition.
_ALICE = (
    "https://raw.githubusercontent.com/amueller/word_cloud/6561fc48d4fc670eec31d4e9b0ab40155ac0d978/examples/alice.txt"
)
_CORPORA = {
    "chatlogs": "543a98f82b2a6a492349fd7f8c9d6c3e78d1a4af81d13c79a7fd513c3f65bda6",
    "finance": "1c48d0156820abc88e46e5c992fa0cd2708b07ae59a3771b2b18234b7208561f",
    "pubmed": "0fd9242ffb253695e5d0f0215cb79a66a2a8f1236591e764c60d370747684ced",
    "state_of_the_union": "6fc21d560d31eb2421e337596feea0f83f1fa9ca02c6c4e47bc26959d7531b37",
    "wikitexts": "74cafcdb771185ecb9f22cc41b73e2e44477e0636ecf9cf1f96fd6ee0f4b86c0",
}
# File: where it comes from, and its SHA-256.
PUBLIC = {
    "alice.txt": (_ALICE, "502852fbc4554f16a4ddce92d6262702894976a2b3a8c5504b02af93b55a067e"),
    "chroma/questions_df.csv": (
        _CHROMA + "questions_df.csv",
        "3ab3901889b8900f43775537bf12d36bd6614255fc59124faca31bede1dda7a3",
    ),
    **{f"chroma/corpora/{name}.md": (f"{_CHROMA}corpora/{name}.md", sha) for name, sha in _CORPORA.items()},
}


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """The least text that answers a question: `quote` is `text[start:end]` of the document."""

    document: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answer in a sentence ("" where the source gives none), its kind, and where the answer stands."""

    id: str
    question: str
    answer: str
    kind: str
    spans: tuple[GoldSpan, ...]


def load_corpus(folder: str | Path | None = None) -> dict[str, str]:
    """The documents of the course.

    Args:
        folder: the data folder, which holds `corpus`; the repository's `data` by default.

    Returns:
        File name to text, sorted by name, for every txt, md and py file that is not hidden; line ends as they are in
        the file, so that offsets hold.

    Raises:
        FileNotFoundError: no such folder, or nothing in it.
        ValueError: a file that is not UTF-8.
    """
    corpus = _data_folder(folder) / "corpus"
    files = (p for p in corpus.glob("[!.]*") if p.suffix in {".txt", ".md", ".py"} and p.is_file())
    paths = sorted(files, key=lambda p: p.name)
    if not paths:
        raise FileNotFoundError(f"no documents (txt, md, py) in {corpus}: {_WHERE_DATA_ARE}")
    return {path.name: _decode(path.read_bytes(), path.name) for path in paths}


def load_questions(kind: str | None = None, folder: str | Path | None = None) -> list[Question]:
    """The gold questions of the course, each checked against the corpus.

    Args:
        kind: only questions of this kind.
        folder: the data folder, which holds `questions.jsonl` and `corpus`; the repository's `data` by default.

    Returns:
        The questions, in the order of the file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a line that is no question, a quote that is not the text at its place, an unknown kind.
    """
    path = _data_folder(folder) / "questions.jsonl"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: {_WHERE_DATA_ARE}")
    documents = load_corpus(folder)
    questions: list[Question] = []
    faults: list[str] = []
    # Split at "\n" alone: a quote may hold other line ends, which JSON leaves as they are.
    for number, line in enumerate(_decode(path.read_bytes(), path.name).removeprefix(BOM).split("\n"), start=1):
        if line.strip():
            try:
                questions.append(question_of(line, documents, {q.id for q in questions}))
            except ValueError as error:
                faults.append(f"line {number}: {error}")
    if faults:
        more = [f"… and {len(faults) - 10} more"] if len(faults) > 10 else []
        if changed := [name for name, text in documents.items() if "\r\n" in text]:
            more.append(
                f"{', '.join(changed)}: Windows line ends (CRLF), which count in offsets; if git or an editor has put "
                "them there, check the files out again as they were committed"
            )
        raise ValueError("\n  ".join([f"{path.name} has {len(faults)} faults:", *faults[:10], *more]))
    if kind is None:
        return questions
    check_choice("kind", kind, sorted({q.kind for q in questions}))
    return [q for q in questions if q.kind == kind]


def load_benchmark() -> tuple[dict[str, str], list[Question]]:
    """Chroma's public chunking benchmark.

    Returns:
        The five documents, file name to text; and 472 questions with 790 gold spans, whose kind is the name of their
        corpus and whose answer is empty: the benchmark gives none.

    Raises:
        FileNotFoundError: the files are not here and cannot be downloaded.
        ValueError: a file that is not the published one.
    """
    documents = {f"{name}.md": _decode(_public(f"chroma/corpora/{name}.md"), name) for name in _CORPORA}
    table = _decode(_public("chroma/questions_df.csv"), "questions_df.csv")
    questions = []
    for number, row in enumerate(csv.DictReader(io.StringIO(table, newline="")), start=1):
        document = f"{row['corpus_id']}.md"
        spans = tuple(
            GoldSpan(document, int(ref["start_index"]), int(ref["end_index"]), ref["content"])
            for ref in json.loads(row["references"])
        )
        questions.append(Question(f"chroma_{number}", row["question"], "", row["corpus_id"], spans))
    return documents, questions


def load_novel() -> str:
    """Alice's Adventures in Wonderland (Project Gutenberg's eBook 11, without its licence pages).

    Returns:
        The text, 144,430 characters.

    Raises:
        FileNotFoundError: the file is not here and cannot be downloaded.
        ValueError: a file that is not the expected one.
    """
    return _decode(_public("alice.txt"), "alice.txt")


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Find a quote again in a text that a parser took from a PDF or DOCX.

    White space does not count, on either side, nor does a hyphen at the end of a line, be it one that the typesetter
    put there or one of the word's own.

    Args:
        text: the extracted text.
        quote: what to find.

    Returns:
        Start and end of its first place in the text, or None: the parser lost it, or the quote is blank.

    >>> find_quote("An exam-\\nple of  wrap, well-\\nknown too.", "example of wrap, well-known")
    (3, 34)
    """
    pattern = _GAP.join(map(_piece_pattern, _PIECES.findall(check_text(quote).strip())))
    found = re.search(pattern, check_text(text)) if pattern else None
    return found.span() if found else None


_HYPHEN = "[-\u00ad\u2010]"
_PIECES = re.compile(rf"{_HYPHEN}(?=\s*[\r\n])\s+|\S")
_GAP = rf"(?:\s|\u00ad|{_HYPHEN}(?=\s*[\r\n]))*"


def _piece_pattern(piece: str) -> str:
    """What stands for a character of the quote; a hyphen that ends one of its lines may be missing in the text."""
    if re.match(_HYPHEN, piece):
        return _HYPHEN + "?" * (len(piece) > 1)
    return re.escape(piece)


_WHERE_DATA_ARE = "the course's data stand in the folder data of the repository; work in a clone of it, or give folder="


def _data_folder(folder: str | Path | None) -> Path:
    folder = DATA if folder is None else Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {folder}: {_WHERE_DATA_ARE}")
    return folder


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 (byte {error.start}): save it as UTF-8") from None


def question_of(line: str, documents: dict[str, str], taken: set[str]) -> Question:
    """One line of questions.jsonl; ValueError says what is wrong with it."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    keys = ("id", "question", "answer", "kind")
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) and row[key].strip() for key in keys):
        raise ValueError(f"must be an object whose {', '.join(keys)} are texts")
    if row["id"] in taken:
        raise ValueError(f"{row['id']}: the id stands on an earlier line too")
    spans = row.get("spans")
    if not isinstance(spans, list) or not spans:
        raise ValueError(f"{row['id']}: spans must be a list of one or more")
    gold = tuple(_gold_span(span, documents, row["id"]) for span in spans)
    return Question(row["id"], row["question"], row["answer"], row["kind"], gold)


def _gold_span(span: Any, documents: dict[str, str], question: str) -> GoldSpan:
    try:
        gold = GoldSpan(span["document"], span["start"], span["end"], span["quote"])
    except (TypeError, KeyError):
        raise ValueError(f"{question}: a span must have document, start, end and quote") from None
    if not isinstance(gold.document, str) or gold.document not in documents:
        raise ValueError(f"{question}: there is no document {gold.document!r}")
    text = documents[gold.document]
    if not (type(gold.start) is type(gold.end) is int and 0 <= gold.start < gold.end <= len(text)):
        size = f"{len(text)} characters"
        raise ValueError(f"{question}: no span {gold.start!r} to {gold.end!r} in {gold.document} ({size})")
    there = text[gold.start : gold.end]
    if there != gold.quote:
        place = f"{gold.document} {gold.start} to {gold.end}"
        raise ValueError(f"{question}: the quote {gold.quote!r:.60} is not the text at {place}, {there!r:.60}")
    return gold


def _public(name: str) -> bytes:
    """One public file: from CHUNKLAB_DATA, else from the cache, else downloaded; checked in every case."""
    from chunklab.models.weights import cache_folder

    given = os.environ.get("CHUNKLAB_DATA")
    # A lesson runs in its own folder, so a relative name may be meant from the repository's.
    folders = [base / os.path.expanduser(given) for base in (Path.cwd(), DATA.parent)] if given else []
    cached = cache_folder() / "data" / name
    for path in [*(folder / name for folder in folders), cached]:
        if path.is_file():
            return _checked(path.read_bytes(), name, f"delete {path} and run this again")
    data = _checked(_download(name), name, "try again; if it stays so, the file has changed where it is published")
    with suppress(OSError):  # where nothing can be kept, it is downloaded again the next time
        cached.parent.mkdir(parents=True, exist_ok=True)
        temporary = cached.with_name(f"{cached.name}.{os.getpid()}.tmp")
        temporary.write_bytes(data)
        temporary.replace(cached)
    return data


def _checked(data: bytes, name: str, advice: str) -> bytes:
    found, expected = hashlib.sha256(data).hexdigest(), PUBLIC[name][1]
    if found != expected:
        raise ValueError(f"{name} is not the file expected (SHA-256 {found[:12]}…, not {expected[:12]}…): {advice}")
    return data


def _download(name: str) -> bytes:
    from http.client import HTTPException
    from urllib.request import urlopen

    url = PUBLIC[name][0]
    try:
        with urlopen(url, timeout=30) as reply:
            data = reply.read()
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(
            f"{name} is not here and cannot be downloaded from {url} ({error}): connect to the network, or put the "
            "file into a folder and name that folder in the environment variable CHUNKLAB_DATA"
        ) from None
    return _novel_alone(data) if name == "alice.txt" else data


def _novel_alone(data: bytes) -> bytes:
    """Project Gutenberg's file without the pages around the novel, with plain line ends."""
    data = data.replace(b"\r\n", b"\n")
    end = b"THE END\n"
    start = max(data.find(b"ALICE'S ADVENTURES IN WONDERLAND\n\nLewis Carroll"), 0)
    return data[start : data.rfind(end) + len(end)]
