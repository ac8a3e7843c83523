"""The same job as people would write it with Quix Streams; runs in its own environment.

    python quix_job.py BOOTSTRAP EVENTS_TOPIC OUTPUT_TOPIC NAME STATE_DIRECTORY

One item per user and step (the latest event counts), then how many users hold each item,
exactly once. Only counts from `LEAST_USERS` on are written, as the service writes only
hitters. It knows nothing of privacy.
"""

import sys
from datetime import timedelta
from typing import Any

STEP = timedelta(minutes=1)
LATENESS = timedelta(hours=1)
LEAST_USERS = 300


def run(bootstrap: str, events: str, output: str, name: str, directory: str) -> None:
    from quixstreams import Application  # type: ignore[import-not-found]

    app = Application(
        broker_address=bootstrap,
        consumer_group=name,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        state_dir=directory,
    )
    counts = app.topic(output, key_serializer="json", value_serializer="json")
    sdf = app.dataframe(app.topic(events, key_deserializer="str", value_deserializer="json"))
    sdf = sdf.tumbling_window(STEP).reduce(later, held).final(closing_strategy="partition")
    sdf = sdf.apply(lambda window: window["value"])
    sdf = sdf.group_by("item")
    # Input partitions are not read at one pace: a step's users may come much later.
    sdf = sdf.tumbling_window(STEP, LATENESS).count().final(closing_strategy="partition")
    sdf = sdf.filter(lambda window: window["value"] >= LEAST_USERS)
    sdf.to_topic(counts)
    app.run()


def held(event: dict[str, Any]) -> dict[str, Any]:
    return {"item": event["item"], "time": event["time"]}


def later(before: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    """The later event; of one moment, that with the greater item."""
    newer = (event["time"], event["item"]) > (before["time"], before["item"])
    return held(event) if newer else before


if __name__ == "__main__":
    run(*sys.argv[1:])
