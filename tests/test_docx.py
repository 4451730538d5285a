"""Reading Word files: what is kept as Markdown, and files that are hostile."""

import io
import zipfile

import pytest
from docx import Document as Word
from docx.oxml import parse_xml
from files import OFFICE, PACKAGE, WORD, W, blocks, make_docx, p

from chunklab.documents import DocumentError
from chunklab.formats import docx
from chunklab.formats.docx_styles import Numbering


def test_docx_01_tables_stand_in_reading_order(read):
    document = Word()
    document.add_paragraph("Before table.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "KEY", "VALUE-77"
    document.add_paragraph("After table.")
    saved = io.BytesIO()
    document.save(saved)
    found = blocks(read("docx", saved.getvalue()))
    assert found == ["Before table.", "| KEY | VALUE-77 |\n| --- | --- |", "After table."]


@pytest.mark.parametrize(
    ("merged", "expected"),
    [
        (((0, 0), (0, 2)), "| MERGED |  |  |\n| --- | --- | --- |\n| a | b | c |"),
        (((0, 0), (1, 0)), "| MERGED | y | z |\n| --- | --- | --- |\n|  | b | c |"),
        (((0, 1), (1, 2)), "| x | MERGED |  |\n| --- | --- | --- |\n| a |  |  |"),
        (((0, 0), (1, 2)), "| MERGED |  |  |\n| --- | --- | --- |\n|  |  |  |"),
    ],
)
def test_docx_02_the_text_of_a_merged_cell_stands_once(read, merged, expected):
    document = Word()
    table = document.add_table(2, 3)
    for place, text in enumerate("xyzabc"):
        table.cell(place // 3, place % 3).text = text
    cell = table.cell(*merged[0]).merge(table.cell(*merged[1]))
    cell.text = "MERGED"
    saved = io.BytesIO()
    document.save(saved)
    assert read("docx", saved.getvalue()).text == expected


def w(tag, *inside):
    """An element of a Word file: w("r", w("t", "text")) is a run."""
    return f"<w:{tag}>{''.join(inside)}</w:{tag.split()[0]}>"


def run(*inside):
    return w("r", *inside)


def text(words):
    return run(w("t", words))


def mark(kind):
    return run(f'<w:fldChar w:fldCharType="{kind}"/>')


LINK = w('hyperlink w:anchor="a"', text("linked"), text(" words"))
FIELD = mark("begin") + run(w("instrText", "LINK")) + mark("begin") + text("code") + mark("end") + mark("separate")
FIELD += text("linked") + mark("end") + text(" words")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (LINK, "see linked words"),  # docx-04
        (w("ins", LINK), "see linked words"),
        (w("fldSimple w:instr='LINK'", text("linked")), "see linked"),
        (FIELD, "see linked words"),
        (w("ins", text("new")) + w("del", run(w("delText", "old"))), "see new"),
        (w("moveFrom", text("there")) + w("moveTo", text("here")), "see here"),
        (run(w("rPr", "<w:vanish/>"), w("t", "hidden")), "see"),
        (run(w("rPr", "<w:vanish w:val='0'/>"), w("t", "shown")), "see shown"),
        (w("sdt", w("sdtPr", "<w:alias w:val='no'/>"), w("sdtContent", text("filled"))), "see filled"),
        (w("sdt", w("sdtPr", "<w:showingPlcHdr/>"), w("sdtContent", text("Click"))), "see"),
        (w("smartTag", text("smart")), "see smart"),
        (run(w("t", "a"), "<w:tab/>", w("t", "b"), "<w:br/>", w("t", "c")), "see a\tb\nc"),
        (run(w("t", "a"), "<w:noBreakHyphen/>", w("t", "b"), "<w:softHyphen/>", w("t", "c")), "see a-bc"),
        ("<m:oMath><m:r><m:t>E=mc</m:t></m:r></m:oMath>", "see E=mc"),
        (run(w("ruby", w("rt", text("kan")), w("rubyBase", text("漢")))), "see 漢"),
        (run("<w:sym w:char='03B1'/><w:sym w:char='D835'/>"), "see α�"),
        (run("<w:sym w:char='ZZ'/><w:sym/><w:sym w:char='F0FFFFFF'/>"), "see ���"),
        ("<w:commentRangeStart w:id='1'/>" + text("x") + run("<w:annotationRef/>"), "see x"),
        (w("bdo w:val='rtl'", run(w("rPr", "<w:rtl/>"), w("t", "שלום עולם"))), "see שלום עולם"),
    ],
)
def test_a_word_paragraph_has_the_text_that_its_reader_sees(read, runs, expected):
    assert read("docx", make_docx(p("see ", runs=runs))).text == expected


