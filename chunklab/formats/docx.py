"""Read a Word file into Markdown elements, in reading order.

Word keeps what a heading, a list and a table is, so nothing of it needs to be lost: headings get their level and their
number, lists their markers, tables their rows, notes a Markdown footnote. python-docx opens the file; since its
`Document.paragraphs` leaves out tables, hyperlinks, inserted text, notes and text boxes, the XML is walked here. It
serves whoever chunks Word files of unknown origin: what the archive declares is checked before anything is unpacked, no
entity is resolved, nothing is fetched. A handbook of 20 pages takes a twentieth of a second.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from chunklab.formats.docx_styles import Numbering, Styles, W, is_on, whole
from chunklab.formats.elements import Cell, DocumentError, Element, check_amount, heading, item, paragraph, table
from chunklab.formats.text import other_kind

if TYPE_CHECKING:
    from lxml.etree import _Element

MAX_PARTS = 5_000
MAX_UNPACKED = 200_000_000  # bytes, of all parts
MAX_XML = 30_000_000  # bytes, of one part that is parsed
_MAX_RATIO = 200  # bytes unpacked for one packed, where they are more than
_SMALL = 1_000_000

_MAIN = b"wordprocessingml.document.main+xml"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
WRAPPERS = {W + name for name in ("sdtContent", "ins", "moveTo", "customXml", "smartTag")} | {_MC + "Choice"}
_NEVER = {W + name for name in "pPr rPr sdtPr sdtEndPr sectPr del moveFrom delText instrText delInstrText rt".split()}
_NEVER |= {W + name for name in ("footnoteRef", "endnoteRef", "annotationRef")}
_CHARACTERS = {W + "tab": "\t", W + "ptab": "\t", W + "br": "\n", W + "cr": "\n", W + "noBreakHyphen": "-"}
_NOTES = {W + "footnoteReference": "footnote", W + "endnoteReference": "endnote"}
_SHOWN = {W + "t", _M + "t", W + "sym", *_CHARACTERS, *_NOTES}


def read_docx(data: bytes) -> list[Element]:
    """Read a Word file.

    Headings become Markdown headings by the level of their style, numbered ones with their number; list items "- " or
    "1. ", nested; tables Markdown tables, a merged cell's text once; notes "[^1]", their texts at the end. Of tracked
    changes the new text stands. Text boxes follow their paragraph. Left out: headers and footers, comments, hidden
    text, pictures, what a linked file would bring.

    Args:
        data: the bytes of the file.

    Returns:
        Its elements: a heading, a paragraph, an item, a table or a note each.

    Raises:
        DocumentError: encrypted, no Word file, damaged, too large when unpacked, or with a document type definition.
    """
    _check_archive(data)
    import docx

    try:
        document = docx.Document(BytesIO(_tidied(data)))
        parts = {kind: _part(document.part, kind) for kind in ("numbering", "footnotes", "endnotes")}
        for root in (document.element, document.styles.element, *parts.values()):
            if root is not None and root.getroottree().docinfo.internalDTD is not None:
                raise DocumentError("holds a document type definition, which no Word file has: it is refused")
        reader = _Reader(Styles(document.styles.element), Numbering(parts["numbering"]), parts)
        return reader.read(document.element.body)
    except (DocumentError, MemoryError):
        raise
    except RecursionError:
        raise DocumentError("is damaged: its parts are nested too deeply") from None
    except Exception as error:  # a hostile file can make a parser raise anything
        raise DocumentError(f"is damaged, or no Word file ({type(error).__name__}: {str(error)[:100]})") from error


def _check_archive(data: bytes) -> None:
    """Raise DocumentError unless what the archive declares is sane; zipfile itself unpacks no more than declared."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise DocumentError("is protected by a password, or an old .doc: save it as .docx without a password")
    if not data.startswith(b"PK") and (what := other_kind(data)):
        raise DocumentError(f"is no Word file but {what}: give it the ending that it should have")
    if data.count(b"PK\x01\x02") > MAX_PARTS:
        raise DocumentError(f"is refused: an archive of more than {MAX_PARTS:,} parts")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = archive.infolist()
    except Exception as error:  # zipfile lets those of its helpers through
        raise DocumentError(f"is damaged, or no Word file ({error})") from None
    if any(part.flag_bits & 1 for part in parts):
        raise DocumentError("is encrypted: save it without a password")
    if any(part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for part in parts):
        raise DocumentError("is refused: it is packed in a way that Word does not use")
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MAX_UNPACKED:
        raise DocumentError(f"is refused: it unpacks to {unpacked:,} bytes, and at most {MAX_UNPACKED:,} are read")
    for part in parts:
        if part.file_size > _SMALL and part.file_size > _MAX_RATIO * max(part.compress_size, 1):
            raise DocumentError(f"is refused: {part.filename!r:.60} unpacks to more than {_MAX_RATIO} times its size")
        if part.file_size > MAX_XML and part.filename.lower().endswith((".xml", ".rels")):
            raise DocumentError(f"is refused: {part.filename!r:.60} unpacks to {part.file_size:,} bytes of XML")


