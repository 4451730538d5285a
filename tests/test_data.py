"""The corpus and its gold questions keep every rule that data/README.md states."""

import importlib.util
import json
import re
import subprocess
import sys
import unicodedata
import zipfile
from collections import Counter
from itertools import pairwise

import docx
import pypdf
import pytest
from conftest import why_not_locked

from chunklab.corpus import DATA, find_quote, load_corpus, load_questions
from chunklab.question_file import read_questions
from chunklab.testset import places_of

CORPUS = DATA / "corpus"
README = (DATA / "README.md").read_text(encoding="utf-8")
DOCUMENTS = load_corpus()
QUESTIONS = load_questions()
LINES = (DATA / "questions.jsonl").read_text(encoding="utf-8").split("\n")

NOVELLA, MANUAL, CODE = "the_bell_that_waited.txt", "tidewright_manual.md", "tideclock.py"
HANDBOOK, SURVEY, MEETING = "staff_handbook.md", "throat_survey.txt", "users_meeting.txt"
VISITORS, LEAFLET = "questions_and_answers.md", "leaflet.txt"
DOCX, PDF = CORPUS / "staff_handbook.docx", CORPUS / "throat_survey.pdf"

# The word that opens the ids of a document's questions.
DOCUMENT_OF = {
    "novella": NOVELLA,
    "manual": MANUAL,
    "code": CODE,
    "handbook": HANDBOOK,
    "survey": SURVEY,
    "meeting": MEETING,
    "visitors": VISITORS,
    "leaflet": LEAFLET,
}
KINDS = {
    "one fact",
    "two facts apart",
    "list",
    "table cell",
    "dialogue",
    "code",
    "paraphrase",
    "negation",
    "cross-document",
}
LEAST_BYTES = {
    NOVELLA: 60_000,
    MANUAL: 30_000,
    HANDBOOK: 25_000,
    SURVEY: 20_000,
    MEETING: 20_000,
    VISITORS: 10_000,
    CODE: 10_000,
    LEAFLET: 3_000,
}

every_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
every_document = pytest.mark.parametrize("name", sorted(LEAST_BYTES))


def of_kind(kind):
    chosen = [question for question in QUESTIONS if question.kind == kind]
    return pytest.mark.parametrize("question", chosen, ids=lambda question: question.id)


def documents_of(question):
    return {span.document for span in question.spans}


# The questions


def test_a_line_holds_one_question_with_its_keys_in_order():
    assert LINES.pop() == ""
    for line in LINES:
        row = json.loads(line)
        assert list(row) == ["id", "question", "answer", "kind", "spans"]
        assert all(list(span) == ["document", "start", "end", "quote"] for span in row["spans"])
        assert line == json.dumps(row, ensure_ascii=False)


@every_question
def test_each_quote_is_the_text_at_its_place_and_stands_there_once(question):
    for span in question.spans:
        text = DOCUMENTS[span.document]
        assert text[span.start : span.end] == span.quote == span.quote.strip()
        assert text.count(span.quote) == 1


@every_question
def test_the_spans_of_a_question_do_not_overlap(question):
    places = sorted((span.document, span.start, span.end) for span in question.spans)
    for (document, _, end), (other, start, _) in pairwise(places):
        assert document != other or end < start


@every_question
def test_a_question_asks_and_an_answer_is_a_sentence(question):
    assert question.question == question.question.strip()
    assert re.search(r"[?？؟。]$", question.question)
    assert question.answer.endswith(".") and question.answer[0] in question.answer[0].upper() + '"'


def test_no_question_is_asked_twice_and_ids_count_up_under_their_document():
    assert len({question.question for question in QUESTIONS}) == len({q.id for q in QUESTIONS}) == len(QUESTIONS)
    counts = Counter()
    for question in QUESTIONS:
        part, _, number = question.id.partition("-")
        counts[part] += 1
        assert number == f"{counts[part]:02d}"
        if part == "cross":
            assert question.kind == "cross-document"
        else:
            assert documents_of(question) == {DOCUMENT_OF[part]}
    assert set(counts) == {*DOCUMENT_OF, "cross"}


def test_there_are_enough_questions_of_each_kind_and_document():
    kinds = Counter(question.kind for question in QUESTIONS)
    parts = Counter(question.id.partition("-")[0] for question in QUESTIONS)
    assert len(QUESTIONS) >= 150
    assert set(kinds) == KINDS and min(kinds.values()) >= 10
    assert all(parts[part] >= 20 for part in ("novella", "manual", "handbook", "survey", "meeting"))


@of_kind("cross-document")
def test_a_cross_document_question_needs_two_documents(question):
    assert len(documents_of(question)) >= 2


