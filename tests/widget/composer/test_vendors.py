"""Composers of vendors' clients: the form has the vendor's fields, and what it makes is sent as the vendor takes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import assume, given, settings

import famnb
from famnb.errors import InvalidRequest
from famnb.profiles import find_profile
from famnb.request import Request
from famnb.widget import Composer
from famnb.widget.form.draft import Draft, draft_of, read_draft
from tests.support.composers import (
    choose_endpoint,
    error_of,
    faults_of,
    panel_of,
    receive,
    send_prompt,
    texts_of,
    ticked_boxes,
    view_of,
    wait_until_idle,
    write_field,
)
from tests.support.strategies import requests

KEY = "sk-vendor-0123456789abcdef"
PNG = "data:image/png;base64,iVBORw0KGgo="


class Answer(pydantic.BaseModel):
    """What to answer."""

    words: list[str]


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 4 degrees"


@pytest.fixture
def connect(vendor_service: famnb.service.Server, tmp_path: Path) -> Iterator[Any]:
    """Makes a client of a profile, all of them with one ledger."""
    clients: list[famnb.Client] = []

    def make(profile: str) -> famnb.Client:
        ledger = tmp_path / "ledger.sqlite"
        clients.append(
            famnb.Client(profile=profile, base_url=vendor_service.url, api_key=vendor_service.key, ledger=ledger)
        )
        return clients[-1]

    yield make
    for client in clients:
        client.close()


# Not azure and gemini, whose paths the local service does not have.
@pytest.mark.parametrize("profile", ["openai", "anthropic", "openrouter", "ollama", "vllm", "open"])
def test_every_endpoint_of_every_profile_is_asked_through_the_form(connect: Any, profile: str):
    client = connect(profile)
    composer = Composer(client)
    assert [*view_of(composer).form.endpoints] == [*client.endpoints]
    for number, name in enumerate(client.endpoints, start=1):
        composer.new_talk()
        choose_endpoint(composer, name)
        assert faults_of(composer) == {}
        for prompt in ("First?", "Second?"):
            send_prompt(composer, prompt)
            wait_until_idle(composer)
            assert composer.reply.error is None
            assert composer.reply.status == "completed"
        assert type(composer.reply.request) is client.endpoints[name].request
        assert len(composer.reply.request.turns()) in (1, 3)  # responses names the stored turn before
        assert len(composer.replies) == 2 * number


def test_a_vendor_s_fields_are_filled_in_checked_and_sent(connect: Any):
    composer = Composer(connect("openai"), endpoint="chat", prompt="Hi")
    texts = {"seed": "7", "stop": '["END"]', "max_completion_tokens": "300", "reasoning_effort": "low"}
    for field, text in {**texts, "model": "ft:of-our-own", "extra_body": '{"new_field": [1]}'}.items():
        write_field(composer, field, text)
    assert faults_of(composer) == {}
    assert "`new_field` is sent as it is: famnb does not know it." in view_of(composer).prompt.remarks
    sent = {"seed": 7, "stop": ["END"], "max_completion_tokens": 300, "reasoning_effort": "low"}
    sent |= {"model": "ft:of-our-own", "new_field": [1]}
    assert {name: value for name, value in composer.request.body().items() if name in sent} == sent
    write_field(composer, "presence_penalty", "3")
    write_field(composer, "extra_body", "[1]")
    assert set(faults_of(composer)) == {"presence_penalty", "extra_body"}


def test_a_cap_that_a_vendor_insists_on_is_filled_in(connect: Any):
    composer = Composer(connect("anthropic"), prompt="Hi")
    assert texts_of(composer)["max_tokens"] == "4096"
    write_field(composer, "max_tokens", "")
    assert "required" in faults_of(composer)["max_tokens"]
    composer = Composer(connect("open"), endpoint="messages", prompt="Hi")
    choose_endpoint(composer, "chat")
    assert "max_tokens" not in composer.request.body()
    choose_endpoint(composer, "messages")
    write_field(composer, "max_tokens", "50")
    choose_endpoint(composer, "responses")
    assert composer.request.body()["max_output_tokens"] == 50


def test_tools_and_schema_are_asked_for_in_each_dialect(connect: Any):
    client = connect("open")
    composer = Composer(client, prompt="What is the weather in Oslo?", tools=[weather], schema=Answer)
    for name in ("chat", "responses", "messages", "chat"):
        choose_endpoint(composer, name)
        expected = client.compose(name, "?", tools=[weather], schema=Answer).body()
        body = composer.request.body()
        assert body["tools"] == expected["tools"], name
        form = "output_config" if name == "messages" else "text" if name == "responses" else "response_format"
        assert body[form] == expected[form], name
        assert ticked_boxes(composer) == {"weather", "Answer as JSON"}
        assert faults_of(composer) == {}


def test_what_moves_between_dialects_is_carried_or_named(connect: Any):
    composer = Composer(connect("open"), endpoint="chat", prompt="Hi")
    write_field(composer, "reasoning_effort", "low")
    write_field(composer, "seed", "7")
    choose_endpoint(composer, "responses")
    assert composer.request.body()["reasoning"] == {"effort": "low"}
    choose_endpoint(composer, "chat")
    assert {"reasoning_effort", "seed"} <= composer.request.body().keys()
    assert "reasoning" not in composer.request.body()
    choose_endpoint(composer, "responses")
    assert [remark.split()[0] for remark in view_of(composer).prompt.remarks] == ["`seed`"]
    choose_endpoint(composer, "messages")
    write_field(composer, "tool_choice.type", "none")
    choose_endpoint(composer, "chat")
    assert any("`tool_choice" in remark for remark in view_of(composer).prompt.remarks)


def test_images_are_written_as_the_vendor_takes_them_and_move_along(connect: Any):
    composer = Composer(connect("open"), endpoint="messages", prompt="What is it?")
    receive(composer, "add_image", name="", url="https://example.org/cat.png")
    (content,) = [message["content"] for message in composer.request.body()["messages"]]
    assert content[1] == {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}}
    assert view_of(composer).prompt.remarks == ()
    send_prompt(composer, "What is it?")
    wait_until_idle(composer, replies=1)
    choose_endpoint(composer, "chat")
    send_prompt(composer, "And now?")
    wait_until_idle(composer, replies=2)
    assert composer.reply.request.turns()[0].images == ("https://example.org/cat.png",)


HI = [{"role": "user", "content": "Hi"}]
CACHED = [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]}]


@pytest.mark.parametrize(
    ("profile", "endpoint", "fields"),
    [
        (
            "anthropic",
            "messages",
            {"max_tokens": 90, "system": "Be brief.", "messages": CACHED, "extra_body": {"mcp_servers": []}},
        ),
        ("openai", "chat", {"messages": HI, "seed": 1, "metadata": {}, "extra_body": {"a": None}}),
        ("openrouter", "chat", {"messages": HI, "provider": {"order": ["z"]}, "models": ["a/b"]}),
        ("openai", "responses", {"input": "Hi", "include": ["x"], "store": False}),
    ],
)
def test_a_vendor_s_request_opens_as_exactly_itself(profile: str, endpoint: str, fields: dict[str, Any]):
    endpoints = find_profile(profile).endpoints
    request = endpoints[endpoint].request(model="x/y", **fields)
    assert read_draft(draft_of(request, endpoints)).request == request


@settings(max_examples=60, deadline=None)
@given(requests.filter(lambda request: request.endpoint in find_profile("open").endpoints))
def test_any_request_opens_at_a_vendor_as_the_vendor_s_own(request_: Request):
    endpoints = find_profile("open").endpoints
    try:
        expected = endpoints[request_.endpoint].request.from_body(request_.body())
    except InvalidRequest:
        assume(False)
    assert read_draft(draft_of(request_, endpoints)).request == expected


def test_another_service_s_call_opens_where_there_is_such_an_endpoint(connect: Any):
    composer = Composer(connect("openai"))
    composer.load(famnb.compose("chat", "Hi", model="fam-mini", max_tokens=9))
    assert type(composer.request) is composer._client.endpoints["chat"].request
    with pytest.raises(InvalidRequest, match="no endpoint 'messages'; expected one of responses, chat"):
        composer.load(famnb.compose("messages", "Hi"))
    with pytest.raises(InvalidRequest, match="no endpoint 'web'; expected one of messages"):
        Composer(connect("anthropic"), endpoint="web")


def test_unknown_fields_written_as_json_are_sent_as_they_are():
    profile = find_profile("openai")
    raw = {("model",): "gpt-5.4", ("fields as JSON",): '{"seed": 3, "new": true}', ("extra_body",): '{"old": 1}'}
    request = read_draft(Draft(endpoint="chat", endpoints=profile.endpoints, raw=raw)).request
    assert request is not None
    assert {name: request.body()[name] for name in ("seed", "new", "old")} == {"seed": 3, "new": True, "old": 1}
    strict = read_draft(Draft(endpoint="chat", raw={**raw, ("model",): "fam-mini"}))
    assert strict.request is None


def test_a_preset_says_for_which_profile_it_was_saved(connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAMNB_PRESETS", str(tmp_path / "presets.json"))
    composer = Composer(connect("anthropic"), prompt="Hi")
    write_field(composer, "top_k", "5")
    panel_of(composer, "Presets", "save_preset", name="mine")
    assert json.loads((tmp_path / "presets.json").read_text())["presets"]["mine"]["profile"] == "anthropic"
    loaded = Composer(connect("anthropic"))
    assert panel_of(loaded, "Presets", "load_preset", name="mine").note == "“mine” is loaded."
    assert loaded.request == composer.request
    other = Composer(connect("openai"))
    receive(other, "load_preset", name="mine")
    fault = error_of(other)
    assert "saved with profile 'anthropic'" in fault
    assert "famnb.Client(profile='anthropic')" in fault


def test_the_code_says_which_variable_it_needs(connect: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    composer = Composer(connect("anthropic"), prompt="Hi")
    assert view_of(composer).service == "Anthropic"
    assert "once ANTHROPIC_API_KEY holds the key" in panel_of(composer, "Code").note
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert "read from ANTHROPIC_API_KEY" in panel_of(composer, "Code").note
    assert "no key is sent" in panel_of(Composer(connect("open"), prompt="Hi"), "Code").note


def test_a_comparison_stays_at_the_vendor(connect: Any):
    composer = Composer(connect("anthropic"), prompt="Hi")
    write_field(composer, "top_k", "5")
    board = composer.compare()
    assert board.labels == ("claude-sonnet-5", "claude-opus-5")
    board.submit()
    bodies = [reply.request.body() for reply in board.wait(60).values()]
    assert [(body["model"], body["top_k"]) for body in bodies] == [("claude-sonnet-5", 5), ("claude-opus-5", 5)]
