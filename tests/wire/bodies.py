"""Bodies and events of each dialect, made of what a test is about, and what is read of them."""

import json
from types import ModuleType
from typing import Any

from famnb.events import Event
from famnb.reply import Reply, fold
from tests.support.strategies import read

Body = dict[str, Any]


def read_stream(dialect: ModuleType, *bodies: Any) -> list[Event]:
    """The events of a stream of these bodies; a text stands in it as it is."""
    data = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return read(dialect, [f"data: {item}\n\n".encode() for item in data])


def fold_stream(dialect: ModuleType, *bodies: Any) -> Reply:
    return fold(read_stream(dialect, *bodies))


def fold_whole(dialect: ModuleType, body: Any) -> Reply:
    return fold(dialect.read(body))


def chunk(delta: Body, finish: str | None = None, *, choice: Body | None = None, **fields: Any) -> Body:
    """A chunk of a chat stream; `choice` has further fields of its choice."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish, **(choice or {})}]
    return {"id": "c", "model": "m", "choices": choices, **fields}


def completion(message: Body, finish: str = "stop", *, choice: Body | None = None, **fields: Any) -> Body:
    """A whole chat completion."""
    choices = [{"index": 0, "message": message, "finish_reason": finish, **(choice or {})}]
    return {"id": "c", "model": "m", "choices": choices, **fields}


def start(index: int, block: Body) -> Body:
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, type_: str, **fields: Any) -> Body:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type_, **fields}}


def stop(index: int) -> Body:
    return {"type": "content_block_stop", "index": index}


END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
"""The end of a messages stream."""


def message(*content: Any, stop_reason: str = "end_turn", **fields: Any) -> Body:
    """A whole message."""
    return {"id": "m", "model": "m", "content": [*content], "stop_reason": stop_reason, **fields}


def text_delta(piece: str, **fields: Any) -> Body:
    """A delta of a responses stream."""
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece, **fields}


def item_event(kind: str, item: Body, index: int = 0) -> Body:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": item}


def response(*output: Any, status: str = "completed", **fields: Any) -> Body:
    """A whole response."""
    return {"id": "r", "model": "m", "status": status, "output": [*output], **fields}


def text_item(text: str = "Yes.", **part: Any) -> Body:
    """An item of a response with one text."""
    return {"type": "message", "id": "i", "content": [{"type": "output_text", "text": text, **part}]}


def terminal(*output: Any, status: str = "completed", **fields: Any) -> Body:
    """The last event of a responses stream."""
    return {"type": f"response.{status}", "response": response(*output, status=status, **fields)}
