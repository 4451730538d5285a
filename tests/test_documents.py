"""read_document: its arguments, what it refuses, text and its encodings, and that gold is found again."""

import json
import os
import pickle
import re
import socket
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from docx import Document as Word
from files import make_pdf
from hypothesis import given
from hypothesis import strategies as st

from chunklab import Document, documents, load_questions, read_document
from chunklab.corpus import DATA, find_quote
from chunklab.documents import DocumentError
from chunklab.formats import elements
from chunklab.formats.text import decode, repair

LINES = "one\r\ntwo\nthree\rfour\u2028five"


def write(folder, name, content, encoding="utf-8"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def read(folder, name, content, **options):
    return read_document(write(folder, name, content), **options)


def word(path, *paragraphs):
    document = Word()
    for text in paragraphs:
        document.add_paragraph(text)
    document.save(path)
    return path


@pytest.fixture
def five(tmp_path):
    """Five elements, "one" to "five", in every format: format to path."""
    texts = ["one", "two", "three", "four", "five"]
    return {
        "txt": write(tmp_path, "a.txt", "\n".join(texts)),
        "md": write(tmp_path, "a.md", "\n".join(texts)),
        "html": write(tmp_path, "a.html", "".join(f"<p>{text}" for text in texts)),
        "docx": word(tmp_path / "a.docx", *texts),
        "pdf": write(tmp_path, "a.pdf", make_pdf(*texts)),
    }


# What a document is.


def test_a_document_is_frozen_and_compares_without_its_metadata(five):
    document = read_document(five["txt"])
    assert document == Document("a.txt", "one\ntwo\nthree\nfour\nfive")
    assert document.metadata["source"] == document.id == "a.txt"
    with pytest.raises(AttributeError):
        document.text = ""


@pytest.mark.parametrize("kind", ["txt", "md", "html", "docx", "pdf"])
def test_metadata_are_json_and_count_the_elements(five, kind):
    metadata = read_document(five[kind], start=1, end=1).metadata
    assert metadata["elements"] == 5 and metadata["taken"] == (2, 4) and metadata["warnings"] == []
    json.dumps(metadata)


# Elements: skipped, or taken as a range (Ragu).


@pytest.mark.parametrize("kind", ["txt", "md", "html", "docx", "pdf"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "one two three four five"),
        ({"start": 2}, "three four five"),
        ({"end": 2}, "one two three"),
        ({"start": 1, "end": 3}, "two"),
        ({"start": 2, "end": 3, "as_range": True}, "two three"),
        ({"start": 4, "end": 4, "as_range": True}, "four"),
        ({"start": 4, "end": 99, "as_range": True}, "four five"),
        ({"filters": ["^t", "iv"]}, "one four"),
        ({"start": 1, "filters": ["(?i)TWO"]}, "three four five"),
    ],
)
def test_skipping_ranges_and_filters_mean_the_same_in_every_format(five, kind, options, expected):
    assert read_document(five[kind], **options).text.split() == expected.split()


@pytest.mark.parametrize("kind", ["txt", "html", "docx", "pdf"])
@pytest.mark.parametrize("options", [{"start": 5}, {"start": 3, "end": 2}, {"start": 6, "end": 9, "as_range": True}])
def test_a_range_that_leaves_nothing_is_an_error(five, kind, options):
    with pytest.raises(DocumentError, match=rf"a\.{kind} has 5 \w+, and start=\d, end=\d leaves none"):
        read_document(five[kind], **options)


def test_a_filter_that_would_take_for_ever_is_stopped_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_FILTER_SECONDS", 0.1)
    long = "four" * 200 + "!"  # each "four" can be read in two ways
    word(tmp_path / "a.docx", long)
    for name, content in {"a.txt": long, "a.html": f"<p>{long}", "a.pdf": make_pdf(long)}.items():
        write(tmp_path, name, content)
    for path in tmp_path.iterdir():
        refused(path, r"is not filtered: the filter '\(f\|.*' takes more than", filters=["no", "(f|ou|our|r)+$"])


