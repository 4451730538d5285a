"""The prose is spelt as British English is, and what it links to outside is written as an address.

Prose is README and the other Markdown files, the lessons' text and comments, and the docstrings. A word must be in
pyspellchecker's dictionary, or be the British one of codespell's pairs, or stand in `words.txt`, which holds terms and
names and nothing else. Neither the American one of a pair nor a misspelling that codespell knows will do.
"""

import ast
import re
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens
from urllib.parse import urlsplit

import build
import codespell_lib
import pytest
from spellchecker import SpellChecker

ROOT = Path(__file__).resolve().parents[1]
DICTIONARY = SpellChecker(language="en", distance=1)
LISTS = Path(codespell_lib.__file__).parent / "data"
WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").splitlines()


def pairs(name):
    """One of codespell's lists: what stands on the left of its arrows, and on the right."""
    lines = (LISTS / name).read_text(encoding="utf-8").splitlines()
    left, right = zip(*(line.split("->") for line in lines), strict=True)
    return set(left), {word.strip() for words in right for word in words.split(",")}


BRITISH, AMERICAN = pairs("dictionary_en-GB_to_en-US.txt")
MISSPELT = pairs("dictionary.txt")[0] | AMERICAN - BRITISH


def markdown():
    return [
        *ROOT.glob("*.md"),
        *ROOT.glob(".github/**/*.md"),
        ROOT / "data/README.md",
        ROOT / "tests/benchmarks/README.md",
    ]


def modules():
    return sorted([*ROOT.glob("chunklab/**/*.py"), *ROOT.glob("notebooks/*.py")])


def comments(code):
    return [token.string for token in generate_tokens(StringIO(code).readline) if token.type == COMMENT]


def lesson(source):
    cells = build.read(source)
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return "\n\n".join(prose + [line for cell in cells if cell.cell_type == "code" for line in comments(cell.source)])


def docstrings(path):
    """Without examples, and without the names of the arguments."""
    defined = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, defined)]
    texts = "\n\n".join(filter(None, map(ast.get_docstring, nodes)))
    return re.sub(r"^ *>>> .*?(?=^\s*$|\Z)|^    \w+: ", "", texts, flags=re.MULTILINE | re.DOTALL)


TEXTS = {str(path.relative_to(ROOT)): lambda path=path: path.read_text(encoding="utf-8") for path in markdown()}
TEXTS |= {source.name: lambda source=source: lesson(source) for source in build.lessons(ROOT / "notebooks")}
TEXTS["docstrings"] = lambda: "\n\n".join(map(docstrings, modules()))


def wrong(text):
    """The words of a text that are spelt wrong; code and addresses aside."""
    text = re.sub(
        r"```.*?```|`[^`\n]*`|</?\w[^>\n]*>|\]\([^)]*\)|\w+:/\S+|\S*[\w.]/[\w.]\S*", " ", text, flags=re.DOTALL
    )
    words = re.findall(r"(?<![\w.'’])[A-Za-z][a-z]+(?:['’][a-z]+)?(?![\w(=]|\.\w)", text)
    lowered = {re.sub(r"['’]s?$", "", word.replace("’", "'")).lower() for word in words} - set(WORDS)
    return sorted(word for word in lowered if word in MISSPELT or not (word in BRITISH or word in DICTIONARY))


@pytest.mark.parametrize("name", TEXTS)
def test_every_word_is_spelt_as_in_british_english_or_is_a_term_of_the_list(name):
    assert wrong(TEXTS[name]()) == [], "correct it; a term or a name goes into tests/words.txt, at its place"


@pytest.mark.parametrize(
    "text, found",
    [
        ("The color of a centre.", ["color"]),
        ("It normalizes neighbours' colours; the centre's grey.", ["normalizes"]),
        ("Well-kept but mispelt: teh retreival, a chunkr.", ["chunkr", "mispelt", "retreival", "teh"]),
        ("`teh` in ```\nteh\n``` and at https://teh.org/teh, in teh/teh.py, [there](teh.md), <teh>, teh(), np.teh", []),
        ("LangChain's chunker doesn’t recognise it; it isn't RAGAS.", []),
    ],
)
def test_the_speller_sees_what_is_wrong_and_nothing_else(text, found):
    assert wrong(text) == found


def test_there_is_much_to_read():
    counts = {name: len(text().split()) for name, text in TEXTS.items()}
    assert min(counts[source.name] for source in build.lessons(ROOT / "notebooks")) > 800
    assert counts["docstrings"] > 10_000


def test_the_list_is_sorted_and_holds_only_what_the_dictionary_lacks():
    assert sorted(set(WORDS)) == WORDS
    assert [word for word in WORDS if word not in MISSPELT and (word in BRITISH or word in DICTIONARY)] == []


@pytest.mark.parametrize("name", TEXTS)
def test_addresses_outside_are_written_as_such(name):
    for link in re.findall(r"\bhttps?:[^\s)>\]\"'`,;]*", TEXTS[name]()):
        address = urlsplit(link.rstrip(".:"))
        local = address.hostname in ("127.0.0.1", "localhost")
        assert address.scheme == "https" or local, link
        assert local or re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", address.netloc), link
