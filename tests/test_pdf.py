"""Reading PDFs: what their text layer gives, what is doubted, and files that are hostile."""

import io
import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from files import make_pdf, show
from pypdf import PdfReader, PdfWriter
from pypdf.errors import DependencyError
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from chunklab import read_document
from chunklab.documents import DocumentError
from chunklab.formats import elements, pdf


@pytest.mark.parametrize("gap", [0.65, 1, 3.65])
def test_pdf_01_words_placed_by_position_are_parted_or_doubted(read, gap):
    if gap == 0.65:  # the handed case
        operators = b"BT /F1 12 Tf 72 700 Td (alpha) Tj 30 0 Td (beta) Tj 27 0 Td (gamma) Tj ET"
    else:
        widths = {"alpha": 29.352, "beta": 23.352}
        moves = [f"({word}) Tj {width + gap:.3f} 0 Td" for word, width in widths.items()]
        operators = f"BT /F1 12 Tf 72 700 Td {' '.join(moves)} (gamma) Tj ET".encode()
    document = read("pdf", make_pdf(operators))
    assert document.text == "alpha beta gamma" or "words may be glued together" in document.metadata["warnings"][0]
    assert (gap > 3) == (document.text == "alpha beta gamma")


def test_pdf_01_text_without_spaces_is_doubted(read):
    document = read("pdf", make_pdf("Thequickbrownfoxjumpsoverthelazydog\nandthenrunsawayintothedarkwood"))
    assert document.metadata["warnings"] == ["many very long words: the spaces between words are lost"]
    document = read("pdf", make_pdf("\x01\x02\x03\x04 \x05\x06 words"))
    assert "many unknown characters" in document.metadata["warnings"][0]


NAMES = ["Alder", "Beech", "Cedar", "Dwarf elm", "Elder", "Fir"]
PAGES = [f"The Report\n{name} of the text\n{name} ends.\n{number}" for number, name in enumerate(NAMES, start=7)]


def test_pages_have_their_offsets(read):
    document = read("pdf", make_pdf("First page.", "", "Third page."), clean=["headers", "hyphens", "spaces"])
    assert document.text == "First page.\n\nThird page." and document.metadata["page_starts"] == [0, 11, 13]
    assert document.metadata["warnings"] == ["no text on 1 of the pages: scanned or blank (2)"]
    document = read("pdf", make_pdf(*PAGES), start=2, end=4, as_range=True, filters=["^The Report"])
    assert [document.text[start:][:5] for start in document.metadata["page_starts"]] == ["Beech", "Cedar", "Dwarf"]
    assert document.metadata["taken"] == (2, 4)


def test_pdf_06_running_lines_go_and_sentences_go_on(read):
    pages = ["HEAD\nThe clause continues\n3", "HEAD\non the next page.\n4"]
    document = read("pdf", make_pdf(*pages), clean=["headers"])
    assert document.text == "The clause continues on the next page."
    assert document.text[document.metadata["page_starts"][1] :] == "on the next page."
    assert read("pdf", make_pdf(*pages)).text == "\n\n".join(pages)


def test_pdf_06_running_lines_show_even_if_one_page_is_taken(read):
    document = read("pdf", make_pdf(*PAGES), start=3, end=3, as_range=True, clean=["headers"])
    assert document.text == "Cedar of the text\nCedar ends." and document.metadata["page_starts"] == [0]


def test_pdf_06_words_broken_at_the_end_of_a_page_are_joined(read):
    pages = ["HEAD\nAn exam-\nple, and a sec-", "HEAD\nond one, well-\nknown too."]
    document = read("pdf", make_pdf(*pages), clean=["hyphens", "headers"])
    assert document.text == "An example, and a second one, well-known too."
    assert document.text[document.metadata["page_starts"][1] :].startswith("ond one")


def test_pdf_07_encrypted_files(read):
    def encrypted(user, owner):
        writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf("secret words"))))
        writer.encrypt(user, owner, algorithm="RC4-128")
        saved = io.BytesIO()
        writer.write(saved)
        return saved.getvalue()

    with pytest.raises(DocumentError, match="^file.pdf is encrypted, and opens with a password only"):
        read("pdf", encrypted("user", "owner"))
    assert read("pdf", encrypted("", "owner")).text == "secret words"


def test_pdf_07_what_only_another_package_decrypts_says_so(read, monkeypatch):
    def decrypt(*_):
        raise DependencyError("cryptography>=3.1 is required for AES algorithm")

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf("words"))))
    writer.encrypt("", "owner", algorithm="RC4-128")
    saved = io.BytesIO()
    writer.write(saved)
    monkeypatch.setattr(PdfReader, "decrypt", decrypt)
    with pytest.raises(DocumentError, match="is encrypted with AES: save it without encryption, or pip install"):
        read("pdf", saved.getvalue())


