"""Clean the text of pages: running headers and page numbers out, words broken at line ends joined, spaces single.

A PDF holds what was printed, and print repeats the title on every page and breaks words where the line ends. All of it
ends up in chunks, splits sentences, and hides words from search. It serves whoever reads PDFs (the second and third
step help with any text). Each step is a rule of thumb that can be wrong, so each is done only when asked for. Linear.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import islice

_EDGE = 3  # lines from the top or the foot of a page where a running line may stand
_MOST = 0.4  # the share of the pages on which it stands; less than half, since left and right pages may differ
_NUMBER = re.compile(r"(?<!\d)\d{1,6}(?!\d)")
_ROMAN = re.compile(r"\b(?=[ivxlc])(c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})(?<=[ivxlc])\b")
_STOP = re.compile(r"[.!?:;。！？…][\"'”’»)\]]*$")

_BREAK = re.compile(r"(?<=[^\W_])([-\u2010\u00ad])[ \t]*(?:\r\n|[\n\r\u2028])[ \t]*(?=[^\W_])")
_WORD_BEFORE = re.compile(r"[^\W\d_]+$")
_WORD_AFTER = re.compile(r"[^\W\d_]+")
_WORDS = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LONGEST_WORD = 40
_LINE_END = r"(?:\r\n|\r(?!\n)|[\n\u2028])"
_BLANK_LINES = re.compile(rf"({_LINE_END}[ \t]*{_LINE_END})(?:[ \t]*{_LINE_END})+")
# Halves of English compounds that keep their hyphen. The first are seldom a syllable that a typesetter splits off, the
# second seldom follow four letters or more otherwise.
_FIRSTS = set(
    "all anti best better cross double eight eighty ever far fast fifty fine first five forty four free full good half "
    "hard high ill large late left light little long low many mid multi near nine ninety non old one open part post "
    "quasi ready right second self semi seven seventy short single six sixty slow small so soft ten third thirty three "
    "top triple twenty two ultra well wide worst year".split()
)
_SECONDS = set(
    "adjusted aged associated aware based bound built containing dependent driven enabled ended fed free induced led "
    "level like linked looking made mediated minded oriented owned party powered proof related rich shaped sized "
    "specific term time type weight wide".split()
)
# Endings that make one word with such a half: low-er, six-teen, well-ness. No second half of a compound begins so.
_ENDINGS = re.compile(
    r"(?:able|age|al|ally|ance|ate|ed|en|ence|er|ers|ery|est|ety|ful|hood|ible|ic|ical|ier|ies|iest|ily|iness|ing|ings|"
    r"ion|ions|ish|ism|ist|ity|ive|less|let|lights?|lighted|ly|ment|ments|ness|or|ous|s|ship|some|"
    r"sion|teen|teenth|th|tion|tions|ty|"
    r"ual|ually|ure|ward|wards|way|ways|y)\Z"
)
# Small words inside compounds: state-of-the-art, over-the-counter. A hyphen on their other side shows such a one.
_INNER = set("a and as at by for in of off on out over than the to up".split())
_AND = {"and", "und", "oder"}


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """Leave out headers, footers and page numbers.

    A line among the first or last three of its page is one if it stands, the case and the spaces aside, in such a place
    on at least two pages and 40% of them. If a number in it goes up with the pages, three pages are enough.

    Args:
        pages: the text of each page.

    Returns:
        As many texts.

    >>> without_running_lines(["HEAD\\nThe clause continues\\n3", "HEAD\\non the next page.\\n4"])
    ['The clause continues', 'on the next page.']
    """
    split = [page.splitlines() for page in pages]
    edges = [_edges(lines) for lines in split]
    seen: Counter[tuple[str, int | None]] = Counter()
    for number, (lines, places) in enumerate(zip(split, edges, strict=True)):
        seen.update({key for place in places for key in _keys(lines[place], number)})
    least = max(2, math.ceil(_MOST * len(pages)))
    running = {key for key, count in seen.items() if count >= (least if key[1] is None else min(least, 3))}
    kept = []
    for number, (page, lines, places) in enumerate(zip(pages, split, edges, strict=True)):
        out = {place for place in places if _keys(lines[place], number) & running}
        kept.append("\n".join(line for place, line in enumerate(lines) if place not in out) if out else page)
    return kept


def page_joint(previous: str, following: str) -> str:
    """What stands between two pages: a space where a sentence goes on, a line end inside a word, else a blank line.

    >>> page_joint("The clause continues", "on the next page."), page_joint("It ends.", "Another begins.")
    (' ', '\\n\\n')
    """
    previous, first = previous.rstrip(), following.lstrip()[:1]
    # A letter that is no capital: a small one, or of a script that has no case.
    if not first.isalpha() or first.isupper() or first.istitle() or not previous or _STOP.search(previous[-8:]):
        return "\n\n"
    return "\n" if previous[-1] in "-\u2010\u00ad" else " "


def join_hyphens(text: str, starts: Sequence[int] = ()) -> tuple[str, list[int]]:
    """Join words that are broken at the end of a line, and keep the hyphens that are the word's own.

    A hyphen stays, and only the line end goes, where one of these holds: a digit or a capital follows, or a single
    letter goes before; the parts belong to an address; the text has the word elsewhere, more often with its hyphen than
    in one; it has it nowhere, and it begins or ends as English compounds do (well-, self-, two-, -based) or has a small
    word within (state-of-the-art). Else the hyphen goes. Soft hyphens go wherever they stand. Of 6,150 breaks that
    hyphenation patterns made in public texts of many kinds, this judges 1 in 110 wrongly; if every hyphen went, it
    would be 1 in 20. (The lists of halves were made with those texts in view.)

    Args:
        text: the text.
        starts: offsets in it that are to be kept, in order.

    Returns:
        The joined text, and where those offsets are in it.

    >>> join_hyphens("An exam-\\nple of wrap, well-\\nknown too.")[0]
    'An example of wrap, well-known too.'
    """
    halves = (_halves(text, found) for found in _BREAK.finditer(text))
    words = {form for left, right in halves if left and right for form in (left + right, f"{left}-{right}")}
    counts = Counter(
        word for found in _WORDS.finditer(text) if (word := found.group().casefold().replace("\u2010", "-")) in words
    )
    text, starts = _edit(text, ((found, _mended(text, found, counts)) for found in _BREAK.finditer(text)), starts)
    return _edit(text, ((found, "") for found in re.finditer("\u00ad", text)), starts)


def single_spaces(text: str, starts: Sequence[int] = ()) -> tuple[str, list[int]]:
    """Make runs of spaces and tabs one space, but not where they indent a line; none at line ends; one blank line only.

    Args:
        text: the text.
        starts: offsets in it that are to be kept, in order.

    Returns:
        The text, and where those offsets are in it.

    >>> single_spaces("  a  b \\n\\n\\n\\nc")[0]
    '  a b\\n\\nc'
    """
    runs = re.finditer(r"(?<=[^ \t\n\r\u2028])[ \t]+(?=([\n\r\u2028]|\Z)?)", text)
    text, starts = _edit(text, ((found, " " if found.group(1) is None else "") for found in runs), starts)
    return _edit(text, ((found, found.group(1)) for found in _BLANK_LINES.finditer(text)), starts)


def _edges(lines: list[str]) -> list[int]:
    filled = [place for place, line in enumerate(lines) if line.strip()]
    return filled if len(filled) <= 2 * _EDGE else filled[:_EDGE] + filled[-_EDGE:]


def _keys(line: str, page: int) -> set[tuple[str, int | None]]:
    """What a running line has in common with itself on other pages; also how far a number in it is ahead of them."""
    if len(line) > 200:
        return set()
    line = " ".join(line.split()).casefold()
    # Of lines without letters only a date is told from what a table repeats.
    speaks = any(sign.isalpha() or sign == "©" for sign in line) or sum(map(str.isdigit, line)) >= 6
    keys: set[tuple[str, int | None]] = {(line, None)} if speaks else set()
    for numerals, value in ((_NUMBER, lambda found: int(found.group())), (_ROMAN, _value)):
        for found in islice(numerals.finditer(line), 4):
            keys.add((f"{line[: found.start()]}#{line[found.end() :]}", value(found) - page))
    return keys


def _value(roman: re.Match[str]) -> int:
    tens = {"xc": 9, "xl": 4}.get(roman[2], 5 * roman[2].count("l") + roman[2].count("x"))
    ones = {"ix": 9, "iv": 4}.get(roman[3], 5 * roman[3].count("v") + roman[3].count("i"))
    return 100 * len(roman[1]) + 10 * tens + ones


def _halves(text: str, found: re.Match[str]) -> tuple[str, str]:
    """The letters before and after a break, in small letters; "" where there are none or far too many."""
    before = _WORD_BEFORE.search(text, max(0, found.start() - _LONGEST_WORD), found.start())
    after = _WORD_AFTER.match(text, found.end(), found.end() + _LONGEST_WORD)
    return before.group().casefold() if before else "", after.group().casefold() if after else ""


def _mended(text: str, found: re.Match[str], counts: Counter[str]) -> str:
    """What stands in the place of a break: its hyphen, or nothing."""
    hyphen = found.group(1)
    if hyphen == "\u00ad":
        return ""
    left, right = _halves(text, found)
    if right in _AND and not counts[left + right]:
        return hyphen + " "  # "two- and three-storey"
    return hyphen if _keeps_hyphen(text, found, left, right, counts) else ""


def _keeps_hyphen(text: str, found: re.Match[str], left: str, right: str, counts: Counter[str]) -> bool:
    both_upper = text[found.start() - 1].isupper() and text[found.end()].isupper()
    if len(left) < 2 or not right or (text[found.end()].isupper() and not both_upper):
        return True
    token = text[max(0, found.start() - 100) : found.start()].split()[-1]
    if re.search(r"[@/\\_]|www\.", token):
        return True
    joined, hyphened = counts[left + right], counts[f"{left}-{right}"]
    if joined or hyphened:
        return hyphened > joined
    if _is_inside(text, found, left, right):
        return True
    return (left in _FIRSTS and not _ENDINGS.match(right)) or (len(left) > 3 and right in _SECONDS)


def _is_inside(text: str, found: re.Match[str], left: str, right: str) -> bool:
    """Whether the break is in a compound of three words or more: next to a small word that has two hyphens."""
    before, after = found.start() - len(left) - 1, found.end() + len(right)
    return (left in _INNER and text[max(before, 0)] == "-") or (right in _INNER and text[after : after + 1] == "-")


def _edit(text: str, edits: Iterable[tuple[re.Match[str], str]], starts: Sequence[int]) -> tuple[str, list[int]]:
    """Put a text in the place of each match, given in order; an offset inside of one moves to its end."""
    # There may be millions of them: numbers, not lists of what was found.
    begins, ends, shifts = array("q"), array("q"), array("q", [0])
    place, edited = 0, StringIO()
    for found, new in edits:
        start, end = found.span()
        edited.write(text[place:start])
        edited.write(new)
        place = end
        begins.append(start)
        ends.append(end)
        shifts.append(shifts[-1] + len(new) - (end - start))
    moved = []
    for offset in starts:
        before = bisect_right(ends, offset)
        if before < len(begins) and begins[before] < offset:
            offset, before = ends[before], before + 1
        moved.append(offset + shifts[before])
    edited.write(text[place:])
    return edited.getvalue(), moved
