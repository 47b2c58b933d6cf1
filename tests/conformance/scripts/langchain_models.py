"""LangChain's chat models for OpenAI (chat completions and responses) and Anthropic."""

from __future__ import annotations

import functools
import operator
from typing import Any, Literal

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from report import API, CAP, KEY, MODEL, PROMPT, RESULT, URL, WEATHER_PROMPT, Weather, report

if API == "messages":
    from langchain_anthropic import ChatAnthropic

    model: Any = ChatAnthropic(model=MODEL, base_url=URL, api_key=KEY, max_tokens=CAP, max_retries=0)
else:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(
        model=MODEL,
        base_url=f"{URL}/v1",
        api_key=KEY,
        max_tokens=CAP,
        max_retries=0,
        use_responses_api=API == "responses",
        stream_usage=True,
    )


@tool
def get_weather(city: Literal["Oslo", "Rome"]) -> str:
    """Return the weather in a city."""
    return RESULT


def ask(runnable: Any, messages: Any, *, stream: bool) -> Any:
    """Return the answer, added up from its pieces if streamed."""
    return functools.reduce(operator.add, runnable.stream(messages)) if stream else runnable.invoke(messages)


def text(*, stream: bool) -> dict[str, Any]:
    message = ask(model, PROMPT, stream=stream)
    metadata = message.response_metadata
    finish = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("status")
    usage = message.usage_metadata
    return {"text": message.text, "finish": finish, "output_tokens": usage and usage["output_tokens"]}


def tools(*, stream: bool) -> dict[str, Any]:
    messages: Any = [HumanMessage(WEATHER_PROMPT)]
    first = ask(model.bind_tools([get_weather], tool_choice="any"), messages, stream=stream)
    results = [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]) for call in first.tool_calls]
    last = ask(model.bind_tools([get_weather]), [*messages, first, *results], stream=stream)
    return {"calls": [[call["name"], call["args"]] for call in first.tool_calls], "text": last.text}


def answer(method: str = "json_schema", *, stream: bool = False) -> dict[str, Any]:
    structured = model.with_structured_output(Weather, method=method)
    *_, last = structured.stream(WEATHER_PROMPT) if stream else [structured.invoke(WEATHER_PROMPT)]
    return {"answer": last.model_dump()}


report(text, tools, answer, object_by_tool=lambda: answer("function_calling"))
