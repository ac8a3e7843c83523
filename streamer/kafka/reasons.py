"""Why the broker could not be reached or did not answer, in words for people."""

from __future__ import annotations

import re

_FAMILY = re.compile(r", <AddressFamily\.\w+: \d+>")


def reason_of(error: BaseException) -> str:
    """What aiokafka says, without the names of its constants; an error may say nothing."""
    return _FAMILY.sub("", str(error)) or type(error).__name__
