"""Invalid records: what a reader of a simulated stream must survive.

Each kind breaks exactly one rule of the event contract, so a reader that does not check
that rule counts a user it must not count.
"""

from __future__ import annotations

from enum import IntEnum

PADDING = 5000
"""Characters appended to make a user or an item too long."""


class Kind(IntEnum):
    """What a record is: 0 for an event, otherwise what is wrong with it."""

    EVENT = 0
    BROKEN_JSON = 1
    PLAIN_TEXT = 2
    NO_OBJECT = 3
    NO_USER = 4
    NO_ITEM = 5
    EMPTY_USER = 6
    EMPTY_ITEM = 7
    USER_NOT_TEXT = 8
    ITEM_NOT_TEXT = 9
    TIME_NOT_A_TIME = 10
    LONG_USER = 11
    LONG_ITEM = 12
    INVALID_UTF8 = 13


# The templates quote the three texts of an event.
_FORMS = {
    Kind.BROKEN_JSON: b'{"user":"%(user)b","item":"%(item)b","time":"%(time)b',
    Kind.PLAIN_TEXT: b"ERROR %(time)b %(user)b: %(item)b",
    Kind.NO_OBJECT: b'["%(user)b","%(item)b","%(time)b"]',
    Kind.NO_USER: b'{"item":"%(item)b","time":"%(time)b"}',
    Kind.NO_ITEM: b'{"user":"%(user)b","time":"%(time)b"}',
    Kind.EMPTY_USER: b'{"user":"","item":"%(item)b","time":"%(time)b"}',
    Kind.EMPTY_ITEM: b'{"user":"%(user)b","item":"","time":"%(time)b"}',
    Kind.USER_NOT_TEXT: b'{"user":17,"item":"%(item)b","time":"%(time)b"}',
    Kind.ITEM_NOT_TEXT: b'{"user":"%(user)b","item":["%(item)b"],"time":"%(time)b"}',
    Kind.TIME_NOT_A_TIME: b'{"user":"%(user)b","item":"%(item)b","time":"yesterday"}',
    Kind.LONG_USER: b'{"user":"%(user)b%(padding)b","item":"%(item)b","time":"%(time)b"}',
    Kind.LONG_ITEM: b'{"user":"%(user)b","item":"%(item)b%(padding)b","time":"%(time)b"}',
    Kind.INVALID_UTF8: b'{"user":"%(user)b","item":"%(item)b\xff\xfe","time":"%(time)b"}',
}


def bad_record(kind: Kind, user: bytes, item: bytes, time: bytes) -> bytes:
    """An event with these texts (JSON-escaped, without quotes), broken according to `kind`."""
    texts = {b"user": user, b"item": item, b"time": time, b"padding": b"x" * PADDING}
    return _FORMS[kind] % texts
