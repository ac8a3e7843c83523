"""`streamer run` as it is deployed: what operators see of it from its start to its end."""

import asyncio
import contextlib
import json
import signal
import time
from contextlib import asynccontextmanager

import pytest

import streamer
from streamer.errors import UnreachableError
from streamer.kafka.connection import Connection
from streamer.kafka.source import KafkaSource
from streamer.operations.health import LONGEST_SILENCE
from streamer.service import hosting
from streamer.service.kafka_service import KafkaService
from streamer.stream.watching import Phase
from tests.kafka.conftest import World
from tests.kafka.harness import Record, event, produce
from tests.kafka.served import serving
from tests.web.asking import ask

WAITING = "waiting for a broker to answer"
USERS = 3_000
STREAM = {"step_seconds": 1.0, "lateness_seconds": 3.0}
PRIVACY = {
    "epsilon": 8.0,
    "contributions": 1,
    "attention": "every_step",
    "refresh_steps": 1_000,
    "items": 100,
}
REJECTED = {"not_json": [b"no", b"nor this"], "empty": [b""], "missing_item": [b'{"user": "u"}']}


@pytest.fixture
def serve(tmp_path):
    with serving(tmp_path) as serve:
        yield serve


async def test_operators_see_what_it_waits_for_before_there_is_a_broker(absent, serve):
    service = serve(World(absent.bootstrap, "late").settings())
    async with asyncio.timeout(30):
        while await service.verdict("/healthz") != (200, WAITING):
            await asyncio.sleep(0.02)
    assert await service.verdict("/readyz") == (503, WAITING)
    assert (await service.metrics())["ready"] == 0
    await asyncio.to_thread(absent.start)
    await service.ready()
    assert await service.verdict("/healthz") == (200, "")
    assert (await service.metrics())["ready"] == 1
    await service.finish()


async def test_until_it_is_ready_it_has_a_reason(world, serve):
    service = serve(world.settings())
    verdicts = []
    async with asyncio.timeout(60):
        while not verdicts or verdicts[-1][0] != 200:
            verdicts.append(await service.verdict("/readyz"))
    assert verdicts[0][0] == 503
    assert all(reason for code, reason in verdicts if code == 503)
    assert verdicts[-1] == (200, "")


async def test_the_ports_have_nothing_in_common(world, serve):
    service = serve(world.settings())
    await service.ready()
    operators, public = await service.ports()
    for path in ("/healthz", "/readyz", "/metrics"):
        assert (await ask(operators, path)).status == 200
        assert (await ask(public, path)).status == 404
    for path in ("/", "/api/hitters", "/api/steps", "/api/guarantee"):
        assert (await ask(public, path)).status == 200
        assert (await ask(operators, path)).status == 404


@asynccontextmanager
async def load(world):
    """Events all the time."""
    enough = asyncio.Event()

    async def send():
        while not enough.is_set():
            events = [Record(event(n, "crash"), n % 4) for n in range(500)]
            await produce(world.bootstrap, world.topic("events"), events)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        enough.set()
        await task


