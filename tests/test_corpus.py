"""The corpus, the gold questions and the public data sets are what they say, or an error says what to do."""

import json
import os
import urllib.request
from http.client import IncompleteRead
from io import BytesIO
from urllib.error import URLError

import pytest

from chunklab import corpus
from chunklab.corpus import GoldSpan, find_quote, load_benchmark, load_corpus, load_novel, load_questions

public_data = pytest.mark.skipif(
    not os.environ.get("CHUNKLAB_DATA"), reason="needs the public data: let CHUNKLAB_DATA name their folder"
)
TEXT = "The bell is low.\r\nIt weighs 3 t.\n\u2028Näïve 鐘 end."


def write(folder, rows, **files):
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    for name, text in (files or {"a.txt": TEXT}).items():
        (folder / "corpus" / name.replace("_", ".")).write_bytes(text.encode())
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "questions.jsonl").write_bytes("\n".join(lines).encode())
    return folder


def question(quote="3 t", document="a.txt", text=TEXT, **changes):
    start = text.find(quote)
    span = {"document": document, "start": start, "end": start + len(quote), "quote": quote}
    return {"id": "q1", "question": "Weight?", "answer": "Three tons.", "kind": "one fact", "spans": [span]} | changes


def test_documents_keep_their_line_ends_and_come_in_order(tmp_path):
    write(tmp_path, [], b_md="# B\r\n", a_txt=TEXT, c_py="x = 1\n", d_docx="no", e_pdf="no")
    assert load_corpus(tmp_path) == {"a.txt": TEXT, "b.md": "# B\r\n", "c.py": "x = 1\n"}
    assert list(load_corpus(tmp_path)) == ["a.txt", "b.md", "c.py"]


def test_questions_with_several_spans_and_kinds(tmp_path):
    second = question(id="q2", kind="a list", spans=question("low")["spans"] + question("鐘")["spans"])
    write(tmp_path, [question(), "", second])
    first, other = load_questions(folder=tmp_path)
    assert first.spans == (GoldSpan("a.txt", TEXT.find("3 t"), TEXT.find("3 t") + 3, "3 t"),)
    assert [span.quote for span in other.spans] == ["low", "鐘"]
    assert load_questions("a list", folder=tmp_path) == [other]
    with pytest.raises(ValueError, match="kind='table'.*'a list', 'one fact'"):
        load_questions("table", folder=tmp_path)


@pytest.mark.parametrize("line_end", ["\r\n", "\n\u2028", "\x85"])
def test_a_quote_may_hold_any_line_end(tmp_path, line_end):
    text = f"one{line_end}two"
    write(tmp_path, [question(text, text=text)], a_txt=text)
    assert load_questions(folder=tmp_path)[0].spans[0].quote == text


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{not json", "line 1: not JSON"),
        ("[]", "must be an object"),
        ("[" * 200_000, "line 1: not JSON"),
        (f'{{"id": {"9" * 5000}}}', "line 1: not JSON"),
        (question(document=["a.txt"]), r"q1: there is no document \['a.txt'\]"),
        (question(document={}), "q1: there is no document {}"),
        (question(kind=""), "id, question, answer, kind are texts"),
        (question(answer=None), "id, question, answer, kind are texts"),
        (question(spans=[]), "q1: spans must be a list of one or more"),
        (question(spans=[{"document": "a.txt"}]), "q1: a span must have document, start, end and quote"),
        (question(document="z.txt"), "q1: there is no document 'z.txt'"),
        (question("absent"), r"q1: no span -1 to 5 in a.txt \(\d+ characters\)"),
        (question(spans=[{"document": "a.txt", "start": 3, "end": 3, "quote": ""}]), "no span 3 to 3"),
        (question(spans=[{"document": "a.txt", "start": 0, "end": True, "quote": "T"}]), "no span 0 to True"),
        (question(spans=[{"document": "a.txt", "start": 0, "end": 3, "quote": "the"}]), "'the' is not the text.*'The'"),
    ],
)
def test_a_faulty_question_is_named(tmp_path, row, says):
    with pytest.raises(ValueError, match=says):
        load_questions(folder=write(tmp_path, [row]))


