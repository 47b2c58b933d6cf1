"""Anthropic's own SDK for Python, which refuses here what is not exactly as its types say."""

from __future__ import annotations

from typing import Any

import anthropic
from report import CAP, FUNCTION, KEY, MODEL, PARAMETERS, PROMPT, RESULT, URL, WEATHER_PROMPT, Weather, report, user

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, _strict_response_validation=True)
TOOL: Any = {"name": FUNCTION["name"], "description": FUNCTION["description"], "input_schema": PARAMETERS}


def create(messages: Any, *, stream: bool, **fields: Any) -> Any:
    arguments: Any = {"model": MODEL, "max_tokens": CAP, "messages": messages, **fields}
    if not stream:
        return client.messages.parse(**arguments) if "output_format" in fields else client.messages.create(**arguments)
    with client.messages.stream(**arguments) as events:
        return events.get_final_message()


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def ask_text(*, stream: bool) -> dict[str, Any]:
    message = create([user(PROMPT)], stream=stream)
    return {"text": text_of(message), "finish": message.stop_reason, "output_tokens": message.usage.output_tokens}


def ask_tools(*, stream: bool) -> dict[str, Any]:
    messages = [user(WEATHER_PROMPT)]
    first = create(messages, stream=stream, tools=[TOOL], tool_choice={"type": "any"})
    calls = [block for block in first.content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in calls]
    messages += [{"role": "assistant", "content": first.content}, user(results)]
    last = create(messages, stream=stream, tools=[TOOL])
    return {"calls": [[call.name, call.input] for call in calls], "text": text_of(last)}


def ask_object(*, stream: bool) -> dict[str, Any]:
    message = create([user(WEATHER_PROMPT)], stream=stream, output_format=Weather)
    return {"answer": message.parsed_output.model_dump()}


report(ask_text, ask_tools, ask_object, models=lambda: {"models": [model.id for model in client.models.list()]})
