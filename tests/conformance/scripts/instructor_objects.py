"""Instructor, which asks for objects: at chat completions, at responses and at messages."""

from __future__ import annotations

from typing import Any

import instructor
from report import API, CAP, KEY, MODEL, URL, WEATHER_PROMPT, Weather, report

Mode = instructor.Mode


def wrap(mode: Any) -> Any:
    if API == "messages":
        from anthropic import Anthropic

        return instructor.from_anthropic(Anthropic(base_url=URL, api_key=KEY, max_retries=0), mode=mode)
    from openai import OpenAI

    return instructor.from_openai(OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0), mode=mode)


def answer(mode: Any, *, stream: bool) -> dict[str, Any]:
    fields: Any = {
        "model": MODEL,
        "max_tokens": CAP,
        "max_retries": 0,
        "response_model": Weather,
        "messages": [{"role": "user", "content": WEATHER_PROMPT}],
    }
    client = wrap(mode)
    if not stream:
        return {"answer": client.create(**fields).model_dump()}
    *_, last = client.create_partial(**fields)
    return {"answer": last.model_dump()}


mode = {"chat": Mode.JSON_SCHEMA, "responses": Mode.RESPONSES_TOOLS, "messages": Mode.TOOLS}[API]
cases = {"object": lambda: answer(mode, stream=False), "streamed_object": lambda: answer(mode, stream=True)}
if API == "chat":
    cases["object_by_tool"] = lambda: answer(Mode.TOOLS, stream=False)
report(**cases)
