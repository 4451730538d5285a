"""Sentences: the boundaries set by hand, the handed faults as whole kinds, packing, snapping windows, bad arguments."""

import importlib.util
import math
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from boundaries import marked
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rules import HOSTILE, TEXT

from chunklab import SentenceChunker, SnappingWindowChunker, sentence_spans, tokens
from chunklab.chunk import is_blank, trim
from chunklab.chunkers.sentence import delimited_spans, packed_spans, snapping_spans

KINDS = list(dict.fromkeys(kind for kind, _ in marked()))


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def trimmed(text: str) -> list[str]:
    return [sentence.strip() for sentence in cut(text)]


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_boundary_set_by_hand_is_found_and_no_other(kind):
    for sentences in (sentences for name, sentences in marked() if name == kind):
        assert cut("".join(sentences)) == sentences


def test_boundaries_set_when_the_splitter_stood_are_found():
    right = found = wanted = 0
    for _, sentences in marked("second"):
        ours, truth = (
            {tuple(pair) for pair in edges(cut("".join(sentences)))},
            {tuple(pair) for pair in edges(sentences)},
        )
        right, found, wanted = right + len(ours & truth), found + len(ours), wanted + len(truth)
    assert wanted >= 100 and 2 * right / (found + wanted) >= 0.98


def edges(sentences):
    place = 0
    for sentence in sentences[:-1]:
        place += len(sentence)
        yield place, "".join(sentences)


KINDS_FOUND_LATER = {
    "a time at the head": [
        "At 5 a.m. Mr. Smith went to the bank. ¦He left the bank at 6 P.M. ¦Mr. Smith then went to the store.",
        "At 5 p.m. John left. ¦It was 5 p.m. ¦John had left.",
    ],
    "links and marks of Markdown": [
        "See [the docs.](http://a.b/c.html) ¦They help.",
        "Use ~~old.~~ ¦***New!*** ¦**Both.** ¦Next.",
        "A note.[^1] ¦Another.[^note] ¦A third.[a] ¦End.",
    ],
    "faces": ["Great. :) ¦Next! ;-) ¦Fine. :D ¦So: a list."],
    "numbered headings": [
        "1.2 Results and discussion\n¦The pump leaked. ¦It was old.",
        "Chapter 1: The Beginning\n¦It was dark. ¦It rained.",
    ],
    "more abbreviations": [
        "Hwy. 5 is closed. ¦Take Rte. 6. ¦See App. B.",
        "P.S. I love you. ¦P.P.S. So does he. ¦N.B. The door is open.",
    ],
    "more German": [
        "Siehe Bd. 3, Kap. 4. ¦Gem. § 5 gilt das nicht.",
        "Am 24. Dez. 2020 schneite es. ¦Am 5. 6. 2020 kam er. ¦Er blieb.",
    ],
    "more languages": [
        "El Dr. Pérez y la Dra. Ruiz. ¦Pág. 5, núm. 3. ¦Ver cap. 2.",
        "De heer dr. Jansen kwam. ¦Mevr. Smit ook. ¦Il dott. Rossi no.",
        "Voir fig. 3 et éq. 4. ¦C'est clair.",
        "Он живёт на ул. Ленина. ¦Она — нет. ¦Mieszka na ul. Długiej.",
        "Τι κάνεις\u037e ¦Καλά.",
    ],
    "who said it in Chinese": ["“你好。”他说。¦“走吧！”她问道。¦他问：“去吗？”¦她说：“去！”¦“好！”¦我笑了。"],
    "numbers with a wide stop": ["１．第一项。¦２．第二项。"],
}


@pytest.mark.parametrize("kind", KINDS_FOUND_LATER)
def test_kinds_of_boundaries_that_were_found_wrong_later(kind):
    for text in KINDS_FOUND_LATER[kind]:
        sentences = text.split("¦")
        assert cut("".join(sentences)) == sentences


def test_there_are_enough_boundaries():
    assert sum(len(sentences) - 1 for _, sentences in marked()) >= 160 and len(KINDS) >= 30


TILED = st.one_of(
    TEXT,
    st.sampled_from(["".join(sentences) for _, sentences in marked() + marked("second")]),
    st.sampled_from(HOSTILE),
)


