"""Backlog: records that wait until a ledger's file can be written, in order; in memory, then in files elsewhere.

left behind by dead processes ── in memory, up to MEMORY_BYTES ── spilled to a file in another folder
└ files, the oldest records      └ new records, until it is full    └ new records, until all before them are written

`OwnerProcess` is the process that has a call open or has written such a file, and says whether it still lives.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hashlib
import itertools
import os
import platform
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import platformdirs

Statement: TypeAlias = tuple[str, Mapping[str, Any] | Sequence[Any]]
Record: TypeAlias = Sequence[Statement]
"""Statements that are executed together or not at all."""
Warn: TypeAlias = Callable[[str, str], None]
"""Tells the user something, once for each topic: (topic, message)."""

MEMORY_BYTES = 200_000_000
"""How much memory records may take before further ones go to a file."""
_LENGTH_BYTES = 8
"""How many bytes say the length of a record in a file."""
_SPILL_NAME = re.compile(r"[0-9a-f]{16}-\d+-[\d.]+-\d{3}-[0-9a-f]{8}\.records")
"""The name of a file: the ledger's key, its process and when that began, its place in the order, random digits."""
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(list[tuple[str, dict[str, Any] | list[Any]]]).decode


class SpillFile:
    """A file of records, which are appended at its end and read from its beginning."""

    def __init__(self, path: Path, *, new: bool) -> None:
        self.path = path
        flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | (os.O_CREAT | os.O_EXCL if new else 0)
        # For its owner alone, as a ledger: it holds prompts.
        self._file = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
        self.count, self._end = (0, 0) if new else _measure(self._file)
        """How many records it holds that were not taken."""
        self._start = 0

    def append(self, record: Record) -> None:
        """Add a record, all of it or nothing. Raises OSError."""
        data = _ENCODE(record)
        frame = memoryview(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
        self._file.seek(self._end)
        try:
            while frame:
                frame = frame[self._file.write(frame) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise
        self._end = self._file.tell()
        self.count += 1

    def peek(self, limit: int) -> list[Record]:
        """Return the first records, at most `limit`; one that is damaged has no statements. Raises OSError."""
        records: list[Record] = []
        self._file.seek(self._start)
        for _ in range(min(limit, self.count)):
            data = self._file.read(int.from_bytes(self._file.read(_LENGTH_BYTES), "big"))
            try:
                records.append(_DECODE(data))
            except msgspec.DecodeError:  # it must not keep the others from the ledger
                records.append(())
        return records

    def discard(self, count: int) -> None:
        """Forget the first records; the file goes with the last one. Raises OSError."""
        for _ in range(count):
            self._file.seek(self._start)
            self._start += _LENGTH_BYTES + int.from_bytes(self._file.read(_LENGTH_BYTES), "big")
        self.count -= count
        if not self.count:
            self.remove()

    def remove(self) -> None:
        """Close and delete the file."""
        with contextlib.suppress(OSError):
            self._file.close()
            self.path.unlink()


class Backlog:
    """Records that wait for one ledger's file, the oldest first; safe to use from any thread."""

    def __init__(self, ledger: Path, *, warn: Warn, memory_bytes: int | None = None) -> None:
        self._ledger = ledger
        self._warn = warn
        self._memory_bytes = MEMORY_BYTES if memory_bytes is None else memory_bytes
        self._lock = threading.Lock()
        self._left_behind = collections.deque(_claim_files(ledger))
        self._memory: collections.deque[tuple[Record, int]] = collections.deque()
        self._used_bytes = 0
        self._spilled: collections.deque[SpillFile] = collections.deque()
        self._has_looked_for_place = False
        self._discard: Callable[[], object] = lambda: None
        """Forgets what was returned by `peek`."""

    def __len__(self) -> int:
        """How many records wait."""
        return len(self._memory) + sum(file.count for file in (*self._left_behind, *self._spilled))

    def append(self, record: Record) -> None:
        """Add a record; one for which no place is left is lost, which was said before."""
        size = _size_in_memory(record)
        with self._lock:
            # Behind those that were spilled: a call's records must be written in their order.
            if not self._spilled and self._used_bytes + size <= self._memory_bytes:
                self._memory.append((record, size))
                self._used_bytes += size
                if self._used_bytes > self._memory_bytes / 2 and not self._has_looked_for_place:
                    self._look_for_place()
            elif not self._spill(record):
                self._warn(
                    "lost",
                    f"records of calls are being LOST: {self._ledger} cannot be written, the memory for what waits is "
                    "full, and so is every other place. Calls go on, unrecorded, until there is room",
                )

    def peek(self, limit: int) -> list[Record]:
        """Return the oldest records, at most `limit`; they stay until `discard`. Raises OSError."""
        with self._lock:
            if files := self._left_behind or (None if self._memory else self._spilled):
                records = files[0].peek(limit)
                self._discard = functools.partial(_discard_from, files, len(records))
            else:
                records = [record for record, _ in itertools.islice(self._memory, limit)]
                self._discard = functools.partial(self._discard_memory, len(records))
            return records

    def discard(self) -> None:
        """Forget the records that the last `peek` returned."""
        with self._lock:
            self._discard()

    def save(self) -> list[Path]:
        """Move what is in memory to a file, since the process ends; return all files. Raises OSError if none can be."""
        with self._lock:
            self._discard = lambda: None  # what is being written just now is saved, too
            if self._memory:
                # A name before those of the files spilled so far, whose records are newer.
                file = self._open_file(order=0)
                if file is None:
                    raise OSError("no place for a file")
                while self._memory:
                    file.append(self._memory[0][0])
                    self._discard_memory(1)
                self._spilled.appendleft(file)
            return [file.path for file in (*self._left_behind, *self._spilled)]

    def _discard_memory(self, count: int) -> None:
        for _ in range(count):
            _, size = self._memory.popleft()
            self._used_bytes -= size

    def _look_for_place(self) -> None:
        """Say beforehand if nothing can be kept beyond the memory."""
        self._has_looked_for_place = True
        file = self._open_file(order=1)
        if file is not None:
            file.remove()
            return
        self._warn(
            "no place",
            f"{self._ledger} still cannot be written, and half of the memory for what waits is used "
            f"({self._used_bytes / 1e6:.0f} MB). There is no other place for the rest: once all is used, records of "
            "calls will be lost. Make room or unlock the file",
        )

    def _spill(self, record: Record) -> bool:
        """Append a record to a file; return whether there was room for it."""
        if self._spilled:
            with contextlib.suppress(OSError):
                self._spilled[-1].append(record)
                return True
        order = len(self._spilled) + 1
        full = {file.path.parent for file in self._spilled}
        file = self._open_file(order=order, without=full)
        if file is None:
            return False
        try:
            file.append(record)
        except OSError:
            file.remove()
            return False
        self._spilled.append(file)
        self._warn(
            f"spilled to {file.path}",
            f"{self._ledger} still cannot be written, and the memory for what waits is full: further records of calls "
            f"go to {file.path} until it can. They are taken from there then, also by a later process",
        )
        return True

    def _open_file(self, *, order: int, without: Collection[Path] = ()) -> SpillFile | None:
        """A new file in the first folder in which one can be made; None if there is none."""
        owner = this_process()
        for folder in spill_folders():
            name = f"{_key(self._ledger)}-{owner.pid}-{owner.born:.2f}-{order:03d}-{os.urandom(4).hex()}.records"
            if folder in without:
                continue
            with contextlib.suppress(OSError):
                _make_private(folder)
                return SpillFile(folder / name, new=True)
        return None


def spill_folders() -> list[Path]:
    """Return the folders for records that find no room in memory, the first choice first."""
    user = f"famnb-{os.getuid()}" if hasattr(os, "getuid") else "famnb"
    return [Path(tempfile.gettempdir()) / user, Path(platformdirs.user_state_dir("famnb")) / "unwritten"]


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can look into. Raises OSError if there is one that others can."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    # Somebody else could have made it, in a folder for temporary files that all share, to read prompts.
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        raise PermissionError(f"{folder} is not this user's alone")


def _claim_files(ledger: Path) -> Iterator[SpillFile]:
    """Take the files that dead processes have left for this ledger, in their order."""
    me = this_process()
    for folder in spill_folders():
        # There may be no such folder, or none that may be looked into; and another process may be quicker, since a
        # file can be renamed once.
        with contextlib.suppress(OSError):
            names = filter(_SPILL_NAME.fullmatch, [path.name for path in folder.iterdir()])
            for name in sorted(name for name in names if name.startswith(_key(ledger))):
                key, pid, born, order, rest = name.split("-")
                if OwnerProcess(int(pid), float(born), me.host).is_alive:
                    continue
                _make_private(folder)
                claimed = (folder / name).rename(folder / f"{key}-{me.pid}-{me.born:.2f}-{order}-{rest}")
                file = SpillFile(claimed, new=False)
                if file.count:
                    yield file
                else:
                    file.remove()


def _key(ledger: Path) -> str:
    return hashlib.sha256(os.fsencode(ledger)).hexdigest()[:16]


def _discard_from(files: collections.deque[SpillFile], count: int) -> None:
    files[0].discard(count)
    if not files[0].count:
        files.popleft()


def _measure(file: Any) -> tuple[int, int]:
    """How many whole records a file has, and where they end: its process may have died while it wrote another."""
    size, count, end = file.seek(0, os.SEEK_END), 0, 0
    while end + _LENGTH_BYTES <= size:
        file.seek(end)
        after = end + _LENGTH_BYTES + int.from_bytes(file.read(_LENGTH_BYTES), "big")
        if after > size:
            break
        count, end = count + 1, after
    return count, end


def _size_in_memory(record: Record) -> int:
    """The bytes that a record's values take; its SQL is shared by all records of its kind."""
    size = 0
    for _, values in record:
        members = values.values() if isinstance(values, Mapping) else values
        size += sys.getsizeof(values) + sum(map(sys.getsizeof, members))
    return size


# psutil derives a start from the wall clock, which may be adjusted between two looks. A process id is seldom used again
# within so short a time.
SAME_START_S = 2.0
"""By how many seconds the start of one process may seem to differ."""


class OwnerProcess(NamedTuple):
    """A process, known by its start and its machine too, since process ids are used again."""

    pid: int
    born: float
    """When it started, Unix time."""
    host: str

    @property
    def is_alive(self) -> bool:
        """Whether it may still run; True for a process of another machine, which cannot be asked."""
        if self.host != platform.node():
            return True
        import psutil  # late, as in `_describe_process`

        try:
            process = psutil.Process(self.pid)
            # A zombie has ended; only its parent has not read its exit status yet.
            return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - self.born) <= SAME_START_S
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:  # such as AccessDenied: there is a process, and no more is known
            return True


def this_process() -> OwnerProcess:
    """Return the process that this is called in."""
    return _describe_process(os.getpid())


@functools.lru_cache(maxsize=1)
def _describe_process(pid: int) -> OwnerProcess:
    """Cached by process id, so that a forked child is not taken for its parent."""
    import psutil  # late, since only who records or reads calls needs it

    return OwnerProcess(pid, psutil.Process(pid).create_time(), platform.node())
