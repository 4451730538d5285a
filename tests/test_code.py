"""CodeChunker: whole functions where they fit, exact slices in any encoding, and an end on whatever it is given."""

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunklab import CodeChunker, load_corpus, tokens
from chunklab.chunkers.code import code_spans
from chunklab.chunkers.syntax import parsed, shadow

TIDE = '''\
import math


# The moon's part.
# The sun's is smaller.
@cached
def moon(hours):
    """Height of the moon's tide."""
    return math.cos(hours)


class Tide:
    """A tide."""

    def __init__(self, height):
        self.height = height

    # Above the mean.
    @property
    def high(self):
        return self.height > 0

    def at(self, hours):
        """Height after some hours."""
        if hours < 0:
            raise ValueError(hours)
        else:
            for step in range(hours):
                self.height += moon(step)
        return self.height
'''

BELL = """\
// The bells.
import { ring } from "./ring.js";

/** One bell. */
export class Bell extends Base {
  #weight = 1;

  // How it sounds.
  ring(times) {
    if (times > 0) {
      ring(this.#weight);
    } else {
      this.rest();
    }
  }

  get weight() { return this.#weight; } // in tons
}

const toll = async (bells) => {
  for (const bell of bells) {
    await bell.ring(1);
  }
  return bells.length;
};

module.exports = {
  toll,
  count() { return 3; },
  rest: function () {
    return 0;
  },
};
"""


def texts(text, size, language="python"):
    return CodeChunker(language, size).split_text(text)


def contexts(text, size, language="python"):
    return [c.metadata.get("context", []) for c in CodeChunker(language, size).chunk(text)]


# The handed cases.

FIRST_LINES = [
    "# café — naïve 漢字",
    "# 👩‍🔬🧪 🇫🇷",
    "# e\u0301\u0301 a\u0308",
    "# \U0001d54f \ud800",
    "# \xa0\u3000\u2003",
    "ñ = 'é' # →",
    "'''漢字\n字'''",
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=ascii)
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=ascii)
@pytest.mark.parametrize("first", FIRST_LINES, ids=ascii)
def test_off_12_wide_characters_shift_no_later_slice(first, bom, line_end):
    text = bom + first + "\n" + "\n".join(f"def f{i}(x):\n    return '→ {i}'\n" for i in range(12))
    text = text.replace("\n", line_end)
    chunks = CodeChunker("python", 80).chunk(text)
    assert all(text[c.start : c.end] == c.text for c in chunks)
    assert all(c.text.startswith("def f") for c in chunks[1:]) and chunks[0].text.startswith(first[:3])
    assert "".join(c.text for c in chunks) == text.removeprefix(bom)
    assert sum(c.text.count("def ") for c in chunks) == 12 and len(chunks) < 12


@pytest.mark.parametrize("first", ["// café — naïve 漢字", "/* 👩‍🔬 */", "const ñ = `é ${'→'}`;"], ids=ascii)
def test_off_12_wide_characters_shift_no_later_slice_of_javascript(first):
    text = first + "\n" + "\n".join(f"function f{i}(x) {{\n  return '→ {i}';\n}}\n" for i in range(12))
    chunks = CodeChunker("javascript", 80).chunk(text)
    assert all(text[c.start : c.end] == c.text and c.text.startswith("function f") for c in chunks[1:])


LONG = {
    "string": "X = '" + "q" * 600 + "'\ny = 1\n",
    "bytes": "X = b'" + "q" * 600 + "'\ny = 1\n",
    "docstring": 'def f():\n    """' + "words of it " * 90 + '"""\n    return 1\n',
    "string of lines": 'X = """\n' + "a line of it\n" * 90 + '"""\ny = 1\n',
    "name": "def " + "n" * 700 + "(x):\n    return x\n",
    "number": "X = " + "9" * 900 + "\n",
    "comment": "# " + "-" * 500 + "\nx = 1  # " + "=" * 400 + "\n",
    "list": "X = [" + ", ".join(map(str, range(400))) + "]\n",
    "signature": "def f(" + ", ".join(f"argument_{i}=None" for i in range(80)) + "):\n    return 1\n",
    "expression": "x = " + "+".join(["y"] * 600) + "\n",
    "wide": "x = '" + "漢字👩‍🔬e\u0301" * 90 + "'\n",
    "indented": "if x:\n" + " " * 90 + "y = '" + "q" * 300 + "'\n",
}


