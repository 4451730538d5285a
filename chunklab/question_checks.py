"""Whether a question that a model wrote can be used: it makes sense alone, and says nothing that the text does not.

For `testset`. What a model asks about one piece of a text is asked of the whole document in the end: so it may not
speak of "the passage", or of a "she" whom nobody has named; and an answer with a number of its own would make every
method wrong. Rules of thumb, for English, that look at words: they let nonsense through, and drop a good question now
and then, which costs another one. In another language they drop less. Cost: microseconds.
"""

from __future__ import annotations

import re

from chunklab.chunkers.propositions import words

ALIKE = 0.7
"""The share of their words from which on two questions are one."""

_PASSAGE = re.compile(
    r"\b(?:passage|excerpt|snippet)s?\b"
    # "The context window" and "the text editor" are things of their own.
    r"|\b(?:the|this|these|given|following|above|provided) (?:text|paragraph|sentence|context|statement)s?"
    r"(?=\W*$|[,;:]| (?:say|said|mention|describe|state|impl|suggest|indicate|give|tell|about|as|that|which|is|do)\w*)"
    r"|\b(?:according to|in|from|by) the (?:document|article|author|narrator|speaker|information|story)\b"
    r"|\b(?:mentioned|described|stated|given|listed|provided|shown) (?:above|below|here)\b",
    re.IGNORECASE,
)
_PERSON, _THING, _POINTING = (
    r"\b(?:he|she|him|her|his|hers)\b",
    r"\b(?:it|its|they|their|theirs|them)\b",
    r"\b(?:this|these)\b",
)
_IDLE = re.compile(r"\b(?:does|did|will|would|can|do) it take\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=\S )[\"“'(]?[A-ZÀ-ÖØ-Þ]\w+|\bwho (?!did|does|do|is|was|are|were)|\b(?:which|whose) \w+")
_NOUN = re.compile(rf"{_NAME.pattern}|\b(?:the|an?|each|every|many) \w+")
_TOKEN = re.compile(r"\d[\d.,:]*\d|\d|[^\W\d_]+")
_OPENING = re.compile(r"(?:^|[.?!…:]\s+)[^\w]*$")
_LIGHT = frozenset(
    "about above according after again against all also although always among and any are around because been before"
    " being below between both but can could did does doing done down during each either even every few for from had"
    " has have having her here him his how into its just many may might more most much must near neither never nobody"
    " none nor not nothing now off once one only onto other our out over own perhaps same several shall she should"
    " since some soon still such than that the their them then there these they this those though through till too"
    " two under until upon very was were what when where whether which while who whom whose why will with within"
    " without would yes yet you your name did do does is an a of in on at to by as it be he or if we so up no i me"
    " my".split()
)
_KINDS = frozenset(["who", "whom", "whose", "when", "where", "why"])


def why_not(said: str, answer: str, source: str, shown: str) -> str:
    """Why a question is not taken; "" if it is.

    Args:
        said: the question.
        answer: its answer.
        source: the sentences that are said to hold it.
        shown: all that the model was shown.

    >>> text = "Ann has a dog. It weighs 9 kg."
    >>> why_not("How heavy is it?", "It weighs 9 kg.", text, text)
    'leaves open who or what is meant'
    >>> why_not("How heavy is Ann's dog?", "It weighs 8 kg.", text, text)
    'numbers or names that the text does not have'
    >>> why_not("How heavy is Ann's dog?", "It weighs 9 kg.", text, text)
    ''
    """
    if said[-1] not in "?？؟" or (said.isascii() and len(said.split()) < 3):
        return "not a question"
    if _PASSAGE.search(said):
        return "speaks of its passage"
    if dangling(said):
        return "leaves open who or what is meant"
    if said.isascii() and len({*words(said)} - _LIGHT) < 2:
        return "says too little"
    if invented(said, shown) or invented(answer, f"{shown}\n{said}"):
        return "numbers or names that the text does not have"
    new = [word for word in words(answer) if word not in _LIGHT and not _holds(said, word)]
    held = sum(_holds(source, word) for word in new)
    # A paraphrase may have words of its own, but not for the name or number that was asked for.
    if 2 * held < len(new) or invented(answer, f"{source}\n{said}"):
        return "the answer is not in the sentences named"
    return ""


def dangling(said: str) -> bool:
    """Whether a question leaves open whom a pronoun means: no name, or for things no noun, stands before it.

    >>> [dangling(f"{said}?") for said in ("What did he drink", "What did Ann tell her cat", "Who lost his hat")]
    [True, False, False]
    >>> [dangling(f"{said}?") for said in ("When did it start", "How long does it take", "Where is this town")]
    [True, False, True]
    """
    said = _IDLE.sub("", said)
    for pronoun, meant in ((_PERSON, _NAME), (_THING, _NOUN)):
        found = re.search(pronoun, said, re.IGNORECASE)
        if found and not meant.search(said[:1].lower() + said[1 : found.start()]):
            return True
    return bool(re.search(_POINTING, said, re.IGNORECASE))


def invented(said: str, known: str) -> list[str]:
    """Numbers and names of a text that another does not have; a name is a word with a capital.

    >>> invented("In 1924 Ann met Bob on Orrin.", "Ann came to Orrin in 1923.")
    ['1924', 'Bob']
    """
    have, found = set(words(known)), []
    for match in _TOKEN.finditer(said):
        word, low = match.group(), match.group().casefold()
        opens = bool(_OPENING.search(said[: match.start()]))
        if low[0].isdigit():
            missing = low not in have
        else:
            missing = (
                word[0].isupper() and low not in _LIGHT and not (opens and len(low) < 4) and not _holds(known, low)
            )
        if missing:
            found.append(word)
    return found


def _holds(text: str, word: str) -> bool:
    """Whether a text has a word, in this form or another that begins alike."""
    if word[0].isdigit() or len(word) < 4 and word.isascii():
        return word in words(text)
    stem = word[: max(4, len(word) - 3)]
    # Scripts without spaces have no words to begin.
    return any(other.startswith(stem) for other in words(text)) or (not word.isascii() and stem in text.casefold())


def alike(one: str, other: str) -> bool:
    """Whether two questions ask the same, by their words.

    >>> alike("What did Ann pay for the box?", "How much did Ann pay for the box?")
    True
    >>> alike("Who cast the bell?", "When was the bell cast?")
    False
    """
    ours, theirs = set(words(one)), set(words(other))
    if ours & _KINDS != theirs & _KINDS:
        return False  # a place is no date
    ours, theirs = ours - _LIGHT, theirs - _LIGHT
    shared = len(ours & theirs)
    return one.casefold() == other.casefold() or (shared > 0 and shared >= ALIKE * len(ours | theirs))