def test_cross_document_questions_reach_every_document():
    reached = Counter(name for q in QUESTIONS if q.kind == "cross-document" for name in documents_of(q))
    assert set(reached) == set(DOCUMENTS) and min(reached.values()) >= 2


@of_kind("two facts apart")
def test_two_facts_apart_are_far_apart_in_one_document(question):
    assert len(documents_of(question)) == 1 and len(question.spans) >= 2
    places = sorted((span.start, span.end) for span in question.spans)
    assert all(start - end >= 1500 for (_, end), (start, _) in pairwise(places))


@of_kind("table cell")
def test_a_table_cell_stands_in_a_row_of_a_table(question):
    (span,) = question.spans
    assert "\n" not in span.quote and re.search(r"\|| {2}", span.quote)


@of_kind("list")
def test_a_list_has_three_items_or_more(question):
    quotes = " ".join(span.quote for span in question.spans)
    assert len(question.spans) >= 3 or len(re.findall(r"[,.;:\n]| and ", quotes)) >= 2


# Words that carry the grammar of a question, not its matter.
FUNCTION_WORDS = set(
    """a about after against all also always am an and another any anybody anyone anything are as at be because been
    before being below between both but by can cannot could did do does during each else ever every for from had has
    have having he her hers herself him himself his how i if in into is it its itself me might more most much must my
    near never no nobody none nor not nothing of off often on once one only or other our out over own per she should
    since so some somebody someone something still such than that the their them themselves then there these they this
    those though through till to too under until up upon us very was we were what when where whether which while who
    whom whose why will with within without would yet you your""".split()
)
ENDINGS = ("ings", "ing", "ied", "ies", "ers", "ed", "er", "es", "ly", "s", "e")