@pytest.mark.parametrize("language", ["python", "javascript"])
@pytest.mark.parametrize("size", [10, 100])
@pytest.mark.parametrize("name", LONG)
def test_lost_08_what_is_too_long_is_cut_and_not_dropped(name, size, language):
    text = LONG[name]
    chunks = CodeChunker(language, size).chunk(text)
    assert "".join("".join(c.text for c in chunks).split()) == "".join(text.split())
    assert all(0 < len(c.text) <= size and text[c.start : c.end] == c.text for c in chunks)


LOST_11 = "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"


def test_lost_11_indentation_and_blank_lines_are_kept():
    assert texts(LOST_11, 50) == [
        "class A:\n    def one(self):\n        return 1\n\n",
        "    def two(self):\n        return 2\n",
    ]
    assert contexts(LOST_11, 50) == [[], ["class A:"]]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (LOST_11, "python"),
        (TIDE, "python"),
        ("\n\n" + TIDE + "\n\n\n", "python"),
        (BELL, "javascript"),
        (TIDE.replace("    ", "\t"), "python"),
    ],
    ids=["handed", "Python", "blank lines around", "JavaScript", "tabs"],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=ascii)
def test_lost_11_the_chunks_are_the_file_again(text, language, line_end):
    text = text.replace("\n", line_end)
    for size in range(45, 400, 7):
        chunks = CodeChunker(language, size).chunk(text)
        for c, after in zip(chunks, chunks[1:], strict=False):
            # A whole function is worth more than the blank line after it.
            assert c.end == after.start or (len(c.text) > size - 2 and text[c.end : after.start].isspace())
        assert chunks[0].start == 0 and (chunks[-1].end == len(text) or len(chunks[-1].text) > size - 2)
    assert "".join(texts(text, 120, language)) == "".join(texts(text, 300, language)) == text


def test_lost_11_white_space_that_fits_nowhere_is_left_out():
    text = "x = 1" + "\n" * 500 + "y = 2"
    chunks = CodeChunker("python", 100).chunk(text)
    assert [c.text.strip() for c in chunks] == ["x = 1", "y = 2"] and all(len(c.text) <= 100 for c in chunks)
    assert texts("a = 1\n\n\nb = 2\n", 6) == ["a = 1\n", "b = 2\n"]
    assert texts("a = 1\n\nb = 2\n", 6) == ["a = 1\n", "\nb = 2"], "to the chunk after, if there is no room before"


OFFLINE = """
import socket
def refuse(*arguments, **more): raise OSError("no network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from chunklab import CodeChunker
print(CodeChunker("python").split_text("def f():\\n    return 1\\n"), CodeChunker("javascript").split_text("f();"))
"""


def test_api_09_no_network_and_no_cache_is_needed(tmp_path):
    alone = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", OFFLINE], env=alone, capture_output=True, text=True, check=True).stdout
    assert out == "['def f():\\n    return 1\\n'] ['f();']\n" and list(tmp_path.iterdir()) == []


# Where it cuts.


def test_a_file_that_fits_is_one_chunk():
    assert texts(TIDE, 1000) == [TIDE] and texts(BELL, 1000, "javascript") == [BELL]


def test_small_neighbours_share_a_chunk():
    text = "".join(f"def f{i}():\n    return {i}\n\n\n" for i in range(4))
    assert texts(text, 60) == [text[:50], text[50:]]


def test_decorators_and_the_comments_above_go_with_a_function():
    first, second = texts("import math\n" * 5 + TIDE, 160)[:2]
    assert first == "import math\n" * 6 + "\n\n"
    assert second.startswith("# The moon's part.\n# The sun's is smaller.\n@cached\ndef moon(hours):")
    assert second.rstrip().endswith("return math.cos(hours)")


def test_a_comment_apart_goes_with_nothing_and_one_behind_with_its_line():
    text = "# A licence.\n\n# One.\ndef one():\n    return 1  # the least\n\n\n# Two.\ndef two():\n    return 2\n"
    assert texts(text, 55) == [
        "# A licence.\n\n",
        "# One.\ndef one():\n    return 1  # the least\n\n\n",
        "# Two.\ndef two():\n    return 2\n",
    ]


