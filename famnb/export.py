"""Calls for other tools: as spans and metrics of OpenTelemetry's GenAI conventions.

    pip install "famnb[otel]"
    famnb.export.otel(famnb.calls(), OTLPSpanExporter())     # what the ledger has; without one, to the global providers
    stop = famnb.export.otel_live(client)                    # each further call of a client, as it ends

A span is a call: `chat MODEL`, from its start to its end. Prompts and answers are in it only with `content=True`,
counts only if they were reported. https://github.com/open-telemetry/semantic-conventions-genai
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from famnb.errors import InvalidArgument
from famnb.frame.calls import calls as read_calls
from famnb.record import Ledger
from famnb.record.ledger import HasLedger, ledger_of
from famnb.record.recorded_call import RecordedCall

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The conventions' names of vendors, where they are not those of the profiles."""
_ATTRIBUTES = {
    "model": "gen_ai.request.model",
    "reply_model": "gen_ai.response.model",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "streamed": "gen_ai.request.stream",
    "error": "error.type",
    "http_status": "http.response.status_code",
    "call_id": "famnb.call_id",
    "experiment": "famnb.experiment",
    "variant": "famnb.variant",
    "cost_usd": "famnb.cost_usd",
    "simulated": "famnb.simulated",
}
"""For each column of the frame the attribute of a span that has its value."""
_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
"""The same for the counts."""
_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [4**exponent for exponent in range(14)]
_METRICS = {
    "gen_ai.client.operation.duration": ("s", _SECONDS),
    "gen_ai.client.token.usage": ("{token}", _TOKENS),
    "gen_ai.client.operation.time_to_first_chunk": ("s", _SECONDS),
    "gen_ai.client.operation.time_per_output_chunk": ("s", _SECONDS),
}
"""The conventions' histograms, each with its unit and the bounds of its buckets."""


def otel(
    calls: pd.DataFrame,
    exporter: Any = None,
    *,
    tracer_provider: Any = None,
    meter_provider: Any = None,
    content: bool = False,
    ledger: Ledger | str | os.PathLike[str] | HasLedger | None = None,
) -> int:
    """Write the calls of a frame of `famnb.calls()` as spans and metrics of OpenTelemetry; return how many there were.

    `exporter` is a span exporter of the SDK; without one the spans go to `tracer_provider`, else to the global one, and
    metrics to `meter_provider` or the global one. `content` adds prompts and answers, which `ledger` has, as it has the
    times between chunks; None for the default one. A call that still runs is left out. Raises InvalidArgument
    for a frame without the columns of `famnb.calls()`, or without the extra `otel`.
    """
    missing = {"call_id", "started_at", "e2e_s", "status"} - {*calls.columns}
    if missing:
        raise InvalidArgument(f"calls: expected a frame of famnb.calls(); it has no {', '.join(sorted(missing))}")
    write = _make_writer(exporter, tracer_provider, meter_provider, content=content)
    rows = [row for row in _rows(calls) if row["status"] != "running"]
    recorded = {call.call_id: call for call in ledger_of(ledger).each(row["call_id"] for row in rows)}
    for row in rows:
        write(row, recorded.get(row["call_id"]))
    return len(rows)


