"""DSPy's language model and its programs, at chat completions and at responses."""

from __future__ import annotations

import asyncio
from typing import Any

import dspy
from report import API, CAP, KEY, MODEL, PROMPT, URL, WEATHER_PROMPT, Weather, WeatherTool, report

lm = dspy.LM(
    f"openai/{MODEL}",
    model_type=API,
    api_base=f"{URL}/v1",
    api_key=KEY,
    max_tokens=CAP,
    temperature=None,
    cache=False,
    num_retries=0,
)
dspy.configure(lm=lm)


class Forecast(dspy.Signature):
    """Say how the weather is."""

    question: str = dspy.InputField()
    weather: Weather = dspy.OutputField()


def whole() -> dict[str, Any]:
    (text,) = lm(PROMPT)
    usage = lm.history[-1]["usage"]
    tokens = usage.get("completion_tokens") or usage.get("output_tokens")
    return {"text": text if isinstance(text, str) else text["text"], "output_tokens": tokens}


def answer(*, stream: bool) -> dict[str, Any]:
    with dspy.context(adapter=dspy.JSONAdapter()):
        program = dspy.Predict(Forecast)
        if not stream:
            return {"answer": program(question=WEATHER_PROMPT).weather.model_dump()}

        async def last() -> Any:
            *_, prediction = [piece async for piece in dspy.streamify(program)(question=WEATHER_PROMPT)]
            return prediction

        return {"answer": asyncio.run(last()).weather.model_dump()}


def tools() -> dict[str, Any]:
    weather = WeatherTool()

    class Ask(dspy.Signature):
        """Answer the question."""

        question: str = dspy.InputField()
        tools: list[dspy.Tool] = dspy.InputField()
        outputs: dspy.ToolCalls = dspy.OutputField()

    tool = dspy.Tool(weather.get_weather)
    with dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        made = dspy.Predict(Ask)(question=WEATHER_PROMPT, tools=[tool]).outputs.tool_calls
    return {"calls": [[call.name, call.args] for call in made]}


report(None, None, answer, whole=whole, tools=tools)
