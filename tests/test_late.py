"""Late chunking: vectors of spans that know what stands around them."""

import re

import numpy as np
import pytest

from chunklab import RecursiveChunker, embeddings, late_embeddings, load_corpus, tokens


@pytest.fixture(scope="module")
def model():
    return embeddings("minilm")


def test_one_span_over_a_short_text_is_the_mean_of_its_tokens(model):
    text = "Anna is a smith. She lives in Tarn."
    vectors, _ = model.token_vectors(text)
    mean = vectors.mean(axis=0)
    found = late_embeddings(text, [(0, len(text))], model)
    assert found.dtype == np.float32 and found.shape == (1, 384)
    assert np.allclose(found[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_a_pronoun_is_nearer_to_what_it_stands_for(model):
    text = "Berlin is the capital of Germany. It has more than three million inhabitants. The city lies on the Spree."
    spans = [(0, 33), (34, 77), (78, len(text))]
    (query,) = model.encode(["Berlin"])
    late, alone = late_embeddings(text, spans, model), model.encode([text[a:b] for a, b in spans])
    assert (late[1:] @ query > alone[1:] @ query + 0.1).all()


def test_every_token_of_a_long_text_counts_once(model):
    text = load_corpus()["the_bell_that_waited.txt"][:6000]
    seen = []

    class Counting:
        max_tokens, dimensions = model.max_tokens, 1

        def token_vectors(self, part):
            _, spans = model.token_vectors(part)
            assert len(part) < 2500, "the text goes through in stretches"
            seen.append(len(spans))
            return np.ones((len(spans), 1)), spans

    class Sum(Counting):  # the length of the sum is lost in a unit vector: read it off a second dimension
        dimensions = 2

        def token_vectors(self, part):
            ones, spans = super().token_vectors(part)
            return np.hstack([ones, np.zeros_like(ones)]), spans

    chunks = RecursiveChunker(300).chunk(text)
    assert np.allclose(late_embeddings(text, chunks, Sum()), [[1, 0]] * len(chunks))
    from chunklab.models.late import _tokens_in_context

    places = np.concatenate([begins for begins, _ in _tokens_in_context(text, model)])
    assert (np.diff(places) > 0).all() and len(places) >= 0.99 * tokens("minilm")(text)
    assert sum(seen) < 2.2 * tokens("minilm")(text)


@pytest.mark.parametrize("text", ["x" * 3000, "a b " * 2000, "日本語" * 500, "é" * 900], ids=lambda t: t[:3])
def test_texts_without_places_to_begin_at_end(model, text):
    found = late_embeddings(text, [(0, 10), (len(text) - 10, len(text))], model)
    assert np.isfinite(found).all() and found.shape == (2, 384)


def test_spans_may_overlap_be_empty_or_out_of_order(model):
    text = "Anna is a smith. She lives in Tarn. " * 40
    found = late_embeddings(text, [(500, 600), (0, 100), (5, 5), (550, 700), (35, 36)], model)
    assert (np.linalg.norm(found, axis=1) > 0.99).tolist() == [True, True, False, True, False]
    assert np.allclose(found[[1]], late_embeddings(text, [(0, 100)], model), atol=1e-5)
    assert late_embeddings(text, [], model).shape == (0, 384) and not late_embeddings("", [(0, 0)], model).any()


@pytest.mark.parametrize("spans", [[(-1, 3)], [(3, 2)], [(0, 99)]], ids=str)
def test_a_span_outside_the_text_is_an_error(model, spans):
    with pytest.raises(ValueError, match="must lie in the text, which has 5 characters"):
        late_embeddings("text.", spans, model)


@pytest.mark.parametrize(
    "spans", [None, "ab", 3, [None], ["ab"], [(1,)], [(0, 1, 2)], [(0.0, 4.0)], [("0", "4")], [slice(0, 4)]], ids=str
)
def test_what_are_no_spans_is_an_error(model, spans):
    with pytest.raises(ValueError, match="spans.*must (be a list of|hold) chunks"):
        late_embeddings("text.", spans, model)


def test_spans_may_be_numbers_of_numpy_or_come_one_by_one(model):
    text = "Anna is a smith. She lives in Tarn."
    wanted = late_embeddings(text, [(0, 16), (17, 35)], model)
    for spans in (np.array([[0, 16], [17, 35]]), iter([[0, np.int32(16)], (17, 35)])):
        assert np.array_equal(late_embeddings(text, spans, model), wanted)


@pytest.mark.parametrize("most", [3, 4, 7])
def test_a_model_that_reads_next_to_nothing_ends(most):
    class Tiny:
        max_tokens, dimensions = most, 2

        def token_vectors(self, part):
            words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", part)][: most - 2]
            return np.ones((len(words), 2)), np.array(words).reshape(-1, 2)

    assert late_embeddings("one two three, four. " * 9, [(0, 40)], Tiny()).any()


@pytest.mark.parametrize(
    "text", ["ok \ud835 tail \x00 end", "\x00\x00", "👩‍🔬🇫🇷" * 5, "\ufeff\ufeff", "  \n"], ids=ascii
)
def test_any_text_has_vectors_or_zeros(model, text):
    lengths = np.linalg.norm(late_embeddings(text, [(i, i + 1) for i in range(len(text))], model), axis=1)
    assert all(abs(length - round(length)) < 1e-3 for length in lengths)


def test_a_model_without_token_vectors_is_an_error():
    with pytest.raises(ValueError, match="token_vectors"):
        late_embeddings("text", [(0, 4)], embeddings("static"))
