"""From settings to the parts of a run: timing, terms, key, intake."""

from __future__ import annotations

import logging
import secrets
import stat
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields
from pathlib import Path

from streamer.errors import SettingError
from streamer.ledger.contract import Life
from streamer.ledger.directory import KEY, JournalDirectory
from streamer.privacy.terms import Attention
from streamer.privacy.threshold import default_attention
from streamer.settings import PrivacySettings, StreamSettings
from streamer.stream.decoding import Decoder
from streamer.stream.fate import FateRule
from streamer.stream.file_range import FileRange
from streamer.stream.intake import Intake
from streamer.stream.item_list import check_items
from streamer.stream.periods import Terms
from streamer.stream.pseudonyms import KEY_BYTES, Pseudonyms
from streamer.stream.schedule import Schedule
from streamer.stream.timing import LATEST_MOMENT, StepTiming, format_rfc3339, parse_rfc3339

_log = logging.getLogger(__name__)


def timing_of(settings: StreamSettings) -> StepTiming:
    return StepTiming(
        length_ms=_milliseconds("stream.step_seconds", settings.step_seconds),
        epoch_ms=_moment("stream.epoch", settings.epoch),
        lateness_ms=_milliseconds("stream.lateness_seconds", settings.lateness_seconds),
    )


def start_of(settings: StreamSettings, timing: StepTiming) -> int | None:
    """The first step of a new stream, if the settings name a moment in it."""
    if settings.start is None:
        return None
    return timing.step_at(_moment_after_epoch("stream.start", settings.start, timing))


def step_from(name: str, text: str, timing: StepTiming) -> int:
    """The step that begins exactly at a time that the user wrote."""
    moment = _moment_after_epoch(name, text, timing)
    step = timing.step_at(moment)
    if timing.start(step) != moment:
        around = (timing.start(step), timing.end(step))
        nearest = " and ".join(format_rfc3339(each) for each in around if each <= LATEST_MOMENT)
        raise SettingError(name, text, f"it must be the start of a step; the nearest: {nearest}")
    return step


def _moment_after_epoch(name: str, text: str, timing: StepTiming) -> int:
    moment = _moment(name, text)
    if moment < timing.epoch_ms:
        epoch = format_rfc3339(timing.epoch_ms)
        raise SettingError(name, text, f"it must not be before stream.epoch, which is {epoch}")
    return moment


def terms_of(settings: PrivacySettings, stream: StreamSettings) -> Terms:
    """The terms, planned once here so that wrong ones are refused at the start."""
    values = {**settings.model_dump(), **stream.model_dump()}
    values["declared_items"] = declared_of(settings, stream)
    values["attention"] = _attention(settings)
    terms = Terms(**{field.name: values[field.name] for field in fields(Terms)})
    terms.plan()
    return terms


def _attention(settings: PrivacySettings) -> Attention:
    """As set, or the best that the calibration covers."""
    attention = settings.attention or default_attention(settings.calibration)
    if attention is Attention.CHANGES and settings.refresh_steps != 1:
        raise SettingError(
            "privacy.refresh_steps",
            settings.refresh_steps,
            "with privacy.attention changes no item rests; remove it (privacy.value_every_steps "
            "says how often a lasting item gets a value), or set privacy.attention to every_step",
        )
    if attention is Attention.EVERY_STEP and settings.value_every_steps is not None:
        raise SettingError(
            "privacy.value_every_steps",
            settings.value_every_steps,
            "with privacy.attention every_step every item is asked for its value in every step; "
            "remove it, or set privacy.attention to changes",
        )
    return attention


def declared_of(settings: PrivacySettings, stream: StreamSettings) -> tuple[str, ...]:
    """The declared items, from a file or from the settings."""
    if stream.items_file is not None and settings.declared_items:
        raise SettingError(
            "stream.items_file",
            stream.items_file,
            "privacy.declared_items is set too: use only one",
        )
    longest = stream.max_item_bytes
    if stream.items_file is None:
        items = check_items("privacy.declared_items", "entry", settings.declared_items, longest)
    else:
        items = check_items("stream.items_file", "line", _read_lines(stream.items_file), longest)
    if not items and not settings.open_domain:
        raise SettingError(
            "privacy.open_domain",
            "false",
            "nothing could be reported; declare items with stream.items_file or "
            "privacy.declared_items, or set it to true",
        )
    return items


