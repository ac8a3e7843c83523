"""Brokers of two clusters in one list are a mistake."""

import asyncio
import shutil

import pytest

from streamer.errors import SettingError
from streamer.service.kafka_service import KafkaService
from tests.kafka import broker as brokers
from tests.kafka.broker import Broker


@pytest.fixture
def another(bootstrap, tmp_path, monkeypatch):
    """A second broker, of a cluster of its own."""
    monkeypatch.setattr(brokers, "CLUSTER", "bm90dGhlc2FtZWNsdXN0ZQ")
    second = Broker(tmp_path / "another")
    second.format()
    second.start()
    yield second.bootstrap
    second.stop()
    shutil.rmtree(tmp_path / "another")


async def test_brokers_of_two_clusters_are_refused_by_name(world, another):
    servers = f"{world.bootstrap},{another}"
    service = KafkaService(world.settings(kafka={"bootstrap_servers": servers}))
    async with asyncio.timeout(60):
        with pytest.raises(SettingError, match=r"kafka\.bootstrap_servers") as refusal:
            await service.run()
    assert another in str(refusal.value)


async def test_the_same_broker_named_twice_is_one_cluster(world):
    servers = f"{world.bootstrap},{world.bootstrap.replace('127.0.0.1', 'localhost')}"
    service = KafkaService(world.settings(kafka={"bootstrap_servers": servers}))
    task = asyncio.create_task(service.run())
    async with asyncio.timeout(60):
        while not service.status.running:
            assert not task.done()
            await asyncio.sleep(0.02)
    service.stop()
    await task
