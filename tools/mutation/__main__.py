"""Runs the mutants of some files on the tests that call them, and prints those nobody noticed:

    python -m tools.mutation streamer/privacy/*.py -- tests/privacy [--budget SECONDS]

The budget is for one mutant: it gets its fastest tests, up to SECONDS together.
"""

import argparse
import ast
import gc
import importlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tools.mutation.operators import mutants
from tools.mutation.trial import Cache, Change, Key, TimedTest, Verdict, survey, trial

LEFT_OUT = "not slow and not kafka and not browser and not chaos"
BUDGET = 60.0  # here the tests of no function take longer


class Mutation:
    """A plugin with which pytest runs mutants instead of the tests that it has collected."""

    def __init__(self, paths: list[Path], budget: float) -> None:
        self._paths = paths
        self._budget = budget
        self.found: Counter[Verdict | None] = Counter()
        self.refusal: str | None = None

    def pytest_configure(self) -> None:
        from hypothesis import HealthCheck, Phase, settings  # which pytest wants to load itself

        # A failure need not be made small, and the same mutant meets the same examples again.
        settings.register_profile(
            "mutants",
            phases=(Phase.explicit, Phase.generate),
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # to be collected
            return True
        modules = {path: importlib.import_module(module_name(path)) for path in self._paths}
        sources = {str(modules[path].__file__): path.read_text("utf-8") for path in self._paths}
        self._caches = caches_of({module.__name__.split(".")[0] for module in modules.values()})
        self._functions = functions_of(set(sources))
        tests = survey(session.items, set(sources), self._caches)
        tests.sort(key=lambda test: test.seconds)
        self._control(sources, tests)
        if not self.refusal:
            for path, (file, source) in zip(self._paths, sources.items(), strict=True):
                self._run(path, file, source, tests)
        return True

    def _control(self, sources: dict[str, str], tests: list[TimedTest]) -> None:
        """The unchanged code, put into place and tested as a mutant is, must pass."""
        codes = {file: compile(ast.parse(text), file, "exec") for file, text in sources.items()}
        changes = [each for key in self._functions for each in self._changes(key, codes[key[0]])]
        verdict, by = trial(changes, tests, self._caches)
        if verdict is not Verdict.NOT_NOTICED:
            culprit = by.item.nodeid if by else "a test"
            self.refusal = f"{culprit} fails without a mutant: make the tests pass first"

    def _run(self, path: Path, file: str, source: str, tests: list[TimedTest]) -> None:
        callers: dict[str, list[TimedTest]] = defaultdict(list)
        for test in tests:
            for name in [name for where, name in test.calls if where == file]:
                callers[name].append(test)
        for mutant in mutants(source, file):
            mine = callers[mutant.function]
            verdict, by = None, None
            if mine:
                changes = self._changes((file, mutant.function), mutant.code)
                verdict, by = trial(changes, self._affordable(mine), self._caches)
            if by:  # likely to notice the next mutant of this function, too
                mine.insert(0, mine.pop(mine.index(by)))
            if verdict is Verdict.NOT_NOTICED:
                print(f"{path}:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True)
            self.found[verdict] += 1

    def _changes(self, key: Key, code: CodeType) -> list[Change]:
        # A property's functions have one name between them; their lines differ.
        codes = {each.co_firstlineno: each for each in within(code) if each.co_qualname == key[1]}
        return [(each, codes[each.__code__.co_firstlineno]) for each in self._functions[key]]

    def _affordable(self, tests: list[TimedTest]) -> list[TimedTest]:
        spent = accumulate(test.seconds for test in tests)
        return tests[: max(1, sum(seconds <= self._budget for seconds in spent))]


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def caches_of(packages: set[str]) -> list[Cache]:
    caches = [each for each in gc.get_objects() if isinstance(each, Cache)]
    return [cache for cache in caches if str(cache.__module__).split(".")[0] in packages]


def functions_of(files: set[str]) -> dict[Key, list[FunctionType]]:
    """Those that exist, whatever decorators are around them: their code is changed in place."""
    found: dict[Key, list[FunctionType]] = defaultdict(list)
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        code = function.__code__
        if code.co_filename in files and "<" not in code.co_qualname:
            found[code.co_filename, code.co_qualname].append(function)
    return found


def within(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from within(each)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutation", usage="%(prog)s FILE... -- TESTS... [--budget SECONDS]"
    )
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--budget", type=float, default=BUDGET)
    if "--" not in arguments[1:]:
        parser.error("name the files, then --, then their tests")
    cut = arguments.index("--")
    paths, given = [Path(each) for each in arguments[:cut]], parser.parse_args(arguments[cut + 1 :])
    for path in paths:
        if path.is_absolute() or not path.is_file():
            parser.error(f"{path} is not a file below this directory")
    run = Mutation(paths, given.budget)
    quiet = ["-qq", "-p", "no:cacheprovider", "-m", LEFT_OUT]
    if pytest.main([*quiet, *given.tests], plugins=[run]) != pytest.ExitCode.OK or run.refusal:
        sys.exit(run.refusal or "there are no tests, or not all could be collected")
    timeouts, unnoticed = run.found[Verdict.TIMEOUT], run.found[Verdict.NOT_NOTICED]
    print(
        f"{run.found.total()} mutants: {run.found[Verdict.NOTICED] + timeouts} noticed "
        f"({timeouts} timeouts), {unnoticed} not noticed, {run.found[None]} without a test"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
