"""Calls as JSON, to be shared in a file, and the ledger of such a file once it is opened.

What tells of the machine or the way to the service is left out, and keys are masked, also in the bytes that came.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from famnb.client.redaction import redact_reads
from famnb.errors import InvalidRequest
from famnb.record import ratings, schema, serialize, sql
from famnb.record.ledger import Ledger
from famnb.record.ratings import RecordedScore, RecordedVote
from famnb.record.recorded_call import RecordedCall
from famnb.secret_patterns import find_keys, mask_keys

_PRIVATE_COLUMNS = {"owner_pid", "owner_born", "owner_host", "url", "response_headers", "request_id", "standing"}
"""The columns of a call that are not shared."""


class SharedCall(msgspec.Struct, frozen=True):
    """A call: its columns that have a value, its request, and what came from the socket as the ledger stores it."""

    row: dict[str, str | int | float]
    body: dict[str, Any]
    reads: bytes


class SharedRecord(msgspec.Struct, frozen=True):
    """Calls with their scores, and votes."""

    calls: tuple[SharedCall, ...]
    scores: tuple[RecordedScore, ...] = ()
    votes: tuple[RecordedVote, ...] = ()


def share_calls(
    ledger: Ledger, call_ids: Iterable[str], *, votes: Iterable[RecordedVote] = (), opened: Ledger | None = None
) -> SharedRecord:
    """Return calls of a ledger, or of an `opened` file, with their scores; others are left out. Raises LedgerError."""
    ids = dict.fromkeys(call_ids)
    ledgers = [ledger] if opened is None else [ledger, opened]
    calls = {call.call_id: call for found in ledgers for call in found.each(ids)}
    return SharedRecord(
        calls=tuple(map(_share, calls.values())),
        scores=tuple(dict.fromkeys(score for found in ledgers for score in ratings.read_scores(found, ids))),
        votes=tuple(votes),
    )


def _share(call: RecordedCall) -> SharedCall:
    row = {name: value for name, value in call.row.items() if value is not None and name not in _PRIVATE_COLUMNS}
    text = mask_keys(msgspec.json.encode((row, call.body)).decode())
    row, body = msgspec.json.decode(text)

    def find_spans(text: str) -> list[tuple[int, int]]:
        return sorted(span for _, spans in find_keys(text) for span in spans)

    reads = redact_reads(call.endpoint, call.reads, find_spans) if call.row["streamed"] else call.reads

    def mask_bytes(data: bytes) -> bytes:
        return mask_keys(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    masked = [msgspec.structs.replace(read, data=tuple(map(mask_bytes, read.data))) for read in reads]
    return SharedCall(row=row, body=body, reads=serialize.pack_reads(masked))


def open_shared(record: SharedRecord) -> Ledger:
    """Return a ledger with these calls, scores and votes: a file that is deleted once nothing uses the ledger.

    They are not added to the user's own ledger, whose costs are the user's. Raises InvalidRequest if a call is damaged.
    """
    folder = tempfile.mkdtemp(prefix="famnb-opened-")
    ledger = Ledger(Path(folder) / "ledger.sqlite")
    weakref.finalize(ledger, shutil.rmtree, folder, ignore_errors=True)
    try:
        with contextlib.closing(schema.open_to_write(ledger.path)) as connection:
            connection.execute("BEGIN")
            for call in record.calls:
                # The names become SQL, and the file may have been written by anybody.
                names = [name for name in call.row if name in schema.CALL_COLUMNS]
                row = {name: serialize.storable(call.row[name]) for name in names}
                connection.execute(sql.insert("calls", tuple(row), otherwise="IGNORE"), [*row.values()])
                body = msgspec.json.encode(call.body).decode()
                connection.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (row["request_key"], body))
                connection.execute("INSERT OR IGNORE INTO pieces VALUES (?, 0, ?)", (row["id"], call.reads))
            connection.execute("COMMIT")
    except (sqlite3.Error, KeyError) as error:
        raise InvalidRequest(f"the file is damaged: a call in it cannot be read ({error})") from None
    ratings.save(ledger, (*record.scores, *record.votes))
    return ledger
