"""OpenAI's own SDK for Python, at chat completions and at responses."""

from __future__ import annotations

import json
from typing import Any

import openai
from report import API, CAP, FUNCTION, KEY, MODEL, PROMPT, RESULT, URL, WEATHER_PROMPT, Weather, report, user

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
CHAT: Any = {"model": MODEL, "max_completion_tokens": CAP}
RESPONSES: Any = {"model": MODEL, "max_output_tokens": CAP}
NESTED: Any = {"type": "function", "function": {**FUNCTION, "strict": True}}
FLAT: Any = {"type": "function", "strict": True, **FUNCTION}


def chat(*, stream: bool, **fields: Any) -> Any:
    """Return a completion, through the helper that adds up the chunks if streamed."""
    if not stream:
        return client.chat.completions.parse(**CHAT, **fields)
    with client.chat.completions.stream(**CHAT, **fields, stream_options={"include_usage": True}) as events:
        return events.get_final_completion()


def chat_text(*, stream: bool) -> dict[str, Any]:
    reply = chat(stream=stream, messages=[user(PROMPT)])
    return {
        "text": reply.choices[0].message.content,
        "finish": reply.choices[0].finish_reason,
        "output_tokens": reply.usage and reply.usage.completion_tokens,
    }


def chat_tools(*, stream: bool) -> dict[str, Any]:
    messages = [user(WEATHER_PROMPT)]
    message = chat(stream=stream, messages=messages, tools=[NESTED], tool_choice="required").choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in message.tool_calls]
    last = chat(stream=stream, messages=[*messages, message, *results], tools=[NESTED])
    calls = [[call.function.name, json.loads(call.function.arguments)] for call in message.tool_calls]
    return {"calls": calls, "text": last.choices[0].message.content}


def chat_object(*, stream: bool) -> dict[str, Any]:
    reply = chat(stream=stream, messages=[user(WEATHER_PROMPT)], response_format=Weather)
    return {"answer": reply.choices[0].message.parsed.model_dump()}


def respond(*, stream: bool, **fields: Any) -> Any:
    """Return a response, through the helper that adds up the events if streamed."""
    if not stream:
        return client.responses.parse(**RESPONSES, **fields)
    with client.responses.stream(**RESPONSES, **fields) as events:
        return events.get_final_response()


def responses_text(*, stream: bool) -> dict[str, Any]:
    reply = respond(stream=stream, input=PROMPT)
    finish = reply.incomplete_details.reason if reply.incomplete_details else reply.status
    return {"text": reply.output_text, "finish": finish, "output_tokens": reply.usage and reply.usage.output_tokens}


def responses_tools(*, stream: bool) -> dict[str, Any]:
    first = respond(stream=stream, input=[user(WEATHER_PROMPT)], tools=[FLAT], tool_choice="required")
    calls = [item for item in first.output if item.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT} for call in calls]
    # Once with all items, once by the id of the response.
    known: Any = {"input": results, "previous_response_id": first.id}
    if not stream:
        known = {"input": [user(WEATHER_PROMPT), *first.output, *results]}
    last = respond(stream=stream, tools=[FLAT], **known)
    return {"calls": [[call.name, json.loads(call.arguments)] for call in calls], "text": last.output_text}


def responses_object(*, stream: bool) -> dict[str, Any]:
    return {"answer": respond(stream=stream, input=WEATHER_PROMPT, text_format=Weather).output_parsed.model_dump()}


text, tools, answer = (
    (chat_text, chat_tools, chat_object) if API == "chat" else (responses_text, responses_tools, responses_object)
)
report(text, tools, answer, models=lambda: {"models": [model.id for model in client.models.list()]})
