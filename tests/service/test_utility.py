"""What the product finds in eight simulated hours: everything it guarantees, and nothing made up.

Planned with β = 1e-7, so a false alarm of either test has a probability below 1e-7.
"""

import asyncio
import json

import pytest

from streamer.config import load
from streamer.fleet.event_lines import EventLines
from streamer.fleet.fleet import Fleet
from streamer.fleet.outbreaks import Outbreak, Shape
from streamer.fleet.simulation import in_arrival_order, simulate
from streamer.fleet.truth import true_counts
from streamer.service.line_job import LineJob, run_lines
from streamer.service.startup import terms_of

pytestmark = pytest.mark.slow

SETTINGS = load({"privacy": {"beta": 1e-7}})
GUARANTEED = terms_of(SETTINGS.privacy, SETTINGS.stream).plan().guaranteed_weight
STEPS = 480


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Events in a file, run through the engine: truth and results by (step, item)."""
    directory = tmp_path_factory.mktemp("found")
    fleet = Fleet(
        users=12_000,
        steps=STEPS,
        seed=7,
        active=0.05,
        exponent=0.3,
        outbreaks=(
            Outbreak("crash:just enough", GUARANTEED, start=100, length=4),
            Outbreak("error:growing", 3 * GUARANTEED, start=200, length=5, shape=Shape.RAMP),
            Outbreak("error:fading", 2 * GUARANTEED, start=300, length=5, shape=Shape.SPIKE),
            Outbreak("crash:too small", GUARANTEED // 6, start=400, length=3),
        ),
    )
    truth = {}

    def steps():
        for step in simulate(fleet):
            for count in true_counts(step, fleet.catalogue(), floor=1):
                truth[count.step, count.item] = count.users
            yield step

    source, sink = directory / "events.jsonl", directory / "hitters.jsonl"
    lines = EventLines(fleet.catalogue())
    with source.open("wb") as file:
        for events in in_arrival_order(fleet, steps()):
            file.writelines(line + b"\n" for line in lines.render(events))
    job = LineJob(str(source), sink=sink, journal=directory / "journal")
    asyncio.run(run_lines(job, SETTINGS))
    results = [json.loads(line) for line in sink.read_text().splitlines()]
    return truth, {(result["step"], result["item"]): result for result in results}


def test_every_outbreak_of_the_guaranteed_weight_is_reported_in_its_step(found):
    truth, results = found
    heavy = {place for place, users in truth.items() if users >= GUARANTEED}
    assert len(heavy) >= 4 + 2
    assert heavy <= set(results)


def test_nothing_that_nobody_holds_is_ever_reported(found):
    """With a value. In a step that asks a public item for its value it is not called gone."""
    truth, results = found
    valued = {place for place, result in results.items() if result["estimate"] is not None}
    assert valued <= set(truth)


def test_estimates_lie_around_the_truth(found):
    truth, results = found
    worst = max(
        abs(truth[place] - result["estimate"])
        for place, result in results.items()
        if result["estimate"] is not None
    )
    # Every estimate is within the noise that is planned for, all of them at once.
    assert worst <= GUARANTEED
