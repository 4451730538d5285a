"""Files that tests make: a PDF and a Word file, byte by byte, so that anything can be wrong with them."""

import io
import zipfile
import zlib

import pytest

from chunklab import read_document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
W += ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
W += ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def show(text, x=72, y=700):
    """The operators that show a text, one line below another."""
    lines = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").split("\n")
    return f"BT /F1 12 Tf 14 TL {x} {y} Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"


def make_pdf(*pages, kids=None, page="", font="", objects=()):
    """A PDF with a page for each text; for bytes, a page with those operators.

    Args:
        pages: the pages.
        kids: the object numbers of the pages, where not each stands once; the first is object 4, the next 6.
        page: more entries of every page's dictionary.
        font: more entries of the font's.
        objects: more objects, from number 100 on.
    """
    kids = kids or [4 + 2 * number for number in range(len(pages))]
    parts = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(f'{kid} 0 R' for kid in kids)}]>>".encode(),
        3: f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica{font or '/Encoding/WinAnsiEncoding'}>>".encode(),
    }
    for number, content in enumerate(pages):
        packed = zlib.compress(content if isinstance(content, bytes) else show(content).encode("cp1252"), 9)
        resources = "/Resources<</Font<</F1 3 0 R>>/XObject<</X 100 0 R>>>>"
        head = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]{resources}/Contents {5 + 2 * number} 0 R{page}>>"
        parts[4 + 2 * number] = head.encode()
        parts[5 + 2 * number] = b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(packed), packed)
    parts |= dict(enumerate(objects, start=100))
    data = b"%PDF-1.4\n"
    places = {}
    for number, part in parts.items():
        places[number] = len(data)
        data += b"%d 0 obj\n%b\nendobj\n" % (number, part)
    table = "".join(f"{number} 1\n{place:010} 00000 n \n" for number, place in places.items())
    end = f"xref\n0 1\n0000000000 65535 f \n{table}trailer<</Size 999/Root 1 0 R>>\nstartxref\n{len(data)}\n%%EOF"
    return data + end.encode()


def make_docx(body, prolog="", method=zipfile.ZIP_DEFLATED, more=(), **parts):
    """A Word file.

    Args:
        body: the XML inside the body.
        prolog: what stands before the document's root.
        method: how it is packed.
        more: further members: name and bytes.
        parts: the XML of further parts, by kind: styles, numbering, footnotes, endnotes, header.
    """
    kinds = {kind: f"{WORD}.{kind}+xml" for kind in parts} | {"document": f"{WORD}.document.main+xml"}
    types = "".join(f'<Override PartName="/word/{kind}.xml" ContentType="{kinds[kind]}"/>' for kind in kinds)
    xml = "application/vnd.openxmlformats-package.relationships+xml"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="{xml}"/>'
        f"{types}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f"{prolog}<w:document {W}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(f'<Relationship Id="r{kind}" Type="{OFFICE}/{kind}" Target="{kind}.xml"/>' for kind in parts)
        + "</Relationships>",
        **{f"word/{kind}.xml": text for kind, text in parts.items()},
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for member, text in [*members.items(), *more]:
            archive.writestr(member, text)
    return made.getvalue()


def p(text="", properties="", runs=""):
    """A paragraph."""
    run = f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>' if text else ""
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{run}{runs}</w:p>"


@pytest.fixture
def read(tmp_path):
    """Read bytes, or a text, as a file with an ending."""

    def reader(ending, content, **options):
        path = tmp_path / f"file.{ending}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_document(path, **options)

    return reader


def blocks(document):
    return document.text.split("\n\n")