def test_a_byte_order_mark_in_front_is_no_fault(tmp_path):  # Windows editors put one there
    write(tmp_path, ["\ufeff" + json.dumps(question()), question(id="q2")])
    assert [q.id for q in load_questions(folder=tmp_path)] == ["q1", "q2"]


def test_line_ends_that_git_has_changed_are_told_as_the_cause(tmp_path):
    text = "One.\nTwo.\nThree.\n"
    rows = [question("Two", text=text)]
    load_questions(folder=write(tmp_path, rows, a_txt=text))
    write(tmp_path, rows, a_txt=text.replace("\n", "\r\n"), b_txt="plain\n")
    with pytest.raises(ValueError, match=r"(?s)1 faults.*a.txt: Windows line ends \(CRLF\).*check the files out again"):
        load_questions(folder=tmp_path)


def test_what_is_hidden_or_no_file_is_no_document(tmp_path):
    write(tmp_path, [])
    (tmp_path / "corpus" / "folder.txt").mkdir()
    (tmp_path / "corpus" / "._a.txt").write_bytes(b"\0\5\x16\7")  # as macOS leaves beside a file on a stick
    assert list(load_corpus(tmp_path)) == ["a.txt"]


def test_all_faults_are_told_at_once(tmp_path):
    write(tmp_path, [question(), question(), question("absent", id="q3")])
    with pytest.raises(ValueError, match=r"2 faults:\n  line 2: q1: the id .*\n  line 3: q3"):
        load_questions(folder=tmp_path)


