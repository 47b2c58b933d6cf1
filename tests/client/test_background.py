"""Replies that the service makes in the background: accepted at once, fetched later, recorded as one call."""

import asyncio
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import famnb
from famnb.api import AsyncClient, Client
from tests.support.fault_server import FaultServer, Script, whole

KEY = "vendor-key-0123456789abcdef"


def response(status: str, text: str = "", **fields: Any) -> Script:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    output = [{"type": "message", "id": "msg_1", "role": "assistant", "content": content}] if text else []
    return whole({"id": "resp_1", "object": "response", "status": status, "model": "m", "output": output, **fields})


def test_a_background_reply_is_fetched_once_it_is_there(tmp_path: Path):
    usage = {"usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}}
    with (
        FaultServer(response("queued"), get=response("in_progress")) as server,
        Client(profile="openai", base_url=server.url, api_key=KEY, ledger=tmp_path / "l.sqlite") as client,
    ):
        reply = client.ask("Think long.", endpoint="responses", background=True, stream=False)
        assert (reply.status, reply.complete, reply.error, reply.text) == ("running", False, None, "")
        assert famnb.calls(client)["status"].tolist() == ["running"]
        assert client.fetch(reply, wait=False).status == "running"
        server.get = response("completed", "Forty-two.", **usage)
        answer = client.fetch(reply)
        row = famnb.calls(client).iloc[0]
        again = client.ledger.call(reply.call_id or "").reply
    assert (answer.status, answer.text, answer.call_id, answer.complete) == (
        "completed",
        "Forty-two.",
        reply.call_id,
        True,
    )
    assert (again.text, row["status"], row["output_tokens"], row["text_chars"]) == ("Forty-two.", "completed", 4, 10)
    assert (answer.timing.e2e_s or 0) > 0


def test_a_background_reply_that_fails_raises_its_error(tmp_path: Path):
    failed = response("failed", error={"code": "server_error", "message": "It broke."})

    async def ask(url: str) -> None:
        client = AsyncClient(profile="openai", base_url=url, api_key=KEY, ledger=tmp_path / "l.sqlite")
        async with client:
            reply = await client.ask("Think long.", endpoint="responses", background=True, stream=False)
            await client.fetch(reply)

    with FaultServer(response("queued"), get=failed) as server, pytest.raises(famnb.StreamError, match="It broke"):
        asyncio.run(ask(server.url))


def test_only_a_reply_that_a_service_keeps_can_be_fetched(tmp_path: Path):
    client = Client(profile="openai", base_url="http://127.0.0.1:9", api_key=KEY, ledger=tmp_path / "l.sqlite")
    with client, pytest.raises(famnb.errors.InvalidRequest, match="background=True"):
        client.fetch(famnb.Reply(id="chatcmpl-1", call_id="call_1", request=client.compose("chat", "Hello")))


def test_a_fetch_that_waits_ends_with_its_client(tmp_path: Path):
    with FaultServer(response("queued"), get=response("in_progress")) as server:
        client = Client(profile="openai", base_url=server.url, api_key=KEY, ledger=tmp_path / "l.sqlite")
        reply = client.ask("Think long.", endpoint="responses", background=True, stream=False)
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(client.fetch, reply)
            # So that it has asked once, most likely; the outcome is the same if not.
            time.sleep(0.2)
            client.close()
            with pytest.raises(famnb.FamnbError, match="this client is closed"):
                waiting.result(30)


class BrokenTransport(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise RuntimeError(f"cannot send {request.headers['authorization']}")


def test_a_bug_while_models_are_listed_shows_no_key():
    client = Client(profile="openai", base_url="http://127.0.0.1:9", api_key=KEY, transport=BrokenTransport())
    with client, pytest.raises(famnb.FamnbError, match="a bug in famnb ended the request") as caught:
        client.models()
    frames = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert KEY not in frames
