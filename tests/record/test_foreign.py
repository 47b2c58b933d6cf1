"""What other tools recorded becomes calls of the ledger: each format by a file made after its public description."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import famnb
from famnb.cli import main
from famnb.errors import LedgerError
from famnb.record import Ledger

PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is the sky blue?"}]
ANSWER = "Because of scattering."
MESSAGE = {"role": "assistant", "content": ANSWER}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_780_000_000,
    "model": "gpt-5.4-mini-2026-03-01",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
}
BODY = {"model": "gpt-5.4-mini", "messages": PROMPT, "temperature": 0.5}
BATCH_LINE = {
    "id": "batch_req_1",
    "custom_id": "request-1",
    "response": {"status_code": 200, "request_id": "req_1", "body": COMPLETION},
    "error": None,
}
LITELLM_SPEND = {
    "request_id": "chatcmpl-1",
    "call_type": "acompletion",
    "spend": 0.0004,
    "total_tokens": 25,
    "prompt_tokens": 20,
    "completion_tokens": 5,
    "startTime": "2026-05-28T20:26:40.000Z",
    "endTime": "2026-05-28T20:26:42.000Z",
    "completionStartTime": "2026-05-28T20:26:40.500Z",
    "model": "gpt-5.4-mini",
    "custom_llm_provider": "openai",
    "api_base": "https://api.openai.com",
    "messages": PROMPT,
    "response": COMPLETION,
    "request_tags": ["nightly"],
}
LITELLM_FAILURE = {
    "id": "1",
    "call_type": "acompletion",
    "status": "failure",
    "startTime": 1_780_000_000.0,
    "endTime": 1_780_000_001.0,
    "model": "gpt-5.4-mini",
    "messages": PROMPT,
    "response": {},
    "response_cost": 0.0,
    "error_str": "Rate limit reached",
    "error_information": {"error_code": "429", "error_class": "RateLimitError"},
}
LANGFUSE = {
    "id": "obs-1",
    "traceId": "trace-1",
    "type": "GENERATION",
    "name": "answer",
    "startTime": "2026-05-28T20:26:40.000Z",
    "endTime": "2026-05-28T20:26:42.000Z",
    "completionStartTime": "2026-05-28T20:26:40.500Z",
    "model": "gpt-5.4-mini",
    "modelParameters": {"temperature": 0.5},
    "input": PROMPT,
    "output": MESSAGE,
    "usageDetails": {"input": 20, "output": 5, "total": 25},
    "costDetails": {"total": 0.0004},
    "level": "DEFAULT",
}
INSPECT_EVENT = {
    "event": "model",
    "uuid": "event-1",
    "timestamp": "2026-05-28T20:26:40+00:00",
    "model": "openai/gpt-5.4-mini",
    "input": [{"id": "m1", **PROMPT[0]}, {"id": "m2", "source": "input", **PROMPT[1]}],
    "tools": [],
    "config": {"temperature": 0.5, "max_connections": 10},
    "output": {
        "model": "gpt-5.4-mini",
        "choices": [{"message": {"id": "m3", "source": "generate", **MESSAGE}, "stop_reason": "stop"}],
        "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
        "time": 2.0,
    },
}
INSPECT_TASK = {"task": "sky", "model": "openai/gpt-5.4-mini", "run_id": "run-1"}
INSPECT_SAMPLE = {"id": 7, "epoch": 2, "uuid": "sample-1", "events": [{"event": "step"}, INSPECT_EVENT]}
PROMPTFOO = {
    "evalId": "eval-sky",
    "results": {
        "version": 3,
        "timestamp": "2026-05-28T20:26:40.000Z",
        "results": [
            {
                "id": "result-1",
                "promptIdx": 0,
                "testIdx": 7,
                "provider": {"id": "openai:gpt-5.4-mini", "label": "mini"},
                "prompt": {"raw": json.dumps(PROMPT), "label": "sky"},
                "response": {"output": ANSWER, "tokenUsage": {"total": 25, "prompt": 20, "completion": 5}},
                "latencyMs": 2000,
                "cost": 0.0004,
                "success": False,
                "error": 'Expected output to contain "Rayleigh"',
            }
        ],
    },
    "config": {},
}
PARTS = [{"role": "user", "parts": [{"type": "text", "content": "Why is the sky blue?"}]}]
ANSWER_PARTS = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
ATTRIBUTES: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-5.4-mini",
    "gen_ai.request.temperature": 0.5,
    "gen_ai.response.model": "gpt-5.4-mini-2026-03-01",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.response.time_to_first_chunk": 0.5,
    "gen_ai.usage.input_tokens": 20,
    "gen_ai.usage.output_tokens": 5,
    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
    "gen_ai.input.messages": json.dumps(PARTS),
    "gen_ai.output.messages": json.dumps(ANSWER_PARTS),
}


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(item) for item in value]}}
    kind = {str: "stringValue", int: "intValue", float: "doubleValue"}[type(value)]
    return {kind: str(value) if kind == "intValue" else value}


OTLP_SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "chat gpt-5.4-mini",
    "kind": 3,
    "startTimeUnixNano": "1780000000000000000",
    "endTimeUnixNano": "1780000002000000000",
    "attributes": [{"key": name, "value": otlp_value(value)} for name, value in ATTRIBUTES.items()],
    "status": {},
}
OTHER_SPAN = {**OTLP_SPAN, "spanId": "eee19b7ec3c1b175", "attributes": []}
OTLP = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [OTLP_SPAN, OTHER_SPAN]}]}]}
SDK_SPAN = {
    "name": "chat gpt-5.4-mini",
    "context": {"trace_id": "0x5b8e", "span_id": "0xeee1", "trace_state": "[]"},
    "kind": "SpanKind.CLIENT",
    "start_time": "2026-05-28T20:26:40.000000Z",
    "end_time": "2026-05-28T20:26:42.000000Z",
    "status": {"status_code": "UNSET"},
    "attributes": ATTRIBUTES,
}
TIMED = ["litellm", "langfuse", "langfuse csv", "otlp", "sdk spans"]
"""Formats that say when the first token came."""
FILES: dict[str, tuple[str, Any]] = {
    "requests with responses": ("calls.jsonl", [{"request": BODY, "response": COMPLETION, "latency_s": 2.0}]),
    "stored completions": ("stored.json", {"object": "list", "data": [{**COMPLETION, "messages": PROMPT}]}),
    "chats for fine-tuning": ("chats.jsonl", [{"messages": [*PROMPT, MESSAGE]}]),
    "batch output": ("batch.jsonl", [BATCH_LINE]),
    "litellm": ("spend.json", [LITELLM_SPEND]),
    "langfuse": ("observations.jsonl", [LANGFUSE, {**LANGFUSE, "type": "SPAN", "id": "obs-2"}]),
    "langfuse csv": ("observations.csv", LANGFUSE),
    "inspect": ("log.json", {"version": 2, "eval": INSPECT_TASK, "samples": [INSPECT_SAMPLE]}),
    "inspect archive": ("log.eval", INSPECT_SAMPLE),
    "promptfoo": ("results.json", PROMPTFOO),
    "otlp": ("spans.json", OTLP),
    "sdk spans": ("spans.jsonl", [SDK_SPAN]),
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    match path.suffix:
        case ".eval":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("header.json", json.dumps({"version": 2, "eval": INSPECT_TASK}))
                archive.writestr("samples/7_epoch_2.json", json.dumps(content))
        case ".csv":
            row = {key: value if isinstance(value, str) else json.dumps(value) for key, value in content.items()}
            pd.DataFrame([row]).to_csv(path, index=False)
        case ".jsonl":
            path.write_text("".join(f"{json.dumps(line)}\n" for line in content))
        case _:
            path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_tool_becomes_calls(kind: str, tmp_path: Path):
    path = write(tmp_path, *FILES[kind])
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert (ledger.load(path), ledger.load(path)) == (1, 0)
    row = famnb.calls(ledger).iloc[0]
    reply = ledger.call(row["call_id"]).reply
    is_bare = kind == "chats for fine-tuning"
    assert (reply.text, row["status"], row["text_chars"]) == (ANSWER, "completed", len(ANSWER))
    models = {
        "promptfoo": "openai:gpt-5.4-mini",
        "batch output": COMPLETION["model"],
        "stored completions": COMPLETION["model"],
    }
    assert is_bare or row["model"] == models.get(kind, "gpt-5.4-mini")
    assert row["input_tokens_source"] == ("absent" if is_bare else "reported")
    assert is_bare or (row["input_tokens"], row["output_tokens"]) == (20, 5)
    prompt = row["prompt"]
    assert pd.isna(prompt) if kind == "batch output" else prompt == "Why is the sky blue?"
    has_time = kind not in ("stored completions", "chats for fine-tuning", "batch output")
    assert row["e2e_s"] == pytest.approx(2.0) if has_time else pd.isna(row["e2e_s"])
    assert row["ttft_s"] == pytest.approx(0.5) if kind in TIMED else pd.isna(row["ttft_s"])
    assert (reply.timing.e2e_s, pd.isna(row["attempts"])) == (2.0 if has_time else None, True)
    if not is_bare:
        assert row["started_at"] == pd.Timestamp("2026-05-28T20:26:40Z")


def test_what_a_tool_knows_of_an_experiment_and_of_costs_comes_along(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for kind in ("inspect", "promptfoo", "litellm"):
        ledger.load(write(tmp_path, *FILES[kind]))
    rows = famnb.calls(ledger)
    assert rows["experiment"].dropna().tolist() == ["sky", "eval-sky"]
    assert rows["prompt_id"].dropna().tolist() == ["7", "7"]
    assert rows["repeat"].dropna().tolist() == [1]
    assert rows["cost_usd"].dropna().tolist() == [0.0004, 0.0004]
    assert (rows["tag"].dropna().tolist(), rows["profile"].tolist()) == (["nightly"], ["open", "open", "openai"])


def test_a_failed_call_stays_a_failed_call(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.load(write(tmp_path, "failures.json", [LITELLM_FAILURE]))
    row = famnb.calls(ledger).iloc[0]
    assert (row["status"], row["error"], row["http_status"]) == ("failed", "RateLimitError", 429)
    assert pd.isna(row["output_tokens"])


def test_imported_calls_are_drawn_and_a_file_of_no_format_is_refused(tmp_path, capsys):
    path = write(tmp_path, *FILES["litellm"])
    assert main(["ledger", "import", str(path), "--ledger", str(tmp_path / "l.sqlite")]) == 0
    assert "1 new calls" in capsys.readouterr().out
    frame = famnb.calls(tmp_path / "l.sqlite")
    for figure in (famnb.plot.latency(frame), famnb.plot.tokens(frame), famnb.plot.cost(frame)):
        assert figure.axes
    other = write(tmp_path, "notes.json", {"title": "Notes"})
    with pytest.raises(LedgerError, match=r"holds no calls.*litellm, langfuse, inspect, promptfoo, otel"):
        Ledger(tmp_path / "l.sqlite").load(other)
    with pytest.raises(LedgerError, match=r"missing\.json cannot be read: No such file"):
        Ledger(tmp_path / "l.sqlite").load(tmp_path / "missing.json")