@settings(max_examples=400)
@given(text=TILED, before=st.sampled_from(["", " ", "\ufeff", "\n\n", "x. "]))
def test_spans_tile_the_text(text, before):  # lost-13, off-10, off-03
    text = before + text
    spans = sentence_spans(text)
    if is_blank(text):
        assert spans == []
        return
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert all(left[1] == right[0] for left, right in pairwise(spans))
    assert not any(is_blank(text[start:end]) for start, end in spans)
    clusters = {m.start() for m in regex.finditer(r"\X", text)}
    assert all(start in clusters for start, _ in spans)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "1) First thing. 2) Second thing.\r\nNext line here.  Done.",
            ["1) First thing. ", "2) Second thing.\r\n", "Next line here.  ", "Done."],
        ),
        ("First line here.  Second line.\n\nThird line. ", ["First line here.  ", "Second line.\n\n", "Third line. "]),
        (
            "  One.\t Two.\r\r\rThree.\u2028Four.\u2029five",
            ["  One.\t ", "Two.\r\r\r", "Three.\u2028", "Four.\u2029", "five"],
        ),
        ("1. First item\n2. Second item\n3. Third item", ["1. First item\n", "2. Second item\n", "3. Third item"]),
        ("这是第一句话。这是第二句话。”完。", ["这是第一句话。", "这是第二句话。”", "完。"]),
    ],
    ids=["off-10", "lost-13", "all line ends", "numbered", "uni-03"],
)
def test_text_and_its_blanks_are_kept(text, sentences):
    assert cut(text) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            '"Paris is the capital." (So they say.) The weather is nice.',
            ['"Paris is the capital."', "(So they say.)", "The weather is nice."],
        ),
        (
            "It ended (at last.) “Good.” ‘Quite.’ [So it goes.] Next.",
            ["It ended (at last.)", "“Good.”", "‘Quite.’", "[So it goes.]", "Next."],
        ),
        ("Hi all! Good day! Bye now!", ["Hi all!", "Good day!", "Bye now!"]),
        ("It is loading... done. Really?! Yes… no.", ["It is loading... done.", "Really?!", "Yes… no."]),
        ("Is it...? It is! Well?! No!!! Hm…", ["Is it...?", "It is!", "Well?!", "No!!!", "Hm…"]),
        (
            "他问：“去吗？”她说：『去！』（完。）然后……走了。",
            ["他问：“去吗？”", "她说：『去！』", "（完。）", "然后……走了。"],
        ),
        ("Mr.\nSmith came with Dr.\nLind. Both sat.", ["Mr.\nSmith came with Dr.\nLind.", "Both sat."]),
        ('"A." "B." "C."', ['"A."', '"B."', '"C."']),
        ("我笑了。“再见！”她走了。", ["我笑了。", "“再见！”", "她走了。"]),
    ],
    ids=[
        "sent-04",
        "sent-04, more",
        "sent-06",
        "sent-07",
        "sent-07, more",
        "uni-03",
        "wrapped titles",
        "one letter",
        "opening quotes",
    ],
)
def test_stops_stay_with_their_sentence(text, sentences):
    assert trimmed(text) == sentences


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (["- item one", "- item two", "- item three", "no stops at all"], 20),
        (["so we went to the store", "and then we came back", "and it was closed"], 30),
        (["Name: Ada", "City: Lund", "Phone: 555"], 5),
        (["eins", "ZWEI", "three", "4", "五"], 3),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\u2028"], ids=ascii)
def test_without_stops_every_line_is_a_sentence(lines, times, line_end):  # sent-05
    assert trimmed(line_end.join(lines * times) + line_end) == lines * times


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\u2028"], ids=ascii)
def test_a_wrapped_sentence_is_one(line_end):
    text = "The tide turned at four and the{0}boats came in, one by one.{0}Gulls followed{0}them in. Nobody{0}minded."
    assert [" ".join(s.split()) for s in cut(text.format(line_end))] == [
        "The tide turned at four and the boats came in, one by one.", "Gulls followed them in.", "Nobody minded.",
    ]  # fmt: skip


def test_a_blank_line_always_ends_a_sentence():
    for gap in ("\n\n", "\n \n", "\r\n\r\n", "\r\r", "\u2028\u2028", "\u2029", "\n\t\n\n"):
        assert cut(f"see Mr.{gap}nobody, and{gap}more") == [f"see Mr.{gap}", f"nobody, and{gap}", "more"], ascii(gap)


# ---- packing


