"""The errors that the product raises on purpose.

    StreamerError
    ├── SettingError    a value somebody chose is not allowed; says which one and what is
    ├── OutputError     a place to write results to cannot be written
    └── MonitorError    a monitor was asked for something that would break its guarantee

The command line turns each into one sentence: a setting or an output ends with
exit code 2, everything else with 1. No other room defines exceptions of its own.
"""

from __future__ import annotations


class StreamerError(Exception):
    """Anything that the product refuses or cannot go on with; the text is for its user."""


class SettingError(StreamerError):
    """A setting is out of range. The message names the setting and what is allowed."""

    def __init__(self, setting: str, value: object, allowed: str) -> None:
        super().__init__(f"{setting} is {value}: {allowed}")
        self.setting = setting


class OutputError(StreamerError):
    """A file that the user named cannot be written."""


class MonitorError(StreamerError):
    """Going on would release something that the privacy guarantee does not cover."""