def _tidied(data: bytes) -> bytes:
    """The archive without its links to parts that it does not hold: Word overlooks them, python-docx stumbles."""
    from docx.oxml import parse_xml
    from lxml import etree

    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = set(archive.namelist())
        _check_kind(archive, names)
        tidy = {}
        for name in names:
            if name.endswith(".rels"):
                folder = posixpath.join("/", posixpath.dirname(posixpath.dirname(name)))
                relations = parse_xml(archive.read(name))
                for relation in relations.findall("{*}Relationship"):
                    target = posixpath.normpath(posixpath.join(folder, relation.get("Target", "")))
                    if relation.get("TargetMode") != "External" and target.lstrip("/") not in names:
                        relations.remove(relation)
                        tidy[name] = relations
        if not tidy:
            return data
        copy = BytesIO()
        with zipfile.ZipFile(copy, "w") as written:
            for name in names:
                written.writestr(name, etree.tostring(tidy[name]) if name in tidy else archive.read(name))
    return copy.getvalue()


def _check_kind(archive: zipfile.ZipFile, names: set[str]) -> None:
    """Raise DocumentError, with what to do, if it is something else that looks like a Word file."""
    if "[Content_Types].xml" not in names:
        kind = "an OpenDocument file" if "mimetype" in names else "a ZIP archive"
    elif _MAIN not in archive.read("[Content_Types].xml"):
        kind = "a workbook, slides, a template or a document with macros"
    elif "_rels/.rels" in names and b"purl.oclc.org/ooxml" in archive.read("_rels/.rels"):
        kind = "Strict Open XML"
    else:
        return
    raise DocumentError(f"is no ordinary Word file but {kind}: save it as .docx (Word document)")


def _part(document: Any, kind: str) -> _Element | None:
    """The root of a part that the document names, or None."""
    from docx.oxml import parse_xml

    for relation in document.rels.values():
        if relation.reltype.endswith(f"/{kind}") and not relation.is_external:
            part = relation.target_part
            return part.element if hasattr(part, "element") else parse_xml(part.blob)
    return None