def test_filters_follow_the_rules_of_re(tmp_path):
    lines = ["Straße 12", "STRASSE ١٢", "word", "a b", "İ", "ſ"]
    path = write(tmp_path, "a.txt", "\n".join(lines))
    for pattern in (
        r"(?i)strasse", r"\d\d$", r"(?a)\d\d$", r"^\w+$", r"(?x) a \  b", r"(?i)s", r"(?i)i", "",
        re.compile("STRA", re.IGNORECASE), re.compile(r"^\w+$", re.ASCII), re.compile("a b", re.VERBOSE),
        re.compile("w o r d", re.VERBOSE | re.ASCII | re.IGNORECASE),
    ):  # fmt: skip
        kept = [line for line in lines if not re.search(pattern, line)]
        assert read_document(path, filters=[pattern]).text.splitlines() == kept, pattern


def test_filters_may_leave_nothing(five):
    assert {read_document(path, filters=["."]).text for path in five.values()} == {""}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": -1}, "start=-1: .* 0 or more"),
        ({"end": -1}, "end=-1: .* 0 or more"),
        ({"start": 1.0}, "start=1.0: .* whole number"),
        ({"end": True}, "end=True: .* whole number"),
        ({"start": 0, "end": 3, "as_range": True}, "start=0: .* 1 or more"),
        ({"start": 3, "end": 2, "as_range": True}, "end=2: must be start=3 or more"),
        ({"as_range": 1}, "as_range=1: must be True or False"),
        ({"filters": ["("]}, r"filters holds '\(': not a regular expression"),
        ({"filters": ["a{99999999999999}"]}, "filters holds .*: not a regular expression"),
        ({"filters": [b"a"]}, "filters holds b'a'"),
        ({"filters": "abc"}, "filters='abc': must be a list"),
        ({"clean": "hyphens"}, "clean='hyphens': must be a list of some of 'headers', 'hyphens', 'spaces'"),
        ({"clean": ["hyphen"]}, r"clean=\['hyphen'\]: must be"),
        ({"base": 3}, "base=3: must be the path of a folder"),
        ({"base": ""}, "base='': must be the path of a folder"),
        ({"path": 3}, "path=3: must be the path of a file"),
        ({"path": ""}, "path='': must be the path of a file"),
    ],
)
def test_bad_arguments_are_refused_before_the_file_is_touched(options, says):
    with pytest.raises(ValueError, match=says) as caught:
        read_document(**{"path": "no/such/file.txt"} | options)
    assert not isinstance(caught.value, DocumentError)


# Files that are not read.