def test_a_class_is_cut_between_its_methods_with_its_line_as_context():
    chunks = CodeChunker("python", 130).chunk(TIDE[TIDE.index("class") :])
    assert chunks[0].text.startswith('class Tide:\n    """A tide."""\n\n    def __init__') and chunks[0].metadata == {}
    assert chunks[1].text.startswith("    # Above the mean.\n    @property\n    def high(self):")
    assert chunks[2].text.startswith("    def at(self, hours):")
    assert [c.metadata["context"] for c in chunks[1:3]] == [["class Tide:"]] * 2
    assert chunks[3].metadata["context"] == ["class Tide:", "def at(self, hours):"]


def test_a_function_is_cut_at_its_statements_and_a_header_stays_with_its_block():
    chunks = CodeChunker("python", 90).chunk(TIDE[TIDE.index("    def at") :])
    assert [c.text for c in chunks] == [
        '    def at(self, hours):\n        """Height after some hours."""\n',
        "        if hours < 0:\n            raise ValueError(hours)\n",
        "        else:\n            for step in range(hours):\n",
        "                self.height += moon(step)\n",
        "        return self.height\n",
    ]
    assert all(c.metadata["context"] == ["def at(self, hours):"] for c in chunks[1:])


def test_contexts_are_nested_and_in_one_line():
    text = "class A(\n    Base,\n):\n    class B:\n        def f(self,\n              x):  # why\n"
    text += "            a = 1\n            return x\n"
    last = contexts(text, 30)[-1]
    assert last == ["class A( Base, ):", "class B:", "def f(self, x):"]
    long = "def f(" + "x" * 500 + "):\n    a = 1\n    return 2\n"
    assert len(contexts(long, 20)[-1][0]) == 200 and contexts(long, 20)[-1][0].endswith("…")
    assert json.loads(json.dumps(CodeChunker("python", 30).chunk(text)[-1].metadata)) == {"context": last}


def test_what_begins_with_its_class_needs_no_context():
    assert contexts("class A:\n    x = 1\n\n\nclass B:\n    y = 2\n", 30) == [[], []]
    assert contexts("def f():\n    return 1\n\n\nx = 1\n", 24) == [[], []]


def test_a_statement_is_cut_at_lines_and_a_line_at_words():
    text = "X = [\n" + "".join(f"    'entry {i}',\n" for i in range(9)) + "]\n"
    chunks = texts(text, 40)
    assert all(chunk.count("'") % 2 == 0 for chunk in chunks) and all(c.startswith((" ", "X")) for c in chunks)
    assert texts("call(alpha, beta, gamma, delta)\n", 20) == ["call(alpha, beta, ", "gamma, delta)\n"]


def test_a_string_of_lines_is_not_taken_for_code():
    text = 'def f():\n    return 1\n\n\n\n\nX = """\ndef not_code():\n    pass\n"""\n\n\ndef g():\n    return 2\n'
    first, second = text.index("X"), text.index("def g")
    assert texts(text, 45) == [text[:first], text[first:second], text[second:]]


def test_javascript_is_cut_between_methods_functions_and_properties():
    chunks = CodeChunker("javascript", 130).chunk(BELL)
    starts = [c.text.lstrip()[:14] for c in chunks]
    assert starts == [
        "// The bells.\n",
        "/** One bell. ",
        "// How it soun",
        "get weight() {",
        "const toll = a",
        "module.exports",
    ]
    assert [c.metadata.get("context") for c in chunks] == [None, None, *[["class Bell extends Base {"]] * 2, None, None]
    assert contexts(BELL[BELL.index("const toll") :], 60, "javascript")[1] == ["const toll = async (bells) => {"]


def test_javascript_on_one_line_is_cut_between_statements():
    text = "function a(){let x=1;return x}function b(){return 2}const c=()=>{d();e()};[1,2].map(f);"
    assert texts(text, 31, "javascript") == [
        "function a(){let x=1;return x}",
        "function b(){return 2}",
        "const c=()=>{d();e()};",
        "[1,2].map(f);",
    ]
    assert [c for c in texts(text, 20, "javascript") if c.startswith(("}", ")", ";", ","))] == []


