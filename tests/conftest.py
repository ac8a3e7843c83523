"""What holds for every test."""

import logging

import pytest
from hypothesis import settings

# How long an example takes says something about the machine alone.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


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
