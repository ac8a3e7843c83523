"""The errors that the product raises on purpose.

    StreamerError               exit code 1
    ├── SettingError            2   a setting is out of range; says which, and what is allowed
    ├── ConfigurationError           2   several wrong settings, a sentence each
    ├── InputError              2   a source cannot be read
    ├── OutputError             2   a place to write results to cannot be written
    ├── UnusableJournalError    2   a journal cannot be used as it is, and is left as it is
    ├── JournalWriteError       1   a journal could not be written; nothing was published
    ├── PublishError            1   a decision could not be published; it will be
    ├── UnreachableError        1   a source or broker does not answer; it is tried again
    ├── FencedError             3   a newer instance has taken over
    └── MonitorError            1   going on would break the guarantee

The command line turns each into one sentence. No other room defines exceptions.
"""

from __future__ import annotations


class StreamerError(Exception):
    """Anything that the product refuses or cannot go on with; the text is for its user."""

    exit_code = 1


class SettingError(StreamerError):
    """A setting is out of range. The message names the setting and what is allowed."""

    exit_code = 2

    def __init__(self, setting: str, value: object, allowed: str) -> None:
        super().__init__(f"{setting} is {value}: {allowed}")
        self.setting = setting


class ConfigurationError(StreamerError):
    """Wrong settings from flags, the environment or a file: one line each."""

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
    """The journal is damaged, in use, of another format or made with other settings."""

    exit_code = 2


class JournalWriteError(StreamerError):
    """An append could not be made durable. The process must end: its state is ahead."""


class PublishError(StreamerError):
    """A durable decision could not be written out. It is published at the next start."""


class UnreachableError(StreamerError):
    """What is read from cannot be reached now. A running service waits and tries again."""


class FencedError(StreamerError):
    """Another instance uses the same identity since: this one must not write any more."""

    exit_code = 3

    def __init__(self, identity: str) -> None:
        super().__init__(
            f"a newer instance has taken over transactional_id {identity}: this one ends"
        )


class MonitorError(StreamerError):
    """Going on would release something that the privacy guarantee does not cover."""
