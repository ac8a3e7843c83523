"""What holds for every test."""

import logging

import pytest
from hypothesis import settings

# How long an example takes says something about the machine alone.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


@pytest.hookimpl(trylast=True)  # the marks of whole directories are there
def pytest_collection_modifyitems(config, items):
    """Worker processes begin with the files that take long; the quick ones fill the gaps."""
    if hasattr(config, "workerinput"):
        long = {
            item.path
            for item in items
            if any(map(item.get_closest_marker, ("kafka", "browser", "slow")))
        }
        items.sort(key=lambda item: item.path not in long)


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
