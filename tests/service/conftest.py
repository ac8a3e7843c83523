"""Where runs of these tests keep their files."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="module")
def memory():
    """A directory in memory if there is one: what a killed process wrote is not lost there,
    and hundreds of runs need not wait for a disk."""
    disk = Path("/dev/shm")
    with TemporaryDirectory(dir=disk if os.access(disk, os.W_OK) else None) as name:
        yield Path(name)
