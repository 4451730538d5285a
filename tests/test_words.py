"""Words: any part of a text is counted right."""

from hypothesis import given, settings
from hypothesis import strategies as st

from chunklab import load_corpus
from chunklab.chunkers.words import Words, count_words

LETTERS = st.sampled_from(
    ["a", "é", " ", "\n", "\u3000", "漢", "カ", "。", "\u0301", "-", "\x1c", "\ufeff", "\ud800", "𠀋"]
)


@settings(max_examples=200)
@given(st.lists(LETTERS, max_size=30).map("".join), st.data())
def test_the_words_of_any_part_are_counted_right(text, data):
    counted = Words(text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert counted.between(start, end) == count_words(text[start:end])
    number = data.draw(st.integers(1, 9))
    place = counted.after(start, number)
    if place == len(text):
        assert counted.between(start, place) <= number
    else:
        assert counted.between(start, place) == number and counted.between(start, place + 1) == number + 1


def test_without_ideographs_a_word_is_what_split_gives():
    for name in ("staff_handbook.md", "throat_survey.txt", "tideclock.py"):
        text = load_corpus()[name]
        assert count_words(text) == len(text.split())