def test_a_field_that_is_broken_hides_no_more_than_its_paragraph(read):
    assert blocks(read("docx", make_docx(p("a", runs=mark("begin") + text("lost")) + p("b")))) == ["a", "b"]


def test_word_headings_go_by_their_style(read):
    styles = (
        f'<w:styles {W}><w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Mine"><w:basedOn w:val="berschrift2"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Out"><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="Round"><w:basedOn w:val="Round"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="H9"><w:name w:val="heading 9"/></w:style></w:styles>'
    )
    names = ["T", "berschrift2", "Mine", "Out", "H9", "Round", "NoSuch"]
    body = "".join(p(name, f'<w:pStyle w:val="{name}"/>') for name in names)
    body += p("direct", '<w:outlineLvl w:val="0"/>') + p("body", '<w:pStyle w:val="Out"/><w:outlineLvl w:val="9"/>')
    body += p("# plain") + p("", '<w:pStyle w:val="T"/>')
    assert blocks(read("docx", make_docx(body, styles=styles))) == [
        "# T", "## berschrift2", "## Mine", "### Out", "###### H9", "Round", "NoSuch", "# direct", "body", "\\# plain"
    ]  # fmt: skip


NUMBERING = (
    f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%2)"/></w:lvl>'
    '<w:lvl w:ilvl="2"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl>'
    '<w:lvl w:ilvl="3"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1.%4"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="8"/>'
    "</w:lvlOverride></w:num></w:numbering>"
)


