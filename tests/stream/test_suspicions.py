"""Which items look as if they named a person or a single event."""

import pytest

from streamer.stream.suspicions import Suspicion, suspicion_of


@pytest.mark.parametrize(
    ("item", "suspicion"),
    [
        ("mail:ann.b+c@mail.example.com", Suspicion.MAIL),
        ("Ann <ann@example.org>", Suspicion.MAIL),
        ("order 0d3f6f5a-1b1c-4d2e-8f90-aabbccddeeff", Suspicion.UUID),
        ("0D3F6F5A1B1C4D2E8F90AABBCCDDEEFF", Suspicion.UUID),
        ("Order 4711081500 failed", Suspicion.DIGITS),
        ("/orders/1234567", Suspicion.DIGITS),
    ],
)
def test_what_is_suspicious(item, suspicion):
    assert suspicion_of(item) is suspicion


@pytest.mark.parametrize(
    "item",
    [
        "crash:NPE:Foo.java:42",
        "NullPointerException@2.14.0",
        "KeyError@shop@2.4.0",
        "Checkout Failed",
        "url:/index.html",
        "HTTP 503",
    ],
)
def test_names_that_developers_choose_are_not(item):
    assert suspicion_of(item) is None
