"""chunker_from_env: RAG Me Up's variables, converted and checked."""

import os
import re

import pytest
from dotenv import dotenv_values, load_dotenv

from chunklab import ParagraphChunker, RecursiveChunker, chunker_from_env, load_corpus
from chunklab import settings as settings_module
from chunklab.chunkers.recursive import RAG_ME_UP_SEPARATORS

TEXT = load_corpus()["leaflet.txt"]
RECURSIVE = {"splitter": "RecursiveCharacterTextSplitter"}
PARAGRAPH = {"splitter": "ParagraphChunker"}
SEMANTIC = {"splitter": "SemanticChunker"}
AMOUNT = "semantic_chunker_breakpoint_threshold_amount"
TYPE = "semantic_chunker_breakpoint_threshold_type"
NUMBER = "semantic_chunker_number_of_chunks"
SEPARATOR = "paragraph_chunker_paragraph_separator"
RS, RO, PS = "recursive_splitter_chunk_size", "recursive_splitter_chunk_overlap", "paragraph_chunker_max_chunk_size"


def same(chunker, other):
    return type(chunker) is type(other) and chunker.chunk(TEXT) == other.chunk(TEXT)


@pytest.fixture
def semantic(monkeypatch):
    """A stand-in for the semantic chunker, which only keeps what it is given."""

    class SemanticChunker:
        def __init__(self, embeddings, **settings):
            self.embeddings, self.settings = embeddings, settings

    monkeypatch.setattr(settings_module, "SemanticChunker", SemanticChunker)
    return SemanticChunker


def test_without_settings_it_is_rag_me_ups_recursive_splitter():
    for environ in ({}, RECURSIVE, {"splitter": ""}, {"splitter": None}, {"recursive_splitter_chunk_size": " "}):
        assert same(chunker_from_env(environ), RecursiveChunker(2048, 128, RAG_ME_UP_SEPARATORS))


def test_numbers_are_converted():
    environ = {**RECURSIVE, "recursive_splitter_chunk_size": " 300 ", "recursive_splitter_chunk_overlap": "50"}
    assert same(chunker_from_env(environ), RecursiveChunker(300, 50, RAG_ME_UP_SEPARATORS))
    environ["recursive_splitter_chunk_overlap"] = 0
    assert same(chunker_from_env(environ), RecursiveChunker(300, 0, RAG_ME_UP_SEPARATORS))
    assert same(chunker_from_env({**PARAGRAPH, "paragraph_chunker_max_chunk_size": "128"}), ParagraphChunker(128))


def test_paragraphs_are_set_by_size_and_separator():
    assert same(chunker_from_env(PARAGRAPH), ParagraphChunker(512))
    for separator in (r"\n\s*\n", r"\n", "\n\n", "\n", "---"):
        assert same(chunker_from_env({**PARAGRAPH, SEPARATOR: separator}), ParagraphChunker(512, separator)), separator


def test_the_environment_is_the_default(monkeypatch):
    monkeypatch.setenv("splitter", "ParagraphChunker")
    monkeypatch.setenv("paragraph_chunker_max_chunk_size", "99")
    assert same(chunker_from_env(), ParagraphChunker(99))


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    """A folder to work in, below one for the `.env` file, and no settings in the environment."""
    for name in [name for name in os.environ if name.lower().startswith(("splitter", "recursive_", "paragraph_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "project" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "sub")
    return tmp_path / "project" / "sub"


@pytest.mark.parametrize("place", [".", ".."])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_env_file_is_found_and_the_environment_comes_first(working_folder, monkeypatch, place, mark):
    assert same(chunker_from_env(), RecursiveChunker(2048, 128, RAG_ME_UP_SEPARATORS))
    env_file = working_folder / place / ".env"
    env_file.write_text(f"{mark}splitter=ParagraphChunker\n{PS}=99\n", encoding="utf-8")
    assert same(chunker_from_env(), ParagraphChunker(99)) and "splitter" not in os.environ
    monkeypatch.setenv(PS, "77")
    assert same(chunker_from_env(), ParagraphChunker(77))
    monkeypatch.setenv("splitter", "RecursiveCharacterTextSplitter")
    assert same(chunker_from_env(), RecursiveChunker(2048, 128, RAG_ME_UP_SEPARATORS))
    assert same(chunker_from_env({**PARAGRAPH}), ParagraphChunker(512)), "a mapping that is given stands alone"


def test_an_env_file_that_is_no_text_is_named(working_folder):
    (working_folder / ".env").write_text("splitter=ParagraphChunker", encoding="utf-16")
    with pytest.raises(ValueError, match=r"\.env is not in UTF-8: save it so"):
        chunker_from_env()
    (working_folder / ".env").unlink()
    (working_folder / ".env").mkdir()
    chunker_from_env()


@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_that_docker_keeps_are_none_of_the_value(quote):
    def quoted(**settings):
        return {name: f"{quote}{value}{quote}" for name, value in settings.items()}

    environ = quoted(**PARAGRAPH, **{PS: 99, SEPARATOR: r"\n\s*\n"})
    assert same(chunker_from_env(environ), ParagraphChunker(99))
    assert same(chunker_from_env(quoted(**PARAGRAPH, **{PS: "", SEPARATOR: ""})), ParagraphChunker(512))
    assert same(chunker_from_env({**PARAGRAPH, SEPARATOR: quote}), ParagraphChunker(512, quote))
    with pytest.raises(ValueError, match=f"{PS}='None': must be"):
        chunker_from_env(quoted(**PARAGRAPH, **{PS: "None"}))


ENV = r"""
# text splitting
splitter='RecursiveCharacterTextSplitter'
export recursive_splitter_chunk_size=400   # characters
recursive_splitter_chunk_overlap="40"
semantic_chunker_breakpoint_threshold_amount=None
paragraph_chunker_paragraph_separator="\n\s*\n"
"""


def test_an_env_file_is_read_by_python_dotenv(tmp_path, monkeypatch):
    file = tmp_path / ".env"
    file.write_text(ENV, encoding="utf-8")
    expected = RecursiveChunker(400, 40, RAG_ME_UP_SEPARATORS)
    assert same(chunker_from_env(dotenv_values(file)), expected)
    for name in dotenv_values(file):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    load_dotenv(file)
    assert same(chunker_from_env(), expected)
    for line in (f'{SEPARATOR}="\\n\\s*\\n"', f"{SEPARATOR}='\\n\\s*\\n'", f"{SEPARATOR}=\\n\\s*\\n", SEPARATOR):
        file.write_text(f"splitter=ParagraphChunker\n{line}\n", encoding="utf-8")
        assert same(chunker_from_env(dotenv_values(file)), ParagraphChunker(512)), line


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, ("percentile", None, None)),
        ({AMOUNT: "None", NUMBER: "None"}, ("percentile", None, None)),
        ({AMOUNT: "95", NUMBER: "12"}, ("percentile", 95.0, 12)),
        ({TYPE: "gradient", AMOUNT: "97.5"}, ("gradient", 97.5, None)),
        ({TYPE: "standard_deviation", AMOUNT: "3"}, ("standard_deviation", 3.0, None)),
        ({TYPE: "interquartile", AMOUNT: "150", NUMBER: ""}, ("interquartile", 150.0, None)),
    ],
)
def test_what_rag_me_up_leaves_a_text_is_a_number_or_none(semantic, settings, given):
    model = object()
    chunker = chunker_from_env({**SEMANTIC, **settings}, model)
    names = ("breakpoint_threshold_type", "breakpoint_threshold_amount", "number_of_chunks")
    assert type(chunker) is semantic and chunker.embeddings is model
    assert chunker.settings == dict(zip(names, given, strict=True))
    amount = chunker.settings["breakpoint_threshold_amount"]
    assert amount is None or type(amount) is float


