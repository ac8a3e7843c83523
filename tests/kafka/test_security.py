"""Encryption, logins and certificates on a real broker, and what is said when they are wrong."""

import asyncio
import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamer.errors import SettingError
from streamer.kafka.connection import Connection
from streamer.kafka.startup import connection_of
from streamer.service.kafka_service import KafkaService
from tests.kafka.broker import java
from tests.kafka.conftest import World, begin
from tests.kafka.harness import (
    DEADLINE,
    Record,
    event,
    eventually,
    make_topic,
    produce,
    running,
    values_of,
)
from tests.kafka.secure_broker import (
    GUEST,
    KEY_PASSWORD,
    PASSWORD,
    USER,
    Authority,
    SecureBroker,
    token,
)
from tests.stream.making import RepeatingDecider

# The client does not wait until a connection that was refused is closed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def tidy():
    """What was left open by a test is noticed with that test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    made = SecureBroker.make(tmp_path_factory.mktemp("secure"))
    begin(made.broker)
    yield made
    made.broker.stop()


@pytest.fixture(scope="module")
def bootstrap(secure):
    """The worlds of these tests are on this broker."""
    return secure.broker.bootstrap


@pytest.fixture(scope="module")
def password_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("secrets") / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Another authority, which the broker knows nothing of."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture
def scram(secure, password_file):
    return {
        "bootstrap_servers": secure.at("sasl_ssl"),
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": USER,
        "sasl_password_file": password_file,
        "ssl_ca_file": secure.authority.file,
    }


@pytest.fixture
def mutual(secure):
    certificate, key = secure.authority.issue(USER)
    return {
        "bootstrap_servers": secure.at("ssl"),
        "security_protocol": "SSL",
        "ssl_ca_file": secure.authority.file,
        "ssl_cert_file": certificate,
        "ssl_key_file": key,
    }


@pytest.fixture
def bearer(secure, tmp_path):
    path = tmp_path / "token"
    path.write_text(token(USER))
    return {
        "bootstrap_servers": secure.at("sasl_plaintext"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_token_file": path,
    }


def connection(world, settings):
    return connection_of(world.settings(kafka=settings).kafka)


async def refusal(world, settings):
    """What is said of these settings; a broker may take a moment to say what is wrong."""

    async def reach():
        while not await connection(world, settings).check():
            await asyncio.sleep(0.05)

    async with asyncio.timeout(DEADLINE):
        with pytest.raises(SettingError) as complaint:
            await reach()
    assert "\n" not in str(complaint.value)
    assert PASSWORD not in str(complaint.value)
    return str(complaint.value)


async def works_with(world, settings):
    """A service with these settings reads, writes, keeps its journal, and is replaced."""
    decider = RepeatingDecider(threshold=1)
    given = world.settings(kafka=settings, stream={"step_seconds": 0.25, "lateness_seconds": 0.1})
    async with running(given, asked_by=decider) as service:
        await produce(world.bootstrap, world.topic("events"), [Record(event(1, "crash"))])
        await eventually(lambda: service.summary.hitters)
    async with running(given, asked_by=decider) as service:
        assert service.engine.charged == 1
    hitters = await values_of(world.bootstrap, world.topic("hitters"))
    assert [each["item"] for each in hitters if each["state"] == "new"] == ["crash"]


class TestLetIn:
    async def test_by_a_password_from_a_file(self, world, scram):
        await works_with(world, scram)

    async def test_by_a_certificate(self, world, mutual):
        await works_with(world, mutual)

    async def test_by_a_token_from_a_file(self, world, bearer):
        await works_with(world, bearer)

    @pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
    async def test_by_every_mechanism(self, world, scram, mechanism):
        given = scram | {"sasl_mechanism": mechanism}
        assert await connection(world, given).check()

    async def test_by_a_password_from_the_environment(self, world, scram, monkeypatch):
        monkeypatch.setenv("STREAMER_KAFKA__SASL_PASSWORD", PASSWORD)
        del scram["sasl_password_file"]
        assert await connection(world, scram).check()

    async def test_by_a_certificate_whose_key_is_locked(self, world, mutual, secure):
        certificate, key = secure.authority.issue("locked", KEY_PASSWORD)
        mutual |= {"ssl_cert_file": certificate, "ssl_key_file": key}
        assert await connection(world, mutual | {"ssl_key_password": KEY_PASSWORD}).check()

    async def test_under_another_name_if_names_do_not_matter(self, world, scram):
        scram["bootstrap_servers"] = scram["bootstrap_servers"].replace("127.0.0.1", "localhost")
        assert await connection(world, scram | {"ssl_check_hostname": False}).check()

    async def test_if_one_of_several_servers_does_so(self, world, scram):
        scram["bootstrap_servers"] = f"no-such-host.invalid:9092,{scram['bootstrap_servers']}"
        assert await connection(world, scram).check()


class TestShutOut:
    async def test_by_a_wrong_password(self, world, scram, tmp_path):
        wrong = tmp_path / "wrong"
        wrong.write_text("guessed")
        for mechanism in ("SCRAM-SHA-256", "PLAIN"):
            given = scram | {"sasl_password_file": wrong, "sasl_mechanism": mechanism}
            assert await refusal(world, given) == (
                f"kafka.sasl_username is {USER}: the broker rejected this user and password"
            )

    async def test_by_a_user_that_does_not_exist(self, world, scram):
        sentence = await refusal(world, scram | {"sasl_username": "nobody"})
        assert sentence.startswith("kafka.sasl_username is nobody: ")

    async def test_by_a_mechanism_that_is_not_offered(self, world, secure, scram):
        given = scram | {
            "bootstrap_servers": secure.at("sasl_plaintext"),
            "security_protocol": "SASL_PLAINTEXT",
        }
        assert await refusal(world, given) == (
            "kafka.sasl_mechanism is SCRAM-SHA-512: the broker does not support it"
        )

    async def test_by_a_token_that_says_nothing(self, world, bearer):
        bearer["sasl_token_file"].write_text("a.b.c")
        sentence = await refusal(world, bearer)
        assert sentence.startswith(f"kafka.sasl_token_file is {bearer['sasl_token_file']}: ")

    async def test_by_another_authority_than_the_broker_s(self, world, scram, stranger):
        sentence = await refusal(world, scram | {"ssl_ca_file": stranger.file})
        assert sentence.startswith("kafka.ssl_ca_file is not the CA that signed the broker's ")

    async def test_by_the_authorities_of_the_system(self, world, scram):
        del scram["ssl_ca_file"]
        assert (await refusal(world, scram)).startswith("kafka.ssl_ca_file is ")

    async def test_by_a_name_that_is_not_in_the_certificate(self, world, scram):
        scram["bootstrap_servers"] = scram["bootstrap_servers"].replace("127.0.0.1", "localhost")
        sentence = await refusal(world, scram)
        assert sentence.startswith(f"kafka.bootstrap_servers is {scram['bootstrap_servers']}: ")
        assert "not valid for 'localhost'" in sentence

    async def test_without_a_certificate_where_one_is_wanted(self, world, mutual):
        del mutual["ssl_cert_file"], mutual["ssl_key_file"]
        assert (await refusal(world, mutual)).startswith("kafka.ssl_cert_file is missing ")

    async def test_by_a_certificate_of_a_stranger(self, world, mutual, stranger):
        certificate, key = stranger.issue(USER)
        given = mutual | {"ssl_cert_file": certificate, "ssl_key_file": key}
        sentence = await refusal(world, given)
        assert sentence.startswith("kafka.ssl_cert_file is missing or not trusted: ")

    @pytest.mark.parametrize(
        ("protocol", "listener", "fact"),
        [
            ("PLAINTEXT", "ssl", "requires TLS; use SSL or SASL_SSL"),
            ("PLAINTEXT", "sasl_ssl", "requires TLS; use SSL or SASL_SSL"),
            ("PLAINTEXT", "sasl_plaintext", "may require a SASL login"),
            ("SASL_PLAINTEXT", "plaintext", "does not accept SASL logins; use PLAINTEXT or SSL"),
            ("SASL_PLAINTEXT", "sasl_ssl", "requires TLS; use SSL or SASL_SSL"),
            ("SSL", "plaintext", "does not use TLS; use PLAINTEXT"),
            ("SSL", "sasl_ssl", "may require a SASL login"),
            ("SASL_SSL", "ssl", "does not accept SASL logins; use PLAINTEXT or SSL"),
            ("SASL_SSL", "sasl_plaintext", "does not use TLS; use PLAINTEXT"),
        ],
    )
    async def test_by_another_protocol_than_the_port_s(
        self, world, secure, scram, mutual, protocol, listener, fact
    ):
        server = world.bootstrap if listener == "plaintext" else secure.at(listener)
        given = mutual | scram | {"bootstrap_servers": server, "security_protocol": protocol}
        sentence = await refusal(world, given)
        assert sentence.startswith(f"kafka.security_protocol is {protocol}: {server} ")
        assert fact in sentence

    @pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
    async def test_by_a_host_that_does_not_exist(self, world, host):
        assert await refusal(world, {"bootstrap_servers": f"{host}:9092"}) == (
            f"kafka.bootstrap_servers is {host}:9092: no such host"
        )

    async def test_a_server_where_nobody_listens_is_waited_for(self, world):
        assert not await connection(world, {"bootstrap_servers": "127.0.0.1:1"}).check()


class TestSettings:
    """Mistakes that can be seen without a broker."""

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"sasl_username": None}, "kafka.sasl_username is not set: SCRAM-SHA-512 requires"),
            ({"sasl_password_file": None}, "kafka.sasl_password is not set"),
            ({"sasl_password": "x"}, "kafka.sasl_password is set too: use only one"),
            ({"sasl_password_file": Path("/nowhere")}, "No such file or directory"),
            ({"sasl_password_file": Path("/")}, "kafka.sasl_password_file is /: Is a directory"),
            ({"ssl_ca_file": Path("/nowhere")}, "kafka.ssl_ca_file is /nowhere: no such file"),
            ({"ssl_ca_file": Path(__file__)}, "it contains no PEM certificates"),
            ({"ssl_cert_file": Path(__file__)}, f"kafka.ssl_cert_file is {__file__}: it and "),
            ({"ssl_key_file": Path("/nowhere")}, "kafka.ssl_key_file is /nowhere: no such file"),
            ({"bootstrap_servers": "localhost"}, "kafka.bootstrap_servers is localhost: use "),
            ({"bootstrap_servers": "localhost:99999"}, "use host:port, separated by commas"),
            ({"bootstrap_servers": " , "}, "use host:port, separated by commas"),
        ],
    )
    def test_are_told_in_a_sentence(self, world, scram, change, sentence):
        given = {name: value for name, value in (scram | change).items() if value is not None}
        with pytest.raises(SettingError) as complaint:
            connection(world, given)
        assert sentence in str(complaint.value)

    def test_so_is_a_file_that_is_no_text(self, world, scram, tmp_path):
        (tmp_path / "binary").write_bytes(b"\xff\xfe")
        with pytest.raises(SettingError, match="it is not a text file"):
            connection(world, scram | {"sasl_password_file": tmp_path / "binary"})

    def test_so_is_a_token_that_is_nowhere(self, world, bearer):
        bearer["sasl_token_file"].unlink()
        with pytest.raises(SettingError, match=r"kafka\.sasl_token_file"):
            connection(world, bearer)
        del bearer["sasl_token_file"]
        with pytest.raises(SettingError, match=r"kafka\.sasl_token_file"):
            connection(world, bearer)

    @pytest.mark.parametrize("password", [None, "guessed"])
    def test_so_is_a_key_that_stays_locked(self, world, mutual, secure, password):
        certificate, key = secure.authority.issue("locked", KEY_PASSWORD)
        mutual |= {"ssl_cert_file": certificate, "ssl_key_file": key}
        if password:
            mutual["ssl_key_password"] = password
        with pytest.raises(SettingError, match=r"or kafka\.ssl_key_password is wrong"):
            connection(world, mutual)


async def test_a_token_is_read_anew_for_every_connection(tmp_path):
    path = tmp_path / "token"
    given = Connection(("localhost:1",), "SASL_PLAINTEXT", None, "OAUTHBEARER", token_file=path)
    provider = given.options()["sasl_oauth_token_provider"]
    for text in ("first", "second"):
        path.write_text(f"{text}\n")
        assert await provider.token() == text


@pytest.fixture(scope="module")
def granted(secure):
    """What the guest may look at is called test-, what it may write to is called open-."""
    acls = ("org.apache.kafka.tools.AclCommand", "--bootstrap-server", secure.broker.bootstrap)
    guest = ("--add", "--allow-principal", f"User:{GUEST}")
    looks = [f"--operation={each}" for each in ("Describe", "DescribeConfigs", "Read")]
    prefixed = ("--resource-pattern-type", "prefixed")
    for grant in (
        [*looks, "--topic", "test-", *prefixed],
        ["--operation=All", "--topic", "open-", *prefixed],
        ["--operation=All", "--transactional-id", "granted", "--group", "granted"],
    ):
        subprocess.run(java(*acls, *guest, *grant), capture_output=True, check=True)


class TestPermissions:
    """A user who is let in, and may not do what the service does."""

    @pytest.fixture
    async def guest(self, world, scram, granted):
        await self.make_topics(world)
        return scram | {"sasl_username": GUEST}

    async def make_topics(self, world):
        by_broker = {"message_timestamp_type": "LogAppendTime"}
        await make_topic(world.bootstrap, world.topic("events"), **by_broker)
        for kind in ("hitters", "steps", "rejected"):
            await make_topic(world.bootstrap, world.topic(kind))
        await make_topic(world.bootstrap, world.topic("state"), cleanup_policy="compact")

    async def refusal(self, world, settings):
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(SettingError) as complaint:
                await KafkaService(world.settings(kafka=settings)).run()
        return str(complaint.value)

    async def test_a_topic_that_it_may_not_look_at(self, world, guest):
        sentence = await self.refusal(world, guest | {"hitters_topic": "secret"})
        assert sentence.startswith("kafka.hitters_topic is secret: this user may not describe it")

    async def test_a_topic_that_it_may_not_make(self, world, guest):
        sentence = await self.refusal(world, guest | {"hitters_topic": "test-unmade"})
        assert sentence.startswith("kafka.hitters_topic is test-unmade: it could not be created (")

    async def test_an_identity_that_it_may_not_use(self, world, guest):
        assert await self.refusal(world, guest) == (
            f"kafka.transactional_id is {world.name}: this user may not use it: grant Describe and "
            "Write"
        )

    async def test_a_group_that_it_may_not_use(self, world, guest):
        world = World(world.bootstrap, f"open-{world.name}")
        await self.make_topics(world)
        assert await self.refusal(world, guest | {"transactional_id": "granted"}) == (
            f"kafka.group_id is {world.name}: this user may not use it"
        )

    async def test_topics_that_it_may_not_write_to(self, world, guest):
        granted = {"transactional_id": "granted", "group_id": "granted"}
        sentence = await self.refusal(world, guest | granted)
        assert sentence.startswith(f"kafka.sasl_username is {GUEST}: it may not write to ")
        assert sentence.endswith(f"{world.topic('state')}: grant Describe and Write")

    async def test_a_longer_transaction_than_the_broker_allows(self, world, scram):
        sentence = await self.refusal(world, scram | {"transaction_timeout_seconds": 121})
        assert sentence.startswith("kafka.transaction_timeout_seconds is 121")


class TestCommandLine:
    """One sentence, and exit code 2."""

    def run(self, world, settings):
        given = {
            f"STREAMER_KAFKA__{name.upper()}": str(value)
            for name, value in (
                world.settings().kafka.model_dump(exclude_unset=True) | settings
            ).items()
        }
        done = subprocess.run(
            [sys.executable, "-m", "streamer.cli", "run"],
            env=os.environ
            | given
            | {"STREAMER_PRIVACY__KEY": "ab" * 32, "STREAMER_LOG__LEVEL": "error"}
            | {"STREAMER_METRICS__PORT": "0", "STREAMER_HTTP__PORT": "0"},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        return done.returncode, json.loads(done.stderr)["message"]

    def test_a_wrong_password(self, world, scram, tmp_path):
        (tmp_path / "wrong").write_text("guessed")
        assert self.run(world, scram | {"sasl_password_file": tmp_path / "wrong"}) == (
            2,
            f"kafka.sasl_username is {USER}: the broker rejected this user and password",
        )

    def test_a_wrong_authority(self, world, scram, stranger):
        code, sentence = self.run(world, scram | {"ssl_ca_file": stranger.file})
        assert code == 2
        assert sentence.startswith("kafka.ssl_ca_file is ")

    def test_a_topic_that_is_missing(self, world, scram):
        code, sentence = self.run(world, scram | {"create_topics": False})
        assert code == 2
        assert sentence.startswith("kafka.events_topic is ")
        assert "kafka-topics.sh" in sentence
