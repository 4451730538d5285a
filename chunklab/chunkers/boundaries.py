"""Where sentences end.

`sentence_spans` looks at every place where a sentence may end, a stop or a line end, and judges it by what stands
around it: rules and short lists of abbreviations, no model, no training. It knows the stops of many scripts (。！？ and
Arabic, Hindi, Armenian, Ethiopic ones), and most about English; German, French and other lists are small. Cost: one
pass over the text, quick enough to forget about.

A line end ends a sentence where a blank line follows, where a heading, table row or fence ends or begins, and where the
next line opens a list item. Where a stretch has no stop at all (notes, addresses, a list), every line is a sentence,
except long ones that the next word would not have fitted in. In prose, a line end is taken for wrapping, unless the
line looks like a heading: it stands at the head of its paragraph, the next word begins with a capital and would have
fitted.
"""

from __future__ import annotations

import re
from itertools import pairwise

from chunklab.chunk import BOM, Span, check_text, last_boundary

_FREE_STOPS = "。．！？｡؟۔।॥։።"  # end a sentence without a space after them
STOPS = ".!?…‼⁇⁈⁉‽\u037e" + _FREE_STOPS
_ENDS = "\n\r\u2028\u2029"
_SPECIAL = "#|`~=-"  # what a heading, a table row, a fence or an underline begins with
_QUOTES = "\"'”’“‘»«›‹」』"  # of these, “ ‘ « close in some languages and open in others
_FREE, _ASKS, _QUOTED = frozenset(_FREE_STOPS), frozenset("!?‼⁇⁈⁉‽"), frozenset(_QUOTES)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_EMOJI = "\u2600-\u27bf\u2b50\ufe0f\u200d\U0001f000-\U0001faff\U000e0020-\U000e007f"
_BLANK = rf"[^\S{_ENDS}]"
_CLOSER = (
    r"\]\([^\s()]{1,500}\)|[\"'”’»›‹」』)\]}】）》〉］｝*_`~⁰-⁹¹²³†‡]|(?<=[.!?…])[“‘«]|\[\^?\w{1,9}\]"
    rf"|[ \xa0\u202f]»(?=[\s,.;:]|\Z)|</\w+>| ?[{_EMOJI}]+| [:;]-?[)(DP](?!\w)"
)
CLOSERS = rf"(?:[{STOPS}]|{_CLOSER})*+"  # what may stand between a stop and the white space

