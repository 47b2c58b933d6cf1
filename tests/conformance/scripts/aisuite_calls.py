"""aisuite with its providers for OpenAI and Anthropic."""

from __future__ import annotations

from typing import Any

import aisuite
from report import API, CAP, KEY, MODEL, PROMPT, URL, WEATHER_PROMPT, WeatherTool, report

PROVIDER = "anthropic" if API == "messages" else "openai"
address = URL if API == "messages" else f"{URL}/v1"
client = aisuite.Client({PROVIDER: {"api_key": KEY, "base_url": address, "max_retries": 0}})


def create(prompt: str, **fields: Any) -> Any:
    messages = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(f"{PROVIDER}:{MODEL}", messages, max_tokens=CAP, **fields)


def whole() -> dict[str, Any]:
    reply = create(PROMPT)
    usage = reply.usage
    return {
        "text": reply.choices[0].message.content,
        "finish": reply.choices[0].finish_reason,
        "output_tokens": usage and usage.completion_tokens,
    }


def stream() -> dict[str, Any]:
    chunks = [chunk for chunk in create(PROMPT, stream=True) if chunk.choices]
    return {"text": "".join(chunk.choices[0].delta.content or "" for chunk in chunks)}


def tools() -> dict[str, Any]:
    weather = WeatherTool()
    reply = create(WEATHER_PROMPT, tools=[weather.get_weather], max_turns=2)
    return {"calls": weather.calls, "text": reply.choices[0].message.content}


report(whole=whole, stream=stream, tools=tools)
