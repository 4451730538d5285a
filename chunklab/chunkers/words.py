"""Words, counted: the measure of chunkers whose sizes people set, who think in words and not in characters or tokens.

A word is what white space divides; in Chinese and Japanese, which have no spaces, each character is one. (In Thai and
its neighbours, which have few, what stands between two of them counts as one.) Cost: one pass of numpy over the text;
after that, no part of it is counted again.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache

import numpy as np

_IDEOGRAPHS = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_SPACE, _IDEOGRAM, _LETTER = 0, 1, 2


def count_words(text: str) -> int:
    """The number of words: what white space divides, where each Chinese or Japanese character is a word by itself.

    >>> count_words("A line – it's 5 words… or 8."), count_words("漢字とkana。")
    (8, 4)
    """
    return len((text if text.isascii() else _IDEOGRAPH.sub(" x ", text)).split())


class Words:
    """The words of a text, counted once, so that those of any part of it are known at once.

    Args:
        text: the text.

    >>> words = Words("One two three")
    >>> words.between(4, 13), words.after(0, 2)
    (2, 8)
    """

    def __init__(self, text: str) -> None:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = _kinds_of_characters()[codes]
        begins = kinds != _SPACE
        begins[1:] &= (kinds[1:] == _IDEOGRAM) | (kinds[:-1] != _LETTER)
        begun = np.concatenate((np.zeros(1, np.int32), np.cumsum(begins, dtype=np.int32)))
        inside = np.append(~begins & (kinds == _LETTER), False)
        # Of each place, how many words begin before it, and whether it is inside one. A memoryview is quickest to ask.
        self._before, self._inside = memoryview(begun), memoryview(inside)  # type: ignore[arg-type]

    def between(self, start: int, end: int) -> int:
        """How many words text[start:end] has: count_words(text[start:end])."""
        return self._before[end] - self._before[start] + (start < end and self._inside[start])

    def after(self, start: int, number: int) -> int:
        """Where the word begins that has `number` words between `start` and itself; the end of the text if none has."""
        wanted = self._before[start] + number + 1 - self._inside[start]
        return bisect_left(self._before, wanted) - 1 if wanted <= self._before[-1] else len(self._before) - 1


@cache
def _kinds_of_characters() -> np.ndarray:
    """For each code point: white space, a word by itself, or a part of one."""
    kinds = np.full(0x110000, _LETTER, np.uint8)
    kinds[[code for code in range(0x3001) if chr(code).isspace()]] = _SPACE
    for first, last in re.findall("(.)-(.)", _IDEOGRAPHS):
        kinds[ord(first) : ord(last) + 1] = _IDEOGRAM
    return kinds
