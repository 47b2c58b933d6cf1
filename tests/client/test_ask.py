"""The tool loop and structured answers, whole: what is sent, what runs, and what becomes of errors."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

import famnb
from famnb.api import AsyncClient, Client
from tests.support.fault_server import FaultServer, chunked, event, whole


@famnb.tool
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather of a city."""
    if city == "Atlantis":
        raise RuntimeError("under water")
    return {"city": city, "days": days, "celsius": 12}


@famnb.tool
async def currency(country: str) -> str:
    """The currency of a country."""
    await asyncio.sleep(0)
    return "krone"


class City(pydantic.BaseModel):
    name: str
    people: int


def calling(*calls: tuple[str, str]) -> list:
    """A whole reply of web chat that calls functions by name and arguments."""
    tool_calls = [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(calls)
    ]
    return _reply({"role": "assistant", "content": "", "tool_calls": tool_calls}, "tool_calls")


def saying(text: str, finish: str = "stop", **message: Any) -> list:
    """A whole reply of web chat that says something."""
    return _reply({"role": "assistant", "content": text, **message}, finish)


def _reply(message: dict, finish: str) -> list:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return whole({"id": "c", "object": "chat.completion", "model": "fam-2-5-pro", "choices": [choice]})


def messages_of(server: FaultServer, request: int) -> list[dict[str, Any]]:
    """The messages of a request that a server received."""
    return json.loads(server.requests[request].body)["messages"]


def test_a_stream_is_asked_for_its_usage_unless_told_otherwise(client: famnb.Client):
    plain = client.ask("Hi", endpoint="web")
    assert plain.request.body()["stream_options"] == {"include_usage": True}
    assert plain.usage.source("input_tokens") == plain.usage.source("output_tokens") == "reported"
    assert client.conversation("web").say("Hi").usage.source("output_tokens") == "reported"
    declined = client.ask("Hi", endpoint="web", stream_options=None)
    request = famnb.WebChatRequest(model="fam-2-5-pro", messages=[{"role": "user", "content": "Hi"}], stream=True)
    with client.stream(request) as stream:
        list(stream)
    for reply in (declined, client.send(request), stream.reply):
        assert "stream_options" not in reply.request.body()
        assert reply.usage.source("output_tokens") == "absent"


def test_a_tool_runs_and_its_result_is_sent_back(client: famnb.Client):
    reply = client.ask("What is the weather in Oslo?", tools=[weather], auto=True)
    [round_] = reply.rounds
    assert reply.endpoint == "web"
    assert round_.results[0].value == {"city": "Oslo", "days": 1, "celsius": 12}
    assert reply.request.messages[-1].content == '{"city":"Oslo","days":1,"celsius":12}'
    assert reply.text


@pytest.mark.parametrize("mode", ["sync", "async", "sync in a running loop"])
def test_several_calls_run_in_their_order(serve: Callable[..., FaultServer], connect: Callable[..., Client], mode: str):
    server = serve(
        calling(("weather", '{"city": "Oslo"}'), ("currency", '{"country": "Norway"}')), saying("Cold and dear.")
    )
    client = connect(server)
    options: dict[str, Any] = {"tools": [weather, currency], "auto": True, "stream": False}

    async def inside() -> famnb.Reply:
        return client.ask("Hi", **options)

    match mode:
        case "sync":
            reply = client.ask("Hi", **options)
        case "async":
            reply = asyncio.run(connect(server, kind=AsyncClient).ask("Hi", **options))
        case _:
            reply = asyncio.run(inside())
    assert reply.text == "Cold and dear."
    prompt, called, first, second = messages_of(server, 1)
    assert prompt["content"] == "Hi"
    assert [call["function"]["name"] for call in called["tool_calls"]] == ["weather", "currency"]
    assert (first["tool_call_id"], json.loads(first["content"])["celsius"]) == ("call_0", 12)
    assert (second["tool_call_id"], second["content"]) == ("call_1", "krone")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("weather", "{}", "city: required, but missing"),
        ("weather", '{"city": "Oslo", "days": "many"}', "days: input should be a valid integer"),
        ("weather", '{"city": ', "invalid JSON"),
        ("weather", '{"city": "Atlantis"}', "RuntimeError: under water"),
        ("wether", "{}", "there is no tool 'wether'; the tools are weather"),
    ],
)
def test_errors_are_told_to_the_model(serve, connect, name, arguments, words):
    server = serve(calling((name, arguments)), saying("Sorry."))
    reply = connect(server).ask("Hi", tools=[weather], auto=True, stream=False)
    assert words in json.loads(messages_of(server, 1)[-1]["content"])["error"]
    assert reply.rounds[0].results[0].error is not None
    assert reply.text == "Sorry."


