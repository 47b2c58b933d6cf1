"""A call as rows of the ledger's tables: plain values in, SQL statements out; no file is touched here."""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from famnb.client.exchange import Exchange
from famnb.errors import FamnbError
from famnb.events import COUNTS
from famnb.record import token_estimates
from famnb.record.price import Cost
from famnb.record.process import Owner
from famnb.record.writer import Statement
from famnb.reply import Reply
from famnb.request import Request
from famnb.timing import Read, Timing

HEAD = 200
"""Characters of a prompt that its row shows."""
FRAME = 16
"""Characters that a message is longer for a tokenizer than its text: the marks of its role and its turn."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMINGS: tuple[str, ...] = Timing.__struct_fields__

_READS = msgspec.msgpack.Decoder(list[Read])


def opened(exchange: Exchange, owner: Owner) -> list[Statement]:
    """The rows of a call that starts: running, and owned by the process that makes it."""
    return [_request(exchange), _upsert({**_asked(exchange, owner), **_went(exchange), "status": "running"})]


def arrived(exchange: Exchange, reads: Sequence[Read], *, seq: int) -> list[Statement]:
    """The rows of what came since the last time; `seq` 0 begins anew."""
    forget = [_forget(exchange.id)] if seq == 0 else []
    return [*forget, _piece(exchange.id, seq, reads), _update(exchange.id, _went(exchange))]


def closed(exchange: Exchange, owner: Owner) -> list[Statement]:
    """The final rows of a call, in place of all that was written about it before."""
    values = {**_asked(exchange, owner), **_went(exchange), **outcome(exchange.reply)}
    return [
        _request(exchange),
        _upsert(values),
        _forget(exchange.id),
        _piece(exchange.id, 0, exchange.reads),
    ]


def buried(call_id: str, reply: Reply) -> list[Statement]:
    """The final row of a call whose process died, unless somebody wrote it meanwhile."""
    return [_update(call_id, outcome(reply), only_if="status = 'running'")]


def outcome(reply: Reply) -> dict[str, Any]:
    """The columns that say how a call went."""
    usage = reply.usage
    counts: dict[str, Any] = {count: getattr(usage, count) for count in COUNTS}
    sources = {f"{count}_source": usage.source(count) for count in COUNTS}
    return {
        "status": reply.status,
        "reply_id": reply.id,
        "finish_reason": reply.finish_reason,
        "stop_reason": reply.stop_reason,
        "complete": reply.complete,
        "text_chars": len(reply.text),
        "thinking_chars": len(reply.thinking),
        "output_chars": sum(len(block.text) for block in reply.blocks),
        "warnings": _json(reply.warnings),
        **_error(reply.error),
        **{name: getattr(reply.timing, name) for name in TIMINGS},
        **counts,
        **sources,
        **_money(reply.cost),
    }


def input_chars(request: Request) -> int | None:
    """How much was sent, messages framed; None where images or an earlier response make the text less than that."""
    turns = request.turns()
    if request.continues or any(turn.images for turn in turns):
        return None
    texts = [turn.text for turn in turns]
    texts += [request.system_turn.text] if request.system_turn else []
    texts += [part.model_dump_json(exclude_unset=True) for part in request.input_parts]
    return sum(len(text) + FRAME for text in texts)


def hidden_cap(request: Request) -> int | None:
    """The most tokens a reply may have, where reasoning was asked for that its text does not show; else None."""
    settings = request.settings()
    return None if settings.effort in (None, "none") else settings.cap


def prompt(request: Request) -> str:
    """What was asked: the text of the last message of the user, or else of the last message."""
    turns = request.turns()
    asked = [turn for turn in turns if turn.role == "user"] or turns
    return asked[-1].text


def packed(reads: Sequence[Read]) -> bytes:
    """Reads as they are stored: MessagePack, compressed."""
    # Half the time of the default level, for a few per cent more bytes.
    return zlib.compress(msgspec.msgpack.encode(reads), 3)


def unpacked(pieces: Iterable[bytes]) -> tuple[Read, ...]:
    """The reads in stored pieces."""
    return tuple(read for piece in pieces for read in _READS.decode(zlib.decompress(piece)))


def restored(call_id: str, pieces: Iterable[bytes]) -> tuple[Read, ...]:
    """The same of a call; of damaged pieces none, with a warning, since one call must not hide all others."""
    try:
        return unpacked(pieces)
    except (zlib.error, msgspec.DecodeError) as error:
        damaged(call_id, "the bytes that came", error)
        return ()


def decoded(call_id: str, body: str | None) -> dict[str, Any]:
    """A stored request body; nothing of a damaged one, with a warning."""
    try:
        return msgspec.json.decode(body or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        damaged(call_id, "the request", error)
        return {}


def damaged(call_id: str, what: str, error: Exception) -> None:
    """Warn that a part of a call cannot be read."""
    warnings.warn(f"the ledger is damaged: {what} of {call_id} cannot be read ({error})", RuntimeWarning, stacklevel=3)


def microseconds(moment: datetime) -> int:
    """A moment as it is stored: microseconds since 1970, UTC."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def _asked(exchange: Exchange, owner: Owner) -> dict[str, Any]:
    request = exchange.request
    return {
        "id": exchange.id,
        "started_us": microseconds(exchange.started_at),
        "owner_pid": owner.pid,
        "owner_born": owner.born,
        "owner_host": owner.host,
        "endpoint": exchange.endpoint.name,
        "model": getattr(request, "model", None),
        "url": exchange.url,
        "request_key": request.key(),
        "prompt": exchange.mask(prompt(request))[:HEAD],
        "input_chars": input_chars(request),
        "hidden_cap": hidden_cap(request),
        "experiment": exchange.labels.get("experiment"),
        "variant": exchange.labels.get("variant"),
        "cell": exchange.labels.get("cell"),
        "tag": exchange.labels.get("tag"),
        "labels": _json(dict(exchange.labels)),
    }


