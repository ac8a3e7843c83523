"""The errors that the product raises on purpose.

    StreamerError               exit code 1
    ├── SettingError            2   a setting is out of range; names it and the allowed range
    ├── ConfigurationError      2   several invalid settings, one sentence each
    ├── InputError              2   a source cannot be read
    ├── OutputError             2   an output cannot be written
    ├── UnusableJournalError    2   a journal cannot be used, and is not modified
    ├── JournalWriteError       1   a journal could not be written; nothing was published
    ├── PublishError            1   a decision could not be published yet
    ├── UnreachableError        1   a source or broker does not answer; will be retried
    ├── FencedError             3   a newer instance has taken over
    └── MonitorError            1   continuing would break the guarantee

The command line prints each as one sentence. No other package defines exceptions.
"""

from __future__ import annotations


class StreamerError(Exception):
    """Any error that streamer raises on purpose; the message is written for the user."""

    exit_code = 1


class SettingError(StreamerError):
    """A setting is out of range. The message names the setting and the allowed values."""

    exit_code = 2

    def __init__(self, setting: str, value: object, allowed: str) -> None:
        super().__init__(f"{setting} is {value}: {allowed}")
        self.setting = setting


class ConfigurationError(StreamerError):
    """Invalid settings from flags, the environment or a file: one line each."""

    exit_code = 2

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))


class InputError(StreamerError):
    """A source that the user named cannot be read."""

    exit_code = 2


class OutputError(StreamerError):
    """A file that the user named cannot be written."""

    exit_code = 2


class UnusableJournalError(StreamerError):
    """The journal is damaged, in use, in another format or was created with other settings."""

    exit_code = 2


class JournalWriteError(StreamerError):
    """An append is not durable. The process must stop: its state is ahead of the journal."""


class PublishError(StreamerError):
    """A durable decision could not be published. The next start publishes it."""


class UnreachableError(StreamerError):
    """A source cannot be reached now. A running service waits and retries."""


class FencedError(StreamerError):
    """A newer instance uses the same identity: this one must stop writing."""

    exit_code = 3

    def __init__(self, identity: str) -> None:
        super().__init__(
            f"a newer instance has taken over transactional_id {identity}: this one ends"
        )


class MonitorError(StreamerError):
    """Continuing would release something that the privacy guarantee does not cover."""