def test_a_call_that_is_not_approved_does_not_run(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    server = serve(calling(("weather", '{"city": "Oslo"}'), ("weather", '{"city": "Rome"}')), saying("Well."))
    reply = connect(server).ask(
        "Hi",
        tools=[weather],
        stream=False,
        approve=lambda call: True if call.arguments["city"] == "Oslo" else "too far",
    )
    first, second = reply.rounds[0].results
    assert first.value["city"] == "Oslo"
    assert second.value is None
    assert json.loads(second.content)["error"] == "the user declined this call: too far"


def test_without_approval_the_calls_are_returned(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    server = serve(calling(("weather", '{"city": "Oslo"}')))
    reply = connect(server).ask("Hi", tools=[weather], stream=False)
    assert [call.name for call in reply.tool_calls] == ["weather"]
    assert len(server.requests) == 1


def test_rounds_are_limited(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    server = serve(calling(("weather", '{"city": "Oslo"}')))
    with pytest.warns(UserWarning, match="after 2 rounds"):
        reply = connect(server).ask("Hi", tools=[weather], auto=True, max_rounds=2, stream=False)
    assert len(reply.rounds) == 2
    assert reply.tool_calls
    assert len(server.requests) == 3


def test_a_tool_that_must_be_called_is_called_once(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    """`tool_choice` holds for the first round; kept, it would force calls for ever."""
    server = serve(calling(("weather", '{"city": "Oslo"}')), saying("Done."))
    connect(server).ask("Hi", tools=[weather], auto=True, tool_choice="required", stream=False)
    assert [json.loads(request.body).get("tool_choice") for request in server.requests] == ["required", None]


def test_each_round_is_a_call_of_its_own(client: famnb.Client):
    reply = client.ask("What is the weather in Oslo?", tools=[weather], auto=True, labels={"tag": "t"})
    ids = [reply.rounds[0].reply.call_id, reply.call_id]
    first, second = (client.ledger.call(call_id).labels for call_id in ids)
    assert first["loop"] == second["loop"]
    assert [first["round"], second["round"]] == ["1", "2"]
    assert first["tag"] == "t"


def test_a_round_that_fails_keeps_the_rounds_before(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    server = serve(calling(("weather", '{"city": "Oslo"}')), whole({"error": {"message": "no"}}, 400))
    with pytest.raises(famnb.BadRequestError) as caught:
        connect(server).ask("Hi", tools=[weather], auto=True, stream=False)
    assert caught.value.reply.rounds[0].results[0].value["celsius"] == 12


def test_options_without_functions_are_refused(client: famnb.Client):
    with pytest.raises(famnb.InvalidRequest, match="tools="):
        client.ask("Hi", auto=True)
    with pytest.raises(famnb.InvalidRequest, match="max_rounds"):
        client.ask("Hi", tools=[weather], auto=True, max_rounds=0)


def test_a_talk_remembers_its_tool_calls(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    server = serve(
        calling(("weather", '{"city": "Oslo"}')), saying("12 °C"), calling(("weather", '{"city": "Rome"}')), saying("?")
    )
    talk = connect(server).conversation(tools=[weather], auto=True, max_rounds=1, stream=False)
    talk.say("Oslo?")
    server.scripts[-1] = calling(("weather", '{"city": "Rome"}'))
    with pytest.warns(UserWarning, match="after 1 round"):
        talk.say("Rome?")
    server.scripts[-1] = saying("Bye.")
    talk.say("Bye")
    roles = [message["role"] for message in messages_of(server, -1)]
    assert roles == ["user", "assistant", "tool", "assistant", *["user", *["assistant", "tool"] * 2], "user"]
    assert "not run" in messages_of(server, -1)[-2]["content"]


@pytest.mark.parametrize("endpoint", ["chat", "responses", "web"])
def test_an_answer_becomes_an_instance(client: famnb.Client, endpoint: str):
    reply = client.ask("Name a city.", endpoint=endpoint, schema=City)
    assert isinstance(reply.parsed, City)
    assert reply.parsed == City.model_validate_json(reply.text)


def test_a_schema_without_an_endpoint_finds_one(client: famnb.Client):
    assert client.ask("A city.", schema=City).endpoint == "responses"
    assert client.ask("A city.", schema=City, model="fam-mini").endpoint == "chat"


@pytest.mark.parametrize(
    ("reply", "reason", "partial"),
    [
        (saying('{"name": "Os', "length"), "incomplete", {"name": "Os"}),
        (saying("", refusal="I would rather not."), "refused", None),
        (saying('{"name": "Oslo", "people": "many"}'), "invalid", {"name": "Oslo", "people": "many"}),
        (saying("Oslo, of course."), "invalid", None),
    ],
)
def test_an_answer_that_is_not_an_instance_says_why(serve, connect, reply, reason, partial):
    with pytest.raises(famnb.ParseError) as caught:
        connect(serve(reply)).ask("A city.", endpoint="web", schema=City, stream=False)
    assert (caught.value.reason, caught.value.partial) == (reason, partial)
    assert caught.value.reply.call_id


def test_json_can_be_read_while_it_grows(serve: Callable[..., FaultServer], connect: Callable[..., Client]):
    pieces = ['{"na', 'me": "Os', 'lo", "peo', 'ple": 7', "17710}"]
    deltas = [event({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    end = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    client = connect(serve(chunked(*deltas, end)))
    with client.stream(famnb.compose("web", "A city.", schema=City)) as stream:
        seen = [stream.partial for _ in stream]
    assert all(value is None or set(value) <= {"name", "people"} for value in seen)
    assert stream.partial == {"name": "Oslo", "people": 717710}
