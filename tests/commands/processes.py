"""`streamer` as a process of its own: at a terminal, or with its output in a pipe."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

DEADLINE = 60
ALTERNATE, NORMAL = "\x1b[?1049h", "\x1b[?1049l"
SHOW_CURSOR = "\x1b[?25h"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# So that Ctrl-C reaches it: the terminal must be its own.
_AT_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Process:
    """One run; what it writes is read with `until` and after it has ended."""

    def __init__(self, *arguments, terminal=None, environment=()):
        """`terminal`: its columns and lines, if it is to have one."""
        command = [sys.executable, "-m", "streamer.cli", *map(str, arguments)]
        given = os.environ | {"TERM": "xterm-256color"} | dict(environment)
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
            given.pop(name, None)
        if terminal:
            self._output, theirs = os.openpty()
            self._resize(*terminal)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _AT_A_TERMINAL, *command],
                stdin=theirs,
                stdout=theirs,
                stderr=subprocess.PIPE,
                env=given,
                start_new_session=True,
            )
            os.close(theirs)
        else:
            self._output, theirs = os.pipe()
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, env=given
            )
            os.close(theirs)
        self.written = ""
        self._found = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(DEADLINE)
        self._process.stderr.close()
        os.close(self._output)

    @property
    def text(self):
        """Without the codes that a terminal acts upon."""
        return _CONTROL.sub("", self.written)

    def until(self, pattern):
        """Read until this was written, after what was found the last time; the match."""
        deadline = time.monotonic() + DEADLINE
        while not (found := re.compile(pattern).search(self.text, self._found)):
            assert self._read(deadline), f"{pattern!r} never came: {self.text[-2_000:]}"
        self._found = found.end()
        return found

    def resize(self, columns, lines):
        self._resize(columns, lines)
        self._process.send_signal(signal.SIGWINCH)

    def _resize(self, columns, lines):
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._output, termios.TIOCSWINSZ, size)

    def press_ctrl_c(self):
        os.write(self._output, b"\x03")

    def signal(self, which):
        self._process.send_signal(which)

    def stop_reading(self):
        """As when the reader of a pipe ends."""
        reading, self._output = self._output, os.open(os.devnull, os.O_RDONLY)
        os.close(reading)

    def ended(self):
        """Its exit code and what it complained of, once it has ended."""
        deadline = time.monotonic() + DEADLINE
        while self._read(deadline):
            pass
        code = self._process.wait(DEADLINE)
        return code, self._process.stderr.read().decode()

    def _read(self, deadline):
        """Some more of its output; False at the end."""
        ready, _, _ = select.select([self._output], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"silent for too long after: {self.text[-2_000:]}"
        try:
            block = os.read(self._output, 1 << 16)
        except OSError:  # how a terminal ends
            return False
        self.written += block.decode(errors="replace")
        return bool(block)
