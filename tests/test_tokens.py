"""Token counts are the tokenizers' own, offsets are true, and no text is too hostile."""

import os
import pickle
import socket

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from chunklab import tokens
from chunklab.models import tokens as module
from chunklab.models.tokens import NAMES, pieces, well_formed
from chunklab.models.weights import WeightsError, weight

BPE = ["cl100k", "o200k"]
TEXTS = [
    "naïve café 🧪🧪🧪 Größe 東京都庁 " * 3,  # off-06
    "鬱蒼とした森🧬🧬 naïve",  # uni-01
    "👩\u200d🔬" * 6 + "e\u0301" * 6 + "🇫🇷" * 4,  # uni-02
    "The marker <|endoftext|> is literal here. <|fim_prefix|> [SEP] [CLS] [MASK] <s>",  # spc-01
    "ok \ud835 tail \x00 end \udc00\ud800",  # uni-06
    "한국어는 한 글자가 여러 토큰이다. नमस्ते दुनिया. Ὀδυσσεύς İstanbul ǆ ﬁ ﷺ",
    "ar\u200frow \u202eabc\u202c don't DON'T we'll\t\ttabs\r\n\r\n  \n lines_and-signs/...\n\n\n   x",
    "\ufeffBOM, \u3000wide, a\x1cb\x0bc\x85d\u2028e",
]
SIGNS = st.text(
    st.one_of(
        st.sampled_from(
            "aZſ 's.,!?\n\r\t_-/19½é\u0301\u0308😀👩\u200d🔬字。、か한ﬁİ\u3000\xa0\x85\x1c\x0b\x00\ufffd\ud835न\u094d"
        ),
        st.characters(),
    ),
    max_size=80,
)


def reference(name, text):
    """The tokenizer's own count of the whole text."""
    if name == "minilm":
        return len(module.wordpiece().encode(well_formed(text), add_special_tokens=False))
    import tiktoken

    return len(tiktoken.get_encoding(f"{name}_base").encode(well_formed(text), disallowed_special=()))


@pytest.mark.parametrize("name", NAMES)
@given(text=SIGNS, size=st.sampled_from([1, 5, 17]))
def test_count_and_offsets_are_the_tokenizers_wherever_the_text_is_cut(name, text, size):
    count = tokens(name)
    assert count(text) == reference(name, text) == len(count.offsets(text))
    patch = pytest.MonkeyPatch()
    with patch.context() as m:
        whole = count.offsets(text)
        m.setitem(module._PIECE, name, size)
        m.setattr(module, "_REACH", 10_000)
        assert count(text) == len(whole) and count.offsets(text) == whole


@pytest.mark.parametrize("name", NAMES)
def test_count_of_long_texts_is_the_tokenizers_own(name, public_texts):
    count = tokens(name)
    for text in [public_texts["novel"], public_texts["pubmed.md"][:300_000], "東京都庁は新宿区にある。" * 20_000]:
        assert count(text) == reference(name, text)


@pytest.mark.parametrize("name", NAMES)
@given(text=st.one_of(st.sampled_from(TEXTS), SIGNS))
def test_starts_are_legal_places_to_cut(name, text):  # off-06, uni-01, uni-06
    count = tokens(name)
    starts, offsets = count.starts(text), count.offsets(text)
    assert starts == sorted(set(offsets)) and all(0 <= start < len(text) for start in starts)
    assert offsets == sorted(offsets)
    assert count.starts(text) == starts and count(text) == len(offsets), "the same again"


@pytest.mark.parametrize("name", BPE)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_starts_are_where_a_token_and_a_character_begin_together(name, text):
    import tiktoken

    encoding = tiktoken.get_encoding(f"{name}_base")
    text = well_formed(text)
    ends, read = [], b""
    for token in encoding.encode_ordinary(text):
        ends.append(len(read))
        read += encoding.decode_single_token_bytes(token)
    begins = [len(text[:place].encode()) for place in range(len(text))]
    assert tokens(name).starts(text) == [place for place, byte in enumerate(begins) if byte in ends]