class _Reader:
    """Walks the body, and keeps what one paragraph needs to know of those before it."""

    def __init__(self, styles: Styles, numbering: Numbering, parts: dict[str, _Element | None]) -> None:
        self.styles, self.numbering = styles, numbering
        self.notes = {
            (tag, note.get(W + "id")): note
            for tag in _NOTES.values()
            if (root := parts[f"{tag}s"]) is not None
            for note in root.iterchildren(W + tag)
        }
        self.levels: list[int] = []  # of the items around the last one, and its own
        self.fields: list[bool] = []  # for each open field, whether its result has begun
        self.cited: dict[tuple[str, str | None], int] = {}  # a note, and its number
        self.order: list[tuple[str, str | None]] = []
        self.size = self.count = 0

    def read(self, body: _Element) -> list[Element]:
        elements = list(self.blocks(body))
        for number, note in enumerate(self.order, start=1):  # which grows while a note cites another
            text = " ".join(block.plain for block in self.blocks(self.notes[note]))
            elements.append(self.counted(Element(f"[^{number}]: {text}", text)))
        return elements

    def blocks(self, parent: _Element) -> Iterator[Element]:
        """The elements of a body, a cell, a note or a text box."""
        joined: list[_Element] = []  # paragraphs whose end was deleted, so that the next goes on in the same line
        for child in parent:
            if child.tag == W + "p":
                after = child.getnext()
                if child.find(f"{W}pPr/{W}rPr/{W}del") is not None and after is not None and after.tag == W + "p":
                    joined.append(child)
                    continue
                yield from self.paragraph(child, joined)
                joined.clear()
            elif child.tag == W + "tbl":
                self.levels.clear()
                yield from map(self.counted, table([self.row(row) for row in _rows(child)]))
            elif child.tag == W + "sdt" and _is_prompt(child):
                continue
            elif child.tag in WRAPPERS or child.tag == W + "sdt":
                yield from self.blocks(child)
            elif child.tag == _MC + "AlternateContent":
                yield from self.blocks(_chosen(child))

    def counted(self, element: Element) -> Element:
        self.size += len(element.text)
        self.count += 1
        check_amount(self.size, self.count)
        return element

    def row(self, row: _Element) -> list[Cell]:
        before = row.find(f"{W}trPr/{W}gridBefore")
        cells = [Cell([], whole(before, 1))] if before is not None else []
        for cell in _children(row, W + "tc"):
            properties = cell.find(W + "tcPr")
            if properties is not None and properties.find(W + "cellDel") is not None:
                continue
            merged = None if properties is None else properties.find(W + "vMerge")
            merged = properties.find(W + "hMerge") if merged is None and properties is not None else merged
            goes_on = merged is not None and merged.get(W + "val", "continue") == "continue"
            span = 1 if properties is None else whole(properties.find(W + "gridSpan"), 1)
            self.levels.clear()
            cells.append(Cell([] if goes_on else list(self.blocks(cell)), span))
        self.levels.clear()
        return cells

    def paragraph(self, element: _Element, joined: Sequence[_Element] = ()) -> Iterator[Element]:
        """The element that a paragraph gives, with those before it that it was joined to, and its text boxes."""
        texts: list[str] = []
        boxes: list[_Element] = []
        for piece in (*joined, element):
            self.walk(piece, texts, boxes)
        # A field whose result has not begun by now is broken, and must not hide the rest of the document.
        self.fields = [shown for shown in self.fields if shown]
        text = "\n".join(line.strip() for line in "".join(texts).split("\n")).strip()
        style = self.styles.of(element)
        # A paragraph without text has its number too, which Word shows, and counts.
        label = self.numbering.label(style.number, style.level) if text or not _is_unseen(element) else ""
        if style.heading and text:
            self.levels.clear()
            yield self.counted(heading(f"{label} {text}" if label and label != "-" else text, style.heading))
        elif label and text:
            # Word gives its List Number 2 a numbering of its own, at level 0; there the style's name says the depth.
            depth = max(style.level, style.depth)
            while self.levels and self.levels[-1] >= depth:
                self.levels.pop()
            self.levels.append(depth)
            is_marker = label == "-" or re.fullmatch(r"\d{1,9}[.)]", label)
            text, label = (text, label) if is_marker else (f"{label} {text}", "-")
            yield self.counted(item(text, label, len(self.levels)))
        elif text:
            self.levels.clear()
            yield self.counted(paragraph(text))
        for box in boxes:
            yield from self.blocks(box)

    def walk(self, parent: _Element, texts: list[str], boxes: list[_Element]) -> None:
        """Gather the text of a paragraph, and the text boxes that hang on it."""
        for child in parent:
            tag = child.tag
            if tag in _NEVER or not isinstance(tag, str):
                continue
            if tag == W + "fldChar":
                self.field(child.get(W + "fldCharType"))
            elif tag == W + "txbxContent":
                boxes.append(child)
            elif tag == _MC + "AlternateContent":
                self.walk(_chosen(child), texts, boxes)
            elif tag == W + "r" and is_on(child.find(f"{W}rPr/{W}vanish")):
                continue
            elif tag in _SHOWN:
                if all(self.fields):
                    texts.append(self.shown(child))
            elif not (tag == W + "sdt" and _is_prompt(child)):
                self.walk(child, texts, boxes)

    def shown(self, element: _Element) -> str:
        """What stands on paper for an element inside a run."""
        tag = element.tag
        if tag == W + "sym":
            code = element.get(W + "char", "")
            return chr(int(code, 16)) if re.fullmatch("[0-9A-Fa-f]{1,4}", code) else "\ufffd"
        if tag in _NOTES:
            note = (_NOTES[tag], element.get(W + "id"))
            if note not in self.notes:
                return ""
            if note not in self.cited:
                self.order.append(note)
                self.cited[note] = len(self.order)
            return f"[^{self.cited[note]}]"
        return _CHARACTERS.get(tag) or element.text or ""

    def field(self, kind: str | None) -> None:
        """A field has its code, which is not shown, and then its result, which is."""
        if kind == "begin":
            self.fields.append(False)
        elif self.fields and kind == "separate":
            self.fields[-1] = True
        elif self.fields and kind == "end":
            self.fields.pop()


def _children(parent: _Element, tag: str) -> Iterator[_Element]:
    """The children of one kind, also those that are wrapped as inserted text or content controls."""
    for child in parent:
        if child.tag == tag:
            yield child
        elif child.tag in WRAPPERS or child.tag == W + "sdt":
            yield from _children(child, tag)


def _rows(element: _Element) -> Iterator[_Element]:
    return (row for row in _children(element, W + "tr") if row.find(f"{W}trPr/{W}del") is None)


def _is_unseen(paragraph: _Element) -> bool:
    """Whether the paragraph is not there for a reader, deleted or hidden with its end; its number is not, either."""
    mark = paragraph.find(f"{W}pPr/{W}rPr")
    return mark is not None and (mark.find(W + "del") is not None or is_on(mark.find(W + "vanish")))


def _chosen(element: _Element) -> Iterable[_Element]:
    """What a program of this day shows of two ways of saying the same."""
    choice = element.find(_MC + "Choice")
    choice = element.find(_MC + "Fallback") if choice is None else choice
    return () if choice is None else choice


def _is_prompt(control: _Element) -> bool:
    """Whether a content control shows only what to fill in."""
    return is_on(control.find(f"{W}sdtPr/{W}showingPlcHdr"))
