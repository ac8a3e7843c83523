"""What we use of aiokafka's private parts is there, and is left as it is for other clients.

The first tests fail when a new version of aiokafka changes these parts. They import nothing
of ours, so that they also run where our modules do not.
"""

import ast
import inspect
import pkgutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.test_architecture import imported, modules, name_of

OURS = {"kafka/clients.py"}
PRIVATE_MODULES = {
    "aiokafka.consumer.fetcher",
    "aiokafka.producer.sender",
    "aiokafka.protocol.offset",
}

WHAT_TO_DO = """\
aiokafka {version}: {change}.
streamer/kafka/clients.py uses private parts of aiokafka 0.14.
1. Compare aiokafka/consumer/fetcher.py, aiokafka/producer/sender.py and
   aiokafka/protocol/offset.py of both versions.
2. Adapt the module, and what this test expects.
3. Run tests/kafka, and python -m benchmarks.batches with both versions.
4. Then raise the bound in pyproject.toml, and constraints.txt.
Until that is done, keep aiokafka below this version."""

CALLED = {
    "aiokafka:AIOKafkaConsumer.start": "(self)",
    "aiokafka.client:AIOKafkaClient.add_topic": "(self, topic)",
    "aiokafka.client:AIOKafkaClient.force_metadata_update": "(self)",
    "aiokafka.client:AIOKafkaClient.send": (
        "(self, node_id, request, *, group=<ConnectionGroup.DEFAULT: 0>)"
    ),
    "aiokafka.cluster:ClusterMetadata.leader_for_partition": "(self, partition)",
    "aiokafka.protocol.offset:OffsetRequest.__init__": (
        "(self, replica_id: int, isolation_level: int, "
        "topics: list[tuple[str, list[tuple[int, int]]]])"
    ),
    "aiokafka.consumer.fetcher:Fetcher.fetched_records": (
        "(self, partitions, timeout=0, max_records=None)"
    ),
    "aiokafka.consumer.fetcher:FetchError.check_raise": "(self)",
    "aiokafka.consumer.fetcher:FetchResult.check_assignment": "(self, tp)",
    "aiokafka.consumer.fetcher:FetchResult.getall": "(self, max_records=None)",
    "aiokafka.consumer.fetcher:FetchResult.has_more": "(self)",
    "aiokafka.consumer.fetcher:FetchResult._update_position": "(self)",
    "aiokafka.consumer.fetcher:PartitionRecords.__init__": (
        "(self, tp, records, aborted_transactions, fetch_offset, key_deserializer, "
        "value_deserializer, check_crcs, isolation_level)"
    ),
    "aiokafka.consumer.fetcher:PartitionRecords.__next__": "(self)",
    "aiokafka.consumer.fetcher:PartitionRecords._unpack_records": "(self)",
    "aiokafka.consumer.fetcher:PartitionRecords._consumer_record": "(self, tp, record)",
    "aiokafka.producer.sender:Sender._do_add_partitions_to_txn": "(self, tps)",
    "aiokafka.producer.sender:Sender._find_coordinator": (
        "(self, coordinator_type, coordinator_key)"
    ),
    "aiokafka.producer.sender:AddPartitionsToTxnHandler.__init__": (
        "(self, sender, topic_partitions)"
    ),
    "aiokafka.producer.sender:AddPartitionsToTxnHandler.handle_response": "(self, resp)",
    "aiokafka.producer.sender:AddPartitionsToTxnHandler.do": "(self, node_id)",
}
"""What our modules call or override, with its parameters."""

KEPT = {
    "aiokafka:AIOKafkaConsumer": {"_client", "_fetcher", "_request_timeout_ms"},
    "aiokafka:AIOKafkaProducer": {"client", "_sender"},
    "aiokafka.consumer.fetcher:Fetcher": {"_records", "OrderedDict"},
    "aiokafka.consumer.fetcher:FetchResult": {"_topic_partition", "_partition_records"},
    "aiokafka.consumer.fetcher:PartitionRecords": {
        *("_tp", "_records", "_aborted_transactions", "_check_crcs", "_isolation_level"),
        *("next_fetch_offset", "_records_iterator"),
    },
    "aiokafka.producer.sender:Sender": {"_txn_manager"},
}
"""What instances of aiokafka's classes have from their beginning."""

