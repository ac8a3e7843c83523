"""Settings from flags, the environment and a file; wrong ones are one sentence each."""

import os

import pytest

from streamer.config import load
from streamer.errors import ConfigurationError
from streamer.privacy.terms import Method, Neighbours
from streamer.settings import Settings

SECRET = "5ec4e7" * 11


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """No settings from where the tests run."""
    for name in [name for name in os.environ if name.startswith("STREAMER_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "settings.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def complaints(flags=None, path=None):
    with pytest.raises(ConfigurationError) as caught:
        load(flags or {}, path)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


class TestWhereTheyComeFrom:
    def test_the_defaults_are_those_of_the_contract(self):
        settings = load({})
        privacy = settings.privacy
        assert (privacy.epsilon, privacy.delta, privacy.contributions) == (1.0, 1e-6, 10)
        assert (settings.stream.step_seconds, privacy.period_steps) == (60.0, 1440)
        assert (privacy.neighbours, privacy.calibration) == (Neighbours.REPLACE, Method.HORIZON)
        assert settings.kafka.state_topic == "telemetry.state"

    @pytest.mark.parametrize(
        ("name", "value", "read"),
        [
            ("STREAMER_KAFKA__BOOTSTRAP_SERVERS", "a:1,b:2", lambda s: s.kafka.bootstrap_servers),
            *(
                (
                    f"STREAMER_KAFKA__{topic.upper()}_TOPIC",
                    "t",
                    lambda s, topic=topic: getattr(s.kafka, f"{topic}_topic"),
                )
                for topic in ("events", "hitters", "steps", "rejected", "state")
            ),
            ("STREAMER_STREAM__STEP_SECONDS", "2.5", lambda s: s.stream.step_seconds),
            ("STREAMER_STREAM__LATENESS_SECONDS", "2.5", lambda s: s.stream.lateness_seconds),
            ("STREAMER_STREAM__EPOCH", "2026-01-01T00:00:00Z", lambda s: s.stream.epoch),
            ("STREAMER_PRIVACY__EPSILON", "0.5", lambda s: s.privacy.epsilon),
            ("STREAMER_PRIVACY__DELTA", "1e-09", lambda s: s.privacy.delta),
            ("STREAMER_PRIVACY__CONTRIBUTIONS", "3", lambda s: s.privacy.contributions),
            ("STREAMER_PRIVACY__PERIOD_STEPS", "7", lambda s: s.privacy.period_steps),
            ("STREAMER_PRIVACY__REFRESH_STEPS", "4", lambda s: s.privacy.refresh_steps),
            ("STREAMER_PRIVACY__NEIGHBOURS", "add_remove", lambda s: s.privacy.neighbours.value),
            ("STREAMER_PRIVACY__CALIBRATION", "theorem", lambda s: s.privacy.calibration.value),
            ("STREAMER_PRIVACY__THRESHOLD", "99", lambda s: s.privacy.threshold),
        ],
    )
    def test_the_names_that_are_fixed(self, monkeypatch, name, value, read):
        if name.endswith("NEIGHBOURS"):
            value = next(one.value for one in Neighbours if one is not Neighbours.REPLACE)
        monkeypatch.setenv(name, value)
        assert str(read(load({}))) == value

    def test_a_file(self, file):
        settings = load({}, file("stream:\n  step_seconds: 5\nprivacy: {delta: 1e-7}\n"))
        assert settings.stream.step_seconds == 5.0
        assert settings.privacy.delta == 1e-7

    def test_a_time_in_a_file_needs_no_quotes(self, file):
        settings = load({}, file("stream:\n  epoch: 2026-01-01T00:00:00Z\n"))
        assert settings.stream.epoch == "2026-01-01T00:00:00Z"

    @pytest.mark.parametrize("content", ["", "# nothing\n", "{}"])
    def test_an_empty_file_changes_nothing(self, file, content):
        assert load({}, file(content)).model_dump() == load({}).model_dump()

    def test_flags_win_over_the_environment_and_that_over_the_file(self, file, monkeypatch):
        path = file("privacy: {epsilon: 3, contributions: 3, items: 3, beta: 0.3}\n")
        monkeypatch.setenv("STREAMER_PRIVACY__EPSILON", "2")
        monkeypatch.setenv("STREAMER_PRIVACY__CONTRIBUTIONS", "2")
        privacy = load({"privacy": {"epsilon": 1.5, "items": None}}, path).privacy
        assert (privacy.epsilon, privacy.contributions) == (1.5, 2)
        assert (privacy.items, privacy.beta) == (3, 0.3)

    def test_a_section_of_the_environment_may_be_json(self, monkeypatch):
        monkeypatch.setenv("STREAMER_PRIVACY", '{"epsilon": 2}')
        assert load({}).privacy.epsilon == 2.0

    def test_variables_of_kubernetes_are_not_ours(self, monkeypatch):
        monkeypatch.setenv("STREAMER_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv("STREAMER_PORT_8080_TCP_ADDR", "10.0.0.1")
        monkeypatch.setenv("STREAMER_KAFKA_SERVICE_PORT", "9092")
        assert load({}).model_dump() == Settings().model_dump()


class TestWrongOnes:
    def test_a_misspelt_section_of_the_environment(self, monkeypatch):
        monkeypatch.setenv("STREAMER_PRIVCY__EPSILON", "2")
        [sentence] = complaints()
        assert sentence.startswith("STREAMER_PRIVCY__EPSILON is not a setting")

    def test_a_misspelt_name_of_the_environment(self, monkeypatch):
        monkeypatch.setenv("STREAMER_PRIVACY__EPSLON", "2")
        [sentence] = complaints()
        assert sentence.startswith("privacy.epslon is not a setting")

    @pytest.mark.parametrize(
        ("content", "named"),
        [("privcy: {epsilon: 1}", "privcy"), ("privacy: {epslon: 1}", "privacy.epslon")],
    )
    def test_a_misspelt_name_in_the_file(self, file, content, named):
        [sentence] = complaints(path=file(content))
        assert sentence.startswith(f"{named} is not a setting")

    def test_each_wrong_value_is_a_sentence_with_its_name(self, monkeypatch):
        monkeypatch.setenv("STREAMER_PRIVACY__EPSILON", "much")
        monkeypatch.setenv("STREAMER_STREAM__STEP_SECONDS", "0")
        found = complaints({"privacy": {"neighbours": "near"}})
        assert [sentence.split(":")[0] for sentence in found] == [
            "stream.step_seconds is 0",
            "privacy.epsilon is much",
            "privacy.neighbours is near",
        ]

    def test_a_template_of_links_without_a_place_for_the_item(self):
        assert complaints({"http": {"link_template": "https://example.com/"}}) == [
            "http.link_template is https://example.com/: it must be an http or https address with "
            "{item} after the host, such as https://crashes.example.com/?q={item}"
        ]

    @pytest.mark.parametrize("value", ["nan", "inf", "-1", "", "1e400"])
    def test_invalid_durations(self, monkeypatch, value):
        monkeypatch.setenv("STREAMER_STREAM__LATENESS_SECONDS", value)
        [sentence] = complaints()
        assert sentence.startswith(f"stream.lateness_seconds is {value or 'empty'}")

    def test_a_section_of_the_environment_that_is_not_json(self, monkeypatch):
        monkeypatch.setenv("STREAMER_PRIVACY", "zz")
        [sentence] = complaints()
        assert "privacy" in sentence

    @pytest.mark.parametrize("value", ["3", "[]", '"text"'])
    def test_a_section_of_the_environment_that_is_not_an_object(self, monkeypatch, value):
        monkeypatch.setenv("STREAMER_PRIVACY", value)
        [sentence] = complaints()
        assert sentence == "STREAMER_PRIVACY must be a JSON object with settings of privacy"

    @pytest.mark.parametrize("content", ["privacy: 5", "privacy: [epsilon]", "privacy:"])
    def test_a_section_of_the_file_that_is_not_a_mapping(self, file, content):
        [sentence] = complaints(path=file(content))
        assert sentence.endswith("privacy must be a section with settings")

    @pytest.mark.parametrize("content", ["just text", "- a\n- b", "5"])
    def test_a_file_without_sections(self, file, content):
        [sentence] = complaints(path=file(content))
        assert "it must contain sections" in sentence

    @pytest.mark.parametrize(("content", "named"), [("1: {epsilon: 2}", "1"), ("yes: {}", "True")])
    def test_a_section_whose_name_is_not_text(self, file, content, named):
        [sentence] = complaints(path=file(content))
        assert sentence.startswith(f"{named} is not a setting")

    def test_a_name_that_is_not_text(self, file):
        [sentence] = complaints(path=file("privacy: {1: 2}"))
        assert sentence.startswith("privacy.1 ")

    @pytest.mark.parametrize("content", ["a: [", "a: b: c", "\t", b"\xff\xfe\x00", "a: \x01"])
    def test_a_file_that_is_not_yaml(self, file, content):
        [sentence] = complaints(path=file(content))
        assert "it is not valid YAML" in sentence

    def test_a_duplicate_name(self, file):
        [sentence] = complaints(path=file("privacy:\n  epsilon: 1\n  delta: 0.1\n  epsilon: 2\n"))
        assert sentence == "config sets epsilon twice: remove one of them"

    @pytest.mark.parametrize("text", ["true", "yes", "off"])
    def test_a_boolean_where_a_number_belongs(self, file, text):
        """It would count as 1 or 0."""
        [sentence] = complaints(path=file(f"privacy: {{epsilon: {text}}}"))
        shown = text != "off"
        assert sentence == (
            f"privacy.epsilon is {shown}: it must not be a boolean; "
            "YAML reads yes, no, on and off as booleans"
        )

    def test_an_empty_name(self):
        for name in ("events_topic", "transactional_id", "group_id"):
            [sentence] = complaints({"kafka": {name: ""}})
            assert sentence.startswith(f"kafka.{name} is empty: ")

    def test_one_underscore_for_two(self, monkeypatch):
        monkeypatch.setenv("STREAMER_PRIVACY_EPSILON", "0.1")
        [sentence] = complaints()
        assert sentence == (
            "STREAMER_PRIVACY_EPSILON is not a setting: write STREAMER_PRIVACY__EPSILON, "
            "with two underscores"
        )

    def test_what_kubernetes_sets_for_a_service_is_ignored(self, monkeypatch):
        monkeypatch.setenv("STREAMER_HTTP_PORT", "tcp://10.0.0.1:8080")
        monkeypatch.setenv("STREAMER_HTTP_SERVICE_HOST", "10.0.0.1")
        assert load({}).http.port == 8080

    def test_a_missing_file(self, tmp_path):
        [sentence] = complaints(path=tmp_path / "no.yaml")
        assert sentence.endswith("No such file or directory")

    def test_a_directory(self, tmp_path):
        [sentence] = complaints(path=tmp_path)
        assert sentence.endswith("Is a directory")


class TestSecrets:
    NAMES = ("privacy.key", "kafka.sasl_password", "kafka.ssl_key_password")

    @pytest.mark.parametrize("name", NAMES)
    def test_they_are_masked(self, name):
        section, setting = name.split(".")
        settings = load({section: {setting: SECRET}})
        assert getattr(getattr(settings, section), setting).get_secret_value() == SECRET
        assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        "form", ["{section}: {{{setting}: [{secret}]}}", "{section}: {secret}"]
    )
    def test_wrong_ones_are_not_shown(self, file, name, form):
        section, setting = name.split(".")
        text = form.format(section=section, setting=setting, secret=SECRET)
        [sentence] = complaints(path=file(text))
        assert section in sentence
        assert SECRET not in sentence

    @pytest.mark.parametrize("value", [SECRET, f'"{SECRET}"', f'["{SECRET}"]'])
    def test_wrong_ones_of_the_environment_are_not_shown(self, monkeypatch, value):
        monkeypatch.setenv("STREAMER_PRIVACY", value)
        assert SECRET not in " ".join(complaints())

    def test_a_broken_file_is_not_shown(self, file):
        [sentence] = complaints(path=file(f"privacy: {{key: {SECRET}\nkafka: ["))
        assert SECRET not in sentence
