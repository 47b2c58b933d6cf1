"""Calls that other tools recorded, read from their files into the ledger.

    openai       requests with responses, batch files, stored completions and responses, chats for fine-tuning
    litellm      spend logs, and what the loggers of its proxy write
    langfuse     the generations among exported observations
    inspect      the model's events in an evaluation log, `.eval` or `.json`
    promptfoo    the results of an evaluation
    otel         spans of OpenTelemetry's GenAI conventions, in OTLP/JSON or as the SDK prints them

file ── rows ── the paths of the row's format (`_FORMATS`) ── a call ── statements

What a file does not say is missing in the ledger. Nobody knows when the bytes of such a call came, so its latencies are
those that the other tool noted, and `attempts` is missing, by which the ledger knows it. A cost that the other tool
gives counts as reported.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import json
import math
import sqlite3
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from famnb.client.exchange import Exchange
from famnb.client.response_reader import reply_from_reads
from famnb.errors import FamnbError, InvalidRequest, LedgerError, ResponseFormatError, status_error
from famnb.profiles import VENDOR_NAMES, find_endpoints
from famnb.record import schema, serialize
from famnb.record.filters import parse_moment
from famnb.request import Request
from famnb.timing import Read, Timing
from famnb.wire import lenient_json
from famnb.wire.lenient_json import amount, as_list, as_object, find_text, integer, scalar_text

_PATHS: Mapping[str, Mapping[str, str]] = {
    "openai": {
        "id": "custom_id id",
        "request": "request body",
        "response": "response/body response completion",
        "messages": "messages input",
        "start": "started_at created_at created timestamp response/body/created response/created",
        "duration": "latency_s duration_s",
        "status": "response/status_code",
        "error": "error/message error response/body/error/message",
    },
    "litellm": {
        "id": "request_id id",
        "model": "model model_group",
        "provider": "custom_llm_provider",
        "url": "api_base",
        "settings": "model_parameters optional_params",
        "messages": "messages",
        "response": "response",
        "start": "startTime",
        "end": "endTime",
        "first": "completionStartTime",
        "streamed": "stream",
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "cost": "response_cost spend",
        "error": "error_str error_information/error_message",
        "status": "error_information/error_code",
        "tag": "request_tags/0",
    },
    "langfuse": {
        "id": "id",
        "model": "model providedModelName",
        "settings": "modelParameters",
        "messages": "input/messages input",
        "response": "output",
        "start": "startTime",
        "end": "endTime",
        "first": "completionStartTime",
        "input_tokens": "usageDetails/input usage/input promptTokens",
        "output_tokens": "usageDetails/output usage/output completionTokens",
        "cost": "costDetails/total totalCost calculatedTotalCost",
        "error": "error",
        "tag": "name",
    },
    "inspect": {
        "id": "uuid",
        "model": "output/model model",
        "settings": "config",
        "messages": "input",
        "response": "output/choices/0/message output/completion",
        "finish": "output/choices/0/stop_reason",
        "start": "timestamp",
        "duration": "output/time",
        "input_tokens": "output/usage/input_tokens",
        "output_tokens": "output/usage/output_tokens",
        "cached_tokens": "output/usage/input_tokens_cache_read",
        "reasoning_tokens": "output/usage/reasoning_tokens",
        "error": "error output/error",
        "experiment": "task",
        "prompt_id": "sample",
        "repeat": "repeat",
    },
    "promptfoo": {
        "id": "id",
        "model": "provider/id provider",
        "settings": "provider/config",
        "messages": "prompt/raw",
        "response": "response/output",
        "start": "timestamp",
        "duration_ms": "latencyMs response/latencyMs",
        "input_tokens": "response/tokenUsage/prompt",
        "output_tokens": "response/tokenUsage/completion",
        "cost": "cost response/cost",
        "error": "response/error",
        "failure": "error",
        "experiment": "experiment",
        "variant": "provider/label",
        "prompt_id": "testIdx",
    },
    "otel": {
        "id": "span",
        "model": "gen_ai.request.model gen_ai.response.model",
        "reply_model": "gen_ai.response.model",
        "provider": "gen_ai.provider.name gen_ai.system",
        "url": "server.address",
        "system": "gen_ai.system_instructions",
        "messages": "gen_ai.input.messages",
        "response": "gen_ai.output.messages/0",
        "finish": "gen_ai.response.finish_reasons/0 gen_ai.output.messages/0/finish_reason",
        "start": "start",
        "end": "end",
        "ttft": "gen_ai.response.time_to_first_chunk",
        "streamed": "gen_ai.request.stream",
        "input_tokens": "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens",
        "output_tokens": "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens",
        "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
        "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
        "error": "error.message error.type",
        "status": "http.response.status_code",
    },
}
"""For each format the paths at which a row has what a call is made of, in the order in which they are tried."""
_OTEL_OPERATIONS = ["chat", "text_completion", "generate_content"]
"""Spans of these are calls of a model."""
_OTEL_SETTINGS = "temperature top_p top_k max_tokens seed frequency_penalty presence_penalty stop_sequences stream"
_FINISH_WORDS = {"max_tokens": "length", "model_length": "length", "end_turn": "stop", "tool_use": "tool_calls"}


def load(ledger: Any, path: Path) -> int:
    """Add the calls of a file that are not there yet; return how many. LedgerError if either file cannot be used."""
    rows = [row for value in _read_values(path) for row in _expand(value)]
    if not rows:
        raise LedgerError(
            f"{path} holds no calls; expected a file that famnb ledger export wrote, or of one of the formats "
            f"{', '.join(_PATHS)}"
        )
    modified_at = datetime.fromtimestamp(math.floor(path.stat().st_mtime), UTC)
    records = []
    for format_, row in rows:
        exchange, known = _make_call(format_, row, modified_at)
        exchange.reply = dataclasses.replace(exchange.reply, cost=ledger.cost(exchange, exchange.reply))
        records.append((exchange.id, serialize.import_call(exchange, known)))
    added = 0
    try:
        with contextlib.closing(schema.open_to_write(ledger.path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for call_id, record in records:
                if connection.execute("SELECT 1 FROM calls WHERE id = ?", (call_id,)).fetchone() is None:
                    added += 1
                    for statement, values in record:
                        connection.execute(statement, values)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise LedgerError(f"the ledger {ledger.path} cannot be changed: {error}") from error
    return added


def _read_values(path: Path) -> Iterator[Any]:
    """Yield the JSON values in a file: one, those of its lines, the rows of a CSV file, or the samples of a log."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = json.loads(archive.read("header.json")) if "header.json" in names else {}
            samples = [json.loads(archive.read(name)) for name in names if name.startswith("samples/")]
        yield {"eval": header.get("eval", {}), "samples": samples}
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix.lower() == ".csv":
        yield from ({name: _decode(cell) for name, cell in row.items()} for row in csv.DictReader(text.splitlines()))
        return
    try:
        yield json.loads(text)
    except ValueError:
        for line in filter(str.strip, text.splitlines()):
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def _decode(text: Any) -> Any:
    """Return the JSON value in a text that is one; any other value as it is, and None for an empty text."""
    with contextlib.suppress(ValueError):
        if isinstance(text, str) and text[:1] in ("[", "{", '"'):
            return json.loads(text)
    return None if text == "" else text