def test_chunks_are_whole_sentences_as_many_as_fit(novella):  # size-11
    text = novella[:30_000]
    sentences = [trim(text, start, end) for start, end in sentence_spans(text)]
    starts, ends = [start for start, _ in sentences], [end for _, end in sentences]
    chunks = SentenceChunker(600).chunk(text)
    assert {c.start for c in chunks} <= set(starts) and {c.end for c in chunks} <= set(ends)
    for left, right in pairwise(chunks):
        after = ends[starts.index(right.start)]
        assert after - left.start > 600, "the next sentence would have fitted"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Short one. " + "a very long clause without any stop mark " * 6 + "ends here. Short two.", 60),  # size-03
        ("One. " + "word " * 50 + "\n" + "other\t" * 50 + "end. Two.", 33),
        ("漢字かな交じり文が続く" * 30 + "。短い。", 40),  # size-09
        ("aaaaaaaa. " + "b" * 18 + ". cc.", 20),  # hang-05
    ],
)
@pytest.mark.parametrize("overlap", [0, 5, 19])
def test_no_chunk_is_over_its_size(text, size, overlap):
    chunks = SentenceChunker(size, overlap).chunk(text)
    assert all(len(c.text) <= size for c in chunks)
    for left, right in pairwise(chunks):
        assert left.start < right.start and left.end < right.end
        assert not (text[right.start - 1].isalpha() and text[right.start].isascii() and text[right.start].isalpha()), (
            "cut inside a word"
        )


def test_a_long_sentence_is_cut_at_words_and_a_long_word_at_characters():
    assert SentenceChunker(12).split_text("Hi. Several words that do not fit. Bye.") == [
        "Hi. Several",
        "words that",
        "do not fit.",
        "Bye.",
    ]
    assert SentenceChunker(5).split_text("👩‍🔬" * 3 + "e\u0301" * 4 + ".") == [
        "👩‍🔬",
        "👩‍🔬",
        "👩‍🔬e\u0301",
        "e\u0301e\u0301",
        "e\u0301.",
    ]


def test_hang_05_gives_each_piece_once():
    assert SentenceChunker(20, 5).split_text("aaaaaaaa. " + "b" * 18 + ". cc.") == ["aaaaaaaa.", "b" * 18 + ".", "cc."]


def test_spacing_is_kept_and_offsets_are_true():  # off-03, off-08
    text = "First point.   Second point.\n\nThird point. Fourth point."
    assert SentenceChunker(30).split_text(text) == ["First point.   Second point.", "Third point. Fourth point."]
    text = "One two three four. Five six seven eight! Nine ten eleven twelve? The end of it."
    assert [(c.start, c.end) for c in SentenceChunker(30).chunk(text)] == [(0, 19), (20, 41), (42, 65), (66, 80)]


def test_overlap_is_made_of_whole_sentences():  # ovl-01
    text = "One two. Three four. Five six. Seven eight. Nine ten."
    assert SentenceChunker(32, 12).split_text(text) == [
        "One two. Three four. Five six.",
        "Five six. Seven eight. Nine ten.",
    ]
    assert SentenceChunker(32, 8).split_text(text)[1] == "Seven eight. Nine ten.", (
        "a sentence of nine characters does not fit"
    )
    assert SentenceChunker(6, 3, words).split_text(text) == [
        "One two. Three four. Five six.",
        "Five six. Seven eight. Nine ten.",
    ]


SIZES = {"size": st.integers(1, 40), "overlap": st.integers(0, 39)}


@settings(max_examples=200)
@given(text=TEXT, length=st.sampled_from([len, words]), **SIZES)
def test_neighbours_share_what_was_allowed(text, size, overlap, length):
    overlap = min(overlap, size - 1)
    spans = packed_spans(text, sentence_spans(text), size, overlap, length)
    for left, right in pairwise(spans):
        assert left[0] < right[0] and left[1] < right[1]
        assert length(text[right[0] : left[1]]) <= overlap


@pytest.mark.parametrize("name", ["cl100k", "minilm"])
def test_tokens_measure(name, novella):
    count = tokens(name)
    chunks = SentenceChunker(60, 20, count).chunk(novella[:8000])
    assert all(count(c.text) <= 60 for c in chunks) and len(chunks) > 20
    assert all(count(novella[right.start : left.end]) <= 20 for left, right in pairwise(chunks))


# ---- snapping windows


def snapped(text, *arguments, **options):
    return SnappingWindowChunker(*arguments, **options).split_text(text)


