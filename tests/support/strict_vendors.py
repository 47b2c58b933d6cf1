"""Vendors that refuse, with status 400, a conversation that does not hold their own answers as they sent them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.fault_server import FaultServer, Received, Script, chunked, event, whole

Body = dict[str, Any]


def strict_vendor(endpoint: str, answers: list[Body]) -> FaultServer:
    """A vendor of an endpoint that gives these answers, one after each of them that the conversation holds already."""
    find_answers, wrap, stream = _ENDPOINTS[endpoint]

    def choose(received: Received) -> Script:
        request = json.loads(received.body)
        returned = find_answers(request)
        expected = answers[: len(returned)]
        if returned != expected:
            first = next(pair for pair in zip(returned, expected, strict=True) if pair[0] != pair[1])
            message = f"an earlier answer was changed: {json.dumps(first[0])} is not {json.dumps(first[1])}"
            return whole({"error": {"message": message, "type": "invalid_request_error"}}, status=400)
        answer = answers[len(returned)]
        return chunked(*map(event, stream(answer))) if request.get("stream") else whole(wrap(answer))

    return FaultServer(choose=choose)


def _chat_answers(request: Body) -> list[Body]:
    return [
        {name: value for name, value in message.items() if name not in ("role", "content") or value}
        for message in request["messages"]
        if message["role"] == "assistant"
    ]


def _wrap_chat(answer: Body) -> Body:
    finish = "tool_calls" if "tool_calls" in answer else "stop"
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    choice = {"index": 0, "message": answer, "finish_reason": finish}
    return {"id": "c", "model": "m", "choices": [choice], "usage": usage}


def _stream_chat(answer: Body) -> Iterator[Any]:
    def chunk(delta: Body, finish: str | None = None) -> Body:
        return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    for name, value in answer.items():
        match name, value:
            case "role", _:
                yield chunk({"role": value})
            case "tool_calls", _:
                for index, call in enumerate(value):
                    arguments = call["function"]["arguments"]
                    opening = {**call, "index": index, "function": {**call["function"], "arguments": arguments[:3]}}
                    yield chunk({"tool_calls": [opening]})
                    yield chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[3:]}}]})
            case _, str():
                yield chunk({name: value[:3]})
                yield chunk({name: value[3:]})
            case _, [*items]:
                for item in items:
                    yield chunk({name: [item]})
            case _:
                yield chunk({name: value})
    yield chunk({}, "tool_calls" if "tool_calls" in answer else "stop")
    yield b"[DONE]"


def _messages_answers(request: Body) -> list[Body]:
    """The contents of an assistant's messages; neighbours count as one each, as they were sent."""
    return [{"content": message["content"]} for message in request["messages"] if message["role"] == "assistant"]


def _stop_reason(answer: Body) -> str:
    types = [block["type"] for block in answer["content"]]
    return "tool_use" if "tool_use" in types else "pause_turn" if types[-1] == "server_tool_use" else "end_turn"


def _wrap_messages(answer: Body) -> Body:
    usage = {"input_tokens": 5, "output_tokens": 7}
    return {"id": "m", "type": "message", "model": "m", **answer, "stop_reason": _stop_reason(answer), "usage": usage}


def _stream_messages(answer: Body) -> Iterator[Any]:
    deltas = {
        "text": ("text_delta", "text", "text"),
        "thinking": ("thinking_delta", "thinking", "thinking"),
        "tool_use": ("input_json_delta", "partial_json", "input"),
        "server_tool_use": ("input_json_delta", "partial_json", "input"),
    }
    yield {"type": "message_start", "message": {"id": "m", "model": "m", "content": [], "usage": {"input_tokens": 5}}}
    for index, block in enumerate(answer["content"]):
        delta = deltas.get(block["type"])
        empty = {"input": {}} if delta and delta[2] == "input" else {delta[2]: ""} if delta else {}
        opening = {name: value for name, value in block.items() if name not in ("signature", "citations")}
        yield {"type": "content_block_start", "index": index, "content_block": {**opening, **empty}}
        if delta:
            type_, field, source = delta
            text = block[source] if isinstance(block[source], str) else json.dumps(block[source])
            for piece in (text[:3], text[3:]):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": type_, field: piece}}
        if "signature" in block:
            signature = {"type": "signature_delta", "signature": block["signature"]}
            yield {"type": "content_block_delta", "index": index, "delta": signature}
        for citation in block.get("citations", ()):
            cited = {"type": "citations_delta", "citation": citation}
            yield {"type": "content_block_delta", "index": index, "delta": cited}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": _stop_reason(answer)}, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def _responses_answers(request: Body) -> list[Body]:
    """The items between what the caller says, each answer's together."""
    answers: list[list[Body]] = [[]]
    for item in request["input"] if isinstance(request["input"], list) else []:
        if item.get("type") == "function_call_output" or item.get("role") == "user":
            answers.append([])
        else:
            answers[-1].append(item)
    return [{"output": items} for items in answers if items]


def _wrap_responses(answer: Body) -> Body:
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", **answer, "usage": usage}


def _stream_responses(answer: Body) -> Iterator[Any]:
    yield {"type": "response.created", "response": {**_wrap_responses(answer), "output": [], "status": "in_progress"}}
    for index, item in enumerate(answer["output"]):
        opening = {**item, **({"arguments": ""} if "arguments" in item else {})}
        yield {"type": "response.output_item.added", "output_index": index, "item": opening}
        if "arguments" in item:
            delta = {"type": "response.function_call_arguments.delta", "output_index": index, "item_id": item["id"]}
            yield {**delta, "delta": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _wrap_responses(answer)}


_ENDPOINTS: dict[str, tuple[Callable[[Body], list[Body]], Callable[[Body], Body], Callable[[Body], Iterator[Any]]]] = {
    "chat": (_chat_answers, _wrap_chat, _stream_chat),
    "messages": (_messages_answers, _wrap_messages, _stream_messages),
    "responses": (_responses_answers, _wrap_responses, _stream_responses),
}
