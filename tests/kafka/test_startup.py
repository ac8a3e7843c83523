"""A connection's settings fit together, or one sentence names the one that does not."""

from pathlib import Path

import pytest

from streamer.errors import SettingError
from streamer.kafka.startup import connection_of
from streamer.settings import KafkaSettings


@pytest.mark.parametrize(
    ("settings", "unused"),
    [
        ({"sasl_username": "u", "sasl_password": "hunter2"}, ["sasl_username", "sasl_password"]),
        ({"sasl_password_file": "p", "security_protocol": "SSL"}, ["sasl_password_file"]),
        ({"sasl_token_file": "t"}, ["sasl_token_file"]),
        ({"ssl_ca_file": "ca.pem"}, ["ssl_ca_file"]),
        ({}, []),
    ],
)
def test_what_is_not_used_is_spoken_of(settings, unused, caplog):
    made = KafkaSettings(**settings)
    connection_of(made)
    assert [record.getMessage() for record in caplog.records] == [
        f"kafka.{name} is set but not used, because kafka.security_protocol is "
        f"{made.security_protocol}"
        for name in unused
    ]


def test_a_key_without_its_certificate_is_refused():
    settings = KafkaSettings(security_protocol="SSL", ssl_key_file=Path(__file__))
    with pytest.raises(SettingError, match=r"set kafka\.ssl_cert_file too"):
        connection_of(settings)