WHITE = re.compile(rf"[\s{BOM}]*+")
_LINE_END = re.compile(rf"(?>\r\n|[{_ENDS}]){_BLANK}*+")
_EMPTY_LINE = re.compile(rf"(?>\r\n|[{_ENDS}])[\s{BOM}]*?[{_ENDS}]|\u2029")
_ITEM = re.compile(
    rf"(?:[-*+•‣◦▪●·–]|\(?\d{{1,3}}[.)]|(?:\d{{1,3}}\.){{2,}}|\(?[A-Za-z]\)|[a-z]\.|[IVX]{{2,4}}\.|\#{{1,6}}){_BLANK}"
    r"|\||```|~~~"
)
_AFTER_QUOTE = re.compile(  # what goes on with the sentence that a quotation stands in
    "[とをはがにの的]|って|です|だ|[他她我]们?[说问道答喊](?![：:])"
)
_UNDERLINE = re.compile(rf"([=~-])\1{{2,}}{_BLANK}*(?=[{_ENDS}]|\Z)")
_WHOLE_LINE = re.compile(rf"\#{{1,6}}{_BLANK}|\||```|{_UNDERLINE.pattern}")
_OPENERS = re.compile(rf"(?:{_BLANK}|[\"'“”‘’«»‹›„‚¿¡(\[{{「『（【《*_`>—–-])*+")
_JOINT = re.compile("[-'’]")
_WORD = re.compile(r"[^\W\d_]*")
_NUMERAL = re.compile(  # "3." or "Table 3." at the head of a sentence
    r"\W{0,4}(?:(?i:chapter|section|part|figure|table|step|item|article|appendix|annex|exhibit|example|question|lesson"
    r"|scene|act|book|volume|rule|note)\s)?(?:\d{1,3}(?:\.\d{1,3})*|[^\W\d_]|[IVXLC]{1,6}|[ivxlc]{1,4})\Z"
)
_NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.? [A-Z]")  # as headings often are
_LETTER = re.compile(r"[^\W\d_]")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_ORDINAL = re.compile(r"(?:im|vom|zum|zur|der|die|das|dem|den|des|seit|bis|\d{1,2}\.)\s\d{1,2}\Z", re.IGNORECASE)
_MONTH = re.compile(
    r"(?:Jan|Feb|Apr|Jun|Jul|Aug|Sep|Sept|Okt|Nov|Dez)\.|Januar|Februar|März|April|Mai|Juni|Juli|August|September"
    r"|Oktober|November|Dezember|\d{1,2}\. ?\d{4}"
)
_SAID = r"(?:said|says|asked|cried|replied|answered|shouted|whispered|called|exclaimed|yelled|added|thought|muttered)\b"
_HE_SAID = re.compile(rf"(?:(?:he|she|they|we|it) )?{_SAID}")
_NAME_SAID = re.compile(
    r"(?:I|(?!(?:He|She|We|They|It|You|The|Then|Nobody)\b)(?:(?:Mr|Mrs|Ms|Dr|Prof)\. )?[A-Z][\w’'-]+"
    rf"(?: [A-Z][\w’'-]+)?) {_SAID}"
)
_AT_A_TIME = re.compile(
    r"\W{0,3}(?:At|By|Around|About|Before|After|Until|From|Since) [\d:.]{1,5} ?[ap]\.m\Z", re.IGNORECASE
)
_DAY_OR_ZONE = re.compile(r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b|[A-Z]{2,4}\b")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations without their last dot, six letters at most. Those with a capital are abbreviations with a capital only.
_NEVER_LAST = _set(
    "Mr Mrs Ms Messrs Mx Dr Prof Rev Hon Fr Sen Rep Gov Gen Col Maj Capt Cmdr Lt Sgt Cpl Pvt Adm Pres Supt Asst Assoc"
    " Atty Dist Mme Mlle Sra Srta Dra Sig Dott dott Dhr Mevr Hr Dipl Ing EE P.S P.P.S N.B dr mr mrs vs cf viz incl"
    " excl bzw evtl ggf inkl vgl sog geb med phil rer nat jur np ul ул им डॉ"
)
_BEFORE_NUMBER = _set(
    "no nos nr n° fig figs abb vol vols p pp ch chap sec secs sect sects eq eqs art arts abs ref refs tab tel ext op"
    " para éq pág núm cap pt pts max min ca approx circa est arr dep pop ver ll vv env str rm apt tbl ft hr hrs lb lbs"
    " etc usw App Hwy Rte Bd Kap Anm Gem Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Okt Nov Dec Dez Mon Tue Tues Wed Thu"
    " Thur Thurs Fri Sat Sun"
)
_MAY_BE_LAST = _set(
    "Inc Ltd Co Corp Bros LLC Plc GmbH Jr Sr St Ste Ave Blvd Rd Sq Mt Ft Dept Univ Assn Esq Mio Mrd UU al ed eds av"
    " Ph.D M.Sc B.Sc"
)
_ABBREVIATIONS = frozenset(word.lower() for word in _NEVER_LAST | _BEFORE_NUMBER | _MAY_BE_LAST)
_LABELS = _set(
    "vitamin hepatitis influenza plan option appendix annex section part group type class grade figure table team"
    " step case exhibit schedule panel level unit hall model version category page chapter item line row column room"
    " gate"
)
_STARTERS = _set(
    "The This That These Those It He She They We You There Here A An In On At For From By With As If When While After"
    " Before Since Because Although Though However But And So Then Thus Therefore Meanwhile Moreover Also Its His Her"
    " Their Our My Your I What Who Why How Where Which Some Many Most All Both Each Every Not Nobody Everyone"
    " Everything Now Later Today Yesterday Tomorrow Last Next Once Until During Despite Let Please Another Such Do Did"
    " Does Is Are Was Were Can Could Will Would Should Have Has Had Der Die Das Ein Eine Er Sie Es Wir Ich Dann Danach"
    " Aber Und Im Il Elle Ils Elles Nous Vous Le La Les Un Une Ce El Los Las"
)
_OPEN_WORDS = _set(
    "a an the of to in on at for from by with and or as is are was were be been has have had that which who whose if"
    " than into onto over under its his her their our my your not und der die das den dem et de la le les des y el"
)


# A stop with all that belongs to it, or a line end; then white space. What cannot end a sentence is passed over right
# here, because here it costs least: a stop before a letter or digit (3.5, a.b), a line end before a word in lower case.
# Group 1 is most of English prose, and certain: a word that is no abbreviation, a stop, a capital. Group 2 is a full
# stop between such words in lower case. Group 3 is the white space of all others.
_SHORT = "".join(
    rf"(?<!{word}\.)" for word in sorted(_NEVER_LAST | _MAY_BE_LAST) if re.search("[a-z]{4}$|^[a-z]{2,3}$", word)
)
_LONG = "".join(rf"(?<!{word}\.)" for word in sorted(_ABBREVIATIONS) if re.search("[a-z]{5}$", word))
_CERTAIN = (
    rf"(?:(?:(?<=[a-z]{{4}}\.)|(?<=[ \n][a-z]{{3}}\.)|(?<=[ \n][a-z]{{2}}\.)){_SHORT}[\"”]?"
    r"|(?<=\w[!?])|(?<=[)\]%]\.)|(?<=\w \.)|(?<=\d{4}\.))[ \n]\n?(?=[A-Z][a-z ’'])"
)
_LOWER = rf"(?:(?<=[a-z]{{5}}\.){_LONG}|(?<=\d{{4}}\.)) (?=[a-z]{{2}})"
_BREAK = rf"(?<=[{_ENDS}])(?!(?:(?<=\r)\n)?+{_BLANK}*+[a-z](?![.)]\s))"
_STOP = rf"(?<![{_ENDS}])(?:(?<=[{_FREE_STOPS}])|(?![0-9A-Za-z/])){CLOSERS}"
_CANDIDATE = re.compile(rf"[{STOPS}{_ENDS}](?:({_CERTAIN})|({_LOWER})|(?:{_BREAK}|{_STOP})({WHITE.pattern}))")


def sentence_spans(text: str) -> list[Span]:
    """Where the sentences of a text begin and end.

    A sentence has the white space after it, so that the spans tile the text: joined, they give it back. Trim them for
    what a reader sees.

    Args:
        text: the document.

    Returns:
        (start, end) of each sentence, in order, from 0 to the end of the text; none for a blank text.

    Raises:
        ValueError: a text that is no str.

    >>> text = 'Dr. Lind paid $3.50. "Really?" I asked.'
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. Lind paid $3.50. ', '"Really?" I asked.']
    """
    start, size = WHITE.match(check_text(text)).end(), len(text)  # type: ignore[union-attr]
    edges, line, last, closed = [0], start, size, False
    for match in _CANDIDATE.finditer(text, start):
        place, after = match.span()
        if after == size:
            last, closed = place, text[place] not in _ENDS
            break
        if match.lastindex < 3:  # type: ignore[operator]
            ends = stopped = match.lastindex == 1 or _begins_lower(text, start)
        elif text[place] in _ENDS:
            ends, stopped = _divides(text, line, place, after), False
            line = line if ends else after
        else:
            ends = stopped = _ends_sentence(text, start, place, match.start(3), after)
        if not ends:
            continue
        if text[after] > "\u02ff":
            after = last_boundary(text, start, after)
            if after <= place:  # the stop is one character with what follows
                continue
        if line > start or not stopped or text[start] in _SPECIAL:
            edges += _ended_lines(text, start, place, stopped)
        edges.append(after)
        start = line = after
    if start < size:
        edges += _ended_lines(text, start, last, closed)
    return list(pairwise([*edges, size])) if start < size else []


def _divides(text: str, line: int, gap: int, after: int) -> bool:
    """Whether the white space text[gap:after] always ends a sentence; `line` is where its last line begins."""
    if text[gap:after] != "\n":
        if _EMPTY_LINE.search(text, gap, after):
            return True
        if not _LINE_END.search(text, gap, after):
            return False
    if _ITEM.match(text, after):
        if not text[after].isdigit() or _ITEM.match(text, line):
            return True
        return text[max(line, gap - 16) : gap].split()[-1].lower() not in _OPEN_WORDS | _LABELS  # "page\n12."
    special = text[line] in _SPECIAL and gap - line < 2000 and _WHOLE_LINE.match(text, line)
    return bool(special) and not _LINE_END.search(text, line, gap)


def _ended_lines(text: str, start: int, end: int, stopped: bool) -> list[int]:
    """The line ends that end a sentence in text[start:end], which holds no other end of one: where the next begin.

    In prose, which ends with a stop, a comma or a dash, they are those of headings at its head.
    """
    begins_line = text[max(0, start - 40) : start].rstrip(" \t\xa0\u3000" + BOM)[-1:] in _ENDS
    if not begins_line or not _LINE_END.search(text, start, end):
        return []
    prose = stopped or text[max(start, end - 4) : end].rstrip(_QUOTES)[-1:] in ":;,—–-"
    cuts, first, longest = [], start, _longest_line(text, start, end)
    for match in _LINE_END.finditer(text, start, end):
        left, right = match.span()
        if not _UNDERLINE.match(text, right):
            ended = (
                _is_heading(text, first, left, right, longest) if prose else _is_note(text, first, left, right, longest)
            )
            if (ended and text[left - 1] != ".") or _WHOLE_LINE.match(text, first):  # that full stop has been judged
                cuts.append(last_boundary(text, first, right))
            elif prose:
                break
        first = right
    return cuts


def _longest_line(text: str, start: int, end: int) -> int:
    """How long the longest line is of those that text[start:end] touches, for all that matters."""
    firsts = [start, *(match.end() for match in _LINE_END.finditer(text, start, end))]
    last = _LINE_END.search(text, end, end + 200)
    return max(right - left for left, right in pairwise([*firsts, last.start() if last else min(len(text), end + 200)]))


def _is_note(text: str, first: int, left: int, right: int, longest: int) -> bool:
    """Whether a line without a stop is a sentence: it is short, or the next word would have fitted in it."""
    head = _OPENERS.match(text, right).end()  # type: ignore[union-attr]
    word = _WORD.match(text, head).group()  # type: ignore[union-attr]
    return left - first < 50 or left - first + 1 + len(word) <= longest


def _is_heading(text: str, first: int, left: int, right: int, longest: int) -> bool:
    """Whether a line at the head of prose is a heading, or the like, and not wrapped."""
    head = _OPENERS.match(text, right).end()  # type: ignore[union-attr]
    words, word = text[first:left].split(), _WORD.match(text, head).group()  # type: ignore[union-attr]
    if word[:1].islower() or words[-1].lower() in _OPEN_WORDS or words[-1][-1] in ",;-–—(&/":
        return False
    filled, starts = (left - first + 1 + len(word)) / longest, word in _STARTERS and word != "I"
    title = all(w[0].isupper() or not w[0].isalpha() or w in _OPEN_WORDS for w in words)
    title = len(words) <= 10 and (title or _NUMBERED.match(text, first) is not None)
    return filled <= 0.6 or (title and starts) or (filled <= 1 and (title or starts))


def _ends_sentence(text: str, start: int, place: int, tail: int, after: int) -> bool:
    """Whether the sentence from `start` ends with the stop text[place:tail], white space up to `after` following."""
    marks = text[place:tail]
    if tail < after and text[tail:after] != " " and _divides(text, start, tail, after):
        return True
    if place == start:
        return False
    if tail == after:
        return _ends_unspaced(text, start, place, marks, after)
    head = after if text[after].isalnum() else _OPENERS.match(text, after).end()  # type: ignore[union-attr]
    first = text[head : head + 1]
    if first == "." or first in ",;:)]}&=|+%/!?" or text[place - 1] in "([":
        return text[head : head + 2] == ".."
    quoted = not _QUOTED.isdisjoint(marks)
    if text[place] == "." and not quoted and place - start < 24 and _NUMERAL.match(text, start, place):
        return False
    if marks == ".":
        return _full_stop_ends(text, start, place, head)
    if not _FREE.isdisjoint(marks):
        return True
    asks, omits = not _ASKS.isdisjoint(marks), "…" in marks or ".." in marks
    if _is_lower(text, head):
        bare = not marks.strip(STOPS) and head == after and not text.endswith(("Yahoo!", "Jeopardy!"), start, tail)
        return asks and not omits and bare and not _HE_SAID.match(text, head)
    if (asks or omits) and quoted and _NAME_SAID.match(text, head):
        return False
    if omits and not asks:
        word = _WORD.match(text, head).group()  # type: ignore[union-attr]
        return word in _STARTERS if text[place - 1].isspace() else not text.endswith(word, start, place)
    return True


def _ends_unspaced(text: str, start: int, place: int, marks: str, after: int) -> bool:
    """Whether a stop that no white space follows ends a sentence, as it does in Chinese and Japanese."""
    follows, last = text[after], next(mark for mark in reversed(marks) if mark in STOPS)
    if last in _FREE_STOPS:
        joins = marks[-1] != last and _AFTER_QUOTE.match(text, after)
        numeral = follows.isdigit() or (place - start < 24 and _NUMERAL.match(text, start, place))
        return not (joins or follows in "，、；：,;:" or (last == "．" and numeral))
    return last in "!?." and _CJK.match(follows) is not None and _CJK.match(text[place - 1]) is not None


def _full_stop_ends(text: str, start: int, place: int, head: int) -> bool:
    """Whether the sentence from `start` ends with the full stop at `place`; the next word begins at `head`."""
    lower = _is_lower(text, head)
    if place - 7 >= start and text[place - 7 : place].isalpha() and not text[head].isdigit():
        return not lower or _begins_lower(text, start)
    word = _WORD.match(text, head).group()  # type: ignore[union-attr]
    number = text[head].isdigit() or text[head] in "$€£#§"
    if text[place - 1].isspace():
        return word in _STARTERS if text[place - 2] == "." else not lower
    token = text[max(start, place - 24) : place].split()[-1]
    token = _JOINT.split(token.lstrip("([{\"'“‘«„¿¡*_`—–"))[-1]
    plain = token.lower()
    if lower:
        return (
            _begins_lower(text, start)
            and (len(token) > 1 or token.isdigit())
            and "." not in token
            and plain not in _ABBREVIATIONS
        )
    if plain in ("a.m", "p.m"):
        return not (_DAY_OR_ZONE.match(text, head) or _AT_A_TIME.match(text, start, place))
    if len(token) == 1 and token.isalpha() and token < "\u2e80":
        before = text[max(start, place - 24) : place].split()[-2:-1]
        starts = word in _STARTERS and text[head + len(word) : head + len(word) + 1] != "."
        return not number and (starts or any(one.lower() in _LABELS for one in before))
    forms = {token, plain, token.capitalize() if token.isupper() else token}
    if forms & _NEVER_LAST or (plain == token and _DOTTED.match(token)):
        return False
    if forms & _MAY_BE_LAST or _DOTTED.match(token):
        return not number and word in _STARTERS
    if forms & _BEFORE_NUMBER or token.endswith("str"):
        roman = word and set(word) <= set("IVXLC") and word != "I"
        return not (number or roman or (len(word) == 1 and word not in "IA"))
    if token.isdigit() and len(token) <= 2:
        return not (_MONTH.match(text, head) or _ORDINAL.search(text, max(start, place - 8), place))
    return True


def _begins_lower(text: str, start: int) -> bool:
    """Whether the first letter of a sentence is in lower case: then its writer may begin the next one so, too."""
    if "a" <= text[start] <= "z" and text[start + 1].islower():
        return True
    letter = _LETTER.search(text, start, start + 200)
    return letter is not None and _is_lower(text, letter.start())


def _is_lower(text: str, head: int) -> bool:
    """Whether a word begins in lower case, and not as iPad does."""
    return text[head].islower() and not text[head + 1 : head + 2].isupper()
