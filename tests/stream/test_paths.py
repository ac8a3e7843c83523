"""Paths and templates: what can be written, and what is refused in one sentence."""

import pytest

from streamer.errors import SettingError
from streamer.stream.paths import Every, Path, RecordField, parse_place, parse_template


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("user", ("user",)),
        ("context.device.id", ("context", "device", "id")),
        ('attributes."user.id"', ("attributes", "user.id")),
        ('"a.b"."c d".e', ("a.b", "c d", "e")),
        ("2.data", (2, "data")),
        ('"2".data', ("2", "data")),
        ("values.*.type", ("values", Every.EVERY, "type")),
        ('values."*"', ("values", "*")),
        ("user-id.größe.a b", ("user-id", "größe", "a b")),
    ],
)
def test_a_path(text, parts):
    assert parse_place("events.user", text) == Path(parts, text)


@pytest.mark.parametrize(
    ("text", "header"),
    [("$key", None), ("$header.user", "user"), ('$header."user.id"', "user.id")],
)
def test_a_field_of_the_record(text, header):
    assert parse_place("events.user", text) == RecordField(header)


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", 'a"b', '"a', '""', "a.{b}", "a.b}", '"a"b']
)
def test_what_is_no_path_is_refused_with_the_setting_and_an_example(text):
    with pytest.raises(SettingError) as refused:
        parse_place("events.user", text)
    assert str(refused.value).startswith(f"events.user is {text or 'empty'}: ")
    assert "such as context.device.id" in str(refused.value)


@pytest.mark.parametrize("text", ["$", "$offset", "$key.a", "$header", "$header.a.b", "$timestamp"])
def test_an_unknown_field_of_the_record_is_refused(text):
    with pytest.raises(SettingError, match=r"fields of the record are \$key, \$header"):
        parse_place("events.user", text)


def test_a_template_has_texts_around_its_fields():
    template = parse_template("events.item", 'x:{exception.type}@{"service.version"}')
    assert template.literals == ("x:", "@", "")
    assert [place.parts for place in template.places] == [
        ("exception", "type"),
        ("service.version",),
    ]


def test_a_quoted_name_in_a_template_may_have_braces():
    [place] = parse_template("events.item", '{"a{b}"}').places
    assert place.parts == ("a{b}",)


@pytest.mark.parametrize("text", ["{", "}", "a{b", "a}b", "{a}}", "{{a}}", "{a}{"])
def test_a_template_without_fields_or_with_stray_braces_is_refused(text):
    with pytest.raises(SettingError, match="a template needs fields in braces"):
        parse_template("events.item", text)


def test_a_template_with_an_empty_field_is_refused():
    with pytest.raises(SettingError, match=r"^events\.item is empty: "):
        parse_template("events.item", "a{}")