def numbered(text, number, level=0, style=""):
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    return p(text, f'{style}<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def test_word_lists_are_counted_nested_and_restarted(read):
    items = "a 1 0, b 1 1, c 1 1, d 1 2, e 1 0, f 1 1, g 2 0, h 1 0, i 7 0".split(", ")
    made = make_docx("".join(numbered(*item.split()) for item in items), numbering=NUMBERING)
    assert read("docx", made).text.split("\n") == [
        "1. a", "    - (a) b", "    - (b) c", "        - d", "2. e", "    - (a) f", "8. g", "9. h", "- i"
    ]  # fmt: skip
    body = numbered("deep", 1, 3) + p("between") + numbered("none", 0) + numbered("on", 1, 0)
    assert blocks(read("docx", make_docx(body, numbering=NUMBERING))) == ["- 1.I deep", "between", "none", "1. on"]


def test_numbered_headings_keep_their_number(read):
    styles = f'<w:styles {W}><w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 1"/></w:style></w:styles>'
    body = numbered("Scope", 1, 0, "H") + p("text") + numbered("Terms", 1, 0, "H")
    made = make_docx(body, styles=styles, numbering=NUMBERING)
    assert blocks(read("docx", made)) == ["# 1. Scope", "text", "# 2. Terms"]


def test_word_tables_within_tables_and_rows_that_were_deleted(read):
    def table(*rows):
        return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"

    def cell(content):
        return f"<w:tc>{content if content.startswith('<') else p(content)}</w:tc>"

    def control(content):
        return f"<w:sdt><w:sdtContent>{content}</w:sdtContent></w:sdt>"

    inner = cell(table(cell("x") + cell("y")) + p("z"))
    body = table(cell("a") + inner, "<w:trPr><w:del/></w:trPr>" + cell("gone") + cell("gone"))
    assert read("docx", make_docx(body)).text == "| a | x y z |\n| --- | --- |"
    assert read("docx", make_docx(control(table(cell("a") + control(cell("b")))))).text == "| a | b |\n| --- | --- |"
    heading = p("Head", '<w:outlineLvl w:val="0"/>')
    assert blocks(read("docx", make_docx(table(cell(heading) + cell("side"))))) == ["# Head", "side"]


def cell(*content):
    return w("tc", *(text if text.startswith("<") else p(text) for text in content))


def rows(*rows):
    return w("tbl", *(w("tr", *map(cell, row)) for row in rows))


def test_docx_01_what_begins_with_a_hash_is_no_heading_in_a_table(read):
    made = make_docx(rows(("#", "Name"), ("#12", "bell"), ("#tag", "low")))
    assert read("docx", made).text == "| # | Name |\n| --- | --- |\n| #12 | bell |\n| #tag | low |"


def test_numbers_of_items_stay_in_a_table(read):
    made = make_docx(
        w("tbl", w("tr", w("tc", numbered("ring", 1), numbered("wait", 1)), cell("x"))), numbering=NUMBERING
    )
    assert read("docx", made).text == "| 1. ring 2. wait | x |\n| --- | --- |"


GONE = "<w:rPr><w:del/></w:rPr>"


def test_word_counts_items_without_text_but_none_that_are_not_there(read):
    def item(text, properties=""):
        return p(text, f'<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>{properties}')

    hidden = "<w:rPr><w:vanish/></w:rPr>"
    body = item("one") + item("") + item("three") + item("", GONE) + p("apart") + item("", hidden) + item("four")
    assert read("docx", make_docx(body, numbering=NUMBERING)).text == "1. one\n3. three\n\napart\n\n4. four"


def test_a_paragraph_whose_end_was_deleted_goes_on_in_the_next(read):
    assert blocks(read("docx", make_docx(p("one ", GONE) + p("two ", GONE) + p("three") + p("four")))) == [
        "one two three", "four"
    ]  # fmt: skip
    table = rows(("a", "b"))
    assert blocks(read("docx", make_docx(p("one", GONE) + table + p("two", GONE)))) == [
        "one", "| a | b |\n| --- | --- |", "two"
    ]  # fmt: skip


def test_a_cell_that_was_deleted_is_left_out(read):
    gone = w("tc", w("tcPr", "<w:cellDel/>"), p("gone"))
    assert read("docx", make_docx(w("tbl", w("tr", cell("a"), gone, cell("c"))))).text == "| a | c |\n| --- | --- |"


def test_notes_follow_at_the_end_and_headers_stay_out(read):
    def cited(kind, number):
        return f'<w:r><w:{kind}Reference w:id="{number}"/></w:r>'

    def notes(kind, **texts):
        inside = "".join(w(f'{kind} w:id="{number[1:]}"', p(words)) for number, words in texts.items())
        return f"<w:{kind}s {W}>{inside}</w:{kind}s>"

    body = p("a", runs=cited("footnote", 2) + cited("endnote", 2))
    body += p("b", runs=cited("footnote", 2) + cited("footnote", 9))
    made = make_docx(
        body,
        footnotes=notes("footnote", _1="not cited", _2="low"),
        endnotes=notes("endnote", _2="last"),
        header=f"<w:hdr {W}>{p('HEAD')}</w:hdr>",
    )
    assert blocks(read("docx", made)) == ["a[^1][^2]", "b[^1]", "[^1]: low", "[^2]: last"]
    low = w("footnote w:id='1'", p("low", runs=cited("endnote", 5)))
    made = make_docx(
        p("a", runs=cited("footnote", 1)),
        footnotes=f"<w:footnotes {W}>{low}</w:footnotes>",
        endnotes=notes("endnote", _5="last"),
    )
    assert blocks(read("docx", made)) == ["a[^1]", "[^1]: low[^2]", "[^2]: last"]


def test_a_text_box_is_read_once_after_its_paragraph(read):
    box = f"<w:txbxContent>{p('boxed')}{p('twice')}</w:txbxContent>"
    runs = f"<w:r><mc:AlternateContent><mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback>"
    runs += f"<w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    assert blocks(read("docx", make_docx(p("a", runs=runs) + p("b")))) == ["a", "boxed", "twice", "b"]


DTD = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip


@pytest.mark.parametrize(
    ("prolog", "words"),
    [(DTD, "&e;"), (DTD, "x"), (BOMB, "&i;"), ('<!DOCTYPE x SYSTEM "http://h/x.dtd">', "x"), ("<!DOCTYPE x>", "x")],
)
def test_sec_07_word_files_with_a_document_type_are_refused(read, prolog, words):
    with pytest.raises(DocumentError, match="document type definition|amplification"):
        read("docx", make_docx(p(words), prolog=prolog))


def test_sec_07_neither_in_other_parts_nor_in_attributes(read):
    for kind, root in {"footnotes": "footnotes", "styles": "styles", "numbering": "numbering"}.items():
        with pytest.raises(DocumentError, match="document type definition|is damaged"):
            read("docx", make_docx(p("x"), **{kind: f"{DTD}<w:{root} {W}>&e;</w:{root}>"}))
    with pytest.raises(DocumentError):
        read("docx", make_docx(p("x", '<w:pStyle w:val="&i;"/>'), prolog=BOMB))


def test_sec_04_a_zip_bomb_is_refused_before_it_is_unpacked(read, monkeypatch):
    made = make_docx("".join(p("A" * 1_000_000) for _ in range(60)))
    assert len(made) < 200_000

    def unpack(*_):
        raise AssertionError("unpacked")

    monkeypatch.setattr(zipfile.ZipFile, "open", unpack)
    with pytest.raises(DocumentError, match="'word/document.xml' unpacks to more than 200 times its size"):
        read("docx", made)


@pytest.mark.parametrize(
    ("limit", "made", "says"),
    [
        ("MAX_UNPACKED", make_docx(p("x"), more=[("a.bin", bytes(200_000))]), "it unpacks to 20"),
        ("MAX_XML", make_docx("".join(map(p, map(str, range(9_000))))), "unpacks to .* bytes of XML"),
        ("MAX_PARTS", make_docx(p("x"), more=[(f"{n}.bin", b"") for n in range(100)]), "an archive of more than"),
    ],
)
def test_sec_04_size_and_parts_are_bounded(read, monkeypatch, limit, made, says):
    monkeypatch.setattr(docx, limit, 100 if limit == "MAX_PARTS" else 150_000)
    with pytest.raises(DocumentError, match=says):
        read("docx", made)


def test_sec_04_an_archive_that_lies_about_its_sizes_gives_no_more_than_it_says(read):
    body = "".join(p(f"{n * n}") for n in range(20_000))
    size = len(zipfile.ZipFile(io.BytesIO(made := make_docx(body))).read("word/document.xml"))
    assert made.count(size.to_bytes(4, "little")) == 2
    with pytest.raises(DocumentError, match="is damaged"):
        read("docx", made.replace(size.to_bytes(4, "little"), (9_000).to_bytes(4, "little")))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_sec_04_packing_that_cannot_be_bounded_is_refused(read, method):
    with pytest.raises(DocumentError, match="packed in a way that Word does not use"):
        read("docx", make_docx(p("x"), method=method))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "protected by a password, or an old .doc"),
        (b"PK\x03\x04 cut off", "is damaged, or no Word file"),
        (make_docx(p("x"))[:-30], "is damaged, or no Word file"),
        (make_docx("<w:p>"), "is damaged, or no Word file"),
        (make_docx("<w:ins>" * 50_000 + "</w:ins>" * 50_000), "is damaged, or no Word file"),
        (make_docx("<w:ins>" * 240 + p("deep") + "</w:ins>" * 240), None),
        (make_docx("<w:tbl><w:tr><w:tc>" * 80 + p("deep") + "</w:tc></w:tr></w:tbl>" * 80), None),
        (make_docx(numbered("x", 1) * 3, numbering=NUMBERING.replace('"%1."', f'"{"z" * 900_000}"')), None),
        (make_docx(numbered("x", 1), numbering=NUMBERING.replace('start w:val="1"', 'start w:val="999999"')), None),
    ],
)
def test_damaged_and_hostile_word_files(read, made, says):
    if says is None:
        assert len(read("docx", made).text) < 200
    else:
        with pytest.raises(DocumentError, match=says):
            read("docx", made)


