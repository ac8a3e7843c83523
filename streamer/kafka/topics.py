"""The topics: how they must be configured, whether they are, and how to fix them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidReplicationFactorError,
    KafkaError,
    TopicAuthorizationFailedError,
    for_code,
)

from streamer.errors import SettingError
from streamer.kafka.connection import Connection

_APPEAR_SECONDS = 15.0
_ALREADY_EXISTS = 36
DOES_NOT_EXIST = "the topic does not exist; the service creates it with --create-topics"
_BATCH_BYTES = 1 << 14
"""Up to which aiokafka puts records together."""
_AROUND_BYTES = 1 << 10
"""What a batch adds to its records."""


@dataclass(frozen=True, slots=True)
class TopicNeed:
    """A topic that the service uses. `setting` is the setting that names it."""

    setting: str
    name: str
    partitions: int = 1
    one_partition: bool = False
    """Whether it must have exactly one partition."""
    config: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    """The entries of `config` that are checked: without them the service must not start."""
    record_bytes: int = 0
    """Of the largest record that is written to it, key and value."""

    @property
    def message_bytes(self) -> int:
        """The least max.message.bytes that takes everything: a batch of small records, or the
        largest one. Topics may compress again what does not get smaller by that."""
        return max(_BATCH_BYTES, self.record_bytes) + _AROUND_BYTES

    def creation(self, servers: str) -> str:
        """The command that creates it."""
        options = [f"--config {name}={value}" for name, value in self.config.items()]
        return " ".join(
            [
                f"kafka-topics.sh --bootstrap-server {servers} --create --topic {self.name}",
                f"--partitions {self.partitions}",
                *options,
            ]
        )

    def correction(self, servers: str, name: str, value: object) -> str:
        """The command that corrects one entry of its configuration."""
        return (
            f"kafka-configs.sh --bootstrap-server {servers} --alter --topic {self.name} "
            f"--add-config {name}={value}"
        )


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """How a topic is configured."""

    partitions: int
    config: Mapping[str, str]


class TopicAdmin:
    """Describes topics, and creates them."""

    def __init__(self, connection: Connection) -> None:
        self.servers = ",".join(connection.servers)
        self._client = AIOKafkaAdminClient(**connection.options())

    async def start(self) -> None:
        await self._client.start()

    async def stop(self) -> None:
        await self._client.close()

    async def cluster_id(self) -> str | None:
        """Kafka's own id of the cluster, which no other one has; None from very old brokers."""
        found: str | None = (await self._client.describe_cluster())["cluster_id"]
        return found

    async def partitions(self, topic: str) -> set[int]:
        """The partition numbers of a topic; empty if it does not exist."""
        described = await self._client.describe_topics([topic])
        for found in described:
            _check_allowed(topic, found["error_code"])
        return {partition["partition"] for found in described for partition in found["partitions"]}

    async def facts(self, topic: str) -> TopicFacts | None:
        numbers = await self.partitions(topic)
        if not numbers:
            return None
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        answers: Sequence[Any] = await self._client.describe_configs([resource])
        for answer in answers:
            for found in answer.resources:
                _check_allowed(topic, found[0])
        config = {
            entry[0]: entry[1] or ""
            for answer in answers
            for found in answer.resources
            for entry in found[4]
        }
        return TopicFacts(len(numbers), config)

    async def create(self, need: TopicNeed, replication: int | None) -> None:
        if replication is None:
            replication = min(3, len((await self._client.describe_cluster())["brokers"]))
        topic = NewTopic(need.name, need.partitions, replication, topic_configs=dict(need.config))
        answer = await self._client.create_topics([topic])
        for name, code, *_ in answer.topic_errors:
            if code == InvalidReplicationFactorError.errno:
                raise SettingError(
                    "kafka.replication_factor", replication, "the cluster has fewer brokers"
                )
            if code not in {0, _ALREADY_EXISTS}:
                raise SettingError(
                    need.setting, name, f"it could not be created ({for_code(code).__name__})"
                )


async def check_one_cluster(connection: Connection) -> None:
    """Refuse brokers of several clusters: which one is read would depend on who answers."""
    found: dict[str, str] = {}
    for server in connection.servers if len(connection.servers) > 1 else ():
        client = AIOKafkaAdminClient(**replace(connection, servers=(server,)).options())
        try:
            await client.start()
            found[server] = (await client.describe_cluster())["cluster_id"]
        except KafkaError:
            continue  # away: it is checked at another start
        finally:
            await client.close()
    if len(set(found.values())) > 1:
        raise SettingError(
            "kafka.bootstrap_servers",
            ",".join(connection.servers),
            "these brokers belong to different clusters; name brokers of one cluster",
        )


async def partitions_of(connection: Connection, topic: str) -> set[int]:
    """The partition numbers of a topic, over a client of its own; empty if it does not exist."""
    admin = TopicAdmin(connection)
    await admin.start()
    try:
        return await admin.partitions(topic)
    finally:
        await admin.stop()


async def check_exists(connection: Connection, setting: str, topic: str) -> None:
    """Refuse a topic that does not exist: a client would silently wait for it."""
    try:
        numbers = await partitions_of(connection, topic)
    except TopicAuthorizationFailedError:
        raise SettingError(
            setting, topic, "this user may not describe it: grant Describe"
        ) from None
    if not numbers:
        raise SettingError(setting, topic, DOES_NOT_EXIST)


async def ensure_topics(
    admin: TopicAdmin, needs: Sequence[TopicNeed], create: bool, replication: int | None
) -> dict[str, TopicFacts]:
    """Check all topics; with `create`, create those that are missing."""
    facts = {}
    for need in needs:
        try:
            found = await admin.facts(need.name)
            if found is None and create:
                await admin.create(need, replication)
                found = await _appearing(admin, need.name)
        except TopicAuthorizationFailedError:
            raise SettingError(
                need.setting,
                need.name,
                "this user may not describe it: grant Describe and DescribeConfigs",
            ) from None
        if found is None:
            raise SettingError(
                need.setting,
                need.name,
                f"the topic does not exist; create it with: {need.creation(admin.servers)}",
            )
        _check(need, found, admin.servers)
        facts[need.name] = found
    return facts


async def _appearing(admin: TopicAdmin, topic: str) -> TopicFacts | None:
    """Wait for a new topic: it takes a moment until every broker knows it."""
    deadline = time.monotonic() + _APPEAR_SECONDS
    while True:
        found = await admin.facts(topic)
        if found is not None or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.05)


def _check_allowed(topic: str, code: int) -> None:
    if code == TopicAuthorizationFailedError.errno:
        raise TopicAuthorizationFailedError(topic)


def _check(need: TopicNeed, found: TopicFacts, servers: str) -> None:
    if need.one_partition and found.partitions != 1:
        raise SettingError(
            need.setting,
            need.name,
            f"it has {found.partitions} partitions but must have 1; name another topic, or delete "
            f"it and create it with: {need.creation(servers)}",
        )
    for name in need.required:
        if found.config.get(name) != need.config[name]:
            raise SettingError(
                need.setting,
                need.name,
                f"its {name} is {found.config.get(name)}; set it with: "
                f"{need.correction(servers, name, need.config[name])}",
            )
    limit = found.config.get("max.message.bytes", "")
    if need.record_bytes and int(limit) < need.message_bytes:
        raise SettingError(
            need.setting,
            need.name,
            f"its max.message.bytes is {limit}, less than what may be written to it; set it with: "
            f"{need.correction(servers, 'max.message.bytes', need.message_bytes)}",
        )
