"""Embedding models give what they promise; what is computed is kept; what goes wrong is said."""

import hashlib
import json
import logging
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import build
import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from numpy.testing import assert_allclose, assert_array_equal

from chunklab import embeddings, tokens
from chunklab.models import embeddings as embedding_models
from chunklab.models import tokens as token_models
from chunklab.models.embeddings import Cached, EmbeddingError, MiniLM, OpenAI, Static, embed, truncated, unit
from chunklab.models.weights import WeightsError, cache_folder, once, weight

LOCAL = {"minilm": MiniLM, "static": Static}
SENTENCES = [
    "The ferry leaves the harbour at seven in the morning.",
    "The boat sails from port at 7 a.m.",
    "Her grandmother baked bread with rye and honey.",
    "Quarterly revenue fell by four percent.",
    "It rang.",
    "When the tide turns, the float in the well rises, the chain draws the wheel round and the lowest bell is struck. "
    * 4,
    "Ein Satz auf Deutsch, mit Umlauten: Größe, Äpfel.",
]


@pytest.fixture(params=LOCAL)
def model(request):
    return LOCAL[request.param]()


class Fake(Embeddings):
    """Vectors from the hash of a text; answers as it is told, and counts what it is asked."""

    def __init__(self, name="fake", answers=None, dimensions=8):
        self.name, self.size, self.asked = name, dimensions, []
        self.answers = answers or (lambda call, texts, vectors: vectors)

    def embed_documents(self, texts):
        self.asked.append(list(texts))
        vectors = [[b / 255 for b in hashlib.sha256(text.encode()).digest()[: self.size]] for text in texts]
        return self.answers(len(self.asked), texts, vectors)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


# The models.


def test_vectors_have_the_promised_shape_and_unit_length(model):
    vectors = model.encode(SENTENCES)
    assert vectors.shape == (len(SENTENCES), model.dimensions) and vectors.dtype == np.float32
    assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert embed(model, []).shape == (0, model.dimensions) == model.encode([]).shape
    assert isinstance(model, Embeddings) and model.name in ("minilm", "static")
    assert model.embed_documents(SENTENCES[:2]) == vectors[:2].tolist()
    assert model.embed_query(SENTENCES[0]) == vectors[0].tolist()


def test_paraphrases_are_nearer_than_strangers(model):
    ferry, boat, bread, revenue, *_ = model.encode(SENTENCES)
    assert ferry @ boat > max(ferry @ bread, ferry @ revenue, boat @ bread, boat @ revenue)


def test_minilm_orders_texts_by_meaning():
    questions = ["How do I get my money back?", "Where can the dog sleep?", "Why did the motor stop?"]
    answers = [
        "Refunds are paid within a week of your request.",
        "Pets may stay in the kennel behind the house overnight.",
        "The engine seized because it had run out of oil.",
    ]
    scores = MiniLM().encode(questions) @ MiniLM().encode(answers).T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]


