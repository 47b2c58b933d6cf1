"""LlamaIndex' model for servers like OpenAI's."""

from __future__ import annotations

from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from report import CAP, KEY, MODEL, PROMPT, URL, WEATHER_PROMPT, Weather, WeatherTool, report

llm = OpenAILike(
    model=MODEL,
    api_base=f"{URL}/v1",
    api_key=KEY,
    max_tokens=CAP,
    max_retries=0,
    is_chat_model=True,
    is_function_calling_model=True,
    should_use_structured_outputs=True,
)


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage(role="user", content=text)]


def text(*, stream: bool) -> dict[str, Any]:
    if stream:
        *_, reply = llm.stream_chat(user(PROMPT))
        return {"text": reply.message.content}
    reply = llm.chat(user(PROMPT))
    return {
        "text": reply.message.content,
        "finish": reply.raw.choices[0].finish_reason,
        "output_tokens": reply.raw.usage.completion_tokens,
    }


def tools(*, stream: bool) -> dict[str, Any]:
    weather = WeatherTool()
    tool = FunctionTool.from_defaults(weather.get_weather)
    messages = user(WEATHER_PROMPT)
    if stream:
        *_, first = llm.stream_chat_with_tools([tool], chat_history=messages, tool_required=True)
    else:
        first = llm.chat_with_tools([tool], chat_history=messages, tool_required=True)
    messages = [*messages, first.message]
    for call in llm.get_tool_calls_from_response(first):
        result = tool.call(**call.tool_kwargs)
        messages.append(ChatMessage(role="tool", content=str(result), additional_kwargs={"tool_call_id": call.tool_id}))
    return {"calls": weather.calls, "text": llm.chat_with_tools([tool], chat_history=messages).message.content}


def answer(*, stream: bool) -> dict[str, Any]:
    template = PromptTemplate(WEATHER_PROMPT)
    if not stream:
        return {"answer": llm.structured_predict(Weather, template).model_dump()}
    *_, last = llm.stream_structured_predict(Weather, template)
    return {"answer": last.model_dump()}


report(text, tools, answer)