def stem(word):
    """The word without its ending, crudely, so that "shouted" and "shouts" come out the same."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + "y" * ending.startswith("ie")
            break
    return word[:-1] if word[-1:] == word[-2:-1] else word


def content_words(text):
    words = [word.split("'")[0] for word in re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text.lower())]
    return {stem(word) for word in words if len(word) > 1 and word not in FUNCTION_WORDS}


def test_the_stemmer_sees_through_common_endings():
    assert len(content_words("stop stops stopped stopping stopper")) == 1
    assert content_words("Who's that? Carries, carried: the bell's hinges") == content_words("carry bells' hinge")


@of_kind("paraphrase")
def test_a_paraphrase_shares_no_content_word_with_its_gold(question):
    assert not content_words(question.question) & content_words(" ".join(span.quote for span in question.spans))


# The documents


def test_the_corpus_is_these_eight_documents_and_their_two_binaries():
    assert set(DOCUMENTS) == set(LEAST_BYTES)
    assert {path.name for path in CORPUS.iterdir() if path.is_file()} == {*LEAST_BYTES, DOCX.name, PDF.name}
    assert sum(len(text.encode()) for text in DOCUMENTS.values()) >= 200_000


@every_document
def test_a_text_is_long_enough_and_is_clean_utf_8(name):
    data = (CORPUS / name).read_bytes()
    text = data.decode("utf-8")
    assert len(data) >= LEAST_BYTES[name]
    assert not text.startswith("\ufeff") and not re.search(r"[\t\r\x0b\x0c\x85\u2028\u2029]|[ ]\n", text)
    assert text.endswith("\n") and not text.endswith("\n\n")


# The paths of the clock's own machines (/etc/mk4) belong to the story.
OUTSIDE = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|mnt|Users|var|workspaces?)/|\b[A-Z]:\\|[\w.+-]+@[\w-]+\.\w")


@every_document
def test_a_text_names_no_path_of_a_real_machine_no_e_mail_and_no_site(name):
    assert not OUTSIDE.search(DOCUMENTS[name]) and "://" not in DOCUMENTS[name]


def test_the_novella_has_twelve_chapters_with_scenes_dialogue_and_hard_wrapped_lines():
    text = DOCUMENTS[NOVELLA]
    chapters = re.split(r"^CHAPTER [A-Z]+$", text, flags=re.M)[1:]
    assert len(chapters) == 12
    assert all(re.search(r"^ {10,}\* \* \*$", chapter, re.M) for chapter in chapters)
    assert text.count('"') > 500 and max(map(len, text.split("\n"))) <= 72
    paragraphs = [len(paragraph) for paragraph in text.split("\n\n")]
    assert min(paragraphs) < 40 and max(paragraphs) > 1200


def fences(markdown):
    return re.findall(r"^(`{3,})[a-z]*\n(.*?)^\1$", markdown, re.M | re.S)


def test_the_manual_has_four_heading_levels_tables_warnings_and_fenced_comments():
    text = DOCUMENTS[MANUAL]
    assert {len(marks) for marks in re.findall(r"^(#{1,6}) ", text, re.M)} >= {1, 2, 3, 4}
    assert len(re.findall(r"^\| --- ", text, re.M)) >= 8
    assert len(re.findall(r"^> \*\*Warning\*\*", text, re.M)) >= 2
    assert len(re.findall(r"^1\. ", text, re.M)) >= 5
    assert sum(bool(re.search(r"^# ", code, re.M)) for _, code in fences(text)) >= 5


def test_the_handbook_has_headings_lists_and_a_table():
    text = DOCUMENTS[HANDBOOK]
    assert {len(marks) for marks in re.findall(r"^(#{1,6}) ", text, re.M)} == {1, 2, 3}
    assert re.search(r"^- ", text, re.M) and re.search(r"^1\. ", text, re.M) and re.search(r"^\| --- ", text, re.M)


def test_the_report_has_numbered_sections_a_table_a_formula_and_references():
    text = DOCUMENTS[SURVEY]
    assert re.search(r"^Table 1\. ", text, re.M) and re.search(r"^ {4}lag = ", text, re.M)
    assert len(re.findall(r"^\d [A-Z]", text, re.M)) == 7 and len(re.findall(r"^\d\.\d [A-Z]", text, re.M)) >= 20
    assert len(text.partition("\nREFERENCES\n")[2].strip().split("\n\n")) >= 10


def test_the_transcript_is_one_line_of_speech_with_timestamps():
    text = DOCUMENTS[MEETING]
    assert text.count("\n") == 1
    stamps = re.findall(r"\[(\d\d):(\d\d):(\d\d)\]", text)
    assert len(stamps) >= 40 and stamps == sorted(set(stamps))
    words = re.sub(r"\[[\d:]+\]", "", text)
    assert not re.search(r"[^\w\s']|\d", words)


def test_the_page_of_questions_and_answers_has_many_short_paragraphs():
    text = DOCUMENTS[VISITORS]
    assert len(re.findall(r"^### .*\?$", text, re.M)) >= 30
    paragraphs = [paragraph for paragraph in text.split("\n\n") if not paragraph.startswith(("#", "|"))]
    assert len(paragraphs) >= 45 and max(map(len, paragraphs)) <= 400


def test_the_module_compiles_runs_and_has_classes_decorators_and_long_functions():
    text = DOCUMENTS[CODE]
    compile(text, CODE, "exec")
    assert text.count("\nclass ") >= 10 and len(re.findall(r"^ *@\w", text, re.M)) >= 5
    functions = re.split(r"^(?=(?:async )?def )", text, flags=re.M)
    assert max(function.count("\n") for function in functions) >= 60
    command = [sys.executable, "-X", "utf8", str(CORPUS / CODE)]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    first, *rings, last = run.stdout.splitlines()
    assert first == "Bells of 11 March 2024, times in UTC" and last == f"{len(rings)} calls" and len(rings) >= 10
    refused = subprocess.run([*command, "--lead", "99"], capture_output=True, text=True, encoding="utf-8")
    assert refused.returncode == 2 and "is not between" in refused.stderr


def test_the_leaflet_has_six_languages_with_joined_emoji_and_combining_marks():
    english, german, chinese, japanese, arabic, vietnamese = DOCUMENTS[LEAFLET].split("\n\n\n")
    assert english.isascii() is False and "Clock House" in english
    assert re.search("[äöüß]", german) and re.search("[\u4e00-\u9fff]", chinese)
    assert re.search("[\u3041-\u309f]", japanese) and re.search("[\u30a1-\u30fa]", japanese)
    assert re.search("[\u0621-\u064a]", arabic) and re.search("[\u064b-\u0652]", arabic)
    assert vietnamese != unicodedata.normalize("NFC", vietnamese) and re.search("[\u0300-\u0323]", vietnamese)
    for emoji in ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44b\U0001f3fd", "1\ufe0f\u20e3"):
        assert emoji in DOCUMENTS[LEAFLET]
    assert re.search("[\U0001f1e6-\U0001f1ff]{2}", vietnamese)


# The two binaries


def word_text():
    """The handbook's DOCX, a line a paragraph or a cell."""
    word = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    paragraphs = docx.Document(DOCX).element.body.iter(word + "p")
    return "\n".join("".join(text.text or "" for text in paragraph.iter(word + "t")) for paragraph in paragraphs)


