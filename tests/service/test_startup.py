"""Settings become the parts of a run, or one sentence that names the wrong one."""

import pytest

from streamer.config import load
from streamer.errors import SettingError
from streamer.ledger.contract import Life
from streamer.ledger.directory import KEY, JournalDirectory
from streamer.service.event_format import decoder_of
from streamer.service.startup import (
    intake_of,
    key_of,
    life_of,
    pseudonyms_of,
    rule_of,
    schedule_of,
    start_of,
    terms_of,
    timing_of,
)
from streamer.settings import PrivacySettings, Settings, StreamSettings
from streamer.stream.pseudonyms import Pseudonyms
from streamer.stream.schedule import Schedule
from streamer.stream.timing import StepTiming

HEX = "0f" * 32


class TestSchedule:
    def test_results_leave_after_lateness_skew_and_delay(self):
        stream = StreamSettings(step_seconds=1.0, lateness_seconds=0.5, publish_delay_seconds=0.125)
        assert schedule_of(stream, 0.05) == Schedule(StepTiming(1000, 0, 500), 50, 125)
        assert schedule_of(stream).skew_ms == 0

    def test_parts_of_milliseconds_are_refused(self):
        with pytest.raises(SettingError, match=r"stream\.publish_delay_seconds is 0\.0001"):
            schedule_of(StreamSettings(publish_delay_seconds=0.0001))
        with pytest.raises(SettingError, match=r"kafka\.skew_seconds is 0\.0001"):
            schedule_of(StreamSettings(), 0.0001)


class TestStart:
    def test_a_stream_begins_with_the_step_that_starts_then(self):
        settings = StreamSettings(start="1970-01-01T00:00:02Z")
        assert start_of(settings, StepTiming(1000, epoch_ms=1000)) == 1

    def test_without_the_setting_nothing_is_said(self):
        assert start_of(StreamSettings(), StepTiming(1000)) is None

    def test_what_is_no_moment_is_refused(self):
        with pytest.raises(SettingError, match=r"stream\.start is now.*2026-01-01T00:00:00Z"):
            start_of(StreamSettings(start="now"), StepTiming(1000))

    def test_a_moment_before_the_epoch_is_refused(self):
        settings = StreamSettings(start="1970-01-01T00:00:00Z")
        with pytest.raises(SettingError, match=r"stream\.start is .*before stream\.epoch"):
            start_of(settings, StepTiming(1000, epoch_ms=1))

    def test_a_moment_within_a_step_names_that_step(self):
        assert start_of(StreamSettings(start="1970-01-01T00:00:02.5Z"), StepTiming(1000)) == 2


class TestTiming:
    def test_it_is_in_milliseconds(self):
        made = timing_of(
            StreamSettings(step_seconds=0.25, lateness_seconds=1.5, epoch="1970-01-01T01:00:00Z")
        )
        assert made == StepTiming(250, 3_600_000, 1500)
        assert life_of(made) == Life(250, 3_600_000)

    @pytest.mark.parametrize("setting", ["step_seconds", "lateness_seconds"])
    def test_parts_of_milliseconds_are_refused(self, setting):
        with pytest.raises(SettingError, match=rf"stream\.{setting} is 1\.0005.*milliseconds"):
            timing_of(StreamSettings(**{setting: 1.0005}))

    def test_a_length_that_floats_cannot_hold_exactly_is_still_whole(self):
        assert timing_of(StreamSettings(step_seconds=0.1 + 0.2)).length_ms == 300

    def test_parts_of_milliseconds_ahead_are_refused(self):
        with pytest.raises(SettingError, match=r"stream\.ahead_seconds is 0\.0001"):
            rule_of(StreamSettings(ahead_seconds=0.0001), StepTiming(1000))

    @pytest.mark.parametrize("epoch", ["2026-01-01T00:00:00", "2026-01-01", "now", ""])
    def test_an_epoch_without_an_offset_is_refused(self, epoch):
        with pytest.raises(SettingError, match=r"stream\.epoch is .*such as 2026-01-01T00:00:00Z"):
            timing_of(StreamSettings(epoch=epoch))


