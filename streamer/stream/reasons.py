"""Why a record, or an event in it, is rejected."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The reasons, as they stand in metrics and in the rejected topic."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_USER = "missing_user"
    MISSING_ITEM = "missing_item"
    WRONG_TYPE = "wrong_type"
    USER_TOO_LONG = "user_too_long"
    ITEM_TOO_LONG = "item_too_long"
    MISSING_TIME = "missing_time"
    BAD_TIME = "bad_time"
    TIME_AND_STEP = "time_and_step"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    TIME_AHEAD = "time_ahead"
    ARRIVAL_AHEAD = "arrival_ahead"