def schedule_of(settings: StreamSettings, skew_seconds: float = 0.0) -> Schedule:
    """When steps are due, and when their results leave. `skew_seconds`: kafka.skew_seconds,
    where arrivals are measured by a broker's clock."""
    return Schedule(
        timing_of(settings),
        _milliseconds("kafka.skew_seconds", skew_seconds),
        _milliseconds("stream.publish_delay_seconds", settings.publish_delay_seconds),
    )


def life_of(timing: StepTiming) -> Life:
    return Life(timing.length_ms, timing.epoch_ms)


def intake_of(
    settings: StreamSettings,
    timing: StepTiming,
    pseudonyms: Pseudonyms,
    decoder: Decoder,
    file_range: FileRange | None = None,
) -> Intake:
    return Intake(decoder, rule_of(settings, timing), pseudonyms, file_range)


def rule_of(settings: StreamSettings, timing: StepTiming) -> FateRule:
    return FateRule(timing, _milliseconds("stream.ahead_seconds", settings.ahead_seconds))


def key_of(settings: PrivacySettings) -> bytes | None:
    """The key from the settings, if there is one."""
    if settings.key is not None and settings.key_file is not None:
        raise SettingError(
            "privacy.key_file", settings.key_file, "privacy.key is set too: use only one"
        )
    if settings.key is not None:
        return _from_hex("privacy.key", settings.key.get_secret_value())
    if settings.key_file is not None:
        return _read_key(settings.key_file)
    return None


def pseudonyms_of(settings: PrivacySettings, directory: JournalDirectory | None) -> Pseudonyms:
    """With the key from the settings, or the one that is stored with a file journal.

    A run without either gets a random key.
    """
    key = key_of(settings)
    if settings.key_file is not None and settings.key_file.stat().st_mode & stat.S_IROTH:
        _log.warning(
            "privacy.key_file is %s: every user of this machine can read it; run chmod 600 on it",
            settings.key_file,
        )
    if key is None and directory is not None:
        key = _from_hex(f"the journal's key {directory.path / KEY}", directory.key())
    return Pseudonyms(key or secrets.token_bytes(KEY_BYTES))


@dataclass(frozen=True, slots=True)
class Held:
    """A locked journal directory: its database, and the pseudonyms of its users."""

    database: Path | None
    pseudonyms: Pseudonyms


def hold_directory(path: Path | None, settings: PrivacySettings, at_end: AsyncExitStack) -> Held:
    """Lock a journal's directory until the end, so that no other process writes to it. Without
    a path, nothing is stored."""
    if path is None:
        return Held(None, pseudonyms_of(settings, None))
    directory = JournalDirectory(path)
    at_end.callback(directory.close)
    return Held(directory.database, pseudonyms_of(settings, directory))


def _moment(name: str, text: str) -> int:
    try:
        return parse_rfc3339(text)
    except ValueError:
        raise SettingError(name, text, "it must be a time such as 2026-01-01T00:00:00Z") from None


def _milliseconds(setting: str, seconds: float) -> int:
    whole = round(seconds * 1000)
    if abs(whole - seconds * 1000) > 1e-6:
        raise SettingError(setting, seconds, "it must be a whole number of milliseconds")
    return whole


def _read_lines(path: Path) -> Sequence[str]:
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise SettingError("stream.items_file", path, f"{error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError("stream.items_file", path, "it must be a text file in UTF-8") from None
    # An item may contain every other character that ends a line for some programs.
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else ()


def _read_key(path: Path) -> bytes:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise SettingError("privacy.key_file", path, f"{error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    return _from_hex("privacy.key_file", text, str(path), "contain")


def _from_hex(setting: str, text: str, shown: str = "invalid", verb: str = "be") -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingError(
            setting, shown, f"it must {verb} 64 hex digits; create one with: openssl rand -hex 32"
        )
    return key
