"""Make the two binary documents of the corpus from their text: a DOCX and a PDF.

`staff_handbook.md` becomes a Word file with real headings, lists, tables, a page header and a page number
field; `throat_survey.txt` becomes a two-column PDF with words broken at line ends, as a typesetter breaks them.
The text files are the source and hold the gold spans; the binaries exist so that parsing has something to
lose. Every run writes the same bytes. Run it from anywhere: `python data/make_files.py`. It needs python-docx,
markdown-it-py, reportlab and pyphen.
"""

import io
import re
import zipfile
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

from docx import Document
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Mm
from markdown_it import MarkdownIt
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Frame,
    FrameBreak,
    NextPageTemplate,
    PageTemplate,
    Paragraph,
    Table,
)

CORPUS = Path(__file__).parent / "corpus"
AUTHOR = "Vell Harbour Trust"
RUNNING_HEAD = "Drift of Slack Water in the Throat"
MADE = datetime(2024, 3, 1)


def add_runs(paragraph, inline):
    """Add the text of a markdown-it inline token to a paragraph, keeping bold and italic."""
    marks = {"strong": None, "em": None}
    for token in inline.children:
        mark = token.type.rpartition("_")[0]
        if mark in marks:
            marks[mark] = True if token.nesting == 1 else None
        else:
            run = paragraph.add_run(" " if token.type == "softbreak" else token.content)
            run.bold, run.italic = marks.values()


def restarted_numbering(document, style):
    """Return the id of a new numbering that looks like the style's own and starts at 1."""
    numbering = document.part.numbering_part.element
    number = numbering.add_num(numbering.num_having_numId(style.element.pPr.numPr.numId.val).abstractNumId.val)
    number.add_lvlOverride(ilvl=0).add_startOverride(1)
    return number.numId


def add_table(document, tokens):
    """Add the table that the tokens describe; its first row is bold and repeated on every page."""
    cells = [token for token in tokens if token.type == "inline"]
    width = sum(token.type == "th_open" for token in tokens)
    rows = [cells[at : at + width] for at in range(0, len(cells), width)]
    table = document.add_table(len(rows), width, style="Table Grid")
    for inlines, row in zip(rows, table.rows, strict=True):
        for inline, cell in zip(inlines, row.cells, strict=True):
            add_runs(cell.paragraphs[0], inline)
    for cell in table.rows[0].cells:
        cell.paragraphs[0].runs[0].bold = True
    table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    document.add_paragraph()