def test_minilm_is_what_onnxruntime_gives_directly():
    """Nothing of ours: the tokenizer's own padding and truncation, a plain mean under the mask."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(weight("minilm-tokenizer")))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    texts = [*SENTENCES, "harbour " * 400]
    encoded = tokenizer.encode_batch(texts)
    ids, mask = (np.array([getattr(e, key) for e in encoded]) for key in ("ids", "attention_mask"))
    session = onnxruntime.InferenceSession(str(weight("minilm")), providers=["CPUExecutionProvider"])
    (states,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    means = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert_allclose(MiniLM().encode(texts), expected, atol=1e-5)


def test_static_is_what_wordllama_gives_directly():
    Static()  # imports wordllama without what that does to logging
    import wordllama

    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    assert_allclose(Static().encode(SENTENCES), theirs.embed(SENTENCES, norm=True), atol=1e-6)


def test_a_text_has_one_vector_whatever_stands_beside_it(model):
    texts = [*SENTENCES, *(f"{s} {i}" for i in range(8) for s in SENTENCES[:3]), "word " * 300]
    together = model.encode(texts)
    alone = np.concatenate([model.encode([text]) for text in texts])
    assert_allclose(together, alone, atol=1e-5)
    assert_allclose(model.encode(texts[::-1])[::-1], together, atol=1e-5)
    assert_array_equal(model.encode(texts), together, "the same again, to the last bit")


@pytest.mark.parametrize(
    "text",
    [
        "ok \ud835 tail \x00 end",
        "\ud800",
        "\udc00\ud800",
        "",
        " ",
        "\n",
        "\x00",
        "🧬" * 3000,
        "a" * 200_000,
        "\u0301" * 5000,
    ],
)
def test_no_text_crashes_a_model(model, text):  # uni-06
    vectors = model.encode([text, "plain"])
    assert np.isfinite(vectors).all() and vectors.shape == (2, model.dimensions)
    assert_allclose(vectors[1], model.encode(["plain"])[0], atol=1e-5)


def test_a_text_without_a_token_is_zero_not_nan():  # sem-05
    assert not Static().encode([""]).any()
    assert_array_equal(
        unit(np.array([[3, 4], [0, 0], [0, -2]])), np.array([[0.6, 0.8], [0, 0], [0, -1]], dtype=np.float32)
    )
    scores = unit(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])) @ unit(np.array([1, 0]))
    assert np.argsort(-scores).tolist() == [0, 1, 2] and scores[2] == 0


@pytest.mark.parametrize("mark", ["[SEP]", "[CLS]", "[PAD]", "<s>", "</s>", "<|endoftext|>"])
def test_special_tokens_in_a_text_are_plain_text(model, mark):  # spc-01
    whole, without = model.encode([f"Fish {mark} and {mark} chips", "Fish and chips"])
    assert not np.allclose(whole, without, atol=1e-3), "it was read"
    assert whole @ without > 0.2
    if model.name == "minilm":
        _, spans = model.token_vectors(f"a {mark} b")
        assert (spans[:, 1] > spans[:, 0]).all() and len(spans) > 4


# What a model reads.


def test_what_a_model_does_not_read_changes_nothing_and_is_reported():  # size-06, ev-05
    model = MiniLM()
    texts = ["token " * 3000, "token " * 254, "token " * 255, "short", ""]
    assert model.max_tokens == 256 and truncated(model, texts) == [0, 2]
    long, fits, over, *_ = model.encode(texts)
    assert_allclose(long, fits, atol=1e-5)
    assert_allclose(over, fits, atol=1e-5)
    assert truncated(MiniLM(512), texts) == [0] and truncated(Static(), texts) == [] == truncated(Fake(), texts)
    assert truncated(embeddings("minilm"), iter(texts)) == [0, 2], "behind the cache too"
    # 800 tokens in chunks, for a model that reads 512
    assert truncated(MiniLM(512), ["word " * 800, "word " * 510]) == [0]


def test_minilm_reads_as_much_as_it_is_told_and_no_more_than_it_can():
    text = " ".join(f"word{i}" for i in range(400))
    assert not np.allclose(MiniLM(512).encode([text]), MiniLM().encode([text]), atol=1e-3)
    assert MiniLM(512).name != MiniLM().name and MiniLM(512).key != MiniLM().key
    for bad in (2, 513, 0, -1, 2.5, "256", None, True):
        with pytest.raises(ValueError, match=f"max_tokens={bad!r}.*from 3 to 512"):
            MiniLM(bad)


def test_token_vectors_lie_on_the_text():
    text = "Naïve 東京 cafés\r\nunbelievably 한국 e\u0301t\u0301."
    vectors, spans = MiniLM().token_vectors(text)
    assert (
        vectors.shape == (len(spans), 384)
        and vectors.dtype == np.float32
        and spans.shape == (tokens("minilm")(text), 2)
    )
    assert sorted({int(start) for start, _ in spans}) == tokens("minilm").starts(text)
    assert text[slice(*spans[0])] == "Naïve" and all(0 <= a < b <= len(text) for a, b in spans)
    assert all(left[0] <= right[0] for left, right in pairwise(spans))
    assert MiniLM().token_vectors("")[0].shape == (0, 384) and MiniLM().token_vectors("")[1].shape == (0, 2)


def test_token_vectors_know_the_whole_text_and_stop_where_the_model_does():
    vectors, spans = MiniLM().token_vectors("river bank")
    other, _ = MiniLM().token_vectors("savings bank")
    assert not np.allclose(vectors[1], other[1], atol=0.05), "the same word in another light"
    assert len(MiniLM().token_vectors("word " * 1000)[1]) == 254
    # With the two marks at the ends, the mean of the token vectors is the text's vector.
    sentence = SENTENCES[5]
    mean = unit(MiniLM().token_vectors(sentence)[0].mean(axis=0))
    assert mean @ MiniLM().encode([sentence])[0] > 0.98


def test_a_model_can_be_handed_to_another_process(model):
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.encode(SENTENCES[:1]), model.encode(SENTENCES[:1]))


@pytest.mark.parametrize(("told", "cores"), [("1", 1), ("0", None), ("many", None), ("", None), ("9999", None)])
def test_a_worker_keeps_to_the_cores_that_it_is_told(told, cores, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    all_cores = embedding_models._cores()
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert embedding_models._cores() == (cores or all_cores)


def test_loading_a_model_leaves_logging_alone():
    code = (
        "import logging\nfrom chunklab import embeddings\nembeddings('static').encode(['a'])\n"
        "print(logging.getLogger().handlers)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (out.stdout, out.stderr) == ("[]\n", "")
    assert logging.getLogger("wordllama").getEffectiveLevel() >= logging.getLogger().level


# embed


def test_embed_takes_any_langchain_model():
    vectors = embed(Fake(), ("a", "b"))
    assert vectors.shape == (2, 8) and vectors.dtype == np.float32
    assert embed(Fake(), []).shape == (0, 0) and embed(Fake(), iter(["a"])).shape == (1, 8)


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("more", [-1, 1])
def test_too_few_or_many_vectors_is_an_error_that_counts(n, more):  # sem-07
    fake = Fake(answers=lambda call, texts, vectors: (vectors * 2)[: n + more])
    with pytest.raises(ValueError, match=f"asked for {n} vectors, got {n + more}"):
        embed(fake, [f"Aa {i}." for i in range(n)])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e300, None])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_value_that_is_no_number_names_the_text(bad, place):  # sem-06
    texts = ["Aa.", "Bb.", "Cc.", "Dd.", "Ee."]

    def spoil(call, texts, vectors):
        vectors[place][3] = bad
        return vectors

    with pytest.raises(ValueError, match=f"text {place} .*NaN or an infinite value: '{texts[place]}'"):
        embed(Fake(answers=spoil), texts)


def test_other_bad_answers_and_questions_are_named():
    with pytest.raises(ValueError, match="differ in length: 8 for 'a', 5 for 'b'"):
        embed(Fake(answers=lambda call, texts, vectors: [vectors[0], vectors[1][:5]]), ["a", "b"])
    with pytest.raises(ValueError, match="vector of 'a' is empty"):
        embed(Fake(answers=lambda call, texts, vectors: [[], []]), ["a", "b"])
    with pytest.raises(ValueError, match="asked for 1 vectors, got NoneType"):
        embed(Fake(answers=lambda call, texts, vectors: None), ["a"])
    for odd in (
        ["ab", "cd"],
        [3.0, 4.0],
        [None, None],
        [{}, {}],
        {"a": [1.0], "b": [2.0]},
        [[1j], [2j]],
        [["x"], ["y"]],
    ):
        with pytest.raises(ValueError):
            embed(Fake(answers=lambda call, texts, vectors, odd=odd: odd), ["a", "b"])
    with pytest.raises(ValueError, match=r"texts\[1\] is of type int"):
        embed(Fake(), ["a", 5])
    for model in (object(), "static", Static, None):
        for texts in (["a"], []):
            with pytest.raises(ValueError, match=r"embeddings=.*must have embed_documents"):
                embed(model, texts)


@pytest.mark.parametrize("texts", ["abc", None, 3, b"abc"], ids=repr)
def test_a_list_of_texts_is_asked_for(texts, tmp_path):
    for ask in (MiniLM().encode, Static().encode, Cached(Static(), folder=tmp_path).encode, partial(embed, Static())):
        with pytest.raises(ValueError, match=r"texts(=|\[0\])"):
            ask(texts)
    with pytest.raises(ValueError, match=r"texts(=|\[0\])"):
        truncated(MiniLM(), texts)
    assert Static().encode(text for text in ("a", "b")).shape == (2, 256)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, None, "8"], ids=repr)
def test_a_wrong_batch_size_is_named(size, tmp_path):
    with pytest.raises(ValueError, match="batch_size="):
        Cached(Fake(), folder=tmp_path, batch_size=size)


@pytest.mark.parametrize("length", [1e-40, 1e-30, 1e-20, 1.0, 1e20, 1e30, 1e38])
def test_a_vector_of_any_length_is_made_a_unit(length):  # ret-05
    vectors = np.array([[length, 0], [0, -length], [length, length], [0, 0]], dtype=np.float32)
    right = [[1, 0], [0, -1], [0.5**0.5, 0.5**0.5], [0, 0]]
    assert unit(vectors) == pytest.approx(np.array(right), abs=1e-6) and unit(vectors).dtype == np.float32


def test_threads_that_come_at_once_load_a_model_once():
    loads = []

    @once
    def slow(name):
        loads.append(name)
        time.sleep(0.05)
        return object()

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(slow, ["a", "b"] * 8))
    assert sorted(loads) == ["a", "b"] and len(found) == 2


def test_nothing_is_reported_and_nothing_written_outside_the_cache(tmp_path):
    # onnxruntime would keep a number for this machine in the user's folder, and send it to its makers.
    weight("minilm"), weight("minilm-tokenizer"), weight("cl100k")
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('the network was asked')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from chunklab import embeddings, tokens\n"
        "for name in ('minilm', 'static'): embeddings(name, cache=False).encode(['a text'])\n"
        "tokens('cl100k')('a text')"
    )
    # Where a CI is at work, it is quiet of itself and would prove nothing.
    unset = {*build.ENVIRONMENT, "XDG_CACHE_HOME", "CI", "GITHUB_ACTIONS", "TF_BUILD"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "CHUNKLAB_CACHE": str(cache_folder())}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["minilm", "minilm-tokenizer"])
def test_a_damaged_weight_says_what_to_do(name, monkeypatch, tmp_path):
    whole, spoiled = weight(name), tmp_path / "spoiled"
    spoiled.write_bytes(b"\0" * 1000 + whole.read_bytes()[1000:])
    for module in (embedding_models, token_models):
        monkeypatch.setattr(module, "weight", lambda asked: spoiled if asked == name else weight(asked))
    for load in (embedding_models._minilm, token_models.wordpiece):
        load.cache_clear()
    with pytest.raises(WeightsError, match="spoiled is damaged .*: run python -m chunklab models"):
        MiniLM()
    for load in (embedding_models._minilm, token_models.wordpiece):
        load.cache_clear()


# What is computed is kept.


def test_nothing_is_computed_twice(tmp_path):
    fake = Fake()
    kept = Cached(fake, folder=tmp_path, batch_size=2)
    texts = ["a", "b", "a", "c", "\ud835"]
    first = kept.encode(texts)
    assert fake.asked == [["a", "b"], ["c", "\ufffd"]]
    assert_array_equal(first, embed(Fake(), ["a", "b", "a", "c", "\ufffd"]))
    assert_array_equal(Cached(fake, folder=tmp_path).encode([*texts, "d"])[:5], first)
    assert fake.asked[2:] == [["d"]]
    assert kept.embed_query("a") == first[0].tolist() and kept.embed_documents(["b"]) == first[1:2].tolist()
    assert kept.encode([]).shape == (0, 0) and len(fake.asked) == 3


def test_what_is_kept_is_kept_by_model_and_setting(tmp_path):
    one, other = Fake("one"), Fake("other", dimensions=3)
    assert Cached(one, folder=tmp_path).encode(["a"]).shape == (1, 8)
    assert Cached(other, folder=tmp_path).encode(["a"]).shape == (1, 3)
    assert Cached(other, "one", folder=tmp_path).encode(["a"]).shape == (1, 8), "a name is a promise"
    nameless = Fake(None)
    with pytest.raises(ValueError, match="name=None: must name the model"):
        Cached(nameless, folder=tmp_path)


def test_the_cached_model_is_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("CHUNKLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "chunklab.models.embeddings.MiniLM.__init__", lambda self: vars(self).update(max_tokens=256, name="minilm")
    )
    model = embeddings("minilm")
    assert (model.name, model.max_tokens, model.dimensions) == ("minilm", 256, 384) and model.count_tokens("a") == 3
    assert model.token_vectors("two words")[0].shape == (2, 384)
    with pytest.raises(AttributeError):
        model.nothing  # noqa: B018
    vectors = model.encode(SENTENCES)
    assert_array_equal(vectors, MiniLM().encode(SENTENCES))
    monkeypatch.setattr(MiniLM, "encode", None)
    again = pickle.loads(pickle.dumps(embeddings("minilm")))
    assert_array_equal(again.encode(SENTENCES[::-1])[::-1], vectors, "read, not computed")


class Busy(Exception):
    """What a provider's client raises."""

    def __init__(self, status=429, after=None):
        super().__init__(f"status {status}")
        self.status_code = status
        self.response = type(
            "Response", (), {"status_code": status, "headers": {"Retry-After": after} if after else {}}
        )