def test_several_tokens_in_one_character_give_one_start():  # uni-01
    assert tokens("cl100k")("🧬") == 3 and tokens("cl100k").offsets("🧬") == [0, 0, 0]
    assert tokens("cl100k").starts("鬱🧬") == [0, 1]
    assert tokens("minilm").offsets("각각") == [0, 0, 0, 1, 1, 1], "MiniLM reads Korean letter by letter"
    assert tokens("minilm").starts("naïve  cafés") == [0, 7]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "mark", ["<|endoftext|>", "<|fim_middle|>", "<|endofprompt|>", "[SEP]", "[CLS]", "[PAD]", "[UNK]"]
)
def test_literal_special_tokens_are_plain_text(name, mark):  # spc-01
    text = f"The marker {mark} is literal here."
    count = tokens(name)
    assert count(mark) > 2 and count(text) == count("The marker") + count(f" {mark}") + count(" is literal here.")
    assert any(11 < start < 11 + len(mark) for start in count.starts(text)), "not one token"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\ufeff", "\x00", "\u0301"])
def test_blank_texts_are_counted_honestly(name, text):
    count = tokens(name)
    assert count(text) == reference(name, text)
    assert count("") == 0 and count.starts("") == [] and (name != "minilm" or count(" \n\t") == 0)


ONE_THING = ["a", " ", "\n", "😀", "\u0301"]
OTHERS = ["字", "\x00", "\ud835", "\u3000", "_", " \t", "e\u0301", "[SEP]"]


@pytest.mark.parametrize(
    ("name", "unit", "size"),
    [(name, unit, 2_000_000) for name in ("minilm", "cl100k") for unit in ONE_THING]
    + [("o200k", " ", 2_000_000)]
    + [(name, unit, 100_000) for name in NAMES for unit in OTHERS],
)
def test_two_megabytes_of_one_thing_are_no_trouble(name, unit, size):
    """tiktoken alone panics on half a million blanks; anything quadratic would never end."""
    text = unit * (size // len(unit))
    offsets = tokens(name).offsets(text)
    assert offsets == sorted(offsets) and (name == "minilm" or size - 200 < offsets[-1] < size)


@pytest.mark.parametrize("name", BPE)
def test_a_run_that_is_cut_hard_has_hardly_more_tokens(name):
    for text in ["a" * 300_000, " " * 300_000, "x" + "\n" * 300_000 + "y"]:
        true = reference(name, text)
        assert true <= tokens(name)(text) <= true + 12


def test_hard_cuts_fall_between_graphemes():
    cut = regex.compile(r"\d")
    text = "👩\u200d🔬" * 60_000
    parts = list(pieces(text, cut, 1000))
    assert "".join(parts) == text and len(parts) > 2 and all(part.startswith("👩") for part in parts)
    assert max(map(len, parts)) <= 1000 + module._REACH


def test_no_network_is_asked(monkeypatch):  # api-08
    import tiktoken

    def refuse(*args, **kwargs):
        raise OSError("the network was asked")

    weight("cl100k"), weight("minilm-tokenizer")
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    module._bpe.cache_clear(), module.wordpiece.cache_clear()
    assert tokens("cl100k")("hello world") == 2 and tokens("minilm")("hello world") == 2
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
    assert len(tiktoken.get_encoding("cl100k_base").encode("hello world")) == 2, "nor by tiktoken, from then on"


def test_a_damaged_file_says_what_to_do(monkeypatch, tmp_path):
    import tiktoken

    whole = weight("cl100k")
    damaged = tmp_path / whole.name
    damaged.write_bytes(b"x" * whole.stat().st_size)
    monkeypatch.setattr(module, "weight", lambda name: damaged)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    monkeypatch.setattr("tiktoken.load.read_file", lambda path: (_ for _ in ()).throw(OSError("no network")))
    module._bpe.cache_clear()
    with pytest.raises(WeightsError, match="is damaged .*: run python -m chunklab models"):
        tokens("cl100k")
    module._bpe.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_tokens_can_be_handed_to_another_process(name):
    count = pickle.loads(pickle.dumps(tokens(name)))
    assert count.name == name and count("one two") == tokens(name)("one two") and repr(count) == f"tokens({name!r})"


@pytest.mark.parametrize("name", ["gpt2", "", None, 512, "CL100K"])
def test_an_unknown_tokenizer_is_refused(name):
    with pytest.raises(ValueError, match="must be one of 'minilm', 'cl100k', 'o200k'"):
        tokens(name)


@pytest.mark.parametrize("text", [None, b"bytes", 5, ["a"]])
def test_what_is_no_text_is_refused(text):
    for method in (tokens(), tokens().starts, tokens("cl100k").offsets):
        with pytest.raises(ValueError, match=f"text is of type {type(text).__name__}"):
            method(text)
