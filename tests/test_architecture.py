"""The arrows between the rooms, and who may touch what."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from streamer.stream.publication import Publication

PACKAGE = Path(__file__).parent.parent / "streamer"

CORE = {"errors", "privacy", "monitors"}
ENGINE = CORE | {"stream"}
EDGES = ENGINE | {"kafka", "ledger", "lines", "fleet"}
EVERYTHING = EDGES | {"operations", "web", "service", "settings", "config"}
EVERYTHING |= {"experiments", "plots", "terminal"}

# room: (rooms of ours it may import, third-party packages it may import)
ROOMS: dict[str, tuple[set[str], set[str]]] = {
    "errors": (set(), set()),
    "backoff": (set(), set()),
    "privacy": ({"errors"}, {"numpy", "cryptography"}),
    "monitors": ({"errors", "privacy"}, {"numpy"}),
    "stream": (CORE, {"numpy", "cryptography", "msgspec", "xxhash"}),
    "ledger": (ENGINE, {"numpy", "msgspec"}),
    "lines": (ENGINE, {"numpy"}),
    "fleet": (ENGINE, {"numpy", "msgspec"}),
    "declarations": (set(), {"pydantic", "pydantic_core"}),
    "event_settings": ({"declarations"}, {"pydantic", "pydantic_core"}),
    "settings": ({"declarations", "event_settings", "privacy"}, {"pydantic", "pydantic_core"}),
    "config": ({"errors", "settings"}, {"pydantic", "pydantic_settings", "yaml"}),
    "kafka": (ENGINE | {"backoff", "settings", "ledger"}, {"numpy", "msgspec", "aiokafka"}),
    "operations": (ENGINE | {"settings"}, {"prometheus_client"}),
    "web": (
        ENGINE | {"backoff", "operations", "fleet"},
        {"starlette", "uvicorn", "prometheus_client", "msgspec", "httpx"},
    ),
    "service": (
        EDGES | {"backoff", "event_settings", "settings", "operations", "web", "streamer"},
        {"numpy"},
    ),
    "terminal": (ENGINE | {"web"}, {"rich", "msgspec"}),
    "experiments": (CORE | {"fleet"}, {"numpy"}),
    "plots": (CORE | {"experiments", "fleet"}, {"numpy", "matplotlib"}),
    "commands": (EVERYTHING | {"declarations", "settings"}, {"typer", "rich", "yaml", "msgspec"}),
    "cli": ({"errors", "commands", "operations", "streamer"}, {"typer"}),
    "__init__": (CORE, set()),
}
# What is public learns publications and public settings. It cannot even name what is raw:
# engine, counting, decisions with their charges, ledgers, watchers.
PUBLIC_SIDE = {
    *("errors", "backoff", "privacy.terms", "privacy.threshold", "web"),
    *("stream.current", "stream.periods", "stream.publication", "stream.records", "stream.timing"),
}
MAY_SEE_MORE = {
    "web/operators.py": {"operations.health"},  # the operators' port
    "web/ground_truth.py": {"fleet.truth"},  # of the demo alone
}
# A clock, a file, a socket or a second source of randomness has no place in mathematics.
IMPURE = {"asyncio", "datetime", "io", "logging", "os", "pathlib", "random", "secrets"}
IMPURE |= {"socket", "subprocess", "tempfile", "threading", "time"}
MAY_USE = {
    "privacy/randomness.py": {"os"},
    "stream/timing.py": {"datetime"},  # to read and write times, not to ask for the time
}
MAY_USE_SEEDS = {"commands/compare.py"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def room_of(module: Path) -> str:
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(module)} has a relative import"
            yield f"{node.module}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_lives_in_a_known_room():
    assert {room_of(module) for module in modules()} == set(ROOMS)


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_imports_follow_the_arrows(module):
    ours, others = ROOMS[room_of(module)]
    for target in imported(module):
        package, *rest = target.split(".")
        if package == "streamer":
            room = rest[0] if rest else "streamer"
            assert room in ours | {room_of(module)}, f"{name_of(module)} imports {target}"
        elif package not in sys.stdlib_module_names:
            assert package in others, f"{name_of(module)} imports {target}"


@pytest.mark.parametrize("module", [m for m in modules() if room_of(m) == "web"], ids=name_of)
def test_what_is_public_learns_publications_and_public_settings_alone(module):
    allowed = PUBLIC_SIDE | MAY_SEE_MORE.get(name_of(module), set())
    for target in imported(module):
        if target.startswith("streamer."):
            inner = target.removeprefix("streamer.")
            known = any(inner == each or inner.startswith(f"{each}.") for each in allowed)
            assert known, f"{name_of(module)} imports {target}"


def test_a_publication_carries_nothing_raw():
    """Whoever holds one cannot reach a user, a charge or a count of anybody's."""
    reached, due = set(), [Publication]
    while due:
        kind = due.pop()
        if kind in reached:
            continue
        reached.add(kind)
        due += [each for hint in get_type_hints(kind).values() for each in named_in(hint)]
    assert {kind.__module__ for kind in reached} <= {
        *("streamer.stream.publication", "streamer.stream.records", "streamer.stream.periods"),
        *("streamer.privacy.calibration", "streamer.privacy.guarantee", "streamer.privacy.terms"),
        *("streamer.privacy.threshold", "streamer.privacy.prices", "streamer.monitors.states"),
    }


def named_in(hint: object) -> Iterator[type]:
    """The classes of ours in an annotation."""
    if isinstance(hint, type) and hint.__module__.startswith("streamer."):
        yield hint
    for part in get_args(hint):
        yield from named_in(part)


@pytest.mark.parametrize("room", ["privacy", "monitors", "stream"])
def test_the_core_has_no_clock_no_files_and_one_source_of_randomness(room):
    for module in (PACKAGE / room).rglob("*.py"):
        impure = IMPURE & {target.split(".")[0] for target in imported(module)}
        impure -= MAY_USE.get(name_of(module), set())
        assert not impure, f"{name_of(module)} imports {impure}"
        for node in ast.walk(ast.parse(module.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id in {"open", "print", "input"})


def test_only_experiments_that_a_user_seeds_can_repeat_their_noise():
    users = {
        name_of(module)
        for module in modules()
        if any(target.endswith(".SeededBytes") for target in imported(module))
    }
    assert users == MAY_USE_SEEDS


def importers_of(*names: str) -> set[str]:
    return {name_of(module) for module in modules() if set(names) & set(imported(module))}


def test_only_watch_loads_an_http_client():
    assert importers_of("httpx") == {"web/client.py"}
    assert importers_of("streamer.web.client") == {"commands/watch.py"}


def test_no_module_grows_beyond_what_can_be_explained():
    assert not [name_of(m) for m in modules() if len(m.read_text().splitlines()) > 400]
