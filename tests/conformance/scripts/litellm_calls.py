"""LiteLLM, as a caller of OpenAI's chat completions and responses, and of Anthropic's messages."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for its table when imported

import litellm
from report import API, CAP, FUNCTION, KEY, MODEL, PROMPT, RESULT, URL, WEATHER_PROMPT, Weather, report, user

PROVIDERS = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
COMMON: Any = {
    "model": f"{PROVIDERS[API]}/{MODEL}",
    "api_base": URL if API == "messages" else f"{URL}/v1",
    "api_key": KEY,
    "max_retries": 0,
}
NESTED: Any = {"type": "function", "function": FUNCTION}
FLAT: Any = {"type": "function", **FUNCTION}


def complete(messages: Any, *, stream: bool, **fields: Any) -> Any:
    if not stream:
        return litellm.completion(messages=messages, max_tokens=CAP, **COMMON, **fields)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(litellm.completion(messages=messages, max_tokens=CAP, **COMMON, **fields, **options))
    return litellm.stream_chunk_builder(chunks, messages=messages)


def chat_text(*, stream: bool) -> dict[str, Any]:
    reply = complete([user(PROMPT)], stream=stream)
    choice = reply.choices[0]
    return {
        "text": choice.message.content,
        "finish": choice.finish_reason,
        "output_tokens": reply.usage.completion_tokens,
    }


def chat_tools(*, stream: bool) -> dict[str, Any]:
    messages = [user(WEATHER_PROMPT)]
    message = complete(messages, stream=stream, tools=[NESTED], tool_choice="required").choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in message.tool_calls]
    last = complete([*messages, message, *results], stream=stream, tools=[NESTED])
    calls = [[call.function.name, json.loads(call.function.arguments)] for call in message.tool_calls]
    return {"calls": calls, "text": last.choices[0].message.content}


def chat_object(*, stream: bool) -> dict[str, Any]:
    reply = complete([user(WEATHER_PROMPT)], stream=stream, response_format=Weather)
    return {"answer": Weather.model_validate_json(reply.choices[0].message.content).model_dump()}


def respond(*, stream: bool, **fields: Any) -> Any:
    if not stream:
        return litellm.responses(max_output_tokens=CAP, **COMMON, **fields)
    events = list(litellm.responses(max_output_tokens=CAP, stream=True, **COMMON, **fields))
    return events[-1].response


def output_text(response: Any) -> str:
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    return "".join(part.text for part in parts)


def responses_text(*, stream: bool) -> dict[str, Any]:
    reply = respond(stream=stream, input=PROMPT)
    return {
        "text": output_text(reply),
        "finish": reply.status,
        "output_tokens": reply.usage and reply.usage.output_tokens,
    }


def responses_tools(*, stream: bool) -> dict[str, Any]:
    first = respond(stream=stream, input=[user(WEATHER_PROMPT)], tools=[FLAT], tool_choice="required")
    calls = [item for item in first.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT} for call in calls]
    items = [item.model_dump() for item in calls]
    last = respond(stream=stream, input=[user(WEATHER_PROMPT), *items, *results], tools=[FLAT])
    return {"calls": [[call.name, json.loads(call.arguments)] for call in calls], "text": output_text(last)}


def responses_object(*, stream: bool) -> dict[str, Any]:
    reply = respond(stream=stream, input=WEATHER_PROMPT, text_format=Weather)
    return {"answer": Weather.model_validate_json(output_text(reply)).model_dump()}


text, tools, answer = (
    (responses_text, responses_tools, responses_object) if API == "responses" else (chat_text, chat_tools, chat_object)
)
report(text, tools, answer)
