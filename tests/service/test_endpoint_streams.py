"""Streams: the document's events in the document's order, as they are made, for as long as someone listens."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from famnb.client.transport import StampedTransport
from famnb.service import Server
from tests.support.service_requests import CAPS, PATHS, ServiceClient, decode_stream, minimal_body, open_call
from tests.support.thread_service import run_service
from tests.support.upstream_servers import fetch_reply
from tests.support.waiting import wait_until

FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"
FREE = {"id", "item_id", "created", "created_at", "delta", "text", "thinking", "content"}
"""Fields that say something else in every reply."""


def skeleton(event: Any) -> Any:
    """An event with `...` for whatever differs from reply to reply."""
    match event:
        case dict():
            return {
                name: ...
                if isinstance(value, str | int) and (name in FREE or name.endswith("_tokens"))
                else skeleton(value)
                for name, value in event.items()
            }
        case list():
            return [skeleton(inner) for inner in event]
        case _:
            return event


def collapse(events: list[Any]) -> list[Any]:
    """The skeletons of events, each run of equal ones as one: how many deltas a text takes is no promise."""
    skeletons = [skeleton(event) for event in events]
    return [event for index, event in enumerate(skeletons) if index == 0 or event != skeletons[index - 1]]


@pytest.mark.parametrize(
    ("fixture", "endpoint_", "fields"),
    [
        ("responses.sse", "responses", {}),
        ("responses_incomplete.sse", "responses", {"max_output_tokens": 2}),
        ("web.sse", "web", {}),
        ("web_include_usage.sse", "web", {"stream_options": {"include_usage": True}}),
        ("messages.sse", "messages", {"thinking": {"type": "enabled", "budget_tokens": 9}}),
        ("messages_without_thinking.sse", "messages", {"max_tokens": 2}),
    ],
)
def test_a_stream_has_the_documents_events(api: ServiceClient, fixture: str, endpoint_: str, fields: dict[str, Any]):
    expected = decode_stream((FIXTURES / fixture).read_bytes())
    assert collapse(api.events(endpoint_, **fields)) == collapse(expected)


@pytest.mark.parametrize("header", [{}, {"anthropic-version": "2023-06-01"}], ids=["plain", "sdk"])
def test_a_stream_has_names_of_events_only_for_the_sdk_of_the_messages_endpoint(api, endpoint, header):
    stream = api.post(PATHS[endpoint], json=minimal_body(endpoint, stream=True), headers=header).text
    named = endpoint == "messages" and bool(header)
    *blocks, end = stream.split("\n\n")
    assert end == ""
    assert all(re.fullmatch(r"(event: \w+\n)?data: .+" if named else r"data: .+", block) for block in blocks)
    assert ("event: message_stop\n" in stream) == named
    last = blocks[-1].removeprefix("data: ")
    assert named or (last == "[DONE]" if endpoint != "responses" else '"type":"response.completed"' in last)


@pytest.mark.parametrize("fields", [{}, {"cap": 1}, {"cap": 40}, {"temperature": 1.5}], ids=repr)
@pytest.mark.parametrize(
    "prompt", ["Why is the sky blue?", "count to 30", "Write 50 words.", "Was heißt „naïve“? 你好"]
)
def test_streamed_equals_whole(api: ServiceClient, endpoint: str, prompt: str, fields: dict[str, Any]):
    named = {CAPS[endpoint] if name == "cap" else name: value for name, value in fields.items()}
    whole, streamed = (fetch_reply(api, endpoint, prompt, stream=stream, **named) for stream in (False, True))
    assert whole.text
    assert (streamed.text, streamed.finish_reason, streamed.status) == (whole.text, whole.finish_reason, whole.status)
    if streamed.usage.output_tokens is not None:
        assert streamed.usage.output_tokens == whole.usage.output_tokens


def test_each_event_is_a_write_of_its_own(server: Server):
    with open_call(server, "web", stream=True) as connection:
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            received += connection.recv(65536)
    body = received.partition(b"\r\n\r\n")[2]
    chunks = []
    while body:
        size, _, body = body.partition(b"\r\n")
        chunk, body = body[: int(size, 16)], body[int(size, 16) + 2 :]
        chunks.append(chunk)
    assert chunks.pop() == b""
    assert len(chunks) > 100
    assert all(chunk.startswith(b"data: ") and chunk.count(b"\n\n") == 1 for chunk in chunks)


@pytest.mark.parametrize("streams", [True, False])
def test_generation_stops_when_the_caller_leaves(streams: bool):
    with run_service(time_scale=1, concurrency=1) as slow, ServiceClient(slow) as caller:
        endless: dict[str, Any] = {"prompt": "count to 100000", "max_output_tokens": 100_000}
        with open_call(slow, "responses", stream=streams, **endless) as connection:
            if streams:
                assert connection.recv(1)
            wait_until(lambda: caller.ask("web", model="x").status_code == 429)
        wait_until(lambda: caller.ask("web", model="x").status_code == 400)


@pytest.mark.full
def test_a_thousand_requests_at_once_have_a_thousand_ids(server: Server):
    async def ids() -> list[str]:
        headers = {"authorization": f"Bearer {server.key}"}
        # It sets no limit on connections.
        transport = StampedTransport()
        async with httpx.AsyncClient(base_url=server.url, headers=headers, transport=transport, timeout=60) as client:
            bodies = [minimal_body("responses", "one line", stream=bool(number % 2)) for number in range(1000)]
            answers = await asyncio.gather(*(client.post(PATHS["responses"], json=body) for body in bodies))
        return [answer.text.partition('"id":"')[2].partition('"')[0] for answer in answers]

    response_ids = asyncio.run(ids())
    assert len(set(response_ids)) == 1000
    assert all(id_.startswith("resp_") for id_ in response_ids)
