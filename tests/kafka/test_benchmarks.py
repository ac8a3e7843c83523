"""The benchmarks that need a broker run, at a size that says nothing about speed."""

from importlib import import_module

import pytest

SMALL_ON_A_BROKER = {
    "end_to_end": {"events": 60_000, "rounds": 1},
    "pause": {"events": 100_000, "steps": 2},
    "kafka_restore": {"users": 200_000, "rounds": 1},
}


@pytest.mark.parametrize("name", SMALL_ON_A_BROKER)
def test_it_runs(name, bootstrap, monkeypatch):
    monkeypatch.setenv("STREAMER_TEST_KAFKA", bootstrap)
    assert import_module(f"benchmarks.{name}").measure(**SMALL_ON_A_BROKER[name])