def fill_document(document, markdown):
    """Add every block of the Markdown to the document."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    lists = []  # a (style, numbering id or None) for each list that is open
    table_start = None
    for at, token in enumerate(tokens):
        if token.tag in ("ul", "ol") and token.nesting == 1:
            kind = "List Bullet" if token.tag == "ul" else "List Number"
            style = document.styles[f"{kind} {len(lists) + 1}" if lists else kind]
            lists.append((style, restarted_numbering(document, style) if kind == "List Number" else None))
        elif token.tag in ("ul", "ol"):
            lists.pop()
        elif token.type == "heading_open":
            style = f"Heading {token.tag[1]}"
        elif token.type == "paragraph_open":
            style = lists[-1][0] if lists else "Normal"
        elif token.type == "table_open":
            table_start = at
        elif token.type == "table_close":
            add_table(document, tokens[table_start:at])
            table_start = None
        elif token.type == "inline" and table_start is None:
            paragraph = document.add_paragraph(style=style)
            add_runs(paragraph, token)
            if lists and lists[-1][1]:
                paragraph._p.get_or_add_pPr().get_or_add_numPr().get_or_add_numId().val = lists[-1][1]


def make_docx(source, target):
    """Write the Markdown file `source` as the Word file `target`."""
    markdown = source.read_text(encoding="utf-8")
    title = markdown.partition("\n")[0].lstrip("# ")
    document = Document()
    section = document.sections[0]
    section.page_width, section.page_height = Mm(210), Mm(297)
    section.header.paragraphs[0].text = title
    footer = section.footer.paragraphs[0]
    footer.text = "Page "
    field = OxmlElement("w:fldSimple", attrs={qn("w:instr"): "PAGE"})
    field.append(footer.add_run("1")._r)  # Word puts the number of the page in place of this 1
    footer._p.append(field)
    for language in document.styles.element.iter(qn("w:lang")):
        language.set(qn("w:val"), "en-GB")
    about = document.core_properties
    about.title, about.author, about.last_modified_by, about.comments = title, AUTHOR, AUTHOR, ""
    about.created = about.modified = MADE
    fill_document(document, markdown)

    saved = io.BytesIO()
    document.save(saved)
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():  # python-docx stamps each member with the hour of the run
            member = zipfile.ZipInfo(name, MADE.timetuple()[:6])
            member.create_system = 0  # else it tells the system that it was made on
            new.writestr(member, old.read(name), zipfile.ZIP_DEFLATED)


BODY = ParagraphStyle(
    "body",
    fontName="Times-Roman",
    fontSize=9.5,
    leading=11.6,
    spaceAfter=4,
    alignment=TA_JUSTIFY,
    hyphenationLang="en_GB",
    embeddedHyphenation=1,
    allowWidows=0,
    allowOrphans=0,
)
STYLES = {
    "title": ParagraphStyle("title", fontName="Times-Bold", fontSize=16, leading=20, alignment=TA_CENTER),
    "author": ParagraphStyle("author", BODY, alignment=TA_CENTER, spaceBefore=3),
    "heading": ParagraphStyle("heading", fontName="Times-Bold", fontSize=11.5, spaceBefore=9, spaceAfter=5),
    "subheading": ParagraphStyle("subheading", fontName="Times-BoldItalic", leading=12, spaceBefore=5, spaceAfter=2),
    "paragraph": BODY,
    "item": ParagraphStyle("item", BODY, leftIndent=12, firstLineIndent=-12),
    "reference": ParagraphStyle("reference", BODY, fontSize=8.5, leading=10.2, leftIndent=10, firstLineIndent=-10),
    "formula": ParagraphStyle("formula", BODY, fontName="Times-Italic", alignment=TA_CENTER),
    "caption": ParagraphStyle("caption", BODY, fontName="Times-Bold", fontSize=8.5, keepWithNext=1),
    "cell": ParagraphStyle("cell", fontName="Times-Roman", fontSize=8, leading=9.4),
}
PATTERNS = {
    "subheading": r"\d+\.\d+ [^\n]+",
    "heading": r"\d+ [^\n]+|[A-Z]+",
    "item": r"\d+\. .+",
    "formula": r" {4}.+",
    "caption": r"Table \d+\. [^\n]+",
    "table": r".+\n-{20,}\n.+",
}


def drawn_table(block):
    """Draw a table whose columns begin where the headings of its first line begin."""
    lines = block.split("\n")
    starts = [heading.start() for heading in re.finditer(r"\S+(?: \S+)*", lines[0])]
    table = [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
    rule = next(at for at, line in enumerate(lines) if line.startswith("---"))
    rows = [[" ".join(parts) for parts in zip(*table[:rule], strict=True)], *table[rule + 1 :]]
    cells = [[Paragraph(escape(cell), STYLES["cell"]) for cell in row] for row in rows]
    look = [
        ("GRID", (0, 0), (-1, -1), 0.4, "grey"),
        ("BACKGROUND", (0, 0), (-1, 0), "whitesmoke"),
        ("LEFTPADDING", (0, 0), (-1, -1), 2.5),
        ("RIGHTPADDING", (0, 0), (-1, -1), 2),
    ]
    return Table(cells, [w * mm for w in (12, 15.5, 11, 9.5, 12, 11, 12)], style=look, spaceBefore=2, spaceAfter=8)


def report_flow(text):
    """Yield what the pages are filled with, block by block."""
    title, author, *blocks = text.strip("\n").split("\n\n")
    yield from (NextPageTemplate("later"), Paragraph(escape(title), STYLES["title"]))
    yield from (Paragraph(escape(line), STYLES["author"]) for line in author.split("\n"))
    yield FrameBreak()
    plain = "paragraph"
    for block in blocks:
        kind = next((kind for kind, look in PATTERNS.items() if re.fullmatch(look, block, re.DOTALL)), plain)
        if kind in ("heading", "subheading"):
            plain = "reference" if block == "REFERENCES" else "paragraph"
            yield CondPageBreak((28 if kind == "heading" else 18) * mm)  # no heading alone at a column's foot
        yield drawn_table(block) if kind == "table" else Paragraph(escape(" ".join(block.split())), STYLES[kind])


def make_pdf(source, target):
    """Write the plain-text report `source` as the two-column A4 file `target`."""
    width, height = A4
    column, gap, bottom, top = 84 * mm, 6 * mm, 20 * mm, height - 22 * mm
    left = (width - 2 * column - gap) / 2

    def furniture(canvas, document):
        canvas.setFont("Times-Italic", 8.5)
        canvas.drawString(left, height - 15 * mm, RUNNING_HEAD)
        canvas.drawRightString(width - left, height - 15 * mm, AUTHOR)
        canvas.line(left, height - 16.5 * mm, width - left, height - 16.5 * mm)
        canvas.drawCentredString(width / 2, 12 * mm, str(document.page))

    def columns(upper):
        return [Frame(x, bottom, column, upper - bottom, 0, 0, 0, 0) for x in (left, left + column + gap)]

    masthead = Frame(left, top - 30 * mm, 2 * column + gap, 30 * mm, 0, 0, 0, 0)
    document = BaseDocTemplate(str(target), pagesize=A4, title=RUNNING_HEAD, author=AUTHOR, invariant=1)
    document.addPageTemplates(
        [
            PageTemplate("first", [masthead, *columns(top - 32 * mm)], onPage=furniture),
            PageTemplate("later", columns(top), onPage=furniture),
        ]
    )
    document.build(list(report_flow(source.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    make_docx(CORPUS / "staff_handbook.md", CORPUS / "staff_handbook.docx")
    make_pdf(CORPUS / "throat_survey.txt", CORPUS / "throat_survey.pdf")
