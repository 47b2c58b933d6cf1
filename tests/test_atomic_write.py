"""Files that are replaced at once: who can read them, and what a failure leaves."""

import os
import stat
from pathlib import Path

import pytest

from famnb.atomic_write import atomic_write

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_a_file_is_its_owner_s_alone_unless_it_is_shared(tmp_path: Path):
    usual = tmp_path / "usual"
    usual.touch()
    private, shared = tmp_path / "private", tmp_path / "shared"
    atomic_write(private, b"a key")
    atomic_write(shared, b"an older report")
    atomic_write(shared, b"a report", shared=True)
    assert (mode_of(private), mode_of(shared)) == (0o600, mode_of(usual))
    assert shared.read_bytes() == b"a report"


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path):
    (tmp_path / "notes" / "old").mkdir(parents=True)
    with pytest.raises(OSError):
        atomic_write(tmp_path / "notes", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    assert (tmp_path / "notes" / "old").is_dir()