def refused(path, says, **options):
    with pytest.raises(DocumentError, match=says) as caught:
        read_document(path, **options)
    assert isinstance(caught.value, OSError) and isinstance(caught.value, ValueError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # it can come from another process


def test_each_file_that_cannot_be_read_has_its_own_error(tmp_path):
    refused(tmp_path / "no.txt", "^no.txt is missing")
    refused(tmp_path, "is a folder")
    refused(write(tmp_path, "a.xls", "x"), r"'.xls' is none of .txt, .*\.docx. Save it as one of these")
    refused(write(tmp_path, "no_ending", "x"), "'' is none of")
    refused(tmp_path / ("a" * 300 + ".txt"), "cannot be opened|is missing")
    for ending in ("txt", "md", "html", "pdf", "docx"):
        refused(write(tmp_path, f"a.{ending}", ""), f"^a.{ending} is empty")
    for name, content in {"b.txt": " \n\ufeff\t", "b.html": "<p> </p><script>x</script>", "c.md": "\ufeff"}.items():
        refused(write(tmp_path, name, content), "holds no text")
    for number, blank in enumerate(["\u00a0\u3000", "\u2028\x0c\u2003", "\ufeff\ufeff \ufeff"]):
        refused(write(tmp_path, f"b{number}.txt", blank), "holds no text, only white space")
    refused(word(tmp_path / "b.docx", " "), "holds no text")
    refused(write(tmp_path, "b.pdf", "text"), "is no PDF: it does not begin as one")
    refused(write(tmp_path, "b.pdf", b"PK\x03\x04"), "is no PDF: it is a Word file or another ZIP archive")
    refused(write(tmp_path, "d.docx", make_pdf("x")), "is no Word file but a PDF: give it the ending")
    refused(write(tmp_path, "d.docx", "text"), "is damaged, or no Word file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_pipes_devices_and_sockets_are_refused_and_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.txt")
    refused(tmp_path / "pipe.txt", "is a device, a pipe or a socket")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    refused(tmp_path / "zero.txt", "is a device")
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.txt")
        refused("socket.txt", "is a device, a pipe or a socket")


def test_a_file_has_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    assert read(tmp_path, "a.txt", "1234567890").text == "1234567890"
    refused(write(tmp_path, "a.txt", "12345678901"), "is too large: 11 bytes, and at most 10 are read")


def test_a_text_has_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(elements, "MAX_CHARACTERS", 100)
    for name in ("a.txt", "a.html"):
        refused(write(tmp_path, name, "x" * 101), "holds more text than can be read at once: at most 100")
    refused(word(tmp_path / "a.docx", "x" * 101), "holds more text")
    refused(write(tmp_path, "a.pdf", make_pdf("x" * 60, "y" * 60)), "holds more text")


# sec-02: nothing outside the base.

OUTSIDE = ["../outside.txt", "/etc/hostname", "a/../../outside.txt", "a/../../b.md", "../base2/x.txt", "..", "link.txt"]
OUTSIDE += ["linked/outside.txt", "a/./../../outside.txt", "no/../../outside.txt"]


@pytest.fixture
def base(tmp_path):
    write(tmp_path, "outside.txt", "secret")
    for folder in ("base/a", "base2"):
        (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / "base2", "x.txt", "secret")
    write(tmp_path / "base" / "a", "in.txt", "inside")
    try:
        (tmp_path / "base" / "link.txt").symlink_to("../outside.txt")
        (tmp_path / "base" / "linked").symlink_to("..")
        (tmp_path / "base" / "near.txt").symlink_to("a/in.txt")
    except OSError:
        pytest.skip("links may not be made here")
    return tmp_path / "base"


@pytest.mark.parametrize("name", OUTSIDE)
def test_sec_02_nothing_outside_the_base_is_read(base, name):
    refused(name, "is refused: it is outside", base=base)
    if not name.startswith("/"):
        refused(base / name, "is refused: it is outside", base=base)


@pytest.mark.parametrize("name", ["ok\0.txt", "a/in.txt\0.pdf", "\0"])
def test_sec_02_nul_is_refused_with_and_without_a_base(base, name):
    refused(name, "a path holds no NUL", base=base)
    refused(name, "a path holds no NUL")


@pytest.mark.skipif(os.sep != "/", reason="a backslash parts folders here")
@pytest.mark.parametrize("name", ["..\\win.txt", "a\\in.txt", "C:\\win.txt", "\\\\host\\share\\x.txt"])
def test_sec_02_backslashes_are_refused_below_a_base(base, name):
    write(base, name, "x")
    refused(name, "no backslash", base=base)


@pytest.mark.parametrize("name", ["a/in.txt", "a/../a/in.txt", "./a//in.txt", "near.txt", "linked/base/a/in.txt"])
def test_what_is_inside_the_base_is_read_and_named_by_its_place(base, name):
    for path in (name, base / name):
        assert read_document(path, base=base).id == "a/in.txt"
    assert read_document(path, base=str(base)).text == "inside"


def test_a_link_is_of_the_type_that_its_own_name_says(base):
    write(base, "blob", "# One")
    (base / "page.md").symlink_to("blob")
    assert read_document(base / "page.md").metadata["format"] == "markdown"
    assert read_document("page.md", base=base) == Document("blob", "# One")


def test_a_relative_path_may_start_from_the_working_folder(base, monkeypatch):
    monkeypatch.chdir(base.parent)
    assert read_document("base/a/in.txt", base="base").id == read_document("a/in.txt", base="base").id == "a/in.txt"
    refused("outside.txt", "^outside.txt is missing", base="base")  # not ./outside.txt, which is there
    refused("base2/x.txt", "^base2/x.txt is missing", base="base")
    refused("x.txt", "base='base/a/in.txt' is no folder", base="base/a/in.txt")


def test_a_circle_of_links_is_an_error(base):
    (base / "round.txt").symlink_to("round.txt")
    for options in ({}, {"base": base}):
        refused(base / "round.txt", "cannot be opened|cannot be followed|is missing", **options)


@pytest.mark.skipif(sys.platform != "linux", reason="a file name is bytes on Linux only")
def test_a_file_name_that_is_no_text_gives_an_id_that_is_one(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xefve.txt"))
    path.write_bytes(b"x")
    read_document(path).id.encode("utf-8")
    read_document(path, base=tmp_path).id.encode("utf-8")


def test_no_network_is_used(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    page = '<!DOCTYPE html SYSTEM "http://h/x.dtd"><link href="http://h/a.css"><img src="http://h/i.png"><p>text'
    assert read(tmp_path, "a.html", page).text == "text"


# Text: lines, encodings, what no text may hold.


def test_line_ends_stay_as_they_are(tmp_path):
    assert read(tmp_path, "a.txt", LINES).text == LINES
    assert read(tmp_path, "a.txt", LINES, start=1, end=1).text == "two\nthree\rfour\u2028"
    assert read(tmp_path, "a.txt", LINES, filters=["^t.*e$", "^five$"]).text == "one\r\ntwo\nfour\u2028"


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_uni_05_a_byte_order_mark_is_no_text(tmp_path, name, encoding):
    text = "# One\na\n# Two 鐘 👩‍🔬\nb\n"
    document = read(tmp_path, name, text.encode(encoding))
    assert document.text == text
    assert document.metadata["encoding"] == encoding.removesuffix("-sig") and not document.metadata["encoding_guessed"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
def test_uni_05_nor_is_a_second_one_of_files_that_were_joined(tmp_path, encoding):
    assert read(tmp_path, "a.txt", "\ufeff\ufeff# One\n".encode(encoding)).text == "# One\n"


def test_uni_05_also_big_endian_and_in_html(tmp_path):
    assert read(tmp_path, "a.txt", b"\xfe\xff" + "# One".encode("utf-16-be")).text == "# One"
    assert read(tmp_path, "a.html", "\ufeff<h1>One</h1><p>ï").text == "# One\n\nï"
    assert read(tmp_path, "a.html", "<h1>鐘</h1>".encode("utf-16")).text == "# 鐘"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ok \ud835 tail \x00 end", "ok � tail  end"),
        ("\ud83d\ude00 \ude00\ud83d", "😀 ��"),
        ("\x00\x00a", "a"),
        ("a\x00b", "ab"),
        ("\x01a\x00b", "\x01ab"),
        ("a b\x00c", "a bc"),
        ("abcdef\x00\x00", "abcdef"),
        ("plain", "plain"),
    ],
)
def test_uni_06_surrogates_are_paired_or_replaced_and_nul_removed(tmp_path, text, expected):
    assert repair(text) == expected
    for encoding in ("utf-8", "utf-16"):
        if not text.startswith("\0"):  # else it is taken for UTF-16 or no text
            assert read(tmp_path, "a.txt", text.encode(encoding, "surrogatepass")).text == expected
    expected.encode("utf-8")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "caf\u00e9"),
        ("cp1252", "It\u2019s the \u201cowner\u2019s\u201d fault \u2014 5 \u20ac"),
        ("cp1252", "Die Größe der Straße überrascht. Schöne Grüße aus München."),
        ("cp1252", "plain words in many lines\n" * 5000 + "and at last a naïve one"),
        ("cp1250", "Zażółć gęślą jaźń, proszę państwa. Wszystko będzie dobrze."),
        ("cp1251", "Привет, это русский текст для проверки кодировки."),
        ("cp1253", "Γειά σου Κόσμε, αυτό είναι ελληνικό κείμενο."),
        ("cp932", "これは日本語のテキストです。文字コードの確認。"),
        ("gb18030", "这是中文文本,用于测试编码。"),
        ("utf-16-le", "no mark, but every other byte is NUL"),
        ("utf-16-be", "no mark, but every other byte is NUL"),
        ("utf-32-le", "no mark, but two bytes of four are NUL 鐘 👩‍🔬"),
        ("utf-32-be", "no mark, but two bytes of four are NUL 鐘 👩‍🔬"),
        ("utf-32-le", "日本語"),
        ("utf-32-be", "日本語"),
        ("cp1252", "plain words in one line " * 9000 + "and at last a naïve one"),
    ],
)
def test_another_encoding_is_guessed_and_said_to_be(tmp_path, encoding, text):
    document = read(tmp_path, "a.txt", text.encode(encoding))
    assert document.text == text
    assert document.metadata["encoding"] == encoding and document.metadata["encoding_guessed"] is True
    assert document.metadata["warnings"] == [f"the encoding was guessed: {encoding}"]


