"""OpenAI's agents SDK, at chat completions and at responses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import (
    Agent,
    AsyncOpenAI,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from report import API, CAP, KEY, MODEL, PROMPT, URL, WEATHER_PROMPT, Weather, WeatherTool, report

set_tracing_disabled(True)
weather = WeatherTool()
get_weather = function_tool(weather.get_weather)


def run(prompt: str, *, stream: bool, choice: str | None = None, **options: Any) -> Any:
    async def go() -> Any:
        # Made here, for a client belongs to one event loop.
        client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
        kind = OpenAIChatCompletionsModel if API == "chat" else OpenAIResponsesModel
        settings = ModelSettings(max_tokens=CAP, include_usage=True, tool_choice=choice)
        agent = Agent("agent", model=kind(MODEL, client), model_settings=settings, **options)
        if not stream:
            return await Runner.run(agent, prompt)
        result = Runner.run_streamed(agent, prompt)
        async for _ in result.stream_events():
            pass
        return result

    return asyncio.run(go())


def text(*, stream: bool) -> dict[str, Any]:
    result = run(PROMPT, stream=stream)
    tokens = sum(response.usage.output_tokens for response in result.raw_responses)
    return {"text": result.final_output, "output_tokens": tokens or None}


def tools(*, stream: bool) -> dict[str, Any]:
    weather.calls.clear()
    result = run(WEATHER_PROMPT, stream=stream, choice="required", tools=[get_weather])
    return {"calls": weather.calls, "text": result.final_output}


def answer(*, stream: bool) -> dict[str, Any]:
    return {
        "answer": json.loads(run(WEATHER_PROMPT, stream=stream, output_type=Weather).final_output.model_dump_json())
    }


report(text, tools, answer)