BROKEN = """class A:
    def one(self):
        return 1

    def two(self):
        return 2


def three():
    return 3
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("one(self)", "one(self"), ("one(self):", "one(self)"), ("return 1", "print 'un"), ("return 3", "return = 3")],
)
def test_a_syntax_error_leaves_the_functions_whole(right, wrong):
    text = BROKEN.replace(right, wrong)
    assert parsed(text, "python") is None
    chunks = CodeChunker("python", 60).chunk(text)
    assert "".join(c.text for c in chunks) == text
    assert [re.findall(r"def (\w+)", c.text) for c in chunks] == [["one"], ["two"], ["three"]]
    assert [c.metadata.get("context") for c in chunks] == [None, ["class A:"], None]


def test_a_syntax_error_in_javascript_leaves_the_functions_whole():
    text = "// one\nfunction one() {\n  return (1;\n}\n\n"
    text += "export function two() {\n  if (x) {\n    y();\n  } else {\n    z();\n  }\n}\n"
    assert parsed(text, "javascript") is None
    assert texts(text, 80, "javascript") == [text[: text.index("export")], text[text.index("export") :]]
    assert [c for c in texts(text, 40, "javascript") if c.rstrip().endswith("// one")] == []


# What it keeps, on other people's code and on made-up code.

STDLIB = ["bisect", "heapq", "shlex", "textwrap", "sched", "queue", "fractions", "graphlib", "colorsys"]


def functions(text):
    """Start and end of every function and class: from its first decorator's line on."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            last = text[starts[node.end_lineno - 1] : starts[node.end_lineno]]
            yield starts[first - 1], starts[node.end_lineno - 1] + len(last.encode()[: node.end_col_offset].decode())


def assert_functions_are_whole(text, size):
    chunks = CodeChunker("python", size).chunk(text)
    assert all(text[c.start : c.end] == c.text and 0 < len(c.text) <= size for c in chunks)
    found = list(functions(text))
    for start, end in found:
        inside = [c for c in chunks if c.start <= start and end <= c.end]
        assert inside or end - start > size, f"cut: {text[start:end]}"
        for chunk in inside:
            if not text[chunk.start : start].strip() and not text[end : chunk.end].strip():
                ast.parse(textwrap.dedent(chunk.text))  # a whole function, and nothing else


@pytest.mark.parametrize("name", STDLIB)
@pytest.mark.parametrize("size", [250, 1000])
def test_functions_of_the_standard_library_are_whole_where_they_fit(name, size):
    text = Path(sysconfig.get_path("stdlib"), f"{name}.py").read_text(encoding="utf-8")
    assert_functions_are_whole(text, size)
    assert "".join(texts(text, size)) == text


def test_functions_of_the_course_are_whole_where_they_fit():
    assert_functions_are_whole(load_corpus()["tideclock.py"], 700)


def indented(lines):
    return ["    " + line for line in lines]


SIMPLE = st.sampled_from(
    [
        "x = 1",
        "return x",
        "call(a, b)",
        "s = 'é→漢👩‍🔬'",
        "y = [1, 2, 3, 4, 5, 6, 7]",
        "pass",
        "await_it()",
        "'doc'",
        "# note",
    ]
)


def compound(block):
    one = block.map(indented)
    headers = st.sampled_from(["if x:", "for i in y:", "while z:", "with open(f) as g:"])
    plain = st.tuples(headers, one).map(lambda parts: [parts[0], *parts[1]])
    choice = st.tuples(one, one).map(lambda parts: ["if a:", *parts[0], "else:", *parts[1]])
    attempt = st.tuples(one, one, one).map(lambda p: ["try:", *p[0], "except E as e:", *p[1], "finally:", *p[2]])
    names = st.sampled_from(["f", "größe", "a_rather_long_name_for_it"])
    function = st.tuples(st.sampled_from([[], ["@wraps(f)"]]), names, one).map(
        lambda p: [*p[0], f"def {p[1]}(self, x=1):", *p[2]]
    )
    klass = one.map(lambda body: ["class A(Base):", *body])
    return plain | choice | attempt | function | klass


def block_of(statement):
    statements = st.lists(statement, min_size=1, max_size=4)
    return statements.map(lambda parts: [line for part in parts for line in [*part, ""]] + ["pass"])


