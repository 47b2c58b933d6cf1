"""Pydantic AI's agents with its models for OpenAI (chat completions and responses) and Anthropic."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, NativeOutput, ToolOutput
from report import API, CAP, KEY, MODEL, PROMPT, URL, WEATHER_PROMPT, Weather, WeatherTool, report

if API == "messages":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=URL, api_key=KEY, max_retries=0)
    model: Any = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
else:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0))
    model = (OpenAIChatModel if API == "chat" else OpenAIResponsesModel)(MODEL, provider=provider)


def run(prompt: str, *, stream: bool, **options: Any) -> Any:
    agent = Agent(model, model_settings={"max_tokens": CAP}, **options)
    if not stream:
        return agent.run_sync(prompt)
    result = agent.run_stream_sync(prompt)
    for _ in result.stream_output(debounce_by=None):
        pass
    return result


def text(*, stream: bool) -> dict[str, Any]:
    result = run(PROMPT, stream=stream)
    reply = result.response
    return {"text": reply.text, "finish": reply.finish_reason, "output_tokens": result.usage.output_tokens}


def tools(*, stream: bool) -> dict[str, Any]:
    weather = WeatherTool()
    result = run(WEATHER_PROMPT, stream=stream, tools=[weather.get_weather])
    return {"calls": weather.calls, "text": result.response.text}


def answer(form: Any = NativeOutput, *, stream: bool = False) -> dict[str, Any]:
    result = run(WEATHER_PROMPT, stream=stream, output_type=form(Weather))
    output = result.get_output() if stream else result.output
    return {"answer": output.model_dump()}


report(text, tools, answer, object_by_tool=lambda: answer(ToolOutput))