STORY = "Ann ran. Bob sat. Cy hid. Di won. Ed saw. Flo cut. Gus fed. Hal dug."


def test_windows_have_whole_sentences_on_both_sides():
    assert snapped(STORY, 20, 0) == ["Ann ran. Bob sat.", "Cy hid. Di won.", "Ed saw. Flo cut.", "Gus fed. Hal dug."]
    assert snapped(STORY, 20, 1) == [
        "Ann ran. Bob sat. Cy hid.", "Bob sat. Cy hid. Di won. Ed saw.", "Di won. Ed saw. Flo cut. Gus fed.", "Flo cut. Gus fed. Hal dug.",
    ]  # fmt: skip
    assert snapped(STORY, 100) == [STORY]


@pytest.mark.parametrize("length", [len, words])
@settings(max_examples=150)
@given(text=st.one_of(TEXT, st.just("ab\n" * 200), st.just(STORY * 3)), **SIZES)
def test_windows_advance_within_their_limit(length, text, size, overlap):  # hang-03
    overlap = min(overlap, size - 1)
    chunker = SnappingWindowChunker(size, overlap, length_function=length)
    assert chunker.limit == (2 * size if overlap else size)
    spans = chunker.spans(text)
    for left, right in pairwise(spans):
        assert left[0] < right[0] and left[1] < right[1], "no window goes back, or lies in the one before"
    for start, end in spans:
        assert (
            length(text[start:end]) <= chunker.limit
            or len(regex.findall(r"\X", text[start:end])) == 1
            or end - start == 1
        )


def test_hang_03_advances_for_every_overlap():
    text = "ab\n" * 200
    for overlap in range(100):
        spans = SnappingWindowChunker(100, overlap).spans(text)
        assert all(left[0] < right[0] and left[1] < right[1] for left, right in pairwise(spans))
        assert spans[0][0] == 0 and spans[-1][1] == len(text) - 1 and len(spans) <= 7


def test_every_stop_counts_and_titles_do_not_where_no_delimiter_is_given():
    text = "Dr. Lind came! Did he? Yes. 好。Next"
    assert snapped(text, 14, 0) == ["Dr. Lind came!", "Did he? Yes.", "好。Next"]


def test_no_delimiter_is_never_one_chunk_without_bounds():
    for text in ("word " * 5000, "x" * 30_000, "no stop here\n" * 2000, "Dr. " * 8000):
        for delimiter in (None, ".", "|"):
            chunker = SnappingWindowChunker(2000, 5, delimiter)
            chunks = chunker.chunk(text)
            assert len(chunks) > 5 and all(len(c.text) <= chunker.limit for c in chunks)


def test_a_delimiter_with_its_exceptions():
    text = "See www.a.com and b.rs, e.g. this. Or Dr. Who! It cost 3.50. End."
    assert snapped(text, 40, 0, ".") == ["See www.a.com and b.rs, e.g. this.", "Or Dr. Who! It cost 3.50. End."]
    assert snapped("No, this. Yes. So.", 15, 0, ".", skip_back=["this"]) == ["No, this. Yes.", "So."]
    assert delimited_spans("No, this. Yes. So.", ".", ["this"], ()) == [(0, 15), (15, 18)]
    assert delimited_spans("a.com. b.org. c.", ".", (), ("com",)) == [(0, 7), (7, 9), (9, 14), (14, 16)]
    assert snapped("one | two | three", 7, 0, "|") == ["one |", "two |", "three"]
    assert snapped('He left." She (too.) stayed.', 10, 0, ".") == ['He left."', "She (too.)", "stayed."]


def test_a_delimiter_that_is_repeated_or_followed_by_stops_ends_one_sentence():  # sent-06, sent-07
    assert snapped("Wait... what. E.g. this?! No.", 8, 0, ".") == ["Wait...", "what.", "E.g.", "this?!", "No."]
    assert [a for a, _ in delimited_spans("Wait... what?! E.g. this. Yes.", ".", ["E.g"], ())] == [0, 8, 26]
    assert [a for a, _ in delimited_spans("Hi?! So??", "?", (), ())] == [0, 5]
    assert [a for a, _ in delimited_spans("a||b |c", "|", (), ())] == [0, 3, 6]


