"""How many tokens a text has for a model, and where they begin.

A limit in tokens is a promise about one model: `minilm` counts as the course's embedder reads (WordPiece), `cl100k` and
`o200k` as OpenAI's models do (byte pair encoding, by tiktoken). The tokenizers are the industry's own, loaded from
files in the cache, so nothing asks the network. What is added here: character offsets that never fall inside a
character, words that look like special tokens counted as the plain text that they are, and a time that grows linearly
whatever the text. Cost: 18 million characters a second for cl100k, 5 for minilm on two cores.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import regex

from chunklab.models.weights import check_name, damaged, once, weight

if TYPE_CHECKING:
    import tiktoken
    import tokenizers

NAMES = ("minilm", "cl100k", "o200k")

# The tokenizers read pieces of about this many characters: WordPiece is quickest on short ones, many at a time, and
# tiktoken does not care, up to the point where its pattern overflows (half a million blanks).
_PIECE = {"minilm": 4_096, "cl100k": 32_768, "o200k": 32_768}
# How far to look on for a cut that changes no token. Only a run of letters, of blanks or of signs without any break
# goes on for longer; it is cut here, which may split one token in two.
_REACH = 65_536
_PIECES_AT_ONCE = 64

# Before these, a new token begins whatever stands on either side.
_WORDPIECE_CUT = re.compile(r"[ \t\n\r!-/:-@\[-`{-~\u3000-\u3002\uff01\uff0c\uff1f\u4e00-\u9fff]")
_BPE_CUT = regex.compile(r"(?<=\S) |(?<=\p{L})[^\p{L}\p{M}']|(?<=\p{N})[^\p{N}]")
_GRAPHEME = regex.compile(r"\X")
_SHORT = 2000  # characters; counts of longer texts are not remembered, which would take memory
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokens:
    """Counts a model's tokens; made by `tokens(name)`.

    The count is that of the model's own tokenizer, without the special tokens that a model adds around a text (MiniLM
    adds two). One exception: in a run of more than 65,536 characters that offers no place to cut (one letter again and
    again, blanks alone), each such stretch is counted by itself.

    Attributes:
        name: "minilm", "cl100k" or "o200k".
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tokens({self.name!r})"

    def __call__(self, text: str) -> int:
        """The number of tokens of a text.

        Args:
            text: any text; special tokens in it, such as <|endoftext|>, are read as plain text.

        Returns:
            The number of tokens; of blanks, what the model makes of them: 0 for minilm.
        """
        remembered = isinstance(text, str) and len(text) <= _SHORT
        return _counted(self.name, text) if remembered else self._count(text)

    def _count(self, text: str) -> int:
        text = well_formed(text)
        return sum(map(len, self._encoded(self._pieces(text), offsets=False)))

    def offsets(self, text: str) -> list[int]:
        """Where each token begins, in characters.

        Args:
            text: any text.

        Returns:
            One offset a token, never decreasing. A token that begins inside a character, or inside one that the token
            before it has begun, repeats the offset before: nobody may cut there.
        """
        text = well_formed(text)
        of_piece = _wordpiece_offsets if self.name == "minilm" else _bpe_offsets
        found: list[int] = []
        offset = 0
        for piece, encoded in zip(self._pieces(text), self._encoded(self._pieces(text)), strict=True):
            found.extend(of_piece(self.name, piece, encoded, offset))
            offset += len(piece)
        return found

    def starts(self, text: str) -> list[int]:
        """Where one may cut between tokens.

        Args:
            text: any text.

        Returns:
            The offsets of the tokens that begin a character, strictly increasing: where several tokens make one
            character, there is one start.
        """
        return list(dict.fromkeys(self.offsets(text)))

    def _pieces(self, text: str) -> Iterator[str]:
        return pieces(text, _WORDPIECE_CUT if self.name == "minilm" else _BPE_CUT, _PIECE[self.name])

    def _encoded(self, pieces: Iterator[str], offsets: bool = True) -> Iterator[Any]:
        """Each piece's tokens, as the tokenizer gives them."""
        if self.name != "minilm":
            encoding = _bpe(self.name)
            return (encoding.encode_to_numpy(piece, disallowed_special=()) for piece in pieces)
        tokenizer = wordpiece()
        encode = tokenizer.encode_batch if offsets else tokenizer.encode_batch_fast
        batches = iter(lambda: list(islice(pieces, _PIECES_AT_ONCE)), [])
        return (encoded for batch in batches for encoded in encode(batch, add_special_tokens=False))