def test_missing_data_say_where_they_should_be(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere.*clone"):
        load_corpus(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="no documents"):
        load_corpus(tmp_path)
    with pytest.raises(FileNotFoundError, match="questions.jsonl is missing"):
        load_questions(folder=tmp_path)


def test_a_file_of_another_encoding_is_named(tmp_path):
    write(tmp_path, [])
    (tmp_path / "corpus" / "b.txt").write_bytes("naïve".encode("latin-1"))
    with pytest.raises(ValueError, match="b.txt is not UTF-8"):
        load_corpus(tmp_path)


@public_data
def test_the_benchmark_is_the_published_one():
    documents, questions = load_benchmark()
    assert sorted(documents) == ["chatlogs.md", "finance.md", "pubmed.md", "state_of_the_union.md", "wikitexts.md"]
    assert len(questions) == len({q.id for q in questions}) == 472
    assert sum(len(q.spans) for q in questions) == 790
    assert {f"{q.kind}.md" for q in questions} == set(documents)
    for each in questions:
        for span in each.spans:
            assert documents[span.document][span.start : span.end] == span.quote


@public_data
def test_the_novel_is_whole():
    novel = load_novel()
    assert len(novel) == 144_430
    assert novel.startswith("ALICE'S ADVENTURES") and novel.endswith("THE END\n")


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHUNKLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CHUNKLAB_DATA", raising=False)
    return tmp_path


def test_a_relative_name_of_the_data_folder_holds_in_any_folder(empty_cache, monkeypatch):
    (empty_cache / "given" / "notebooks").mkdir(parents=True)
    (empty_cache / "given" / "data").mkdir()
    (empty_cache / "given" / "data" / "alice.txt").write_text("not Alice")
    monkeypatch.setattr(corpus, "DATA", empty_cache / "given" / "data")
    monkeypatch.setenv("CHUNKLAB_DATA", "data")
    for folder in ("", "notebooks"):
        monkeypatch.chdir(empty_cache / "given" / folder)
        with pytest.raises(ValueError, match="not the file expected"):
            load_novel()


@pytest.mark.parametrize("error", [URLError("no route"), IncompleteRead(b"no route", 100)], ids=repr)
def test_without_a_network_the_error_says_what_to_do(empty_cache, monkeypatch, error):
    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(FileNotFoundError, match=r"alice.txt is not here.*https://.*(no route|8 bytes).*CHUNKLAB_DATA"):
        load_novel()
    monkeypatch.setenv("CHUNKLAB_DATA", "~nobody-of-this-name/elsewhere")
    with pytest.raises(FileNotFoundError, match="chroma/corpora/.*CHUNKLAB_DATA"):
        load_benchmark()


def test_a_file_that_is_not_the_expected_one_is_refused_and_not_kept(empty_cache, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **kwargs: BytesIO(b"<html>Sign in</html>"))
    with pytest.raises(ValueError, match="alice.txt is not the file expected"):
        load_novel()
    assert not list(empty_cache.rglob("alice*"))
    (empty_cache / "alice.txt").write_text("THE END\n")
    monkeypatch.setenv("CHUNKLAB_DATA", str(empty_cache))
    with pytest.raises(ValueError, match="not the file expected.*delete"):
        load_novel()


@pytest.fixture
def novel():
    return load_novel().encode()


@public_data
def test_a_download_is_made_once_and_leaves_the_licence_pages_out(novel, empty_cache, monkeypatch):
    published = b"Project Gutenberg's Alice\n\n*** START ***\n\n\n" + novel + b"\n\nEnd of Project Gutenberg's Alice\n"
    calls = []

    def serve(url, timeout):
        calls.append(url)
        return BytesIO(published.replace(b"\n", b"\r\n"))

    monkeypatch.setattr(urllib.request, "urlopen", serve)
    assert load_novel() == load_novel() == novel.decode()
    assert not list(empty_cache.rglob("*.tmp"))
    assert calls == [corpus.PUBLIC["alice.txt"][0]]


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ("It is a test.", "a test", "a test"),
        ("It is\n  a\ttest.", "is a test", "is\n  a\ttest"),
        ("Glued words: beforetable.", "before table", "beforetable"),
        ("Sp lit words", "Split words", "Sp lit words"),
        ("an exam-\nple of it", "an example", "an exam-\nple"),
        ("an exam\u00adple of it", "an example", "an exam\u00adple"),
        ("a well-\nknown one", "well-known one", "well-\nknown one"),
        ("a well-\r\n  known one", "well-known one", "well-\r\n  known one"),
        ("a well-known one", "well-\nknown one", "well-known one"),
        ("an example", "exam-\nple", "example"),
        ("a well\u2010known one", "well-known", "well\u2010known"),
        ("f(x) = [a+b]* cost $3.", "[a+b]* cost $3.", "[a+b]* cost $3."),
        ("twice here, twice there", "twice", "twice"),
    ],
)
def test_a_quote_is_found_again_white_space_and_line_end_hyphens_aside(text, quote, found):
    start, end = find_quote(text, quote)
    assert text[start:end] == found and start == text.find(found)


@pytest.mark.parametrize(("text", "quote"), [("a b", " \n"), ("", "a"), ("wellknown", "well-known"), ("ab", "abc")])
def test_a_quote_that_is_lost_or_blank_is_none(text, quote):
    assert find_quote(text, quote) is None


def test_looking_for_a_quote_takes_no_longer_than_the_text_is_long():
    assert find_quote("a " * 200_000 + "- \n" * 1000, "a " * 40 + "b") is None


def test_a_cache_that_cannot_be_written_does_not_lose_what_was_downloaded(empty_cache, monkeypatch):
    (empty_cache / "cache").write_text("a file")
    monkeypatch.setattr(corpus, "_checked", lambda data, name, advice: data)
    monkeypatch.setattr(urllib.request, "urlopen", lambda *args, **kwargs: BytesIO(b"THE END\n"))
    assert load_novel() == "THE END\n"
