"""Queries without a language model: a document's own sentence, asked for by its rarest words.

For whoever has no questions and no model that can write some. "Known-item" search is an old test of retrieval: somebody
who knows that a text is there looks for it by the words that they remember (Azzopardi, de Rijke and Balog, 2007, made
such queries by machine). They are no questions: they hold the very words of their answer, so that they flatter a search
by words, say nothing about paraphrases, and cannot tell that search from one by meaning. They can tell whether chunks
keep a sentence whole and can be found at all. Cost: a second for some million characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from chunklab.chunk import check_size
from chunklab.chunkers.boundaries import sentence_spans
from chunklab.corpus import GoldSpan, Question
from chunklab.hybrid import stemmed, words_of
from chunklab.testset import spread

KIND = "known item"
WORDS = 4
"""Words of a query."""

_LENGTHS = (40, 300)  # characters of a sentence: less is a heading or a cry, more is a table or a list


def known_items(documents: Mapping[str, str], count: int = 60) -> list[Question]:
    """Sentences spread over the documents, each with its rarest words as the query.

    Args:
        documents: id to text.
        count: how many at most; fewer where there are not so many sentences that their words tell apart.

    Returns:
        Questions of the kind "known item", in the order of the text; the gold span of each is its sentence.

    >>> text = "The old bell of Orrin was cast by a smith. Later another bell was cast by a smith, in another town."
    >>> item = known_items({"town": text}, 1)[0]
    >>> item.question, item.spans[0].quote
    ('the old of orrin', 'The old bell of Orrin was cast by a smith.')
    """
    count = check_size("count", count)
    found = [(name, *span) for name, text in documents.items() for span in sentence_spans(text)]
    texts = [documents[name][start:end].rstrip() for name, start, end in found]
    stems = stemmed(texts)
    often = Counter(stem for of_sentence in stems for stem in set(of_sentence))
    holders: dict[str, set[int]] = {}
    for place, of_sentence in enumerate(stems):
        for stem in of_sentence:
            holders.setdefault(stem, set()).add(place)
    fitting = [p for p, text in enumerate(texts) if _LENGTHS[0] <= len(text) <= _LENGTHS[1]]
    items = []
    for part in spread(fitting, min(count, len(fitting))):
        for place in part:
            if query := _query(texts[place], stems[place], often, holders):
                name, start, _ = found[place]
                end = start + len(texts[place])
                gold = GoldSpan(name, start, end, texts[place])
                items.append(Question(f"{name}:{start}-{end}", query, texts[place], KIND, (gold,)))
                break
    return items


def _query(text: str, stems: list[str], often: Counter[str], holders: Mapping[str, set[int]]) -> str:
    """The rarest words of a sentence, in its order; "" where another sentence has them all too."""
    first: dict[str, int] = {}
    for place, stem in enumerate(stems):
        if not stem.isascii() or len(stem) > 1 and not stem.isdigit():
            first.setdefault(stem, place)
    rarest = sorted(first, key=lambda stem: (often[stem], -len(stem), first[stem]))[:WORDS]
    if len(rarest) < WORDS or len(set.intersection(*(holders[stem] for stem in rarest))) > 1:
        return ""
    words = words_of(text)
    return " ".join(words[place] for place in sorted(first[stem] for stem in rarest))
