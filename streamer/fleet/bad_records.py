"""Records that are no events: what a reader of a simulated stream must survive.

Each kind breaks one rule of the event contract and no other, so a reader that forgets
that rule counts a user whom it must not count.
"""

from __future__ import annotations

from enum import IntEnum

PADDING = 5000
"""Characters by which a user or an item is made too long."""


class Kind(IntEnum):
    """What a record is: an event (0) or, above, what is wrong with it."""

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


# The three texts of an event stand between quotes of the form.
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
    """The event of these texts (as in JSON, without quotes), damaged as `kind` says."""
    texts = {b"user": user, b"item": item, b"time": time, b"padding": b"x" * PADDING}
    return _FORMS[kind] % texts
