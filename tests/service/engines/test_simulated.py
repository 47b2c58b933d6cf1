"""The simulated engine: its tokens, its answers, its tool calls, and counts that add up."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.endpoints import ENDPOINTS, compose
from famnb.events import Event
from famnb.reply import Reply, fold
from famnb.request import WebChatRequest
from famnb.service.engines import simulated
from famnb.service.engines.base import StopMatcher
from famnb.service.engines.simulated import IMAGE_TOKENS, SimulatedEngine
from famnb.service.errors import ServiceError
from famnb.service.prompt import GenerationPrompt, build_prompt
from tests.support.service_requests import minimal_body


@given(st.lists(st.text(alphabet=st.one_of(st.sampled_from("ab1 .\n_好"), st.characters()), max_size=8)))
def test_the_pieces_are_the_text_however_it_is_cut(chunks: list[str]):
    text = "".join(chunks)
    pieces = list(simulated.split_tokens(chunks))
    assert "".join(pieces) == text
    assert all(pieces)
    assert pieces == list(simulated.split_tokens([text]))
    assert len(pieces) == simulated.count_tokens(text)


WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city"],
    },
}
CLOCK = {"name": "current_time"}


def events(prompt: GenerationPrompt, *, seed: int = 0) -> list[Event]:
    async def collect() -> list[Event]:
        return [event async for event in SimulatedEngine(seed=seed, time_scale=0).generate(prompt)]

    return asyncio.run(collect())


def answer_of(endpoint: str, text: str, *, seed: int = 0, **fields: Any) -> Reply:
    return fold(events(build_prompt(compose(endpoint, text, **fields)), seed=seed))


def web(text: str, **fields: Any) -> Reply:
    """The reply to a web chat request with tools or a format."""
    return fold(events(build_prompt(WebChatRequest(**minimal_body("web", text, **fields)))))


def functions(*definitions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": function} for function in definitions]


def test_an_answer_repeats_itself_and_another_seed_gives_another():
    prompt = build_prompt(compose("web", "Why is the sky blue?"))
    assert events(prompt) == events(prompt)
    assert len({answer_of("web", "Why is the sky blue?", seed=seed).text for seed in range(5)}) == 5
    assert answer_of("web", "Why is the sky green?").text != answer_of("web", "Why is the sky blue?").text


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_is_a_few_lines_of_markdown_that_own_up(seed: int):
    reply = answer_of("web", "Why is the sky blue?", seed=seed)
    for mark in ("## ", "\n- ", "\n|:--|", "\n```python\n"):
        assert mark in reply.text
    assert "simulated" in reply.text
    drawn = [line for line in reply.text.splitlines() if line.strip("`|:- ") not in ("", "python")]
    assert len(drawn) <= 10
    assert 100 <= (reply.usage.output_tokens or 0) <= 160


@pytest.mark.parametrize("endpoint", ["web", "messages"])
def test_who_asks_for_detail_gets_a_page(endpoint: str):
    brief = answer_of(endpoint, "Why is the sky blue?").text
    page = answer_of(endpoint, "Explain in detail why the sky is blue.").text
    assert len(page.splitlines()) > 1.5 * len(brief.splitlines())
    assert "> Explain in detail" in page


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        ({}, "| Token cap | default |"),
        ({"max_tokens": 400}, "| Token cap | 400 |"),
        ({"temperature": 0.7}, "| Temperature | 0.7 |"),
        ({"system": "Be | kind."}, "| System text | “Be \\| kind.” |"),
        ({"model": "fam-2-5-mini"}, "| Model | `fam-2-5-mini` |"),
        ({"thinking": 64}, "| Thinking | up to 64 tokens |"),
    ],
)
def test_an_answer_says_how_it_was_understood(fields: dict[str, Any], row: str):
    assert row in answer_of("messages", "Why is the sky blue?", **fields).text


def test_a_conversation_is_remembered():
    turns = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "What is my name?"},
    ]
    assert "1. “My name is Ada.”" in web("", messages=turns).text
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    turns = [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 24 °C"},
    ]
    reply = web("", messages=turns, tools=functions(WEATHER))
    assert "Sunny, 24 °C" in reply.text
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize("endpoint", list(ENDPOINTS))
@pytest.mark.parametrize("thinking", [None, 1, 50, 100_000])
@pytest.mark.parametrize("cap", [2, 17, 100, 512])
def test_counts_add_up(endpoint: str, thinking: int | None, cap: int):
    reply = answer_of(endpoint, "Tell me 80 words.", thinking=thinking, max_tokens=cap)
    usage = reply.usage
    assert usage.output_tokens == (usage.reasoning_tokens or 0) + simulated.count_tokens(reply.text) <= cap
    assert usage.total_tokens == (usage.input_tokens or 0) + usage.output_tokens
    assert (reply.finish_reason == "length") == (usage.output_tokens == cap)
    assert bool(usage.reasoning_tokens) == (thinking is not None)
    shown = simulated.count_tokens(reply.thinking)
    assert shown == (usage.reasoning_tokens if endpoint == "messages" else 0)
    if thinking is not None:
        assert (usage.reasoning_tokens or 0) <= thinking or endpoint != "messages"


def test_more_effort_and_a_larger_budget_mean_more_reasoning():
    efforts = ["none", "minimal", "low", "medium", "high", "xhigh"]
    spent = [web("Why?", reasoning={"effort": effort}).usage.reasoning_tokens or 0 for effort in efforts]
    assert spent == sorted(set(spent))
    budgets = [
        answer_of("messages", "Why?", thinking=n, max_tokens=9999).usage.reasoning_tokens for n in (20, 900, 9000)
    ]
    assert budgets == sorted(set(budgets))


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        ("count to 500", lambda text: [int(number) for number in text.split(",")] == list(range(1, 501))),
        ("Please count from 1 to 1,200.", lambda text: text.endswith("1200")),
        ("Write 500 words about the sea", lambda text: len(text.split()) == 500),
        ("give me 7 sentences", lambda text: text.count(".") == 7),
        (f"{'lorem ipsum ' * 99_999} Count to 3", lambda text: text == "1, 2, 3"),
        ("Say hello in one sentence.", lambda text: len(text) < 90),
    ],
)
def test_length_on_demand(prompt: str, count: Any):
    reply = answer_of("web", prompt, max_tokens=100_000)
    assert count(reply.text)
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize(
    ("prompt", "called"),
    [
        ("How is the weather in Paris?", ["get_weather"]),
        ("Use current_time please", ["current_time"]),
        ("Give me the weather and the current time", ["get_weather", "current_time"]),
        ("Why is the sky blue?", []),
    ],
)
def test_tools_are_called_when_a_prompt_names_them(prompt: str, called: list[str]):
    calls = web(prompt, tools=functions(WEATHER, CLOCK)).tool_calls
    assert [call.name for call in calls] == called
    assert len({call.id for call in calls}) == len(called)


def test_a_tool_that_must_be_called_need_not_be_named():
    (call,) = web("Why is the sky blue?", tools=functions(WEATHER, CLOCK), tool_choice="required").tool_calls
    assert call.name == "get_weather"


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "get_zip"}}])
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"zip": {"type": "string", "pattern": "^x+$"}}, "required": ["zip"]}, {"zip": "sample zip"}),
        ({"properties": {"n": {"const": 3}}, "not": {"required": ["m"]}, "if": {}}, {"n": 3}),
        ({"properties": {"n": {"const": 3}}, "required": ["n", "m"], "additionalProperties": False}, {"n": 3}),
        ({"allOf": [{"$ref": "#"}]}, {}),
        ({"$ref": "https://example.com/schema"}, {}),
        ({"description": "nothing to give"}, {}),
        ({"type": 5}, {}),
    ],
    ids=repr,
)
def test_no_schema_of_a_tool_is_refused(choice: Any, schema: dict[str, Any], arguments: dict[str, Any]):
    tools = functions({"name": "get_zip", "parameters": schema})
    (call,) = web("Please use get_zip", tools=tools, tool_choice=choice).tool_calls
    assert call.arguments == arguments


def test_a_schema_that_cannot_be_satisfied_is_refused():
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "string", "pattern": "^x+$"}}}
    with pytest.raises(ServiceError, match=r"response_format\.json_schema\.schema: .*does not match") as refused:
        web("Why?", response_format=form)
    assert (refused.value.status, refused.value.param) == (400, "response_format.json_schema.schema")


def test_what_a_prompt_costs():
    plain = web("Why?").usage.input_tokens or 0
    image = [{"type": "text", "text": "Why?"}, {"type": "image_url", "image_url": "http://192.0.2.1/x.png"}]
    assert web("", messages=[{"role": "user", "content": image}]).usage.input_tokens == plain + IMAGE_TOKENS
    assert (web("Why?", tools=functions(WEATHER)).usage.input_tokens or 0) > plain + 20
    assert (answer_of("web", "Why?", system="Be kind.").usage.input_tokens or 0) > plain
    assert {answer_of(name, "Why?").usage.input_tokens for name in ENDPOINTS} == {plain}


@pytest.mark.parametrize(
    ("pieces", "stops", "text", "stop"),
    [
        (["aa", "ab", "c"], ("ab",), "aa", "ab"),
        (["a", "a", "a", "b"], ("aab",), "a", "aab"),
        (["x", "ab", "ab", "y"], ("abac", "aby"), "xab", "aby"),
        (["abc"], ("c", "b"), "a", "b"),
        (["ab"], ("abc",), "ab", ""),
        (["abc"], ("abc",), "", "abc"),
        (["abc"], (), "abc", ""),
    ],
)
def test_a_text_is_cut_before_the_first_stop_text(pieces: list[str], stops: tuple[str, ...], text: str, stop: str):
    matcher = StopMatcher(stops)
    assert ("".join(matcher.cut(pieces)), matcher.stop) == (text, stop)
