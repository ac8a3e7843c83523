"""The mutation tester of tools/mutation makes the mutants it should, and knows who noticed."""

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools.mutation.operators import mutants

ROOT = Path(__file__).parent.parent.parent


def made(source):
    return [(mutant.before, mutant.after) for mutant in mutants(source, "a.py")]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x = a - b", {"a - b": {"a + b"}}),
        ("x = a < b <= c", {"a < b <= c": {"a <= b <= c", "a < b < c"}}),
        ("x = a and b", {"a and b": {"a or b", "a", "b"}}),
        ("x = not a", {"not a": {"a"}}),
        ("x = 3", {"3": {"4", "2"}}),
        ("x = 0.5", {"0.5": {"1.0", "0.25"}}),
        ("x = -1", {"1": {"2", "0"}}),
        ("x = 'a', True", {"'a'": {"'XXa'"}, "True": {"False"}}),
        ("if a: b()", {"if a:": {"if True:", "if False:"}, "b()": {"(removed)"}}),
        ("while a: break", {"while a:": {"while False:"}, "break": {"continue"}}),
        ("x = [a for a in b if c]", {"for a in b if c": {"for a in b"}}),
        ("x = max(a, key=b)", {"max(a, key=b)": {"min(a, key=b)", "max(a)"}}),
        ("a.b += c", {"a.b += c": {"a.b -= c", "(removed)"}}),
        ("a.b = c", {"a.b = c": {"(removed)"}}),
        ("return a", {"return a": {"return None"}}),
        ("raise ValueError('a' + 1)", {"raise ValueError('a' + 1)": {"(removed)"}}),
        ("'''a text'''", {}),
        ("x: 'a' = b", {}),
        ("x = f'{a + b}'", {}),
        ("x = isinstance(a, b | c)", {}),
        ("x = a", {}),
    ],
)
def test_a_statement_has_its_mutants(statement, expected):
    found = made(f"def f(x=1) -> 'y':\n    {statement}\n")
    assert sorted(found) == sorted((old, new) for old, those in expected.items() for new in those)


def test_a_mutant_knows_its_line_and_its_function_and_differs_there_alone():
    source = """
    LEFT_OUT = 1 + 1

    class Counter:
        @property
        def count(self):
            def inner():
                return self.n + self.m
            return inner()
    """
    found = list(mutants(dedent(source), "a.py"))
    assert {mutant.function for mutant in found} == {"Counter.count"}
    assert [mutant.line for mutant in found] == [8, 8, 9]
    counts = []
    for mutant in found:
        names: dict = {}
        exec(mutant.code, names)
        counter = names["Counter"]()
        counter.n, counter.m = 5, 3
        counts.append(counter.count)
    assert counts == [None, 2, None]


def test_a_generator_whose_yield_is_removed_is_still_one():
    [mutant] = mutants("def f():\n    yield\n", "a.py")
    names: dict = {}
    exec(mutant.code, names)
    assert list(names["f"]()) == []


TINY = """
import functools

@functools.cache
def doubled(a):
    return a + a

def clipped(a):
    return a if a < 7 else 7.0

def lonely(a):
    return a
"""
TESTS = """
import tiny

BEFORE_ANY_MUTANT = tiny.doubled(1)

def test_doubled():
    assert tiny.doubled(1) == 2

def test_clipped():
    assert tiny.clipped(3) == 3
    assert tiny.clipped(9) == 7.0
"""


def mutated(directory, *arguments, tests=TESTS):
    (directory / "tiny.py").write_text(TINY)
    (directory / "test_tiny.py").write_text(tests)
    return subprocess.run(
        [sys.executable, "-m", "tools.mutation", *arguments],
        check=False,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.slow
def test_a_run_says_which_mutants_nobody_noticed(tmp_path):
    """At 7 both branches say 7; one that is decorated, and remembered, is a mutant like others."""
    run = mutated(tmp_path, "tiny.py", "--", "test_tiny.py")
    *unnoticed, last = [line for line in run.stdout.splitlines() if re.match(r"tiny|\d+ mut", line)]
    assert unnoticed == ["tiny.py:9: a < 7 -> a <= 7", "tiny.py:9: 7 -> 8", "tiny.py:9: 7 -> 6"]
    assert last == "11 mutants: 7 noticed (0 timeouts), 3 not noticed, 1 without a test"
    assert run.returncode == 0
    assert not list(tmp_path.glob(".pytest_cache"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "tests", "sentence"),
    [
        (
            ["tiny.py", "--", "test_tiny.py"],
            TESTS.replace("== 3", "== 4"),
            "test_tiny.py::test_clipped fails without a mutant: make the tests pass first",
        ),
        (
            ["tiny.py", "--", "test_tiny.py"],
            "",
            "there are no tests, or not all could be collected",
        ),
        (["tiny.py", "test_tiny.py"], "", "name the files, then --, then their tests"),
        (["huge.py", "--", "test_tiny.py"], "", "huge.py is not a file below this directory"),
    ],
)
def test_a_run_that_would_say_nothing_says_so(tmp_path, arguments, tests, sentence):
    run = mutated(tmp_path, *arguments, tests=tests)
    assert run.returncode != 0
    assert run.stderr.splitlines()[-1].endswith(sentence)