def otel_live(client: HasLedger, exporter: Any = None, **options: Any) -> Callable[[], None]:
    """Write each call of a client as it ends, as `otel` does, with its options; return what ends that.

    Beside the calls, on a thread of its own, so that a slow collector delays none.
    """
    ledger: Ledger = client.ledger
    executor = ThreadPoolExecutor(1, thread_name_prefix="famnb-otel")
    # Once, for all calls: it would raise here, too, rather than on the thread.
    write = _make_writer(exporter, options.pop("tracer_provider", None), options.pop("meter_provider", None), **options)

    def export(call_id: str) -> None:
        call = ledger.call(call_id)
        frame = read_calls(ledger, since=call.started_at)
        for row in _rows(frame[frame["call_id"] == call_id]):
            write(row, call)

    def listen(call_id: str) -> None:
        executor.submit(export, call_id)

    ledger.listeners.append(listen)

    def stop() -> None:
        # What has ended is recorded, and so exported, before.
        ledger.flush()
        if listen in ledger.listeners:
            ledger.listeners.remove(listen)
        executor.shutdown()

    return stop


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame without what is missing."""
    records = frame.to_dict("records")
    return [{str(name): value for name, value in row.items() if not pd.isna(value)} for row in records]


def _make_writer(
    exporter: Any, tracer_provider: Any, meter_provider: Any, *, content: bool = False
) -> Callable[[Mapping[str, Any], RecordedCall | None], None]:
    """Return what writes a row of the frame, and its call where the ledger has it. Raises InvalidArgument."""
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    except ImportError:
        raise InvalidArgument('export: OpenTelemetry is not installed; run: pip install "famnb[otel]"') from None
    if exporter is not None:
        tracer_provider = TracerProvider(resource=Resource.create({"service.name": "famnb"}))
        tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = trace.get_tracer("famnb", tracer_provider=tracer_provider)
    meter = metrics.get_meter("famnb", meter_provider=meter_provider)
    histograms = {
        name: meter.create_histogram(name, unit=unit, explicit_bucket_boundaries_advisory=bounds)
        for name, (unit, bounds) in _METRICS.items()
    }

    def write(row: Mapping[str, Any], call: RecordedCall | None) -> None:
        common, attributes = _attributes(row)
        start_ns = pd.Timestamp(row["started_at"]).value
        span = tracer.start_span(
            f"chat {row.get('model', '')}".rstrip(),
            kind=trace.SpanKind.CLIENT,
            start_time=start_ns,
            attributes={**common, **attributes, **(_content(call) if content and call is not None else {})},
        )
        if "error" in row:
            span.set_status(trace.StatusCode.ERROR, row.get("error_message"))
        span.end(start_ns + round(row.get("e2e_s", 0) * 1e9))
        failed = {"error.type": row["error"]} if "error" in row else {}
        for name, value, more in _measures(row, call):
            histograms[name].record(value, {**common, **failed, **more})

    return write


def _attributes(row: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes that metrics and span of a call share, and those of the span alone."""
    profile = row.get("profile", "fam")
    url = urlsplit(row.get("url", ""))
    common = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": _PROVIDERS.get(profile, profile)}
    if url.hostname:
        port = url.port or {"http": 80, "https": 443}.get(url.scheme)
        common |= {"server.address": url.hostname, **({"server.port": port} if port else {})}
    common |= {name: row[column] for column, name in list(_ATTRIBUTES.items())[:2] if column in row}
    attributes = {name: row[column] for column, name in _ATTRIBUTES.items() if column in row}
    attributes |= {name: int(row[count]) for count, name in _USAGE.items() if _is_known(row, count)}
    if "finish_reason" in row:
        attributes["gen_ai.response.finish_reasons"] = [row["finish_reason"]]
    if row.get("streamed") and "ttft_s" in row:
        attributes["gen_ai.response.time_to_first_chunk"] = row["ttft_s"]
    return common, attributes


def _is_known(row: Mapping[str, Any], count: str) -> bool:
    """Whether a count is no estimate."""
    return count in row and row.get(f"{count}_source", "reported") in ("reported", "derived")


def _measures(row: Mapping[str, Any], call: RecordedCall | None) -> Iterator[tuple[str, float, dict[str, str]]]:
    """Yield what is measured of a call: the metric, the value, and its further attributes."""
    if "e2e_s" in row:
        yield "gen_ai.client.operation.duration", row["e2e_s"], {}
    for kind in ("input", "output"):
        if _is_known(row, f"{kind}_tokens"):
            yield "gen_ai.client.token.usage", int(row[f"{kind}_tokens"]), {"gen_ai.token.type": kind}
    if row.get("streamed") and "ttft_s" in row:
        yield "gen_ai.client.operation.time_to_first_chunk", row["ttft_s"], {}
        for before, after in pairwise(call.reads if call is not None else ()):
            yield "gen_ai.client.operation.time_per_output_chunk", (after.t_ns - before.t_ns) / 1e9, {}


def _content(call: RecordedCall) -> dict[str, str]:
    """Return the conversation and the answer of a call, in the JSON of the conventions."""
    request, reply = call.request, call.reply
    texts = [{"role": turn.role, "parts": [{"type": "text", "content": turn.full_text}]} for turn in request.turns()]
    parts: list[dict[str, Any]] = []
    for block in reply.blocks:
        match block.kind:
            case "text":
                parts.append({"type": "text", "content": block.text})
            case "thinking":
                parts.append({"type": "reasoning", "content": block.text})
            case "tool_call":
                fields = {"id": block.id, "name": block.name, "arguments": block.arguments}
                parts.append({"type": "tool_call", **fields})
    answer = {"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason or "stop"}
    values: dict[str, Any] = {"gen_ai.input.messages": texts, "gen_ai.output.messages": [answer]}
    if request.system_turn is not None:
        values["gen_ai.system_instructions"] = [{"type": "text", "content": request.system_turn.text}]
    return {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
