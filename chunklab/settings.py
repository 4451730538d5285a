"""A chunker from settings: the environment variables of the RAG Me Up project, converted and checked.

For whoever chooses the chunker of a service in a `.env` file and not in code. There, the values of the semantic chunker
stay texts ("None", "95") and fail only when the first document is cut; here a wrong value is an error at once, which
names the variable. The `.env` file is python-dotenv's to find and to read.
"""

from __future__ import annotations

import math
import os
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from chunklab.chunk import Chunker
from chunklab.chunkers.paragraph import BLANK_LINE, ParagraphChunker, check_separator
from chunklab.chunkers.recursive import RAG_ME_UP_SEPARATORS, RecursiveChunker
from chunklab.chunkers.semantic import AMOUNTS, PERCENTILES, SemanticChunker

D = TypeVar("D", int, None)


def chunker_from_env(environ: Mapping[str, Any] = os.environ, embeddings: Any = None) -> Chunker:
    """The chunker that RAG Me Up's settings name.

    A variable that is not set, or is empty, has its default, in brackets; "None" is None where None is allowed. Quotes
    around a value go, since a `.env` file that Docker reads keeps them.

    - splitter [RecursiveCharacterTextSplitter]: that, SemanticChunker or ParagraphChunker
    - recursive_splitter_chunk_size [2048], recursive_splitter_chunk_overlap [128]: characters
    - semantic_chunker_breakpoint_threshold_type [percentile]: that, standard_deviation, interquartile or gradient
    - semantic_chunker_breakpoint_threshold_amount [None], semantic_chunker_number_of_chunks [None]
    - paragraph_chunker_max_chunk_size [512]: characters
    - paragraph_chunker_paragraph_separator [a blank line]: a regular expression

    Only the variables of the splitter that is named are looked at. Chunks are slices of the text, those of paragraphs
    too (RAG Me Up joins them with two newlines: `ParagraphChunker(…, join="\\n\\n")`).

    Args:
        environ: names of variables to their values. By default the environment, and for what is not set there the
            `.env` file of the working folder, or of the nearest folder above it that has one. For another file, what
            python-dotenv's `dotenv_values(path)` gives.
        embeddings: what the SemanticChunker embeds with, such as `chunklab.embeddings()`.

    Returns:
        A `RecursiveChunker`, `SemanticChunker` or `ParagraphChunker`.

    Raises:
        ValueError: a value that is not allowed: it names the variable, the value and what is; or embeddings that are
            missing.

    >>> from io import StringIO
    >>> from dotenv import dotenv_values
    >>> env_file = StringIO("splitter=ParagraphChunker\\nparagraph_chunker_max_chunk_size=9")
    >>> chunker_from_env(dotenv_values(stream=env_file)).split_text("One.\\n\\nTwo.\\n\\nThree.")
    ['One.', 'Two.', 'Three.']
    """
    if not isinstance(environ, Mapping):
        raise ValueError(f"environ={environ!r:.80}: must map names to values, as os.environ does")
    if environ is os.environ:
        environ = ChainMap(environ, _env_file())
    makers: dict[str, Callable[[], Chunker]] = {
        "RecursiveCharacterTextSplitter": lambda: _recursive(environ),
        "SemanticChunker": lambda: _semantic(environ, embeddings),
        "ParagraphChunker": lambda: _paragraph(environ),
    }
    return makers[_choice(environ, "splitter", tuple(makers))]()


def _env_file() -> dict[str, str | None]:
    from dotenv import dotenv_values, find_dotenv

    path = find_dotenv(usecwd=True)
    try:
        return dotenv_values(path, encoding="utf-8-sig")  # Windows' editors write a byte order mark
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not in UTF-8: save it so") from error


def _recursive(environ: Mapping[str, Any]) -> RecursiveChunker:
    name = "recursive_splitter_chunk_size"
    size = _whole(environ, name, 2048)
    overlap = _whole(environ, "recursive_splitter_chunk_overlap", 128, least=0, below=(name, size))
    return RecursiveChunker(size, overlap, separators=RAG_ME_UP_SEPARATORS)


def _paragraph(environ: Mapping[str, Any]) -> ParagraphChunker:
    name = "paragraph_chunker_paragraph_separator"
    size = _whole(environ, "paragraph_chunker_max_chunk_size", 512)
    separator = _unquoted(environ.get(name)) or BLANK_LINE  # not stripped: it may be white space
    if separator == "None":
        raise ValueError(f"{name}='None': must be a regular expression, or empty for a blank line")
    try:
        check_separator(separator)
    except ValueError as error:
        raise ValueError(str(error).replace("paragraph_separator", name, 1)) from error
    return ParagraphChunker(size, separator)


def _semantic(environ: Mapping[str, Any], embeddings: Any) -> SemanticChunker:
    kind = _choice(environ, "semantic_chunker_breakpoint_threshold_type", tuple(AMOUNTS))
    most = 100 if kind in PERCENTILES else math.inf
    amount = _number(environ, "semantic_chunker_breakpoint_threshold_amount", most)
    count = _whole(environ, "semantic_chunker_number_of_chunks", None)
    if embeddings is None:
        raise ValueError("embeddings=None: the SemanticChunker needs some, such as chunklab.embeddings()")
    return SemanticChunker(
        embeddings, breakpoint_threshold_type=kind, breakpoint_threshold_amount=amount, number_of_chunks=count
    )


def _value(environ: Mapping[str, Any], name: str) -> str:
    """What a variable is set to, without quotes and white space at its edges; "" if it is not set."""
    value = environ.get(name)
    return "" if value is None else _unquoted(str(value).strip()).strip()


def _unquoted(value: Any) -> Any:
    quoted = isinstance(value, str) and len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _choice(environ: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """One of `allowed`; the first is the default."""
    value = _value(environ, name) or allowed[0]
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(repr, allowed))}")
    return value


def _whole(
    environ: Mapping[str, Any], name: str, default: D, least: int = 1, below: tuple[str, int] | None = None
) -> int | D:
    """A whole number; None, where that is the default."""
    value = _value(environ, name)
    if not value or (default is None and value.lower() == "none"):
        number = default
    else:
        number = int(value) if value.isascii() and value.isdigit() and len(value) < 19 else -1
    if number is not None and (number < least or (below and number >= below[1])):
        rule = f"from {least} to less than {below[0]}={below[1]}" if below else f"of {least} or more"
        shown = repr(value) if value else f"{default} (its default)"
        raise ValueError(f"{name}={shown}: must be a whole number {rule}{', or None' if default is None else ''}")
    return number


def _number(environ: Mapping[str, Any], name: str, most: float) -> float | None:
    """A number from 0 to `most`, or None."""
    value = _value(environ, name)
    if not value or value.lower() == "none":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number <= most or math.isinf(number):
        rule = f"a number from 0 to {most}" if math.isfinite(most) else "a number of 0 or more"
        raise ValueError(f"{name}={value!r}: must be {rule}, or None")
    return number