READ_OF_BATCHES = {
    *("validate_crc", "producer_id", "base_offset", "next_offset"),
    *("is_control_batch", "is_transactional"),
}
"""What aiokafka reads of each batch in an answer, which ours must offer too."""


def found(name):
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        changed(f"{name} is gone")


def changed(change):
    pytest.fail(WHAT_TO_DO.format(version=version("aiokafka"), change=change), pytrace=False)


class TestWhatWeUse:
    def test_the_version_is_one_that_our_modules_were_written_for(self):
        if not version("aiokafka").startswith("0.14."):
            changed("this is not 0.14")

    @pytest.mark.parametrize("name", CALLED)
    def test_functions_have_the_same_parameters(self, name):
        parameters = str(inspect.signature(found(name)))
        if parameters != CALLED[name]:
            changed(f"{name} was {CALLED[name]}, and is {parameters}")

    @pytest.mark.parametrize("name", KEPT)
    def test_instances_have_the_same_attributes(self, name):
        missing = KEPT[name] - set(found(f"{name}.__init__").__code__.co_names)
        if missing:
            changed(f"{name} has no {', '.join(sorted(missing))}")

    def test_the_same_is_read_of_batches(self):
        unpack = found("aiokafka.consumer.fetcher:PartitionRecords._unpack_records")
        offered = dir(found("aiokafka.record.default_records:DefaultRecordBatch"))
        asked = set(unpack.__code__.co_names) & set(offered)
        if asked != READ_OF_BATCHES:
            changed(f"it reads {sorted(asked)} of a batch, no longer {sorted(READ_OF_BATCHES)}")

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_answers_about_offsets_have_the_same_fields(self, number):
        schema = found(f"aiokafka.protocol.offset:OffsetResponse_v{number}").SCHEMA
        topics = schema.fields[schema.names.index("topics")].array_of
        names = topics.fields[topics.names.index("partitions")].array_of.names
        if tuple(names) != ("partition", "error_code", "timestamp", "offset"):
            changed(f"version {number} of the answer about offsets has {names}")

    def test_the_wait_between_transactions_is_the_same(self):
        wait = found("aiokafka.producer.sender:BACKOFF_OVERRIDE")
        if wait != 0.02:
            changed(f"it waits {wait} s between transactions, no longer 0.02 s")


SNAPSHOT = """
import asyncio, sys
import aiokafka, aiokafka.admin, aiokafka.consumer.fetcher, aiokafka.producer.sender

def parts():
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "aiokafka"]
    classes = [part for module in modules for part in vars(module).values()
               if isinstance(part, type)]
    return {(owner, name): part for owner in (*modules, *classes)
            for name, part in vars(owner).items() if name != "_PRODUCER_CLIENT_ID_SEQUENCE"}

async def make():
    for client in (BatchConsumer(), TransactionProducer(transactional_id="id")):
        await client.stop()

before = parts()
from streamer.kafka import source, transactions
from streamer.kafka.clients import BatchConsumer
from streamer.kafka.clients import TransactionProducer
asyncio.run(make())
after = parts()
print([f"{owner}: {name}" for (owner, name), part in before.items()
       if after.get((owner, name)) is not part])
"""


def test_no_class_or_constant_of_aiokafka_is_replaced():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SNAPSHOT],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_only_two_modules_touch_private_parts():
    users = [module for module in modules() if name_of(module) not in OURS and _uses(module)]
    assert users
    for module in users:
        assert not PRIVATE_MODULES & set(imported(module)), name_of(module)
        assert not _private_attributes(module), name_of(module)


def _uses(module):
    return any(target.split(".")[0] == "aiokafka" for target in imported(module))


def _private_attributes(module):
    """Of other objects than its own."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and ast.unparse(node.value) not in {"self", "cls"}
    ]