def _expand(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the calls in a JSON value as rows, each with the name of its format."""
    match value:
        case list():
            for item in value:
                yield from _expand(item)
        case {"resourceSpans": list(resources)}:
            scopes = [scope for resource in resources for scope in as_list(as_object(resource).get("scopeSpans"))]
            for span in (span for scope in scopes for span in as_list(as_object(scope).get("spans"))):
                attributes = {item["key"]: _otlp_value(item.get("value")) for item in as_list(span.get("attributes"))}
                start, end = (int(span.get(f"{name}TimeUnixNano") or 0) / 1e9 or None for name in ("start", "end"))
                yield from _expand_span(span.get("spanId"), attributes, start, end, as_object(span.get("status")))
        case {"context": dict(context), "attributes": dict(attributes), "start_time": start}:
            status = as_object(value.get("status"))
            yield from _expand_span(context.get("span_id"), attributes, start, value.get("end_time"), status)
        case {"eval": dict(task), "samples": list(samples)}:
            for sample in samples:
                about = {
                    "task": task.get("task"),
                    "sample": scalar_text(sample.get("id")) or None,
                    "repeat": (integer(sample.get("epoch")) or 1) - 1,
                }
                calls = [event for event in as_list(sample.get("events")) if as_object(event).get("event") == "model"]
                # A log without events has the last answer of each sample.
                last = {name: sample.get(name) for name in ("input", "output")}
                last["timestamp"] = sample.get("started_at")
                for number, event in enumerate(calls or ([last] if last["output"] else [])):
                    uuid = f"{task.get('run_id')}/{sample.get('uuid') or about}/{number}"
                    yield "inspect", {"uuid": uuid, **event, **about}
        case {"results": {"results": list(results), **evaluation}}:
            name = value.get("evalId") or as_object(value.get("config")).get("description")
            for row in results:
                # An answer from its cache took no time that says anything.
                untimed = {"latencyMs": None} if as_object(row.get("response")).get("cached") else {}
                yield "promptfoo", {"timestamp": evaluation.get("timestamp"), "experiment": name, **row, **untimed}
        case {"type": str(kind), "traceId": _} | {"type": str(kind), "trace_id": _}:
            failed = {"error": value.get("statusMessage") or "ERROR"} if value.get("level") == "ERROR" else {}
            if kind == "GENERATION":
                yield "langfuse", {**value, **failed}
        case {"observations": list(observations)}:
            for item in observations:
                yield from _expand({"traceId": value.get("id"), **as_object(item)})
        case {"startTime": _, "endTime": _}:
            yield "litellm", value
        case {"data": list(items)}:
            yield from _expand(items)
        case {"object": "chat.completion" | "response"}:
            yield "openai", {**value, "response": value}
        case {"custom_id": _} | {"request": _} | {"response": _} | {"messages": list()}:
            yield "openai", value
        case _:
            pass


def _otlp_value(value: Any) -> Any:
    match value:
        case {"intValue": number}:
            return int(number)
        case {"arrayValue": {"values": list(values)}}:
            return [_otlp_value(item) for item in values]
        case {"kvlistValue": {"values": list(values)}}:
            return {item["key"]: _otlp_value(item["value"]) for item in values}
        case _:
            return next(iter(as_object(value).values()), None)


def _expand_span(
    id_: Any, attributes: dict[str, Any], start: Any, end: Any, status: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the span of a model's call as a row; nothing for any other span."""
    if attributes.get("gen_ai.operation.name") not in _OTEL_OPERATIONS:
        return
    row = {name: _decode(value) if name.startswith("gen_ai.") else value for name, value in attributes.items()}
    settings = {name: row.get(f"gen_ai.request.{name}") for name in _OTEL_SETTINGS.split()}
    settings["stop"] = settings.pop("stop_sequences")
    failed = status.get("code") in (2, "STATUS_CODE_ERROR") or status.get("status_code") == "ERROR"
    if failed and (message := status.get("message") or status.get("description")):
        row["error.message"] = message
    yield "otel", {**row, "settings": settings, "span": id_, "start": start, "end": end}


class _Row:
    """A row, read by the paths of its format."""

    def __init__(self, format_: str, row: Mapping[str, Any]) -> None:
        self._paths = {"settings": "settings", **_PATHS[format_]}
        self._row = row

    def get(self, name: str) -> Any:
        """Return the first value at the paths of a name that says something."""
        for path in self._paths.get(name, "").split():
            value: Any = self._row
            for step in path.split("/"):
                at = value[int(step)] if isinstance(value, list) and step.isdigit() and len(value) > int(step) else None
                value = value.get(step) if isinstance(value, Mapping) else at
            if value not in (None, "", [], {}):
                return value
        return None

    def moment(self, name: str) -> datetime | None:
        """Return a moment, given in seconds or milliseconds since 1970 or as ISO text, UTC unless it says otherwise."""
        value = self.get(name)
        if isinstance(value, str):
            with contextlib.suppress(InvalidRequest):
                return parse_moment(name, value)
            return None
        number = amount(value)
        return None if number is None else datetime.fromtimestamp(number / (1000 if number > 1e11 else 1), UTC)


def _make_call(format_: str, fields: dict[str, Any], at: datetime) -> tuple[Exchange, dict[str, Any]]:
    """Return a row as a call, and its columns that say what is known; `at` is its start if the row has none."""
    row = _Row(format_, fields)
    answer, body = _response(row), as_object(row.get("request"))
    request_body = body or {
        **as_object(row.get("settings")),
        "messages": _messages(row.get("messages"), row.get("system")),
    }
    if format_ == "openai" and not body:
        request_body |= {name: value for name, value in fields.items() if name in _REQUEST_FIELDS}
        turns = request_body["messages"]
        # A chat for fine-tuning ends with the answer.
        if answer is None and turns and turns[-1].get("role") == "assistant":
            answer, request_body["messages"] = _completion(row, turns[-1]), turns[:-1]
    model = (
        scalar_text(row.get("model")) or scalar_text(request_body.get("model")) or as_object(answer).get("model", "")
    )
    name = _endpoint_of(answer, request_body)
    provider = scalar_text(row.get("provider")).partition(".")[0].lower()
    profile = provider if provider in VENDOR_NAMES and name in find_endpoints(provider) else "open"
    endpoint = find_endpoints(profile)[name]
    request, is_known = _request(endpoint.request, {**request_body, "model": model or "unknown"})
    start, end, first = row.moment("start"), row.moment("end"), row.moment("first")
    duration = amount(row.get("duration"))
    if duration is None and (ms := amount(row.get("duration_ms"))) is not None:
        duration = ms / 1000
    if duration is None and start and end and end > start:
        duration = (end - start).total_seconds()
    # LiteLLM notes the end as the first moment where nothing was streamed.
    ttft = amount(row.get("ttft"))
    if ttft is None and start and first and first > start and first != end:
        ttft = (first - start).total_seconds()
    identity = json.dumps([format_, row.get("id") or fields], sort_keys=True, default=str)
    key = hashlib.sha256(identity.encode()).hexdigest()
    started_at = start or at
    reads = [] if answer is None else [Read(round((duration or 0) * 1e9), (lenient_json.encode(answer),))]
    reply = reply_from_reads(endpoint, streamed=False, reads=reads, headers_ns=None, end_ns=None)
    status = integer(row.get("status"))
    error = _error(row, status, has_answer=answer is not None)
    output_tokens = reply.usage.output_tokens
    tps = output_tokens / duration if output_tokens and duration else None
    reply = dataclasses.replace(
        reply,
        error=error,
        status="failed" if error else "completed" if reply.finish_reason is None else reply.status,
        # Without a reason nothing proves that the answer is whole.
        complete=False if error else None if reply.finish_reason is None else reply.complete,
        timing=Timing(ttft_s=ttft, e2e_s=duration, output_tps=tps, clock="user" if duration else None),
        call_id=f"call_{max(0, int(started_at.timestamp() * 1000)):011x}{key[:16]}",
        request=request,
    )
    labels = {name: row.get(name) for name in ("experiment", "variant", "prompt_id", "repeat", "tag")}
    exchange = Exchange(
        id=reply.call_id or "",
        started_at=started_at,
        request=request,
        endpoint=endpoint,
        url=scalar_text(row.get("url")),
        profile=profile,
        labels={"source": format_, **{name: str(value) for name, value in labels.items() if value is not None}},
        http_status=status,
        end_ns=round(duration * 1e9) if duration is not None else None,
        reads=reads,
        reply=reply,
    )
    streamed = row.get("streamed")
    known = {"streamed": None if streamed is None else bool(streamed), "http_status": status, "model": model or None}
    if not is_known:
        known |= dict.fromkeys(("prompt", "prompt_hash", "request_key", "input_chars", "hidden_cap"))
    return exchange, known


_REQUEST_FIELDS = frozenset({"model", "input", "instructions", "temperature", "top_p", "tools", "seed", "max_tokens"})


def _request(kind: type[Request], body: dict[str, Any]) -> tuple[Request, bool]:
    """Return the request of a body, and whether the conversation is known; any other body becomes its text."""
    body = {name: value for name, value in body.items() if value not in (None, [])}
    turns = body.get(kind.prompt_field) or body.pop("messages", None)
    plain = [{"role": "user", "content": find_text(turns) or _text(turns)}]
    for fields in (body, {"model": body["model"]}, {"model": body["model"], kind.prompt_field: plain}) if turns else ():
        with contextlib.suppress(InvalidRequest):
            return kind.from_body({kind.prompt_field: turns, **fields}), True
    empty: dict[str, Any] = {"model": body["model"], kind.prompt_field: []}
    return kind.model_construct({*empty}, **empty), False


def _endpoint_of(answer: Any, request_body: Mapping[str, Any]) -> str:
    """Return the first endpoint whose dialect can read the answer; without one, that has the request's prompt."""
    endpoints = find_endpoints("open")
    for name, endpoint in endpoints.items():
        with contextlib.suppress(ResponseFormatError):
            if answer is not None:
                endpoint.dialect.read(answer)
            if answer is not None or endpoint.request.prompt_field in request_body:
                return name
    return next(iter(endpoints))


def _response(row: _Row) -> dict[str, Any] | None:
    """Return the answer of a row as the body of a reply, with the counts that stand beside it; None if it has none."""
    answer = _decode(row.get("response"))
    if answer is None or (isinstance(answer, dict) and not answer):
        return None
    fields = as_object(answer)
    if "choices" in fields or fields.get("object") == "response" or fields.get("type") == "message":
        cost = amount(row.get("cost"))
        return fields if cost is None else {**fields, "usage": {"cost": cost, **as_object(fields.get("usage"))}}
    return _completion(row, answer)


def _completion(row: _Row, answer: Any) -> dict[str, Any]:
    """Return a message of any shape as a chat completion."""
    [message] = _messages([answer] if isinstance(answer, dict) else [{"role": "assistant", "content": answer}], None)
    finish = scalar_text(row.get("finish")) or scalar_text(as_object(answer).get("finish_reason"))
    counts = {name: integer(row.get(f"{name}_tokens")) for name in ("input", "output", "cached", "reasoning")}
    usage = {
        "prompt_tokens": counts["input"],
        "completion_tokens": counts["output"],
        "prompt_tokens_details": {"cached_tokens": counts["cached"]},
        "completion_tokens_details": {"reasoning_tokens": counts["reasoning"]},
        "cost": amount(row.get("cost")),
    }
    choice = {"index": 0, "message": message, "finish_reason": _FINISH_WORDS.get(finish, finish) or None}
    model = scalar_text(row.get("reply_model")) or scalar_text(row.get("model"))
    return {"id": "", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def _messages(value: Any, system: Any) -> list[dict[str, Any]]:
    """Return a prompt of any shape as messages of a chat."""
    value = _decode(value)
    if isinstance(value, dict):
        value = value.get("messages") or [value]
    turns = value if isinstance(value, list) else [value] if value else []
    messages = [{"role": "system", "content": find_text(_texts(system))}] if system else []
    for turn in turns:
        fields = turn if isinstance(turn, dict) else {"role": "user", "content": turn}
        content = fields.get("content", fields.get("parts", ""))
        parts = as_list(content)
        calls = [*as_list(fields.get("tool_calls")), *(p for p in parts if as_object(p).get("type") == "tool_call")]
        answers = [part for part in parts if as_object(part).get("type") == "tool_call_response"]
        for part in answers:
            text = _text(part.get("result", part.get("response")))
            messages.append({"role": "tool", "tool_call_id": part.get("id") or "call", "content": text})
        role = scalar_text(fields.get("role")) or "user"
        message: dict[str, Any] = {"role": role, "content": find_text(_texts(content))}
        if calls:
            message["tool_calls"] = [_call(call, number) for number, call in enumerate(map(as_object, calls))]
        if fields.get("tool_call_id"):
            message["tool_call_id"] = fields["tool_call_id"]
        if not answers or message["content"]:
            messages.append(message)
    return messages


def _texts(content: Any) -> Any:
    """Return the readable text of a content, without reasoning, tool calls and their results."""
    silent = ("tool_call", "tool_call_response", "reasoning", "thinking")
    if isinstance(content, list):
        return [part for part in content if as_object(part).get("type") not in silent]
    return content if isinstance(content, str | dict) else _text(content)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _call(call: dict[str, Any], number: int) -> dict[str, Any]:
    function = call["function"] if isinstance(call.get("function"), dict) else call
    name = scalar_text(function.get("name")) or scalar_text(call.get("function")) or "unknown"
    arguments = _text(function.get("arguments")) or "{}"
    id_ = scalar_text(call.get("id")) or f"call_{number}"
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def _error(row: _Row, status: int | None, *, has_answer: bool) -> FamnbError | None:
    message = _text(row.get("error") or (None if has_answer else row.get("failure")))
    if status is not None and status >= 400:
        return status_error(status)(message or f"status {status}", status=status)
    return FamnbError(message) if message or not has_answer else None
