"""Choosing from a sweep: shares of variance as the library has them, and halves that share every group out evenly."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import f_oneway
from test_evaluation import DOCUMENTS, QUESTIONS, Words

import chunklab
from chunklab import (
    FixedSizeChunker,
    Scoreboard,
    halves,
    load_benchmark,
    load_questions,
    plot_scores,
    sweep,
    variance_explained,
)
from chunklab.choosing import REST

KNOBS = {"size": [300, 300, 600, 600], "overlap": [0, 60, 0, 60]}

# Variance explained.


def crossed(*levels):
    """Every combination of so many values, a column each."""
    return [column.ravel().tolist() for column in np.meshgrid(*map(np.arange, levels), indexing="ij")]


@given(st.integers(2, 4), st.integers(2, 3), st.integers(0, 10_000))
def test_shares_are_those_of_the_analysis_of_variance(sizes, overlaps, seed):
    means = np.random.default_rng(seed).normal(size=sizes * overlaps * 2)
    knobs = dict(zip(("size", "overlap", "search"), crossed(sizes, overlaps, 2), strict=True))
    shares = variance_explained(means, knobs)["share"]
    for name, values in knobs.items():
        groups = [means[np.array(values) == value] for value in set(values)]
        f = f_oneway(*groups).statistic * (len(groups) - 1) / (len(means) - len(groups))
        assert shares[name] == pytest.approx(100 * f / (1 + f))
    assert shares.sum() == pytest.approx(100)
    # All parameters at once, without interactions: the R squared of a regression on them.
    table = pd.get_dummies(pd.DataFrame(knobs).astype(str)).to_numpy(float)
    rest = means - table @ np.linalg.lstsq(table, means, rcond=None)[0]
    assert shares[REST] == pytest.approx(100 * rest.var() / means.var(), abs=1e-6)
    assert list(shares.index[:-1]) == list(shares[:-1].sort_values(ascending=False).index)


def test_what_depends_on_another_parameter_is_no_single_one_s():
    shares = variance_explained([1, 0, 0, 1], KNOBS)["share"]
    assert shares.round(6).to_dict() == {"size": 0, "overlap": 0, REST: 100}


def test_intervals_are_those_of_questions_drawn_anew():
    rng = np.random.default_rng(1)
    scores = rng.random((4, 60)) + np.array([0, 0, 0.3, 0.3])[:, None]
    frame = variance_explained(scores, KNOBS)
    assert list(frame.columns) == ["share", "share_low", "share_high"]
    assert (frame["share_low"] <= frame["share"]).all() and (frame["share"] <= frame["share_high"]).all()
    assert frame.loc["size", "share_low"] > frame.loc["overlap", "share_high"]
    pd.testing.assert_frame_equal(frame, variance_explained(scores, pd.DataFrame(KNOBS)))
    alone = [variance_explained(scores[:, rng.integers(60, size=60)], KNOBS).loc["size", "share"] for _ in range(400)]
    low, high = np.quantile(alone, [0.025, 0.975])
    assert low == pytest.approx(frame.loc["size", "share_low"], abs=3)
    assert high == pytest.approx(frame.loc["size", "share_high"], abs=3)
    narrow = variance_explained(np.tile(scores, 25), KNOBS).loc["size"]
    assert narrow["share_high"] - narrow["share_low"] < (high - low) / 3, "more questions, a narrower interval"
    assert "size: 9" in plot_scores(frame, "share").alt


def test_a_sweep_is_taken_as_it_is():
    grid = {"chunk_size": [20, 40], "chunk_overlap": [0, 10]}
    options = {"documents": DOCUMENTS, "questions": QUESTIONS, "k": 2, "path": None}
    frame = sweep({"fixed": FixedSizeChunker}, grid, Words(), **options)
    board = Scoreboard(Words(), DOCUMENTS, QUESTIONS, k=2)
    rows = [board.add(f"{a} {b}", FixedSizeChunker(a, b)) for a in (20, 40) for b in (0, 10)]
    for metric in ("recall", "iou"):
        scores = np.array([100 * row.scores[metric] for row in rows])
        assert np.array(frame[f"{metric}_each"].tolist()) == pytest.approx(scores)
        of_arrays = variance_explained(scores, {"chunk_size": [20, 20, 40, 40], "chunk_overlap": [0, 10, 0, 10]})
        pd.testing.assert_frame_equal(variance_explained(frame, list(grid), metric), of_arrays)
    with pytest.raises(ValueError, match="no column 'size'"):
        variance_explained(frame, ["size"])
    with pytest.raises(ValueError, match="metric="):
        variance_explained(frame, list(grid), "f1")


def test_without_questions_there_is_no_interval():
    frame = variance_explained([50, 52, 60, 62], KNOBS)
    assert (frame["share"] == frame["share_low"]).all() and (frame["share"] == frame["share_high"]).all()


@pytest.mark.parametrize(
    ("scores", "knobs", "said"),
    [
        ([], KNOBS, "scores of shape"),
        ([[[1]]], KNOBS, "scores of shape"),
        ([1, 2, 3, np.nan], KNOBS, "finite"),
        ([1, 1, 1, 1], KNOBS, "same mean"),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], KNOBS, "same mean"),
        ([1, 2, 3, 4], {}, "knobs is empty"),
        ([1, 2, 3, 4], ["size"], r"knobs=\['size'\]: must name the values"),
        ([1, 2, 3], KNOBS, "'size' with 4 values: must have one a run, 3"),
        ([1, 2, 3, 4], KNOBS | {"k": [5, 5, 5, 5]}, "'k', which is 5 in all runs"),
        ([1, 2, 3, 4], {"size": [1, 1, 2, 2], "search": [1, 1, 2, 2]}, "of 4 combinations 2 are"),
        ([1, 2, 3, 4, 5], {"size": [1, 1, 2, 2, 2], "search": [1, 2, 1, 2, 2]}, "each 1 to 2 times"),
    ],
)
def test_what_cannot_be_shared_out_is_named(scores, knobs, said):
    with pytest.raises(ValueError, match=said):
        variance_explained(scores, knobs)


# Halves.


def test_halves_share_every_group_out_evenly():
    for questions in (load_questions(), QUESTIONS, load_questions()[:7]):
        for by, group in (("document", lambda q: {s.document for s in q.spans}), ("kind", lambda q: q.kind)):
            one, other = halves(questions, by)
            assert sorted(q.id for q in one + other) == sorted(q.id for q in questions)
            assert 0 <= len(one) - len(other) <= 1 and halves(questions, by) == (one, other)
            for wanted in {str(group(q)) for q in questions if by == "kind" or len(group(q)) == 1}:
                counts = [sum(str(group(q)) == wanted for q in half) for half in (one, other)]
                assert abs(counts[0] - counts[1]) <= 1
    order = [q.id for q in load_questions()]
    assert [q.id for q in one] == sorted((q.id for q in one), key=order.index)


def test_the_public_questions_are_halved_by_corpus():
    try:
        _, questions = load_benchmark()
    except FileNotFoundError:
        pytest.skip("the public data are not here")
    assert [len(half) for half in halves(questions)] == [236, 236]


def test_halves_refuse_what_is_none():
    for bad in ([1], 3, ["q"]):
        with pytest.raises(ValueError, match="questions holds"):
            halves(bad)
    with pytest.raises(ValueError, match="by='length'"):
        halves(QUESTIONS, by="length")
    assert halves([]) == ([], [])


def test_the_names_come_from_the_package():
    assert chunklab.halves is halves and chunklab.variance_explained is variance_explained
