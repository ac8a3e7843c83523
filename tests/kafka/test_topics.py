"""The topics at the start: made as they must be, or a sentence with the command to do so."""

import os
import shlex
import subprocess
import sys

import pytest

from streamer.errors import SettingError
from streamer.kafka.startup import connection_of, prepare_topics, topic_needs
from streamer.kafka.topics import TopicAdmin, check_exists
from streamer.stream.timing import StepTiming
from streamer.web.board import Board
from tests.kafka.harness import (
    Record,
    event,
    eventually,
    make_topic,
    produce,
    running,
    tool,
)

KINDS = ("events", "hitters", "steps", "rejected", "state")
CONFIG = {
    "events": {"message_timestamp_type": "LogAppendTime"},
    "state": {"cleanup_policy": "compact"},
}
PROGRAMS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}


async def prepare(world, **kafka):
    """What the service does with topics at its start; facts about all of them."""
    settings = world.settings(kafka=kafka)
    admin = TopicAdmin(connection_of(settings.kafka))
    await admin.start()
    try:
        await prepare_topics(admin, settings.kafka, settings.stream.max_item_bytes)
        return {kind: await admin.facts(world.topic(kind)) for kind in KINDS}
    finally:
        await admin.stop()


async def refusal(world, **kafka):
    with pytest.raises(SettingError) as complaint:
        await prepare(world, **kafka)
    assert complaint.value.exit_code == 2
    assert "\n" not in str(complaint.value)
    return str(complaint.value)


async def make(world, *kinds):
    for kind in kinds:
        await make_topic(world.bootstrap, world.topic(kind), **CONFIG.get(kind, {}))


async def follow(sentence):
    """Do what a sentence says, with the program that it names."""
    program, *arguments = shlex.split(sentence.rpartition("with: ")[2])
    await tool(PROGRAMS[program], *arguments)


async def test_topics_are_made_as_they_must_be(world):
    facts = await prepare(world, events_partitions=3)
    assert facts["events"].partitions == 3
    assert facts["events"].config["message.timestamp.type"] == "LogAppendTime"
    assert facts["state"].partitions == 1
    assert facts["state"].config["cleanup.policy"] == "compact"
    assert {facts[kind].config["cleanup.policy"] for kind in KINDS[:-1]} == {"delete"}


async def test_topics_that_are_there_are_left_as_they_are(world):
    config = CONFIG["events"] | {"retention_ms": "12345"}
    await make_topic(world.bootstrap, world.topic("events"), partitions=2, **config)
    facts = await prepare(world, events_partitions=3)
    assert facts["events"].partitions == 2
    assert facts["events"].config["retention.ms"] == "12345"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_missing_topic_is_named_with_its_setting(world, kind):
    await make(world, *(other for other in KINDS if other != kind))
    sentence = await refusal(world, create_topics=False)
    assert sentence.startswith(f"kafka.{kind}_topic is {world.topic(kind)}: the topic does not")
    assert f"kafka-topics.sh --bootstrap-server {world.bootstrap} --create" in sentence


async def test_the_command_that_the_sentence_tells_makes_the_topic(world):
    await make(world, "events", "hitters", "steps", "rejected")
    await follow(await refusal(world, create_topics=False))
    facts = await prepare(world, create_topics=False)
    assert facts["state"].config["cleanup.policy"] == "compact"


async def test_a_state_topic_that_forgets_is_refused_until_it_is_set_right(world):
    await make_topic(world.bootstrap, world.topic("state"))
    sentence = await refusal(world)
    assert sentence.startswith(
        f"kafka.state_topic is {world.topic('state')}: its cleanup.policy is delete; "
    )
    await follow(sentence)
    assert (await prepare(world))["state"].config["cleanup.policy"] == "compact"


async def test_a_state_topic_that_forgets_a_little_is_refused_too(world):
    await make_topic(world.bootstrap, world.topic("state"), cleanup_policy="compact,delete")
    assert "its cleanup.policy is compact,delete; set it with: " in await refusal(world)


async def test_a_state_topic_of_several_partitions_is_refused(world):
    await make_topic(world.bootstrap, world.topic("state"), 2, cleanup_policy="compact")
    sentence = await refusal(world)
    assert "it has 2 partitions but must have 1" in sentence
    assert sentence.endswith("--partitions 1 --config cleanup.policy=compact")


async def test_more_replicas_than_brokers_are_refused(world):
    sentence = await refusal(world, replication_factor=3)
    assert sentence == "kafka.replication_factor is 3: the cluster has fewer brokers"


async def test_what_the_broker_does_not_make_is_told_with_its_reason(world):
    sentence = await refusal(world, events_topic="not a topic")
    assert sentence == (
        "kafka.events_topic is not a topic: it could not be created (InvalidTopicError)"
    )


