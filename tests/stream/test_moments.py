"""Many times at once are read exactly as each of them alone, in all forms of RFC 3339."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.stream.moments import parse_usual
from streamer.stream.timing import parse_rfc3339

USUAL = st.datetimes().map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}")
USUAL = USUAL.map(lambda text: f"{text[:-3].zfill(23)}Z")
DIGITS = st.lists(st.integers(0, 9), min_size=17, max_size=17).map(
    lambda d: "{}{}{}{}-{}{}-{}{}T{}{}:{}{}:{}{}.{}{}{}Z".format(*d)
)


def alone(text):
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


@given(st.lists(st.one_of(USUAL, DIGITS), max_size=20))
def test_what_is_read_is_what_each_text_says_alone(texts):
    moments, readable = parse_usual(texts)
    expected = [alone(text) for text in texts]
    assert readable.tolist() == [moment is not None for moment in expected]
    assert [
        moment if read else None
        for moment, read in zip(moments.tolist(), readable.tolist(), strict=True)
    ] == expected


@given(st.lists(st.tuples(USUAL, st.integers(0, 23), st.characters()), min_size=1, max_size=5))
def test_a_text_with_a_character_of_another_kind_is_read_by_nobody_or_alike(cases):
    texts = [text[:place] + character + text[place + 1 :] for text, place, character in cases]
    moments, readable = parse_usual(texts)
    for text, moment, read in zip(texts, moments.tolist(), readable.tolist(), strict=True):
        if read:
            assert moment == parse_rfc3339(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29T00:00:00.000Z",
        "1900-02-29T00:00:00.000Z",
        "2026-04-31T00:00:00.000Z",
        "2026-00-01T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-01-00T00:00:00.000Z",
        "2026-01-01T24:00:00.000Z",
        "2026-01-01T00:60:00.000Z",
        "2026-01-01T00:00:60.000Z",
        "0000-01-01T00:00:00.000Z",
        "2026-01-01t00:00:00.000Z",
        "2026-01-01T00:00:00,000Z",
        "2026/01/01T00:00:00.000Z",
        "2026-01-01T00:00:00.0/0Z",
        "2026-01-01T00:00:00.0:0Z",
    ],
)
def test_what_is_no_time_of_this_form_is_not_read(text):
    assert parse_usual(["2026-01-01T00:00:00.000Z", text])[1].tolist() == [True, False]


@pytest.mark.parametrize("text", ["2000-02-29T23:59:59.999Z", "2024-12-31T00:00:00.001Z"])
def test_days_of_leap_years_are_read(text):
    moments, readable = parse_usual([text])
    assert readable.all()
    assert moments.tolist() == [parse_rfc3339(text)]


FRACTIONS = st.integers(0, 9).flatmap(
    lambda size: st.text("0123456789", min_size=size, max_size=size).map(
        lambda digits: f".{digits}" if digits else ""
    )
)
OFFSETS = st.builds(
    "{}{:02d}:{:02d}".format, st.sampled_from("+-"), st.integers(0, 25), st.integers(0, 61)
)
FORMS = st.builds(
    lambda moment, between, fraction, end: f"{moment[:10]}{between}{moment[11:19]}{fraction}{end}",
    USUAL | DIGITS,
    st.sampled_from("T "),
    FRACTIONS,
    st.just("Z") | OFFSETS,
)


@given(st.lists(FORMS, max_size=8))
def test_all_forms_may_be_mixed(texts):
    moments, readable = parse_usual(texts)
    expected = [alone(text) for text in texts]
    assert readable.tolist() == [moment is not None for moment in expected]
    assert [moment for moment in expected if moment is not None] == moments[readable].tolist()


@given(st.lists(st.tuples(FORMS, st.integers(0, 34), st.text(max_size=2)), min_size=1, max_size=5))
def test_a_damaged_text_of_any_form_is_read_by_nobody_or_alike(cases):
    texts = [text[:place] + put + text[place + 1 :] for text, place, put in cases]
    moments, readable = parse_usual(texts)
    for text, moment, read in zip(texts, moments.tolist(), readable.tolist(), strict=True):
        if read:
            assert moment == parse_rfc3339(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Z",
        "2026",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.123",
        "2026-01-01T00:00:00.1234567890Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+00:60",
        "2026-01-01T00:00:00+0000",
        "2026-01-01T00:00:00 +00:00",
        "2026-01-01T00:00:0 0Z",
        "2026-01-01T00:00:00.1x3Z",
        "2026-01-01T00:00:00.123x56Z",
        "2026-01-01T00:00:00.+00:00",
        "2026-01-01T00:00:00.12+00:00Z",
    ],
)
def test_a_text_that_is_not_read_changes_no_other(text):
    good = "2026-01-01T00:00:12.345678Z"
    moments, readable = parse_usual([good, text, good])
    assert readable.tolist() == [True, False, True]
    assert moments[[0, 2]].tolist() == [1_767_225_612_345] * 2


@pytest.mark.parametrize("text", ["2026-01-01T00:00:12\nZ", "2026-01-01T00:00:12é"])
def test_a_newline_or_a_foreign_letter_leaves_all_unread(text):
    assert not parse_usual(["2026-01-01T00:00:00Z", text])[1].any()


def test_no_texts_are_no_moments():
    moments, readable = parse_usual([])
    assert (len(moments), len(readable), moments.dtype) == (0, 0, np.int64)
