"""The directory of a file ledger: held by one process, with a key that is made once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamer.errors import UnusableJournalError
from streamer.ledger.directory import KEY, LOCK, JournalDirectory
from streamer.ledger.file_ledger import FileLedger
from tests.ledger.making import LIFE

ROOT = Path(__file__).parent.parent.parent
HOLDER = """
import sys, time
from pathlib import Path
from streamer.ledger.directory import JournalDirectory
directory = JournalDirectory(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_it_is_held_by_one_process_until_that_ends(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UnusableJournalError, match="in use by another process"):
            JournalDirectory(tmp_path)
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=30)
    JournalDirectory(tmp_path).close()


def test_it_is_free_again_when_it_is_closed(tmp_path):
    JournalDirectory(tmp_path / "new" / "journal").close()
    JournalDirectory(tmp_path / "new" / "journal").close()


def test_its_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    directory = JournalDirectory(tmp_path)
    key = directory.key()
    assert len(bytes.fromhex(key)) == 32
    assert directory.key() == key
    assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / LOCK).stat().st_mode & 0o777 == 0o600
    directory.close()


def test_a_lost_key_is_not_made_anew(tmp_path):
    directory = JournalDirectory(tmp_path)
    FileLedger(directory.database, LIFE, "0123456789abcdef")._database.close()
    with pytest.raises(
        UnusableJournalError, match=r"the key of the journal .* is missing.*privacy\.key_file"
    ):
        directory.key()
    assert not (tmp_path / KEY).exists()
    directory.close()


def test_a_key_that_is_no_text_is_one_sentence(tmp_path):
    (tmp_path / KEY).write_bytes(b"\xff\xfe")
    directory = JournalDirectory(tmp_path)
    with pytest.raises(UnusableJournalError, match="cannot be read or created"):
        directory.key()
    directory.close()


def test_one_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnusableJournalError, match="cannot be opened: Not a directory"):
        JournalDirectory(tmp_path / "file" / "journal")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_one_that_cannot_be_written_is_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UnusableJournalError, match="Permission denied"):
        JournalDirectory(tmp_path)
    tmp_path.chmod(0o700)