class TestTimestamps:
    async def test_producers_who_tell_the_time_are_refused_until_that_is_set_right(self, world):
        await make_topic(world.bootstrap, world.topic("events"))
        sentence = await refusal(world)
        assert sentence.startswith(
            f"kafka.events_topic is {world.topic('events')}: its message.timestamp.type is "
            "CreateTime; set it with: "
        )
        await follow(sentence)
        facts = await prepare(world)
        assert facts["events"].config["message.timestamp.type"] == "LogAppendTime"

    async def test_producers_who_are_trusted_with_it_are_spoken_of_once(self, world, caplog):
        await make_topic(world.bootstrap, world.topic("events"))
        board = Board(StepTiming(1000))
        trusting = world.settings(kafka={"trust_producer_timestamps": True})
        async with running(trusting, audience=board):
            assert board.promise.trusts_producers
        told = [text for text in caplog.messages if "CreateTime" in text]
        assert len(told) == 1
        assert "every producer can be trusted" in told[0]
        assert world.topic("events") in told[0]

    async def test_a_broker_that_tells_the_time_is_believed(self, world, caplog):
        """Whatever the producers say: this one thinks that it is 1970."""
        async with running(world.settings()) as service:
            long_ago = [Record(event(n, "crash"), 0, timestamp=n) for n in range(3)]
            await produce(world.bootstrap, world.topic("events"), long_ago)
            await eventually(lambda: service.summary.records == 3)
            assert service.summary.accepted == 3
        assert not [text for text in caplog.messages if "arrival times" in text]


class TestRecordSizes:
    """What a topic does not take is noticed before anything is decided."""

    @pytest.fixture
    def needs(self, world):
        found = topic_needs(world.settings().kafka, 1024)
        return {need.setting.removeprefix("kafka.").removesuffix("_topic"): need for need in found}

    @pytest.mark.parametrize("kind", ["hitters", "steps", "rejected", "state"])
    async def test_a_topic_that_takes_too_little_is_refused_until_it_is_set_right(
        self, world, needs, kind
    ):
        least = needs[kind].message_bytes
        config = {"max_message_bytes": str(least - 1), **CONFIG.get(kind, {})}
        await make_topic(world.bootstrap, world.topic(kind), **config)
        sentence = await refusal(world)
        assert sentence.startswith(
            f"kafka.{kind}_topic is {world.topic(kind)}: its max.message.bytes is {least - 1}, "
        )
        await follow(sentence)
        assert (await prepare(world))[kind].config["max.message.bytes"] == str(least)

    async def test_longer_items_need_more(self, world, needs):
        least = needs["hitters"].message_bytes
        await make_topic(world.bootstrap, world.topic("hitters"), max_message_bytes=str(least))
        admin = TopicAdmin(connection_of(world.settings().kafka))
        await admin.start()
        try:
            await prepare_topics(admin, world.settings().kafka, 1024)
            with pytest.raises(SettingError, match=r"its max\.message\.bytes is .* less than"):
                await prepare_topics(admin, world.settings().kafka, 1 << 14)
        finally:
            await admin.stop()

    @pytest.mark.parametrize("payload", [False, True])
    def test_what_brokers_take_by_default_is_enough_for_the_longest_items(self, world, payload):
        settings = world.settings(kafka={"rejected_payload": payload}).kafka
        assert max(need.message_bytes for need in topic_needs(settings, 1 << 16)) < 1_048_588


async def test_one_topic_for_two_purposes_is_refused_before_it_is_made(world):
    one = world.topic("hitters")
    assert await refusal(world, state_topic=one) == (
        f"kafka.state_topic is {one}: kafka.hitters_topic names the same topic; name another one"
    )
    events = world.topic("events")
    sentence = await refusal(world, rejected_topic=events)
    assert sentence.startswith(f"kafka.rejected_topic is {events}: kafka.events_topic names the")
    with pytest.raises(SettingError, match="the topic does not exist"):
        await check_exists(connection_of(world.settings().kafka), "kafka.events_topic", events)


@pytest.mark.parametrize(
    ("command", "setting"),
    [
        (("state",), "state_topic"),
        (("simulate", "--output", "kafka", "--seed", "1", "--users", "9"), "events_topic"),
    ],
    ids=["state", "simulate"],
)
def test_a_command_that_needs_a_missing_topic_says_so(world, command, setting):
    done = subprocess.run(
        [sys.executable, "-m", "streamer.cli", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ
        | {
            "STREAMER_KAFKA__BOOTSTRAP_SERVERS": world.bootstrap,
            f"STREAMER_KAFKA__{setting.upper()}": "test-nowhere",
        },
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"streamer: kafka.{setting} is test-nowhere: the topic does not exist; the service creates "
        "it with --create-topics\n"
    )
