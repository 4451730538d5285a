"""The checks of exercises: kind, exact, and never an error in the notebook."""

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell()
    yield shell
    shell.history_manager.enabled = False


@pytest.fixture
def said(shell, capsys):
    """Run a notebook's cells as a kernel would; give what they print."""

    def run(*cells):
        shell.reset(new_session=False)
        # The shell takes the name __main__ for its own module, as a kernel does.
        shell.user_ns["__name__"] = "__main__"
        for cell in ("from chunklab.exercises import check", *cells):
            result = shell.run_cell(cell)
            assert result.success, "a check let an error out"
        return capsys.readouterr().out

    return run


def block(*lines):
    return "\n".join(['with check("1.1 Name"):', *(f"    {line}" for line in lines)])


def test_a_solved_exercise_gets_a_tick(said):
    assert said("answer = 4", block("assert answer == 4, 'count again'")) == "✓ 1.1 Name\n"


@pytest.mark.parametrize(
    ("before", "asked", "reason"),
    [
        ("def f(x):\n    raise NotImplementedError", "assert f(1) == 2", "the exercise above is still to be written"),
        ("def f(x):\n    raise NotImplementedError('write f')", "assert f(1) == 2", "write f"),
        ("", "assert f(1) == 2", "`f` is not defined: run the cells above first"),
        ("answer = ...", "assert answer == 2", "put your answer in the place of the three dots of `answer`"),
        ("answer = ...", "assert abs(answer - 2) < 1", "put your answer in the place of the three dots of `answer`"),
        ("def f(x): pass", "assert f(1) == 2", "yours is None, where 2 is expected"),
        ("answer = 3", "assert answer == 2, 'count the gaps'", "count the gaps; yours is 3, where 2 is expected"),
        ("answer = 3", "assert answer < 3", "`answer < 3` does not hold"),
        ("answer = float('nan')", "assert answer == answer", "`answer == answer` does not hold"),
        ("calls = iter([1, 2])", "assert next(calls) == 2", "`next(calls) == 2` does not hold"),
        ("answer = 3", "assert answer < 3, 'smaller'", "smaller\n"),
        ("a = list(range(90))", "assert a == [*range(80), 0, *range(81, 90)]", "at 80 yours has 80, where 0 is exp"),
        ("a = list(range(90))", "assert a == list(range(91))", "yours has a length of 90, where 91 is expected"),
        ("a = 'x' * 999", "assert a == 3", "yours is 'xxxx"),
        ("def f(x):\n    return x[0] + 1", "assert f('a') == 2", "TypeError: can only concatenate"),
        ("def f(x):\n    return x[0] + 1", "assert f('a') == 2", "in the line `return x[0] + 1`"),
        ("def f(x):\n    assert x > 1, 'inner'\n    return x", "assert f(1) == 2", "inner\n"),
    ],
)
def test_an_unsolved_one_is_told_kindly_what_is_wrong(said, before, asked, reason):
    out = said(before, block(asked))
    assert out.startswith("not yet · 1.1 Name: ")
    assert reason in out
    assert out.count("\n") == 1 and len(out) < 300


def test_the_first_assert_that_fails_is_the_one_told(said):
    lines = ["assert answer > 1", "assert answer == 4, 'first'", "assert answer == 5, 'second'"]
    assert "first" in said("answer = 3", block(*lines))


def test_an_interrupt_stops_a_check():
    from chunklab.exercises import check

    with pytest.raises(KeyboardInterrupt), check("1.1 Name"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("before", "asked", "reason"),
    [
        ("class A:\n    def __repr__(self): 1 / 0", "assert A() == 3", "1.1 Name: AssertionError\n"),
        ("class A(Exception):\n    def __str__(self): 1 / 0", "raise A", "1.1 Name: A\n"),
        ("class A:\n    def __ne__(self, other): 1 / 0", "assert [A()] * 60 == [0] * 60", "1.1 Name: AssertionError\n"),
        ("def f():\n    return x\n    x = 1", "assert f() == 1", "UnboundLocalError: cannot access local variable 'x'"),
        ("", "raise NameError", "NameError"),
        ("", "raise SystemExit(3)", "SystemExit: 3"),
        ("def f(x): return f(x)", "assert f(1) == 1", "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_what_cannot_be_shown_lets_no_error_out(said, before, asked, reason):
    assert reason in said(before, block(asked))


def test_of_two_long_texts_the_part_where_they_differ_is_shown(said):
    told = said("yours = ['a' * 300 + 'd' + 'c' * 300]", block("assert yours == ['a' * 300 + 'b' + 'c' * 300]"))
    assert "at 0 yours has '…" in told.replace("…'", "'…") and "aadcc" in told and "aabcc" in told
    assert len(told) < 300
