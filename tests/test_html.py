"""Reading HTML pages: what is kept as Markdown, and pages that are hostile."""

import time

import pytest
from files import blocks

from chunklab.documents import DocumentError
from chunklab.formats import elements, html


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h1>Ch 1</h1><p>a</p><h2>Sec 1.1</h2><p>b</p>", "# Ch 1|a|## Sec 1.1|b"),  # md-11
        ("<div><h1>Hello</h1><p>text</p></div>", "# Hello|text"),  # md-12
        ("<h3>a <b>bold</b>\n<br>head</h3>tail", "### a bold head|tail"),
        ("<h2></h2><h6>x<div>y</div></h6>", "###### x|###### y"),
        ("<p>one<p>two<div>three<div>four</div>five", "one|two|three|four|five"),
        ("a <a href='http://x/y'>link</a>, <i>i</i>talic<br>line", "a link, italic\nline"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n    - c\n- d"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ul><li>a<ol start=7><li>b</ol></ul>", "- a|    7. b"),
        ("<ul><li>a<p>more</p></li></ul><p>after", "- a|    more|after"),
        ("<li>alone", "- alone"),
        ("<dl><dt>term<dd>what</dl>", "term|what"),
        ("<pre># no heading\n  x &lt; 1\n</pre>", "```\n# no heading\n  x < 1\n```"),
        ("<pre>```</pre>", "````\n```\n````"),
        ("<p># none<p>a<br># b<br>===<p>~~~<p>&lt;!-- c<p>#tag", "\\# none|a\n\\# b\n\\===|\\~~~|\\<!-- c|#tag"),
        ("<script>x</script><style>y</style><noscript>n</noscript><template>t</template><p>z", "z"),
        ("<p hidden>a<p>b<div style='x:y;DISPLAY : none'><p>c<ul><li>d</ul></div>e", "b|e"),
        ("<p>a<span style='visibility:hidden'>b<br>c</span>d", "ad"),
        ("<p>a<embed src=x>b<p>c<source>d<track>e<wbr hidden>f", "ab|cdef"),
        ("<p>a<embed hidden>b</p><img hidden>c<input hidden>d<br hidden>e", "ab|cd\ne"),
        ("<ol><li>a<li value=5>b<li>c<li value=x>d</ol>", "1. a\n5. b\n6. c\n7. d"),
        ("<svg><text>s</text></svg><select><option>o</select><ruby>漢<rp>(</rp><rt>kan</rt></ruby>", "漢"),
        ("&lt;b&gt; &amp;amp; &eacute; &#x1F600; &#xD835;&nosuch; &nbsp;x", "<b> &amp; é 😀 �&nosuch; \xa0x"),
        ("<p>" + "שלום <b>עולם</b>" + "<p dir=rtl>مرحبا", "שלום עולם|مرحبا"),
        ("text </p></div></table></ul> more <b><i>x</b>y</i>", "text more xy"),
    ],
)
def test_an_html_page_is_read_as_markdown(read, page, expected):
    assert [b for b in blocks(read("html", page)) if b] == [b for b in expected.split("|") if b]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<tr><th>a<th>b<tr><td>1<td>2|3", "| a | b |\n| --- | --- |\n| 1 | 2\\|3 |"),
        ("<tr><td colspan=2>M<tr><td>1<td>2", "| M |  |\n| --- | --- |\n| 1 | 2 |"),
        ("<tr><td rowspan=2>M<td>1<tr><td>2", "| M | 1 |\n| --- | --- |\n|  | 2 |"),
        ("<tr><th>#<th>name<tr><td>#12<td>bell", "| # | name |\n| --- | --- |\n| #12 | bell |"),
        ("<tr><td>k<td><ol><li>a<li>b</ol>", "| k | 1. a 2. b |\n| --- | --- |"),
        ("<tr><td>k<td><p>a<p>b<ul><li>c</ul>", "| k | a b c |\n| --- | --- |"),
        ("<tr><td>k<td><table><tr><td>x<td>y</table>", "| k | x y |\n| --- | --- |"),
        ("<tr><td>a<tr><td>b<td>c<td>d", "| a |  |  |\n| --- | --- | --- |\n| b | c | d |"),
        ("<caption>C<tr><td>a<td>b", "C\n\n| a | b |\n| --- | --- |"),
        ("<tr><td><h2>Laid out</h2><p>x<td>y", "## Laid out\n\nx\n\ny"),
        ("<tr><td>one<tr><td>column", "one\n\ncolumn"),
        ("<tr><td>a<td>" + "long " * 300, "a\n\n" + ("long " * 300).strip()),
        ("<tr><td> <td>", None),
    ],
)
def test_an_html_table_is_a_markdown_table_unless_it_lays_out_the_page(read, page, expected):
    text = read("html", f"<table>{page}</table><p>after").text
    assert text == (f"{expected}\n\nafter" if expected else "after")