def pdf_text():
    return "\n".join(page.extract_text() for page in pypdf.PdfReader(PDF).pages)


def test_the_docx_has_what_a_parser_has_to_cope_with():
    word = docx.Document(DOCX)
    styles = Counter(paragraph.style.name for paragraph in word.paragraphs)
    assert {"Heading 1", "Heading 2", "Heading 3", "List Bullet", "List Number"} <= set(styles)
    assert len(word.tables) == 2
    assert word.sections[0].header.paragraphs[0].text and word.sections[0].footer.paragraphs[0].text


def test_the_pdf_has_what_a_parser_has_to_cope_with():
    pages = [page.extract_text() for page in pypdf.PdfReader(PDF).pages]
    assert len(pages) >= 4
    for number, page in enumerate(pages, start=1):
        assert "Drift of Slack Water in the Throat" in page and re.search(rf"^{number}\s*$", page, re.M)
    assert sum(len(re.findall(r"[a-z]-\n", page)) for page in pages) >= 20
    assert "Table 1." in pdf_text() and "REFERENCES" in pdf_text()


@pytest.mark.parametrize(("name", "read"), [(HANDBOOK, word_text), (SURVEY, pdf_text)])
def test_gold_is_found_again_in_the_binary_bars_of_table_rows_aside(name, read):
    text = read()
    lost = [s.quote for q in QUESTIONS for s in q.spans if s.document == name and find_quote(text, s.quote) is None]
    assert all(quote.startswith("| ") for quote in lost)


def test_the_test_set_of_lesson_08_has_its_gold_in_the_pieces_that_were_asked_about():
    novella = DOCUMENTS[NOVELLA].split("CHAPTER FOUR")[0].rstrip()
    asked = read_questions(DATA / "bell_questions.jsonl", {"novella": novella})
    pieces = {place.id: (place.sentences[0][0], place.sentences[-1][1]) for place in places_of("novella", novella, 400)}
    assert len(asked) == len({question.id for question in asked}) == 12
    for question in asked:
        start, end = pieces[question.id]
        assert all(start <= span.start and span.end <= end for span in question.spans) and question.spans
    assert not {question.question for question in asked} & {question.question for question in QUESTIONS}


def test_the_binaries_name_no_path_of_a_real_machine_and_no_e_mail():
    with zipfile.ZipFile(DOCX) as members:
        texts = [members.read(name).decode() for name in members.namelist() if name.endswith((".xml", ".rels"))]
    texts += [pdf_text(), *map(str, pypdf.PdfReader(PDF).metadata.values())]
    assert [found[0] for found in map(OUTSIDE.search, texts) if found] == []


@pytest.fixture
def made(tmp_path):
    """The two binaries as make_files.py makes them now."""
    reason = why_not_locked()
    if reason:
        pytest.skip(f"other versions lay pages out in other ways: {reason}")
    spec = importlib.util.spec_from_file_location("make_files", DATA / "make_files.py")
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    maker.make_docx(CORPUS / HANDBOOK, tmp_path / DOCX.name)
    maker.make_pdf(CORPUS / SURVEY, tmp_path / PDF.name)
    return tmp_path


# What is packed is compared, not the bytes of the packing: those change with the machine's zlib.


def test_the_docx_is_what_the_script_makes_of_the_text(made):
    with zipfile.ZipFile(DOCX) as kept, zipfile.ZipFile(made / DOCX.name) as new:
        assert kept.namelist() == new.namelist()
        assert all(kept.read(name) == new.read(name) for name in new.namelist())


def test_the_pdf_is_what_the_script_makes_of_the_text(made):
    kept, new = (pypdf.PdfReader(path) for path in (PDF, made / PDF.name))
    assert kept.metadata == new.metadata
    assert [page.extract_text() for page in kept.pages] == [page.extract_text() for page in new.pages]
    assert [page.get_contents().get_data() for page in kept.pages] == [p.get_contents().get_data() for p in new.pages]


# The page about them


def table_counts(heading):
    """First cell of each row, backticks aside, to the number in its second."""
    section = README.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `?([^|`]+?)`? +\| +([\d,]+) ", section, re.M)
    return {name: int(number.replace(",", "")) for name, number in rows}


def test_the_readme_counts_right():
    assert table_counts("The documents") == {name: len(text.encode()) for name, text in DOCUMENTS.items()}
    assert table_counts("The questions") == dict(Counter(question.kind for question in QUESTIONS))
    parts = Counter(question.id.partition("-")[0] for question in QUESTIONS)
    for part, count in parts.items():
        assert re.search(rf"`{part}` {count}\b", README)
    assert f"{len(QUESTIONS)} questions" in README