class TestTerms:
    def test_they_are_those_of_the_settings(self):
        given = load({"privacy": {"epsilon": 2, "value_every_steps": 3, "users": 7}})
        made = terms_of(given.privacy, StreamSettings(step_seconds=5))
        assert (made.epsilon, made.value_every_steps, made.threshold) == (2.0, 3, None)
        assert (made.users, made.step_seconds) == (7, 5.0)

    @pytest.mark.parametrize(
        ("calibration", "attention"),
        [("horizon", "changes"), ("exact", "every_step"), ("theorem", "every_step")],
    )
    def test_attention_is_the_best_that_the_calibration_covers(self, calibration, attention):
        given = PrivacySettings(calibration=calibration)
        assert terms_of(given, StreamSettings()).attention == attention

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"refresh_steps": 3}, "privacy.refresh_steps is 3: with privacy.attention changes"),
            (
                {"attention": "every_step", "value_every_steps": 5},
                "privacy.value_every_steps is 5: with privacy.attention every_step",
            ),
            ({"calibration": "exact", "attention": "changes"}, "attention is changes"),
            ({"value_every_steps": 0}, "value_every_steps is 0"),
        ],
    )
    def test_settings_that_contradict_the_attention_are_named(self, wrong, message):
        with pytest.raises(SettingError, match=message):
            terms_of(PrivacySettings(**wrong), StreamSettings())

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"epsilon": 0}, {"delta": 1.5}, {"contributions": 0}, {"refresh_steps": 0}),
            *({"beta": 2}, {"users": -1}),
        ],
    )
    def test_wrong_ones_are_named(self, wrong):
        [name] = wrong
        with pytest.raises(SettingError, match=name):
            terms_of(PrivacySettings(**wrong), StreamSettings())


class TestKey:
    def test_it_comes_from_the_settings(self):
        assert key_of(PrivacySettings(key=HEX)) == bytes.fromhex(HEX)
        assert key_of(PrivacySettings()) is None

    def test_it_comes_from_a_file(self, tmp_path):
        (tmp_path / "key").write_text(f"{HEX}\n")
        assert key_of(PrivacySettings(key_file=tmp_path / "key")) == bytes.fromhex(HEX)

    @pytest.mark.parametrize("content", [b"", b"0f" * 31, b"zz" * 32, b"\xff" * 64])
    def test_a_file_that_holds_none_is_refused_without_being_shown(self, tmp_path, content):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(SettingError, match=r"privacy\.key_file.*64 hex digits") as caught:
            key_of(PrivacySettings(key_file=tmp_path / "key"))
        assert "zz" not in str(caught.value)

    def test_a_file_that_is_missing_is_refused(self, tmp_path):
        with pytest.raises(SettingError, match=r"privacy\.key_file is .*No such file"):
            key_of(PrivacySettings(key_file=tmp_path / "no"))

    def test_two_are_one_too_many(self, tmp_path):
        with pytest.raises(SettingError, match="use only one"):
            key_of(PrivacySettings(key=HEX, key_file=tmp_path))

    def test_without_one_the_journals_own_is_used(self, tmp_path):
        directory = JournalDirectory(tmp_path)
        one = pseudonyms_of(PrivacySettings(), directory)
        two = pseudonyms_of(PrivacySettings(), directory)
        assert one.fingerprint == two.fingerprint
        assert pseudonyms_of(PrivacySettings(key=HEX), directory).fingerprint != one.fingerprint
        directory.close()

    def test_a_given_one_makes_no_file(self, tmp_path):
        directory = JournalDirectory(tmp_path)
        pseudonyms_of(PrivacySettings(key=HEX), directory)
        assert not (tmp_path / KEY).exists()
        directory.close()

    def test_a_damaged_one_in_the_journal_is_named(self, tmp_path):
        (tmp_path / KEY).write_text("0f0f\n")
        directory = JournalDirectory(tmp_path)
        with pytest.raises(SettingError, match="64 hex digits") as caught:
            pseudonyms_of(PrivacySettings(), directory)
        assert str(tmp_path / KEY) in str(caught.value)
        directory.close()

    def test_a_run_that_keeps_nothing_has_one_for_itself(self):
        one, two = (pseudonyms_of(PrivacySettings(), None) for _ in range(2))
        assert one.fingerprint != two.fingerprint


def test_the_intake_has_the_limits_of_the_settings():
    stream = StreamSettings(max_record_bytes=100, max_user_bytes=2, max_item_bytes=3)
    timing = StepTiming(1000)
    decoder = decoder_of(Settings(stream=stream), timing, from_kafka=True)
    limits = intake_of(stream, timing, Pseudonyms(bytes.fromhex(HEX)), decoder)._decoder._limits
    assert (limits.record_bytes, limits.user_bytes, limits.item_bytes) == (100, 2, 3)


class TestKeyFiles:
    @pytest.mark.parametrize("content", [b"", b"abc", b"\xff", b"0f" * 31])
    def test_one_without_a_key_is_named(self, tmp_path, content):
        path = tmp_path / "key"
        path.write_bytes(content)
        with pytest.raises(SettingError) as complaint:
            key_of(PrivacySettings(key_file=path))
        assert str(complaint.value) == (
            f"privacy.key_file is {path}: it must contain 64 hex digits; create one with: "
            "openssl rand -hex 32"
        )

    @pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o440, False), (0o644, True)])
    def test_one_that_everybody_can_read_is_spoken_of(self, tmp_path, caplog, mode, told):
        path = tmp_path / "key"
        path.write_text(HEX)
        path.chmod(mode)
        pseudonyms_of(PrivacySettings(key_file=path), None)
        assert [record.getMessage() for record in caplog.records] == told * [
            f"privacy.key_file is {path}: every user of this machine can read it; run chmod "
            "600 on it"
        ]
