"""What stands beside the composer's form: past calls opened exactly, tools, schemas, images, presets and code."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings

import famnb
from famnb.client.client import BlockingClient as Client
from famnb.endpoints import ENDPOINTS
from famnb.request import Request
from famnb.widget import Composer
from famnb.widget.composer import presets
from famnb.widget.form import images
from tests.support.composers import click, find_control, receive, wait_until_idle
from tests.support.strategies import requests, wide_requests

PNG = b"\x89PNG\r\n\x1a\n" + bytes(400)


class Answer(pydantic.BaseModel):
    """Where and how warm."""

    city: str
    degrees: int


@famnb.tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@famnb.tool
def clock() -> str:
    """The time."""
    return "noon"


@pytest.fixture
def client(server: famnb.service.Server, tmp_path: Path) -> Iterator[Client]:
    """A client of the local service, with a ledger of its own."""
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "calls.sqlite") as client:
        yield client


@pytest.fixture(autouse=True)
def preset_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Presets of this test alone."""
    monkeypatch.setenv("FAMNB_PRESETS", str(tmp_path / "presets.json"))
    return tmp_path / "presets.json"


# A past call in the form


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests | wide_requests)
def test_every_request_opens_in_the_form_exactly(composer: Composer, request: Request):
    """Whatever was there before, and at whichever endpoint: what the form sends is the old request."""
    composer.open(request)
    assert composer.request == request
    assert composer.request.body() == request.body()


@pytest.fixture
def composer(client: Client) -> Composer:
    """A composer with everything in view."""
    made = Composer(client, prompt="before", system="before", tools=[weather], schema=Answer)
    find_control(made, "All fields").value = True
    return made


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_recorded_call_opens_by_its_id_its_reply_and_itself(client: Client, name: str):
    """All are the same call; another endpoint's form takes it in."""
    reply = client.ask("What is a tide?", endpoint=name, max_tokens=30, temperature=0.5, stream=False)
    call = client.ledger.call(reply.call_id)
    for way in (reply.call_id, reply, call):
        composer = Composer(client, endpoint="web" if name == "chat" else "chat")
        composer.open(way)
        assert composer.request == reply.request
        assert composer._prompt_box.prompt == "What is a tide?"


def test_the_history_lists_filters_and_opens_with_the_reply(client: Client):
    """The latest first; a text finds prompts, models and settings; what opens is in the form and below."""
    for prompt, fields in (("About 100% tides_", {}), ("Rivers", {"endpoint": "chat", "system": "Be “brief”."})):
        client.ask(prompt, max_tokens=40, **fields)
    composer = Composer(client)
    find_control(composer, "History").value = True
    calls, text = find_control(composer, "Latest calls"), find_control(composer, "Filter calls")
    assert [line.split("  ")[1] for line, _ in calls.options] == ["Rivers", "About 100% tides_"]
    for words, expected in (("100% t", 1), ("s_", 1), ("fam-mini", 1), ("“brief”", 1), ("incomplete", 2), ("xyz", 0)):
        text.value = words
        assert len(calls.options) == expected, words
    text.value = "Rivers"
    click(composer, "Open in the form")
    assert composer.request.body()["messages"][-1]["content"] == "Rivers"
    inspector = composer._panels["History"]._inspector
    assert client.ledger.call(calls.value).reply.text.splitlines()[0].strip("# ") in inspector._transcript.value
    assert inspector.call.call_id == calls.value


def test_without_a_ledger_there_is_no_history(server: famnb.service.Server):
    """Said in words."""
    with Client(base_url=server.url, api_key=server.key) as client:
        composer = Composer(client)
        find_control(composer, "History").value = True
        assert "keeps no ledger" in composer._panels["History"]._message.value


def test_line_ends_that_a_page_does_not_know_are_sent_as_they_were(client: Client):
    """The page's text box has one kind of line end; sending from it what was opened changes nothing."""
    composer = Composer(client)
    composer.open(famnb.compose("messages", "a\r\nb\rc"))
    receive(composer, kind="send", prompt="a\nb\nc")
    assert wait_until_idle(composer).reply.request == famnb.compose("messages", "a\r\nb\rc")


# Tools and schema


def test_given_tools_and_schema_are_ticked_and_sent(client: Client):
    """The endpoint that carries them is chosen; unticked, nothing of them is left."""
    composer = Composer(client, prompt="Hi", tools=[weather, clock], schema=Answer)
    find_control(composer, "All fields").value = True
    body = composer.request.body()
    assert composer.request == famnb.compose(
        "web", "Hi", tools=[weather, clock], schema=Answer, model="fam-2-5-pro", stream=True
    )
    assert [tool["function"]["name"] for tool in body["tools"]] == ["weather", "clock"]
    find_control(composer, "weather").value = False
    assert [tool["function"]["name"] for tool in composer.request.body()["tools"]] == ["clock"]
    find_control(composer, "clock").value = find_control(composer, "Answer as JSON").value = False
    assert set(composer.request.body()) == {"model", "messages", "stream", "stream_options"}