def busy_at(calls, **options):
    def answer(call, texts, vectors):
        if call in calls:
            raise Busy(**options)
        return vectors

    return answer


TEN = [f"text {i}" for i in range(10)]


def test_a_busy_server_is_waited_for_as_long_as_it_says(tmp_path):  # api-06
    waits = []
    fake = Fake(answers=busy_at({2, 4}, after="20"))  # batches 2 and 3 of 5, once each
    vectors = Cached(fake, folder=tmp_path, batch_size=2, sleep=waits.append).encode(TEN)
    assert waits == [20, 20]
    assert_array_equal(vectors, embed(Fake(), TEN))
    assert [batch[0] for batch in fake.asked] == ["text 0", "text 2", "text 2", "text 4", "text 4", "text 6", "text 8"]


def test_attempts_are_capped_and_the_next_run_goes_on_from_there(tmp_path):  # api-06
    waits = []
    fake = Fake(answers=busy_at(range(3, 9)))
    kept = Cached(fake, folder=tmp_path, batch_size=2, sleep=waits.append)
    with pytest.raises(EmbeddingError, match="batch 3 of 5 failed: Busy: status 429. 4 of 10 texts.*kept") as error:
        kept.encode(TEN)
    assert (error.value.done, error.value.failed) == ([0, 1, 2, 3], [4, 5])
    assert waits == [2, 4, 8, 16, 32], "longer than a provider's minute, and no wait after the last"
    assert pickle.loads(pickle.dumps(error.value)).args == error.value.args
    del fake.asked[:]
    fake.answers = busy_at(())
    assert_array_equal(kept.encode(TEN), embed(Fake(), TEN))
    assert fake.asked == [TEN[4:6], TEN[6:8], TEN[8:]]


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (Busy(429, "0.5"), 0.5), (Busy(503), 2), (Busy(500), 2), (Busy(408), 2), (TimeoutError(), 2),
        (ConnectionResetError(), 2),
        (Busy(503, "Wed, 21 Oct 2015 07:28:00 GMT"), 0), (Busy(429, "soon"), 2),
        (Busy(400), None), (Busy(401), None), (Busy(404), None), (KeyError("x"), None), (Busy(429, "3600"), None),
    ],
)  # fmt: skip
def test_what_is_worth_another_attempt_is_tried_again(tmp_path, error, pause):
    waits = []

    def answer(call, texts, vectors):
        if call == 2:
            raise error
        return vectors

    kept = Cached(Fake(answers=answer), folder=tmp_path, batch_size=5, sleep=waits.append)
    if pause is None:
        with pytest.raises(EmbeddingError, match="batch 2 of 2 failed.*5 of 10"):
            kept.encode(TEN)
        assert waits == []
    else:
        assert len(kept.encode(TEN)) == 10 and waits == [pause]