@pytest.mark.parametrize("what", [signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
async def test_under_load_it_is_first_not_ready_and_then_away(world, serve, what):
    service = serve(world.settings(stream={"step_seconds": 0.25, "lateness_seconds": 0.1}))
    await service.ready()
    async with load(world):
        await service.measured(lambda figures: figures["steps_closed_total"] >= 3)
        verdicts = [await service.verdict("/readyz")]
        service.send(what)
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while True:
                verdicts.append(await service.verdict("/readyz"))
        assert await service.ended() == 0, service.said
        seconds = time.monotonic() - began
    assert verdicts[0] == (200, "")
    assert verdicts[-1] == (503, "shutting down"), (
        "the socket was closed before anybody could see it"
    )
    # Once it is not ready it stays so.
    assert verdicts == sorted(verdicts)
    assert seconds < 20
    assert [line["message"] for line in service.lines if "shutting down" in line["message"]] == [
        f"shutting down on {what.name}"
    ]
    assert "Traceback" not in service.said


async def test_a_reader_of_the_live_page_does_not_hold_up_its_end(world, serve):
    service = serve(world.settings())
    await service.measured(lambda figures: figures["steps_closed_total"])
    _, public = await service.ports()
    reader, writer = await asyncio.open_connection("127.0.0.1", public)
    writer.write(b"GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"event: published")
    service.send(signal.SIGTERM)
    assert await service.ended(20) == 0
    assert [line for line in service.lines if line["level"] != "info"] == []
    writer.close()


async def feed(world):
    """A known stream: users of one item, some twice, some late, and no events."""
    now = round(time.time() * 1000) + 2_000  # so that all of it arrives in time
    topic, late = world.topic("events"), now - 3_600_000
    values = [event(n, "many", time=now) for n in range(USERS)]
    # "own" is the greater text, and a budget of one pays for one item only.
    values += [event(n, "own", time=now) for n in range(10)]
    values += [event(n, "many", time=now + 1) for n in range(10, 17)]
    values += [event(f"late-{n}", "old", time=late) for n in range(5)]
    values += [value for each in REJECTED.values() for value in each]
    await produce(world.bootstrap, topic, [Record(v, n % 4) for n, v in enumerate(values)])
    return len(values)


async def test_metrics_tell_the_truth_about_a_known_stream(world, serve):
    service = serve(world.settings(stream=STREAM, privacy=PRIVACY))
    await service.ready()
    sent = await feed(world)
    figures = await service.measured(lambda figures: figures["hitters_total"])
    assert figures["records_read_total"] == sent
    outcomes = {"accepted": USERS + 10, "duplicate": 7, "late": 5, "ignored": 0, "rejected": 4}
    assert figures.by("outcome", "events_total") == outcomes
    reasons = {reason: n for reason, n in figures.by("reason", "rejected_total").items() if n}
    assert reasons == {reason: len(values) for reason, values in REJECTED.items()}
    _check_hitters(figures)
    _check_terms(figures)
    _check_closing(figures)
    # Of those who send now, all are exhausted but the ten who held something else.
    async with load(world):
        await service.measured(lambda figures: figures["exhausted_ratio"] == 490 / 500)
    figures = await service.measured(lambda figures: set(_lag(figures).values()) == {0})
    assert set(_lag(figures)) == {"0", "1", "2", "3"}
    assert figures["users_charged"] == USERS - 10
    await service.finish()


def _lag(figures):
    return figures.by("partition", "input_lag")


def _check_hitters(figures):
    assert figures["hitters_total"] == 1
    estimates = figures.by("item", "hitter_estimate")
    assert set(estimates) == {"many"}
    # The noise is beyond six margins with a probability below 1e-7.
    assert estimates["many"] == pytest.approx(USERS - 10, abs=6 * figures["hitter_margin"])
    assert figures["users_charged"] == figures["users_exhausted"] == USERS - 10


def _check_terms(figures):
    told = {name: figures[name] for name in ("epsilon", "delta", "contributions")}
    assert told == {"epsilon": 8, "delta": 1e-6, "contributions": 1}
    assert figures["threshold"] > figures["noise_scale"] > 0
    assert figures["terms_pending"] == 0
    assert 0 <= figures["period_remaining_steps"] < 100_000
    assert figures["period"] == round(time.time()) // 100_000


def _check_closing(figures):
    assert (figures["ready"], figures["step_seconds"]) == (1, 1)
    steps = figures["steps_closed_total"]
    phases = figures.by("phase", "step_close_seconds_count")
    assert 1 <= phases["decide"] == phases["append"] <= steps
    assert figures["journal_write_seconds_count"] == phases["append"] + phases["snapshot"]
    assert 1 <= phases["publish"] == figures["publish_seconds_count"]
    assert time.time() - figures["last_step_closed_timestamp_seconds"] < 60
    assert 3 <= figures["watermark_lag_seconds"] < 60
    assert 0 <= figures["clock_skew_seconds"] < 1
    assert 0 < figures["restore_seconds"] < 60
    assert figures["journal_errors_total"] == 0
    assert figures.by("kind", "kafka_errors_total") == {}
    assert figures.by("version", "build_info") == {streamer.__version__: 1}


async def test_after_a_restart_hitters_and_budgets_are_there_and_nothing_counts_twice(world, serve):
    settings = world.settings(stream=STREAM, privacy=PRIVACY)
    first = serve(settings)
    await first.ready()
    await feed(world)
    before = await first.measured(lambda figures: figures["hitters_total"])
    await first.finish()
    second = serve(settings)
    await second.ready()
    after = await second.measured(lambda figures: figures["steps_closed_total"])
    for name in ("users_charged", "users_exhausted", "epsilon", "threshold", "hitter_margin"):
        assert after[name] == before[name], name
    assert after.by("item", "hitter_estimate") == before.by("item", "hitter_estimate")
    assert after["hitters_total"] == 0
    outcomes = after.by("outcome", "events_total")
    assert (outcomes["accepted"], outcomes["duplicate"]) == (0, 0)
    await second.finish()


async def test_changed_settings_are_pending(world, serve):
    settings = world.settings(stream=STREAM, privacy=PRIVACY)
    first = serve(settings)
    await first.measured(lambda figures: figures["steps_closed_total"])
    await first.finish()
    second = serve(world.settings(stream=STREAM, privacy=PRIVACY | {"epsilon": 4.0}))
    await second.ready()
    figures = await second.metrics()
    assert (figures["terms_pending"], figures["epsilon"]) == (1, 8)
    await second.finish()


async def test_each_part_of_closing_a_step_is_a_sign_of_life(world, monkeypatch):
    """After an outage thousands of steps may close in one turn of the loop."""
    services = []

    class Idle(KafkaService):
        async def run(self):
            services.append(self)

    monkeypatch.setattr(hosting, "KafkaService", Idle)
    await hosting.serve(world.settings())
    [service] = services
    service.status.clock = lambda: time.monotonic() + 2 * LONGEST_SILENCE
    assert not service.status.alive().good
    service.watcher.timed(Phase.APPEND, 0.1)
    assert service.status.alive().good


async def test_a_lag_that_nobody_knows_is_left_out(bootstrap):
    """As while the service reconnects: metrics must be answered all the same."""
    source = KafkaSource(Connection((bootstrap,)), None, "none", "none")
    assert source.lag() == {}
    source = KafkaSource(Connection(("127.0.0.1:1",)), None, "none", "none")
    with pytest.raises(UnreachableError):
        await source.start({"0": 5})
    try:
        assert source.lag() == {}
    finally:
        await source.stop()


async def test_a_settings_mistake_ends_it_with_code_2_and_both_ports_closed(world, serve):
    service = serve(world.settings(privacy={"key": "no key"}))
    assert await service.ended() == 2
    last = service.lines[-1]
    assert (last["level"], last["exit_code"]) == ("error", 2)
    assert last["message"].startswith("privacy.key is invalid: it must be 64 hex digits")
    assert "no key" not in json.dumps(service.lines)