def test_a_ticked_box_says_what_the_text_holds(client: Client):
    """Whether it was ticked, typed, loaded or opened; a text that is no list is left as it is."""
    composer = Composer(client, prompt="Hi", tools=[weather], endpoint="web")
    find_control(composer, "Tools").value = True
    find_control(composer, "tools").value = ""
    assert find_control(composer, "weather").value is False
    find_control(composer, "tools").value = json.dumps([weather.declaration()])
    assert find_control(composer, "weather").value is True
    find_control(composer, "tools").value = "[{"
    find_control(composer, "weather").value = True
    assert find_control(composer, "weather").value is False
    assert find_control(composer, "tools").value == "[{"
    composer.open(famnb.compose("web", "x", tools=[weather, clock]))
    assert find_control(composer, "weather").value is True


def test_a_schema_goes_along_to_where_it_has_a_place(client: Client):
    """From `text.format` to `response_format` and back; on messages its loss is said."""
    composer = Composer(client, prompt="Hi", schema=Answer)
    assert composer.request == famnb.compose("responses", "Hi", schema=Answer, model="fam-2-5-pro", stream=True)
    for name in ("chat", "messages", "responses"):
        find_control(composer, "Endpoint").value = name
    assert composer.request == famnb.compose("responses", "Hi", schema=Answer, model="fam-2-5-pro", stream=True)
    find_control(composer, "Endpoint").value = "messages"
    assert "text" in composer._editor.notes.value


# Images


def urls(value: Any) -> list[str]:
    """Every image's address in a body."""
    match value:
        case {"image_url": {"url": url}} | {"image_url": str(url)}:
            return [url]
        case dict():
            return [url for each in value.values() for url in urls(each)]
        case list():
            return [url for each in value for url in urls(each)]
        case _:
            return []


@pytest.mark.parametrize("name", ENDPOINTS)
def test_images_become_parts_of_the_message_and_go_along(client: Client, name: str):
    """Each endpoint's own parts; the service takes them; nothing of their data is in any widget."""
    composer = Composer(client, prompt="What is it?", endpoint="chat")
    composer._editor._images.replace(
        (images.image_from_file("a.png", PNG), images.image_from_url("https://example.org/b"))
    )
    for title in ("All fields", "Code", "JSON body"):
        find_control(composer, title).value = True
    find_control(composer, "Endpoint").value = name
    request = composer.request
    assert [url[:22] for url in urls(request.body())] == [
        "data:image/png;base64,",
        "https://example.org/b",
    ]
    assert client.send(request).status == "completed"
    data = images.image_from_file("a.png", PNG).url.partition(",")[2]
    assert data[:100] not in str(widgets.Widget.get_manager_state())
    assert data in composer._panels["Code"]._code.text
    assert data in composer._panels["JSON body"]._body.text


# Presets and code


def test_a_preset_is_saved_loaded_and_deleted_from_the_form(client: Client, preset_file: Path):
    """What the form held is there again; what is not saved is said."""
    composer = Composer(client, prompt="What is a tide?", system="Be brief.", endpoint="web")
    find_control(composer, "Sampling").value = True
    find_control(composer, "temperature").value = "0.7"
    composer._editor._images.replace((images.image_from_file("a.png", PNG),))
    find_control(composer, "Presets").value = True
    click(composer, "Save preset")
    said = composer._panels["Presets"]._message
    assert "expected a name" in said.value
    find_control(composer, "Save as").value = "tides"
    click(composer, "Save preset")
    assert "1 uploaded image is not saved" in said.value
    composer._editor._images.replace(())
    old = composer.request

    other = Composer(client)
    find_control(other, "Presets").value = True
    assert find_control(other, "Preset").value == "tides"
    click(other, "Load")
    assert other.request == old
    click(other, "Delete preset")
    assert presets.names(preset_file) == ()
    click(other, "Load")
    assert "there is none yet" in other._panels["Presets"]._message.value


def test_the_code_follows_form_and_kind(client: Client, server: famnb.service.Server):
    """Each kind there is for the endpoint; no key; while there is no request there is none, and it says why."""
    composer = Composer(client)
    find_control(composer, "Code").value = True
    panel = composer._panels["Code"]
    assert "write a prompt" in panel._message.value
    composer._prompt_box.prompt = "What is a tide?"
    assert find_control(composer, "As").options == ("famnb", "httpx", "curl", "anthropic")
    seen = set()
    for kind in find_control(composer, "As").options:
        find_control(composer, "As").value = kind
        seen.add(panel._code.text)
        assert "What is a tide?" in panel._code.text
        assert server.url in panel._code.text
        assert server.key not in panel._code.text
    assert len(seen) == 4
    find_control(composer, "Endpoint").value = "web"
    assert find_control(composer, "As").value == "openai"
    ast.parse(panel._code.text)
