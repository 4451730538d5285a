"""Turn the bytes of a text file into text, and say which encoding they were in and whether that was guessed.

A byte order mark decides; then UTF-8, which hardly any other text is by accident; then what an HTML page declares; then
a guess by charset-normalizer, with Windows' Western code page where that fits. It serves whoever reads files of unknown
origin: a wrong encoding spoils every search, and nothing shows it. Linear, and quick where there is nothing to guess.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from chunklab.formats.elements import DocumentError

# UTF-32's marks first: the little-endian one begins with UTF-16's.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHERS = "cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 koi8_r cp874 cp932 euc_jp gb18030 big5 cp949".split()
_SAMPLE = 100_000
_AROUND = 40  # bytes beside one that is not ASCII that help a guess
_FEW = 4  # controls that even a short text may hold
_DECLARED = re.compile(
    rb"""<(?:meta\b[^>]{0,200}?charset|\?xml\b[^>]{0,80}?encoding)\s*=\s*["']?\s*([\w-]{2,20})""", re.IGNORECASE
)
# What the HTML standard reads under these names, where it is more than the name says.
_WEB = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254"}
_WEB |= {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "shift-jis": "cp932", "euc-kr": "cp949"}
_WEB_NAME = re.compile(r"windows-12\d\d|windows-874|iso-8859-\d\d?|koi8-[ru]|gb18030|big5|euc-jp|iso-2022-jp|macintosh")
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SIGNATURES = {b"%PDF-": "a PDF", b"PK\x03\x04": "a Word file or another ZIP archive"}
_SIGNATURES |= {b"\xd0\xcf\x11\xe0": "an old Office file", b"\x1f\x8b": "a compressed file"}
_SIGNATURES |= {b"\x89PNG": "an image", b"\xff\xd8\xff": "an image", b"{\\rtf": "an RTF file"}


class Decoded(NamedTuple):
    """A text, the encoding that it was in, and whether that was guessed."""

    text: str
    encoding: str
    guessed: bool


def decode(data: bytes, web: bool = False) -> Decoded:
    """Decode the bytes of a text file; what cannot be decoded becomes U+FFFD, never an error.

    Args:
        data: the bytes.
        web: whether they are an HTML page, which may declare its encoding.

    Returns:
        The text, without its byte order mark; the encoding; whether it was guessed.

    Raises:
        DocumentError: the bytes are no text.

    >>> decode("na\\u00efve".encode("cp1252"))
    Decoded(text='naïve', encoding='cp1252', guessed=True)
    """
    if what := other_kind(data):
        raise DocumentError(f"is {what}, not a text: give it the ending that it should have")
    decoded = _marked(data) or _wide(data) or _utf_8(data) or (web and _declared(data)) or _guessed(data)
    start = decoded.text[:_SAMPLE]
    # In a known encoding a few controls are somebody's odd text; in a guessed one they show that it is none.
    most = len(start) * 0.02 if decoded.guessed else max(len(start) * 0.1, _FEW)
    if len(_CONTROL.findall(start)) > most:
        likely = "an image or a program, perhaps; if it is a text, save it as UTF-8"
        raise DocumentError(f"is no text: it holds too many control characters ({likely})")
    return decoded


def other_kind(data: bytes) -> str:
    """What a file is that begins like these bytes, if it is known and no plain text; else "".

    >>> other_kind(b"%PDF-1.7 ...")
    'a PDF'
    """
    return next((what for signature, what in _SIGNATURES.items() if data.startswith(signature)), "")


def repair(text: str) -> str:
    """Pair the halves of surrogate pairs again, put U+FFFD for a half alone, and drop NUL: UTF-8 can then hold it.

    >>> repair("ok \\ud835 tail \\x00 \\ud83d\\ude00")
    'ok � tail  😀'
    """
    text = text.replace("\x00", "")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _marked(data: bytes) -> Decoded | None:
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return Decoded(_strict_but_surrogates(data, encoding), encoding.removesuffix("-sig"), False)
    return None


def _strict_but_surrogates(data: bytes, encoding: str) -> str:
    """Let surrogates pass, for `repair` to pair; else U+FFFD for what is wrong."""
    try:
        return data.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return data.decode(encoding, "replace")


def _wide(data: bytes) -> Decoded | None:
    """UTF-32 or UTF-16 without its mark, by where its bytes are NUL."""
    start = data[: 4 * (_SAMPLE // 4)]
    nuls = [start[place::4].count(0) for place in range(4)]
    quarter = len(start) // 4  # of each four bytes, the two high ones; nearly all characters have them so
    for low, high, highest, encoding in ((0, 2, 3, "utf-32-le"), (3, 1, 0, "utf-32-be")):
        if quarter > 1 and nuls[highest] == quarter and nuls[high] > 0.9 * quarter and not nuls[low]:
            return Decoded(_strict_but_surrogates(data, encoding), encoding, True)
    even, odd, half = nuls[0] + nuls[2], nuls[1] + nuls[3], len(start) // 2  # every other byte of Western text
    for most, least, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if half > 1 and (most == half or most > max(0.4 * half, _FEW)) and least < 0.05 * half:
            return Decoded(_strict_but_surrogates(data, encoding), encoding, True)
    return None


def _utf_8(data: bytes) -> Decoded | None:
    if data.isascii() and b"\x1b$" in data:
        return None  # ISO-2022-JP, if a page declares it
    try:
        return Decoded(data.decode("utf-8", "surrogatepass"), "utf-8", False)
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        # Other encodings hardly ever make a valid sequence: with as many right ones as wrong it is damaged UTF-8.
        wrong = text.count("\ufffd")
        right = len(text) - len(text.encode("ascii", "ignore")) - wrong
        return Decoded(text, "utf-8", True) if right >= wrong else None


def _declared(data: bytes) -> Decoded | None:
    found = _DECLARED.search(data[:4096])
    name = found.group(1).decode("ascii").lower() if found else ""
    name = _WEB.get(name, name if _WEB_NAME.fullmatch(name) else "")
    return Decoded(data.decode(name, "replace"), name, False) if name else None


def _guessed(data: bytes) -> Decoded:
    from charset_normalizer import from_bytes

    sample = _telling(data) or data[:_SAMPLE]
    for encodings in (["cp1252"], _OTHERS):
        best = from_bytes(sample, cp_isolation=encodings, enable_fallback=False).best()
        if best is not None:
            return Decoded(data.decode(best.encoding, "replace"), best.encoding, True)
    return Decoded(data.decode("cp1252", "replace"), "cp1252", True)


def _telling(data: bytes) -> bytes:
    """What is not ASCII, with the words that it stands in; the rest says nothing, and would hide it."""
    pieces, size, place = [], 0, 0
    for found in _NOT_ASCII.finditer(data):
        start = max(place, found.start() - _AROUND)
        place = max(place, min(found.end() + _AROUND, len(data)))
        pieces.append(data[start:place])
        size += place - start
        if size > _SAMPLE:
            break
    return b"".join(pieces)[:_SAMPLE]
