"""Each setting is declared once; what is derived from a declaration follows it."""

from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

from streamer.settings import SECTIONS, HttpSettings, PrivacySettings, Settings, StreamSettings
from streamer.stream.periods import Terms

ALL = [
    pytest.param(field, id=f"{section}.{name}")
    for section, model in SECTIONS.items()
    for name, field in model.model_fields.items()
]
KEYS = {"key", "key_file"}


def test_the_sections_are_those_of_the_settings():
    assert {name: type(section) for name, section in Settings()} == SECTIONS


@pytest.mark.parametrize("field", ALL)
def test_every_setting_is_described_in_a_sentence_of_one_line(field):
    assert field.description.endswith(".")
    assert "\n" not in field.description


@pytest.mark.parametrize("model", SECTIONS.values())
def test_every_default_is_a_value_that_would_be_accepted(model):
    assert model(**model().model_dump()) == model()


def test_every_privacy_setting_but_the_keys_is_a_term_of_a_period():
    named = {field.name for field in fields(Terms)} - {"step_seconds", "items_per_step"}
    assert named == set(PrivacySettings.model_fields) - KEYS


@pytest.mark.parametrize("name", [field.name for field in fields(Terms)])
def test_a_term_has_the_type_of_its_setting(name):
    settings = PrivacySettings.model_fields | StreamSettings.model_fields
    declared, term = settings[name].annotation, get_type_hints(Terms)[name]
    if get_origin(declared) is Literal:  # some of an enumeration's members
        assert all(isinstance(choice, term) for choice in get_args(declared))
    else:
        assert declared in (term, term | None)  # chosen at the start, if it is not given


class TestTheTemplateOfLinks:
    @pytest.mark.parametrize(
        "template",
        [
            "https://crashes.example.com/?q={item}",
            "http://localhost:3000/{item}/{item}#{item}",
            "https://crashes.example.com/é?a={b}&q={item}",
        ],
    )
    def test_it_is_an_address_with_a_place_for_the_item(self, template):
        assert HttpSettings(link_template=template).link_template == template

    @pytest.mark.parametrize(
        "template",
        [
            "",
            "{item}",
            "https://crashes.example.com/",
            "https://crashes.example.com/?q={Item}",
            "javascript:alert({item})",
            "ftp://crashes.example.com/{item}",
            "//crashes.example.com/{item}",
            "https:///{item}",
            "https://[crashes/{item}",
            "https://crashes.example.com/?q={item}\n",
            "https://crashes.example.com/? q={item}",
            # The item would decide where the link leads.
            "https://{item}/",
            "https://{item}.example.com/{item}",
            "https://crashes.example.com\\@{item}",
        ],
    )
    def test_anything_else_is_refused(self, template):
        with pytest.raises(ValidationError, match="it must be an http or https address with"):
            HttpSettings(link_template=template)
