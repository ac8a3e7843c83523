"""The list of declared items: what is wrong with it is one sentence."""

import pytest

from streamer.errors import SettingError
from streamer.stream.item_list import MOST_BYTES, MOST_ITEMS, check_items

LIST = "stream.items_file"


def complaint(items, max_item_bytes=20):
    with pytest.raises(SettingError) as raised:
        check_items(LIST, "line", items, max_item_bytes)
    return str(raised.value)


def test_the_order_of_a_list_makes_no_difference():
    assert check_items(LIST, "line", ["b", "a", "é"], 20) == check_items(
        LIST, "line", ["é", "b", "a"], 20
    )
    assert check_items(LIST, "line", ["b", "a"], 20) == ("a", "b")
    assert check_items(LIST, "line", [], 20) == ()


@pytest.mark.parametrize("empty", ["", " ", "\t"])
def test_an_empty_line(empty):
    assert complaint(["a", empty]) == "line 2 of stream.items_file is empty: delete it"


def test_an_item_that_no_event_could_hold():
    check_items(LIST, "line", ["é" * 10], 20)
    assert complaint(["a", "b", "é" * 10 + "x"]) == (
        "line 3 of stream.items_file is longer than stream.max_item_bytes (20 bytes): no event "
        "could hold this item; shorten it or delete it"
    )


def test_an_item_twice():
    assert complaint(["a", "b", "a"]) == (
        "line 3 of stream.items_file is the same as line 1: delete one of them"
    )


def test_too_many_items():
    check_items(LIST, "line", map(str, range(MOST_ITEMS)), 20)
    assert complaint(list(map(str, range(MOST_ITEMS + 1)))) == (
        "stream.items_file is a list of 10,001 items and 68,899 bytes: declare at most 10,000 "
        "items and 400,000 bytes"
    )


def test_too_long_a_list_as_it_is_kept():
    """In JSON a control character takes six bytes."""
    items = [f"{number:04}" + "\x01" * 60 for number in range(1 + MOST_BYTES // 367)]
    assert "declare at most" in complaint(items, 100)
    check_items(LIST, "line", items[:-2], 100)