def test_damaged_utf_8_is_still_utf_8_and_says_so(tmp_path):
    data = "naïve café, déjà vu".encode()
    document = read(tmp_path, "a.txt", data.replace("é".encode(), b"\xc3", 1))
    assert document.text == "naïve caf�, déjà vu"
    assert document.metadata["warnings"][1].startswith("1 characters could not be decoded")
    assert read(tmp_path, "b.txt", "cut off: é".encode("utf-16")[:-1]).text == "cut off: �"


@pytest.mark.parametrize("declared", ['<meta charset="windows-1251">', '<?xml version="1.0" encoding="windows-1251"?>'])
def test_an_html_page_may_declare_its_encoding(tmp_path, declared):
    document = read(tmp_path, "a.html", f"{declared}<p>Да".encode("cp1251"))
    assert document.text == "Да" and document.metadata["encoding_guessed"] is False


def test_what_a_page_declares_does_not_overrule_utf_8_and_names_no_odd_codec(tmp_path):
    assert read(tmp_path, "a.html", '<meta charset="iso-8859-1"><p>Дa').text == "Дa"
    for codec in ("utf-7", "unicode_escape", "punycode", "rot13", "no-such", "idna"):
        page = f'<meta charset="{codec}"><p>caf\xe9 +ADw-'.encode("cp1252")
        assert read(tmp_path, "a.html", page).text == "café +ADw-"


