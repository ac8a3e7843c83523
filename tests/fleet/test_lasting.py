"""Lasting items: how they are written."""

import pytest

from streamer.errors import SettingError
from streamer.fleet.lasting import Lasting, parse_lasting


@pytest.mark.parametrize(
    ("text", "lasting"),
    [
        ("version:6.1,5000", Lasting("version:6.1", 5000)),
        (" crash , 8 ", Lasting("crash", 8)),
        ("search:a,b,1", Lasting("search:a,b", 1)),
    ],
)
def test_a_lasting_item_is_read_from_text(text, lasting):
    assert parse_lasting(text) == lasting


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "use ITEM,SIZE"),
        ("5000", "use ITEM,SIZE"),
        ("crash,many", "use ITEM,SIZE"),
        (",1", "printable text of 1 to 1,000 bytes"),
        ("a\nb,1", "printable text"),
        ("crash,0", "size must be at least 1"),
    ],
)
def test_what_is_no_lasting_item_is_refused(text, complaint):
    with pytest.raises(SettingError, match="lasting is") as caught:
        parse_lasting(text)
    assert complaint in str(caught.value)
