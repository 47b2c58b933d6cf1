"""Calls as OpenTelemetry's spans and metrics, read back by the SDK's own in-memory exporters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import famnb
from famnb.api import Client
from famnb.record import Ledger
from famnb.service import serve
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    ledger = tmp_path_factory.mktemp("otel") / "ledger.sqlite"
    with serve(time_scale=0) as server, Client(base_url=server.url, api_key=server.key, ledger=ledger) as client:
        client.ask("Why is the sky blue?", endpoint="messages", temperature=0.5, max_tokens=64)
        client.send(famnb.compose("web", "Say hello."))
        with pytest.raises(famnb.errors.BadRequestError):
            client.ask("Go on.", endpoint="responses", previous_response_id="resp_of_nobody")
        yield client


def test_spans_have_the_names_and_units_of_the_conventions(client: Client):
    exporter, frame = InMemorySpanExporter(), famnb.calls(client)
    assert famnb.export.otel(frame, exporter, ledger=client) == 3
    streamed, whole, failed = exporter.get_finished_spans()
    row = frame.iloc[0]
    assert (streamed.name, streamed.kind) == (f"chat {row['model']}", SpanKind.CLIENT)
    assert streamed.start_time == row["started_at"].value
    assert streamed.end_time - streamed.start_time == pytest.approx(row["e2e_s"] * 1e9, abs=1)
    attributes = dict(streamed.attributes or {})
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.temperature"] == 0.5
    assert attributes["gen_ai.usage.output_tokens"] == row["output_tokens"]
    assert attributes["gen_ai.response.finish_reasons"] == (row["finish_reason"],)
    assert attributes["gen_ai.response.time_to_first_chunk"] == row["ttft_s"]
    assert attributes["server.address"] == "127.0.0.1"
    assert "gen_ai.response.time_to_first_chunk" not in (whole.attributes or {})
    assert (failed.status.status_code, (failed.attributes or {})["error.type"]) == (StatusCode.ERROR, "BadRequestError")
    # An address without a port has that of its scheme.
    famnb.export.otel(frame.head(1).assign(url="https://api.example.com"), exporter, ledger=client)
    assert (exporter.get_finished_spans()[-1].attributes or {})["server.port"] == 443
    # An estimate is no usage, and nobody asked for content.
    names = {name for span in (streamed, whole, failed) for name in span.attributes or {}}
    assert not {name for name in names if "messages" in name}
    assert "gen_ai.usage.output_tokens" not in (failed.attributes or {})


def test_metrics_are_the_histograms_of_the_conventions(client: Client):
    reader = InMemoryMetricReader()
    famnb.export.otel(
        famnb.calls(client), InMemorySpanExporter(), meter_provider=MeterProvider([reader]), ledger=client
    )
    data: Any = reader.get_metrics_data()
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert {name: metric.unit for name, metric in metrics.items()} == {
        "gen_ai.client.operation.duration": "s",
        "gen_ai.client.token.usage": "{token}",
        "gen_ai.client.operation.time_to_first_chunk": "s",
        "gen_ai.client.operation.time_per_output_chunk": "s",
    }
    points = metrics["gen_ai.client.token.usage"].data.data_points
    assert {point.attributes["gen_ai.token.type"] for point in points} == {"input", "output"}
    assert sum(point.count for point in metrics["gen_ai.client.operation.duration"].data.data_points) == 3


def test_content_is_in_a_span_only_if_it_is_asked_for(client: Client):
    exporter = InMemorySpanExporter()
    famnb.export.otel(famnb.calls(client).head(1), exporter, content=True, ledger=client)
    attributes: Any = exporter.get_finished_spans()[0].attributes
    [prompt] = json.loads(attributes["gen_ai.input.messages"])
    [answer] = json.loads(attributes["gen_ai.output.messages"])
    assert prompt == {"role": "user", "parts": [{"type": "text", "content": "Why is the sky blue?"}]}
    assert answer["parts"][-1]["type"] == "text"


def test_a_live_exporter_writes_each_call_as_it_ends(client: Client):
    exporter = InMemorySpanExporter()
    stop = famnb.export.otel_live(client, exporter)
    client.ask("And now?", endpoint="web")
    wait_until(lambda: len(exporter.get_finished_spans()) == 1)
    stop()
    client.ask("And then?", endpoint="web")
    assert len(exporter.get_finished_spans()) == 1


def test_what_is_exported_is_imported_again(client: Client, tmp_path: Path):
    """As the SDK prints it, with content: the same prompts, answers and counts."""
    exporter = InMemorySpanExporter()
    famnb.export.otel(famnb.calls(client).head(2), exporter, content=True, ledger=client)
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(f"{span.to_json(indent=None)}\n" for span in exporter.get_finished_spans()))
    ledger = Ledger(tmp_path / "again.sqlite")
    assert ledger.load(path) == 2
    before, after = famnb.calls(client).head(2), famnb.calls(ledger)
    assert after["prompt"].tolist() == before["prompt"].tolist()
    assert after["text_chars"].tolist() == before["text_chars"].tolist()
    assert after["output_tokens"].tolist() == before["output_tokens"].tolist()
    assert after["e2e_s"].tolist() == pytest.approx(before["e2e_s"].tolist(), abs=1e-5)