@pytest.mark.parametrize(
    "data", [b"%PDF-1.7 x", b"PK\x03\x04 x", b"\xd0\xcf\x11\xe0 x", b"\x89PNG\r\n", b"\x1f\x8b x", b"{\\rtf1 x}"]
)
def test_another_kind_of_file_is_not_read_as_text(tmp_path, data):
    for name in ("a.txt", "a.md", "a.html"):
        refused(write(tmp_path, name, data), "not a text: give it the ending")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    for data in (bytes(range(256)) * 9, bytes(100), b"\x7fELF\x02\x01\x01" + bytes(9) + b"\xe9\x02"):
        refused(write(tmp_path, "a.txt", data), "is no text: it holds too many control characters .* save it as UTF-8")
    refused(write(tmp_path, "a.txt", "日本語です。" * 9, "utf-16-le"), "save it as UTF-8")


@pytest.mark.parametrize("part", [b"\xe9\n", b"\xe9a", "é ".encode() + b"\xe9"])
def test_a_guess_takes_no_more_memory_than_a_few_times_the_file(part):
    data = part * (1_000_000 // len(part))
    decode(data[:1000])
    tracemalloc.start()
    decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(data)  # a list of lines would take 40 times


@given(st.text(max_size=60))
def test_any_text_is_read_as_it_is(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp()
    plain = repair(text.encode("utf-8", "replace").decode()).lstrip("\ufeff")
    try:
        document = read(folder, "any.txt", plain)
    except DocumentError as error:
        assert "no text" in str(error) or "empty" in str(error) or "not a text" in str(error)
        return
    assert document.text == plain
    count = document.metadata["elements"]
    lines = [read_document(folder / "any.txt", start=n, end=n, as_range=True).text for n in range(1, count + 1)]
    assert "".join(lines) == plain


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_decoded_or_refused(data, web):
    with suppress(DocumentError):
        repair(decode(data, web).text).encode("utf-8")


# Gold: what the PDF and the Word file of the corpus lose.


@pytest.mark.parametrize(
    ("file", "source", "clean"),
    [
        ("staff_handbook.docx", "staff_handbook.md", ()),
        ("throat_survey.pdf", "throat_survey.txt", ()),
        ("throat_survey.pdf", "throat_survey.txt", ("headers", "hyphens", "spaces")),
    ],
)
def test_every_gold_quote_is_found_again(file, source, clean):
    text = read_document(DATA / "corpus" / file, clean=clean).text
    quotes = [span.quote for question in load_questions() for span in question.spans if span.document == source]
    lost = [quote for quote in quotes if find_quote(text, quote) is None]
    assert len(quotes) >= 40 and lost == []


def test_the_corpus_loses_little_else(corpus):
    """Emphasis and the indent of nested items in the Word file; a rule and the columns of a table's head in the PDF."""

    def words(text):
        return [word.replace("*", "") for word in text.split()]

    folder = DATA / "corpus"
    assert words(read_document(folder / "staff_handbook.docx").text) == words(corpus["staff_handbook.md"])
    report = words(read_document(folder / "throat_survey.pdf", clean=["headers", "hyphens"]).text)
    written = [word for word in words(corpus["throat_survey.txt"]) if not word.startswith("---")]
    assert sorted(report) == sorted(written)
    assert sum(a != b for a, b in zip(report, written, strict=True)) <= 12


@pytest.mark.parametrize("name", ["staff_handbook.md", "tideclock.py", "leaflet.txt"])
def test_the_texts_of_the_corpus_are_read_as_load_corpus_reads_them(corpus, name):
    assert read_document(DATA / "corpus" / name).text == corpus[name]
