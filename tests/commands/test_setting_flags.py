"""Flags that are made from the declarations of settings."""

import re

import pytest
import typer
from typer.testing import CliRunner

from streamer.commands.setting_flags import GivenSettings, flags_of, with_setting_flags
from streamer.declarations import Section, flag, setting
from streamer.settings import SECTIONS, PrivacySettings, StreamSettings

FLAGS = [(section, name) for section, model in SECTIONS.items() for name in flags_of(model)]
PLANNED = {
    "epsilon": "epsilon",
    "delta": "delta",
    "contributions": "contributions",
    "neighbours": "neighbours",
    "period": "period_steps",
    "calibration": "calibration",
    "beta": "beta",
    "items": "items",
    "threshold": "threshold",
}


def option(name):
    return f"--{name.replace('_', '-')}"


@pytest.fixture
def help_of(run, monkeypatch):
    """The help of each option of a command, in one line."""
    monkeypatch.setenv("COLUMNS", "100")

    def read(command):
        words = " ".join(run(command, "--help").out.replace("│", " ").split())
        found = re.findall(r"(--[a-z-]+) (.*?)(?= --(?!no-)[a-z-]+ | ╰)", words)
        return {name: text.split("> ", 1)[1] for name, text in found}

    return read


def shown(section, name):
    """How help shows a setting's description and default."""
    field = section.model_fields[name]
    if field.default is None:
        return field.description
    default = option(f"no-{name}")[2:] if field.default is False else field.default
    return f"{field.description} [default: {default}]"


class TestTheFlagsOfRun:
    def test_each_marked_setting_is_one_with_its_description_and_default(self, help_of):
        help_texts = help_of("run")
        for section, name in FLAGS:
            assert help_texts[option(name)] == shown(SECTIONS[section], name)

    def test_those_of_the_contract_are_among_them(self):
        assert {option(name) for _, name in FLAGS} >= {
            *("--step-seconds", "--lateness-seconds", "--epoch", "--start", "--ahead-seconds"),
            *("--epsilon", "--delta", "--contributions", "--period-steps", "--refresh-steps"),
            *("--neighbours", "--calibration", "--threshold", "--beta", "--items", "--key-file"),
            *("--bootstrap-servers", "--create-topics"),
        }

    def test_only_choices_that_run_accepts_are_offered(self, run, monkeypatch):
        monkeypatch.setenv("COLUMNS", "100")
        help_texts = run("run", "--help").out
        assert "<horizon|exact|theorem>" in help_texts
        assert "fractional" not in help_texts


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("plan", PLANNED),
        ("audit", PLANNED),
        ("compare", {name: PLANNED[name] for name in ("epsilon", "delta", "neighbours", "beta")}),
    ],
)
def test_options_that_mean_a_setting_have_its_description_and_default(help_of, command, options):
    help_texts = help_of(command)
    for name, meant in options.items():
        assert help_texts[option(name)] == shown(PrivacySettings, meant)


def test_the_step_of_plan_is_as_long_as_that_of_the_service(help_of):
    assert help_of("plan")["--step"].endswith(f"[default: {StreamSettings().step_seconds}]")


class SoundSettings(Section):
    loudness: int = flag(11, "How loud it is.")
    is_mute: bool = flag(False, "Whether it makes no sound.")
    pitch: int = setting(440, "How high it is.")


class TestANewSetting:
    @pytest.fixture
    def given(self, monkeypatch):
        """What a command gets when it is called with these arguments."""
        monkeypatch.setitem(SECTIONS, "sound", SoundSettings)
        calls = []

        def command(own: int = 0, *, given: GivenSettings) -> None:
            calls.append((own, given["sound"]))

        app = typer.Typer()
        app.command()(with_setting_flags(command))

        def call(*arguments):
            result = CliRunner().invoke(app, list(arguments))
            return calls.pop() if result.exit_code == 0 else result.exit_code

        return call

    def test_needs_its_declaration_alone(self, given):
        assert given("--loudness", "3", "--is-mute", "--own", "1") == (
            1,
            {"loudness": 3, "is_mute": True},
        )

    def test_that_is_not_given_is_left_to_the_environment_and_the_file(self, given):
        assert given() == (0, {})

    @pytest.mark.parametrize(
        ("arguments", "settings"),
        [(["--loudness", "11"], {"loudness": 11}), (["--no-is-mute"], {"is_mute": False})],
    )
    def test_that_is_given_as_its_default_wins_all_the_same(self, given, arguments, settings):
        assert given(*arguments) == (0, settings)

    def test_that_is_not_marked_is_no_flag(self, given):
        assert given("--pitch", "3") == 2
