"""Calls as SQL statements for the ledger's tables, and stored reads and bodies as values again; touches no file.

open_call ── append_reads … ── close_call            a call that ended
open_call ── append_reads … ── finalize_interrupted  its process died
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from famnb.client.exchange import Exchange
from famnb.events import COUNTS, Billing
from famnb.record import sql, token_estimates
from famnb.record.backlog import Statement
from famnb.record.owner import this_process
from famnb.reply import Reply
from famnb.request import Request
from famnb.request.neutral import PromptTurn
from famnb.timing import Read, Timing

# Enough to know a prompt again in a list of calls.
PROMPT_HEAD_CHARS = 200
"""Characters of a prompt in its row, for lists of calls; all of it is in the request's body."""
PROMPT_TAGS = "prompt_tags"
"""The label that holds the tags of a planned call's prompt, as a JSON object."""
# A tokenizer sees marks of role and turn with each message; uncounted, they would make a short prompt's tokens per
# character unlike a long one's. By the prior of `token_estimates` these are four tokens.
FRAME_CHARS = 16
"""Characters by which a message counts as longer than its text."""
LABEL_COLUMNS = ("experiment", "variant", "cell", "tag", "prompt_id", PROMPT_TAGS)
"""The labels that have a column of their own as they are."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMINGS: tuple[str, ...] = Timing.__struct_fields__

_COST_ENDS = {"_": "usd", "_low_": "low", "_high_": "high"}
_READS = msgspec.msgpack.Decoder(list[Read])


def open_call(exchange: Exchange) -> list[Statement]:
    """Write the row of a call that starts: running, and owned by this process."""
    return [
        _insert_request(exchange),
        _upsert({**_request_columns(exchange), **_progress_columns(exchange), "status": "running"}),
    ]


def append_reads(exchange: Exchange, reads: Sequence[Read], *, seq: int) -> list[Statement]:
    """Write what came since the last time, from the read `seq` on; 0 is in place of those of an earlier attempt."""
    delete = [_delete_pieces(exchange.id)] if seq == 0 else []
    return [*delete, _insert_piece(exchange.id, seq, reads), _update(exchange.id, _progress_columns(exchange))]


def close_call(exchange: Exchange) -> list[Statement]:
    """Write the final row of a call and all its reads, in place of all that was written about it before.

    All of it, though the row is there already: the file may have been deleted, or unwritable, since the call began.
    """
    values = {**_request_columns(exchange), **_progress_columns(exchange), **outcome_columns(exchange.reply)}
    return [
        _insert_request(exchange),
        _upsert(values),
        _delete_pieces(exchange.id),
        _insert_piece(exchange.id, 0, exchange.reads),
    ]


def import_call(exchange: Exchange, columns: Mapping[str, Any]) -> list[Statement]:
    """Write the row of a call that another tool has recorded; `columns` say what of it is known.

    How often it was tried is not, by which the ledger knows that its times are those of the row.
    """
    values = {
        **_request_columns(exchange),
        **outcome_columns(exchange.reply),
        "end_ns": exchange.end_ns,
        **columns,
    }
    is_request_known = values["request_key"] is not None
    return [
        *([_insert_request(exchange)] if is_request_known else []),
        _upsert(values),
        *([_insert_piece(exchange.id, 0, exchange.reads)] if exchange.reads else []),
    ]


def finalize_interrupted(call_id: str, reply: Reply) -> list[Statement]:
    """Write the final row of a call whose process died, unless another process has done so meanwhile."""
    return [_update(call_id, outcome_columns(reply), only_if="status = 'running'")]


def outcome_columns(reply: Reply) -> dict[str, Any]:
    """Return the columns of a reply, finished or not."""
    usage = reply.usage
    # The service goes on with it in the background, and `fetch` gets it later.
    is_running = reply.status == "running"
    error = reply.error
    details = {
        name: value
        for name in ("status", "type", "code", "param", "request_id", "retry_after", "seconds")
        if isinstance(value := getattr(error, name, None), str | int | float)
    }
    return {
        "status": reply.status,
        "reply_id": reply.id,
        "reply_model": reply.model or None,
        "finish_reason": reply.finish_reason,
        "stop_reason": reply.stop_reason,
        "complete": reply.complete,
        "text_chars": None if is_running else len(reply.text),
        "thinking_chars": None if is_running else len(reply.thinking),
        "output_chars": None if is_running else reply.output_chars,
        "warnings": _json(reply.warnings),
        # From these `RecordedCall.error` makes the error again.
        "error": error and type(error).__name__,
        "error_message": error and str(error.args[0] if error.args else error),
        "error_details": error and _json(details),
        **{name: getattr(reply.timing, name) for name in TIMINGS},
        **{count: getattr(usage, count) for count in COUNTS},
        **{f"{count}_source": usage.source(count) for count in COUNTS},
        # As floats, which SQL can add up; the shortest text of one has the digits of the Decimal again, up to fifteen.
        **{f"cost{end}usd": reply.cost and float(getattr(reply.cost, name)) for end, name in _COST_ENDS.items()},
        "reported_cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
        "billing": None if usage.billing == Billing() else msgspec.json.encode(usage.billing).decode(),
    }


def input_chars(request: Request) -> int | None:
    """Return the characters sent, each message with its frame; None if text is not all that the tokens stand for.

    Images and an earlier response are tokens too, and no length of theirs is known.
    """
    turns = request.turns()
    if request.continues or any(turn.images for turn in turns):
        return None
    texts = [turn.text for turn in turns]
    texts += [request.system_turn.text] if request.system_turn else []
    texts += [part.model_dump_json(exclude_unset=True) for part in request.input_parts]
    return sum(len(text) + FRAME_CHARS for text in texts)


def hidden_cap(request: Request, service: str | None, *, shows_thinking: bool) -> int | None:
    """Return the most tokens that a reply may have if reasoning may be among them that nobody sees; else None.

    `token_estimates.NO_CAP` if nothing limits it. Models reason unasked, and what they show of it may be a summary, so
    only models that are known not to are taken at their text; `service` is the engine that a famnb service says it is.
    """
    is_asked = request.settings().effort not in (None, "none")
    if service == "sim":
        is_hidden = is_asked and not shows_thinking
    else:
        is_hidden = is_asked or not token_estimates.PLAIN_MODELS.match(str(getattr(request, "model", "")))
    return (request.most_tokens or token_estimates.NO_CAP) if is_hidden else None


def pack_reads(reads: Sequence[Read]) -> bytes:
    """Return reads as they are stored: MessagePack, compressed."""
    # Level 3 takes half the time of the default 6, for a few per cent more bytes.
    return zlib.compress(msgspec.msgpack.encode(reads), 3)


def read_pieces(call_id: str, pieces: Iterable[bytes]) -> tuple[Read, ...]:
    """Return the reads of a call; none of damaged pieces, with a warning, since one call must not hide all others."""
    try:
        return tuple(read for piece in pieces for read in _READS.decode(zlib.decompress(piece)))
    except (zlib.error, msgspec.DecodeError) as error:
        warn_damaged(call_id, "the bytes that came", error)
        return ()


def decode_body(call_id: str, body: str | None) -> dict[str, Any]:
    """Return a stored request body; an empty one, with a warning, if it is damaged."""
    try:
        return msgspec.json.decode(body or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        warn_damaged(call_id, "the request", error)
        return {}


def warn_damaged(call_id: str, what: str, error: Exception) -> None:
    """Warn that a part of a call cannot be read."""
    warnings.warn(f"the ledger is damaged: {what} of {call_id} cannot be read ({error})", RuntimeWarning, stacklevel=3)


def microseconds(moment: datetime) -> int:
    """Return a moment as it is stored: microseconds since 1970, UTC."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """Return a stored moment, UTC."""
    return EPOCH + timedelta(microseconds=us)


def _request_columns(exchange: Exchange) -> dict[str, Any]:
    """The columns that are known when a call starts."""
    request, labels, owner = exchange.request, exchange.labels, this_process()
    settings = request.settings()
    turns = request.turns()
    # The user's last message, or the last message if none is the user's.
    prompt = [PromptTurn("user", ""), *turns, *(turn for turn in turns if turn.role == "user")][-1]
    prompt = msgspec.structs.replace(prompt, text=exchange.mask(prompt.text))
    return {
        "id": exchange.id,
        "started_us": microseconds(exchange.started_at),
        "owner_pid": owner.pid,
        "owner_born": owner.born,
        "owner_host": owner.host,
        "profile": exchange.profile,
        "endpoint": exchange.endpoint.name,
        "model": getattr(request, "model", None),
        "url": exchange.url,
        "request_key": request.key(),
        "prompt": prompt.text[:PROMPT_HEAD_CHARS],
        "prompt_hash": prompt.digest,
        "input_chars": input_chars(request),
        **{name: getattr(settings, name) for name in ("temperature", "top_p", "thinking", "effort", "verbosity")},
        "max_tokens": request.get(caps[0]) if (caps := request.set_caps) else None,
        **{name: labels.get(name) for name in LABEL_COLUMNS},
        "repeat": int(repeat) if (repeat := labels.get("repeat", "")).isdecimal() else None,
        "warmup": {"true": 1, "false": 0}.get(labels.get("warmup", "")),
        "labels": _json(dict(labels)),
    }


def _progress_columns(exchange: Exchange) -> dict[str, Any]:
    """The columns that change while a call runs."""
    has_answer = token_estimates.has_answer(exchange.http_status)
    return {
        "streamed": exchange.streamed if has_answer else exchange.request.streams,
        "attempts": exchange.attempts,
        "http_status": exchange.http_status,
        "request_id": exchange.request_id,
        "service": exchange.service,
        "hidden_cap": hidden_cap(exchange.request, exchange.service, shows_thinking=bool(exchange.reply.thinking)),
        "response_headers": _json(exchange.response_headers),
        "connect_s": None if exchange.connect_ns is None else exchange.connect_ns / 1e9,
        "headers_ns": exchange.headers_ns,
        "end_ns": exchange.end_ns,
        "wait_s": None if exchange.wait_ns is None else exchange.wait_ns / 1e9,
    }


def _insert_request(exchange: Exchange) -> Statement:
    request = exchange.request
    return "INSERT OR IGNORE INTO requests VALUES (?, ?)", (request.key(), exchange.mask(request.body_json().decode()))


def _insert_piece(call_id: str, seq: int, reads: Sequence[Read]) -> Statement:
    return "INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)", (call_id, seq, pack_reads(reads))


def _delete_pieces(call_id: str) -> Statement:
    return "DELETE FROM pieces WHERE call_id = ?", (call_id,)


def _upsert(values: Mapping[str, Any]) -> Statement:
    return sql.upsert("calls", "id", tuple(values)), tuple(map(storable, values.values()))


def _update(call_id: str, values: Mapping[str, Any], *, only_if: str = "1") -> Statement:
    statement = sql.update("calls", tuple(values), only_if=f"id = ? AND {only_if}")
    return statement, (*map(storable, values.values()), call_id)


def storable(value: Any) -> Any:
    """Return a value that SQLite and a float hold: no lone surrogates, no integer beyond 2**53, which no count is."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case int() if abs(value) > 2**53:
            return None
        case _:
            return value


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a character, which a service can send as an escape, is no reason to lose a row
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