def test_the_title_of_a_page_is_metadata(read):
    document = read("html", "<html><head><title> The\nBells </title></head><body><h1>One</h1>")
    assert document.metadata["title"] == "The Bells" and document.text == "# One"


@pytest.mark.parametrize(
    "page",
    [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><p>&e;</p>',
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]><html>&e;</html>',
        '<!DOCTYPE x [<!ENTITY a "&b;&b;"><!ENTITY b "boom">]><p>&e;&a;</p>',
        '<p xmlns:xi="http://www.w3.org/2001/XInclude">&e;<xi:include href="file:///etc/hostname" parse="text"/></p>',
    ],
)
def test_sec_07_html_resolves_no_entity_and_includes_nothing(read, page):
    text = read("html", page).text
    assert "&e;" in text and "boomboom" not in text


@pytest.mark.parametrize(
    "opening",
    ["<div>", "<b>", "<blockquote>", "<h1>", "<ul><li>", "<table><tr><td>", "<p hidden>", "<svg>"],
)
def test_nesting_a_hundred_thousand_deep_costs_its_length(read, opening):
    began = time.process_time()
    text = read("html", "<p>begin</p>" + opening * 100_000 + "deep").text
    assert text.startswith("begin") and len(text) < 1_000_000
    assert time.process_time() - began < 20  # quadratic, it would be minutes


def test_a_page_that_the_parser_is_slow_with_is_given_up(read, monkeypatch):
    page = "<p>begin" + "<b>x</i>" * 100_000  # each end tag is looked for among all open elements
    monkeypatch.setattr(html, "MAX_SECONDS", 0.2)
    began = time.monotonic()
    with pytest.raises(DocumentError, match="is too deeply nested, or takes more than 0 s to read"):
        read("html", page)
    monkeypatch.undo()
    monkeypatch.setattr(html, "_DEEPEST", 1000)
    with pytest.raises(DocumentError, match="is too deeply nested"):
        read("html", page)
    assert time.monotonic() - began < 20
    assert read("html", "<p>x</p>" * 5000).metadata["elements"] == 5000


def test_huge_attributes_and_texts_are_read(read):
    page = f"<p title='{'a' * 11_000_000}'>x</p><p>{'b' * 11_000_000}</p><!--{'c' * 1_000_000}-->"
    assert len(read("html", page).text) == 11_000_003


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("<table><tr>" + "<td rowspan=65534>x" * 10_000 + "<tr><td>y" * 10_000, "a table of more than 1,000,000 cells"),
        ("<table>" + "<tr><td colspan=999999>x" * 12_000, "a table of more than 1,000,000 cells"),
        ("<p>a" * 50_001, "more elements than can be read at once"),
    ],
)
def test_a_page_cannot_blow_itself_up(read, page, says, monkeypatch):
    monkeypatch.setattr(elements, "MAX_ELEMENTS", 50_000)
    with pytest.raises(DocumentError, match=says):
        read("html", page)