def test_a_semantic_chunker_needs_embeddings(semantic):
    with pytest.raises(ValueError, match=r"embeddings=None: .* such as chunklab.embeddings\(\)"):
        chunker_from_env(SEMANTIC)


WHOLE = "must be a whole number of 1 or more"
PERCENT = "must be a number from 0 to 100, or None"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"splitter": "TokenSplitter"}, "splitter='TokenSplitter': must be one of 'RecursiveCharacterTextSplitter', "),
        ({"splitter": "paragraphchunker"}, "splitter='paragraphchunker': must be one of"),
        *[({RS: value}, f"{RS}={value!r}: {WHOLE}") for value in ("0", "-1", "2.5", "1e3", "x", "None", "²", "1_000")],
        *[({RS: value}, f"{RS}={value!r}: {WHOLE}") for value in ("٣", "9" * 5000)],
        ({RS: "100", RO: "100"}, f"{RO}='100': must be a whole number from 0 to less than {RS}=100"),
        ({RS: "100"}, f"{RO}=128 (its default): must be a whole number from 0 to less than {RS}=100"),
        ({RO: "-1"}, f"{RO}='-1': must be a whole number from 0 to less than {RS}=2048"),
        ({RO: "some"}, f"{RO}='some': must be a whole number from 0"),
        ({**PARAGRAPH, PS: "0"}, f"{PS}='0': must be a whole number of 1 or more"),
        ({**PARAGRAPH, PS: "None"}, f"{PS}='None': must be a whole number of 1 or more"),
        ({**PARAGRAPH, SEPARATOR: "None"}, f"{SEPARATOR}='None': must be a regular expression, or empty for a blank"),
        ({**PARAGRAPH, SEPARATOR: "("}, f"{SEPARATOR}='(': must be a regular expression"),
        ({**PARAGRAPH, SEPARATOR: "x*"}, f"{SEPARATOR}='x*': must be a regular expression"),
        ({**SEMANTIC, TYPE: "median"}, f"{TYPE}='median': must be one of 'percentile', 'standard_deviation', "),
        *[({**SEMANTIC, AMOUNT: value}, f"{AMOUNT}={value!r}: {PERCENT}") for value in ("101", "-1", "a", "nan")],
        ({**SEMANTIC, TYPE: "gradient", AMOUNT: "100.5"}, f"{AMOUNT}='100.5': {PERCENT}"),
        ({**SEMANTIC, TYPE: "interquartile", AMOUNT: "inf"}, f"{AMOUNT}='inf': must be a number of 0 or more, or None"),
        *[({**SEMANTIC, NUMBER: value}, f"{NUMBER}={value!r}: {WHOLE}, or None") for value in ("0", "3.0", "all")],
    ],
)  # fmt: skip
def test_a_wrong_value_is_an_error_that_names_the_variable(semantic, settings, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        chunker_from_env(settings, object())


def test_variables_of_other_splitters_are_not_looked_at():
    assert same(chunker_from_env({**PARAGRAPH, RS: "none of your business"}), ParagraphChunker(512))


@pytest.mark.parametrize("environ", [None, ".env", ["splitter"]], ids=repr)
def test_what_is_no_mapping_is_refused(environ):
    with pytest.raises(ValueError, match="environ=.*must map names to values, as os.environ does"):
        chunker_from_env(environ)