def test_words_to_skip_count_without_a_delimiter_too():
    text = "We use Foo. Bar and so on. It is v. Good. Yes."
    assert snapped(text, 12, 0)[:2] == ["We use Foo.", "Bar and so"]
    assert snapped(text, 30, 0, skip_back=["Foo"])[0] == "We use Foo. Bar and so on."
    assert snapped("Read it on Foo. Org is big. So.", 28, 0, skip_forward=["Org"])[0] == "Read it on Foo. Org is big."


def test_context_is_at_most_half_a_window():
    text = "Short. " + "A sentence that takes up a good deal of room here. " * 3 + "End."
    spans = sentence_spans(text)
    for start, end in snapping_spans(text, spans, 60, 5):
        assert end - start <= 120


@pytest.mark.parametrize("make", [SentenceChunker, SnappingWindowChunker])
def test_every_chunk_starts_and_ends_at_a_word(make):  # ovl-03
    text = "alphabetical bookkeeping catalogue dictionary encyclopaedia fundamental geographical historical"
    chunks = make(40, 7).chunk(text)
    assert len(chunks) > 1 and {word for c in chunks for word in c.text.split()} == set(text.split())


def test_metadata_take_no_room():  # size-04
    text = "A small page of text. " * 5
    made = SentenceChunker(60).create_documents([text], [{"note": "n" * 200}])
    assert [d.page_content for d in made] == SentenceChunker(60).split_text(text) and len(made) == 3
    assert all(d.metadata["note"] == "n" * 200 for d in made)


def test_sentences_without_spaces_are_packed_too():  # uni-03
    assert SentenceChunker(10).split_text("这是第一句话。这是第二句话！“这是第三句？”") == [
        "这是第一句话。",
        "这是第二句话！",
        "“这是第三句？”",
    ]


# ---- arguments


@pytest.mark.parametrize("make", [SentenceChunker, SnappingWindowChunker])
@pytest.mark.parametrize(
    ("size", "overlap", "says"),
    [(0, 0, "size=0"), (-1, 0, "size=-1"), (2.5, 0, "size=2.5"), ("9", 0, "size='9'"), (None, 0, "size=None"), (True, 0, "size=True"),
     (2, 2, "overlap=2.*size=2"), (3, 5, "overlap=5.*size=3"), (10, -1, "overlap=-1"), (10, 1.5, "overlap=1.5")],
)  # fmt: skip
def test_bad_sizes_are_refused_by_name(make, size, overlap, says):  # hang-01
    with pytest.raises(ValueError, match=says):
        make(size, overlap)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"delimiter": ""}, "delimiter=''"), ({"delimiter": " "}, "delimiter=' '"), ({"delimiter": 5}, "delimiter=5"),
     ({"skip_back": "etc"}, "skip_back='etc'"), ({"skip_forward": [""]}, "skip_forward="), ({"skip_back": [3]}, "skip_back="),
     ({"skip_back": 3}, "skip_back=3"), ({"length_function": 3}, "length_function=3")],
)  # fmt: skip
def test_bad_options_are_refused_by_name(options, says):
    with pytest.raises(ValueError, match=says):
        SnappingWindowChunker(**options)


@pytest.mark.parametrize("text", [None, 3, b"bytes", ["list"]], ids=repr)
def test_sentences_of_what_is_no_text_are_refused(text):
    with pytest.raises(ValueError, match="must be a str"):
        sentence_spans(text)


def test_nothing_is_fetched_or_imported_for_it():  # nb-11: NLTK's data are not needed
    sentence_spans("One. Two.")
    assert "chunklab.chunkers.boundaries" in sys.modules
    source = Path(sys.modules["chunklab.chunkers.boundaries"].__file__).read_text(encoding="utf-8")
    imported = set(regex.findall(r"^(?:from|import) (\w+)", source, regex.M))
    assert imported <= {"__future__", "re", "itertools", "chunklab"}


def test_the_benchmark_runs_and_no_peer_does_as_well(capsys, monkeypatch):
    path = Path(__file__).parent / "benchmarks" / "sentences.py"
    spec = importlib.util.spec_from_file_location("benchmark_sentences", path)
    benchmark = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec.loader.exec_module(benchmark)
    table, results = benchmark.main(["--smoke"])
    ours = table.pop("chunklab `sentence_spans`")
    assert min(ours) > 0.98 and all(peer < mine for f1 in table.values() for peer, mine in zip(f1, ours, strict=True))
    assert all(math.isfinite(ratio) and ratio > 0 for _, ratio in results)
    assert "| 10 MB against 5 MB" in capsys.readouterr().out