def test_pdf_07_a_batch_goes_on(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 damaged")
    (tmp_path / "b.pdf").write_bytes(make_pdf("good"))
    read_, failed = [], []
    for path in sorted(tmp_path.iterdir()):
        try:
            read_.append(read_document(path).text)
        except DocumentError as error:
            failed.append(str(error).split()[0])
    assert (read_, failed) == (["good"], ["a.pdf"])


@pytest.mark.parametrize("made", [make_pdf(b""), make_pdf(b"q 1 0 0 1 0 0 cm Q", b""), make_pdf(" ")])
def test_a_pdf_without_text_wants_ocr(read, made):
    with pytest.raises(DocumentError, match="holds no text: its pages are scanned or blank. Run OCR"):
        read("pdf", made)


def test_a_pdf_without_pages_says_so(read):
    with pytest.raises(DocumentError, match="^file.pdf has no pages"):
        read("pdf", make_pdf())


def test_ligatures_become_letters(read):
    font = "/Encoding<</Type/Encoding/BaseEncoding/WinAnsiEncoding/Differences[1/fi/fl/ffi]>>"
    made = make_pdf(show("o\x03ce, \x01nd the \x02ow").encode("latin-1"), font=font)
    assert read("pdf", made).text == "office, find the flow"


def test_form_objects_and_turned_pages_are_read(read):
    resources = b"/Resources<</Font<</F1 3 0 R>>>>"
    form = b"<</Subtype/Form/BBox[0 0 9 9]" + resources + b"/Length %d>>stream\n%b\nendstream"
    inside = show("inside a form").encode()
    made = make_pdf(show("before").encode() + b" /X Do", objects=[form % (len(inside), inside)])
    assert read("pdf", made).text.split("\n") == ["before", "inside a form"]
    for turn in (90, 180, 270):
        assert read("pdf", make_pdf("turned page", page=f"/Rotate {turn}")).text == "turned page"
    saved = io.BytesIO()
    canvas = Canvas(saved, pagesize=A4)
    canvas.rotate(90)
    canvas.drawString(100, -100, "turned words")
    canvas.save()
    assert read("pdf", saved.getvalue()).text == "turned words"


def test_a_broken_cross_reference_is_mended_and_said(read):
    made = make_pdf("still here")
    for broken in (re.sub(rb"startxref\n\d+", b"startxref\n7", made), re.sub(rb"\n00000(\d{5})", rb"\n00001\1", made)):
        document = read("pdf", broken)
        assert document.text == "still here" and document.metadata["warnings"][0].startswith("pypdf: ")


def test_what_is_said_of_one_pdf_is_not_said_of_another_that_is_read_beside_it(tmp_path):
    broken = re.sub(rb"startxref\n\d+", b"startxref\n7", make_pdf("mended"))
    paths = [tmp_path / f"{place}.pdf" for place in range(60)]
    for place, path in enumerate(paths):
        path.write_bytes(broken if place % 2 else make_pdf("whole"))
    with ThreadPoolExecutor(8) as pool:
        warnings = [document.metadata["warnings"] for document in pool.map(read_document, paths)]
    assert warnings == [[], warnings[1]] * 30 and warnings[1]
    assert logging.getLogger("pypdf").propagate and logging.getLogger("pypdf").handlers == []


def test_one_damaged_page_does_not_cost_the_others(read):
    made = make_pdf("first", "second").replace(b"<</Filter/FlateDecode", b"<</Filter/NoSuchDecod", 1)
    document = read("pdf", made)
    assert document.text == "second" and "page 1 is damaged, and left out" in document.metadata["warnings"][0]
    with pytest.raises(DocumentError, match="is damaged"):
        read("pdf", made, start=1, end=1, as_range=True)


@pytest.mark.parametrize(
    "made",
    [
        b"%PDF-1.4",
        b"%PDF-1.4\n" + bytes(1000),
        make_pdf("x")[:300],
        b"%PDF-1.4\n1 0 obj\n" + b"(" * 100_000,
        make_pdf(b"[" * 100_000),
        make_pdf("x", kids=[2]),
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj 2 0 R endobj\ntrailer<</Root 1 0 R>>",
    ],
)
def test_damaged_pdfs_are_errors(read, made):
    with pytest.raises(DocumentError, match="is damaged|holds no text"):
        read("pdf", made)


def test_sec_05_sixty_pages_that_share_one_stream(read, monkeypatch):
    monkeypatch.setattr(elements, "MAX_CHARACTERS", 2_500_000)  # the limit itself would take seconds to reach
    made = make_pdf(b"BT /F1 12 Tf 72 700 Td (" + b"A" * 1_000_000 + b") Tj ET", kids=[4] * 60)
    assert len(made) < 3000
    with pytest.raises(DocumentError, match="holds more text than can be read at once"):
        read("pdf", made)


def test_sec_05_pages_and_unpacked_bytes_are_capped(read, monkeypatch):
    with pytest.raises(DocumentError, match="has 6,000 pages, and at most 5,000 are read"):
        read("pdf", make_pdf("x", kids=[4] * 6000))
    with pytest.raises(DocumentError, match="is damaged .*Limit"):
        read("pdf", make_pdf(b"%" + b" " * 21_000_000))


@pytest.mark.parametrize(
    "made",
    [
        make_pdf(show("x").encode() * 5_000),
        make_pdf("x", kids=[4] * 5000),
        b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n<<>>\nendobj\n" % n for n in range(100_000)) + b"startxref\n5\n%%EOF",
    ],
)
def test_sec_05_the_time_is_bounded_in_a_page_between_pages_and_before(read, made, monkeypatch):
    monkeypatch.setattr(pdf, "MAX_SECONDS", 0.01)  # each takes many times as long
    began = time.monotonic()
    with pytest.raises(DocumentError, match="takes more than 0 s to read: take fewer pages at once"):
        read("pdf", made)
    assert time.monotonic() - began < 20  # on a machine that is busy, too