LINES = st.recursive(SIMPLE.map(lambda line: [line]), lambda inner: compound(block_of(inner)), max_leaves=25)
PROGRAM = block_of(LINES).map(lambda lines: "\n".join(line if line.strip() else "" for line in lines) + "\n")


@settings(max_examples=150)
@given(PROGRAM, st.integers(20, 300))
def test_functions_of_made_up_programs_are_whole_where_they_fit(text, size):
    assert_functions_are_whole(text, size)


MARKS = ["(", ")", '"""', "{", "\\", "\ufeff", "def", "\r"]


@settings(max_examples=100)
@given(PROGRAM, st.integers(20, 200), st.data())
def test_a_mutilated_program_still_gives_chunks(text, size, data):
    place, mark = data.draw(st.integers(0, len(text))), data.draw(st.sampled_from(MARKS))
    text = text[:place] + mark + text[place + 3 :]
    for language in ("python", "javascript"):
        spans = code_spans(text, size, language)
        assert all(0 < end - start <= size for start, end in spans)
        bare = text.replace("\ufeff", " ").split()
        assert "".join("".join(text[a:b].replace("\ufeff", "").split()) for a, b in spans) == "".join(bare)


@settings(max_examples=200)
@given(st.text(st.sampled_from("#\\\n\r\t <!->-/'\"é漢👩\u200d\u0301\ufeff\x00\ud800ab\u2028"), max_size=60))
def test_the_parser_sees_a_byte_for_each_character(text):
    for language in ("python", "javascript"):
        assert len(shadow(text, language)) == len(text)


def test_sizes_can_count_tokens():
    count = tokens("cl100k")
    chunks = CodeChunker("python", 60, count).chunk(TIDE)
    assert all(count(c.text) <= 60 for c in chunks) and "".join(c.text for c in chunks) == TIDE and len(chunks) < 7


# It ends, whatever it is given. (Without its limits, tree-sitter takes hours for some of these.)

HUGE = {
    "brackets": "(" * 100_000 + ")" * 100_000,
    "open brackets": "[{(" * 40_000,
    "blocks": "{" * 100_000 + "}" * 100_000,
    "functions in functions": "function f(){" * 20_000 + "}" * 20_000,
    "functions": "".join(f"def f{i}(x):\n    return {i}\n\n\n" for i in range(50_000)),
    "stairs": "".join("  " * i + "if x:\n" for i in range(700)),
    "comments": "# a comment\n" * 30_000,
    "comments apart": "# c\n\n" * 20_000,
    "continued lines": "\\\n" * 60_000,
    "arrows": "->" * 60_000,
    "open comments": "/* " * 40_000,
    "HTML comments": "=\n-->\n" * 20_000,
    "quotes": "'\"`" * 40_000,
    "words": "x " * 40_000,
    "statements": "x;" * 20_000,
    "marks": " \u0301" * 40_000,
}


@pytest.mark.parametrize("language", ["python", "javascript"])
@pytest.mark.parametrize("name", HUGE)
def test_a_huge_text_ends(name, language):
    text = HUGE[name]
    spans = code_spans(text, 1000, language)
    assert all(0 < end - start <= 1000 for start, end in spans)
    assert sum(end - start for start, end in spans) == len(text)


# Arguments.


@pytest.mark.parametrize("language", ["", "Python", "rust", None, 3, ["python"]], ids=repr)
def test_an_unknown_language_is_an_error_that_lists_the_known(language):
    with pytest.raises(ValueError, match=r"language=.*: must be one of 'python', 'javascript'"):
        CodeChunker(language)


@pytest.mark.parametrize("size", [0, -1, 2.5, "100", None, True], ids=repr)
def test_a_wrong_size_is_an_error(size):
    with pytest.raises(ValueError, match="chunk_size=.*must be a whole number of 1 or more"):
        CodeChunker("python", size)


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff", "  \r\n\t"], ids=ascii)
def test_an_empty_file_gives_nothing(text):
    assert texts(text, 10) == texts(text, 10, "javascript") == []


def test_the_benchmark_runs(capsys):
    from test_benchmarks import load

    results = load("source_code").main(["--smoke"])
    assert results and all(ratio > 0 for _, ratio in results)
    assert "| `CodeChunker(" in capsys.readouterr().out
