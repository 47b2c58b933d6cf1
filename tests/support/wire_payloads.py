"""The API's own words for small replies, written by hand: what a server says on each endpoint, event by event."""

from typing import Any

from famnb.endpoints import compose
from famnb.request import Request
from tests.support.fault_server import DONE, event

ENDPOINTS = ("chat", "responses", "web", "messages")
MODEL = "fam-2-5-pro"


def request(endpoint: str = "web", prompt: str = "Say hello.", **fields: Any) -> Request:
    """A request that asks for a stream."""
    return compose(endpoint, prompt, **{"stream": True, **fields})


def opening(endpoint: str) -> list[bytes]:
    """What comes before any content."""
    match endpoint:
        case "responses":
            return [event({"type": "response.created", "response": _response("in_progress", [])})]
        case "messages":
            message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": MODEL}
            usage = {"input_tokens": 0, "output_tokens": 0}
            return [event({"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}})]
        case _:
            return [event(_chunk({"role": "assistant", "content": ""}))]


def delta(endpoint: str, text: str) -> bytes:
    """A piece of the answer."""
    match endpoint:
        case "responses":
            position = {"item_id": "item_1", "output_index": 0, "content_index": 0}
            return event({"type": "response.output_text.delta", **position, "delta": text})
        case "messages":
            piece = {"type": "text_delta", "text": text}
            return event({"type": "content_block_delta", "index": 1, "delta": piece})
        case _:
            return event(_chunk({"content": text}))


def thinking(text: str) -> bytes:
    """A piece of thinking, on messages."""
    piece = {"type": "thinking_delta", "thinking": text}
    return event({"type": "content_block_delta", "index": 0, "delta": piece})


def evidence(endpoint: str, text: str = "") -> bytes:
    """The event that proves the reply complete."""
    match endpoint:
        case "responses":
            return event({"type": "response.completed", "response": _response("completed", _output(text))})
        case "messages":
            stop = {"stop_reason": "end_turn", "stop_sequence": None}
            return event({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 4}})
        case _:
            return event(_chunk({}, "stop"))


def closing(endpoint: str, text: str = "") -> list[bytes]:
    """The evidence and the terminator, if the endpoint has one."""
    return [evidence(endpoint, text)] if endpoint == "responses" else [evidence(endpoint), DONE]


def sse_stream(endpoint: str, *pieces: str) -> list[bytes]:
    """A whole stream that says these pieces."""
    return [*opening(endpoint), *(delta(endpoint, piece) for piece in pieces), *closing(endpoint, "".join(pieces))]


def failure(endpoint: str) -> list[bytes]:
    """A failure inside an open stream."""
    match endpoint:
        case "responses":
            failed = {**_response("failed", []), "error": {"code": "server_error", "message": "the engine stopped"}}
            return [event({"type": "response.failed", "response": failed})]
        case "messages":
            return [event({"type": "error", "error": {"type": "api_error", "message": "the engine stopped"}}), DONE]
        case _:
            error = {"message": "the engine stopped", "type": "server_error", "code": "engine_stopped"}
            return [event({"error": error}), DONE]


def body(endpoint: str, text: str) -> dict[str, Any]:
    """The same reply as one JSON object."""
    match endpoint:
        case "responses":
            return _response("completed", _output(text))
        case "messages":
            content = [{"type": "text", "text": text}]
            usage = {"input_tokens": 3, "output_tokens": 4}
            fixed = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
            return {**fixed, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        case _:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            fixed = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": MODEL}
            return {**fixed, "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    fixed = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": MODEL}
    return {**fixed, "choices": [choice]}


def _response(status: str, output: list[Any]) -> dict[str, Any]:
    fixed = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": MODEL}
    totals = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7} if status == "completed" else None
    return {**fixed, "status": status, "output": output, "usage": totals}


def _output(text: str) -> list[Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return [{"id": "item_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}]