def test_a_quota_that_is_used_up_is_not_waited_for(tmp_path):
    error = Busy(429, "20")
    error.code = "insufficient_quota"
    fake = Fake(answers=lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(EmbeddingError, match="batch 1 of 1.*asks to wait 20 seconds. 0 of 10"):
        Cached(fake, folder=tmp_path, sleep=None).encode(TEN)
    assert len(fake.asked) == 1


def test_a_bad_answer_is_not_kept(tmp_path):  # sem-07, sem-06
    fake = Fake(answers=lambda call, texts, vectors: vectors[:-1] if call == 2 else vectors)
    kept = Cached(fake, folder=tmp_path, batch_size=4)
    with pytest.raises(ValueError, match="asked for 4 vectors, got 3"):
        kept.encode(TEN)
    assert len(kept.encode(TEN)) == 10 and [len(batch) for batch in fake.asked] == [4, 4, 4, 2]


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b"no database at all" * 50, lambda b: b"", lambda b: b[: len(b) // 2],
        lambda b: b[:100] + bytes(4000) + b[4100:],
        lambda b: b[:16] + b"\xff" * 84 + b[100:],
    ],
)  # fmt: skip
def test_a_damaged_file_is_set_aside_and_begun_again(tmp_path, damage):
    fake = Fake()
    kept = Cached(fake, folder=tmp_path)
    expected = kept.encode(TEN)
    path = tmp_path / "vectors.sqlite3"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="was damaged: set aside as vectors.damaged.sqlite3"):
        assert_array_equal(kept.encode(TEN), expected)
    assert (tmp_path / "vectors.damaged.sqlite3").exists()
    calls = len(fake.asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(kept.encode(TEN), expected)
    assert len(fake.asked) == calls, "kept again"


def test_a_damaged_vector_is_computed_again(tmp_path):
    fake = Fake()
    kept = Cached(fake, folder=tmp_path)
    expected = kept.encode(TEN)
    with sqlite3.connect(tmp_path / "vectors.sqlite3") as db:
        ((key, vector),) = db.execute("SELECT key, vector FROM vectors LIMIT 1")
        db.execute("UPDATE vectors SET vector = ? WHERE key = ?", (vector[:5] + b"\xff" + vector[6:], key))
    db.close()
    assert_array_equal(kept.encode(TEN), expected)
    assert len(fake.asked) == 2 and len(fake.asked[1]) == 1


def test_without_a_place_to_keep_them_vectors_are_computed_all_the_same(tmp_path):
    (tmp_path / "file").write_text("")
    kept = Cached(Fake(), folder=tmp_path / "file")
    with pytest.warns(UserWarning, match="vectors are not kept"):
        assert_array_equal(kept.encode(TEN), embed(Fake(), TEN))


def test_threads_and_processes_share_one_file(tmp_path):
    def work(seed):
        texts = [f"text {(seed * 7 + i) % 60}" for i in range(40)]
        assert_array_equal(Cached(Fake(), folder=tmp_path, batch_size=3).encode(texts), embed(Fake(), texts))

    code = (
        "import sys, pathlib\nfrom langchain_core.embeddings import FakeEmbeddings\n"
        "from chunklab.models.embeddings import Cached\n"
        "kept = Cached(FakeEmbeddings(size=8), 'theirs', pathlib.Path(sys.argv[1]), 3)\n"
        "print(kept.encode([f'text {i}' for i in range(60)]).shape)"
    )
    start = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    processes = [subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        list(pool.map(work, range(12)))
    assert [process.communicate() for process in processes] == [("(60, 8)\n", "")] * 2
    with sqlite3.connect(tmp_path / "vectors.sqlite3") as db:
        assert db.execute("SELECT count(*) FROM vectors").fetchone() == (120,)
    db.close()


# OpenAI, played by a server on this machine.


class Service(BaseHTTPRequestHandler):
    """Answers as OpenAI does: vectors of the length of each text; what else it should do stands in `faults`."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.headers["Authorization"], body))
        status, headers = self.server.faults.pop(0) if self.server.faults else (200, {})
        vectors = [{"object": "embedding", "index": i, "embedding": [3.0, 4.0, 0.0]} for i in range(len(body["input"]))]
        answer = {
            "object": "list",
            "model": body["model"],
            "data": vectors,
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        content = json.dumps(answer if status == 200 else {"error": {"message": "slow down"}}).encode()
        self.send_response(status)
        for key, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def service(monkeypatch, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.asked, server.faults = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CHUNKLAB_CACHE", str(tmp_path))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_openai_is_asked_in_plain_texts_and_once(service):
    model = embeddings("openai")
    vectors = model.encode(["a", "b \ud835"])
    assert_allclose(vectors, [[0.6, 0.8, 0]] * 2, rtol=1e-6)
    (auth, body), *more = service.asked
    assert body["input"] == ["a", "b \ufffd"] and body["model"] == "text-embedding-3-small" and auth == "Bearer none"
    assert more == [] and model.name == "openai/text-embedding-3-small" and model.max_tokens == 8191
    embeddings("openai").encode(["b \ud835"])
    assert len(service.asked) == 1, "kept"
    embeddings("openai", model="text-embedding-3-large").encode(["a"])
    embeddings("openai", cache=False).encode(["a"])
    assert [body["model"][-5:] for _, body in service.asked[1:]] == ["large", "small"]


@pytest.mark.parametrize("cache", [True, False])
def test_openai_can_be_handed_to_another_process(service, cache, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of my own")
    sent = pickle.dumps(embeddings("openai", cache=cache, model="text-embedding-3-large"))
    assert b"of my own" not in sent
    again = pickle.loads(sent)
    assert again.name == "openai/text-embedding-3-large"
    assert_allclose(again.encode(["a cat"]), [[0.6, 0.8, 0]], rtol=1e-6)
    assert service.asked[0][0] == "Bearer of my own"


def test_openai_waits_as_long_as_the_server_says(service):  # api-06
    waits = []
    model = embeddings("openai")
    model._sleep = waits.append
    service.faults += [(429, {"Retry-After": "20"}), (503, {})]
    assert model.encode(["a"]).shape == (1, 3)
    assert waits == [20, 4] and len(service.asked) == 3
    service.faults += [(401, {})]
    with pytest.raises(EmbeddingError, match="batch 1 of 1 failed: AuthenticationError"):
        model.encode(["b"])
    assert len(service.asked) == 4


def test_openai_out_of_reach_is_tried_again_and_then_said(service):
    waits = []
    model = embeddings("openai")
    model._sleep = waits.append
    service.shutdown()
    service.server_close()
    with pytest.raises(EmbeddingError, match="batch 1 of 1 failed: APIConnectionError"):
        model.encode(["a"])
    assert len(waits) == 5


@pytest.mark.parametrize("status", [401, 403])
def test_openai_with_a_wrong_key_says_which_to_correct(service, status):
    service.faults += [(status, {})]
    with pytest.raises(EmbeddingError, match="does not take the key .*OPENAI_API_KEY.*correct it, or unset it"):
        embeddings("openai").encode(["a"])
    assert len(service.asked) == 1


def test_openai_gets_of_a_long_text_what_it_reads(service):  # ev-05
    model = OpenAI()
    texts = ["word " * 9000, "word " * 8191, "字" * 5000, "short"]
    assert truncated(model, texts) == [0, 1]  # the last blank of 8,191 words is one token more
    model.encode(texts)
    sent = service.asked[0][1]["input"]
    assert sent[2:] == texts[2:] and [tokens("cl100k")(text) for text in sent[:2]] == [8191, 8191]
    assert texts[0].startswith(sent[0])


def test_openai_without_a_key_names_what_to_do(monkeypatch):
    for key in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(ValueError, match=r'OPENAI_API_KEY is not set.*embeddings\("minilm"\).*embeddings\("static"\)'):
        embeddings("openai")


def test_bad_names_are_refused():
    for name in ("word2vec", "", None, "MiniLM"):
        with pytest.raises(ValueError, match="must be one of 'minilm', 'static', 'openai'"):
            embeddings(name)
    with pytest.raises(ValueError, match="model='x': only with"):
        embeddings("minilm", model="x")