def _went(exchange: Exchange) -> dict[str, Any]:
    answered = token_estimates.answered(exchange.http_status)
    return {
        "streamed": exchange.streamed if answered else exchange.request.streams,
        "attempts": exchange.attempts,
        "http_status": exchange.http_status,
        "request_id": exchange.request_id,
        "service": exchange.service,
        "response_headers": _json(exchange.response_headers),
        "headers_ns": exchange.headers_ns,
        "end_ns": exchange.end_ns,
    }


def _error(error: FamnbError | None) -> dict[str, Any]:
    if error is None:
        return {"error": None, "error_message": None, "error_details": None}
    details = {
        name: value
        for name in ("status", "type", "code", "param", "request_id", "retry_after", "seconds")
        if isinstance(value := getattr(error, name, None), str | int | float)
    }
    message = error.args[0] if error.args else str(error)
    return {"error": type(error).__name__, "error_message": str(message), "error_details": _json(details)}


def _request(exchange: Exchange) -> Statement:
    request = exchange.request
    return "INSERT OR IGNORE INTO requests VALUES (?, ?)", (request.key(), exchange.mask(request.body_json().decode()))


def _piece(call_id: str, seq: int, reads: Sequence[Read]) -> Statement:
    return "INSERT INTO pieces VALUES (?, ?, ?)", (call_id, seq, packed(reads))


def _forget(call_id: str) -> Statement:
    return "DELETE FROM pieces WHERE call_id = ?", (call_id,)


def _upsert(values: Mapping[str, Any]) -> Statement:
    sql = f"INSERT OR REPLACE INTO calls ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608 - own names
    return sql, tuple(map(storable, values.values()))


def _update(call_id: str, values: Mapping[str, Any], *, only_if: str = "1") -> Statement:
    sql = f"UPDATE calls SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ? AND {only_if}"  # noqa: S608 - own names
    return sql, (*map(storable, values.values()), call_id)


def storable(value: Any) -> Any:
    """A value that SQLite can hold: no lone surrogates, and no integer beyond 64 bits, which is no real count."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case int() if not -(2**63) <= value < 2**63:
            return None
        case _:
            return value


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a character, which a service can send as an escape, is no reason to lose a row
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _money(cost: Cost | None) -> dict[str, str | None]:
    if cost is None:
        return {"cost_usd": None, "cost_low_usd": None, "cost_high_usd": None}
    return {"cost_usd": f"{cost.usd:f}", "cost_low_usd": f"{cost.low:f}", "cost_high_usd": f"{cost.high:f}"}