@lru_cache(8192)
def _counted(name: str, text: str) -> int:
    """The same chunk is counted by a chunker, by a strategy for its budget, and for the scoreboard."""
    return Tokens(name)._count(text)


def tokens(name: str = "minilm") -> Tokens:
    """A model's way of counting tokens, to be given wherever a length function is asked for.

    Args:
        name: "minilm" (the local embedder), "cl100k" (text-embedding-3, GPT-4) or "o200k" (GPT-4o and later).

    Returns:
        A function from a text to its number of tokens, with `starts` for their offsets.

    Raises:
        ValueError: another name.
        WeightsError: the tokenizer's file is not in the cache and could not be fetched.

    >>> count = tokens("cl100k")
    >>> count("naïve café"), count.starts("naïve café")
    (4, [0, 2, 3, 5])
    """
    check_name("name", name, NAMES)
    wordpiece() if name == "minilm" else _bpe(name)  # a missing file shows here, not in the middle of the work
    return Tokens(name)


def well_formed(text: str) -> str:
    """The text with each lone surrogate (half of a character, left by a bad decoder) replaced, one for one.

    Tokenizers and networks take only what UTF-8 can hold; one for one, so that offsets stay true.

    >>> well_formed("ok \\ud835") == "ok \\ufffd"
    True
    """
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}: must be a str")
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def pieces(text: str, cut: re.Pattern[str] | regex.Pattern[str], size: int) -> Iterator[str]:
    """The text in pieces of about `size` characters, cut where the pattern matches."""
    start = 0
    while len(text) - start > size:
        target = start + size
        found = cut.search(text, target, min(target + _REACH, len(text)))
        if found:
            end = found.start()
        elif target + _REACH >= len(text):
            break
        else:  # no good place: at least between two things that a reader sees as characters
            *_, cluster = _GRAPHEME.finditer(text, target + _REACH - 64, target + _REACH)
            end = cluster.start()
        yield text[start:end]
        start = end
    yield text[start:]


@once
def wordpiece() -> tokenizers.Tokenizer:
    """MiniLM's tokenizer: no truncation, no padding, and special tokens in a text read as plain text."""
    from tokenizers import Tokenizer

    path = weight("minilm-tokenizer")
    with damaged(path):
        tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


@once
def _bpe(name: str) -> tiktoken.Encoding:
    """An encoding of tiktoken's, made from our file by telling tiktoken that this is its cache.

    tiktoken then knows the encoding, so whatever in this process asks it for that name needs no network either.
    """
    import tiktoken

    path = weight(name)
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(path.parent)
    try:
        with damaged(path):
            return tiktoken.get_encoding(f"{name}_base")
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


@lru_cache(maxsize=2)
def _token_bytes(name: str) -> np.ndarray:
    """How many bytes each token stands for, by its number."""
    encoding = _bpe(name)
    lengths = np.zeros(encoding.n_vocab, dtype=np.int64)
    for token in encoding.token_byte_values():
        lengths[encoding.encode_single_token(token)] = len(token)
    return lengths


def _bpe_offsets(name: str, piece: str, encoded: np.ndarray, offset: int) -> list[int]:
    lengths = _token_bytes(name)[encoded]
    byte = np.cumsum(lengths) - lengths
    if not piece.isascii():
        begins = (np.frombuffer(piece.encode(), dtype=np.uint8) & 0xC0) != 0x80  # not a continuation byte of UTF-8
        byte = np.maximum.accumulate(np.where(begins[byte], (np.cumsum(begins) - 1)[byte], 0))
    return (byte + offset).tolist()


def _wordpiece_offsets(name: str, piece: str, encoded: tokenizers.Encoding, offset: int) -> list[int]:
    found = []
    legal = last_end = 0
    for start, end in encoded.offsets:
        if start >= last_end < end:
            legal, last_end = start, end
        found.append(legal + offset)
    return found
