"""What holds for every test."""

import logging
import os
import secrets
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.kafka.conftest import World
from tests.kafka.shared_broker import shared_broker

# How long an example takes says something about the machine alone.
settings.register_profile("any machine", deadline=None)
# For `make test-fast`: fewer examples of each property.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.load_profile("any machine")


# Files that take long because they wait, the longest first: so that no process is left alone
# with one of them at the end.
LONG = ("exactly_once", "crash", "two_worlds", "hosting", "contract", "ledger", "watch", "security")
MARKS = ("kafka", "browser", "slow")


@pytest.hookimpl(trylast=True)  # the marks of whole directories are there
def pytest_collection_modifyitems(config, items):
    """Worker processes begin with the files that wait; the quick ones fill the gaps."""
    if hasattr(config, "workerinput"):
        order = {f"test_{name}.py": place for place, name in enumerate(LONG)}
        ranks = {item.path: len(MARKS) for item in items}
        for item in items:
            marks = [MARKS.index(mark.name) for mark in item.iter_markers() if mark.name in MARKS]
            ranks[item.path] = min(ranks[item.path], *marks, len(MARKS))
        items.sort(key=lambda item: (order.get(item.path.name, len(LONG)), ranks[item.path]))


@pytest.fixture(autouse=True)
def logging_as_it_was():
    """A command that runs within a test sets up the logs of the whole process."""
    root = logging.getLogger()
    level, before = root.level, list(root.handlers)
    names = ("aiokafka", "asyncio", "uvicorn")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for handler in list(root.handlers):
        if handler not in before and type(handler) is logging.StreamHandler:
            root.removeHandler(handler)
    root.setLevel(level)
    for name, its in levels.items():
        logging.getLogger(name).setLevel(its)


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory) -> Iterator[str]:
    """Where the broker of this run listens, without encryption and without passwords.

    The one that STREAMER_TEST_KAFKA names, or one that is fetched and started here. Defined
    here and not beside the tests of Kafka, so that all rooms share it.
    """
    given = os.environ.get("STREAMER_TEST_KAFKA")
    if given:
        yield given
        return
    own = tmp_path_factory.getbasetemp()
    with shared_broker(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as address:
        yield address


@pytest.fixture
def world(bootstrap) -> World:
    return World(bootstrap, f"test-{secrets.token_hex(6)}")
