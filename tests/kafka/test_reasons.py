"""Why the broker could not be reached, as it stands in /readyz and in the log."""

import socket

from aiokafka.errors import KafkaConnectionError

from streamer.kafka.reasons import reason_of


def test_it_is_what_the_library_says_without_its_constants():
    error = KafkaConnectionError(f"Unable to bootstrap from {[('kafka', 9092, socket.AF_UNSPEC)]}")
    assert reason_of(error) == ("KafkaConnectionError: Unable to bootstrap from [('kafka', 9092)]")


def test_an_error_that_says_nothing_is_told_by_its_name():
    assert reason_of(TimeoutError()) == "TimeoutError"
