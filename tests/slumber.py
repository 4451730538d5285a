"""chonkie's SlumberChunker beside ours, with a rule in the place of the model: used by lesson 05 and its check."""

import re

from chonkie import SlumberChunker
from chonkie.genie import BaseGenie

SIZE = 2000


def without_ing(passages):
    """A rule that reads: the place of the first passage, from the second on, without the letters "ing"; or None."""
    return next((place for place, words in enumerate(passages) if place and "ing" not in words), None)


class Genie(BaseGenie):
    """What chonkie asks: it is shown passages with numbers, and says with which number something else begins."""

    def __init__(self, rule):
        self.rule = rule

    def generate(self, prompt):
        passages = re.findall(r"^ID (\d+): (.*)$", prompt, re.M)
        place = self.rule([words for _, words in passages])
        return passages[place][0] if place else str(int(passages[-1][0]) + 1)


def slumber(text, rule):
    """(start, end) of chonkie's chunks; it keeps them under chunk_size."""
    found = SlumberChunker(Genie(rule), chunk_size=SIZE + 1, verbose=False).chunk(text)
    return [(chunk.start_index, chunk.end_index) for chunk in found]


def both_ways(text, shifts):
    """The chunks of `shifts` and of chonkie, over chonkie's passages, which are its chunks if each is a shift."""
    passages = slumber(text, lambda words: len(words) > 1)
    plan, place = shifts(text, passages, SIZE), None
    try:
        while True:
            first, last = plan.send(place)
            place = without_ing([text[a:b] for a, b in passages[first : last + 1]])
    except StopIteration as done:
        return done.value, slumber(text, without_ing)