def test_a_zip_that_is_no_word_file_and_one_with_a_password(read):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    with pytest.raises(DocumentError, match="is no ordinary Word file but a ZIP archive: save it as .docx"):
        read("docx", made.getvalue())
    data = bytearray(make_docx(p("x")))
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DocumentError, match="is encrypted"):
        read("docx", bytes(data))


def changed(data, changes, without=()):
    """A Word file with texts in its parts replaced, and without some of its parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(made, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            for old, new in changes.items():
                content = content.replace(old.encode(), new.encode())
            if name not in without:
                copy.writestr(name, content)
    return made.getvalue()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({f"{WORD}.document.main": "application/vnd.ms-word.document.macroEnabled.main"}, "with macros"),
        ({f"{WORD}.document.main": f"{WORD}.template.main"}, "a template"),
        (
            {f"{WORD}.document.main": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main"},
            "a workbook",
        ),
        (
            {"http://schemas.openxmlformats.org/officeDocument/2006": "http://purl.oclc.org/ooxml/officeDocument"},
            "Strict",
        ),
    ],
)
def test_another_kind_of_office_file_is_told_what_to_save_it_as(read, changes, says):
    with pytest.raises(DocumentError, match=rf"is no ordinary Word file but .*{says}.*: save it as .docx") as caught:
        read("docx", changed(make_docx(p("x")), changes))
    assert "object at 0x" not in str(caught.value)


@pytest.mark.parametrize(
    "target", ["../NULL", "NULL", "#_Toc1", "media/lost.png", "../../../../etc/hostname", "/etc/hostname"]
)
def test_a_link_to_a_part_that_is_not_there_is_overlooked_as_word_does(read, target):
    link = f'<!-- . --><Relationship Id="r9" Type="{OFFICE}/image" Target="{target}"/></Relationships>'
    assert read("docx", changed(make_docx(p("still read")), {"</Relationships>": link})).text == "still read"


def test_a_word_file_without_its_main_part_is_damaged(read):
    with pytest.raises(DocumentError, match="is damaged, or no Word file"):
        read("docx", changed(make_docx(p("x")), {}, without=["word/document.xml"]))
    saved = io.BytesIO()
    document = Word()
    document.add_paragraph("no styles")
    document.save(saved)
    assert read("docx", changed(saved.getvalue(), {}, without=["word/styles.xml"])).text == "no styles"


def test_nothing_outside_the_archive_is_opened_or_fetched(read, tmp_path, monkeypatch):
    (tmp_path / "secret.xml").write_text("<secret/>", encoding="utf-8")
    links = "".join(
        f'<Relationship Id="r{kind}" Type="{OFFICE}/{kind}" Target="{target}" TargetMode="External"/>'
        for kind in ("footnotes", "endnotes", "numbering", "image", "attachedTemplate")
        for target in [(tmp_path / "secret.xml").as_uri()]
    )
    made = changed(make_docx(p("read")), {}, without=["word/_rels/document.xml.rels"])
    with zipfile.ZipFile(stream := io.BytesIO(made), "a") as archive:
        archive.writestr(
            "word/_rels/document.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
        )
        archive.writestr("../../escaped.xml", "<x/>")
    assert read("docx", stream.getvalue()).text == "read"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.docx", "secret.xml"]


def test_a_numbering_has_no_more_levels_than_words(read):
    levels = [f'<w:lvl w:ilvl="{n}"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>' for n in range(999)]
    over = "".join(f'<w:lvlOverride w:ilvl="{n}">{level}</w:lvlOverride>' for n, level in enumerate(levels))
    numbering = f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>'
    numbering += f'<w:num w:numId="1"><w:abstractNumId w:val="0"/>{over}</w:num></w:numbering>'
    assert len(Numbering(parse_xml(numbering)).levels["1"]) == 9  # each level that has begun costs every item time
    assert read("docx", make_docx(numbered("x", 1, 998), numbering=numbering)).text == "1. x"


def test_python_docx_makes_and_this_reads_a_whole_document(read):
    document = Word()
    document.add_heading("Watches", 0)
    document.add_heading("Night", 2)
    document.add_paragraph("Lamps", style="List Bullet")
    document.add_paragraph("Oil", style="List Bullet 2")
    document.add_paragraph("First", style="List Number")
    document.add_page_break()
    document.sections[0].header.paragraphs[0].text = "HEADER"
    document.element.body.insert(0, parse_xml(f"<w:bookmarkStart {W} w:id='1' w:name='b'/>"))
    saved = io.BytesIO()
    document.save(saved)
    assert read("docx", saved.getvalue()).text == "# Watches\n\n## Night\n\n- Lamps\n    - Oil\n1. First"
