"""The user that production makes may do what the service does, and nothing else.

On a real broker with ACLs on, with the topics, the user and the settings of the manifests.
Other than there are only the addresses, where secrets lie, the length of a step, and that
one broker holds all replicas.
"""

import asyncio
import gc

import pytest
import yaml
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from aiokafka.protocol.admin import CreateAclsRequest
from aiokafka.protocol.fetch import FetchRequest

from streamer.config import load
from streamer.errors import SettingError
from streamer.kafka.startup import connection_of
from streamer.service.kafka_service import KafkaService
from tests.deployment.grants import Grant, grant, grants_of, take_away
from tests.deployment.manifests import K8S
from tests.deployment.pod import Pod
from tests.kafka.conftest import begin
from tests.kafka.harness import (
    DEADLINE,
    Record,
    event,
    eventually,
    make_topic,
    produce,
    values_of,
)
from tests.kafka.secure_broker import PASSWORD, USER, SecureBroker
from tests.stream.making import RepeatingDecider

pytestmark = [
    pytest.mark.kafka,
    # The client does not wait until a connection that was refused is closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FOREIGN = "payroll"
"""A topic of somebody else."""
GRANTS = grants_of(yaml.safe_load((K8S / "overlays" / "production" / "user.yaml").read_text()))


@pytest.fixture(autouse=True)
def tidy():
    """What was left open by a test is noticed with that test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def secure(tmp_path_factory, production):
    made = SecureBroker.make(tmp_path_factory.mktemp("secure"))
    made.broker.extra = {**made.broker.extra, "super.users": "User:ANONYMOUS"}
    begin(made.broker)
    asyncio.run(prepare(made.broker.bootstrap, production))
    yield made
    made.broker.stop()


async def prepare(bootstrap, production):
    """What Strimzi's operators do."""
    for topic in production.all("KafkaTopic"):
        config = {
            name.replace(".", "_"): str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in topic["spec"]["config"].items()
            if name != "min.insync.replicas"
        }
        await make_topic(
            bootstrap, topic["metadata"]["name"], topic["spec"]["partitions"], **config
        )
    user = production.one("KafkaUser")
    assert user["metadata"]["name"] == USER
    await grant(bootstrap, USER, grants_of(user))
    await make_topic(bootstrap, FOREIGN)
    await produce(bootstrap, FOREIGN, [Record(b"confidential")])


@pytest.fixture(scope="module")
def environment(secure, production, tmp_path_factory):
    """The environment in the container, with the secrets where this machine has them."""
    secrets = tmp_path_factory.mktemp("secrets")
    (secrets / "key").write_text("ab" * 32)
    (secrets / "password").write_text(PASSWORD)
    return production.environment | {
        "STREAMER_KAFKA__BOOTSTRAP_SERVERS": secure.at("sasl_ssl"),
        "STREAMER_KAFKA__SASL_PASSWORD_FILE": str(secrets / "password"),
        "STREAMER_KAFKA__SSL_CA_FILE": str(secure.authority.file),
        "STREAMER_PRIVACY__KEY_FILE": str(secrets / "key"),
        "STREAMER_STREAM__STEP_SECONDS": "0.5",
        "STREAMER_STREAM__LATENESS_SECONDS": "0.2",
        "STREAMER_HTTP__HOST": "127.0.0.1",
        "STREAMER_METRICS__HOST": "127.0.0.1",
    }


@pytest.fixture
def settings(environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return load({})


@pytest.fixture
def bootstrap(secure):
    """Where whoever comes may do everything."""
    return secure.broker.bootstrap


async def work(settings, bootstrap):
    """Everything that the service ever does, once; raises what it ends with."""
    service = KafkaService(settings, asked_by=RepeatingDecider(threshold=1))
    task = asyncio.create_task(service.run())
    records = [Record(event(1, "crash")), Record(b"no event")]
    await produce(bootstrap, settings.kafka.events_topic, records)
    try:
        await eventually(lambda: task.done() or worked(service.summary))
    except TimeoutError:
        task.cancel()  # one that hangs is not stopped in order
        await asyncio.gather(task, return_exceptions=True)
        raise
    service.stop()
    await task


def worked(summary):
    """A step after the one with a hitter is closed: that one is published."""
    return summary.hitters and summary.rejected and summary.steps >= 2


@pytest.fixture(scope="module")
def journal(environment, secure):
    """There is a journal to read: a service has worked before."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        asyncio.run(work(load({}), secure.broker.bootstrap))


class TestEnough:
    def test_it_passes_its_probes(self, production, environment, tmp_path):
        with Pod(production, environment, tmp_path) as pod:
            pod.becomes_ready()
            assert pod.passes("startupProbe")
            assert pod.passes("livenessProbe")

    async def test_it_publishes_and_ends(
        self, production, environment, settings, bootstrap, tmp_path
    ):
        topics = settings.kafka
        events = [Record(event(user, "outbreak")) for user in range(5_000)]
        with Pod(production, environment, tmp_path) as pod:
            pod.becomes_ready()
            await produce(bootstrap, topics.events_topic, [*events, Record(b"no event")])
            async with asyncio.timeout(DEADLINE):
                while "outbreak" not in await self.items(bootstrap, topics.hitters_topic):
                    await asyncio.sleep(0.1)
            steps = await values_of(bootstrap, topics.steps_topic)
            assert sum(step["hitters"] for step in steps) >= 1
            assert await values_of(bootstrap, topics.rejected_topic)
            assert pod.ends() == 0

    async def items(self, bootstrap, topic):
        return {hitter["item"] for hitter in await values_of(bootstrap, topic)}

    @pytest.mark.usefixtures("journal")
    @pytest.mark.parametrize("taken", GRANTS, ids=str)
    async def test_without_any_one_of_them_it_does_not_work(self, settings, bootstrap, taken):
        await take_away(bootstrap, USER, taken)
        try:
            with pytest.raises(SettingError):
                await work(settings, bootstrap)
        finally:
            await grant(bootstrap, USER, [taken])


class TestNotMore:
    @pytest.fixture
    def options(self, settings):
        """How a client comes in as the user."""
        return connection_of(settings.kafka).options()

    @pytest.fixture
    async def admin(self, options):
        client = AIOKafkaAdminClient(**options)
        await client.start()
        yield client
        await client.close()

    @pytest.fixture
    def names(self, settings):
        kafka = settings.kafka
        return [
            *(kafka.events_topic, kafka.hitters_topic, kafka.steps_topic),
            *(kafka.rejected_topic, kafka.state_topic),
        ]

    async def fetched(self, admin, topic):
        """The code with which the broker answers whoever fetches from a topic."""
        place = (0, 0, 1 << 20)
        answer = await admin._send_request(FetchRequest(100, 1, 1 << 20, 0, [(topic, [place])]))
        ((_, ((_, code, *_),)),) = answer.topics
        return code

    async def test_it_sees_no_other_topic(self, admin, names):
        assert set(await admin.list_topics()) == set(names)

    async def test_it_can_read_events_its_steps_and_its_journal_only(self, admin, names):
        codes = {name: await self.fetched(admin, name) for name in [*names, FOREIGN]}
        assert {name for name, code in codes.items() if code == 0} == {
            "telemetry.events",
            "telemetry.steps",
            "telemetry.state",
        }
        assert set(codes.values()) == {0, TopicAuthorizationFailedError.errno}

    @pytest.mark.parametrize("topic", ["telemetry.events", FOREIGN])
    async def test_it_cannot_write_events_or_elsewhere(self, options, topic):
        producer = AIOKafkaProducer(**options)
        await producer.start()
        try:
            with pytest.raises(TopicAuthorizationFailedError):
                await producer.send_and_wait(topic, b"forged", partition=0)
        finally:
            await producer.stop()

    async def test_it_cannot_take_another_identity(self, options):
        producer = AIOKafkaProducer(**options, transactional_id="another")
        try:
            with pytest.raises(TransactionalIdAuthorizationFailed):
                await producer.start()
        finally:
            await producer.stop()

    async def test_it_cannot_use_another_group(self, admin):
        with pytest.raises(GroupAuthorizationFailedError):
            await admin.find_coordinator("another")

    async def test_it_cannot_delete_its_topics(self, admin, names):
        answer = await admin.delete_topics(names)
        codes = {code for _, code in answer.topic_error_codes}
        assert codes == {TopicAuthorizationFailedError.errno}

    async def test_it_cannot_make_topics(self, admin):
        answer = await admin.create_topics([NewTopic("telemetry.more", 1, 1)])
        codes = {code for _, code, *_ in answer.topic_errors}
        assert codes == {TopicAuthorizationFailedError.errno}

    @pytest.mark.parametrize("kind", ["events", "state"])
    async def test_it_cannot_add_partitions(self, admin, kind):
        with pytest.raises(TopicAuthorizationFailedError):
            await admin.create_partitions({f"telemetry.{kind}": NewPartitions(20)})

    async def test_it_cannot_change_its_topics(self, admin, names):
        wanted = [
            ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "1"}) for name in names
        ]
        (answer, *_) = await admin.alter_configs(wanted)
        codes = {code for code, *_ in answer.resources}
        assert codes == {TopicAuthorizationFailedError.errno}

    async def test_it_cannot_grant_itself_anything(self, admin):
        wanted = Grant("topic", FOREIGN, "literal", "Read")
        answer = await admin._send_request(CreateAclsRequest(*wanted.numbers(USER)))
        codes = {code for code, _ in answer.creation_responses}
        assert codes == {ClusterAuthorizationFailedError.errno}
